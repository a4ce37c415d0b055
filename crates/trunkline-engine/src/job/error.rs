//! Errors that end a whole job. Damage in individual files and pages doesn't: it becomes a finding,
//! and the job continues with the next file or page.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::datadir::DataDirError;

/// Why a job failed.
#[derive(Debug, Error)]
pub enum JobError {
    /// The data directory has changed, or cannot be read.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The file system does not support direct I/O. The job refuses to start, because falling back
    /// to the page cache would silently change what the job measures or verifies.
    #[error(
        "\"{}\" cannot be opened for direct I/O: the file system, {file_system}, does not support it",
        path.display()
    )]
    Direct {
        /// A file on this file system.
        path: PathBuf,
        /// The type of the file system.
        file_system: String,
    },
    /// The page region doesn't have room for even one read, either because it is too small or
    /// because other users have leased most of it.
    #[error("no memory for a read of {blocks} blocks is free in the page region")]
    Memory {
        /// Blocks that one read needs.
        blocks: u32,
    },
    /// No session was free, or the system refused to create another thread.
    #[error("could not start a worker thread: {0}")]
    Start(#[source] io::Error),
    /// A thread of the job panicked; its message is on standard error.
    #[error("a worker thread panicked")]
    Panicked,
}

impl JobError {
    /// Advice for the user, in lower case and without a full stop.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            JobError::DataDir(error) => error.hint(),
            JobError::Direct { .. } => Some("read through the cache: leave io_direct empty"),
            JobError::Memory { .. } => Some("lower io_combine_limit"),
            JobError::Start(_) | JobError::Panicked => None,
        }
    }
}
