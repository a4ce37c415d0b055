//! Write-behind: having the system write back what was put into its cache.
//!
//! Left alone, the system writes back late and everything at once, and the sync at the end waits for
//! it. So after every so many blocks (`checkpoint_flush_after` and its kin) it is told to begin.
//!
//! ```text
//!   note: a write has ended ──▶ names ── enough ──▶ sorted, what is near together ──▶ I/O of their own
//! ```
//! Telling it is an I/O of its own, made by the session where its mount takes writes at once, and else
//! handed over, a few ranges at a time. Who writes for others waits where the device has no room
//! ([`WriteBehind::tell_all`]), so what is in the cache and not on its way is bounded; who only wants a
//! buffer goes on ([`WriteBehind::tell`]), and what there is no place for is left to the system.
//!
//! An error is a sync that has failed: the kernel tells an open file of an error once, so the sync of the
//! checkpoint would not hear of it again (sync_file_range(2) that waits asks for it as fsync(2) does).

use super::shared::Shared;
use super::tag::Tag;
use super::write::WriteError;
use crate::storage::FsyncCallback;
use rustix::io::Errno;
use std::fmt;
use std::io;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Callback, Cancelled, Class, Completion, Outcome, Session, Slots, Status};
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

/// Ranges under way at most, where they are handed over.
const RANGES: usize = 4;

/// And beside others, who would wait behind them; each until it has been written back.
const RANGES_BESIDE_OTHERS: usize = 2;

/// Blocks in a row that are told together at least while nobody else has I/O under way: 2 MB,
/// PostgreSQL's upper bound of such a setting (decision 0008).
const ALONE_MIN: u32 = 256;

/// Writes of fewer blocks on average are scattered.
const ROW_MIN: u32 = 4;

/// Two ranges are told as one if no more than so many blocks lie between them (1 MB): the system looks
/// for what is changed, and a call costs more than the look.
const GAP_MAX: u32 = (1 << 20) / BLOCK_SIZE as u32;

// The longest range is a segment.
const _: () = assert!(SEGMENT_BLOCKS as u64 * BLOCK_SIZE as u64 <= u32::MAX as u64, "its length");

/// See the module.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    shared: Arc<Shared>,
    /// Blocks until the system is told; 0 leaves it to itself.
    after: u32,
    class: Class,
    operations: Slots<Vec<u64>>,
    /// First blocks, and how many: names only, since whoever sits idle must not keep a file that was
    /// removed, or a cluster that was closed.
    ranges: Vec<(Tag, u32)>,
    blocks: u32,
    told: u64,
    notes: Arc<Notes>,
    /// By slot: the first block of its range.
    firsts: [Option<Tag>; RANGES],
    /// The first failure that nobody has asked for yet.
    failure: Option<WriteError>,
}

/// By slot: of whose segments a failure is the failed sync. A note stays until the next one, so that
/// nothing is freed by a completion.
#[derive(Default)]
struct Notes([Mutex<Option<FsyncCallback>>; RANGES]);

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notes")
    }
}

impl Callback<Vec<u64>> for Notes {
    fn name(&self) -> &'static str {
        "write-behind"
    }

    fn complete(&self, io: &mut Completion<'_, Vec<u64>>, prior: Outcome) -> Outcome {
        let slot = io.payload[0] as usize;
        match &*self.0[slot].lock() {
            Some(sync) if error_of(prior).is_some() => sync.complete(io, prior),
            _ => prior,
        }
    }
}

/// The error of a range that could not be written; none if there is no such call for this file.
fn error_of(outcome: Outcome) -> Option<i32> {
    let errno = outcome.errno().filter(|_| outcome.status == Status::Error)?;
    let absent = [Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL, Errno::SPIPE];
    (!absent.iter().any(|absent| absent.raw_os_error() == errno)).then_some(errno)
}

