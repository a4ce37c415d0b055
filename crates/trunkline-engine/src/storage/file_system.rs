//! The file system for relation files: the kernel's, or a simulated disk in tests.
//!
//! There are two traits, so that the type system determines whether a cluster can be changed.
//! [`FileSystem`] can only read; [`WritableFiles`] adds every call that changes a file or
//! directory. PostgreSQL data directories are opened with just a [`FileSystem`]. Any method may
//! block, so we must never call one while holding a lock.
//!
//! These traits don't read or write blocks: [`FileSystem::open`] returns a [`File`], which is then
//! read and written through I/O handles. They only cover the system calls we make synchronously:
//! open, stat, fallocate, ftruncate and unlink.

use std::io;
use std::path::Path;

use trunkline_aio::File;

/// Opens files for reading and reports their lengths.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading, bypassing the page cache if `direct`.
    ///
    /// # Errors
    /// As for open(2): `ENOENT` if the file doesn't exist, `EINVAL` if direct I/O is refused,
    /// `ELOOP` for a symbolic link, `EMFILE` or `ENFILE` if the process or system is out of
    /// descriptors.
    fn open(&self, path: &Path, direct: bool) -> io::Result<File>;

    /// An open file's length in bytes.
    ///
    /// # Errors
    /// As for fstat(2).
    fn length(&self, file: &File) -> io::Result<u64>;

    /// A file's length in bytes, without opening it; `None` if it doesn't exist. To count a large
    /// relation's blocks we must check every segment, and shouldn't need to open them all.
    ///
    /// # Errors
    /// As for lstat(2). Like [`FileSystem::open`], refuses anything but a regular file.
    fn file_length(&self, path: &Path) -> io::Result<Option<u64>>;
}

/// Adds everything that changes files, for our own clusters.
pub trait WritableFiles: FileSystem {
    /// Opens a file for reading and writing, bypassing the page cache if `direct`. If `create` is
    /// set, a missing file is created.
    ///
    /// # Errors
    /// As for [`FileSystem::open`].
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File>;

    /// Allocates `length` bytes of zeros at `offset`, and extends the file to cover them. Unlike
    /// with a hole, a later write of the page can't fail with `ENOSPC`, except on a copy-on-write
    /// file system.
    ///
    /// # Errors
    /// As for posix_fallocate(3); `EOPNOTSUPP` if the caller must write zeros instead.
    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()>;

    /// Truncates a file, or extends it with a hole.
    ///
    /// # Errors
    /// As for ftruncate(2).
    fn truncate(&self, file: &File, length: u64) -> io::Result<()>;

    /// Removes a file by name. A missing file is not an error.
    ///
    /// # Errors
    /// As for unlink(2).
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Fsyncs the directory that contains `path`. Required after creating a file, because an fsync
    /// of just the file doesn't guarantee that its directory entry survives a crash.
    ///
    /// # Errors
    /// As for fsync(2) on the directory.
    fn sync_directory_of(&self, path: &Path) -> io::Result<()>;
}
