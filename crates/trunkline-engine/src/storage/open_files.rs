//! The segment files that an engine has open, and the file system they are on.
//!
//! All clusters of an engine share one [`OpenFiles`], so `max_files_per_process` limits the number
//! of file descriptors for the process as a whole. When a cluster needs a segment,
//! [`super::file_table`] returns its file if it is already open. Otherwise, it opens the file
//! through the [`FileSystem`], and closes another file first if the limit has been reached.

use std::fmt;

use std::sync::Arc;
use trunkline_aio::Aio;

use super::file_system::{FileSystem, WritableFiles};
use super::file_table::FileTable;
use super::kernel::KernelFiles;

/// The open-file table and its file system. All clones share both of them.
#[derive(Clone)]
pub struct OpenFiles {
    table: Arc<FileTable>,
    system: Arc<dyn FileSystem>,
    /// The same file system as `system` if it allows writing, otherwise `None`. Note that a cluster
    /// can only write if it was also opened for writing.
    writer: Option<Arc<dyn WritableFiles>>,
}

impl OpenFiles {
    /// Uses the operating system's files. I/O goes through `aio`, and at most `limit` files are
    /// kept open. Our own clusters can be opened for writing.
    pub fn kernel(aio: &Aio, limit: usize) -> Self {
        Self::writable(limit, Arc::new(KernelFiles::new(aio)))
    }

    /// Uses the given file system's files, for reading only.
    pub fn read_only(limit: usize, system: Arc<dyn FileSystem>) -> Self {
        Self { table: Arc::new(FileTable::new(limit)), system, writer: None }
    }

    /// Uses the given file system's files, for reading and writing.
    pub fn writable(limit: usize, system: Arc<dyn WritableFiles>) -> Self {
        let writer = Some(Arc::clone(&system));
        Self { table: Arc::new(FileTable::new(limit)), system, writer }
    }

    /// Maximum number of files kept open.
    pub fn limit(&self) -> usize {
        self.table.limit()
    }

    /// Number of files currently open, including those being opened.
    pub fn open(&self) -> usize {
        self.table.open()
    }

    /// Number of lookups that found the file open.
    pub fn hits(&self) -> u64 {
        self.table.hits()
    }

    /// Number of files opened since startup.
    pub fn opens(&self) -> u64 {
        self.table.opens()
    }

    /// Number of files closed to stay within the limit.
    pub fn evictions(&self) -> u64 {
        self.table.evictions()
    }

    pub(super) fn table(&self) -> &Arc<FileTable> {
        &self.table
    }

    pub(super) fn system(&self) -> &dyn FileSystem {
        &*self.system
    }

    /// The interface for changing files, unless the file system is read-only.
    pub(super) fn writer(&self) -> Option<&dyn WritableFiles> {
        self.writer.as_deref()
    }
}

impl fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFiles")
            .field("limit", &self.limit())
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}
