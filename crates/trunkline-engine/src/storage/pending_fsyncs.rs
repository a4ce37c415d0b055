//! Pending fsyncs: keeps track of the segments that have been written since their last fsync
//! (PostgreSQL's `sync.c`).
//!
//! For each segment, we count the writes in flight and the writes that have completed. A checkpoint
//! fsyncs every segment that has been written since its last fsync. If a write is still in flight
//! when we start the fsync, the fsync might not cover that write, so the segment must remain
//! pending.
//!
//! In PostgreSQL, writes are synchronous. A backend doesn't register its fsync request until
//! `pwrite` has returned, and a cycle counter separates the requests that arrive during a
//! checkpoint from earlier ones. That isn't enough for asynchronous writes, because a write may be
//! issued before the fsync starts but complete while the fsync is running. We therefore use
//! counters instead of a cycle number. Sessions update the counters directly, so there is no
//! request queue that could overflow.
//!
//! ```text
//!   issue: in flight + 1        end: ended + 1, in flight - 1
//!   sync:  covered = ended; fsync; synced = covered      remove if synced = ended, none in flight
//! ```
//!
//! A failed fsync can't be retried, which is why PostgreSQL raises a PANIC. The kernel may have
//! marked the pages clean even though it couldn't write them, so even if a later fsync succeeds, we
//! can't trust it. Once [`PendingFsyncs::has_failed`] returns true, it stays true, and every later
//! checkpoint of the cluster fails.
//!
//! Locking: a session must never hold the `segments` lock and a segment's file lock at the same
//! time. While holding a file lock, it may take a shard lock of the file table. Files must only be
//! closed after both locks have been released, because closing a file may block.
//!
//! The rest of the design follows from two properties of Linux (see `docs/postgres-lessons.md`):
//!
//! - A writeback error is reported to the next fsync of the file, no matter which descriptor is
//!   used, but only as long as the inode stays in memory. Keeping a descriptor open is the only way
//!   to ensure that it does. We therefore keep a segment's file open until it has been fsynced,
//!   even if the file table evicts it, unless we run out of descriptors.
//! - The error is reported only once per open file description, so if two fsyncs run concurrently,
//!   only one of them sees it. A checkpoint must therefore wait for all other fsyncs in flight
//!   before it can conclude that its own fsyncs succeeded.

use super::file_table::{FileTable, Key};
use super::locator::RelationLocator;
use std::collections::BTreeMap;
use std::fmt;
use trunkline_aio::File;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Callback, Completion, Outcome, Status, WaitRef};
use trunkline_format::Fork;

/// A fork's segment, numbered from 0.
pub(crate) type SegmentName = (RelationLocator, Fork, u32);

/// One segment's writes since its last fsync.
///
/// Invariant: `synced` <= `ended`. Neither of them ever decreases. A segment is clean if they are
/// equal and no write is in flight.
#[derive(Debug, Default)]
pub(crate) struct PendingFsync {
    /// Number of writes that were issued but haven't completed.
    in_flight: AtomicU32,
    /// Number of writes that have completed since the entry was created.
    ended: AtomicU64,
    /// The value of `ended` when the last successful fsync started.
    synced: AtomicU64,
    file: Mutex<KeptFile>,
}

/// A pending segment's file, kept open until its fsync.
#[derive(Debug, Default)]
enum KeptFile {
    /// Not kept open, because there was no descriptor to spare.
    #[default]
    None,
    Open(File),
    /// The segment is no longer pending. A session may still have a reference to the entry, but it
    /// must not store a file here, because nothing would ever close that file.
    Released,
}

