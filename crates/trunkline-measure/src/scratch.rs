//! **Scratch directory**: where a measurement writes, and how it is cleaned even after `kill -9`.
//!
//! ```text
//!   DIR/trunkline-bench-scratch/
//!     .trunkline-bench-scratch   marker, written first: everything here may be removed
//!     table/                     a generated pgbench_accounts
//!     durable                    the file of durable writes
//!     disk/                      what is measured on a slow disk, and a server's cluster
//!     slow/                      where the slow disk is mounted
//!     socket/                    the server's socket
//! ```
//! The directory is locked (`flock`) while it is in use. The lock ends with the process, whatever
//! kills it, so the next start knows that what it finds is abandoned, and removes it.
//!
//! We remove everything in the directory, so we must be sure that it is ours. It must belong to our
//! user, and no other user may be able to write to it: in `/tmp`, another user could prepare a directory
//! whose entries are links. The marker is opened without following a link, and its text is compared.
//! A directory with other contents and without our marker is refused.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use crate::error::MeasureError;
use crate::place::refuse_cluster;

/// Name of the directory that we create in the user's.
const FOLDER: &str = "trunkline-bench-scratch";
/// The file that says that the directory is ours.
const MARKER: &str = ".trunkline-bench-scratch";
/// Its contents.
const MARKER_TEXT: &str = "trunkline bench may remove everything in this directory\n";

/// A scratch directory, locked by this process. It is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The directory, which holds the lock.
    directory: File,
}

impl Scratch {
    /// Creates the scratch directory in `parent`, or cleans one that a killed process has left.
    /// `release` is called before anything is removed: it ends what may still use the directory,
    /// such as a server.
    ///
    /// # Errors
    /// [`MeasureError::InsideCluster`], [`MeasureError::Busy`], [`MeasureError::NotScratch`],
    /// [`MeasureError::File`], or an error of `release`.
    pub fn open(
        parent: &Path,
        release: impl Fn(&Path) -> Result<(), MeasureError>,
    ) -> Result<Self, MeasureError> {
        refuse_cluster(parent)?;
        let parent = parent.canonicalize().map_err(|error| MeasureError::file(parent, error))?;
        let path = parent.join(FOLDER);
        let fail = |error| MeasureError::file(&path, error);
        loop {
            match DirBuilder::new().mode(0o700).create(&path) {
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
            let directory = File::open(&path).map_err(fail)?;
            match directory.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(MeasureError::Busy(path)),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
            // Another process may have removed the directory before we have locked it.
            let locked = directory.metadata().map_err(fail)?;
            let is_named = fs::symlink_metadata(&path)
                .is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino()));
            if is_named {
                check_owner(&locked).map_err(|text| fail(io::Error::other(text)))?;
                // Only what we have recognized as ours is removed when this is dropped.
                let scratch = NotYetOurs { path: &path, directory: &directory };
                scratch.claim(release)?;
                return Ok(Self { path, directory });
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The marker goes last, so that the next start recognizes whatever we can't remove now.
        let removed = empty(&self.path).is_ok()
            && fs::remove_file(self.path.join(MARKER)).is_ok()
            && fs::remove_dir(&self.path).is_ok();
        if !removed {
            // A thread that we had to abandon may still be creating files.
            let _ = write_marker(&self.directory);
        }
    }
}

/// Fails unless the directory is our user's, and no other user can write to it.
fn check_owner(found: &fs::Metadata) -> Result<(), String> {
    let (user, owner) = (rustix::process::geteuid().as_raw(), found.uid());
    if owner != user {
        return Err(format!("belongs to the user {owner}, not to {user}"));
    }
    match found.mode() & 0o022 {
        0 => Ok(()),
        _ => Err(format!("has mode {:o}: others can write to it", found.mode() & 0o7777)),
    }
}

/// A locked directory whose contents may belong to another program.
struct NotYetOurs<'d> {
    path: &'d Path,
    directory: &'d File,
}

