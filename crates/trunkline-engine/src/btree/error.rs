//! Why an index cannot be followed any further.
//!
//! As for the rest of the engine, an error names file and block, what was found and what was
//! expected.

use std::fmt;
use std::path::PathBuf;

use trunkline_format::BlockNo;
use trunkline_format::btree::Fault;

use crate::pool::ReadError;

/// See the module.
#[derive(Debug)]
pub enum BtreeError {
    /// A page could not be had.
    Read(ReadError),
    /// A page is not what it has to be.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The block, counted over all segments.
        block: BlockNo,
        /// What is wrong.
        problem: BtreeProblem,
    },
}

/// What is wrong with a page of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BtreeProblem {
    /// Something about the page itself; or, with [`Fault::UnknownOrder`], nothing: a search wants
    /// to compare what only the server can.
    Fault(Fault),
    /// It is of another level than the page that leads to it says.
    Level {
        /// Its level.
        found: u32,
        /// What it should be.
        expected: u32,
    },
    /// Links to the right go round in a circle.
    Loop {
        /// Blocks of the index, which are fewer than the steps that were made.
        blocks: BlockNo,
    },
}

impl fmt::Display for BtreeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Level { found, expected } => {
                write!(f, "level {found} found, {expected} expected")
            }
            Self::Loop { blocks } => {
                write!(f, "links to the right do not end within {blocks} blocks")
            }
        }
    }
}

impl fmt::Display for BtreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Corrupt { path, block, problem } => {
                write!(f, "block {block} of index file \"{}\": {problem}", path.display())
            }
        }
    }
}

impl std::error::Error for BtreeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Corrupt { .. } => None,
        }
    }
}

impl From<ReadError> for BtreeError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}
