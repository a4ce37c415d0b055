//! The file system for relation files: the kernel's, or a simulated disk in tests.
//!
//! We use two traits, so that the type system can tell whether a cluster may be changed.
//! [`FileSystem`] can only read, and [`WritableFiles`] adds every call that changes a file or
//! directory. For a PostgreSQL data directory we only ever have a [`FileSystem`]. Any of the
//! methods may block, so we must not call them while holding a lock.
//!
//! These traits don't read or write any blocks. [`FileSystem::open`] returns a [`File`], and blocks
//! are then read and written through I/O handles. The traits only cover the system calls that we
//! make synchronously: open, stat, fallocate, ftruncate, rename and unlink.

use std::io;
use std::path::Path;

use trunkline_aio::File;

/// Opens files for reading and reports their lengths.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading, bypassing the page cache if `direct` is set.
    ///
    /// # Errors
    /// The same errors as open(2): `ENOENT` if the file doesn't exist, `EINVAL` if direct I/O isn't
    /// supported, `ELOOP` if the file is a symbolic link, and `EMFILE` or `ENFILE` if the process
    /// or the system has run out of file descriptors.
    fn open(&self, path: &Path, direct: bool) -> io::Result<File>;

    /// An open file's length in bytes.
    ///
    /// # Errors
    /// As for fstat(2).
    fn length(&self, file: &File) -> io::Result<u64>;

    /// Returns the length of a file in bytes without opening it, or `None` if it doesn't exist. To
    /// determine the length of a large relation, we have to check every segment, and we don't want
    /// to open them all just for that.
    ///
    /// # Errors
    /// The same errors as lstat(2). Like [`FileSystem::open`], this refuses anything but a regular
    /// file.
    fn file_length(&self, path: &Path) -> io::Result<Option<u64>>;
}

/// Adds everything that changes files, for our own clusters.
pub trait WritableFiles: FileSystem {
    /// Opens a file for reading and writing, bypassing the page cache if `direct` is set. Creates
    /// the file if it doesn't exist and `create` is set.
    ///
    /// # Errors
    /// As for [`FileSystem::open`].
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File>;

    /// Allocates `length` zeroed bytes at `offset`, extending the file if necessary. We don't just
    /// leave a hole, because filling the hole later could fail with `ENOSPC`. On a copy-on-write
    /// file system, this can happen even after the allocation.
    ///
    /// # Errors
    /// The same errors as posix_fallocate(3). `EOPNOTSUPP` means that the caller must write zeros
    /// instead.
    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()>;

    /// Truncates a file, or extends it with a hole.
    ///
    /// # Errors
    /// As for ftruncate(2).
    fn truncate(&self, file: &File, length: u64) -> io::Result<()>;

    /// Renames a file within its directory, replacing an existing file.
    ///
    /// # Errors
    /// As for rename(2).
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file by name. A missing file is not an error.
    ///
    /// # Errors
    /// As for unlink(2).
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Fsyncs the directory that contains `path`. This is necessary after creating a file: an fsync
    /// of the file itself doesn't guarantee that its directory entry will survive a crash.
    ///
    /// # Errors
    /// As for fsync(2) on the directory.
    fn sync_directory_of(&self, path: &Path) -> io::Result<()>;
}
