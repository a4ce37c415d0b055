//! Deferred drops: files and slot tables that a completing thread must not drop itself.
//!
//! A completion must not block. However, if the issuer has already gone away, the completing thread
//! may hold the last clone of a file or the last reference to a slot table. Closing the file could
//! block on a network or a FUSE daemon, and dropping the callbacks runs the embedder's code, which
//! might even shut down an instance. So the completing thread leaves both here, and an idle worker
//! drops them.

use crate::facade::Mutex;
use crate::facade::atomic::{AtomicUsize, Ordering};
use crate::storage::file::{AbandonedFile, File};
use crate::tables::slots::SlotTable;
use std::sync::Arc;

/// Files and slot tables waiting to be dropped.
#[derive(Debug)]
pub(crate) struct DeferredDrops {
    files: Mutex<Vec<AbandonedFile>>,
    tables: Mutex<Vec<SlotTable>>,
    /// Number of files and tables. Lets us check for an empty set without taking a lock.
    count: AtomicUsize,
}

impl DeferredDrops {
    /// Has room for one file and one table per handle, so that deferring never allocates.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            files: Mutex::new(Vec::with_capacity(capacity)),
            tables: Mutex::new(Vec::with_capacity(capacity)),
            count: AtomicUsize::new(0),
        }
    }

    /// Drops a clone of a file. If it was the last clone, we keep the file here until a worker
    /// closes it, and return true.
    pub(crate) fn defer_file(&self, file: File) -> bool {
        file.give_up().is_some_and(|file| self.keep(&self.files, file))
    }

    /// Drops a reference to a table. If it was the last reference, we keep the table here until a
    /// worker drops it, and return true.
    pub(crate) fn defer_table(&self, table: Arc<SlotTable>) -> bool {
        Arc::into_inner(table).is_some_and(|table| self.keep(&self.tables, table))
    }

    fn keep<T>(&self, kept: &Mutex<Vec<T>>, thing: T) -> bool {
        let mut kept = kept.lock();
        // The list can be full only if, since a worker was last idle, more files have been
        // abandoned than there are handles. In that case, we drop this file right here in the
        // completion. Closing it may block, but that's better than growing the list, which could
        // fail.
        if kept.len() == kept.capacity() {
            return false;
        }
        kept.push(thing);
        self.count.fetch_add(1, Ordering::SeqCst);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Takes a file to close, but only from a lane that `may` accepts. This lets the caller make
    /// sure that files on a hung mount don't occupy more workers than their lane's share.
    pub(crate) fn take_file(&self, may: impl Fn(usize) -> bool) -> Option<AbandonedFile> {
        if self.is_empty() {
            return None;
        }
        let mut files = self.files.lock();
        let at = files.iter().position(|file| may(file.lane()))?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(files.swap_remove(at))
    }

    /// Whether a table is waiting to be dropped.
    pub(crate) fn has_tables(&self) -> bool {
        !self.is_empty() && !self.tables.lock().is_empty()
    }

    /// Takes a table to drop.
    pub(crate) fn take_table(&self) -> Option<SlotTable> {
        if self.is_empty() {
            return None;
        }
        let table = self.tables.lock().pop()?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(table)
    }

    /// Drops everything in the calling thread, for instances without workers.
    pub(crate) fn drop_all(&self) {
        self.close_all();
        while let Some(table) = self.take_table() {
            drop(table);
        }
    }

    /// Closes every file in the calling thread, for a caller that has run out of descriptors.
    pub(crate) fn close_all(&self) {
        while let Some(file) = self.take_file(|_| true) {
            drop(file);
        }
    }
}
