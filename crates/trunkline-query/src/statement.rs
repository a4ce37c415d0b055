//! **Statements**: planning and execution of a bound statement.
//!
//! A statement has its own account of memory, its own temporary files, and its own list of scans. All of
//! them end with [`Rows`].

mod context;
mod cursor_rows;
mod deep_stack;
mod explain;
mod memory;
mod optimizer;
mod point_query;
mod query_planner;
mod rows;

pub use context::{StatementContext, StatementOptions};
pub(crate) use cursor_rows::CursorRows;
pub(crate) use explain::{explain_columns, explain_statement};
pub use optimizer::rule_names;
pub(crate) use point_query::PointQuery;
pub use rows::{ResultColumn, Rows, execute, explain, result_columns};
