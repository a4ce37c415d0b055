//! Errors of the buffer pool: why a page could not be read or written.
//!
//! There's a separate variant for each case that callers must handle differently. A failed read is
//! reported only to the session that issued it. Other sessions that were waiting for the page retry
//! the read under their own damaged-page policy.

use crate::Location;
use crate::log::LogError;
use crate::storage::StorageError;
use std::fmt;
use std::io;
use trunkline_aio::{Cancelled, DefineError};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageVerdict};

/// A pool cannot be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// Fewer buffers than [`BUFFERS_MIN`].
    #[error("a pool of {buffers} buffers is too small, the minimum is {BUFFERS_MIN}")]
    TooSmall {
        /// Number of buffers requested.
        buffers: u32,
    },
    /// The I/O instance's page region has no contiguous range of that many free frames.
    #[error("no memory for {buffers} buffers in the page region")]
    NoMemory {
        /// Number of buffers requested.
        buffers: u32,
    },
}

/// Minimum number of buffers in a pool (PostgreSQL's lower bound of `shared_buffers`).
pub const BUFFERS_MIN: u32 = 16;

/// Why a page could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The block's file cannot be used.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// The kernel reported an error for the block.
    #[error("could not read {location}: {source}")]
    Io {
        /// File and block.
        location: Location,
        /// The kernel's error.
        source: io::Error,
    },
    /// The file ends before the block does.
    #[error("could not read {location}: read only {bytes} of {BLOCK_SIZE} bytes")]
    Short {
        /// File and block.
        location: Location,
        /// Number of bytes of the block that the file contains.
        bytes: u32,
    },
    /// The page failed its checksum or header check.
    #[error("invalid page in {location}{}", Findings(*verdict))]
    Corrupt {
        /// File and block.
        location: Location,
        /// What is wrong with the page.
        verdict: PageVerdict,
    },
    /// The file doesn't support a read like this, for example because direct I/O rejects the
    /// offset.
    #[error("could not read {location}: {source}")]
    Define {
        /// The file.
        location: Location,
        /// The reason.
        source: DefineError,
    },
    /// The session holds its guaranteed number of pins, and no more are available. Release one, or
    /// ask for more in advance ([`super::Backend::guarantee_pins`]).
    #[error("the session holds {held} pins and every other buffer is reserved by other sessions")]
    TooManyPins {
        /// Pins that the session holds.
        held: u32,
    },
    /// Every victim is dirty, and writing one failed.
    #[error("no buffer can be evicted: {0}")]
    Eviction(#[source] Box<WriteError>),
    /// The session was cancelled.
    #[error("{Cancelled}")]
    Cancelled,
}

impl ReadError {
    /// File and block, if the error is about one.
    pub fn location(&self) -> Option<&Location> {
        match self {
            Self::Io { location, .. }
            | Self::Short { location, .. }
            | Self::Corrupt { location, .. }
            | Self::Define { location, .. } => Some(location),
            _ => None,
        }
    }

    /// The block that could not be read, if the error is about a block.
    pub fn block(&self) -> Option<BlockNo> {
        self.location().and_then(Location::block)
    }
}

impl From<Cancelled> for ReadError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A damaged page that the policy accepted.
#[derive(Debug, Clone)]
pub struct ReadWarning {
    /// File and block.
    pub location: Location,
    /// The page was zeroed (`zero_damaged_pages`). If false, the page was left as it was read, with
    /// a wrong checksum (`ignore_checksum_failure`).
    pub zeroed: bool,
    /// What is wrong with the page.
    pub verdict: PageVerdict,
}

impl fmt::Display for ReadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = &self.location;
        match self.zeroed {
            true => write!(f, "invalid page in {location}; zeroed")?,
            false => write!(f, "ignored checksum failure in {location}")?,
        }
        Findings(self.verdict).fmt(f)
    }
}

/// What is wrong with a page, after a colon.
pub(crate) struct Findings(pub(crate) PageVerdict);

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PageVerdict::Good | PageVerdict::New => Ok(()),
            PageVerdict::Header(header) => write!(f, ": {header}"),
            PageVerdict::Checksum { found, expected } => {
                write!(f, ": checksum 0x{found:04X} found, 0x{expected:04X} expected")
            }
            PageVerdict::Both { found, expected, header } => {
                write!(f, ": checksum 0x{found:04X} found, 0x{expected:04X} expected; {header}")
            }
        }
    }
}

/// Why pages could not be written. They stay dirty.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file cannot be used.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// The kernel reported an error.
    #[error("could not write {}: {source}", Blocks(location, *blocks))]
    Io {
        /// File, and the first block that was not written.
        location: Location,
        /// Number of blocks from there to the end of the write.
        blocks: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The file does not accept writes of this shape.
    #[error("could not write {location}: {source}")]
    Define {
        /// The file.
        location: Location,
        /// The reason.
        source: DefineError,
    },
    /// The log could not be flushed, so the page must not be written.
    #[error("{0}")]
    Log(#[source] LogError),
    /// A segment could not be fsynced. Data that was written to it may be lost.
    #[error("could not fsync {location}: {source}")]
    Sync {
        /// The file.
        location: Location,
        /// The kernel's error.
        source: io::Error,
    },
    /// A block that an extension was about to add already contains data.
    #[error("unexpected data beyond the end of the relation, in {location}")]
    UnexpectedData {
        /// File and block.
        location: Location,
    },
    /// The session holds its guaranteed number of pins, and no more are available.
    #[error("the session holds {held} pins and every other buffer is reserved by other sessions")]
    TooManyPins {
        /// Pins that the session holds.
        held: u32,
    },
    /// The session was cancelled.
    #[error("{Cancelled}")]
    Cancelled,
}

impl From<LogError> for WriteError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Cancelled => Self::Cancelled,
            error @ LogError::Flush { .. } => Self::Log(error),
        }
    }
}

impl From<Cancelled> for WriteError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl WriteError {
    /// Converts the error that a writing session got when it failed to get a pin or a victim.
    /// Errors that only a read can return don't occur here. We don't implement `From`, because then
    /// `?` on an actual read would silently turn a corrupt page into "cancelled".
    pub(super) fn waiting_for_buffer(error: ReadError) -> Self {
        match error {
            ReadError::Eviction(error) => *error,
            ReadError::Storage(error) => error.into(),
            ReadError::TooManyPins { held } => Self::TooManyPins { held },
            _ => Self::Cancelled,
        }
    }
}

/// One block, or a range as PostgreSQL prints it.
struct Blocks<'a>(&'a Location, u32);

impl fmt::Display for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(location, blocks) = self;
        match location.block() {
            Some(first) if *blocks > 1 => {
                let (last, path) = (first + blocks - 1, location.path().display());
                write!(f, "blocks {first}..{last} of file \"{path}\"")
            }
            _ => location.fmt(f),
        }
    }
}
