//! **One statement of a source text**, with its place in the text.
//!
//! `select 1; select 2` has two raw statements: the bytes 0..8 and 10..18.

use super::span::Span;
use super::statement::Statement;

/// A statement and its extent in the source text.
#[derive(Clone, Debug, PartialEq)]
pub struct RawStatement {
    /// The statement.
    pub statement: Statement,
    /// From its first token to its last, without the semicolon.
    pub span: Span,
}
