//! What was written and is still in the operating system's cache: told to begin writing it back every
//! so many pages (`backend_flush_after` and its kin), so that a sync later does not find everything.
//!
//! ```text
//!   note: a write has ended ──▶ ranges ── enough ──▶ sorted, neighbours together ──▶ sync_file_range
//! ```
//! Nothing is waited for, and an error is none: the sync at the end of a checkpoint is what counts.

use super::tag::Tag;
use crate::storage::Relation;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// See the module.
#[derive(Debug)]
pub(crate) struct Unflushed {
    /// Blocks until the system is told; 0 leaves it to itself.
    after: u32,
    ranges: Vec<(Relation, BlockNo, u32)>,
    blocks: u32,
}

impl Unflushed {
    /// For telling the system every so many blocks; 0 is never.
    pub(crate) fn new(after: u32) -> Self {
        Self { after, ranges: Vec::new(), blocks: 0 }
    }

    /// So many blocks were written. Gives the ranges that the system was told of, perhaps none.
    pub(crate) fn note(&mut self, relation: &Relation, first: BlockNo, blocks: u32) -> u64 {
        if self.after == 0 || relation.storage().is_direct() {
            return 0;
        }
        self.ranges.push((relation.clone(), first, blocks));
        self.blocks += blocks;
        if self.blocks >= self.after { self.flush() } else { 0 }
    }

    /// Tells the system of everything; of how many ranges.
    fn flush(&mut self) -> u64 {
        self.blocks = 0;
        self.ranges.sort_by_key(|(relation, first, _)| Tag::of(relation, *first).words());
        let mut begun = 0;
        for row in self.ranges.chunk_by(|one, next| {
            let follows = one.1.checked_add(one.2) == Some(next.1);
            follows && Tag::of(&one.0, 0) == Tag::of(&next.0, 0)
        }) {
            let (relation, first, _) = &row[0];
            let blocks: u64 = row.iter().map(|(_, _, blocks)| u64::from(*blocks)).sum();
            if let Ok(located) = relation.locate(*first) {
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
