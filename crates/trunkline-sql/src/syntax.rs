//! **The raw syntax tree**: what a source text says, before any name in it is looked up.
//!
//! `select x from t` is one [`RawStatement`] with a [`Statement::Select`], whose only target is a
//! reference to a column `x`. Whether there is a relation `t` is the binder's question.

mod clauses;
mod constant;
mod names;
mod parse_nodes;
mod raw_statement;
mod span;
mod statement;

pub use clauses::*;
pub use constant::Constant;
pub use names::*;
pub use parse_nodes::*;
pub use raw_statement::RawStatement;
pub use span::Span;
pub use statement::*;