impl NotYetOurs<'_> {
    /// Removes what a killed process has left, and writes the marker. `release` ends what may still
    /// use the directory; it is called only when the directory is known to be ours.
    fn claim(
        &self,
        release: impl Fn(&Path) -> Result<(), MeasureError>,
    ) -> Result<(), MeasureError> {
        let fail = |error| MeasureError::file(self.path, error);
        let marker = self.marker().map_err(fail)?;
        let is_marked = marker.as_deref() == Some(MARKER_TEXT.as_bytes());
        // A process may have been killed while it was writing the marker, which it does first.
        let is_begun = marker.is_some_and(|text| MARKER_TEXT.as_bytes().starts_with(&text));
        let entries = fs::read_dir(self.path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in entries.map_err(fail)? {
            let is_ours = is_marked || (is_begun && entry.file_name() == MARKER);
            if !is_ours {
                let found = entry.file_name().to_string_lossy().into_owned();
                return Err(MeasureError::NotScratch { path: self.path.to_owned(), found });
            }
        }
        if !is_marked {
            write_marker(self.directory).map_err(fail)?;
        }
        release(self.path)?;
        empty(self.path)
    }

    /// The beginning of the marker, if there is a regular file of its name.
    fn marker(&self) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match openat(self.directory, MARKER, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            // ELOOP: a symbolic link.
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut text = Vec::new();
        file.take(MARKER_TEXT.len() as u64 + 1).read_to_end(&mut text)?;
        Ok(Some(text))
    }
}

/// Writes the marker into a directory that is ours.
fn write_marker(directory: &File) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = openat(directory, MARKER, flags | OFlags::NOFOLLOW, mode)?;
    File::from(file).write_all(MARKER_TEXT.as_bytes())
}

