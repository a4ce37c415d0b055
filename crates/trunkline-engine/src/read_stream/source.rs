//! Block sources: determine which blocks a stream reads (PostgreSQL's `ReadStreamBlockNumberCB`).
//!
//! The stream calls its source only while it is looking ahead, and never again once the source has
//! returned its last block.
//!
//! # Sources that wait
//!
//! [`BlockSource::next_block`] must not wait for anything, because the stream may have staged I/O
//! that it hasn't submitted yet, and another session could be waiting for that I/O. But some
//! sources have to read pages themselves. An index scan, for example, reads leaf pages through a
//! stream of its own to find out which heap blocks come next. Such a source answers `Pending`, and
//! does its waiting in [`BlockSource::fetch`], which the stream calls after it has submitted its
//! I/O (decision 0015):
//!
//! ```text
//!   consumer ──next──▶ heap stream ──next_block──▶ source: TIDs of the last leaf
//!                           │                        ▲
//!                           └─submit, then fetch─────┴──next_from_source──▶ leaf stream
//! ```
//!
//! While the consumer still has pages to process, the stream asks the source only to try. This
//! starts reads of leaf pages, but doesn't wait for them, so that reads of both streams are in
//! flight. The stream lets the source wait only once it has no page left. A source whose stream
//! shares the session waits through its consumer's task.
//!
//! Under `io_method = sync`, nothing is in flight. There, the first try advises the leaf page, and a
//! later one reads it, which should find it in the kernel's page cache by then.

use super::upcoming::Upcoming;
use crate::pool::{Backend, ReadError};
use crate::waiting::Waiting;
use std::ops::Range;
use std::task::Poll;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_format::BlockNo;

/// Returns block numbers, each with some data for the consumer. A closure that returns an `Option`
/// can be used as a source that never waits.
pub trait BlockSource {
    /// Data that belongs to a block.
    type Data;

    /// Returns the next block, or `Ready(None)` at the end. Returns `Pending` if the source can't
    /// know the next block before [`BlockSource::fetch`] has been called. It must not wait here.
    fn next_block(&mut self) -> Poll<Option<(BlockNo, Self::Data)>>;

    /// The block that [`BlockSource::next_block`] will return after `ahead` other blocks, if the
    /// source knows it already. The stream uses this to load pages of the pool into the CPU's
    /// cache. It is only a hint.
    fn upcoming(&self, ahead: usize) -> Option<Upcoming> {
        let _ = ahead;
        None
    }

    /// How sure it is that the consumer takes the next block, if the source knows that block.
    fn next_is(&self) -> Expected {
        Expected::Unknown
    }

    /// Makes one attempt to get what [`BlockSource::next_block`] needs to continue. The stream
    /// calls this after `next_block` has returned `Pending`, and it has no staged I/O then.
    ///
    /// `wait` says what to do if the source isn't able to continue yet: it must return `Pending` at
    /// once, sleep, or have the task woken and return `Pending`. A source doesn't look into it, but
    /// passes it to [`ReadStream::next_from_source`](super::ReadStream::next_from_source). If this
    /// returns `Ready(Ok(()))`, `next_block` is called again. It may return `Pending` again, for
    /// example if a leaf page had no entries.
    ///
    /// # Errors
    /// The stream returns the error to its consumer, after the pages of all earlier blocks. If the
    /// consumer goes on, this is called again.
    fn fetch(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let _ = (backend, wait);
        unreachable!("a source that never waits was asked to")
    }

    /// Releases all pages that the source has pinned, because the stream releases its own
    /// ([`ReadStream::release_ahead`](super::ReadStream::release_ahead)). A source that reads from
    /// a stream must call the same function of that stream.
    fn release_ahead(&mut self) {}
}

/// How sure it is that the consumer of a stream takes a block. If a read is in flight, the stream starts
/// to read blocks that are expected, however far it would look ahead otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The consumer has all that it wants before this block. The stream reads it only if the consumer
    /// asks for another page nevertheless.
    Unlikely,
    /// The consumer may stop at any time.
    Unknown,
    /// The consumer will probably take it. The stream reads it only if it looks ahead already, because
    /// its consumer has had to wait.
    Likely,
    /// The consumer takes it before it may stop.
    Certain,
}

/// How [`BlockSource::fetch`] waits: not at all, by sleeping, or by having a task woken.
#[derive(Debug)]
pub struct SourceWait<'a, 'c> {
    waiting: Option<Waiting<'a, 'c>>,
    distance: u32,
}

impl<'a, 'c> SourceWait<'a, 'c> {
    /// The source must not wait.
    pub(crate) fn never() -> Self {
        Self { waiting: None, distance: 1 }
    }

    /// The source waits as the consumer of its stream does.
    pub(crate) fn of_consumer(waiting: Waiting<'a, 'c>) -> Self {
        Self { waiting: Some(waiting), distance: 1 }
    }

    /// Passes the look-ahead distance of the source's stream.
    pub(super) fn with_distance(self, distance: u32) -> Self {
        Self { distance, ..self }
    }

