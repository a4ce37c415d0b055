//! The unix socket.
//!
//! Like PostgreSQL's, it is called `.s.PGSQL.5432` and has a lock file beside it, which names
//! the process that listens. A socket that nothing listens on any more is replaced.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use crate::error::ServerError;
use crate::lock_file::LockFile;

/// A socket, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct LocalSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    /// Dropped after the socket was removed.
    _lock: LockFile,
}

impl LocalSocket {
    /// Creates the socket of a port. `data` is what the lock file says is served.
    ///
    /// # Errors
    /// [`ServerError::SocketInUse`] and [`ServerError::Socket`].
    pub(crate) fn bind(directory: &Path, port: u16, data: &Path) -> Result<Self, ServerError> {
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let lock_path = directory.join(format!(".s.PGSQL.{port}.lock"));
        let failed = |error| ServerError::Socket { path: path.clone(), error };
        let not_locked = |error| ServerError::LockFile { path: lock_path.clone(), error };
        let in_use = || ServerError::SocketInUse(path.clone());
        let lock = LockFile::lock(lock_path.clone()).map_err(not_locked)?;
        let mut lock = lock.ok_or_else(in_use)?;
        // A server of PostgreSQL's doesn't lock the file, but it answers.
        if std::os::unix::net::UnixStream::connect(&path).is_ok() {
            return Err(in_use());
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        // Every client's user is checked when it connects.
        fs::set_permissions(&path, Permissions::from_mode(0o777)).map_err(failed)?;
        let pid = std::process::id();
        let (data, directory) = (data.display(), directory.display());
        let text = format!("{pid}\n{data}\n0\n{port}\n{directory}\n");
        lock.write(&text).map_err(not_locked)?;
        Ok(Self { listener, path, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // If it can't be removed, the next server replaces it.
        let _removed = fs::remove_file(&self.path);
    }
}
