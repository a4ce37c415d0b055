//! **Positions in the source text.** Every node of the syntax tree carries one, so that an error can
//! point at the characters that caused it, as PostgreSQL's `location` fields do.
//!
//! In `select 1 + x`, the column reference `x` has the span 11..12. A span counts bytes from 0;
//! [`SqlError::character`](crate::SqlError::character) converts to the characters that a client sees.

/// A range of bytes in the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
}

impl Span {
    /// The span of the bytes from `start` up to, but not including, `end`.
    pub fn new(start: u32, end: u32) -> Span {
        Span { start, length: end.saturating_sub(start) }
    }

    /// The offset behind the last byte.
    pub fn end(self) -> u32 {
        self.start.saturating_add(self.length)
    }

    /// The smallest span that covers this one and `other`.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end().max(other.end()))
    }

    /// The text under this span, or nothing if `source` is another text.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end() as usize).unwrap_or("")
    }
}
