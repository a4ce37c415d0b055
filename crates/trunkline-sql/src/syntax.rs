//! **Syntax**: from text to the raw syntax tree, which says what a statement contains before any name in
//! it is looked up.
//!
//! ```
//! use trunkline_sql::syntax::{SelectBody, Statement, parse};
//! let statements = parse("select x from t")?;
//! let Statement::Select(select) = &statements[0].statement else { unreachable!() };
//! let SelectBody::Select(core) = &select.body else { unreachable!() };
//! assert_eq!(core.targets.len(), 1);
//! # Ok::<(), trunkline_sql::SqlError>(())
//! ```
//!
//! The scanner makes tokens of the text, `limits` counts how deep they nest, and the parser follows
//! PostgreSQL's grammar by recursive descent. Whether there is a relation `t` is the binder's question.

mod clauses;
mod command;
mod constant;
mod copy;
mod cursor;
mod expression;
mod from;
mod function;
mod keyword;
mod lexer;
mod limits;
mod literal;
mod names;
mod number;
mod parenthesized;
mod parse;
mod parse_nodes;
mod parser;
mod primary;
mod query_clauses;
mod raw_statement;
mod select;
mod setting;
mod source;
mod span;
mod statement;
mod token;
mod transaction;
mod type_name;
mod unicode_literal;
mod window;
mod write_command;

pub use clauses::*;
pub use constant::Constant;
pub use limits::{BRACKETS_MAX, CHAIN_MAX};
pub use names::*;
pub use parse::parse;
pub use parse_nodes::*;
pub use raw_statement::RawStatement;
pub use span::Span;
pub use statement::*;

#[cfg(test)]
mod dump;
#[cfg(test)]
mod tests;
