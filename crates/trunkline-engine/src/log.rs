//! The part of the write-ahead log that flushing pages depends on: how far the WAL is durable.
//!
//! WAL before data: a page must not reach the disk before its changes' WAL records. In PostgreSQL,
//! `FlushBuffer` calls `XLogFlush` with the LSN of each page it writes. Here a session that flushes
//! several pages takes their largest LSN and calls [`Log::flush`] just once. The call may block, so
//! the session must not hold any content lock or have any staged I/O at that point.
//!
//! The engine doesn't write its own WAL yet. This module provides just the interface, an
//! implementation for unlogged changes, and an implementation that only counts LSNs.

use std::io;
use std::sync::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_format::Lsn;

/// The log could not be made durable, so no page that depends on it may be written, now or later.
#[derive(Debug, thiserror::Error)]
#[error("could not make the log durable up to {wanted}: {source}")]
pub struct LogError {
    /// The LSN up to which the log should have become durable.
    pub wanted: Lsn,
    /// The system call's error.
    pub source: io::Error,
}

impl LogError {
    /// No record has this LSN, so either the page is damaged, or it belongs to another log.
    pub(crate) fn beyond_end(wanted: Lsn) -> Self {
        Self { wanted, source: io::Error::other("the log ends before that") }
    }
}

/// A write-ahead log.
pub trait Log: Send + Sync {
    /// The LSN up to which the log is durable (`GetFlushRecPtr`). Must never decrease. Must be
    /// cheap and must not block, because we call it whenever we evict a dirty page.
    fn durable(&self) -> Lsn;

    /// Makes the log durable up to `lsn` (`XLogFlush`), and preferably up to its end, because the
    /// next page probably has a later LSN. May block on storage. The caller must not hold any
    /// content lock or staged I/O, so that other sessions don't have to wait.
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

/// The log for changes that aren't logged: temporary and unlogged relations, and bulk loads that
/// are made durable as a whole. It is always durable.
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

/// A log without records: it just assigns LSNs and tracks how far it has been flushed. Meant for
/// embedders that keep their WAL elsewhere, and for tests that verify that no page is written too
/// early. Clones refer to the same log.
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
    /// Appends a record of `bytes` bytes and returns its end LSN.
    pub fn append(&self, bytes: u64) -> Lsn {
        Lsn(self.0.end.fetch_add(bytes, Ordering::SeqCst) + bytes)
    }

    /// Number of [`Log::flush`] calls that weren't no-ops.
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
            // Group flush: flush everything appended so far, not just up to `lsn`. We take the
            // maximum because a concurrent flush may already have got further.
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
