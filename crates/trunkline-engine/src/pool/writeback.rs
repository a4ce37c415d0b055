//! Writeback control: asks the kernel to start writing back dirty page-cache pages
//! (`sync_file_range`), so that the final fsync doesn't have to write all of them.
//!
//! Buffered writes only get as far as the kernel's page cache. The kernel writes those pages back
//! much later, often in one big burst that stalls all other I/O on the device. To prevent that,
//! after every `checkpoint_flush_after`, `bgwriter_flush_after` or `backend_flush_after` blocks we
//! ask the kernel to write back what we've written since the last time (PostgreSQL's
//! `ScheduleBufferTagForWriteback` and `IssuePendingWritebacks`).
//!
//! ```text
//!   a write has ended ──▶ range is queued ── enough blocks ──▶ sorted, neighbours merged ──▶ one I/O each
//! ```
//!
//! Because `sync_file_range` can block, we treat it as an I/O like any other. If the device can't
//! keep up, the checkpointer blocks ([`WritebackQueue::issue_all`]), which limits the amount of
//! dirty data in the page cache. A backend that is only evicting a page doesn't block
//! ([`WritebackQueue::issue`]). If there's no free slot for a range, the backend leaves that range
//! to the kernel.
//!
//! We treat an error here like a failed fsync. The kernel reports a write error only once per open
//! file description (`errseq_t`). If we ignored the error here, the checkpoint's own fsync would
//! succeed even though data had been lost. This is also why PostgreSQL uses `data_sync_elevel` in
//! `pg_flush_data`.

use super::clusters::WritableClusters;
use super::error::WriteError;
use super::tag::BufferTag;
use crate::Location;
use crate::storage::FsyncCallback;
use crate::window::SlotWindow;
use rustix::io::Errno;
use std::fmt;
use std::io;
use trunkline_aio::facade::Arc;
use trunkline_aio::{
    Callback, Cancelled, Class, Completion, Outcome, Payload, Session, Status, WaitRef,
};
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

/// Maximum number of ranges in flight.
const RANGES: usize = 4;

/// Maximum number of ranges in flight while other sessions are doing I/O, because their I/O would
/// queue behind these ranges.
const RANGES_BESIDE_OTHERS: usize = 2;

/// Number of blocks to issue together while no other session is doing I/O: 2 MB, which is the
/// maximum for these settings in PostgreSQL (decision 0008).
const BLOCKS_ALONE_MIN: u32 = 256;

/// Writes that average fewer blocks than this count as scattered.
const BLOCKS_PER_WRITE_MIN: u32 = 4;

/// Largest gap between two ranges that we still merge (1 MB). The kernel has to search the gap for
/// dirty pages, but that's cheaper than a second call.
const GAP_MAX: u32 = (1 << 20) / BLOCK_SIZE as u32;

// The longest range is a segment.
const _: () = assert!(SEGMENT_BLOCKS as u64 * BLOCK_SIZE as u64 <= u32::MAX as u64, "its length");

/// The ranges that have been written but not yet passed to the kernel for writeback, and the
/// writebacks in flight.
#[derive(Debug)]
pub(crate) struct WritebackQueue {
    clusters: Arc<WritableClusters>,
    /// Blocks after which the ranges are issued; 0 turns writeback control off.
    flush_after: u32,
    class: Class,
    /// The item is the first block of the range in flight.
    window: SlotWindow<WritebackPayload, Option<(BufferTag, WaitRef)>>,
    /// Each range's first block and length. We store only tags, because an idle session must not
    /// hold a reference to a file that has been removed or a cluster that has been closed.
    ranges: Vec<(BufferTag, u32)>,
    blocks: u32,
    issued: u64,
    /// The first failure that was not yet reported.
    failure: Option<WriteError>,
}

/// Contains the callback that records a failure, even if the issuing session never takes the
/// result. We keep it until the slot's next writeback, because a completion callback must not free
/// memory.
#[derive(Default)]
struct WritebackPayload(Option<FsyncCallback>);

impl fmt::Debug for WritebackPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WritebackPayload")
    }
}

impl Payload for WritebackPayload {}

/// The completion callback of writebacks.
#[derive(Debug)]
struct WritebackCallback;

impl Callback<WritebackPayload> for WritebackCallback {
    fn name(&self) -> &'static str {
        "writeback"
    }

    fn complete(&self, io: &mut Completion<'_, WritebackPayload>, prior: Outcome) -> Outcome {
        let Some(fsync) = io.payload.0.take() else { return prior };
        if error_of(prior).is_some() {
            fsync.complete(io, prior);
        }
        io.payload.0 = Some(fsync);
        prior
    }
}

