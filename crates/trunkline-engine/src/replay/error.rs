//! Why a log can't be replayed.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_format::backup_label::BackupLabelError;
use trunkline_format::relmap::RelationMapError;
use trunkline_format::wal::{EffectError, SegmentName};
use trunkline_format::{Lsn, Oid};

use super::start::StartError;
use crate::log_files::LogFilesError;
use crate::small_file::SmallFileError;

/// Why a directory can't be read by replaying its log.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The directory can't be replayed at all.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The files of the log can't be used.
    #[error("the log cannot be replayed: {0}")]
    Files(#[from] LogFilesError),
    /// `backup_label` or `tablespace_map` can't be used.
    #[error("\"{}\": {source}", path.display())]
    Label {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: BackupLabelError,
    },
    /// A file of the directory can't be read.
    #[error("could not read \"{}\": {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
    /// The I/O instance that reads the log ahead can't be started.
    #[error("could not start asynchronous I/O for the log: {0}")]
    Instance(io::Error),
    /// The thread that lists the changed pages can't be started, or has panicked.
    #[error("could not list the pages that the log changes: {0}")]
    Thread(io::Error),
    /// The record at the start is not the one that must be there.
    #[error("the record at {place} in segment {segment} is not {expected}: {found}")]
    Record {
        /// Where the record should be.
        place: Lsn,
        /// The segment.
        segment: SegmentName,
        /// Which record should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A page was written on a timeline that the history doesn't have there.
    #[error(
        "the log at {place} in segment {segment} was written on timeline {found}, but according to \
         the history this place is on timeline {expected}"
    )]
    Timeline {
        /// The position.
        place: Lsn,
        /// The segment.
        segment: SegmentName,
        /// The timeline in the page.
        found: u32,
        /// The timeline in the history.
        expected: u32,
    },
    /// The files of the directory contain changes of a timeline that the log doesn't follow.
    #[error(
        "the files contain changes of timeline {timeline} up to {place}, but timeline {followed}, which is \
         replayed, has this LSN on timeline {expected}"
    )]
    Diverged {
        /// The timeline of the files.
        timeline: u32,
        /// Up to where they have its changes.
        place: Lsn,
        /// The timeline that is followed.
        followed: u32,
        /// The timeline that its history has there.
        expected: u32,
    },
    /// The log ends too early.
    #[error("the log ends at {end} in segment {segment}, {needed}: {reason}")]
    Incomplete {
        /// Where it ends.
        end: Lsn,
        /// The segment.
        segment: SegmentName,
        /// What it should have reached.
        needed: String,
        /// Why it ends there.
        reason: String,
    },
    /// A record can't be decoded.
    #[error("the record at {place} in segment {segment} cannot be replayed: {source}")]
    Effect {
        /// The record.
        place: Lsn,
        /// The segment.
        segment: SegmentName,
        /// What is wrong with it.
        source: EffectError,
    },
    /// A relation map in the log is damaged.
    #[error("the record at {place} in segment {segment} has an invalid relation map: {source}")]
    RelationMap {
        /// The record.
        place: Lsn,
        /// The segment.
        segment: SegmentName,
        /// What is wrong with the map.
        source: RelationMapError,
    },
    /// A database was copied file by file while a base backup was made.
    #[error(
        "the record at {place} copies database {database} file by file (CREATE DATABASE with \
         strategy FILE_COPY) after the backup had started, or after the log has removed its files, \
         which cannot be replayed"
    )]
    CopiedDatabase {
        /// The record.
        place: Lsn,
        /// The copy.
        database: Oid,
    },
    /// The file of a prepared transaction is damaged.
    #[error("\"{}\" is not the file of a prepared transaction: {reason}", path.display())]
    Prepared {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The list of changed pages doesn't fit into memory.
    #[error(
        "the pages and statuses that {read} of log change take {needed} bytes of memory without their \
         records, more than three quarters of the {limit} bytes of --replay-memory",
        read = size(*read)
    )]
    Memory {
        /// Bytes of the log so far.
        read: u64,
        /// Bytes that are needed for them.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The list of changes doesn't fit into memory, and can't be written to a scratch file.
    #[error(
        "the changes of {read} of log take {needed} bytes of memory, more than the {limit} bytes of \
         --replay-memory, and cannot be written to \"{}\": {source}",
        folder.display(),
        read = size(*read)
    )]
    Spilling {
        /// Bytes of the log so far.
        read: u64,
        /// Bytes that are needed for them.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
        /// The folder for the scratch file.
        folder: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
    /// `--until` names a moment at which the files were not consistent yet.
    #[error("{until} is at {place}, before the files are consistent, which they are {consistent}")]
    TooEarly {
        /// The moment.
        until: String,
        /// Its position.
        place: Lsn,
        /// When the files are consistent.
        consistent: String,
    },
    /// The log doesn't contain the moment that `--until` names.
    #[error("the log ends at {end} without {until}")]
    NotReached {
        /// The moment.
        until: String,
        /// Where the log ends.
        end: Lsn,
    },
    /// `--until` for a directory that has only one consistent moment.
    #[error(
        "--until needs a base backup: the files of any other directory are consistent only at the end \
         of its log"
    )]
    NoPast,
}

/// A number of bytes, roughly.
fn size(bytes: u64) -> String {
    format!("{} MB", bytes >> 20)
}

impl ReplayError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Files(LogFilesError::NoSegments { .. }) => {
                Some("name the folder that has them with --wal")
            }
            Self::Files(LogFilesError::Missing(_)) | Self::Incomplete { .. } => Some(
                "name the folder that has the missing segments with --wal, or use \
                 --allow-incomplete to read as far as the log goes",
            ),
            Self::Spilling { .. } => {
                Some("use a larger --replay-memory, or name another directory with --scratch")
            }
            Self::Memory { .. } => Some("use a larger --replay-memory"),
            Self::CopiedDatabase { .. } => Some("make a new backup"),
            Self::Diverged { .. } => Some(
                "leave out the folder with the history file of that timeline, or make a new copy",
            ),
            _ => None,
        }
    }
}

impl From<SmallFileError> for ReplayError {
    fn from(error: SmallFileError) -> Self {
        match error {
            SmallFileError::NotAFile { path } => {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                Self::Io { path, source }
            }
            SmallFileError::Io { path, source, .. } => Self::Io { path, source },
        }
    }
}
