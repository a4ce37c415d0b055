//! **Binding**: from the syntax tree to the bound tree, PostgreSQL's parse analysis.
//!
//! ```text
//!   SelectStatement ── names, types, functions, casts of the opened database ──▶ BoundStatement
//! ```
//!
//! All rules that decide what a query means are here: which table a name stands for, which operator
//! `+` is, what type `1.5` has, which casts are added, which column is ambiguous, and what is an
//! error. Executing a bound tree needs none of them.
//!
//! Whatever we can't execute exactly as PostgreSQL does is refused here, by name.

mod binder;
mod calls;
mod coerce;
mod collation;
mod defaults;
mod domain;
mod execute_parameters;
mod expression;
mod from;
mod from_function;
mod function_frame;
mod grouping;
mod grouping_call;
mod hypothetical;
mod jsonb_subscripts;
mod level;
mod named_object;
mod nullable;
mod open_recursion;
mod outer_aggregate;
mod output_name;
mod parameters;
mod presence;
mod recursion;
mod reference;
mod resolved;
mod row_call;
mod scope;
mod search_cycle;
mod select;
mod set_operation;
mod sorting;
mod sql_function;
mod statement;
mod sub_link;
mod view;
mod virtual_relation;
mod windows;
mod with;

pub use execute_parameters::{bind_execute, declared_types};
pub use statement::{BindOptions, Bound, bind};
