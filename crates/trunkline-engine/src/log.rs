//! The write-ahead log, as far as writing pages needs it: up to where it is durable.
//!
//! A page must not reach the disk before the log does that says how it came to be so. Whoever writes
//! pages asks for the largest position among them and has the log made durable up to there, once for
//! many pages. The log itself is still to come; what stands here is the question, and an answer for
//! changes that are not logged.

use std::fmt;
use std::io;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_format::Lsn;

/// The log could not be made durable: nothing that depends on it may be written, now or later.
#[derive(Debug)]
pub struct LogError {
    /// Up to where it was to be durable.
    pub wanted: Lsn,
    /// The system's answer.
    pub source: io::Error,
}

impl LogError {
    /// A position that no record has: the page that names it is damaged, or of another log.
    pub(crate) fn beyond_end(wanted: Lsn) -> Self {
        Self { wanted, source: io::Error::other("the log ends before that") }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not make the log durable up to {}: {}", self.wanted, self.source)
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Where the log is durable.
pub trait Log: Send + Sync {
    /// Everything before this position is durable. Only grows.
    fn durable(&self) -> Lsn;

    /// Makes the log durable up to `lsn` at least, if it is not, and better up to its end: the next
    /// page that is written needs a later position. May wait for storage; called without any page
    /// locked and without staged I/O.
    ///
    /// # Errors
    /// The log could not be written, or it ends before `lsn`.
    fn flush(&self, lsn: Lsn) -> Result<(), LogError>;
}

/// For pages whose changes are not logged: temporary and unlogged relations, and bulk loads that
/// are made durable as a whole.
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

/// A log without records: it hands out positions and remembers up to where it was asked to be
/// durable. For embedders that log elsewhere, and for proofs that nobody writes too early. Clones are
/// the same log.
#[derive(Debug, Clone, Default)]
pub struct PositionLog(Arc<Positions>);

#[derive(Debug, Default)]
struct Positions {
    end: AtomicU64,
    durable: AtomicU64,
    flushes: AtomicU64,
}

impl PositionLog {
    /// Adds a record of so many bytes; the position of its end.
    pub fn append(&self, bytes: u64) -> Lsn {
        Lsn(self.0.end.fetch_add(bytes, Ordering::SeqCst) + bytes)
    }

    /// Times that it had to be made durable.
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
            // A group: everything that was appended until now.
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
