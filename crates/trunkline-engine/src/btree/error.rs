//! Errors from index searches and walks.
//!
//! If an index is damaged, the error includes the page. [`BtreeError::Read`] passes on errors from
//! the pool.

use thiserror::Error;
use trunkline_format::btree::Fault;
use trunkline_format::{BlockNo, Tid};

use crate::Location;
use crate::pool::ReadError;

/// Why a search or a walk cannot continue.
#[derive(Debug, Error)]
pub enum BtreeError {
    /// A page could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A page is damaged.
    #[error("{location}: {problem}")]
    Corrupt {
        /// The page.
        location: Location,
        /// What is wrong.
        problem: BtreeProblem,
    },
}

impl BtreeError {
    /// Whether the session was cancelled. In this case nothing is damaged.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Read(ReadError::Cancelled))
    }
}

/// What is wrong with a page of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BtreeProblem {
    /// The page itself is invalid. The exception is [`Fault::UnknownOrder`], in which case the
    /// index may be sound but we can't search it, because we would have to compare keys in an order
    /// that only a server knows, such as that of a collation.
    #[error("{0}")]
    Fault(Fault),
    /// The page's level is not one below its parent's level.
    #[error("level {found} found, {expected} expected")]
    Level {
        /// The page's level.
        found: u32,
        /// The expected level.
        expected: u32,
    },
    /// The right links form a loop.
    #[error("links to the right do not end within {blocks} blocks")]
    Loop {
        /// Number of blocks in the index. The search took more steps than that.
        blocks: BlockNo,
    },
    /// The links and downlinks of the pages lead a scan in a circle.
    #[error("the links of its pages do not end within {blocks} blocks")]
    Circle {
        /// Number of blocks in the index. The scan has visited more pages than a sound index of that
        /// length lets it visit.
        blocks: BlockNo,
    },
    /// A page doesn't link back to the neighbour that links to it.
    #[error("link to the neighbour is {found}, {expected} expected")]
    Sibling {
        /// The link.
        found: BlockNo,
        /// The neighbour.
        expected: BlockNo,
    },
    /// An entry points to a block that the table doesn't have.
    #[error("line pointer {item}: points to row ({},{}), but the table has {blocks} blocks", tid.block, tid.item)]
    NoSuchBlock {
        /// The entry's line pointer.
        item: u16,
        /// Where it points to.
        tid: Tid,
        /// The table's number of blocks.
        blocks: BlockNo,
    },
    /// An entry points to a line pointer that no page of a table has.
    #[error("line pointer {item}: points to row ({},{}), but a page has at most {most} rows", tid.block, tid.item)]
    NoSuchRow {
        /// The entry's line pointer.
        item: u16,
        /// Where it points to.
        tid: Tid,
        /// The most rows on a page.
        most: u16,
    },
}
