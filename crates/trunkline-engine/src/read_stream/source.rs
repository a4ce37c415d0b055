//! Block sources: determine which blocks a stream reads (PostgreSQL's `ReadStreamBlockNumberCB`).
//!
//! The stream calls its source only while it is looking ahead, and never again once the source has
//! returned `None`. A source must not wait for anything. The stream may have staged I/O that it
//! hasn't submitted yet, and another session could be waiting for that I/O.

use std::ops::Range;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_format::BlockNo;

/// Returns block numbers, each with some data for the consumer. A closure can be used as a source.
pub trait BlockSource {
    /// Data that belongs to a block.
    type Data;

    /// Returns the next block, or `None` at the end.
    fn next_block(&mut self) -> Option<(BlockNo, Self::Data)>;
}

impl<D, F: FnMut() -> Option<(BlockNo, D)>> BlockSource for F {
    type Data = D;

    fn next_block(&mut self) -> Option<(BlockNo, D)> {
        self()
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

    fn next_block(&mut self) -> Option<(BlockNo, ())> {
        self.0.next().map(|block| (block, ()))
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

    fn next_block(&mut self) -> Option<(BlockNo, ())> {
        let block = *self.blocks.get(self.next)?;
        self.next += 1;
        Some((block, ()))
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
}

impl BlockSource for ParallelRange {
    type Data = ();

    fn next_block(&mut self) -> Option<(BlockNo, ())> {
        if self.current.is_empty() {
            self.current = self.take_chunk()?;
        }
        self.current.next().map(|block| (block, ()))
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
                    if let Some((block, ())) = worker.next_block() {
                        assert!(!std::mem::replace(&mut seen[block as usize], true));
                        running = true;
                    }
                }
            }
            assert!(seen.iter().all(|&seen| seen), "{blocks}");
        }
    }
}
