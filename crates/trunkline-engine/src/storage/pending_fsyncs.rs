//! Which segments were written since they were last made durable.
//!
//! A write is noted when it is issued and counted when it has ended, by whoever completes it. A
//! checkpoint syncs every segment that had writes end since its last sync; a write that is still
//! under way when the sync begins is not covered by it, so its segment stays on the list.
//!
//! ```text
//!   issue: in flight + 1        end: ended + 1, in flight - 1
//!   sync:  seen = ended; fsync; synced = seen      forget if synced = ended and none in flight
//! ```
//! Linux tells an error of writing back to whoever syncs next, by whatever descriptor, as long as the
//! inode is in memory; only an open descriptor makes certain that it is. So the file that was written
//! stays open until it was synced, even if the table of open files has let go of it, as far as there
//! are descriptors to spare. It tells each open file once: of two syncs at the same time one is told, so
//! both are over before either of them counts as a success.

use super::RelationLocator;
use super::file_table::{FileTable, Key};
use std::collections::BTreeMap;
use std::fmt;
use trunkline_aio::File;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Callback, Completion, Outcome, Status, WaitRef};
use trunkline_format::Fork;

/// A segment of a fork.
pub(crate) type SegmentName = (RelationLocator, Fork, u32);

/// What one segment's writes have come to.
#[derive(Debug, Default)]
pub(crate) struct PendingFsync {
    in_flight: AtomicU32,
    ended: AtomicU64,
    synced: AtomicU64,
    file: Mutex<Kept>,
}

/// The file of a segment that was written and not yet synced.
#[derive(Debug, Default)]
enum Kept {
    /// There was none to spare.
    #[default]
    No,
    Open(File),
    /// The segment is off the list: whoever still has this must not keep a file open.
    Over,
}

impl PendingFsync {
    /// A write has ended, well or not: what a failed one has left behind is on disk too.
    pub(crate) fn write_ended(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// Before a sync: what it will cover.
    pub(crate) fn before_sync(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// After a sync that went well.
    pub(crate) fn synced(&self, covered: u64) {
        self.synced.fetch_max(covered, Ordering::SeqCst);
    }

    /// The file that was written, if it was kept: the system tells it of every error since, a file that is
    /// opened now only of those that nobody has been told of.
    pub(crate) fn kept(&self) -> Option<File> {
        match &*self.file.lock() {
            Kept::Open(file) => Some(file.clone()),
            Kept::No | Kept::Over => None,
        }
    }

    /// Lets go of the file, which the caller closes when no lock is held.
    fn end(&self) -> Kept {
        std::mem::replace(&mut *self.file.lock(), Kept::Over)
    }

    /// Whether everything is durable.
    fn is_clean(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
            && self.ended.load(Ordering::SeqCst) == self.synced.load(Ordering::SeqCst)
    }
}

/// Files that are kept open beyond the table's limit at most, as a part of that limit.
const KEPT_PART: usize = 4;

/// See the module.
pub(crate) struct PendingFsyncs {
    segments: Mutex<BTreeMap<SegmentName, Arc<PendingFsync>>>,
    failed: Arc<AtomicBool>,
    /// PendingFsyncs, and calls to write back, that may be under way.
    under_way: Mutex<Vec<WaitRef>>,
    /// Of the cluster.
    number: u16,
    files: Arc<FileTable>,
}

impl fmt::Debug for PendingFsyncs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingFsyncs({} segments)", self.segments.lock().len())
    }
}

/// Takes note of a failed sync where it is learned: nobody else will be told of it.
pub(crate) struct FsyncCallback(Arc<AtomicBool>);

impl<P> Callback<P> for FsyncCallback {
    fn name(&self) -> &'static str {
        "segment sync"
    }

    fn complete(&self, _io: &mut Completion<'_, P>, prior: Outcome) -> Outcome {
        if prior.status == Status::Error {
            self.0.store(true, Ordering::SeqCst);
        }
        prior
    }
}

impl PendingFsyncs {
    /// Of the cluster of that number, whose files are in that table.
    pub(super) fn new(number: u16, files: &Arc<FileTable>) -> Self {
        Self {
            segments: Mutex::default(),
            failed: Arc::default(),
            under_way: Mutex::default(),
            number,
            files: Arc::clone(files),
        }
    }

    /// For the syncs of this cluster's segments.
    pub(crate) fn callback(&self) -> FsyncCallback {
        FsyncCallback(Arc::clone(&self.failed))
    }

