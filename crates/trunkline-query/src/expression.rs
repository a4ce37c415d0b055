//! **Expressions**: from the bound tree to expressions of plans, and their evaluation.
//!
//! ```text
//!   bound expression ─┬─ native: comparisons of columns ──▶ nodes that the planner understands
//!                     └─ anything else ─▶ Program ────────▶ one function of the columns it uses
//! ```
//!
//! For example, `a = 5` can be used by joins and scans. `a + 1` is a function of `a`, which calls
//! the kernel of `int4pl`.

mod arrays;
mod constant;
mod division;
mod elements;
mod evaluate;
mod frame;
mod function;
mod keys;
mod native;
mod planner;
mod program;
mod relabel;
mod row_values;
mod scalar_function;
mod spread;
mod text;
mod via_text;
mod walk;

pub(crate) use division::Division;
pub(crate) use frame::{Frame, Scatter, failed};
pub(crate) use keys::{Key, KeyUse};
pub(crate) use planner::{ExpressionPlanner, OuterColumns};
pub(crate) use program::{BOOL, Program};
pub(crate) use scalar_function::ProgramFunction;
pub(crate) use text::{column_name, expression_text};
pub(crate) use walk::conjuncts;
