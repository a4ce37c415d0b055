//! Files and directories that the kernel has open, by handle.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use fuser::FileType;
use rustix::fs::{AtFlags, Dir, statat};
use rustix::io::{Errno, Result};
use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};

use crate::attributes::kind;

/// A file that is open.
#[derive(Debug)]
pub(crate) enum OpenFile {
    /// A file of the directory.
    File(OwnedFd),
    /// The file that measures our accuracy. It has no bytes of its own.
    Probe,
}

/// A directory that is open.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    directory: OwnedFd,
    entries: Mutex<Arc<Vec<Entry>>>,
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The inode's number in the file system below.
    pub(crate) number: u64,
    pub(crate) kind: FileType,
    pub(crate) name: OsString,
}

/// Open files or directories. A handle is never used twice.
#[derive(Debug)]
pub(crate) struct OpenTable<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    next: u64,
    open: Map<u64, Arc<T>>,
}

impl<T> Default for OpenTable<T> {
    fn default() -> OpenTable<T> {
        OpenTable { state: Mutex::new(State { next: 1, open: Map::default() }) }
    }
}

impl<T> OpenTable<T> {
    /// Adds what was opened, and returns its handle.
    pub(crate) fn add(&self, opened: T) -> u64 {
        let mut state = self.state.lock();
        let handle = state.next;
        state.next += 1;
        state.open.insert(handle, Arc::new(opened));
        handle
    }

    /// What this handle stands for.
    pub(crate) fn get(&self, handle: u64) -> Result<Arc<T>> {
        self.state.lock().open.get(&handle).cloned().ok_or(Errno::BADF)
    }

    /// Removes a handle. A request that still uses it keeps the file open.
    pub(crate) fn remove(&self, handle: u64) {
        let closed = self.state.lock().open.remove(&handle);
        // Outside of the lock: closing may take long.
        drop(closed);
    }
}

impl OpenDirectory {
    pub(crate) fn new(directory: OwnedFd) -> OpenDirectory {
        OpenDirectory { directory, entries: Mutex::new(Arc::default()) }
    }

    /// The descriptor of the directory.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.directory
    }

    /// The entries from `offset` on. Offset 0 lists the directory again, as `rewinddir` must. Later
    /// offsets continue that list, so entries added or removed meanwhile don't shift it.
    pub(crate) fn entries(&self, offset: u64) -> Result<Arc<Vec<Entry>>> {
        if offset > 0 {
            return Ok(Arc::clone(&self.entries.lock()));
        }
        let mut listed = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let mut found = entry.file_type();
            // Some file systems don't store the type in the directory.
            if found == rustix::fs::FileType::Unknown {
                let how = AtFlags::SYMLINK_NOFOLLOW;
                match statat(&self.directory, entry.file_name(), how) {
                    Ok(stat) => found = rustix::fs::FileType::from_raw_mode(stat.st_mode),
                    // It was removed meanwhile.
                    Err(Errno::NOENT) => continue,
                    Err(failed) => return Err(failed),
                }
            }
            listed.push(Entry {
                number: entry.ino(),
                kind: kind(found),
                name: OsString::from_vec(entry.file_name().to_bytes().to_vec()),
            });
        }
        let listed = Arc::new(listed);
        *self.entries.lock() = Arc::clone(&listed);
        Ok(listed)
    }
}
