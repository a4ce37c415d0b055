//! A PostgreSQL data directory, opened for reading only.
//!
//! If we read the files of a server that is running or has crashed, we get wrong results without
//! any error, because the newest pages are still in shared memory or only in the WAL.
//! [`DataDir::open`] therefore checks three things, in this order:
//!
//! 1. *The version is known.* `PG_VERSION` and `global/pg_control` must contain a pair of versions
//!    that we know, and the expected block sizes. If they don't, we don't read anything else.
//! 2. *No server is running.* `postmaster.pid` must not name a live process.
//! 3. *The cluster was shut down cleanly.* After a crash, and in a file system snapshot or base
//!    backup, the newest changes are only in the WAL. [`DataDir::open_replayed`] replays it in memory.
//!
//! If a check fails, the error message explains what to do about it. [`OpenOptions::force_unclean`]
//! overrides the last two checks and turns their errors into [`Warning`]s. In contrast,
//! `pg_checksums` relies only on the state in the control file.
//!
//! Note that a server can still be started after these checks. We can't prevent that by locking the
//! directory, because we'd have to create `postmaster.pid` in it, and we never write to a data
//! directory. Long-running jobs must therefore call [`DataDir::recheck`] from time to time, and
//! once more at the end.
//!
//! This module uses plain `std::fs` calls, because there are only a few of them per job and none is
//! performance-critical. The module lists relation files but never reads their blocks; that's done
//! through I/O handles.

mod control;
mod error;
mod files;
mod pidfile;
mod problem;
mod replayed_files;
mod sizes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::Arc;
use trunkline_format::segment::tablespace_directory;
use trunkline_format::wal::PreparedTransaction;
use trunkline_format::{ClusterState, ControlFile, Oid};

pub(crate) use self::control::CONTROL_NAME;
pub use self::control::{read_control_file, read_control_file_despite_crc};
pub use self::error::{DataDirError, Unsafe, Warning};
pub(crate) use self::files::database_directory;
pub use self::files::{
    DEFAULT_TABLESPACE, FileEntry, FileList, GLOBAL_TABLESPACE, Tablespace, place_of,
};
pub(crate) use self::pidfile::NAME as PID_FILE_NAME;
pub use self::pidfile::{Process, Server};
pub use self::problem::{Problem, ProblemKind};
use self::replayed_files::{Places, replay_list};
pub(crate) use self::replayed_files::{fork_lengths, fork_of};
use crate::replay::{PreparedSource, Replay, ReplayError, ReplayOptions, prepared_transactions};
use crate::small_file;

/// Options of [`DataDir::open`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Continue even if a server is running or the cluster was not shut down cleanly. In that case
    /// you get warnings instead of errors.
    pub force_unclean: bool,
    /// Continue even if the cluster was not shut down cleanly, but not if a server is running.
    pub as_it_lies: bool,
}

/// An open data directory. Keeps no file open and never writes.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
    control: ControlFile,
    /// The contents of the control file. A server updates it when it starts and when it stops, so
    /// [`DataDir::recheck`] will notice even a server that was started and has already been stopped
    /// again.
    control_bytes: Vec<u8>,
    /// What `postmaster.pid` contained when the directory was opened.
    server: Server,
    /// Whether the directory may be a copy of one whose server is running.
    may_be_copy: bool,
    warnings: Vec<Warning>,
    /// Tablespaces that are not where symbolic links say, if there are links: each with its directory.
    moved: Vec<(Oid, PathBuf)>,
    /// The replay of its log, if it was not shut down.
    replay: Option<Arc<Replay>>,
}

impl DataDir {
    /// Opens the directory at `path`, which may be a symbolic link.
    ///
    /// # Errors
    /// [`DataDirError`]: the directory is not readable, not a data directory, of an unknown
    /// version, damaged, or not safe to read.
    pub fn open(path: &Path, options: OpenOptions) -> Result<DataDir, DataDirError> {
        Self::open_with(path, options, None)
    }

    /// Opens a directory whose log is replayed in memory if the cluster was not shut down, as after a
    /// crash or in a base backup. A running server is still refused.
    ///
    /// # Errors
    /// As for [`DataDir::open`]; [`DataDirError::Replay`].
    pub fn open_replayed(
        path: &Path,
        options: OpenOptions,
        replay: &ReplayOptions,
    ) -> Result<DataDir, DataDirError> {
        Self::open_with(path, options, Some(replay))
    }

