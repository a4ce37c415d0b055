//! Errors from opening a data directory, and the warnings left if it is read anyway.
//!
//! Every message includes the file, what we found and what we expected. Only
//! [`DataDirError::Unsafe`] can be overridden.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_format::{ClusterState, ControlError};

use super::pidfile::{Process, Server};
use crate::replay::ReplayError;
use crate::small_file::SmallFileError;

/// Why a directory couldn't be opened, or can no longer be trusted.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// A system call failed. It might succeed when run as another user, or on another mount or
    /// disk.
    #[error("could not {operation} \"{}\": {source}", path.display())]
    Io {
        /// What failed, as in "could not ... ".
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
    /// Not a data directory: it lacks a file that every data directory has.
    #[error("\"{}\" is not a data directory: file \"{missing}\" does not exist", path.display())]
    NotADataDir {
        /// The directory.
        path: PathBuf,
        /// The missing file, relative to the directory.
        missing: &'static str,
    },
    /// Not a regular file but a link, directory or pipe.
    #[error("\"{}\" is not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// `PG_VERSION` does not contain a supported version.
    #[error(
        "\"{}\" contains version \"{}\", expected 15 to 19",
        path.display(),
        found.escape_default()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its first line, shortened.
        found: String,
    },
    /// `global/pg_control` is damaged, or its version is unsupported.
    #[error("\"{}\": {source}", path.display())]
    Control {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ControlError,
    },
    /// `PG_VERSION` and `global/pg_control` have different versions: parts of two clusters were
    /// mixed.
    #[error(
        "\"{}\" mixes two clusters: PG_VERSION says {version_file}, global/pg_control belongs to \
         version {control_file}",
        path.display()
    )]
    VersionMismatch {
        /// The directory.
        path: PathBuf,
        /// Major version in `PG_VERSION`.
        version_file: u32,
        /// Major version according to the control file's layout and catalog version.
        control_file: u32,
    },
    /// A tablespace mapping refers to a directory that isn't the target of any link, and isn't in a
    /// backup's list.
    #[error(
        "\"{}\" has no tablespace whose link points to \"{}\"",
        path.display(),
        target.display()
    )]
    NoTablespace {
        /// The directory.
        path: PathBuf,
        /// The directory in the mapping.
        target: PathBuf,
    },
    /// Readable, but the results may be wrong. `force_unclean` overrides this.
    #[error("\"{}\" is not safe to read: {}", path.display(), listed(reasons))]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// The reasons, most serious first; never empty.
        reasons: Vec<Unsafe>,
    },
    /// The log that a crashed, copied or backed-up directory needs can't be replayed.
    #[error("\"{}\" cannot be read: {source}", path.display())]
    Replay {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        source: Box<ReplayError>,
    },
    /// The directory was safe when it was opened, but no longer is.
    #[error("{}", match server {
        Some(server) => format!("a server has started on \"{}\": {server}", path.display()),
        None => format!(
            "a server has worked on \"{}\": global/pg_control has changed, or the log has grown",
            path.display()
        ),
    })]
    Changed {
        /// The directory.
        path: PathBuf,
        /// The running server; `None` if it has already stopped.
        server: Option<Server>,
    },
}

/// Why reading a directory may return wrong results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsafe {
    /// A server is running, so pages may change while we read them.
    #[error("a server {verb} running ({server})", verb = be(.0), server = .0)]
    Server(Server),
    /// The cluster was not shut down cleanly, so the newest changes are only in the WAL.
    #[error("global/pg_control says \"{0}\", expected \"shut down\"")]
    State(ClusterState),
    /// A base backup that was never recovered.
    #[error("file backup_label exists: a base backup that was never recovered")]
    BackupLabel,
}

/// Whether a server is running, or may be.
fn be(server: &Server) -> &'static str {
    match server {
        Server::Unclear => "may be",
        Server::Running(process) if process.is_doubtful() => "may be",
        _ => "is",
    }
}

/// What a user should know about an opened directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A reason to refuse the directory, which the user has overridden.
    #[error("{}: {}", .0, .0.consequence())]
    Forced(Unsafe),
    /// The log ends too early, but the directory is read as far as it goes.
    #[error("{0}; changes are missing, and pages may contradict each other")]
    Incomplete(String),
    /// Pages may be torn, which is not noticed.
    #[error(
        "full_page_writes was off, and pages have no checksums: if the machine of the server has crashed, pages may be torn"
    )]
    NoPageImages,
    /// A crash left `postmaster.pid` behind.
    #[error("postmaster.pid is stale: {0} is gone")]
    StalePidFile(Process),
    /// `postmaster.pid` was copied from a directory whose server is running.
    #[error("postmaster.pid is a copy: {0} works in another directory")]
    CopiedPidFile(Process),
    /// The name of a file that makes a server start in recovery mode.
    #[error("file {0} exists: a server would start in recovery mode")]
    Marker(&'static str),
}

impl Unsafe {
    /// What to expect of the results.
    fn consequence(&self) -> &'static str {
        match self {
            Self::Server(_) => "pages may change while they are read, expect false findings",
            _ => "the newest changes are missing, pages may be torn",
        }
    }
}

impl DataDirError {
    pub(super) fn io(operation: &'static str, path: &Path, source: io::Error) -> DataDirError {
        DataDirError::Io { operation, path: path.to_owned(), source }
    }

    /// What to do about it, without a trailing period.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            DataDirError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run as the user that owns the data directory")
            }
            DataDirError::NotADataDir { .. } => {
                Some("use the directory that contains PG_VERSION and global/pg_control")
            }
            DataDirError::Unsafe { reasons, .. } => Some(match reasons.first() {
                Some(Unsafe::Server(Server::Running(process))) if process.is_doubtful() => {
                    "if this process is a server, stop it first; if not, postmaster.pid is stale: \
                     remove it, or use --force-unclean"
                }
                Some(Unsafe::Server(Server::Unclear)) => {
                    "either a server is starting, or postmaster.pid was left behind by a crash; if \
                     no server is running, remove it, or use --force-unclean"
                }
                Some(Unsafe::Server(_)) => {
                    "stop the server first, or use --force-unclean: pages may then change while \
                     they are read"
                }
                _ => {
                    "start and stop a server on it (or on a copy) first, or use --force-unclean: \
                     the newest changes are then missing"
                }
            }),
            DataDirError::Replay { source, .. } => source.hint(),
            DataDirError::NoTablespace { .. } => Some(
                "use the path in the symbolic link in pg_tblspc, or in the tablespace_map of a \
                     backup, even if it does not exist",
            ),
            DataDirError::Changed { .. } => {
                Some("the results may mix old and new data; run the command again")
            }
            _ => None,
        }
    }
}

/// All reasons in one line.
fn listed(reasons: &[Unsafe]) -> String {
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

impl From<SmallFileError> for DataDirError {
    fn from(error: SmallFileError) -> Self {
        match error {
            SmallFileError::NotAFile { path } => Self::NotAFile { path },
            SmallFileError::Io { operation, path, source } => Self::Io { operation, path, source },
        }
    }
}
