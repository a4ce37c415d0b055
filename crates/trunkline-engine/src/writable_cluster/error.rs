//! Why a cluster can't be opened for writing, or can't go on.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::TooManySessions;
use trunkline_format::Lsn;

use crate::checkpoint::CheckpointError;
use crate::datadir::Server;
use crate::engine::EngineError;
use crate::log_writer::LogWriterError;
use crate::pool::{ReadError, WriteError};
use crate::recovery::RecoveryError;
use crate::storage::StorageError;

/// Why a cluster can't be opened for writing, or can't go on.
#[derive(Debug, thiserror::Error)]
pub enum WritableClusterError {
    /// Another process of ours, or another part of this one, has the cluster open.
    #[error("\"{}\" is already open for writing", path.display())]
    Locked {
        /// The data directory.
        path: PathBuf,
    },
    /// A server runs on the directory.
    #[error("a server may be running on \"{}\": {server}", path.display())]
    ServerRunning {
        /// The data directory.
        path: PathBuf,
        /// What `postmaster.pid` says.
        server: Server,
    },
    /// The engine could not be started.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The cluster was not shut down, and can't be recovered.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The WAL or the control file can't be written.
    #[error(transparent)]
    Log(#[from] LogWriterError),
    /// Pages can't be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A page of the commit log or of multixacts can't be read.
    #[error(transparent)]
    CommitLog(#[from] ReadError),
    /// The commit log or the multixacts can't be extended by a page.
    #[error(transparent)]
    NextPage(#[from] WriteError),
    /// A relation can't be created.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// All sessions are in use.
    #[error(transparent)]
    TooManySessions(#[from] TooManySessions),
    /// All sessions that may write are in use.
    #[error("all {sessions} sessions that may write are in use")]
    NoWriteSession {
        /// Their number.
        sessions: usize,
    },
    /// A transaction has committed, but its session was cancelled before that was durable. It becomes durable with the
    /// next flush, unless the process crashes first.
    #[error(
        "the transaction has committed, but may not be durable: its wait for the WAL up to {lsn} was cancelled"
    )]
    CommitNotDurable {
        /// The end of its record.
        lsn: Lsn,
    },
    /// A thread has panicked while it committed a transaction. Only a recovery can tell how that has ended.
    #[error("a commit has panicked; the cluster must be opened again, which recovers it")]
    PanickedCommit,
    /// Sessions are still open.
    #[error("the cluster cannot be shut down while sessions are open")]
    InUse,
    /// The cluster was shut down.
    #[error("the cluster was shut down")]
    Closed,
    /// No further transactions may begin, because their numbers would wrap around.
    #[error(
        "transaction IDs are exhausted: the next is {next}, and the oldest in use is {oldest}; \
         tables must be frozen first, which trunkline cannot do yet"
    )]
    XidsExhausted {
        /// The next XID.
        next: u64,
        /// The oldest that rows may have.
        oldest: u32,
    },
    /// The entries of a multixact contradict each other.
    #[error("multixact {multixact} does not exist, or is damaged")]
    DamagedMultixact {
        /// The multixact.
        multixact: u32,
    },
    /// More transactions would share a row than a new multixact may have members.
    #[error("a multixact cannot have {members} members, at most {most}")]
    TooManyMembers {
        /// The number of members.
        members: usize,
        /// The most there may be.
        most: usize,
    },
    /// No further multixacts may be created, because their numbers, or those of their members, would wrap around.
    #[error(
        "multixacts are exhausted: the next is {next} with member {member}, and the oldest in use is {oldest}; \
         tables must be frozen first, which trunkline cannot do yet"
    )]
    MultixactsExhausted {
        /// The next multixact.
        next: u32,
        /// Its first member.
        member: u64,
        /// The oldest that rows may have.
        oldest: u32,
    },
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
}

impl WritableClusterError {
    pub(super) fn file(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { operation, path: path.to_owned(), source }
    }
}
