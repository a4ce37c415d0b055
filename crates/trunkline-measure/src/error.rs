//! **Errors** of a measurement. They name the file or the work, what was found and what was expected.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::{Cancelled, DefineError, TooManySessions};
use trunkline_engine::checkpoint::CheckpointError;
use trunkline_engine::datadir::DataDirError;
use trunkline_engine::job::JobError;
use trunkline_engine::pool::{ReadError, WriteError};
use trunkline_engine::storage::StorageError;

use crate::server::ServerError;
use crate::watcher::Watcher;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A page could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A page could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A relation's file can't be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Verification or prewarming could not run.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A checkpoint failed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The data directory can't be used any more, for example because a server was started.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// There are more sessions than `max_sessions`.
    #[error(transparent)]
    Sessions(#[from] TooManySessions),
    /// A write was refused before it was issued.
    #[error("could not write \"{}\": {source}", path.display())]
    Define {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: DefineError,
    },
    /// The server to compare with can't be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The user ended the measurement.
    #[error("cancelled")]
    Cancelled,
    /// A file could not be used.
    #[error("\"{}\": {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A thread of a session panicked or could not be started.
    #[error("a session's thread {0}")]
    Thread(String),
    /// An earlier panic has taken sessions away.
    #[error("only {found} of {expected} sessions are left after a panic")]
    SessionsLost {
        /// Sessions that are left.
        found: usize,
        /// Sessions of the case.
        expected: usize,
    },
    /// The page region is smaller than the caller promised.
    #[error("no memory for a block is free in the page region")]
    Memory,
    /// A workload that writes was planned without a scratch table.
    #[error("there is no scratch directory to write to")]
    NoScratch,
    /// A plan that the planner chooses was to be run without a server.
    #[error("only a server has a planner")]
    NoPlanner,
    /// The engine could not open a session.
    #[error("could not open a session: {0}")]
    Session(#[source] trunkline_engine::EngineError),
    /// The work that was done is not the work that was planned, so its time means nothing.
    #[error("{work}: {found} {unit}, expected {expected}")]
    Count {
        /// What was measured.
        work: String,
        /// What was counted.
        unit: &'static str,
        /// How many there were.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// A place to write to is inside a data directory, a tablespace, or a directory with WAL.
    #[error(
        "\"{}\" is inside the data directory, tablespace or WAL directory \"{}\", and nothing is \
         written there",
        path.display(),
        cluster.display()
    )]
    InsideCluster {
        /// The place.
        path: PathBuf,
        /// The directory that contains it.
        cluster: PathBuf,
    },
    /// The scratch directory contains files that we didn't write.
    #[error("\"{}\" contains \"{found}\", which trunkline bench did not write", path.display())]
    NotScratch {
        /// The scratch directory.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// Another process uses the scratch directory.
    #[error("\"{}\" is in use by another trunkline bench", .0.display())]
    Busy(PathBuf),
    /// A stored run can't be understood.
    #[error("\"{}\": {reason}", path.display())]
    Stored {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A plot or a table could not be made.
    #[error("could not make the report: {0}")]
    Text(String),
}

impl MeasureError {
    /// An error of the system with this file.
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }

    /// Whether no other case can be measured either.
    pub(crate) fn is_of_run(&self) -> bool {
        matches!(self, Self::Cancelled | Self::DataDir(_) | Self::Server(ServerError::Cancelled))
    }

    /// Whether the file system doesn't support direct I/O. Other cases can still be measured.
    pub(crate) fn is_of_direct_io(&self) -> bool {
        matches!(
            self,
            Self::Job(JobError::Direct { .. })
                | Self::Storage(StorageError::Direct { .. } | StorageError::Alignment { .. })
                | Self::Read(ReadError::Storage(
                    StorageError::Direct { .. } | StorageError::Alignment { .. }
                ))
        )
    }
}

impl From<Cancelled> for MeasureError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Fails if the measurement is to end. Long steps ask before each piece.
pub(crate) fn proceed(watcher: &dyn Watcher) -> Result<(), MeasureError> {
    if watcher.cancelled() { Err(MeasureError::Cancelled) } else { Ok(()) }
}

/// Fails unless exactly the planned work was done.
pub(crate) fn expect_count(
    work: &str,
    unit: &'static str,
    found: u64,
    expected: u64,
) -> Result<(), MeasureError> {
    if found == expected {
        return Ok(());
    }
    Err(MeasureError::Count { work: work.to_owned(), unit, found, expected })
}
