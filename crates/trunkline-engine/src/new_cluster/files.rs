//! Files and directories of a new cluster, which only its owner may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::NewClusterError;

/// Creates files below a root, and remembers them. Each file is fsynced when it is written. Its name is durable only
/// after its directory has been fsynced.
pub(super) struct NewFiles<'p> {
    root: &'p Path,
    created: Vec<PathBuf>,
}

impl<'p> NewFiles<'p> {
    pub(super) fn new(root: &'p Path) -> Self {
        Self { root, created: Vec::new() }
    }

    /// Creates a directory; the root itself if the name is empty. The root may exist.
    pub(super) fn directory(&mut self, name: &str) -> Result<(), NewClusterError> {
        let path = self.path(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if name.is_empty() && error.kind() == io::ErrorKind::AlreadyExists => {
                // The server refuses a directory that others may read.
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
                fs::set_permissions(&path, mode)
                    .map_err(|source| failed("change the permissions of", path, source))
            }
            Err(source) => Err(failed("create directory", path, source)),
            Ok(()) => {
                self.created.push(path);
                Ok(())
            }
        }
    }

    /// Creates a file.
    pub(super) fn file(&mut self, name: &str, contents: &[u8]) -> Result<(), NewClusterError> {
        let path = self.path(name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(|source| failed("create", path.clone(), source))?;
        self.created.push(path.clone());
        let written = file.write_all(contents).and_then(|()| file.sync_all());
        written.map_err(|source| failed("write", path, source))
    }

    /// Removes what was created, the newest first.
    pub(super) fn remove(&self) {
        for path in self.created.iter().rev() {
            // There is already an error to report, and what can't be removed is still there to be seen.
            let _ = match path.is_dir() {
                true => fs::remove_dir(path),
                false => fs::remove_file(path),
            };
        }
    }

    /// Makes the names in a directory durable.
    pub(super) fn sync_directory(&self, name: &str) -> Result<(), NewClusterError> {
        sync(self.path(name))
    }

    /// Makes the name of the root durable.
    pub(super) fn sync_parent(&self) -> Result<(), NewClusterError> {
        match self.root.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync(parent.to_owned()),
            _ => sync(PathBuf::from(".")),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.to_owned() } else { self.root.join(name) }
    }
}

fn sync(path: PathBuf) -> Result<(), NewClusterError> {
    let synced = File::open(&path).and_then(|directory| directory.sync_all());
    synced.map_err(|source| failed("fsync", path, source))
}

fn failed(operation: &'static str, path: PathBuf, source: io::Error) -> NewClusterError {
    NewClusterError::Io { operation, path, source }
}
