//! Where a stream's block numbers come from.
//!
//! A source is asked only when the stream looks ahead, and never again after it has said that there
//! are no more. It must not wait for anything: the stream may hold I/O that nobody has submitted.

use std::ops::Range;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_format::BlockNo;

/// Block numbers, one after the other, each with data for the consumer.
pub trait BlockSource {
    /// What goes with each block.
    type Data;

    /// The next block; `None` at the end.
    fn next_block(&mut self) -> Option<(BlockNo, Self::Data)>;
}

/// A closure is a source.
impl<D, F: FnMut() -> Option<(BlockNo, D)>> BlockSource for F {
    type Data = D;

    fn next_block(&mut self) -> Option<(BlockNo, D)> {
        self()
    }
}

/// Blocks in a row.
#[derive(Debug, Clone)]
pub struct BlockRange(Range<BlockNo>);

impl BlockRange {
    /// From the first up to, and without, the last.
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

/// Blocks from a list, in its order.
#[derive(Debug, Clone)]
pub struct BlockList {
    blocks: Vec<BlockNo>,
    next: usize,
}

impl BlockList {
    /// These blocks.
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

/// The largest part of a table that a worker of a parallel scan takes at once, in blocks
/// (PostgreSQL's `PARALLEL_SEQSCAN_MAX_CHUNK_SIZE`).
const CHUNK_MAX: u32 = 8192;

/// A worker's part is about the table's 2048th.
const CHUNKS: u32 = 2048;

/// Parts of a table for several workers: each takes the next part when it has finished one, smaller
/// ones towards the end, so that all finish at about the same time.
#[derive(Debug, Clone)]
pub struct ParallelRange {
    shared: Arc<Parts>,
    mine: Range<BlockNo>,
}

#[derive(Debug)]
struct Parts {
    next: AtomicU64,
    end: BlockNo,
    chunk: u32,
}

impl ParallelRange {
    /// All blocks of a table of `blocks`; each clone is one worker's source.
    pub fn new(blocks: BlockNo) -> Self {
        let chunk = (blocks / CHUNKS).max(1).next_power_of_two().min(CHUNK_MAX);
        let parts = Parts { next: AtomicU64::new(0), end: blocks, chunk };
        Self { shared: Arc::new(parts), mine: 0..0 }
    }

    /// The next part. Towards the end parts get smaller, in 64 steps, as in PostgreSQL.
    fn take_part(&self) -> Option<Range<BlockNo>> {
        let Parts { next, end, chunk } = &*self.shared;
        let mut size = *chunk;
        let seen = next.load(Ordering::Relaxed);
        let left = u64::from(*end).saturating_sub(seen);
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
        if self.mine.is_empty() {
            self.mine = self.take_part()?;
        }
        self.mine.next().map(|block| (block, ()))
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
