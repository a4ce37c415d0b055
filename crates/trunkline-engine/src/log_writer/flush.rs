//! Flushing the WAL (`XLogFlush`).
//!
//! ```text
//!   begin ─▶ up to where records are complete, and perhaps a filler ─▶ claim ─▶ write ─▶ fdatasync ─▶ wake
//!                                                                        └ others may begin now, or after the write
//! ```
//! The session that needs the WAL executes the I/O itself. [`super::flushes`] decides which flushes overlap.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use trunkline_aio::facade::thread::yield_now;
use trunkline_aio::{File, PolledWait, Session};
use trunkline_format::Lsn;

use super::error::LogWriterError;
use super::filler::room_for_filler;
use super::flushes::{FlushStep, NewFlush, Vouches};
use super::lane::Lane;
use super::room::Room;
use super::writer::LogWriter;
use crate::log::{Log, LogError};

impl LogWriter {
    /// Makes the log durable up to `wanted`. If another flush is in flight and doesn't include it, begins one.
    pub(super) fn flush_up_to(
        &self,
        session: &mut Session,
        wanted: Lsn,
    ) -> Result<(), LogWriterError> {
        while self.flushes.durable() < wanted {
            match self.flushes.step(wanted)? {
                FlushStep::Begin(lane, flush) => self.run_flush(lane, flush, wanted)?,
                FlushStep::Wait => {
                    let done = || self.flushes.is_ready(wanted);
                    if let Err(cancelled) = self.waiters.wait(session, wanted, done) {
                        // This session may have been chosen to begin the next flush.
                        self.wake();
                        return Err(cancelled.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes durable what is complete, at least up to `wanted` or the end of the segment.
    fn run_flush(
        &self,
        mut lane: Lane,
        flush: NewFlush,
        wanted: Lsn,
    ) -> Result<(), LogWriterError> {
        let start = self.flushes.claimed();
        let size = self.options.segment_size;
        let segment = size.segment_of(start);
        let is_direct = self.method.is_direct();
        let open = || self.segments.open(segment, is_direct);
        let opened = lane.segment(segment, flush.number, open);
        let opened = opened.map_err(|source| self.fail("open", segment, source))?;
        let mut end = self.wait_for_complete(wanted);
        let segment_end = size.start_of(segment + 1);
        if flush.closes_block && end < segment_end {
            end = match self.end_block() {
                Some(closed) => {
                    self.wait_for_complete(closed);
                    closed
                }
                // Others have inserted records meanwhile.
                None => self.complete(),
            };
        }
        let end = end.min(segment_end);
        let is_closed = self.method.writes_overlap() && end.0.is_multiple_of(self.method.block());
        self.flushes.claim(flush.number, segment, end, is_closed);
        if is_closed {
            self.wake();
        }
        let written = self.write(&mut lane, opened.file(), start, end);
        written.map_err(|source| self.fail("write to", segment, source))?;
        self.room.give(self.flushes.end_write(flush.number));
        let vouches = if self.method.writes_durably() {
            Vouches::ForItself
        } else {
            self.wake();
            let synced = lane.sync(opened.file(), false);
            synced.map_err(|source| self.fail("fdatasync", segment, source))?;
            Vouches::Since(opened.since())
        };
        self.flushes.end(flush.number, vouches, lane);
        self.wake();
        Ok(())
    }

    /// Ends the block that the last record ends in, with a filler if necessary. Returns where it ends. `None` if there is
    /// no room for a filler: sessions may have it, and it is free only after a flush.
    fn end_block(&self) -> Option<Lsn> {
        let wanted = room_for_filler(self.method.block());
        if !self.room.try_take(wanted) {
            return None;
        }
        let mut room = Room::new(&self.room, wanted);
        if !self.has_segments() {
            return None;
        }
        // The slot behind those of the inserters. One session at a time begins a flush.
        let slot = self.options.inserters.max(1);
        let place = (self.positions, self.method.block());
        self.filler.end_block(&self.reservations, slot, place, |reserved, buffer| {
            let bytes = buffer.seal(self.previous(reserved));
            self.pages.put_record(&self.ring, &self.positions, reserved, bytes);
            let (from, to) = (self.positions.end(reserved.start), self.positions.end(reserved.end));
            room.spend(to.0 - from.0);
        })
    }

    /// From here on, flushes insert no fillers, so that a shutdown checkpoint is the last record.
    ///
    /// # Errors
    /// As for [`Log::flush`].
    pub(crate) fn insert_no_more_fillers(
        &self,
        session: &mut Session,
    ) -> Result<(), LogWriterError> {
        self.flushes.close_no_blocks();
        // A flush that had begun before has ended when what it was begun for is durable.
        self.flush_up_to(session, self.end())
    }

    /// Waits until all records that begin before `wanted` have been copied. Inserters wait for nothing while they
    /// copy, so this is short. Returns up to where the log is complete.
    fn wait_for_complete(&self, wanted: Lsn) -> Lsn {
        loop {
            let complete = self.complete();
            if complete >= wanted {
                return complete;
            }
            yield_now();
        }
    }

    /// Writes a part of the log, and zeros up to the end of its last block.
    fn write(&self, lane: &mut Lane, file: &File, start: Lsn, end: Lsn) -> io::Result<()> {
        let from = self.method.write_start(start);
        let offset = u64::from(self.options.segment_size.offset(from));
        let length = end.0.next_multiple_of(self.method.block()) - from.0;
        let records = end.0 - from.0;
        let is_durable = self.method.writes_durably();
        lane.write(file, (offset, length), is_durable, |done, piece| {
            let here = records.saturating_sub(done).min(piece.len() as u64) as usize;
            let (records, zeros) = piece.split_at_mut(here);
            self.ring.copy(Lsn(from.0 + done), records);
            zeros.fill(0);
        })
    }

    fn fail(&self, operation: &'static str, segment: u64, source: io::Error) -> LogWriterError {
        let path = self.segments.path(segment);
        let failure = LogWriterError::Failed { operation, path, source: Arc::new(source) };
        self.flushes.fail(failure.clone());
        self.waiters.wake_all();
        self.requests.wake(Lsn(u64::MAX));
        failure
    }

    fn wake(&self) {
        let durable = self.flushes.durable();
        self.waiters.wake(durable, self.flushes.claimed());
        self.requests.wake(durable);
    }
}

impl Log for LogWriter {
    fn durable(&self) -> Lsn {
        self.flushes.durable()
    }

    fn flush(&self, session: &mut Session, lsn: Lsn) -> Result<(), LogError> {
        if lsn > self.end() {
            return Err(LogError::beyond_end(lsn));
        }
        self.flush_up_to(session, lsn).map_err(|error| match error {
            LogWriterError::Cancelled(_) => LogError::Cancelled,
            other => LogError::Flush { wanted: lsn, source: io::Error::other(other) },
        })
    }

    fn poll_flush(
        &self,
        context: &mut Context<'_>,
        session: &mut Session,
        wait: &mut PolledWait,
        lsn: Lsn,
    ) -> Poll<Result<(), LogError>> {
        let failed = |source| LogError::Flush { wanted: lsn, source };
        if lsn > self.end() {
            return Poll::Ready(Err(LogError::beyond_end(lsn)));
        }
        if self.durable() < lsn {
            self.requests.ask(lsn, context.waker());
            let is_served = || self.requests.is_served();
            let done = || self.durable() >= lsn || self.flushes.has_failed() || !is_served();
            if std::task::ready!(session.poll_for(context, wait, done)).is_err() {
                return Poll::Ready(Err(LogError::Cancelled));
            }
        }
        if self.durable() >= lsn {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(failed(match self.flushes.failure() {
            Some(failure) => io::Error::other(failure),
            None => io::Error::other("no thread flushes the WAL for tasks"),
        })))
    }
}
