//! The WAL that sessions insert into: its parts, room for records, and segments.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::thread::yield_now;
use trunkline_aio::facade::{self, Mutex};
use trunkline_aio::{Aio, Cancelled, Session};
use trunkline_format::wal::{ImagePolicy, LOG_PAGE_SIZE, LongHeader, UsablePositions};
use trunkline_format::{Lsn, PgVersion};

use super::error::LogWriterError;
use super::filler::Filler;
use super::flush_choice::FlushChoice;
use super::flush_rates::FlushRates;
use super::flushes::Flushes;
use super::lane::Lane;
use super::options::LogWriterOptions;
use super::record_copy::PageIdentity;
use super::requests::Requests;
use super::reservation::{LENGTH_MAX, Reservations, Reserved};
use super::ring::Ring;
use super::room::{FreeRoom, Room, worst_case_bytes};
use super::segment_store::SegmentStore;
use super::sync_method::{FlushMethod, WalSyncMethod};
use super::sync_times::SyncTimes;
use super::waiters::Waiters;
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
    pub(super) room: facade::Arc<FreeRoom>,
    pub(super) segments: SegmentStore,
    /// The end of the segments that exist.
    created: AtomicU64,
    /// The lane for creating segments. Its lock serializes creation.
    creator: Mutex<Lane>,
    pub(super) flushes: Flushes,
    pub(super) method: FlushMethod,
    sync_times: Option<SyncTimes>,
    flush_rates: Option<FlushRates>,
    pub(super) filler: Filler,
    pub(super) waiters: Waiters,
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
    /// too few sessions or too little memory left. [`LogWriterError::Direct`]: `pg_wal` doesn't support direct I/O as we
    /// need it.
    pub fn open(
        aio: &Aio,
        files: Arc<dyn WritableFiles>,
        root: &Path,
        options: LogWriterOptions,
    ) -> Result<Self, LogWriterError> {
        check_marker(&*files, root)?;
        let LogWriterOptions { timeline, segment_size, end, .. } = options;
        let mut creator = Lane::new(aio)?;
        let directory = root.join("pg_wal");
        let segments = SegmentStore::new(files, &directory, timeline, segment_size)
            .with_direct_init(options.direct_init);
        segments.erase_after(end, &mut creator)?;
        segments.sync(options.redo, end, &mut creator)?;
        // The segment that the last record ends in exists.
        let last = segment_size.segment_of(Lsn(end.0.saturating_sub(1)));
        let mut created = segment_size.start_of(last + 1);
        if options.direct && created == end {
            // Its file system is asked about direct I/O.
            segments.create(last + 1, &mut creator)?;
            created = segment_size.start_of(last + 2);
        }
        let buffers = options.buffers.clamp(64 << 10, segment_size.bytes());
        let ring = Ring::new((buffers as usize).next_multiple_of(LOG_PAGE_SIZE));
        let positions = UsablePositions::new(segment_size);
        let inserters = options.inserters.max(1);
        let choice = FlushChoice::make(aio, &segments, &options, &mut creator)?;
        let FlushChoice { method, lanes, sync_times, flush_rates } = choice;
        // A flush may write the last block again, so that stays in the ring.
        let kept = if method.is_direct() { method.block() } else { 0 };
        let from = method.write_start(end);
        if from < end {
            let mut bytes = vec![0; (end.0 - from.0) as usize];
            segments.read(from, &mut bytes, &mut creator)?;
            ring.put(from, &bytes);
        }
        Ok(Self {
            pages: PageIdentity {
                version: VERSION,
                timeline,
                file: LongHeader::new(options.system_identifier, segment_size),
            },
            positions,
            // One more, for fillers.
            reservations: Reservations::new(positions.position(end), inserters + 1),
            room: facade::Arc::new(FreeRoom::new(ring.size() - kept)),
            ring,
            segments,
            created: AtomicU64::new(created.0),
            creator: Mutex::new(creator),
            flushes: Flushes::new(end, segment_size, lanes, method.writes_overlap()),
            method,
            sync_times,
            flush_rates,
            filler: Filler::default(),
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
    pub(super) fn has_segments(&self) -> bool {
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

    /// Recycles or removes the segments that neither redo nor `wal_keep_size` needs. `redo` is the redo point of the checkpoint
    /// that the control file names. Segments are recycled until those from there on have `min_wal_size` bytes.
    ///
    /// # Errors
    /// [`LogWriterError::File`]. The next call takes what was left.
    pub fn recycle_before(&self, redo: Lsn) -> Result<(), LogWriterError> {
        let size = self.options.segment_size;
        // No segment is created meanwhile.
        let _creator = self.creator.lock();
        let next = size.segment_of(Lsn(self.created.load(Ordering::SeqCst)));
        let until = size.segment_of(redo) + self.options.min_wal_size / u64::from(size.bytes());
        let next = self.segments.recycle_before(self.kept_from(redo), next, until)?;
        self.created.store(size.start_of(next).0, Ordering::SeqCst);
        Ok(())
    }

    /// Removes the segments that neither redo from the shutdown checkpoint at `place` nor `wal_keep_size` needs.
    ///
    /// # Errors
    /// [`LogWriterError::File`]. The next checkpoint takes what was left.
    pub(crate) fn remove_before(&self, place: Lsn) -> Result<(), LogWriterError> {
        let _creator = self.creator.lock();
        self.segments.recycle_before(self.kept_from(place), 0, 0)?;
        Ok(())
    }

    /// The oldest LSN to keep, given the redo point.
    fn kept_from(&self, redo: Lsn) -> Lsn {
        Lsn(self.end().0.saturating_sub(self.options.wal_keep_size)).min(redo)
    }

    /// How long flushes took when the log was opened, if `wal_sync_method` is `auto`.
    pub fn sync_times(&self) -> Option<SyncTimes> {
        self.sync_times
    }

    /// How many flushes a second the storage made durable when the log was opened, if their number is measured.
    pub fn flush_rates(&self) -> Option<FlushRates> {
        self.flush_rates
    }

    /// The maximum number of concurrent flushes.
    pub fn flush_limit(&self) -> usize {
        self.flush_rates.map_or(self.options.flushes.most(), FlushRates::best)
    }

    /// How flushes make WAL durable. Never [`WalSyncMethod::Auto`].
    pub fn sync_method(&self) -> WalSyncMethod {
        self.method.sync_method()
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
        let (durable, end) = (self.flushes.durable(), self.end());
        let (method, limit) = (self.sync_method(), self.flush_limit());
        write!(f, "LogWriter({durable} of {end} durable, {method}, at most {limit} in flight)")
    }
}
