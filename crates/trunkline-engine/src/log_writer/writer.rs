//! The WAL that sessions insert into and flush.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::thread::yield_now;
use trunkline_aio::facade::{self, Mutex};
use trunkline_aio::{Aio, Cancelled, PolledWait, Session};
use trunkline_format::wal::{ImagePolicy, LOG_PAGE_SIZE, LongHeader, UsablePositions};
use trunkline_format::{Lsn, PgVersion};

use super::error::LogWriterError;
use super::flushes::{FlushStep, Flushes};
use super::lane::Lane;
use super::options::LogWriterOptions;
use super::record_copy::PageIdentity;
use super::requests::Requests;
use super::reservation::{LENGTH_MAX, Reservations, Reserved};
use super::ring::Ring;
use super::room::{FreeRoom, Room, worst_case_bytes};
use super::segment_store::SegmentStore;
use super::waiters::Waiters;
use crate::log::{Log, LogError};
use crate::new_cluster::MARKER;
use crate::storage::WritableFiles;

/// The version whose records we write (decision 0046).
pub(super) const VERSION: PgVersion = PgVersion::V18;

/// The write-ahead log of a running cluster (`XLogCtl`): insertion, WAL buffers and flushing. All methods may be called
/// concurrently.
pub struct LogWriter {
    pub(super) options: LogWriterOptions,
    pub(super) pages: PageIdentity,
    pub(super) positions: UsablePositions,
    pub(super) reservations: Reservations,
    pub(super) ring: Ring,
    room: facade::Arc<FreeRoom>,
    segments: SegmentStore,
    /// The end of the segments that exist.
    created: AtomicU64,
    /// The lane for creating segments. Its lock serializes creation.
    creator: Mutex<Lane>,
    flushes: Flushes,
    waiters: Waiters,
    pub(super) redo: AtomicU64,
    /// Slots that no inserter has.
    pub(super) free_slots: Mutex<Vec<usize>>,
    pub(super) requests: Requests,
}

/// The LSNs of an inserted record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLocation {
    /// Where the record begins.
    pub start: Lsn,
    /// Where it ends: the LSN of the pages that it changes.
    pub end: Lsn,
}

impl LogWriter {
    /// Opens the log of the cluster in `root`, to continue where it ends. What follows the end in its segment is
    /// overwritten with zeros, later segments are removed, and everything from the redo point on is made durable: after
    /// a crash of the process alone, the end of the log may have been only in the page cache.
    ///
    /// # Errors
    /// [`LogWriterError::NotOurs`]: the cluster was not created by [`crate::new_cluster`].
    /// [`LogWriterError::File`]: a segment is missing or can't be written. [`LogWriterError::Resources`]: the instance has
    /// too few sessions or too little memory left.
    pub fn open(
        aio: &Aio,
        files: Arc<dyn WritableFiles>,
        root: &Path,
        options: LogWriterOptions,
    ) -> Result<Self, LogWriterError> {
        check_marker(&*files, root)?;
        let LogWriterOptions { timeline, segment_size, end, .. } = options;
        let mut creator = Lane::new(aio)?;
        let lanes = (0..options.flushes.max(1)).map(|_| Lane::new(aio));
        let lanes = lanes.collect::<Result<_, _>>()?;
        let segments = SegmentStore::new(files, &root.join("pg_wal"), timeline, segment_size);
        segments.erase_after(end, &mut creator)?;
        segments.sync(options.redo, end, &mut creator)?;
        // The segment that the last record ends in exists.
        let last = segment_size.segment_of(Lsn(end.0.saturating_sub(1)));
        let created = segment_size.start_of(last + 1);
        let buffers = options.buffers.clamp(64 << 10, segment_size.bytes());
        let ring = Ring::new((buffers as usize).next_multiple_of(LOG_PAGE_SIZE));
        let positions = UsablePositions::new(segment_size);
        let inserters = options.inserters.max(1);
        Ok(Self {
            pages: PageIdentity {
                version: VERSION,
                timeline,
                file: LongHeader::new(options.system_identifier, segment_size),
            },
            positions,
            reservations: Reservations::new(positions.position(end), inserters),
            room: facade::Arc::new(FreeRoom::new(ring.size())),
            ring,
            segments,
            created: AtomicU64::new(created.0),
            creator: Mutex::new(creator),
            flushes: Flushes::new(end, segment_size, lanes),
            waiters: Waiters::new(aio.notifier()),
            redo: AtomicU64::new(options.redo.0),
            free_slots: Mutex::new((0..inserters).collect()),
            requests: Requests::default(),
            options,
        })
    }

