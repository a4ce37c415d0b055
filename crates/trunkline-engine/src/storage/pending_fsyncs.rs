//! Pending fsyncs: the segments that were written since their last fsync (PostgreSQL's `sync.c`).
//!
//! A write is counted as in flight when it is issued and as ended when it completes. A checkpoint
//! syncs every segment with writes that ended since its last sync. A write that is in flight when
//! the sync begins is not covered by it, so its segment stays pending.
//!
//! PostgreSQL writes synchronously: a backend registers its request after `pwrite` has returned,
//! and a cycle counter separates requests that arrive during a checkpoint. With asynchronous writes
//! that is not enough, because a write may be issued before the fsync and complete during it. So
//! each segment has two counters instead of a cycle number. Sessions update them directly, and
//! there is no request queue to the checkpointer that could overflow.
//!
//! ```text
//!   issue: in flight + 1        end: ended + 1, in flight - 1
//!   sync:  covered = ended; fsync; synced = covered      remove if synced = ended, none in flight
//! ```
//!
//! A failed fsync is final, as it is in PostgreSQL, where it raises a PANIC. The kernel may have
//! marked the pages clean although they were not written, so a later fsync that succeeds proves
//! nothing. [`PendingFsyncs::has_failed`] therefore never becomes false again, and every later
//! checkpoint of the cluster fails.
//!
//! Lock order: `segments`, then the file of a segment, then a shard of the table of open files. No
//! file is closed while one of the first two is held, because closing may block.
//!
//! Two properties of Linux decide the rest (see `docs/postgres-lessons.md`):
//!
//! - A writeback error is reported to the next fsync of the file, through any descriptor, while the
//!   inode is in memory. Only an open descriptor keeps it there. A segment's file therefore stays
//!   open until it is synced, even if the table of open files evicts it, while there are
//!   descriptors to spare.
//! - The error is reported once per open file. Of two concurrent fsyncs, only one sees it. A
//!   checkpoint therefore waits for every fsync in flight before it counts its own as a success.

use super::RelationLocator;
use super::file_table::{FileTable, Key};
use std::collections::BTreeMap;
use std::fmt;
use trunkline_aio::File;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Callback, Completion, Outcome, Status, WaitRef};
use trunkline_format::Fork;

/// A segment of a fork: the number from 0.
pub(crate) type SegmentName = (RelationLocator, Fork, u32);

/// The writes of one segment since its last fsync.
///
/// Invariant: `synced` <= `ended`. Both only grow. The segment is clean when they are equal and
/// nothing is in flight.
#[derive(Debug, Default)]
pub(crate) struct PendingFsync {
    /// Writes that were issued and have not completed.
    in_flight: AtomicU32,
    /// Writes that have completed since the entry was created.
    ended: AtomicU64,
    /// The value of `ended` at the start of the last successful fsync.
    synced: AtomicU64,
    file: Mutex<KeptFile>,
}

/// The file of a pending segment, kept open until its fsync.
#[derive(Debug, Default)]
enum KeptFile {
    /// Not kept: there was no descriptor to spare.
    #[default]
    None,
    Open(File),
    /// The segment is no longer pending. A session that still refers to this entry must not put a
    /// file here, because nothing would close it.
    Released,
}

