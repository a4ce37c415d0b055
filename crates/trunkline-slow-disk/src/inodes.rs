//! **Inode table**: the files of the directory below that the kernel knows.
//!
//! Each inode holds a descriptor opened with `O_PATH`, so it stays valid when the file is renamed or
//! unlinked, and a hard link found under another name is the same inode. The kernel counts its
//! references and drops them with FORGET.
//!
//! ```text
//!   lookup(parent, "base") ── openat(parent's descriptor, "base", O_PATH) ──▶ inode, +1 reference
//!   forget(inode, n)       ── the last reference ──▶ descriptor closed
//! ```
//! Inodes are numbered as in the file system below, except that the kernel wants the root to be
//! number 1. The descriptor keeps the number from being reused. Numbers are unique only within a
//! file system, so we don't cross into another one that is mounted below the directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::{Errno, Result};
use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};

/// The root's number in the FUSE protocol.
const ROOT: u64 = 1;

/// A file that the kernel knows.
#[derive(Debug, Clone)]
pub(crate) struct Inode {
    path: Arc<OwnedFd>,
}

#[derive(Debug)]
struct Entry {
    inode: Inode,
    references: u64,
}

/// All files that the kernel knows.
#[derive(Debug)]
pub(crate) struct Inodes {
    /// Number of the file system.
    device: u64,
    /// The root's number in the file system below.
    root: u64,
    entries: Mutex<Map<u64, Entry>>,
}

impl AsFd for Inode {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.path.as_fd()
    }
}

impl Inode {
    /// What `stat` says about the file.
    pub(crate) fn stat(&self) -> Result<Stat> {
        statat(self, "", AtFlags::EMPTY_PATH)
    }

    /// Opens the file itself. A descriptor opened with `O_PATH` only stands for the file; the kernel
    /// reopens it through this link.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd> {
        openat(CWD, self.link(), flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// A path that leads to this file, whatever its name is.
    pub(crate) fn link(&self) -> String {
        format!("/proc/self/fd/{}", self.path.as_raw_fd())
    }
}

impl Inodes {
    /// A table that knows only the root.
    ///
    /// # Errors
    /// `fstat` failed.
    pub(crate) fn new(root: OwnedFd) -> Result<Inodes> {
        let stat = fstat(&root)?;
        // The kernel never forgets the root.
        let entry = Entry { inode: Inode { path: Arc::new(root) }, references: 1 };
        let entries = Mutex::new(Map::from_iter([(ROOT, entry)]));
        Ok(Inodes { device: stat.st_dev, root: stat.st_ino, entries })
    }

    /// The file with this number.
    pub(crate) fn get(&self, number: u64) -> Result<Inode> {
        let entries = self.entries.lock();
        entries.get(&number).map(|entry| entry.inode.clone()).ok_or(Errno::STALE)
    }

    /// Finds a name in a directory, and adds a reference to the file.
    pub(crate) fn look_up(&self, parent: u64, name: &OsStr) -> Result<Stat> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = openat(self.get(parent)?, name, flags, Mode::empty())?;
        let stat = fstat(&path)?;
        if stat.st_dev != self.device {
            return Err(Errno::XDEV);
        }
        let number = self.number(&stat);
        let mut entries = self.entries.lock();
        entries
            .entry(number)
            .and_modify(|entry| entry.references += 1)
            .or_insert_with(|| Entry { inode: Inode { path: Arc::new(path) }, references: 1 });
        Ok(stat)
    }

    /// Drops references.
    pub(crate) fn forget(&self, number: u64, references: u64) {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(&number).filter(|_| number != ROOT) else { return };
        entry.references = entry.references.saturating_sub(references);
        if entry.references == 0 {
            let closed = entries.remove(&number);
            // Closing the last descriptor of an unlinked file may take long.
            drop(entries);
            drop(closed);
        }
    }

    /// The number of a file in the FUSE protocol.
    pub(crate) fn number(&self, stat: &Stat) -> u64 {
        self.shown_number(stat.st_ino)
    }

    /// The same for a number that a directory lists.
    pub(crate) fn shown_number(&self, number: u64) -> u64 {
        if number == self.root { ROOT } else { number }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_stay_known_until_they_are_forgotten() {
        let dir = tempfile::tempdir().expect("directory");
        fs::write(dir.path().join("one"), "text").expect("written");
        fs::hard_link(dir.path().join("one"), dir.path().join("two")).expect("linked");
        let root = rustix::fs::open(dir.path(), OFlags::PATH, Mode::empty()).expect("opened");
        let inodes = Inodes::new(root).expect("a table");
        let one = inodes.look_up(ROOT, "one".as_ref()).expect("found");
        let two = inodes.look_up(ROOT, "two".as_ref()).expect("found");
        assert_eq!(one.st_ino, two.st_ino);
        for name in ["one", "two"] {
            fs::remove_file(dir.path().join(name)).expect("removed");
        }
        assert_eq!(
            inodes.get(one.st_ino).and_then(|inode| inode.stat()).map(|stat| stat.st_size),
            Ok(4)
        );
        inodes.forget(one.st_ino, 1);
        inodes.get(one.st_ino).expect("one reference is left");
        inodes.forget(one.st_ino, 1);
        assert_eq!(inodes.get(one.st_ino).map(|_| ()), Err(Errno::STALE));
        inodes.forget(ROOT, 100);
        inodes.get(ROOT).expect("the root");
        assert_eq!(inodes.look_up(ROOT, "none".as_ref()).map(|_| ()), Err(Errno::NOENT));
    }
}
