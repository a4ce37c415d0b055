//! The interface to the write-ahead log that flushing pages needs: how far the log is durable.
//!
//! WAL before data: a page must not reach the disk before the WAL records of its changes. In
//! PostgreSQL, `FlushBuffer` calls `XLogFlush` with the LSN of each page that it writes. Here a
//! session that flushes several pages takes the largest LSN among them and calls [`Log::flush`]
//! once for all of them. The call may block, so during it the session holds no content lock and has
//! no staged I/O.
//!
//! The engine has no WAL of its own yet. This module has the interface, an implementation for
//! changes that are not logged, and one that only counts LSNs.

use std::io;
use std::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_format::Lsn;

/// The log could not be made durable. No page that depends on it may be written, now or later.
#[derive(Debug, thiserror::Error)]
#[error("could not make the log durable up to {wanted}: {source}")]
pub struct LogError {
    /// The LSN up to which it should have become durable.
    pub wanted: Lsn,
    /// The error of the system call.
    pub source: io::Error,
}

impl LogError {
    /// No record has this LSN: the page is damaged, or belongs to another log.
    pub(crate) fn beyond_end(wanted: Lsn) -> Self {
        Self { wanted, source: io::Error::other("the log ends before that") }
    }
}

/// A write-ahead log.
pub trait Log: Send + Sync {
    /// The LSN up to which the log is durable (`GetFlushRecPtr`). Never decreases. Must be cheap
    /// and must not block, because it is asked on the path of every eviction.
    fn durable(&self) -> Lsn;

    /// Makes the log durable up to `lsn` (`XLogFlush`), and preferably up to its end, because the
    /// next page probably has a later LSN. May block on storage. The caller holds no content lock
    /// and no staged I/O, so that other sessions can continue.
    ///
    /// # Errors
    /// The log could not be written, or it ends before `lsn`.
    fn flush(&self, lsn: Lsn) -> Result<(), LogError>;
}

/// A shared log.
impl<L: Log + ?Sized> Log for Arc<L> {
    fn durable(&self) -> Lsn {
        (**self).durable()
    }

    fn flush(&self, lsn: Lsn) -> Result<(), LogError> {
        (**self).flush(lsn)
    }
}

/// The log of changes that are not logged: temporary and unlogged relations, and bulk loads that
/// are made durable as a whole. Always durable.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlogged;

impl Log for Unlogged {
    fn durable(&self) -> Lsn {
        Lsn(u64::MAX)
    }

    fn flush(&self, _lsn: Lsn) -> Result<(), LogError> {
        Ok(())
    }
}

/// A log without records: it assigns LSNs and remembers up to where it was flushed. For embedders
/// that keep the WAL elsewhere, and for tests that verify that no page is written too early. Clones
/// are the same log.
#[derive(Debug, Clone, Default)]
pub struct PositionLog(Arc<Positions>);

/// Invariant: `durable` <= `end`. Both only grow.
#[derive(Debug, Default)]
struct Positions {
    end: AtomicU64,
    durable: AtomicU64,
    flushes: AtomicU64,
}

impl PositionLog {
    /// Appends a record of `bytes` bytes and returns the LSN of its end.
    pub fn append(&self, bytes: u64) -> Lsn {
        Lsn(self.0.end.fetch_add(bytes, Ordering::SeqCst) + bytes)
    }

    /// Calls of [`Log::flush`] that had something to do.
    pub fn flushes(&self) -> u64 {
        self.0.flushes.load(Ordering::SeqCst)
    }
}

impl Log for PositionLog {
    fn durable(&self) -> Lsn {
        Lsn(self.0.durable.load(Ordering::SeqCst))
    }

    fn flush(&self, lsn: Lsn) -> Result<(), LogError> {
        if self.durable() < lsn {
            // Group flush: everything appended so far. The maximum, because a concurrent flush may
            // have read a later end and be faster.
            let end = self.0.end.load(Ordering::SeqCst);
            if end < lsn.0 {
                return Err(LogError::beyond_end(lsn));
            }
            self.0.durable.fetch_max(end, Ordering::SeqCst);
            self.0.flushes.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