    /// `None` if the source must not wait.
    pub(crate) fn waiting(&mut self) -> Option<&mut Waiting<'a, 'c>> {
        self.waiting.as_mut()
    }

    /// The number of pages that the source's stream would pin ahead now. It is 1 if the stream has no
    /// reason to look ahead, because its consumer hasn't had to wait.
    pub(crate) fn distance(&self) -> u32 {
        self.distance
    }
}

/// What a stream knows about its source.
#[derive(Debug)]
pub(super) enum Supply {
    /// It can be asked for its next block.
    Blocks,
    /// It has to fetch something first.
    Waits,
    /// It could not fetch what it needs. The error comes after the pages of all earlier blocks.
    Failed(Box<ReadError>),
    /// It has returned its last block.
    Ended,
}

impl<D, F: FnMut() -> Option<(BlockNo, D)>> BlockSource for F {
    type Data = D;

    fn next_block(&mut self) -> Poll<Option<(BlockNo, D)>> {
        Poll::Ready(self())
    }
}

/// Consecutive blocks.
#[derive(Debug, Clone)]
pub struct BlockRange(Range<BlockNo>);

impl BlockRange {
    /// Creates a source for the blocks of a range, excluding its end.
    pub fn new(blocks: Range<BlockNo>) -> Self {
        Self(blocks)
    }
}

impl BlockSource for BlockRange {
    type Data = ();

    fn next_block(&mut self) -> Poll<Option<(BlockNo, ())>> {
        Poll::Ready(self.0.next().map(|block| (block, ())))
    }
}

/// The blocks of a list, in the given order.
#[derive(Debug, Clone)]
pub struct BlockList {
    blocks: Vec<BlockNo>,
    next: usize,
}

impl BlockList {
    /// Creates a source for these blocks.
    pub fn new(blocks: Vec<BlockNo>) -> Self {
        Self { blocks, next: 0 }
    }
}

impl BlockSource for BlockList {
    type Data = ();

    fn next_block(&mut self) -> Poll<Option<(BlockNo, ())>> {
        let block = self.blocks.get(self.next).map(|&block| (block, ()));
        self.next += usize::from(block.is_some());
        Poll::Ready(block)
    }
}

/// Number of blocks in the largest chunk that a worker of a parallel scan takes (PostgreSQL's
/// `PARALLEL_SEQSCAN_MAX_CHUNK_SIZE`).
const CHUNK_MAX: u32 = 8192;

/// A table is divided into about this many chunks (PostgreSQL's `PARALLEL_SEQSCAN_NCHUNKS`).
const CHUNKS: u32 = 2048;

/// The blocks of a table, divided into chunks for several workers. The chunks get smaller towards
/// the end, so that all workers finish at about the same time.
#[derive(Debug, Clone)]
pub struct ParallelRange {
    chunks: Arc<Chunks>,
    current: Range<BlockNo>,
}

#[derive(Debug)]
struct Chunks {
    next: AtomicU64,
    end: BlockNo,
    size: u32,
}

impl ParallelRange {
    /// Creates a source for all blocks of a table. Each worker uses its own clone.
    pub fn new(blocks: BlockNo) -> Self {
        let size = (blocks / CHUNKS).max(1).next_power_of_two().min(CHUNK_MAX);
        let chunks = Chunks { next: AtomicU64::new(0), end: blocks, size };
        Self { chunks: Arc::new(chunks), current: 0..0 }
    }

    /// Takes the next chunk. If fewer than 64 chunks of the current size are left, we halve the
    /// chunk size, as PostgreSQL does. `left` may be out of date by the time we take the chunk, but
    /// then the chunk is just a bit too large.
    fn take_chunk(&self) -> Option<Range<BlockNo>> {
        let Chunks { next, end, size } = &*self.chunks;
        let mut size = *size;
        let left = u64::from(*end).saturating_sub(next.load(Ordering::Relaxed));
        while size > 1 && left < u64::from(size) * 64 {
            size /= 2;
        }
        let first = next.fetch_add(u64::from(size), Ordering::Relaxed);
        let first = BlockNo::try_from(first).ok().filter(|first| first < end)?;
        Some(first..first.saturating_add(size).min(*end))
    }

    fn next(&mut self) -> Option<BlockNo> {
        if self.current.is_empty() {
            self.current = self.take_chunk()?;
        }
        self.current.next()
    }
}

impl BlockSource for ParallelRange {
    type Data = ();

    fn next_block(&mut self) -> Poll<Option<(BlockNo, ())>> {
        Poll::Ready(self.next().map(|block| (block, ())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_a_table_without_gap_or_overlap() {
        for blocks in [0, 1, 7, 2048, 100_000, 3_000_000] {
            let range = ParallelRange::new(blocks);
            let mut workers = [range.clone(), range.clone(), range];
            let mut seen = vec![false; blocks as usize];
            let mut running = true;
            while running {
                running = false;
                for worker in &mut workers {
                    if let Some(block) = worker.next() {
                        assert!(!std::mem::replace(&mut seen[block as usize], true));
                        running = true;
                    }
                }
            }
            assert!(seen.iter().all(|&seen| seen), "{blocks}");
        }
    }
}
