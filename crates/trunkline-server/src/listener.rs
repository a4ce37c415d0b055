//! The unix socket.
//!
//! Like PostgreSQL's, it is called `.s.PGSQL.5432` and has a lock file beside it, which names
//! the process that listens. A socket that nothing listens on any more is replaced.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tokio::net::UnixListener;

use crate::error::ServerError;

/// A socket, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct LocalSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
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
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .read(true)
            .open(&lock_path)
            .map_err(failed)?;
        let in_use = || ServerError::SocketInUse(path.clone());
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| in_use())?;
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
        lock.set_len(0).map_err(failed)?;
        let pid = std::process::id();
        let (data, directory) = (data.display(), directory.display());
        write!(lock, "{pid}\n{data}\n0\n{port}\n{directory}\n").map_err(failed)?;
        Ok(Self { listener, path, lock_path, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // If they can't be removed, the next server replaces them.
        let _removed = fs::remove_file(&self.path);
        let _removed = fs::remove_file(&self.lock_path);
    }
}