    /// The redo point of the latest checkpoint.
    pub fn redo(&self) -> Lsn {
        Lsn(self.redo.load(Ordering::SeqCst))
    }

    /// Where the last record ends that has been reserved, and the next one begins, apart from a page's header.
    pub fn end(&self) -> Lsn {
        self.positions.end(self.reservations.end())
    }

    /// Where the next record begins, if no other session inserts one before it.
    pub fn next_record(&self) -> Lsn {
        self.positions.start(self.reservations.end())
    }

    /// Up to where all records have been copied.
    pub(super) fn complete(&self) -> Lsn {
        self.positions.end(self.reservations.complete())
    }

    /// The options.
    pub fn options(&self) -> &LogWriterOptions {
        &self.options
    }

    /// Reserves buffer space for `records` records, of `bytes` bytes in all, and waits until there is as much. A session
    /// calls this before it changes the first page, since it can't insert without room. While it has room, it may lock
    /// pages that it has pinned, but it must not wait for I/O, pins or more room: others may wait for its room.
    ///
    /// `bytes` is the total length of the records, with record headers, block headers and full-page images in the worst
    /// case, but without alignment and page headers.
    ///
    /// # Errors
    /// [`LogWriterError`]: the records don't fit into half of `wal_buffers`, this run has written 32 TB, a segment can't
    /// be created, an earlier write or sync has failed, or the session was cancelled.
    pub fn room(
        &self,
        session: &mut Session,
        records: u64,
        bytes: u64,
    ) -> Result<Room, LogWriterError> {
        let wanted = worst_case_bytes(records, bytes);
        let most = (self.ring.size() / 2).min(LENGTH_MAX);
        if wanted > most {
            return Err(LogWriterError::RoomTooLarge { records, bytes: wanted, most });
        }
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        if self.reservations.is_exhausted() {
            return Err(LogWriterError::Exhausted);
        }
        loop {
            if self.room.try_take(wanted) {
                let room = Room::new(&self.room, wanted);
                if self.has_segments() {
                    return Ok(room);
                }
                // Others may use the room while the segment is created.
                drop(room);
                self.create_segments_up_to(self.end().0 + self.ring.size())?;
                continue;
            }
            let complete = self.complete();
            if complete > self.flushes.written() {
                self.flush_up_to(session, complete)?;
            } else if let Some(failure) = self.flushes.failure() {
                return Err(failure);
            } else if session.is_cancelled() {
                return Err(Cancelled.into());
            } else {
                // Others have the rest, and are about to use it or to give it back.
                yield_now();
            }
        }
    }

    /// Whether every record for which there is room now has a file: all room is in the ring.
    fn has_segments(&self) -> bool {
        self.end().0 + self.ring.size() <= self.created.load(Ordering::SeqCst)
    }

    /// Creates segments, so that at least one follows those that the sessions' records may need.
    ///
    /// # Errors
    /// [`LogWriterError::File`].
    pub fn create_segments_ahead(&self) -> Result<(), LogWriterError> {
        let ahead = u64::from(self.options.segment_size.bytes());
        self.create_segments_up_to(self.end().0 + self.ring.size() + ahead)
    }

    /// Why the WAL can't be written any more, if a write or sync of it has failed.
    pub fn failure(&self) -> Option<LogWriterError> {
        if self.flushes.has_failed() { self.flushes.failure() } else { None }
    }

