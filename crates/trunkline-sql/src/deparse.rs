//! **Deparsing**: bound expressions as SQL text, in the words of PostgreSQL's `EXPLAIN`.
//!
//! ```text
//!   Call int4gt(Column 3, Constant 5) ─▶ (abalance > 5)
//! ```
//!
//! Every operator is in parentheses, and casts that the binder added are shown where operators and
//! functions get their results. Stored expressions, which are node trees, are printed elsewhere.

mod expression;

pub use expression::ExpressionPrinter;