    fn open_with(
        path: &Path,
        options: OpenOptions,
        replay: Option<&ReplayOptions>,
    ) -> Result<DataDir, DataDirError> {
        // Without this check, a missing directory would be reported as a directory without
        // PG_VERSION.
        fs::read_dir(path).map_err(|source| DataDirError::io("open directory", path, source))?;
        let major = control::read_major(path)?;
        let (mut control, control_bytes) = control::read_control(path)?;
        control::check_versions(path, major, &control)?;
        let server = read_server(path, replay.is_some())?;
        let mut reasons = unsafe_reasons(path, &control, &server)?;
        let mut warnings = notes(path, &server)?;
        let (mut replayed, mut moved) = (None, Vec::new());
        if let Some(options) = replay {
            // What the log would be replayed for is no reason to refuse the directory.
            reasons.retain(|reason| matches!(reason, Unsafe::Server(_)));
            if reasons.is_empty() {
                let found = Replay::run(path, &control, options);
                let failed = |source| DataDirError::Replay {
                    path: path.to_owned(),
                    source: Box::new(source),
                };
                replayed = found.map_err(failed)?.map(Arc::new);
            }
        }
        if let Some(replay) = &replayed {
            control = replay.control(&control);
            // A backup may have a list of links. A server that recovers it replaces its links by those.
            moved = files::without_in_place(path, replay.tablespaces());
            let warning = replay.report().warning.clone();
            warnings.splice(0..0, warning.into_iter().map(Warning::Incomplete));
            if replay.report().lacks_images && !control.checksums() {
                warnings.push(Warning::NoPageImages);
            }
            // The replay has looked at them.
            warnings.retain(|warning| !matches!(warning, Warning::Marker(_)));
        }
        if !reasons.is_empty() {
            let is_running = reasons.iter().any(|reason| matches!(reason, Unsafe::Server(_)));
            if !options.force_unclean && (is_running || !options.as_it_lies) {
                return Err(DataDirError::Unsafe { path: path.to_owned(), reasons });
            }
            warnings.splice(0..0, reasons.into_iter().map(Warning::Forced));
        }
        Ok(DataDir {
            path: path.to_owned(),
            control,
            control_bytes,
            server,
            may_be_copy: replay.is_some(),
            warnings,
            moved,
            replay: replayed,
        })
    }

    /// Maps tablespaces to other directories, like `pg_basebackup --tablespace-mapping`. Each pair
    /// consists of the target of a symbolic link, or a path in the `tablespace_map` of a backup, and the
    /// directory to use instead. You need this to read a copy of a cluster, because the links in the copy
    /// still point to the original tablespaces.
    ///
    /// # Errors
    /// [`DataDirError::NoTablespace`] if no tablespace has such a path; [`DataDirError::Io`] if a
    /// directory cannot be read or doesn't exist.
    pub fn with_tablespaces(self, moves: &[(PathBuf, PathBuf)]) -> Result<DataDir, DataDirError> {
        let places = files::places(&self.path, &self.moved)?;
        for (old, new) in moves {
            if !places.iter().any(|(_, place)| place == old) {
                return Err(DataDirError::NoTablespace { path: self.path, target: old.clone() });
            }
            fs::read_dir(new).map_err(|source| DataDirError::io("open directory", new, source))?;
        }
        Ok(DataDir { moved: files::moved(places, &self.moved, moves), ..self })
    }

    /// The tablespaces that have no symbolic links, or are not where these point, with their directories.
    pub fn moved_tablespaces(&self) -> &[(Oid, PathBuf)] {
        &self.moved
    }

    /// If the target of the tablespace link in `path` doesn't exist, returns that target. In that
    /// case, either the tablespace was moved and has no mapping, or its file system isn't mounted.
    /// The same goes for the directory of a tablespace that a backup lists.
    /// Note that following the link may block if the target's file system hangs.
    pub fn dangling_link(&self, path: &Path) -> Option<PathBuf> {
        if let Some((_, place)) = self.moved.iter().find(|(_, place)| path.starts_with(place)) {
            return (!files::exists(place)).then(|| place.clone());
        }
        let links = self.path.join("pg_tblspc");
        let name = Path::new(path.strip_prefix(&links).ok()?.components().next()?.as_os_str());
        if self.moved.iter().any(|(oid, _)| name.to_str() == Some(&oid.to_string())) {
            return None;
        }
        let link = links.join(name);
        let target = fs::read_link(&link).ok()?;
        (!files::exists(&link)).then_some(target)
    }

    /// The path that was passed to [`DataDir::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The control file, as it was when the directory was opened.
    pub fn control(&self) -> &ControlFile {
        &self.control
    }

    /// The replay of its log. `None` if the cluster was shut down, so that its files are complete, or if
    /// it is read as it lies.
    pub fn replay(&self) -> Option<&Arc<Replay>> {
        self.replay.as_ref()
    }

