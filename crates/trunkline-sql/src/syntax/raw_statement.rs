//! **One statement of a source text**, with its place in the text.
//!
//! `select 1; select 2` has two raw statements: the bytes 0..8 and 10..18.

use super::span::Span;
use super::statement::Statement;

/// The stack that dropping one level of a tree takes without optimization, and somewhat more.
pub(super) const DROP_BYTES_PER_LEVEL: usize = 1 << 10;
/// Trees that nest less than this are dropped on any stack.
const NESTING_SMALL: usize = 64;

/// A statement and its extent in the source text. Its tree may nest as deep as
/// [`CHAIN_MAX`](super::CHAIN_MAX), which is why only the whole statement can be dropped on any stack:
/// its parts are borrowed, not moved out.
#[derive(Clone, Debug, PartialEq)]
pub struct RawStatement {
    /// The statement.
    pub statement: Statement,
    /// From its first token to its last, without the semicolon.
    pub span: Span,
    /// How deep the tree may nest.
    nesting: usize,
}

impl RawStatement {
    /// A statement whose tree nests at most as deep as `nesting`.
    pub fn new(statement: Statement, span: Span, nesting: usize) -> RawStatement {
        RawStatement { statement, span, nesting }
    }

    /// How deep the tree may nest. Code that recurses over it needs a stack in proportion.
    pub fn nesting(&self) -> usize {
        self.nesting
    }
}

impl Drop for RawStatement {
    fn drop(&mut self) {
        if self.nesting > NESTING_SMALL {
            let statement = std::mem::replace(&mut self.statement, Statement::Checkpoint);
            let stack_bytes = (1 << 20) + self.nesting * DROP_BYTES_PER_LEVEL;
            stacker::maybe_grow(stack_bytes, stack_bytes, || drop(statement));
        }
    }
}
