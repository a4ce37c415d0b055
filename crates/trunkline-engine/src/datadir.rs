//! A PostgreSQL data directory, opened for reading only.
//!
//! Opening asks three questions, in this order. Is it a data directory that we understand:
//! `PG_VERSION` and `global/pg_control` must name a known pair of versions and sizes, else nothing
//! further is read. Does a server run on it: `postmaster.pid` names a live process. Is it clean:
//! only a cluster that was shut down has everything in its files; after a crash, in a snapshot or
//! in a base backup the newest changes are in the log alone. The answers come as errors that say
//! what a caller can do, and the last two can be overridden, which leaves [`Warning`]s behind.
//!
//! A server may start at any moment after that. Long jobs call [`DataDir::recheck`] from time to
//! time.
//!
//! Reading small files and walking directories goes through `std::fs` here: a few calls per job,
//! none of them on the I/O path. Relation files are only listed; their blocks are read through I/O
//! handles.

mod control;
mod error;
mod files;
mod pidfile;
mod problem;
mod small_file;

use std::fs;
use std::path::{Path, PathBuf};

use trunkline_format::{ClusterState, ControlFile, Oid};

pub use self::control::read_control_file;
pub use self::error::{DataDirError, Unsafe, Warning};
pub use self::files::{FileEntry, FileList, Tablespace};
pub use self::pidfile::{Process, Server};
pub use self::problem::{Problem, ProblemKind};
pub(crate) use self::small_file::read as read_small_file;

/// How to open a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Go on although a server runs or the cluster was not shut down; the reasons become warnings.
    pub force_unclean: bool,
}

/// An open data directory. Holds no file open, and never writes.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
    control: ControlFile,
    control_bytes: Vec<u8>,
    server: Server,
    warnings: Vec<Warning>,
    /// Tablespaces that are elsewhere than their links say.
    moved: Vec<(Oid, PathBuf)>,
}

impl DataDir {
    /// Opens the directory at `path`, which may be a symbolic link.
    ///
    /// # Errors
    /// [`DataDirError`]: not readable, not a data directory, of an unknown version, damaged, or not
    /// safe to read.
    pub fn open(path: &Path, options: OpenOptions) -> Result<DataDir, DataDirError> {
        // Without this a missing directory would read as one without PG_VERSION.
        fs::read_dir(path).map_err(|source| DataDirError::io("open directory", path, source))?;
        let major = control::read_major(path)?;
        let (control, control_bytes) = control::read_control(path)?;
        control::check_versions(path, major, &control)?;
        let server = Server::of(path)?;
        let reasons = unsafe_reasons(path, &control, &server)?;
        let mut warnings = notes(path, &server)?;
        if !reasons.is_empty() {
            if !options.force_unclean {
                return Err(DataDirError::Unsafe { path: path.to_owned(), reasons });
            }
            warnings.splice(0..0, reasons.into_iter().map(Warning::Forced));
        }
        Ok(DataDir {
            path: path.to_owned(),
            control,
            control_bytes,
            server,
            warnings,
            moved: Vec::new(),
        })
    }

    /// The same directory, with tablespaces looked for elsewhere than their links say: each pair is
    /// the directory that a link names and the one that holds the tablespace now, as for
    /// `pg_basebackup`. A copy of a cluster has its tablespaces elsewhere, and its links may lead to
    /// the original.
    ///
    /// # Errors
    /// [`DataDirError::NoTablespace`] if no link names such a directory; [`DataDirError::Io`].
    pub fn with_tablespaces(self, moves: &[(PathBuf, PathBuf)]) -> Result<DataDir, DataDirError> {
        let links = files::links(&self.path)?;
        let mut moved = self.moved;
        for (old, new) in moves {
            let found = links.iter().filter(|(_, target)| target == old).map(|(oid, _)| *oid);
            let before = moved.len();
            moved.extend(found.map(|oid| (oid, new.clone())));
            if moved.len() == before {
                return Err(DataDirError::NoTablespace { path: self.path, target: old.clone() });
            }
        }
        Ok(DataDir { moved, ..self })
    }

    /// The tablespaces that are elsewhere than their links say, and where.
    pub fn moved_tablespaces(&self) -> &[(Oid, PathBuf)] {
        &self.moved
    }

    /// Where the link of a tablespace leads that `path` is in, if there is nothing: the tablespace was
    /// moved, and nobody said where to, or is not mounted. Looks at the link, which may take as long as its file system does.
    pub fn dangling_link(&self, path: &Path) -> Option<PathBuf> {
        let links = self.path.join("pg_tblspc");
        let name = Path::new(path.strip_prefix(&links).ok()?.components().next()?.as_os_str());
        if self.moved.iter().any(|(oid, _)| name.to_str() == Some(&oid.to_string())) {
            return None;
        }
        let link = links.join(name);
        let target = fs::read_link(&link).ok()?;
        (!files::exists(&link)).then_some(target)
    }

    /// The directory, as it was given to [`DataDir::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The control file as it was at opening.
    pub fn control(&self) -> &ControlFile {
        &self.control
    }

    /// What the user should know before trusting results; the most serious first.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Looks again whether the directory is still the one that was opened. Cheap: two small files.
    ///
    /// # Errors
    /// [`DataDirError::Changed`] when a server has started, or started and stopped, since;
    /// [`DataDirError::Io`] when that cannot be found out.
    pub fn recheck(&self) -> Result<(), DataDirError> {
        let server = Server::of(&self.path)?;
        if server.is_running() && server != self.server {
            return Err(DataDirError::Changed { path: self.path.clone(), server: Some(server) });
        }
        // A server that was overridden at opening writes its control file as it likes.
        if !self.server.is_running() && control::read_bytes(&self.path)? != self.control_bytes {
            return Err(DataDirError::Changed { path: self.path.clone(), server: None });
        }
        Ok(())
    }

    /// Lists every relation file of every database and tablespace, and what is odd about them.
    /// One directory is open at a time.
    pub fn relation_files(&self) -> FileList {
        files::list(&self.path, &self.control, &self.moved)
    }
}

/// Everything that makes the directory unsafe to read, the most serious first.
fn unsafe_reasons(
    path: &Path,
    control: &ControlFile,
    server: &Server,
) -> Result<Vec<Unsafe>, DataDirError> {
    let mut reasons = Vec::new();
    if server.is_running() {
        reasons.push(Unsafe::Server(server.clone()));
    }
    if control.state != ClusterState::ShutDown {
        reasons.push(Unsafe::State(control.state));
    }
    if small_file::exists(&path.join("backup_label"))? {
        reasons.push(Unsafe::BackupLabel);
    }
    Ok(reasons)
}

/// What does not make it unsafe, yet may explain a surprise.
fn notes(path: &Path, server: &Server) -> Result<Vec<Warning>, DataDirError> {
    let mut warnings = Vec::new();
    if let Server::Stale(process) = server {
        warnings.push(Warning::StalePidFile(process.clone()));
    }
    for name in ["recovery.signal", "standby.signal", "tablespace_map"] {
        if small_file::exists(&path.join(name))? {
            warnings.push(Warning::Marker(name));
        }
    }
    Ok(warnings)
}
