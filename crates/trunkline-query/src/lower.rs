//! **Lowering**: from the bound tree to DataFusion's logical plan.
//!
//! ```text
//!   Aggregate groups c5 = c1, c6 = sum(c2)        Aggregate: groupBy=[c5], aggr=[sum(c2) AS c6]
//!     Filter c2 > 3                         ──▶     Projection: c1, c2, c1 AS c5
//!       Table accounts: aid → c1, b → c2              Filter: c2 > 3
//!                                                       TableScan: t0 [c1, c2]
//! ```
//!
//! Every column of the bound tree is a field with a name of its own, such as `c5`, so no name is ever
//! ambiguous. Types are carriers. Where PostgreSQL's equality or order isn't Arrow's, rows are
//! grouped, joined and sorted by keys.

mod aggregate;
mod grouping;
mod infallible;
mod join;
mod lazy_operands;
mod limit;
mod planner;
mod recursion;
mod relation;
mod set_function;
mod set_operation;
mod sorted_tables;
mod subplan;
mod subquery;
mod table;
mod visible;
mod window;

pub(crate) use planner::{Lowering, TableSource, field};
pub(crate) use table::{only_table, scanned_files};
