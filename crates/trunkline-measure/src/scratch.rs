//! **Scratch directory**: where a measurement writes, and how it is cleaned even after `kill -9`.
//!
//! ```text
//!   DIR/trunkline-bench-scratch/
//!     trunkline-bench     marker, written first: everything here may be removed
//!     table/              a generated pgbench_accounts
//!     durable             the file of durable writes
//! ```
//! The directory is locked (`flock`) while it is in use. The lock ends with the process, whatever
//! kills it, so the next start knows that what it finds is abandoned, and removes it. A directory
//! with other contents and without our marker is refused.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::MeasureError;
use crate::place::refuse_cluster;

/// Name of the directory that we create in the user's.
const FOLDER: &str = "trunkline-bench-scratch";
/// The file that says that the directory is ours.
const MARKER: &str = "trunkline-bench";

/// A scratch directory, locked by this process. It is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl Scratch {
    /// Creates the scratch directory in `parent`, or cleans one that a killed process has left.
    ///
    /// # Errors
    /// [`MeasureError::InsideCluster`], [`MeasureError::Busy`], [`MeasureError::NotScratch`], or
    /// [`MeasureError::File`].
    pub fn open(parent: &Path) -> Result<Self, MeasureError> {
        refuse_cluster(parent)?;
        let parent = parent.canonicalize().map_err(|error| MeasureError::file(parent, error))?;
        let path = parent.join(FOLDER);
        let fail = |error| MeasureError::file(&path, error);
        loop {
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(fail(error));
                }
                _ => {}
            }
            // Don't follow a symbolic link: we remove what is in the directory.
            let found = fs::symlink_metadata(&path).map_err(fail)?;
            if !found.is_dir() {
                return Err(fail(io::Error::other("is not a directory")));
            }
            let lock = File::open(&path).map_err(fail)?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(MeasureError::Busy(path)),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
            // Another process may have removed the directory before we have locked it.
            let locked = lock.metadata().map_err(fail)?;
            let is_named = fs::symlink_metadata(&path)
                .is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino()));
            if is_named {
                // Only what we have recognized as ours is removed when this is dropped.
                clean(&path)?;
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    /// The path of something in the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The marker goes last, so that the next start recognizes whatever we can't remove now.
        if clean(&self.path).is_ok() {
            let _ = fs::remove_file(self.path.join(MARKER));
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Removes what a killed process has left, and writes the marker.
fn clean(directory: &Path) -> Result<(), MeasureError> {
    let fail = |error| MeasureError::file(directory, error);
    let marker = directory.join(MARKER);
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(fail)?;
    if !marker.is_file()
        && let Some(found) = entries.first()
    {
        let found = found.file_name().to_string_lossy().into_owned();
        return Err(MeasureError::NotScratch { path: directory.to_owned(), found });
    }
    fs::write(&marker, "files in this directory may be removed\n").map_err(fail)?;
    for entry in entries.iter().filter(|entry| entry.file_name() != MARKER) {
        let path = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed = if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| MeasureError::file(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let left = home.path().join(FOLDER);
        // Killed before the marker was written, and later.
        fs::create_dir(&left).expect("made");
        drop(Scratch::open(home.path()).expect("opened"));
        assert!(!left.exists());
        fs::create_dir_all(left.join("table/base/5")).expect("made");
        fs::write(left.join(MARKER), "").expect("written");
        for name in ["durable", "table/base/5/16385"] {
            fs::write(left.join(name), "left").expect("written");
        }
        let scratch = Scratch::open(home.path()).expect("opened");
        let names = fs::read_dir(&left).expect("a directory").count();
        assert!(names == 1 && left.join(MARKER).is_file(), "{names} entries");
        fs::write(scratch.join("durable"), "x").expect("written");
        drop(scratch);
        assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 0);
    }

    #[test]
    fn files_of_others_stay() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join(FOLDER);
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join("thesis"), "precious").expect("written");
        let error = Scratch::open(home.path()).expect_err("refused").to_string();
        assert!(error.contains("contains \"thesis\""), "{error}");
        assert_eq!(fs::read(folder.join("thesis")).expect("read"), b"precious");
        fs::rename(&folder, home.path().join("elsewhere")).expect("renamed");
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &folder).expect("linked");
        let error = Scratch::open(home.path()).expect_err("refused").to_string();
        assert!(error.contains("is not a directory"), "{error}");
        assert!(home.path().join("elsewhere/thesis").exists());
    }

    #[test]
    fn two_processes_do_not_share_it() {
        let home = tempfile::tempdir().expect("a directory");
        let first = Scratch::open(home.path()).expect("opened");
        let error = Scratch::open(home.path()).expect_err("in use");
        assert!(matches!(error, MeasureError::Busy(_)), "{error}");
        assert!(first.join(MARKER).is_file());
        drop(first);
        Scratch::open(home.path()).expect("free again");
    }
}
