//! Errors that end a whole job. Damage in single files and pages is reported separately and does
//! not end a job.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::datadir::DataDirError;

/// Why a job could not be done.
#[derive(Debug, Error)]
pub enum JobError {
    /// The data directory has changed, or cannot be read.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The file system does not offer direct I/O.
    #[error(
        "\"{}\" cannot be opened for direct I/O: the file system, {file_system}, does not support it",
        path.display()
    )]
    Direct {
        /// A file on it.
        path: PathBuf,
        /// The type of the file system.
        file_system: String,
    },
    /// The page region is too small, or in use, even for a single read.
    #[error("no memory for a read of {blocks} blocks is free in the page region")]
    Memory {
        /// Blocks that one read needs.
        blocks: u32,
    },
    /// There are too many sessions, or the system refuses another thread.
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
