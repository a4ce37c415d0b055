//! The lock file beside the unix socket.
//!
//! The directory may be `/tmp`, where others can put something in the file's place. So a symbolic link
//! isn't followed, and only a regular file of our own with one name is written. It must also still have
//! that name once it is locked: the server that had it before removes it at its end.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

/// Bits that only the owner needs.
const MODE: u32 = 0o600;

/// A locked file, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Creates the file, or takes over one that nothing has locked; `None` if another process has.
    ///
    /// # Errors
    /// It can't be opened, or it isn't a regular file of our own.
    pub(crate) fn lock(path: PathBuf) -> io::Result<Option<Self>> {
        loop {
            let file = open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            let locked = file.metadata()?;
            let is_same =
                |found: fs::Metadata| (found.dev(), found.ino()) == (locked.dev(), locked.ino());
            // Otherwise, its owner has removed it meanwhile.
            if fs::symlink_metadata(&path).is_ok_and(is_same) {
                return Ok(Some(Self { file, path }));
            }
        }
    }

    /// Replaces its contents.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // If it can't be removed, the next server takes it over.
        let _removed = fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    // A pipe must not make us wait.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .read(true)
        .mode(MODE)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let found = file.metadata()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_file() || !is_own || found.nlink() > 1 {
        let text = "it is not a regular file of the user that runs the server";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_others_put_in_its_place_is_not_written() {
        let directory = tempfile::TempDir::new().unwrap();
        let (target, path) = (directory.path().join("target"), directory.path().join("lock"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        LockFile::lock(path.clone()).unwrap_err();
        fs::remove_file(&path).unwrap();
        fs::hard_link(&target, &path).unwrap();
        LockFile::lock(path.clone()).unwrap_err();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        LockFile::lock(path).unwrap_err();
    }

    #[test]
    fn a_file_has_one_owner() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("lock");
        fs::write(&path, "of a server that was killed").unwrap();
        fs::remove_file(&path).unwrap();
        let mut first = LockFile::lock(path.clone()).unwrap().unwrap();
        first.write("1").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert!(LockFile::lock(path.clone()).unwrap().is_none());
        drop(first);
        assert!(!path.exists());
        fs::write(&path, "a long text of a server that was killed").unwrap();
        let mut second = LockFile::lock(path.clone()).unwrap().unwrap();
        second.write("2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2");
    }
}
