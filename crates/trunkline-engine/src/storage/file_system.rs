//! The file system that relation files come from: the kernel's, or a simulated disk in tests.
//!
//! There are two traits, so that the type system decides whether a cluster can be changed.
//! [`FileSystem`] can only read; [`WritableFiles`] adds every call that changes a file or a
//! directory. A PostgreSQL data directory is opened with just a [`FileSystem`]. Any method may
//! block, so we never call one while holding a lock.
//!
//! These traits don't read or write blocks: [`FileSystem::open`] returns a [`File`], which is then
//! read and written through I/O handles. They only cover the system calls that we make
//! synchronously: open, stat, fallocate, ftruncate and unlink.

use std::io;
use std::path::Path;

use trunkline_aio::File;

/// Opens files for reading and reports their lengths.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading, past the page cache if `direct`.
    ///
    /// # Errors
    /// As open(2): `ENOENT` for a missing file, `EINVAL` where direct I/O is refused, `ELOOP` for a
    /// symbolic link, `EMFILE` or `ENFILE` when the process or system is out of descriptors.
    fn open(&self, path: &Path, direct: bool) -> io::Result<File>;

    /// The length of an open file in bytes.
    ///
    /// # Errors
    /// As fstat(2).
    fn length(&self, file: &File) -> io::Result<u64>;

    /// The length of a file in bytes, without opening it; `None` if it does not exist. Counting a
    /// large relation's blocks checks every segment, and shouldn't need to open them all.
    ///
    /// # Errors
    /// As lstat(2). Anything but a regular file is refused, as [`FileSystem::open`] does.
    fn file_length(&self, path: &Path) -> io::Result<Option<u64>>;
}

/// Adds everything that changes files, for clusters of our own.
pub trait WritableFiles: FileSystem {
    /// Opens a file for reading and writing, past the page cache if `direct`. A missing file is
    /// created if `create` is set.
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File>;

    /// Allocates `length` bytes of zeros at `offset` and extends the file to cover them. Unlike a
    /// hole, allocated space does not fail with `ENOSPC` when the page is written later, except on
    /// a copy-on-write file system.
    ///
    /// # Errors
    /// As posix_fallocate(3); `EOPNOTSUPP` where zeros have to be written instead.
    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()>;

    /// Truncates a file, or extends it with a hole.
    ///
    /// # Errors
    /// As ftruncate(2).
    fn truncate(&self, file: &File, length: u64) -> io::Result<()>;

    /// Removes a file by name. A missing file is not an error.
    ///
    /// # Errors
    /// As unlink(2).
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Fsyncs the directory that contains `path`. Required after creating a file, because an fsync
    /// of just the file doesn't guarantee that its directory entry survives a crash.
    ///
    /// # Errors
    /// As fsync(2) of the directory.
    fn sync_directory_of(&self, path: &Path) -> io::Result<()>;
}
