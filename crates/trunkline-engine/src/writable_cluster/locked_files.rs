//! The files of a cluster that is locked for this process.
//!
//! The lock lasts as long as anything may still write: relations and storages refer to these files, and dropping the last
//! reference to the I/O instance waits for I/O in flight. Without that, a page that is still being written when a cluster
//! is dropped could overwrite what the next one has written.

use std::io;
use std::path::Path;

use trunkline_aio::File;

use super::lock_file::LockFile;
use crate::storage::{FileSystem, KernelFiles, WritableFiles};

/// The kernel's files, and the lock.
pub(super) struct LockedFiles {
    // Dropped in this order.
    files: KernelFiles,
    _lock: LockFile,
}

impl LockedFiles {
    pub(super) fn new(files: KernelFiles, lock: LockFile) -> Self {
        Self { files, _lock: lock }
    }
}

impl FileSystem for LockedFiles {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.files.open(path, direct)
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.files.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.files.file_length(path)
    }
}

impl WritableFiles for LockedFiles {
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File> {
        self.files.open_for_writing(path, direct, create)
    }

    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        self.files.allocate(file, offset, length)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.files.truncate(file, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.files.sync_directory_of(path)
    }
}
