//! The flushes in flight, and up to where the WAL is durable.
//!
//! ```text
//!   WAL       ── durable ──┬── flush 1 ──┬── flush 2 ──┬─ complete ─┬─ being copied ─┬ reserved
//!                                                      claimed
//! ```
//! A session whose record no flush in flight covers begins another flush immediately, up to a limit. In PostgreSQL it
//! first waits for `WALWriteLock`, so on average a commit takes one and a half flushes.
//!
//! **What overlaps.** A flush claims the WAL from where the one before ended. The next one may begin when the write of that
//! one has ended, so that it finds the bytes in the last block, or at once if that block is closed ([`super::filler`]).
//! Through the page cache with fdatasync, no block is closed, since a write takes microseconds: writes are in order,
//! and only syncs overlap. Otherwise a flush closes its block if another is in flight, or if a session has waited for
//! an open block. So a single client writes no fillers.
//!
//! **What a sync makes durable**: all writes to its file that had ended when it began. So if a sync ends, other flushes
//! of the same segment whose write had ended are durable too; one of another segment has to end itself. The kernel reports
//! a failed write once per open file, and only to files opened before it was reported. So every lane opens the segment
//! itself, and its sync vouches only for flushes that wrote after that. A durable write vouches only for itself.

use std::collections::VecDeque;

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_format::Lsn;
use trunkline_format::wal::SegmentSize;

use super::error::LogWriterError;
use super::lane::Lane;

/// A flush in flight, and the part of the WAL that it has claimed.
#[derive(Debug)]
struct Claim {
    flush: u64,
    segment: u64,
    end: Lsn,
    /// No other flush writes its last block.
    is_closed: bool,
    /// The number of writes that had ended when its own write ended, including that one. `None` until then.
    written: Option<u64>,
    is_durable: bool,
}

/// What changes with each flush.
struct State {
    /// Those that no flush uses.
    lanes: Vec<Lane>,
    /// Whether a session is beginning a flush, and has not yet claimed a part of the WAL.
    is_beginning: bool,
    /// In the order of the WAL.
    in_flight: VecDeque<Claim>,
    /// The number of the next flush.
    next_flush: u64,
    /// How many writes have ended.
    writes: u64,
    /// Whether flushes may close their blocks.
    may_close: bool,
    /// Whether a session could not begin a flush beside another one because that one's last block was open.
    is_contended: bool,
    failure: Option<LogWriterError>,
}

/// The flushes of a log.
pub(super) struct Flushes {
    state: Mutex<State>,
    segment_size: SegmentSize,
    durable: AtomicU64,
    written: AtomicU64,
    claimed: AtomicU64,
    /// Whether a session may begin a flush.
    may_begin: AtomicBool,
    has_failed: AtomicBool,
}

/// A flush that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewFlush {
    /// Its number.
    pub(super) number: u64,
    /// Whether it should close its last block, since others may begin beside it.
    pub(super) closes_block: bool,
}

/// What a session that needs the WAL has to do next.
#[expect(clippy::large_enum_variant, reason = "moved once for each flush")]
pub(super) enum FlushStep {
    /// Claim a part of the WAL from [`Flushes::claimed`] on, and make it durable.
    Begin(Lane, NewFlush),
    /// Wait.
    Wait,
}

/// Which flushes an I/O that has ended makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vouches {
    /// Only its own.
    ForItself,
    /// All flushes of its segment from this number on whose writes had ended before.
    Since(u64),
}

