//! Pending fsyncs: the segments written since their last fsync (PostgreSQL's `sync.c`).
//!
//! For each segment we track how many writes are in flight and how many have completed. A
//! checkpoint fsyncs every segment that has been written since its last fsync. If a write is still
//! in flight when the fsync starts, the fsync might not cover it, so the segment must stay pending.
//!
//! PostgreSQL writes synchronously: a backend registers its request after `pwrite` has returned,
//! and a cycle counter separates requests that arrive during a checkpoint. With asynchronous writes
//! that isn't enough, because a write may be issued before the fsync but complete during it. So we
//! use counters instead of a cycle number. Sessions update the counters directly; there is no
//! request queue that could overflow.
//!
//! ```text
//!   issue: in flight + 1        end: ended + 1, in flight - 1
//!   sync:  covered = ended; fsync; synced = covered      remove if synced = ended, none in flight
//! ```
//!
//! A failed fsync is final, as it is in PostgreSQL, where it raises a PANIC. The kernel may have
//! marked the pages clean even though it failed to write them, so we can't trust a later fsync that
//! succeeds. [`PendingFsyncs::has_failed`] therefore never becomes false again, and every later
//! checkpoint of the cluster fails.
//!
//! Locking: the `segments` lock and a segment's file lock are never held together. A file lock may
//! be held while taking a shard lock of the file table. Files are only closed after both have been
//! released, because closing may block.
//!
//! The rest of the design follows from two properties of Linux (see `docs/postgres-lessons.md`):
//!
//! - A writeback error is reported to the next fsync of the file, through any descriptor, but only
//!   while the inode is in memory. Only an open descriptor guarantees that. We therefore keep a
//!   segment's file open until it has been fsynced, even if the file table evicts it, unless we run
//!   out of descriptors.
//! - The error is reported only once per open file description, so only one of two concurrent
//!   fsyncs sees it. A checkpoint must therefore wait for all other fsyncs in flight before it can
//!   conclude that its own fsyncs succeeded.

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
/// Invariant: `synced` <= `ended`. Both only grow. The segment is clean when they are equal and
/// nothing is in flight.
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
    /// The segment is no longer pending. A session that still has a reference to the entry must not
    /// store a file here, because nothing would ever close it.
    Released,
}

impl PendingFsync {
    /// Records that a write has completed. Failed writes count too, because they may have changed
    /// part of the file.
    ///
    /// Note that the order matters: [`PendingFsync::is_clean`] reads `in_flight` first, and once it
    /// reads zero, `ended` must already include this write.
    pub(crate) fn write_ended(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// How many writes an fsync issued now would cover. The caller must read this before issuing
    /// the fsync, because a write that completes during the fsync may or may not be covered.
    pub(crate) fn before_sync(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Records a successful fsync. We take the maximum because, with two concurrent checkpoints,
    /// the checkpoint that started later may finish first.
    pub(crate) fn synced(&self, covered: u64) {
        self.synced.fetch_max(covered, Ordering::SeqCst);
    }

    /// The file that was written, if we have kept it open. An fsync through this descriptor reports
    /// every error since it was opened; an fsync through a new descriptor only reports errors that
    /// nothing else has seen yet.
    pub(crate) fn kept_file(&self) -> Option<File> {
        match &*self.file.lock() {
            KeptFile::Open(file) => Some(file.clone()),
            KeptFile::None | KeptFile::Released => None,
        }
    }

    /// Releases the file. The caller must not hold a lock when it drops the result, because that
    /// may close the file.
    fn release(&self) -> KeptFile {
        std::mem::replace(&mut *self.file.lock(), KeptFile::Released)
    }

    /// Whether all writes are durable.
    fn is_clean(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
            && self.ended.load(Ordering::SeqCst) == self.synced.load(Ordering::SeqCst)
    }
}

/// The files we keep open for their fsync may exceed the open-file limit by up to a quarter: the
/// limit divided by this number. Any further segments may have to be reopened for their fsync.
const KEPT_FRACTION: usize = 4;

/// One cluster's pending fsyncs.
pub(crate) struct PendingFsyncs {
    /// Ordered by name, so that checkpoints sync segments in a defined order.
    segments: Mutex<BTreeMap<SegmentName, Arc<PendingFsync>>>,
    /// Set by the first failure and never cleared. It's shared with the callbacks of I/Os in
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

/// Completion callback that records a failed fsync. The kernel reports the error only once, and the
/// issuer might no longer be waiting for the result, because its checkpoint was cancelled. The
/// callback always runs, on whichever thread reaps the completion.
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

    /// Must be called before issuing an fsync or writeback request with that callback. Until the
    /// request completes, the kernel might report an error to this I/O and nowhere else.
    pub(crate) fn fsync_begins(&self, io: WaitRef) {
        self.in_flight.lock().push(io);
    }

    /// Records that the fsync or writeback request has completed. Its error, if any, has already
    /// been recorded.
    pub(crate) fn fsync_ended(&self, io: WaitRef) {
        self.in_flight.lock().retain(|other| *other != io);
    }

    /// The fsyncs and writeback requests that may be in flight. Their issuers may be gone, so any
    /// session may have to complete these I/Os.
    pub(crate) fn fsyncs_in_flight(&self) -> Vec<WaitRef> {
        self.in_flight.lock().clone()
    }

    /// Records a failed directory fsync, which isn't issued as an I/O.
    pub(super) fn note_failure(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    /// Whether any fsync has failed since startup, in which case we can't assume that any write is
    /// durable.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Must be called before issuing a write to a segment. The caller must call
    /// [`PendingFsync::write_ended`] on the result once the write has completed.
    pub(crate) fn write_begins(&self, name: SegmentName) -> Arc<PendingFsync> {
        let mut segments = self.segments.lock();
        let segment = Arc::clone(segments.entry(name).or_default());
        let may_keep = segments.len() <= (self.files.limit() / KEPT_FRACTION).max(1);
        // We must increment this under the lock, because otherwise a checkpoint could find the
        // entry clean and remove it.
        segment.in_flight.fetch_add(1, Ordering::SeqCst);
        drop(segments);
        let mut file = segment.file.lock();
        if matches!(*file, KeptFile::None) && may_keep {
            // The caller has just opened the file for its write, so it's usually still in the
            // table.
            let (locator, fork, number) = name;
            let found = self.files.peek(&Key::new(self.number, locator, fork, number));
            *file = found.map_or(KeptFile::None, KeptFile::Open);
        }
        drop(file);
        segment
    }

    /// Closes the files we've kept open, because the process is out of descriptors. Returns false
    /// if there were none. We might then miss an earlier writeback error, if the kernel also evicts
    /// the inode. But the only alternative would be to fail the operation that needs a descriptor
    /// now.
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
        // No write can begin while the lock is held, so a clean segment stays clean until it is
        // removed from the map.
        let clean = segments.get(name).is_some_and(|segment| segment.is_clean());
        let gone = if clean { segments.remove(name) } else { None };
        drop(segments);
        // A write's issuer may keep its reference to the entry much longer, so we release the file
        // explicitly.
        drop(gone.map(|segment| segment.release()));
    }

    /// Removes a relation's segments, starting at `first`, because their files are being removed or
    /// truncated.
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