    /// Removes the segments that are not needed for redo from `redo` on.
    ///
    /// # Errors
    /// [`LogWriterError::File`]. The next call removes what was left.
    pub(crate) fn remove_before(&self, redo: Lsn) -> Result<(), LogWriterError> {
        self.segments.remove_before(redo)
    }

    fn create_segments_up_to(&self, end: u64) -> Result<(), LogWriterError> {
        while self.created.load(Ordering::SeqCst) < end {
            let mut creator = self.creator.lock();
            let created = Lsn(self.created.load(Ordering::SeqCst));
            if created.0 < end {
                let size = self.options.segment_size;
                let segment = size.segment_of(created);
                self.segments.create(segment, &mut creator)?;
                self.created.store(size.start_of(segment + 1).0, Ordering::SeqCst);
            }
        }
        Ok(())
    }

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

    /// Writes and syncs what is complete, at least up to `wanted` or the end of the segment.
    fn run_flush(&self, mut lane: Lane, flush: u64, wanted: Lsn) -> Result<(), LogWriterError> {
        let start = self.flushes.written();
        let size = self.options.segment_size;
        let segment = size.segment_of(start);
        let end = self.wait_for_complete(wanted).min(size.start_of(segment + 1));
        let opened = lane.segment(segment, flush, || self.segments.open(segment));
        let opened = opened.map_err(|source| self.fail("open", segment, source))?;
        let written = self.write(&mut lane, opened.file(), start, end);
        written.map_err(|source| self.fail("write to", segment, source))?;
        self.flushes.end_write(flush, segment, end);
        self.room.give(end.0 - start.0);
        self.wake();
        let synced = lane.sync(opened.file(), false);
        synced.map_err(|source| self.fail("fdatasync", segment, source))?;
        self.flushes.end_sync(flush, opened.since(), lane);
        self.wake();
        Ok(())
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

    /// Writes a part of the log, and zeros up to the end of its last page.
    fn write(
        &self,
        lane: &mut Lane,
        file: &trunkline_aio::File,
        start: Lsn,
        end: Lsn,
    ) -> io::Result<()> {
        let offset = u64::from(self.options.segment_size.offset(start));
        let length = end.0.next_multiple_of(LOG_PAGE_SIZE as u64) - start.0;
        let records = end.0 - start.0;
        lane.write(file, offset, length, |done, piece| {
            let here = records.saturating_sub(done).min(piece.len() as u64) as usize;
            let (records, zeros) = piece.split_at_mut(here);
            self.ring.copy(Lsn(start.0 + done), records);
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
        self.waiters.wake(durable, self.flushes.written());
        self.requests.wake(durable);
    }

    pub(super) fn policy(&self, redo: Lsn) -> ImagePolicy {
        let LogWriterOptions { full_page_writes, compresses, checks_redo, .. } = self.options;
        ImagePolicy { redo, full_page_writes, compresses, checks_redo }
    }

    pub(super) fn location(&self, reserved: &Reserved) -> RecordLocation {
        RecordLocation {
            start: self.positions.start(reserved.start),
            end: self.positions.end(reserved.end),
        }
    }

    /// Where the record before a reserved place begins.
    pub(super) fn previous(&self, reserved: &Reserved) -> Lsn {
        reserved.previous.map_or(self.options.last, |previous| self.positions.start(previous))
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

/// Refuses a directory that we have not created.
///
/// # Errors
/// [`LogWriterError::NotOurs`] or [`LogWriterError::File`].
pub(crate) fn check_marker(files: &dyn WritableFiles, root: &Path) -> Result<(), LogWriterError> {
    let marker = root.join(MARKER);
    match files.file_length(&marker) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(LogWriterError::NotOurs { path: root.to_owned() }),
        Err(source) => Err(LogWriterError::file("read the length of", &marker, source)),
    }
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogWriter({} of {} durable)", self.flushes.durable(), self.end())
    }
}
