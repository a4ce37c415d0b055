//! An engine's open segment files, and their file system.
//!
//! All of an engine's clusters share one [`OpenFiles`], so `max_files_per_process` bounds the whole
//! process's file descriptors. A cluster asks for a segment by name; [`super::file_table`] returns
//! the open file, or opens it through the [`FileSystem`], closing another file if the limit has
//! been reached.

use std::fmt;

use std::sync::Arc;
use trunkline_aio::Aio;

use super::file_system::{FileSystem, WritableFiles};
use super::file_table::FileTable;
use super::kernel::KernelFiles;

/// The open-file table and its file system. Clones share both.
#[derive(Clone)]
pub struct OpenFiles {
    table: Arc<FileTable>,
    system: Arc<dyn FileSystem>,
    /// The same file system as `system`, if it's writable. A cluster must also have been opened for
    /// writing.
    writer: Option<Arc<dyn WritableFiles>>,
}

impl OpenFiles {
    /// The operating system's files, for I/O through `aio`, with at most `limit` of them open. Our
    /// own clusters may be written through it.
    pub fn kernel(aio: &Aio, limit: usize) -> Self {
        Self::writable(limit, Arc::new(KernelFiles::new(aio)))
    }

    /// Another file system's files, for reading only.
    pub fn read_only(limit: usize, system: Arc<dyn FileSystem>) -> Self {
        Self { table: Arc::new(FileTable::new(limit)), system, writer: None }
    }

    /// Another file system's files, for reading and writing.
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
