//! Residency: how many blocks of a relation are in the pool, in the kernel's page cache, or in
//! both.
//!
//! Blocks that are cached in both places occupy memory twice. If a block is only in the page cache,
//! reading it requires a copy but no device I/O. With direct I/O, no blocks should be in the page
//! cache, and these counts show whether that's the case.

use super::descriptor::flag;
use super::manager::BufferManager;
use super::tag::BufferTag;
use crate::storage::{Relation, StorageError};
use std::io;
use std::ops::Range;
use trunkline_aio::resident_blocks;
use trunkline_format::{BLOCK_SIZE, BlockNo, SEGMENT_BLOCKS};

/// Block counts of one fork, depending on where the blocks are cached. `pool` and `cache` both
/// include `both`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RelationResidency {
    /// All blocks that were looked up.
    pub blocks: u64,
    /// Blocks that are valid in the pool.
    pub pool: u64,
    /// Blocks in the kernel's page cache.
    pub cache: u64,
    /// Blocks in both.
    pub both: u64,
}

impl RelationResidency {
    /// Adds the counts of another fork or relation.
    pub fn add(&mut self, other: RelationResidency) {
        self.blocks += other.blocks;
        self.pool += other.pool;
        self.cache += other.cache;
        self.both += other.both;
    }
}

impl BufferManager {
    /// See [`super::Pool::residency`].
    pub(crate) fn residency(
        &self,
        relation: &Relation,
        blocks: Range<BlockNo>,
    ) -> Result<RelationResidency, StorageError> {
        let blocks = blocks.start..blocks.end.min(relation.blocks()?);
        let tag = BufferTag::of(relation, 0);
        let all = u64::from(blocks.end.saturating_sub(blocks.start));
        let mut counts = RelationResidency { blocks: all, ..Default::default() };
        let mut first = blocks.start;
        while first < blocks.end {
            let file = relation.locate(first)?.file;
            let in_segment = first % SEGMENT_BLOCKS;
            let end = blocks.end.min((first - in_segment).saturating_add(SEGMENT_BLOCKS));
            let part = in_segment..in_segment + (end - first);
            let cached =
                resident_blocks(&file, BLOCK_SIZE, part).map_err(|source: io::Error| {
                    let path = file.path().to_owned();
                    StorageError::Io { operation: "look at the cached part of", path, source }
                })?;
            for (block, at) in (first..end).zip(0..) {
                let pool = self.peek(tag.at(block)).is_some_and(|state| state.has(flag::VALID));
                let cache = cached.get(at).copied().unwrap_or(false);
                counts.pool += u64::from(pool);
                counts.cache += u64::from(cache);
                counts.both += u64::from(pool && cache);
            }
            first = end;
        }
        Ok(counts)
    }
}
