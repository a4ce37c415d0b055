//! Writable clusters: the data directories in which pages may be changed, and the write-ahead log
//! that protects them.
//!
//! A buffer tag contains only a cluster number. To write the page, to find its file for
//! `sync_file_range`, or to report its path in an error, the pool needs the cluster's [`Storage`].
//! This table maps the number to the storage. A cluster opened read-only is never added, so the
//! pool refuses to change its pages.
//!
//! The write-ahead log is kept here because only pages of writable clusters are subject to WAL
//! before data: such a page may be written only after the log is durable up to its LSN
//! (PostgreSQL's `XLogFlush` in `FlushBuffer`).

use super::error::WriteError;
use super::tag::BufferTag;
use crate::log::{Log, LogError};
use crate::storage::{Relation, Storage};
use std::collections::BTreeMap;
use std::fmt;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_format::Lsn;

/// The writable clusters of a pool, and its log.
pub(crate) struct WritableClusters {
    storages: Mutex<BTreeMap<u16, Storage>>,
    /// One bit per cluster number, so that `is_writable` needs no lock.
    writable: Box<[AtomicU64]>,
    log: Box<dyn Log>,
}

impl fmt::Debug for WritableClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WritableClusters({} clusters)", self.storages.lock().len())
    }
}

impl WritableClusters {
    /// A table without clusters.
    pub(crate) fn new(log: Box<dyn Log>) -> Self {
        let words = usize::from(u16::MAX) / 64 + 1;
        let writable = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { storages: Mutex::default(), writable, log }
    }

    /// Allows changes to the cluster's pages from now on, if the cluster was opened for writing.
    /// The storage is inserted before the bit is set, so a page can't become dirty before its
    /// writer can find the file.
    pub(crate) fn allow_writes(&self, storage: &Storage) {
        let number = storage.number();
        if storage.is_writable() && !self.is_writable(number) {
            self.storages.lock().entry(number).or_insert_with(|| storage.clone());
            let (word, bit) = Self::bit(number);
            self.writable[word].fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Whether pages of the cluster may be changed.
    pub(crate) fn is_writable(&self, cluster: u16) -> bool {
        let (word, bit) = Self::bit(cluster);
        self.writable[word].load(Ordering::SeqCst) & bit != 0
    }

    fn bit(cluster: u16) -> (usize, u64) {
        (usize::from(cluster / 64), 1 << (cluster % 64))
    }

    /// The storage of a writable cluster.
    pub(crate) fn storage(&self, cluster: u16) -> Option<Storage> {
        self.storages.lock().get(&cluster).cloned()
    }

    /// The relation of a page, if its cluster is writable and not yet closed.
    pub(crate) fn relation(&self, tag: BufferTag) -> Option<Relation> {
        Some(self.storage(tag.cluster())?.relation(tag.locator(), tag.fork()))
    }

    /// All writable clusters. Clusters that the program has closed, and that have nothing left to
    /// write or to sync, are dropped first. Otherwise the pool would keep their files open until it
    /// is dropped itself. `is_in_use` reports whether a page of a cluster is dirty, pinned or under
    /// I/O.
    ///
    /// A cluster with a failed fsync stays, because no later checkpoint of it may succeed.
    pub(crate) fn open_storages(&self, is_in_use: impl Fn(u16) -> bool) -> Vec<Storage> {
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        let mut storages = self.storages.lock();
        storages.retain(|&number, storage| {
            // A session can reach one of the cluster's pages only through an existing pin, or
            // through the storage, to which we hold the last reference. So no session can start
            // using a page after this test.
            let over =
                storage.is_last() && storage.pending_fsyncs().is_durable() && !is_in_use(number);
            if over {
                let (word, bit) = Self::bit(number);
                self.writable[word].fetch_and(!bit, Ordering::SeqCst);
            }
            if over { &mut closed } else { &mut open }.push(storage.clone());
            !over
        });
        drop(storages);
        // Dropping the last clone closes the cluster's files. That may block, so it must not happen
        // under the lock.
        drop(closed);
        open
    }

    /// The position up to which the log is durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.log.durable()
    }

    /// Makes the log durable up to a position (PostgreSQL's `XLogFlush`). The caller must not have
    /// staged I/O and must not hold a claim on a page, because this function waits for storage, and
    /// other sessions may be waiting for that I/O or that page.
    ///
    /// # Errors
    /// The log could not be written, or the log ends before `lsn`. In the latter case the page with
    /// that LSN is damaged.
    pub(crate) fn flush_log(&self, lsn: Lsn) -> Result<(), WriteError> {
        self.log.flush(lsn)?;
        match self.log.durable() < lsn {
            true => Err(LogError::beyond_end(lsn).into()),
            false => Ok(()),
        }
    }
}