/// Removes everything but the marker from a directory that is ours.
fn empty(directory: &Path) -> Result<(), MeasureError> {
    let fail = |error| MeasureError::file(directory, error);
    for entry in fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_name() == MARKER {
            continue;
        }
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
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn make(directory: &Path) {
        DirBuilder::new().mode(0o700).create(directory).expect("made");
    }

    /// Nothing uses the directory.
    fn idle(_: &Path) -> Result<(), MeasureError> {
        Ok(())
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let home = tempfile::tempdir().expect("a directory");
        let left = home.path().join(FOLDER);
        // Killed before the marker was written, and later.
        make(&left);
        drop(Scratch::open(home.path(), idle).expect("opened"));
        assert!(!left.exists());
        // While it was being written.
        make(&left);
        fs::write(left.join(MARKER), &MARKER_TEXT[..5]).expect("written");
        drop(Scratch::open(home.path(), idle).expect("opened"));
        assert!(!left.exists());
        make(&left);
        fs::create_dir_all(left.join("table/base/5")).expect("made");
        fs::write(left.join(MARKER), MARKER_TEXT).expect("written");
        for name in ["durable", "table/base/5/16385"] {
            fs::write(left.join(name), "left").expect("written");
        }
        let scratch = Scratch::open(home.path(), idle).expect("opened");
        let names = fs::read_dir(&left).expect("a directory").count();
        assert!(names == 1 && left.join(MARKER).is_file(), "{names} entries");
        fs::write(scratch.join("durable"), "x").expect("written");
        drop(scratch);
        assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 0);
    }

    #[test]
    fn nothing_is_removed_while_it_may_be_in_use() {
        let home = tempfile::tempdir().expect("a directory");
        let left = home.path().join(FOLDER);
        make(&left);
        for (name, text) in [(MARKER, MARKER_TEXT), ("cluster", "left")] {
            fs::write(left.join(name), text).expect("written");
        }
        let busy = |path: &Path| Err(MeasureError::Busy(path.to_owned()));
        Scratch::open(home.path(), busy).expect_err("in use");
        assert!(left.join("cluster").exists());
        // What others have written is not even asked for.
        fs::remove_file(left.join(MARKER)).expect("removed");
        let error = Scratch::open(home.path(), busy).expect_err("refused");
        assert!(matches!(error, MeasureError::NotScratch { .. }), "{error}");
    }

    #[test]
    fn files_of_others_stay() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join(FOLDER);
        make(&folder);
        fs::write(folder.join("thesis"), "precious").expect("written");
        let error = Scratch::open(home.path(), idle).expect_err("refused").to_string();
        assert!(error.contains("contains \"thesis\""), "{error}");
        assert_eq!(fs::read(folder.join("thesis")).expect("read"), b"precious");
        fs::rename(&folder, home.path().join("elsewhere")).expect("renamed");
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &folder).expect("linked");
        let error = Scratch::open(home.path(), idle).expect_err("refused").to_string();
        assert!(error.contains("is not a directory"), "{error}");
        assert!(home.path().join("elsewhere/thesis").exists());
    }

    #[test]
    fn a_marker_counts_only_with_its_text() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join(FOLDER);
        let victim = home.path().join("victim");
        make(&folder);
        fs::write(&victim, MARKER_TEXT).expect("written");
        fs::write(folder.join("thesis"), "precious").expect("written");
        let refused = |expected: &str| {
            let error = Scratch::open(home.path(), idle).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(fs::read(folder.join("thesis")).expect("read"), b"precious");
            fs::remove_file(folder.join(MARKER)).expect("there");
        };
        // A file of the same name, an incomplete marker beside other files, and a link to a marker.
        for text in ["#!/bin/sh", "", MARKER_TEXT.trim_end(), &MARKER_TEXT.repeat(2)] {
            fs::write(folder.join(MARKER), text).expect("written");
            refused("did not write");
        }
        symlink(&victim, folder.join(MARKER)).expect("linked");
        refused("did not write");
        fs::remove_file(folder.join("thesis")).expect("there");
        symlink(&victim, folder.join(MARKER)).expect("linked");
        let error = Scratch::open(home.path(), idle).expect_err("refused").to_string();
        assert!(error.contains("did not write"), "{error}");
        assert_eq!(fs::read_to_string(&victim).expect("read"), MARKER_TEXT);
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join(FOLDER);
        make(&folder);
        fs::write(folder.join(MARKER), MARKER_TEXT).expect("written");
        for mode in [0o722, 0o777, 0o770] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("changed");
            let error = Scratch::open(home.path(), idle).expect_err("refused").to_string();
            assert!(error.contains(&format!("has mode {mode:o}")), "{error}");
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("changed");
        drop(Scratch::open(home.path(), idle).expect("opened"));
        assert!(!folder.exists());
        let other = fs::metadata("/proc/self").map(|found| found.uid()).expect("a user");
        let root = fs::metadata("/proc/sys").expect("there");
        assert_eq!(check_owner(&root).is_ok(), root.uid() == other);
    }

    #[test]
    fn what_could_not_be_removed_is_removed_by_the_next_start() {
        let home = tempfile::tempdir().expect("a directory");
        let scratch = Scratch::open(home.path(), idle).expect("opened");
        let folder = home.path().join(FOLDER);
        // As if a file had been created between the last two steps.
        fs::remove_file(folder.join(MARKER)).expect("there");
        fs::write(folder.join("durable"), "x").expect("written");
        drop(scratch);
        assert_eq!(fs::read_to_string(folder.join(MARKER)).expect("marked"), MARKER_TEXT);
        fs::write(folder.join("durable"), "x").expect("written");
        drop(Scratch::open(home.path(), idle).expect("opened"));
        assert!(!folder.exists());
    }

    #[test]
    fn two_processes_do_not_share_it() {
        let home = tempfile::tempdir().expect("a directory");
        let first = Scratch::open(home.path(), idle).expect("opened");
        let error = Scratch::open(home.path(), idle).expect_err("in use");
        assert!(matches!(error, MeasureError::Busy(_)), "{error}");
        assert!(first.join(MARKER).is_file());
        drop(first);
        Scratch::open(home.path(), idle).expect("free again");
    }
}
