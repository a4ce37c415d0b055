//! Why WAL can't be written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_aio::Cancelled;
use trunkline_format::Lsn;
use trunkline_format::wal::NewRecordError;

use crate::log::LogError;
use crate::new_cluster::MARKER;
use crate::storage::StorageError;

/// Why WAL can't be written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogWriterError {
    /// A write or sync of the WAL failed. The outcome of unacknowledged commits is unknown. The engine must stop;
    /// recovery determines which of them survive.
    #[error(
        "could not {operation} \"{}\": {source}; the outcome of unacknowledged commits is unknown, and \
         no more WAL can be written", path.display()
    )]
    Failed {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The segment.
        path: PathBuf,
        /// The system call's error.
        source: Arc<io::Error>,
    },
    /// A file operation failed before any record depended on it. No commit is affected, and a retry may succeed.
    #[error("could not {operation} \"{}\": {source}", path.display())]
    File {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The segment, or its temporary file.
        path: PathBuf,
        /// The system call's error.
        source: Arc<io::Error>,
    },
    /// The file system of the WAL doesn't support direct I/O as we need it.
    #[error(transparent)]
    Direct(Arc<StorageError>),
    /// A flush up to a position that the WAL doesn't have.
    #[error("could not flush the WAL: {source}")]
    Flush {
        /// The reason.
        source: Arc<io::Error>,
    },
    /// The directory was not made by [`crate::new_cluster`], so it is only read.
    #[error(
        "\"{}\" has no file {MARKER}: trunkline writes only to clusters that \"trunkline init\" has made",
        path.display()
    )]
    NotOurs {
        /// The data directory.
        path: PathBuf,
    },
    /// The I/O instance has no session, or no memory, for a flush.
    #[error("no {what} is left for writing WAL")]
    Resources {
        /// What is missing.
        what: &'static str,
    },
    /// The records don't fit into the memory for WAL, even if that is empty.
    #[error(
        "{records} WAL records need {bytes} bytes, but at most {most} fit (half of wal_buffers, or 16 MB)"
    )]
    RoomTooLarge {
        /// Number of records.
        records: u64,
        /// Their length in bytes in the worst case, page headers included.
        bytes: u64,
        /// The largest possible room in bytes.
        most: u64,
    },
    /// A record is longer than the room that its session has got for it.
    #[error("a WAL record needs {bytes} bytes, but its room has only {left} left")]
    RoomExceeded {
        /// Its length in bytes in the worst case, page headers included.
        bytes: u64,
        /// What is left of the room in bytes.
        left: u64,
    },
    /// A shutdown checkpoint is not where it says.
    #[error(
        "another session has inserted a WAL record at {place}, where the shutdown checkpoint should be"
    )]
    NotAlone {
        /// The position.
        place: Lsn,
    },
    /// A run of the engine can't write more.
    #[error("32 TB of WAL have been written since the engine started; restart it to continue")]
    Exhausted,
    /// The parts of a record don't make one.
    #[error(transparent)]
    Record(#[from] NewRecordError),
    /// The session was cancelled. What it waited for may still happen.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl LogWriterError {
    /// What [`Log::flush`](crate::log::Log::flush) of a [`LogWriter`](super::LogWriter) has reported.
    pub(crate) fn flush(error: LogError) -> Self {
        match error {
            LogError::Cancelled => Self::Cancelled(Cancelled),
            LogError::Flush { source, .. } => match source.downcast::<Self>() {
                Ok(error) => error,
                Err(source) => Self::Flush { source: Arc::new(source) },
            },
        }
    }

    pub(crate) fn file(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { operation, path: path.to_owned(), source: Arc::new(source) }
    }

    /// A file could not be opened for direct I/O.
    pub(super) fn open_direct(operation: &'static str, path: &Path, source: io::Error) -> Self {
        match StorageError::is_direct_unsupported(&source) {
            true => Self::Direct(Arc::new(StorageError::direct(path.to_owned()))),
            false => Self::file(operation, path, source),
        }
    }
}