impl WriteBehind {
    /// For telling the system every so many blocks, counted as `class`; 0 is never.
    pub(crate) fn new(shared: &Arc<Shared>, after: u32, class: Class) -> Self {
        let mut this = Self {
            shared: Arc::clone(shared),
            after: 0,
            class,
            operations: Slots::with_callbacks(0, Vec::new()),
            ranges: Vec::new(),
            blocks: 0,
            told: 0,
            notes: Arc::default(),
            firsts: [None; RANGES],
            failure: None,
        };
        this.set_after(after);
        this
    }

    /// From now on the system is told every so many blocks.
    pub(crate) fn set_after(&mut self, after: u32) {
        self.after = after;
        if after == 0 {
            self.ranges.clear();
            self.blocks = 0;
        } else if self.operations.is_empty() {
            self.operations = Slots::with_callbacks(RANGES, vec![Arc::clone(&self.notes) as _]);
        }
    }

    /// So many blocks were written, all of one segment.
    pub(crate) fn note(&mut self, first: Tag, blocks: u32) {
        if self.after > 0 && blocks > 0 {
            self.blocks += blocks;
            self.ranges.push((first, blocks));
        }
    }

    /// Whether it is time to tell the system.
    pub(crate) fn is_due(&self) -> bool {
        self.blocks > 0 && self.blocks >= self.after
    }

    /// Whether it is time to, for who has the device to itself: then longer ranges, told less often,
    /// are worth more than a cache that is even. Scattered pages are no range.
    pub(crate) fn is_due_alone(&self) -> bool {
        let scattered = self.blocks < self.ranges.len() as u32 * ROW_MIN;
        self.is_due() && (scattered || self.blocks >= ALONE_MIN)
    }

    /// Ranges that the system was told of since the last call.
    pub(crate) fn take_told(&mut self) -> u64 {
        std::mem::take(&mut self.told)
    }

    /// The first range since the last call that could not be written: what was written to its segment
    /// is not to be counted on, and every later checkpoint fails.
    pub(crate) fn take_failure(&mut self) -> Option<WriteError> {
        self.failure.take()
    }

    /// Tells the system of what was noted, as far as that can be done without waiting for a place.
    pub(crate) fn tell(&mut self, session: &mut Session) {
        let ranges = self.take_ranges();
        let mut batch = session.batch();
        self.collect();
        for row in rows(&ranges) {
            self.begin(&mut batch, row, false);
        }
        drop(batch);
        self.keep_memory(ranges);
    }

