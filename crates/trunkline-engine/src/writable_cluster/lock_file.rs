//! Locks the data directory: against our own programs by `flock` on the marker file, against servers by `postmaster.pid` (as
//! `CreateLockFile` makes it).
//!
//! A server takes a file with the process id of its parent for stale, so a program must not start a server on a directory
//! that it has open itself.
//!
//! A server looks only at the process id in that file. So do we for servers; our own programs also exclude each other
//! within a process.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use trunkline_aio::clock;

use super::error::WritableClusterError;
use crate::datadir::{PID_FILE_NAME, running_server};
use crate::log_writer::LogWriterError;
use crate::new_cluster::MARKER;

/// A directory that this process may write to.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    /// Locked until it is closed.
    _marker: File,
}

impl LockFile {
    /// Locks a directory.
    ///
    /// # Errors
    /// [`LogWriterError::NotOurs`], [`WritableClusterError::Locked`], [`WritableClusterError::ServerRunning`] or [`WritableClusterError::File`].
    pub(super) fn create(root: &Path) -> Result<Self, WritableClusterError> {
        let marker_path = root.join(MARKER);
        let marker = File::open(&marker_path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => LogWriterError::NotOurs { path: root.to_owned() }.into(),
            _ => WritableClusterError::file("open", &marker_path, source),
        })?;
        match flock(&marker, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(WritableClusterError::Locked { path: root.to_owned() });
            }
            Err(error) => {
                return Err(WritableClusterError::file("lock", &marker_path, error.into()));
            }
        }
        let server =
            running_server(root).map_err(|error| WritableClusterError::Engine(error.into()))?;
        if server.is_running() {
            return Err(WritableClusterError::ServerRunning { path: root.to_owned(), server });
        }
        let path = root.join(PID_FILE_NAME);
        let failed = |operation, source| WritableClusterError::file(operation, &path, source);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("remove", error));
            }
            _ => {}
        }
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(|source| failed("create", source))?;
        // Process, directory, start, port, socket directory, address.
        let (process, directory) = (std::process::id(), root.display());
        let start = clock::unix_micros() / 1_000_000;
        let text = format!("{process}\n{directory}\n{start}\n0\n\n\n");
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if let Err(source) = written {
            let _ = fs::remove_file(&path);
            return Err(failed("write to", source));
        }
        Ok(Self { path, _marker: marker })
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // If this fails, the process that the file names will soon be gone.
        let _ = fs::remove_file(&self.path);
    }
}
