//! **Tokens**, as the scanner delivers them to the grammar.
//!
//! `a::int` is the identifier `a`, the symbol `::` and the keyword INT.

use super::keyword::Keyword;
use super::span::Span;
use crate::error::SqlError;

/// A token and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// An identifier that is not a keyword, after folding or unquoting.
    Identifier(String),
    /// A keyword.
    Keyword(Keyword),
    /// A string, after its escapes.
    String(String),
    /// A bit string with its prefix `b` or `x`.
    BitString(String),
    /// An integer that fits into `int4`.
    Integer(i32),
    /// Any other number.
    Float(String),
    /// `$1`.
    Parameter(u32),
    /// Punctuation, or an operator to which the grammar gives a precedence of its own.
    Symbol(&'static str),
    /// Any other operator.
    Operator(String),
    /// A character that begins no token. The grammar has no place for it.
    Stray,
    /// What the scanner could not read. It is the last token, because PostgreSQL's parser asks for one
    /// token after the other and reports what is wrong before it first.
    Malformed(Box<SqlError>),
    /// The end of the text.
    End,
}