    /// Tells the system of all that was noted. `beside_others`: so that little of it is under way at
    /// any time.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn tell_all(
        &mut self,
        session: &mut Session,
        beside_others: bool,
    ) -> Result<(), Cancelled> {
        let ranges = self.take_ranges();
        let most = if beside_others { RANGES_BESIDE_OTHERS } else { RANGES };
        let told = rows(&ranges).try_for_each(|row| {
            self.collect();
            while self.operations.pending() >= most {
                session.wait_some(&self.operations, 1)?;
                self.collect();
            }
            self.begin(session, row, beside_others);
            Ok(())
        });
        self.keep_memory(ranges);
        told
    }

    /// Tells the system of the rest, and waits until it has been told of everything.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn finish(&mut self, session: &mut Session) -> Result<(), Cancelled> {
        self.tell_all(session, false)?;
        session.wait_some(&self.operations, RANGES)?;
        self.collect();
        Ok(())
    }

    /// Begins one range, if a handle is to be had: otherwise the system begins by itself some time.
    fn begin(&mut self, session: &mut Session, (first, blocks): (Tag, u32), awaits: bool) {
        let Some(slot) = self.operations.free_slot() else { return };
        // A hint is not worth opening a file for, which may block.
        let relation = self.shared.relation(first).filter(|of| of.is_open(first.block()));
        let Some(located) = relation.and_then(|of| of.locate(first.block()).ok()) else { return };
        if located.file.is_direct() {
            return;
        }
        let Some(io) = session.try_acquire(self.class) else { return };
        let storage = self.shared.storage(first.cluster());
        if let Some(storage) = &storage {
            storage.pending_fsyncs().fsync_begins(io.wait_ref());
        }
        let callback = storage.map(|of| of.pending_fsyncs().callback());
        let before = std::mem::replace(&mut *self.notes.0[slot].lock(), callback);
        drop(before);
        self.firsts[slot] = Some(first);
        if let Some(words) = self.operations.payload(slot) {
            words.clear();
            words.push(slot as u64);
        }
        let (file, offset) = (&located.file, located.offset);
        let (length, slots) = (blocks * BLOCK_SIZE as u32, &mut self.operations);
        match awaits {
            true => io.await_writeback(file, offset, length, slots, slot),
            false => io.begin_writeback(file, offset, length, slots, slot),
        };
        self.told += 1;
    }

    /// Frees the places of those that have ended, and notes the first that failed.
    fn collect(&mut self) {
        while let Some(slot) = self.operations.first_done()
            && let Some(io) = self.operations.wait_ref(slot)
            && let Some(outcome) = self.operations.take(slot)
        {
            let of =
                self.firsts[slot].and_then(|first| Some((self.shared.relation(first)?, first)));
            if let Some((of, _)) = &of {
                of.storage().pending_fsyncs().fsync_ended(io);
            }
            let Some(errno) = error_of(outcome) else { continue };
            // Without a name only if nobody has the cluster any more.
            let path = of.map(|(of, first)| of.path(segment_of(first.block()).0));
            self.failure.get_or_insert(WriteError::Sync {
                path: path.unwrap_or_default(),
                source: io::Error::from_raw_os_error(errno),
            });
        }
    }

    fn take_ranges(&mut self) -> Vec<(Tag, u32)> {
        self.blocks = 0;
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.sort_unstable_by_key(|(first, _)| first.words());
        ranges
    }

    fn keep_memory(&mut self, mut ranges: Vec<(Tag, u32)>) {
        ranges.clear();
        self.ranges = ranges;
    }
}

/// Sorted ranges, those of a segment that are near each other as one.
fn rows(ranges: &[(Tag, u32)]) -> impl Iterator<Item = (Tag, u32)> + '_ {
    let near = |(one, blocks): &(Tag, u32), (next, _): &(Tag, u32)| {
        let gap = next.block().saturating_sub(one.block().saturating_add(*blocks));
        let segments = [one, next].map(|tag| segment_of(tag.block()).0);
        one.same_fork(*next) && segments[0] == segments[1] && gap <= GAP_MAX
    };
    ranges.chunk_by(near).map(|row| {
        let first = row[0].0;
        // One that was written twice may end before one that begins earlier.
        let blocks = row.iter().map(|(tag, blocks)| tag.block() - first.block() + blocks);
        (first, blocks.max().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_told_as_one() {
        let tag = |fork: u64, block: u32| Tag::from_words([1 << 56 | fork << 48, 9, block.into()]);
        let last = SEGMENT_BLOCKS - 1;
        let mut ranges = vec![
            (tag(0, 7), 2),
            (tag(0, 0), 4),
            (tag(1, 9), 1),
            // Twice, the second time less.
            (tag(0, 500), 20),
            (tag(0, 505), 1),
            // As far away as may be, from the end of the last but one; and one block more.
            (tag(0, 506 + GAP_MAX), 1),
            (tag(0, 508 + 2 * GAP_MAX), 1),
            // Neighbours, but not in the file.
            (tag(0, last), 1),
            (tag(0, last + 1), 16),
        ];
        ranges.sort_unstable_by_key(|(first, _)| first.words());
        let found: Vec<_> = rows(&ranges).collect();
        let wanted = [
            (tag(0, 0), 9),
            (tag(0, 500), 7 + GAP_MAX),
            (tag(0, 508 + 2 * GAP_MAX), 1),
            (tag(0, last), 1),
            (tag(0, last + 1), 16),
            (tag(1, 9), 1),
        ];
        assert_eq!(found, wanted);
        assert_eq!(rows(&[]).count(), 0);
    }
}
