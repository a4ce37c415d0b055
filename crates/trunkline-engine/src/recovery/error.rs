//! Why a cluster can't be recovered.

use std::io;
use std::path::{Path, PathBuf};

use crate::datadir::DataDirError;
use crate::location::Location;
use crate::log_writer::LogWriterError;
use crate::replay::{PageRedoError, ReplayError};
use crate::storage::StorageError;

/// Why a cluster can't be recovered. Nothing in its WAL was lost, so recovery can be retried.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The control file can't be read.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The log can't be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The cluster is not ours, or the log can't be continued.
    #[error(transparent)]
    Log(#[from] LogWriterError),
    /// The cluster has something that our own clusters don't have.
    #[error("the cluster has {what}, which recovery does not support")]
    Unsupported {
        /// What it has.
        what: &'static str,
    },
    /// A page of the commit log or of multixacts must be in its file, but is not.
    #[error("a page of \"{}\" is missing, and the log does not have all of it", path.display())]
    StatusPageMissing {
        /// The file.
        path: PathBuf,
    },
    /// A page can't be built.
    #[error("could not recover {location}: {source}")]
    Page {
        /// The page.
        location: Location,
        /// The reason.
        source: Box<PageRedoError>,
    },
    /// A relation's files can't be examined or removed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A system call failed.
    #[error("could not {operation} \"{}\": {source}", path.display())]
    File {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
    /// A thread could not be started, or has panicked.
    #[error("a recovery thread failed: {0}")]
    Thread(io::Error),
}

impl RecoveryError {
    pub(super) fn file(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { operation, path: path.to_owned(), source }
    }
}
