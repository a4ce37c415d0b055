//! Why a data directory cannot be read, by what the caller can do about it; and what to know if it
//! is read anyway.
//!
//! Texts name the file, what was found and what was expected. Only [`DataDirError::Unsafe`] can be
//! overridden.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_format::{ClusterState, ControlError};

use super::pidfile::{Process, Server};

/// Why a directory was not opened, or not trusted any longer.
#[derive(Debug)]
pub enum DataDirError {
    /// The operating system refused. Another user, mount or disk may help.
    Io {
        /// What was tried, as in "could not ... ".
        operation: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another directory was meant: this one lacks a file that every data directory has.
    NotADataDir {
        /// The directory.
        path: PathBuf,
        /// The file that is missing, relative to it.
        missing: &'static str,
    },
    /// Not a plain file where one must be: a link, a directory, a pipe.
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// `PG_VERSION` holds no version that we read.
    Version {
        /// The file.
        path: PathBuf,
        /// Its first line, shortened.
        found: String,
    },
    /// `global/pg_control` is damaged, or of a server that we do not read.
    Control {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ControlError,
    },
    /// `PG_VERSION` and `global/pg_control` are of different servers: a mixed copy.
    VersionMismatch {
        /// The directory.
        path: PathBuf,
        /// Major version in `PG_VERSION`.
        version_file: u32,
        /// Major version of the control file's layout and catalog.
        control_file: u32,
    },
    /// A tablespace was said to be elsewhere, and there is none where it was said to have been.
    NoTablespace {
        /// The directory.
        path: PathBuf,
        /// Where no link leads.
        target: PathBuf,
    },
    /// Readable, but what is read may be wrong. `force_unclean` overrides this one.
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// Why, the most serious reason first; never empty.
        reasons: Vec<Unsafe>,
    },
    /// The directory was safe when it was opened, and is not any more.
    Changed {
        /// The directory.
        path: PathBuf,
        /// The server that runs now; `None` if only its traces were found.
        server: Option<Server>,
    },
}

/// Why reading a directory may give wrong results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsafe {
    /// A server runs: pages change while they are read.
    Server(Server),
    /// The cluster was not shut down: the newest changes are in the log alone.
    State(ClusterState),
    /// A base backup that was never recovered.
    BackupLabel,
}

/// What the user should know although the directory was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// A reason to refuse that was overridden.
    Forced(Unsafe),
    /// `postmaster.pid` was left behind by a process that is gone.
    StalePidFile(Process),
    /// A file that changes how a server would start: its name.
    Marker(&'static str),
}

impl DataDirError {
    pub(super) fn io(operation: &'static str, path: &Path, source: io::Error) -> DataDirError {
        DataDirError::Io { operation, path: path.to_owned(), source }
    }

    /// What to do about it, without full stop.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            DataDirError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run as the user that owns the data directory")
            }
            DataDirError::NotADataDir { .. } => {
                Some("the directory that holds PG_VERSION and global/pg_control is meant")
            }
            DataDirError::Unsafe { reasons, .. } => Some(match reasons.first() {
                Some(Unsafe::Server(Server::Running(Process { at_home: Some(false), .. }))) => {
                    "the process does not work in this directory; if it is no server, remove the \
                     stale postmaster.pid, or use --force-unclean"
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
            DataDirError::NoTablespace { .. } => {
                Some("the links are in pg_tblspc; what they say is meant, whether or not it exists")
            }
            DataDirError::Changed { .. } => {
                Some("what was read since the last check may be a mixture; run it again")
            }
            _ => None,
        }
    }
}

impl fmt::Display for DataDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataDirError::Io { operation, path, source } => {
                write!(f, "could not {operation} \"{}\": {source}", path.display())
            }
            DataDirError::NotADataDir { path, missing } => {
                write!(f, "\"{}\" is not a data directory: it has no {missing}", path.display())
            }
            DataDirError::NotAFile { path } => {
                write!(f, "\"{}\" is not a plain file", path.display())
            }
            DataDirError::Version { path, found } => {
                write!(
                    f,
                    "\"{}\" holds \"{}\", expected a version from 15 to 19",
                    path.display(),
                    found.escape_default()
                )
            }
            DataDirError::Control { path, source } => write!(f, "\"{}\": {source}", path.display()),
            DataDirError::VersionMismatch { path, version_file, control_file } => write!(
                f,
                "\"{}\" mixes two servers: PG_VERSION says {version_file}, global/pg_control is \
                 of version {control_file}",
                path.display()
            ),
            DataDirError::NoTablespace { path, target } => write!(
                f,
                "\"{}\" has no tablespace whose link leads to \"{}\"",
                path.display(),
                target.display()
            ),
            DataDirError::Unsafe { path, reasons } => {
                write!(f, "\"{}\" is not safe to read: ", path.display())?;
                for (position, reason) in reasons.iter().enumerate() {
                    let separator = if position == 0 { "" } else { "; " };
                    write!(f, "{separator}{reason}")?;
                }
                Ok(())
            }
            DataDirError::Changed { path, server: Some(server) } => {
                write!(f, "a server has started on \"{}\": {server}", path.display())
            }
            DataDirError::Changed { path, server: None } => write!(
                f,
                "a server has worked on \"{}\": global/pg_control is not as it was at the start",
                path.display()
            ),
        }
    }
}

impl std::error::Error for DataDirError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DataDirError::Io { source, .. } => Some(source),
            DataDirError::Control { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsafe::Server(server) => write!(f, "a server is running ({server})"),
            Unsafe::State(state) => {
                write!(f, "global/pg_control says \"{state}\", expected \"shut down\"")
            }
            Unsafe::BackupLabel => {
                f.write_str("backup_label is there: a base backup that was not recovered yet")
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Forced(reason @ Unsafe::Server(_)) => {
                write!(f, "{reason}: pages may change while they are read, expect false findings")
            }
            Warning::Forced(reason) => {
                write!(f, "{reason}: the newest changes are missing, pages may be torn")
            }
            Warning::StalePidFile(process) => {
                write!(f, "postmaster.pid is stale: {process} is gone")
            }
            Warning::Marker(name) => write!(f, "{name} is there: a server would start in recovery"),
        }
    }
}