impl PendingFsync {
    /// Counts a write that completed. A failed write counts too: it may have changed the file.
    ///
    /// The order matters. [`PendingFsync::is_clean`] reads `in_flight` first; if it reads zero,
    /// `ended` already includes this write.
    pub(crate) fn write_ended(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// The writes that a sync issued now will cover. Must be read before the fsync is issued: a
    /// write that ends during the fsync may or may not be covered, so it does not count.
    pub(crate) fn before_sync(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Records a successful sync. The maximum, because of two concurrent checkpoints the one that
    /// began later may record its sync first.
    pub(crate) fn synced(&self, covered: u64) {
        self.synced.fetch_max(covered, Ordering::SeqCst);
    }

    /// The file that was written, if it was kept open. An fsync through it sees every error since;
    /// an fsync through a newly opened file sees only errors that were not reported yet.
    pub(crate) fn kept_file(&self) -> Option<File> {
        match &*self.file.lock() {
            KeptFile::Open(file) => Some(file.clone()),
            KeptFile::None | KeptFile::Released => None,
        }
    }

    /// Gives up the file. The caller drops it, which may close it, when no lock is held.
    fn release(&self) -> KeptFile {
        std::mem::replace(&mut *self.file.lock(), KeptFile::Released)
    }

    /// Whether all writes are durable.
    fn is_clean(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
            && self.ended.load(Ordering::SeqCst) == self.synced.load(Ordering::SeqCst)
    }
}

/// Kept files may use this fraction of the limit of open files, in addition to it: one in four. A
/// segment beyond that may have to be reopened for its fsync.
const KEPT_FRACTION: usize = 4;

/// The pending fsyncs of one cluster.
pub(crate) struct PendingFsyncs {
    /// Ordered by name, so that a checkpoint syncs segments in a defined order.
    segments: Mutex<BTreeMap<SegmentName, Arc<PendingFsync>>>,
    /// Set once and never cleared. The callbacks of I/Os in flight share it, because they may run
    /// after the cluster was closed.
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

/// Completion callback that records a failed fsync. The kernel reports the error once, and the
/// issuer may no longer wait for the result: its checkpoint may have been cancelled. A callback
/// always runs, on whichever thread reaps the completion.
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
    /// For the cluster of that number, whose files are in that table.
    pub(super) fn new(number: u16, files: &Arc<FileTable>) -> Self {
        Self {
            segments: Mutex::default(),
            failed: Arc::default(),
            in_flight: Mutex::default(),
            number,
            files: Arc::clone(files),
        }
    }

    /// The callback for fsyncs and writeback requests of this cluster's segments.
    pub(crate) fn callback(&self) -> FsyncCallback {
        FsyncCallback(Arc::clone(&self.failed))
    }

    /// An fsync or writeback request is about to be issued with that callback. Until it completes,
    /// an error may be reported to it and to no other.
    pub(crate) fn fsync_begins(&self, io: WaitRef) {
        self.in_flight.lock().push(io);
    }

    /// The fsync or writeback request has completed, and its error, if any, is recorded.
    pub(crate) fn fsync_ended(&self, io: WaitRef) {
        self.in_flight.lock().retain(|other| *other != io);
    }

    /// The fsyncs and writeback requests that may be in flight. Their issuer may be gone, so any
    /// session may have to complete them.
    pub(crate) fn fsyncs_in_flight(&self) -> Vec<WaitRef> {
        self.in_flight.lock().clone()
    }

    /// Records a failed sync that was not issued as an I/O: that of a directory.
    pub(super) fn note_failure(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    /// Whether any fsync has failed since the start. Then no write can be assumed durable.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// A write to a segment is about to be issued. The caller calls [`PendingFsync::write_ended`]
    /// on the result when it completes.
    pub(crate) fn write_begins(&self, name: SegmentName) -> Arc<PendingFsync> {
        let mut segments = self.segments.lock();
        let segment = Arc::clone(segments.entry(name).or_default());
        let may_keep = segments.len() <= (self.files.limit() / KEPT_FRACTION).max(1);
        // Under the lock, so that a checkpoint cannot find the entry clean and remove it in
        // between.
        segment.in_flight.fetch_add(1, Ordering::SeqCst);
        drop(segments);
        let mut file = segment.file.lock();
        if matches!(*file, KeptFile::None) && may_keep {
            // The caller has just opened it for the write, so it is usually in the table.
            let (locator, fork, number) = name;
            let found = self.files.peek(&Key::new(self.number, locator, fork, number));
            *file = found.map_or(KeptFile::None, KeptFile::Open);
        }
        drop(file);
        segment
    }

    /// Closes the files that are kept open, because the process is out of descriptors. False if
    /// there were none. An error of an earlier writeback may then be lost if the kernel also evicts
    /// the inode. The alternative is to fail the operation that needs a descriptor now.
    pub(super) fn close_kept_files(&self) -> bool {
        let segments: Vec<_> = self.segments.lock().values().cloned().collect();
        let files = segments.iter().map(|segment| match &mut *segment.file.lock() {
            KeptFile::Released => KeptFile::Released,
            kept => std::mem::take(kept),
        });
        files.filter(|kept| matches!(kept, KeptFile::Open(_))).count() > 0
    }

    /// Whether every write is durable; never true again after a failed fsync.
    pub(crate) fn is_durable(&self) -> bool {
        !self.has_failed() && self.segments.lock().is_empty()
    }

    /// Records a change of a segment's file other than a write: it was created, truncated or
    /// extended.
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
        // An issuer may keep the entry for long after this, so its file is released explicitly.
        drop(gone.map(|segment| segment.release()));
    }

    /// Removes a relation's segments from `first` on, because their files are removed or truncated.
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