impl Flushes {
    /// No flush in flight, and a log that is durable up to `durable`. There can be as many flushes as lanes.
    pub(super) fn new(
        durable: Lsn,
        segment_size: SegmentSize,
        lanes: Vec<Lane>,
        closes_blocks: bool,
    ) -> Self {
        let state = State {
            is_beginning: false,
            in_flight: VecDeque::with_capacity(lanes.len()),
            next_flush: 0,
            writes: 0,
            may_close: closes_blocks && lanes.len() > 1,
            is_contended: false,
            failure: None,
            lanes,
        };
        Self {
            state: Mutex::new(state),
            segment_size,
            durable: AtomicU64::new(durable.0),
            written: AtomicU64::new(durable.0),
            claimed: AtomicU64::new(durable.0),
            may_begin: AtomicBool::new(true),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Up to where the log is durable.
    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    /// Up to where all of it was written.
    pub(super) fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::SeqCst))
    }

    /// Up to where flushes have claimed it.
    pub(super) fn claimed(&self) -> Lsn {
        Lsn(self.claimed.load(Ordering::SeqCst))
    }

    /// Whether a waiter for `wanted` should stop waiting: it is durable, another flush may begin, or one has failed.
    pub(super) fn is_ready(&self, wanted: Lsn) -> bool {
        self.durable() >= wanted
            || self.may_begin.load(Ordering::SeqCst) && self.claimed() < wanted
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
        if self.claimed() >= wanted {
            return Ok(FlushStep::Wait);
        }
        if !self.may_begin(&state) {
            state.is_contended |= state.is_block_open();
            return Ok(FlushStep::Wait);
        }
        let Some(lane) = state.lanes.pop() else { return Ok(FlushStep::Wait) };
        state.is_beginning = true;
        let is_beside = !state.in_flight.is_empty() || state.is_contended;
        state.is_contended = false;
        let new = NewFlush { number: state.next_flush, closes_block: state.may_close && is_beside };
        state.next_flush += 1;
        self.update(&state);
        Ok(FlushStep::Begin(lane, new))
    }

    /// Claims the WAL up to `end`, in a segment, for the flush that is beginning. `is_closed` says that no other flush
    /// will write its last block.
    pub(super) fn claim(&self, flush: u64, segment: u64, end: Lsn, is_closed: bool) {
        let mut state = self.state.lock();
        state.is_beginning = false;
        let (written, is_durable) = (None, false);
        state.in_flight.push_back(Claim { flush, segment, end, is_closed, written, is_durable });
        self.claimed.store(end.0, Ordering::SeqCst);
        self.update(&state);
    }

    /// Ends the write of a flush. Returns by how many bytes [`Flushes::written`] has advanced.
    pub(super) fn end_write(&self, flush: u64) -> u64 {
        let mut state = self.state.lock();
        state.writes += 1;
        let writes = state.writes;
        let mine = state.in_flight.iter_mut().filter(|claim| claim.flush == flush);
        mine.for_each(|claim| claim.written = Some(writes));
        let written = state.in_flight.iter().take_while(|claim| claim.written.is_some()).last();
        let before = self.written();
        let after = written.map_or(before, |claim| claim.end.max(before));
        self.written.store(after.0, Ordering::SeqCst);
        self.update(&state);
        after.0 - before.0
    }

    /// Ends a flush, whose last I/O makes some flushes durable.
    pub(super) fn end(&self, flush: u64, vouches: Vouches, lane: Lane) {
        let mut state = self.state.lock();
        state.lanes.push(lane);
        let mine = state.in_flight.iter().find(|claim| claim.flush == flush);
        let (segment, written) = mine.map(|claim| (claim.segment, claim.written)).unzip();
        let is_covered = |claim: &Claim| match vouches {
            Vouches::ForItself => claim.flush == flush,
            Vouches::Since(since) => {
                let is_written = claim.written.is_some() && claim.written <= written.flatten();
                claim.flush >= since && Some(claim.segment) == segment && is_written
            }
        };
        let covered = state.in_flight.iter_mut().filter(|claim| is_covered(claim));
        covered.for_each(|claim| claim.is_durable = true);
        while state.failure.is_none()
            && let Some(first) = state.in_flight.pop_front_if(|first| first.is_durable)
        {
            self.durable.store(first.end.0, Ordering::SeqCst);
        }
        self.update(&state);
    }

    /// Flushes that begin after this close no blocks any more, so they insert no records.
    pub(super) fn close_no_blocks(&self) {
        self.state.lock().may_close = false;
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
        let next = self.segment_size.segment_of(self.claimed());
        let is_near = state.in_flight.front().is_none_or(|first| next <= first.segment + 1);
        !state.is_beginning && !state.lanes.is_empty() && is_near && !state.is_block_open()
    }
}

impl State {
    /// Whether the last block that a flush has claimed is being written, and another flush would have to write it, too.
    fn is_block_open(&self) -> bool {
        let last = self.in_flight.back();
        last.is_some_and(|last| !last.is_closed && last.written.is_none())
    }
}
