//! The part of the write-ahead log that we need in order to flush pages: how far the WAL is
//! durable.
//!
//! WAL before data: a page must not reach the disk until the WAL records for its changes have. In
//! PostgreSQL, `FlushBuffer` calls `XLogFlush` for every page it writes, with that page's LSN.
//! Here, a session that wants to flush several pages calls [`Log::flush`] just once, with the
//! largest of their LSNs. Since that call may block, the session must not hold any content lock or
//! have any staged I/O at that point. There is one exception: a checkpoint holds a share lock on a
//! page whose LSN would otherwise advance again before the page can be written. A task of an async runtime must not block at all, so it polls
//! with [`Log::poll_flush`] instead. Both get the session that waits, so that a log can issue its
//! I/O through that session, and wait for it like for any other I/O.
//!
//! This module defines the interface, with one implementation for unlogged changes and another that
//! only tracks LSNs. `log_writer` implements it with a real WAL.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::{Cancelled, PolledWait, Session};
use trunkline_format::Lsn;

/// Why the log is not durable. We must not write a page that depends on it.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log could not be made durable.
    #[error("could not make the log durable up to {wanted}: {source}")]
    Flush {
        /// The LSN up to which the log should have become durable.
        wanted: Lsn,
        /// The system call's error.
        source: io::Error,
    },
    /// The session was cancelled. The flush may still succeed.
    #[error("{Cancelled}")]
    Cancelled,
}

impl LogError {
    /// The log doesn't contain a record with this LSN. Either the page is damaged, or it belongs to
    /// another log.
    pub(crate) fn beyond_end(wanted: Lsn) -> Self {
        Self::Flush { wanted, source: io::Error::other("the log ends before that") }
    }
}

impl From<Cancelled> for LogError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A write-ahead log.
pub trait Log: Send + Sync {
    /// The LSN up to which the log is durable (`GetFlushRecPtr`). It must never decrease. This is
    /// called whenever we evict a dirty page, so it must be cheap and must not block.
    fn durable(&self) -> Lsn;

    /// Makes the log durable at least up to `lsn` (`XLogFlush`). It's better to flush the log to
    /// its end, because the next page probably has a later LSN. This call may block on storage. The
    /// caller must not have any staged I/O or hold any content lock, because other sessions might
    /// have to wait for those in the meantime. The only lock it may hold is a share lock on one
    /// page, so the log must not change pages.
    ///
    /// `session` is the session that waits. The log may issue I/O through it
    /// ([`Class::Log`](trunkline_aio::Class::Log)) and wait in it.
    ///
    /// # Errors
    /// The log could not be written, it ends before `lsn`, or the session was cancelled.
    fn flush(&self, session: &mut Session, lsn: Lsn) -> Result<(), LogError>;

    /// [`Log::flush`] for a task. Never blocks: if the log isn't durable yet, starts or continues
    /// to flush it and returns `Pending`. The task is then woken and calls this again, usually with
    /// the same LSN.
    ///
    /// The log can wait by polling the session with `wait`, or it can keep the context's waker. A
    /// task may give up without notice. If that leaves a flush half done, the next call must be
    /// able to continue it, whichever task makes that call. So a log must keep the state of its
    /// flushes itself, and must not rely on `wait` to continue.
    ///
    /// # Errors
    /// As for [`Log::flush`].
    fn poll_flush(
        &self,
        context: &mut Context<'_>,
        session: &mut Session,
        wait: &mut PolledWait,
        lsn: Lsn,
    ) -> Poll<Result<(), LogError>>;
}

/// A shared log.
impl<L: Log + ?Sized> Log for Arc<L> {
    fn durable(&self) -> Lsn {
        (**self).durable()
    }

    fn flush(&self, session: &mut Session, lsn: Lsn) -> Result<(), LogError> {
        (**self).flush(session, lsn)
    }

    fn poll_flush(
        &self,
        context: &mut Context<'_>,
        session: &mut Session,
        wait: &mut PolledWait,
        lsn: Lsn,
    ) -> Poll<Result<(), LogError>> {
        (**self).poll_flush(context, session, wait, lsn)
    }
}

/// The log to use for changes that aren't logged: those to temporary and unlogged relations, and
/// bulk loads that are made durable as a whole. It always claims to be durable.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlogged;

impl Log for Unlogged {
    fn durable(&self) -> Lsn {
        Lsn(u64::MAX)
    }

    fn flush(&self, _session: &mut Session, _lsn: Lsn) -> Result<(), LogError> {
        Ok(())
    }

    fn poll_flush(
        &self,
        _context: &mut Context<'_>,
        _session: &mut Session,
        _wait: &mut PolledWait,
        _lsn: Lsn,
    ) -> Poll<Result<(), LogError>> {
        Poll::Ready(Ok(()))
    }
}

/// A log that has no records, but just assigns LSNs and tracks how far it has been flushed.
/// Embedders that keep their WAL elsewhere can use it, and so can tests that verify that no page is
/// written too early. All clones refer to the same log.
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

    fn flush(&self, _session: &mut Session, lsn: Lsn) -> Result<(), LogError> {
        if self.durable() < lsn {
            // Group flush: flush everything that has been appended so far, not just up to `lsn`. We
            // must take the maximum here, because a concurrent flush may have got further than we
            // have.
            let end = self.0.end.load(Ordering::SeqCst);
            if end < lsn.0 {
                return Err(LogError::beyond_end(lsn));
            }
            self.0.durable.fetch_max(end, Ordering::SeqCst);
            self.0.flushes.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Nothing has to be waited for, because this log doesn't do any I/O.
    fn poll_flush(
        &self,
        _context: &mut Context<'_>,
        session: &mut Session,
        _wait: &mut PolledWait,
        lsn: Lsn,
    ) -> Poll<Result<(), LogError>> {
        Poll::Ready(self.flush(session, lsn))
    }
}
