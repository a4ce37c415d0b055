//! Why a job over many files could not be done at all. What is wrong with single files is no error
//! of the job.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::datadir::DataDirError;

/// See the module.
#[derive(Debug)]
pub enum JobError {
    /// The data directory is not as it was, or cannot be looked at.
    DataDir(DataDirError),
    /// The file system does not offer direct I/O.
    Direct {
        /// A file on it.
        path: PathBuf,
        /// What kind of file system it is.
        file_system: String,
    },
    /// The page region is too small, or in use: pages of one read.
    Memory {
        /// Blocks that one read needs.
        blocks: u32,
    },
    /// Too many sessions, or no more threads.
    Start(io::Error),
}

impl JobError {
    /// What to do about it, without full stop.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            JobError::DataDir(error) => error.hint(),
            JobError::Direct { .. } => Some("read through the cache: leave io_direct empty"),
            JobError::Memory { .. } => Some("lower io_combine_limit"),
            JobError::Start(_) => None,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::DataDir(error) => error.fmt(f),
            JobError::Direct { path, file_system } => write!(
                f,
                "\"{}\" cannot be opened for direct I/O: the file system, {file_system}, does not \
                 support it",
                path.display()
            ),
            JobError::Memory { blocks } => {
                write!(f, "no memory for a read of {blocks} blocks is free in the page region")
            }
            JobError::Start(error) => write!(f, "could not start a reading thread: {error}"),
        }
    }
}

impl std::error::Error for JobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JobError::DataDir(error) => Some(error),
            JobError::Start(source) => Some(source),
            JobError::Direct { .. } | JobError::Memory { .. } => None,
        }
    }
}

impl From<DataDirError> for JobError {
    fn from(error: DataDirError) -> Self {
        JobError::DataDir(error)
    }
}
