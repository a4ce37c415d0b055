//! Errors that end a whole job. Damage to individual files and pages doesn't end the job. It is
//! reported as a finding, and the job continues with the next file or page.

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
    /// The file system does not support direct I/O. In that case we refuse to start the job. If we
    /// fell back to the page cache instead, the job would silently measure or verify something
    /// other than what the user asked for.
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
    /// There isn't enough room in the page region for even a single read. Either the region is too
    /// small, or most of it is currently leased to other users.
    #[error("no memory for a read of {blocks} blocks is free in the page region")]
    Memory {
        /// Blocks that one read needs.
        blocks: u32,
    },
    /// No session was free, or the system refused to create another thread.
    #[error("could not start a worker thread: {0}")]
    Start(#[source] io::Error),
    /// A thread of the job panicked. Its panic message was written to standard error.
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