impl PendingFsync {
    /// Records that a write has completed. We count failed writes too, because a failed write may
    /// still have changed part of the file.
    ///
    /// Note that the order is important. [`PendingFsync::is_clean`] reads `in_flight` first, and if
    /// it finds zero there, `ended` must already include this write.
    pub(crate) fn write_ended(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns the number of writes that an fsync would cover if it were issued now. This must be
    /// called before issuing the fsync, because a write that completes while the fsync is running
    /// may or may not be covered.
    pub(crate) fn before_sync(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Records a successful fsync. We take the maximum because, if two checkpoints run
    /// concurrently, the one that started later may finish first.
    pub(crate) fn synced(&self, covered: u64) {
        self.synced.fetch_max(covered, Ordering::SeqCst);
    }

    /// Returns the file that was written, if we have kept it open. If we fsync through this
    /// descriptor, we see every error that has occurred since it was opened. Through a new
    /// descriptor, we would only see errors that have not been reported before.
    pub(crate) fn kept_file(&self) -> Option<File> {
        match &*self.file.lock() {
            KeptFile::Open(file) => Some(file.clone()),
            KeptFile::None | KeptFile::Released => None,
        }
    }

    /// Releases the file. The caller must not hold any lock when it drops the returned value,
    /// because dropping it may close the file.
    fn release(&self) -> KeptFile {
        std::mem::replace(&mut *self.file.lock(), KeptFile::Released)
    }

    /// Whether all writes are durable.
    fn is_clean(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
            && self.ended.load(Ordering::SeqCst) == self.synced.load(Ordering::SeqCst)
    }
}

/// In addition to the files in the open-file table, we keep some files open that still need an
/// fsync: at most the table's limit divided by this number. If more segments than that are pending,
/// we may have to reopen the others in order to fsync them.
const KEPT_FRACTION: usize = 4;

/// One cluster's pending fsyncs.
pub(crate) struct PendingFsyncs {
    /// Ordered by name, so that checkpoints sync segments in a defined order.
    segments: Mutex<BTreeMap<SegmentName, Arc<PendingFsync>>>,
    /// Set by the first failed fsync and never cleared. We share it with the callbacks of I/Os in
    /// flight, which may run after the cluster has been closed.
    failed: Arc<AtomicBool>,
    /// Fsyncs and writeback requests that may be in flight.
    in_flight: Mutex<Vec<WaitRef>>,
    /// The cluster's number.
    number: u16,
    files: Arc<FileTable>,
}

impl fmt::Debug for PendingFsyncs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingFsyncs({} segments)", self.segments.lock().len())
    }
}

/// Completion callback that records a failed fsync. We can't leave this to the issuer, because the
/// kernel reports the error only once, and the issuer may have stopped waiting for the result when
/// its checkpoint was cancelled. The callback always runs, in whichever thread reaps the
/// completion.
pub(crate) struct FsyncCallback(Arc<AtomicBool>);

impl<P> Callback<P> for FsyncCallback {
    fn name(&self) -> &'static str {
        "segment fsync"
    }

    fn complete(&self, _io: &mut Completion<'_, P>, prior: Outcome) -> Outcome {
        if prior.status == Status::Error {
            self.0.store(true, Ordering::SeqCst);
        }
        prior
    }
}

impl PendingFsyncs {
    /// Creates the pending fsyncs for the cluster with the given number and its open-file table.
    pub(super) fn new(number: u16, files: &Arc<FileTable>) -> Self {
        Self {
            segments: Mutex::default(),
            failed: Arc::default(),
            in_flight: Mutex::default(),
            number,
            files: Arc::clone(files),
        }
    }

    /// The callback for fsyncs and writeback requests on this cluster's segments.
    pub(crate) fn callback(&self) -> FsyncCallback {
        FsyncCallback(Arc::clone(&self.failed))
    }

    /// Must be called before issuing an fsync or writeback request with this cluster's callback.
    /// Until the request completes, the kernel might report a write error to this I/O only.
    pub(crate) fn fsync_begins(&self, io: WaitRef) {
        self.in_flight.lock().push(io);
    }

    /// Records that the fsync or writeback request has completed. Its error, if any, has already
    /// been recorded.
    pub(crate) fn fsync_ended(&self, io: WaitRef) {
        self.in_flight.lock().retain(|other| *other != io);
    }

    /// Returns the fsyncs and writeback requests that may be in flight. The sessions that issued
    /// them may be gone, so any session may have to complete these I/Os.
    pub(crate) fn fsyncs_in_flight(&self) -> Vec<WaitRef> {
        self.in_flight.lock().clone()
    }

