//! Why a cluster can't be created.

use std::io;
use std::path::PathBuf;

use trunkline_format::wal::NewRecordError;

/// Why a cluster can't be created.
#[derive(Debug, thiserror::Error)]
pub enum NewClusterError {
    /// There is something in the directory.
    #[error("directory \"{}\" exists but is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The record of the checkpoint can't be built.
    #[error(transparent)]
    Record(#[from] NewRecordError),
    /// A system call failed.
    #[error("could not {operation} \"{}\": {source}", path.display())]
    Io {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
}
