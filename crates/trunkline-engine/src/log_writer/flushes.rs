//! The flushes in flight, and up to where the WAL is durable.
//!
//! ```text
//!   WAL       ── durable ──┬── sync 1 ──┬── sync 2 ──┬─ complete ─┬─ being copied ─┬ reserved
//!                                                    written
//! ```
//! A session whose record no flush in flight covers begins another flush immediately, up to a limit. In PostgreSQL it
//! first waits for `WALWriteLock`, so on average a commit takes one and a half flushes.
//!
//! Writes are serialized; syncs overlap. The page cache takes a write in microseconds, and in this order a later
//! write finds the bytes of an earlier one in its page. A sync makes durable all writes to its file that had ended
//! when it began. So if a sync ends, all earlier flushes of the same segment are durable too; one of an earlier
//! segment has to end itself. The kernel reports a failed write once per open file, and only to files
//! opened before it was reported. So every lane opens the segment itself, and its sync vouches only for flushes that
//! wrote after that.

use std::collections::VecDeque;

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_format::Lsn;
use trunkline_format::wal::SegmentSize;

use super::error::LogWriterError;
use super::lane::Lane;

/// A part of the WAL that was written, and whose sync hasn't ended.
#[derive(Debug)]
struct PendingSync {
    flush: u64,
    segment: u64,
    end: Lsn,
    is_synced: bool,
}

/// What changes with each flush.
struct State {
    /// Those that no flush uses.
    lanes: Vec<Lane>,
    /// Whether a session is writing, or about to.
    is_writing: bool,
    pending: VecDeque<PendingSync>,
    /// The number of the next flush.
    next_flush: u64,
    failure: Option<LogWriterError>,
}

/// The flushes of a log.
pub(super) struct Flushes {
    state: Mutex<State>,
    segment_size: SegmentSize,
    durable: AtomicU64,
    written: AtomicU64,
    /// Whether a session may begin a flush.
    may_begin: AtomicBool,
    has_failed: AtomicBool,
}

/// What a session that needs the WAL has to do next.
#[expect(clippy::large_enum_variant, reason = "moved once for each flush")]
pub(super) enum FlushStep {
    /// Write from [`Flushes::written`] on, and sync, as the flush with this number.
    Begin(Lane, u64),
    /// Wait.
    Wait,
}

impl Flushes {
    /// No flush in flight, and a log that is durable up to `durable`.
    pub(super) fn new(durable: Lsn, segment_size: SegmentSize, lanes: Vec<Lane>) -> Self {
        let pending = VecDeque::with_capacity(lanes.len());
        let state = State { lanes, is_writing: false, pending, next_flush: 0, failure: None };
        Self {
            state: Mutex::new(state),
            segment_size,
            durable: AtomicU64::new(durable.0),
            written: AtomicU64::new(durable.0),
            may_begin: AtomicBool::new(true),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Up to where the log is durable.
    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    /// Up to where it was written.
    pub(super) fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::SeqCst))
    }

    /// Whether a waiter for `wanted` should stop waiting: it is durable, another flush may begin, or one has failed.
    pub(super) fn is_ready(&self, wanted: Lsn) -> bool {
        self.durable() >= wanted
            || self.may_begin.load(Ordering::SeqCst) && self.written() < wanted
            || self.has_failed()
    }

    /// What to do next to make the WAL durable up to `wanted`.
    ///
    /// # Errors
    /// An earlier write or sync has failed.
    pub(super) fn step(&self, wanted: Lsn) -> Result<FlushStep, LogWriterError> {
        let mut state = self.state.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if !self.may_begin(&state) || self.written() >= wanted {
            return Ok(FlushStep::Wait);
        }
        let Some(lane) = state.lanes.pop() else { return Ok(FlushStep::Wait) };
        state.is_writing = true;
        self.update(&state);
        Ok(FlushStep::Begin(lane, state.next_flush))
    }

    /// Ends the write of a flush: the WAL is written up to `end`, in a segment.
    pub(super) fn end_write(&self, flush: u64, segment: u64, end: Lsn) {
        let mut state = self.state.lock();
        state.is_writing = false;
        state.next_flush = flush + 1;
        state.pending.push_back(PendingSync { flush, segment, end, is_synced: false });
        self.written.store(end.0, Ordering::SeqCst);
        self.update(&state);
    }

    /// Ends the sync of a flush, through a file that vouches for flushes from `since` on.
    pub(super) fn end_sync(&self, flush: u64, since: u64, lane: Lane) {
        let mut state = self.state.lock();
        state.lanes.push(lane);
        let segment = state.pending.iter().find(|it| it.flush == flush).map(|it| it.segment);
        let is_covered =
            |it: &PendingSync| (since..=flush).contains(&it.flush) && Some(it.segment) == segment;
        let covered = state.pending.iter_mut().filter(|it| is_covered(it));
        covered.for_each(|it| it.is_synced = true);
        while state.failure.is_none()
            && let Some(first) = state.pending.pop_front_if(|first| first.is_synced)
        {
            self.durable.store(first.end.0, Ordering::SeqCst);
        }
        self.update(&state);
    }

    /// Notes that a write or a sync has failed. Nothing becomes durable any more.
    pub(super) fn fail(&self, failure: LogWriterError) {
        let mut state = self.state.lock();
        state.failure.get_or_insert(failure);
        self.has_failed.store(true, Ordering::SeqCst);
    }

    /// Whether a write or a sync has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// The failure, if there was one.
    pub(super) fn failure(&self) -> Option<LogWriterError> {
        self.state.lock().failure.clone()
    }

    fn update(&self, state: &State) {
        self.may_begin.store(self.may_begin(state), Ordering::SeqCst);
    }

    /// Whether another flush may begin. No flush writes more than one segment ahead of the oldest that is not durable: if
    /// that one is lost in a crash, the WAL goes on after the gap, and recovery can tell such a gap from damage.
    fn may_begin(&self, state: &State) -> bool {
        let next = self.segment_size.segment_of(self.written());
        let is_near = state.pending.front().is_none_or(|first| next <= first.segment + 1);
        !state.is_writing && !state.lanes.is_empty() && is_near
    }
}