    /// A sync, or a call to write back, is about to be issued with that callback. The system tells an open
    /// file of an error once: while this one is under way, it may be the one that is told.
    pub(crate) fn fsync_begins(&self, io: WaitRef) {
        self.under_way.lock().push(io);
    }

    /// It has ended, and what it was told is noted.
    pub(crate) fn fsync_ended(&self, io: WaitRef) {
        self.under_way.lock().retain(|other| *other != io);
    }

    /// Those that may be under way: who issued them may have gone, and have left that to others.
    pub(crate) fn fsyncs_under_way(&self) -> Vec<WaitRef> {
        self.under_way.lock().clone()
    }

    /// A sync that is no I/O of a session, of a directory, has failed.
    pub(super) fn note_failure(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    /// Whether a sync has failed, ever: nothing that was written can be counted on any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// A write to a segment is about to be issued; tell the answer when it has ended.
    pub(crate) fn write_begins(&self, name: SegmentName) -> Arc<PendingFsync> {
        let mut segments = self.segments.lock();
        let segment = Arc::clone(segments.entry(name).or_default());
        let may_keep = segments.len() <= (self.files.limit() / KEPT_PART).max(1);
        segment.in_flight.fetch_add(1, Ordering::SeqCst);
        drop(segments);
        let mut file = segment.file.lock();
        if matches!(*file, Kept::No) && may_keep {
            // It was found there a moment ago, to be written.
            let (locator, fork, number) = name;
            let found = self.files.peek(&Key::new(self.number, locator, fork, number));
            *file = found.map_or(Kept::No, Kept::Open);
        }
        drop(file);
        segment
    }

    /// Lets go of the files that are kept open: descriptors are short. Whether there were any.
    pub(super) fn close_kept_files(&self) -> bool {
        let segments: Vec<_> = self.segments.lock().values().cloned().collect();
        let files = segments.iter().map(|segment| match &mut *segment.file.lock() {
            // Stays without a file.
            Kept::Over => Kept::Over,
            kept => std::mem::take(kept),
        });
        files.filter(|kept| matches!(kept, Kept::Open(_))).count() > 0
    }

    /// Whether everything is durable; never again once a sync has failed.
    pub(crate) fn is_durable(&self) -> bool {
        !self.has_failed() && self.segments.lock().is_empty()
    }

    /// Something about a segment's file was changed in another way than by a write: it was made, cut
    /// off or made longer.
    pub(crate) fn note(&self, name: SegmentName) {
        self.write_begins(name).write_ended();
    }

    /// Segments with something that may not be durable.
    pub(crate) fn pending(&self) -> Vec<(SegmentName, Arc<PendingFsync>)> {
        let segments = self.segments.lock();
        segments.iter().map(|(name, segment)| (*name, Arc::clone(segment))).collect()
    }

    /// Whether a segment is on the list.
    pub(crate) fn contains(&self, name: &SegmentName) -> bool {
        self.segments.lock().contains_key(name)
    }

    /// Forgets a segment if everything of it is durable.
    pub(crate) fn forget_clean(&self, name: &SegmentName) {
        let mut segments = self.segments.lock();
        // Under the lock nobody can begin a write.
        let clean = segments.get(name).is_some_and(|segment| segment.is_clean());
        let gone = if clean { segments.remove(name) } else { None };
        drop(segments);
        // Some issuer may have the note for long after.
        drop(gone.map(|segment| segment.end()));
    }

    /// Forgets a relation's segments from one on: their files are removed or cut off.
    pub(crate) fn forget(&self, locator: RelationLocator, fork: Option<Fork>, first: u32) {
        let mut gone = Vec::new();
        self.segments.lock().retain(|(other, of, number), segment| {
            let kept = *other != locator || fork.is_some_and(|fork| fork != *of) || *number < first;
            if !kept {
                gone.push(Arc::clone(segment));
            }
            kept
        });
        gone.iter().for_each(|segment| drop(segment.end()));
    }

    /// Segments that are on the list.
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
    fn a_write_under_way_at_the_sync_keeps_the_segment_on_the_list() {
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
        assert_eq!(syncs.len(), 1, "what ended during the sync is not covered");
        segment.synced(segment.before_sync());
        syncs.forget_clean(&name);
        assert_eq!(syncs.len(), 0);
    }
}