    /// The XIDs of the transactions that are prepared and have not ended, at the end of the log if that was
    /// replayed.
    ///
    /// # Errors
    /// [`ReplayError`]: the folder of prepared transactions, or the commit log, can't be read.
    pub fn prepared_xids(&self) -> Result<BTreeSet<u32>, ReplayError> {
        Ok(self.prepared()?.into_keys().collect())
    }

    /// The transactions that are prepared and have not ended, as [`DataDir::prepared_xids`].
    ///
    /// # Errors
    /// As for [`DataDir::prepared_xids`]; [`ReplayError::Prepared`].
    pub fn prepared_transactions(&self) -> Result<Vec<PreparedTransaction>, ReplayError> {
        let read = |(xid, source): (_, PreparedSource<'_>)| source.read(xid, self.control.version);
        self.prepared()?.into_iter().filter_map(|entry| read(entry).transpose()).collect()
    }

    fn prepared(&self) -> Result<BTreeMap<u32, PreparedSource<'_>>, ReplayError> {
        prepared_transactions(&self.path, &self.control, self.replay.as_deref())
    }

    /// Reasons to distrust results, most serious first.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether the cluster was shut down cleanly, so that the files contain all changes. Otherwise
    /// they may contradict each other.
    pub fn is_clean(&self) -> bool {
        let is_doubtful = |it: &Warning| matches!(it, Warning::Forced(_) | Warning::Incomplete(_));
        !self.warnings.iter().any(is_doubtful)
    }

    /// Checks that no server has been started since the directory was opened. This is cheap,
    /// because it only reads two small files, and the end of the log if that was replayed.
    ///
    /// # Errors
    /// [`DataDirError::Changed`] if a server has been started, even if it has already been stopped
    /// again, or if its log has grown; [`DataDirError::Io`] if a file cannot be read.
    pub fn recheck(&self) -> Result<(), DataDirError> {
        let server = read_server(&self.path, self.may_be_copy)?;
        if server.is_running() && server != self.server {
            return Err(DataDirError::Changed { path: self.path.clone(), server: Some(server) });
        }
        // A server in another container has a process number that means nothing here, but it writes to its log.
        if self.replay.as_ref().is_some_and(|replay| replay.log_has_grown()) {
            return Err(DataDirError::Changed { path: self.path.clone(), server: None });
        }
        // If force_unclean let us open the directory of a running server, we must expect that
        // server to update the control file.
        if !self.server.is_running() && control::read_bytes(&self.path)? != self.control_bytes {
            return Err(DataDirError::Changed { path: self.path.clone(), server: None });
        }
        Ok(())
    }

    /// Lists all relation files of all databases and tablespaces, along with any problems found.
    /// Keeps only one directory open at a time.
    ///
    /// If the directory is read through its log, files are listed as they are at the end of the log.
    pub fn relation_files(&self) -> FileList {
        let mut list = self.files_on_disk();
        if let Some(replay) = &self.replay {
            let version = tablespace_directory(self.control.version);
            let places = Places { root: &self.path, moved: &self.moved, version: &version };
            replay_list(&mut list, replay, &places);
        }
        list
    }

    /// Lists all relation files as they lie, whatever the log says.
    pub(crate) fn files_on_disk(&self) -> FileList {
        files::list(&self.path, &self.control, &self.moved)
    }
}

/// The server that a directory's `postmaster.pid` names.
///
/// # Errors
/// The file can't be read.
pub(crate) fn running_server(directory: &Path) -> Result<Server, DataDirError> {
    read_server(directory, false)
}

/// Reads a directory's `postmaster.pid` and looks up its process. In a copy of a directory, the file may
/// name the server of the original.
fn read_server(directory: &Path, may_be_copy: bool) -> Result<Server, DataDirError> {
    let bytes = small_file::read(&directory.join(pidfile::NAME), pidfile::BYTES_MAX)?;
    let server = bytes.map_or(Server::None, |bytes| Server::from_bytes(directory, &bytes));
    Ok(if may_be_copy { server.of_copy() } else { server })
}

/// The reasons why the directory isn't safe to read, most serious first.
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

/// Things that don't make the directory unsafe to read, but may explain a surprising result.
fn notes(path: &Path, server: &Server) -> Result<Vec<Warning>, DataDirError> {
    let mut warnings = Vec::new();
    if let Server::Stale(process) = server {
        warnings.push(Warning::StalePidFile(process.clone()));
    }
    if let Server::Elsewhere(process) = server {
        warnings.push(Warning::CopiedPidFile(process.clone()));
    }
    for name in ["recovery.signal", "standby.signal", "tablespace_map"] {
        if small_file::exists(&path.join(name))? {
            warnings.push(Warning::Marker(name));
        }
    }
    Ok(warnings)
}
