//! What was written and is still in the operating system's cache: told to begin writing it back every
//! so many pages (`backend_flush_after` and its kin), so that a sync later does not find everything.
//!
//! ```text
//!   note: a write has ended ──▶ ranges ── enough ──▶ sorted, neighbours together ──▶ sync_file_range
//! ```
//! Nothing is waited for, and an error is none: the sync at the end of a checkpoint is what counts.

use super::shared::Shared;
use super::tag::Tag;
use trunkline_format::BLOCK_SIZE;

/// See the module.
#[derive(Debug)]
pub(crate) struct Unflushed {
    /// Blocks until the system is told; 0 leaves it to itself.
    after: u32,
    /// Names only: whoever sits idle must not keep a cluster that was closed.
    ranges: Vec<(Tag, u32)>,
    blocks: u32,
}

impl Unflushed {
    /// For telling the system every so many blocks; 0 is never.
    pub(crate) fn new(after: u32) -> Self {
        Self { after, ranges: Vec::new(), blocks: 0 }
    }

    /// So many blocks were written. Gives the ranges that the system was told of, perhaps none.
    pub(crate) fn note(&mut self, shared: &Shared, first: Tag, blocks: u32) -> u64 {
        if self.after == 0 {
            return 0;
        }
        self.ranges.push((first, blocks));
        self.blocks += blocks;
        if self.blocks >= self.after { self.flush(shared) } else { 0 }
    }

    /// From now on the system is told every so many blocks.
    pub(crate) fn set_after(&mut self, after: u32) {
        if after == 0 {
            self.ranges.clear();
            self.blocks = 0;
        }
        self.after = after;
    }

    /// Tells the system of everything; of how many ranges.
    fn flush(&mut self, shared: &Shared) -> u64 {
        self.blocks = 0;
        self.ranges.sort_unstable_by_key(|(first, _)| first.words());
        let mut begun = 0;
        for row in self.ranges.chunk_by(|one, next| {
            let follows = one.0.block().checked_add(one.1) == Some(next.0.block());
            follows && one.0.same_fork(next.0)
        }) {
            let first = row[0].0;
            let blocks: u64 = row.iter().map(|(_, blocks)| u64::from(*blocks)).sum();
            let Some(relation) = shared.relation(first) else { continue };
            if !relation.storage().is_direct()
                && let Ok(located) = relation.locate(first.block())
            {
                // What lies in the next segment is left to the system.
                let blocks = blocks.min(u64::from(located.blocks_left));
                let told = located.file.begin_writeback(located.offset, blocks * BLOCK_SIZE as u64);
                begun += u64::from(told);
            }
        }
        self.ranges.clear();
        begun
    }
}
