//! The open segment files of an engine, and the file system they come from.
//!
//! All clusters of an engine share one [`OpenFiles`], so `max_files_per_process` bounds the file
//! descriptors of the whole process. A cluster asks for a segment by name; [`super::file_table`]
//! returns the open file or opens it through the [`FileSystem`], closing another one if the limit
//! is reached.

use std::fmt;

use std::sync::Arc;
use trunkline_aio::Aio;

use super::file_table::FileTable;
use super::{FileSystem, KernelFiles, WritableFiles};

/// The table of open segment files and their file system. Clones share both.
#[derive(Clone)]
pub struct OpenFiles {
    table: Arc<FileTable>,
    system: Arc<dyn FileSystem>,
    /// The same file system as `system`, if it can be written. A cluster must also have been opened
    /// for writing.
    writer: Option<Arc<dyn WritableFiles>>,
}

impl OpenFiles {
    /// Files of the operating system for I/O through `aio`, at most `limit` of them open. Clusters
    /// of our own may be written through it.
    pub fn kernel(aio: &Aio, limit: usize) -> Self {
        Self::writable(limit, Arc::new(KernelFiles::new(aio)))
    }

    /// Files of another file system, for reading only.
    pub fn read_only(limit: usize, system: Arc<dyn FileSystem>) -> Self {
        Self { table: Arc::new(FileTable::new(limit)), system, writer: None }
    }

    /// Files of another file system, for reading and writing.
    pub fn writable(limit: usize, system: Arc<dyn WritableFiles>) -> Self {
        let writer = Some(Arc::clone(&system));
        Self { table: Arc::new(FileTable::new(limit)), system, writer }
    }

    /// The largest number of files kept open.
    pub fn limit(&self) -> usize {
        self.table.limit()
    }

    /// Files that are open now, including those being opened.
    pub fn open(&self) -> usize {
        self.table.open()
    }

    /// Lookups that found the file open.
    pub fn hits(&self) -> u64 {
        self.table.hits()
    }

    /// Files opened since the start.
    pub fn opens(&self) -> u64 {
        self.table.opens()
    }

    /// Files closed to stay within the limit.
    pub fn evictions(&self) -> u64 {
        self.table.evictions()
    }

    pub(super) fn table(&self) -> &Arc<FileTable> {
        &self.table
    }

    pub(super) fn system(&self) -> &dyn FileSystem {
        &*self.system
    }

    /// What can change files, unless the file system is read-only.
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
