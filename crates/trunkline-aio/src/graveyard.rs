//! What completers must not drop themselves.
//!
//! A completion must not block, and the last user of a file or of a set of operations may be a
//! completion: its issuer has gone. Closing a file may wait for a network or a FUSE daemon, and
//! dropping callbacks runs the embedder's code, down to the end of an instance. So a completer
//! leaves both here, for a worker that has nothing better to do.

use crate::file::{File, Unused};
use crate::slots::SlotTable;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};

#[derive(Debug)]
pub(crate) struct Graveyard {
    files: Mutex<Vec<Unused>>,
    tables: Mutex<Vec<SlotTable>>,
    count: AtomicUsize,
}

impl Graveyard {
    /// Room for one file and one table of every handle, so that burying never allocates.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            files: Mutex::new(Vec::with_capacity(capacity)),
            tables: Mutex::new(Vec::with_capacity(capacity)),
            count: AtomicUsize::new(0),
        }
    }

    /// Gives up a clone. True if the file now waits here to be closed.
    pub(crate) fn bury_file(&self, file: File) -> bool {
        file.give_up().is_some_and(|unused| self.keep(&self.files, unused))
    }

    /// Gives up a share of a table. True if the table now waits here to be dropped.
    pub(crate) fn bury_table(&self, table: Arc<SlotTable>) -> bool {
        Arc::into_inner(table).is_some_and(|table| self.keep(&self.tables, table))
    }

    fn keep<T>(&self, kept: &Mutex<Vec<T>>, thing: T) -> bool {
        let mut kept = kept.lock();
        // Full only if more have been abandoned than there are handles while no worker had a
        // moment; then the completer drops it after all.
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

    /// A file to close on a lane that `may` be used.
    pub(crate) fn take_file(&self, may: impl Fn(usize) -> bool) -> Option<Unused> {
        if self.is_empty() {
            return None;
        }
        let mut files = self.files.lock();
        let at = files.iter().position(|file| may(file.lane()))?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(files.swap_remove(at))
    }

    /// Whether there is a table to drop.
    pub(crate) fn has_tables(&self) -> bool {
        !self.is_empty() && !self.tables.lock().is_empty()
    }

    /// A table to drop.
    pub(crate) fn take_table(&self) -> Option<SlotTable> {
        if self.is_empty() {
            return None;
        }
        let table = self.tables.lock().pop()?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(table)
    }

    /// Closes and drops everything here, in the calling thread: for a session, without workers.
    pub(crate) fn clear(&self) {
        self.close_all();
        while let Some(table) = self.take_table() {
            drop(table);
        }
    }

    /// Closes every file here, in the calling thread: for one that is short of descriptors.
    pub(crate) fn close_all(&self) {
        while let Some(file) = self.take_file(|_| true) {
            drop(file);
        }
    }
}