/// Returns the errno if a range could not be written. Returns `None` if the file system doesn't
/// support `sync_file_range`, because then nothing was attempted and nothing can have been lost.
fn error_of(outcome: Outcome) -> Option<i32> {
    let errno = outcome.errno().filter(|_| outcome.status == Status::Error)?;
    let unsupported = [Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL, Errno::SPIPE];
    (!unsupported.iter().any(|other| other.raw_os_error() == errno)).then_some(errno)
}

impl WritebackQueue {
    /// Creates a queue that issues writeback after every `flush_after` blocks, as I/O of the given
    /// class. If `flush_after` is 0, it never issues any.
    pub(crate) fn new(clusters: &Arc<WritableClusters>, flush_after: u32, class: Class) -> Self {
        let mut queue = Self {
            clusters: Arc::clone(clusters),
            flush_after: 0,
            class,
            window: SlotWindow::new(0, Vec::new()),
            ranges: Vec::new(),
            blocks: 0,
            issued: 0,
            failure: None,
        };
        queue.set_flush_after(flush_after);
        queue
    }

    /// Changes the number of blocks.
    pub(crate) fn set_flush_after(&mut self, blocks: u32) {
        self.flush_after = blocks;
        if blocks == 0 {
            self.ranges.clear();
            self.blocks = 0;
        } else if self.window.len() == 0 {
            self.window = SlotWindow::new(RANGES, vec![Arc::new(WritebackCallback)]);
        }
    }

    /// Queues written blocks of one segment.
    pub(crate) fn push(&mut self, first: BufferTag, blocks: u32) {
        if self.flush_after > 0 && blocks > 0 {
            self.blocks += blocks;
            self.ranges.push((first, blocks));
        }
    }

    /// Whether enough blocks are queued.
    pub(crate) fn is_due(&self) -> bool {
        self.blocks > 0 && self.blocks >= self.flush_after
    }

    /// Whether enough blocks are queued for a writer whose session is the only one doing I/O. Such
    /// a writer should issue longer ranges less often, because that gains more than keeping the
    /// amount of dirty data in the page cache steady. If the queued pages are scattered, they won't
    /// form long ranges, so we don't wait for more of them.
    pub(crate) fn is_due_alone(&self) -> bool {
        let scattered = self.blocks < self.ranges.len() as u32 * BLOCKS_PER_WRITE_MIN;
        self.is_due() && (scattered || self.blocks >= BLOCKS_ALONE_MIN)
    }

    /// Ranges issued since the last call.
    pub(crate) fn take_issued(&mut self) -> u64 {
        std::mem::take(&mut self.issued)
    }

    /// Returns the first failure since the last call. Data in that range's segment may have been
    /// lost, so all later checkpoints will fail.
    pub(crate) fn take_failure(&mut self) -> Option<WriteError> {
        self.failure.take()
    }

    /// Issues queued ranges as long as there are free slots and handles. Never waits. If we can't
    /// issue a range, we drop it, and the kernel will write it back later.
    pub(crate) fn issue(&mut self, session: &mut Session) {
        let ranges = self.take_ranges();
        let mut batch = session.batch();
        self.take_ended();
        for range in merged(&ranges) {
            self.issue_range(&mut batch, range, false);
        }
        drop(batch);
        self.keep_memory(ranges);
    }

