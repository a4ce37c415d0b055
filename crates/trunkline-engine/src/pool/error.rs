//! Why a page could not be had, and what was done to one that could: by what the caller can do.
//!
//! A read that fails tells its issuer, and nobody else: who waited for the same page reads it again
//! under its own policy.

use super::write::WriteError;
use crate::storage::StorageError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use trunkline_aio::{Cancelled, DefineError};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageVerdict};

/// See the module.
#[derive(Debug)]
pub enum ReadError {
    /// The block's file cannot be used.
    Storage(StorageError),
    /// The system could not read the block.
    Io {
        /// The file.
        path: PathBuf,
        /// The block, counted over all segments.
        block: BlockNo,
        /// The system's answer.
        source: io::Error,
    },
    /// The file ends before the block does.
    Short {
        /// The file.
        path: PathBuf,
        /// The block, counted over all segments.
        block: BlockNo,
        /// Bytes of the block that there were.
        bytes: u32,
    },
    /// The page is not what was once written.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The block, counted over all segments.
        block: BlockNo,
        /// What is wrong with it, if that could be kept.
        verdict: Option<PageVerdict>,
    },
    /// The file cannot be read in this way.
    Define {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: DefineError,
    },
    /// The session holds as many pages as it is guaranteed, and there are no more to be had now:
    /// let go of one.
    TooManyPins {
        /// Pages that it holds.
        held: u32,
    },
    /// There is no buffer that could be had without writing a page first, and that has failed.
    WriteBack(Box<WriteError>),
    /// The session was cancelled.
    Cancelled,
}

impl ReadError {
    /// The block that could not be read, if it is about one.
    pub fn block(&self) -> Option<BlockNo> {
        match self {
            Self::Io { block, .. } | Self::Short { block, .. } | Self::Corrupt { block, .. } => {
                Some(*block)
            }
            _ => None,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(error) => error.fmt(f),
            Self::Io { path, block, source } => {
                write!(f, "could not read block {block} in file \"{}\": {source}", path.display())
            }
            Self::Short { path, block, bytes } => write!(
                f,
                "could not read block {block} in file \"{}\": read only {bytes} of {BLOCK_SIZE} bytes",
                path.display()
            ),
            Self::Corrupt { path, block, verdict } => {
                write!(f, "invalid page in block {block} of file \"{}\"", path.display())?;
                write_findings(f, *verdict)
            }
            Self::Define { path, source } => {
                write!(f, "could not read file \"{}\": {source}", path.display())
            }
            Self::TooManyPins { held } => write!(
                f,
                "the session holds {held} pages and every other buffer is promised to somebody else"
            ),
            Self::WriteBack(error) => write!(f, "no buffer can be made free: {error}"),
            Self::Cancelled => Cancelled.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            Self::Define { source, .. } => Some(source),
            Self::WriteBack(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<Cancelled> for ReadError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// All that is wrong with a page, after a colon.
fn write_findings(f: &mut fmt::Formatter<'_>, verdict: Option<PageVerdict>) -> fmt::Result {
    match verdict {
        None | Some(PageVerdict::Good | PageVerdict::New) => Ok(()),
        Some(PageVerdict::Header(header)) => write!(f, ": {header}"),
        Some(PageVerdict::Checksum { found, expected }) => {
            write!(f, ": checksum 0x{found:04X} found, 0x{expected:04X} expected")
        }
        Some(PageVerdict::Both { found, expected, header }) => {
            write!(f, ": checksum 0x{found:04X} found, 0x{expected:04X} expected; {header}")
        }
    }
}

/// What a policy let pass: a page that is in the pool although it was not sound.
#[derive(Debug, Clone)]
pub struct ReadWarning {
    /// The file.
    pub path: PathBuf,
    /// The block, counted over all segments.
    pub block: BlockNo,
    /// The page was made all zeros (`zero_damaged_pages`); otherwise it is as it was found, its
    /// checksum wrong (`ignore_checksum_failure`).
    pub zeroed: bool,
    /// What is wrong with it, if that could be kept.
    pub verdict: Option<PageVerdict>,
}

impl fmt::Display for ReadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (block, path) = (self.block, self.path.display());
        match self.zeroed {
            true => write!(f, "invalid page in block {block} of file \"{path}\"; zeroed")?,
            false => write!(f, "ignored checksum failure in block {block} of file \"{path}\"")?,
        }
        write_findings(f, self.verdict)
    }
}
