//! Writable clusters: the data directories whose pages may be changed, and the write-ahead log that
//! protects them.
//!
//! A buffer tag contains just the number of the cluster. To write out a page, to find the file for
//! `sync_file_range`, or to report the path in an error message, the pool needs the cluster's
//! [`Storage`], which it looks up in this table. A cluster that was opened read-only is never added
//! to the table, so the pool refuses to change its pages.
//!
//! We keep the write-ahead log here too, because the WAL-before-data rule only applies to pages of
//! writable clusters: such a page must not be written until the log is durable up to its LSN
//! (PostgreSQL's `XLogFlush` in `FlushBuffer`).

use super::error::WriteError;
use super::tag::BufferTag;
use crate::log::{Log, LogError};
use crate::storage::{Relation, Storage};
use crate::waiting::{Waiting, slept};
use std::collections::BTreeMap;
use std::fmt;
use std::task::{Poll, ready};
use trunkline_aio::Session;
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

    /// If the cluster was opened for writing, allows its pages to be changed from now on. We must
    /// insert the storage before setting the bit, because as soon as a page is dirty, another
    /// session may want to write it and must be able to find the file.
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

    /// The relation that a page belongs to, or `None` if its cluster isn't writable or has been
    /// closed.
    pub(crate) fn relation(&self, tag: BufferTag) -> Option<Relation> {
        Some(self.storage(tag.cluster())?.relation(tag.locator(), tag.fork()))
    }

    /// Returns all writable clusters. If the program has closed a cluster and there is nothing left
    /// to write or fsync in it, we drop it from the table first. Otherwise, its files would remain
    /// open until the pool itself is dropped. `is_in_use` must return whether the cluster has any
    /// page that is dirty, pinned or under I/O.
    ///
    /// If an fsync has failed, we must keep the cluster, so that every later checkpoint of it fails
    /// too.
    pub(crate) fn open_storages(&self, is_in_use: impl Fn(u16) -> bool) -> Vec<Storage> {
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        let mut storages = self.storages.lock();
        storages.retain(|&number, storage| {
            // We can safely drop the cluster, because no session can start to use one of its pages
            // after this test. To do that, a session would need either an existing pin, in which
            // case the cluster is in use, or a reference to the storage, but we're holding the last
            // one.
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
        // When the last clone is dropped, the cluster's files are closed. That may block, so we
        // must not do it while holding the lock.
        drop(closed);
        open
    }

    /// The position up to which the log is durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.log.durable()
    }

    /// Makes the log durable up to a position (PostgreSQL's `XLogFlush`). Since this has to wait
    /// for storage, the caller must not have any staged I/O and must not hold a claim on a page.
    /// Otherwise, other sessions would have to wait for those in the meantime.
    ///
    /// # Errors
    /// We could not write the log, the session was cancelled, or the log ends before `lsn`. In the
    /// last case, the page with that LSN must be damaged.
    pub(crate) fn flush_log(
        &self,
        waiting: &mut Waiting<'_, '_>,
        session: &mut Session,
        lsn: Lsn,
    ) -> Poll<Result<(), WriteError>> {
        let flushed = match waiting {
            Waiting::Sleep => Poll::Ready(self.log.flush(session, lsn)),
            Waiting::Wake(context, wait) => self.log.poll_flush(context, session, wait, lsn),
        };
        ready!(flushed)?;
        Poll::Ready(match self.log.durable() < lsn {
            true => Err(LogError::beyond_end(lsn).into()),
            false => Ok(()),
        })
    }

    /// [`WritableClusters::flush_log`] for a thread.
    pub(crate) fn sleep_for_log(&self, session: &mut Session, lsn: Lsn) -> Result<(), WriteError> {
        slept(self.flush_log(&mut Waiting::Sleep, session, lsn))
    }
}