    /// Issues all queued ranges, waiting for free slots. If `beside_others` is set, we keep only a
    /// few ranges in flight, and no I/O completes until its range has been written to the device.
    /// This prevents other sessions' I/O from queueing behind too many ranges.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn issue_all(
        &mut self,
        session: &mut Session,
        beside_others: bool,
    ) -> Result<(), Cancelled> {
        let ranges = self.take_ranges();
        let most = if beside_others { RANGES_BESIDE_OTHERS } else { RANGES };
        let issued = merged(&ranges).try_for_each(|range| {
            self.take_ended();
            while self.window.in_flight() >= most {
                self.window.sleep_some(session, 1)?;
                self.take_ended();
            }
            self.issue_range(session, range, beside_others);
            Ok(())
        });
        self.keep_memory(ranges);
        issued
    }

    /// Issues the remaining ranges, and waits until every range has ended.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn finish(&mut self, session: &mut Session) -> Result<(), Cancelled> {
        self.issue_all(session, false)?;
        self.window.sleep_some(session, RANGES)?;
        self.take_ended();
        Ok(())
    }

    /// Issues one range if a slot and a handle are free. If not, the kernel will write the range
    /// back later.
    fn issue_range(
        &mut self,
        session: &mut Session,
        (first, blocks): (BufferTag, u32),
        until_written: bool,
    ) {
        let Some(slot) = self.window.idle_slot() else { return };
        // Writeback is only a hint, so it's not worth opening a file, which may block.
        let relation = self.clusters.relation(first).filter(|of| of.is_open(first.block()));
        let Some(located) = relation.and_then(|of| of.locate(first.block()).ok()) else { return };
        // Direct I/O doesn't leave dirty pages in the page cache.
        if located.file.is_direct() {
            return;
        }
        let Some(io) = session.try_acquire(self.class) else { return };
        // Register the writeback before it can complete. A concurrent checkpoint must wait for it,
        // because if a page could not be written, the kernel may report the error to this call
        // rather than to the checkpoint's fsync.
        let wait_ref = io.wait_ref();
        let storage = self.clusters.storage(first.cluster());
        if let Some(storage) = &storage {
            storage.pending_fsyncs().fsync_begins(wait_ref);
        }
        let callback = storage.map(|of| of.pending_fsyncs().callback());
        self.window.payload(slot).0 = callback;
        let (item, slots) = self.window.item_and_slots(slot);
        *item = Some((first, wait_ref));
        let (file, offset) = (&located.file, located.offset);
        let length = blocks * BLOCK_SIZE as u32;
        match until_written {
            true => io.await_writeback(file, offset, length, slots, slot),
            false => io.begin_writeback(file, offset, length, slots, slot),
        };
        self.window.issued(slot);
        self.issued += 1;
    }

    /// Takes the results of ranges that have ended, and remembers the first failure.
    fn take_ended(&mut self) {
        while let Some((slot, outcome)) = self.window.take_any() {
            let Some((first, io)) = self.window.item_mut(slot).take() else { continue };
            let relation = self.clusters.relation(first);
            if let Some(relation) = &relation {
                relation.storage().pending_fsyncs().fsync_ended(io);
            }
            let Some(errno) = error_of(outcome) else { continue };
            // The path is missing only if the cluster was closed.
            let path = relation.map(|of| of.path(of.segment_of(first.block()).0));
            self.failure.get_or_insert(WriteError::Sync {
                location: Location::new(path.unwrap_or_default()),
                source: io::Error::from_raw_os_error(errno),
            });
        }
    }

    fn take_ranges(&mut self) -> Vec<(BufferTag, u32)> {
        self.blocks = 0;
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.sort_unstable_by_key(|(first, _)| first.words());
        ranges
    }

    fn keep_memory(&mut self, mut ranges: Vec<(BufferTag, u32)>) {
        ranges.clear();
        self.ranges = ranges;
    }
}

/// Merges sorted ranges that are close to each other in one segment.
fn merged(ranges: &[(BufferTag, u32)]) -> impl Iterator<Item = (BufferTag, u32)> + '_ {
    let close = |(one, blocks): &(BufferTag, u32), (next, _): &(BufferTag, u32)| {
        let gap = next.block().saturating_sub(one.block().saturating_add(*blocks));
        let segments = [one, next].map(|tag| tag.locator().segment_of(tag.block()).0);
        one.same_fork(*next) && segments[0] == segments[1] && gap <= GAP_MAX
    };
    ranges.chunk_by(close).map(|run| {
        let first = run[0].0;
        // If some blocks were written twice, a later range may end before an earlier one.
        let blocks = run.iter().map(|(tag, blocks)| tag.block() - first.block() + blocks);
        (first, blocks.max().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_ranges_of_a_segment_are_merged() {
        let tag =
            |fork: u64, block: u32| BufferTag::from_words([1 << 56 | fork << 48, 9, block.into()]);
        let last = SEGMENT_BLOCKS - 1;
        let mut ranges = vec![
            (tag(0, 7), 2),
            (tag(0, 0), 4),
            (tag(1, 9), 1),
            // Written twice, but only partially the second time.
            (tag(0, 500), 20),
            (tag(0, 505), 1),
            // A range at the largest distance that is still merged, and a range that is one block
            // too far away.
            (tag(0, 506 + GAP_MAX), 1),
            (tag(0, 508 + 2 * GAP_MAX), 1),
            // Consecutive blocks in different segments.
            (tag(0, last), 1),
            (tag(0, last + 1), 16),
        ];
        ranges.sort_unstable_by_key(|(first, _)| first.words());
        let found: Vec<_> = merged(&ranges).collect();
        let wanted = [
            (tag(0, 0), 9),
            (tag(0, 500), 7 + GAP_MAX),
            (tag(0, 508 + 2 * GAP_MAX), 1),
            (tag(0, last), 1),
            (tag(0, last + 1), 16),
            (tag(1, 9), 1),
        ];
        assert_eq!(found, wanted);
        assert_eq!(merged(&[]).count(), 0);
    }
}