    /// Records a failed directory fsync, which isn't issued as an I/O.
    pub(super) fn note_failure(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    /// Whether any fsync has failed since startup. If so, we can't assume that any write is
    /// durable.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Must be called before issuing a write to a segment. Once the write has completed, the caller
    /// must call [`PendingFsync::write_ended`] on the returned entry.
    pub(crate) fn write_begins(&self, name: SegmentName) -> Arc<PendingFsync> {
        let mut segments = self.segments.lock();
        let segment = Arc::clone(segments.entry(name).or_default());
        let may_keep = segments.len() <= (self.files.limit() / KEPT_FRACTION).max(1);
        // We must increment this while we hold the lock. Otherwise, a checkpoint could find the
        // entry clean and remove it.
        segment.in_flight.fetch_add(1, Ordering::SeqCst);
        drop(segments);
        let mut file = segment.file.lock();
        if matches!(*file, KeptFile::None) && may_keep {
            // The caller has just opened the file for its write, so the file is usually still in
            // the table.
            let (locator, fork, number) = name;
            let found = self.files.peek(&Key::new(self.number, locator, fork, number));
            *file = found.map_or(KeptFile::None, KeptFile::Open);
        }
        drop(file);
        segment
    }

    /// Closes the files that we've kept open for their fsync, because the process is out of
    /// descriptors. Returns false if there were no such files. If the kernel then also evicts the
    /// inode, we might miss an earlier writeback error. But the only alternative would be to fail
    /// the operation that needs a descriptor now.
    pub(super) fn close_kept_files(&self) -> bool {
        let segments: Vec<_> = self.segments.lock().values().cloned().collect();
        let files = segments.iter().map(|segment| match &mut *segment.file.lock() {
            KeptFile::Released => KeptFile::Released,
            kept => std::mem::take(kept),
        });
        files.filter(|kept| matches!(kept, KeptFile::Open(_))).count() > 0
    }

    /// Whether every write is durable. After a failed fsync this never becomes true again.
    pub(crate) fn is_durable(&self) -> bool {
        !self.has_failed() && self.segments.lock().is_empty()
    }

    /// Records that a segment's file was created, truncated or extended, which also requires an
    /// fsync.
    pub(crate) fn note(&self, name: SegmentName) {
        self.write_begins(name).write_ended();
    }

    /// The pending segments.
    pub(crate) fn pending(&self) -> Vec<(SegmentName, Arc<PendingFsync>)> {
        let segments = self.segments.lock();
        segments.iter().map(|(name, segment)| (*name, Arc::clone(segment))).collect()
    }

    /// Whether a segment is pending.
    pub(crate) fn contains(&self, name: &SegmentName) -> bool {
        self.segments.lock().contains_key(name)
    }

    /// Removes a segment if all of its writes are durable.
    pub(crate) fn forget_clean(&self, name: &SegmentName) {
        let mut segments = self.segments.lock();
        // No new write can begin while we hold the lock, so if the segment is clean now, it's still
        // clean when we remove it from the map.
        let clean = segments.get(name).is_some_and(|segment| segment.is_clean());
        let gone = if clean { segments.remove(name) } else { None };
        drop(segments);
        // The session that issued a write may keep its reference to the entry for much longer, so
        // we release the file explicitly.
        drop(gone.map(|segment| segment.release()));
    }

    /// Removes a relation's segments, starting with segment `first`, because their files are about
    /// to be removed or truncated.
    pub(crate) fn forget(&self, locator: RelationLocator, fork: Option<Fork>, first: u32) {
        let mut gone = Vec::new();
        self.segments.lock().retain(|(other, of, number), segment| {
            let kept = *other != locator || fork.is_some_and(|fork| fork != *of) || *number < first;
            if !kept {
                gone.push(Arc::clone(segment));
            }
            kept
        });
        gone.iter().for_each(|segment| drop(segment.release()));
    }

    /// The number of pending segments.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.segments.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::Oid;

    #[test]
    fn a_write_in_flight_during_the_fsync_keeps_the_segment_pending() {
        let syncs = PendingFsyncs::new(1, &Arc::new(FileTable::new(8)));
        let locator =
            RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 16_384 };
        let name = (locator, Fork::Main, 0);
        syncs.write_begins(name).write_ended();
        let slow = syncs.write_begins(name);
        let (_, segment) = syncs.pending().remove(0);
        let covered = segment.before_sync();
        slow.write_ended();
        segment.synced(covered);
        syncs.forget_clean(&name);
        assert_eq!(syncs.len(), 1, "a write that ended during the fsync is not covered");
        segment.synced(segment.before_sync());
        syncs.forget_clean(&name);
        assert_eq!(syncs.len(), 0);
    }
}
