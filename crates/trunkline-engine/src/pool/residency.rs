//! Residency: how many blocks of a relation are in the pool, in the kernel's page cache, or in
//! both.
//!
//! Blocks that are cached in both places occupy memory twice. If a block is only in the page cache,
//! reading it requires a copy but no device I/O. With direct I/O, no blocks should be in the page
//! cache, and these counts show whether that's the case.

use super::descriptor::flag;
use super::manager::BufferManager;
use super::tag::BufferTag;
use crate::storage::{Located, Relation, StorageError};
use std::io;
use std::ops::Range;
use trunkline_aio::{File, is_residency_known, resident_blocks, sampled_blocks};
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

/// The number of blocks that an estimate looks up.
const SAMPLE: u32 = 64;

/// Which part of a relation's blocks is where, estimated from some of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResidencyEstimate {
    /// The part that is in the pool, from 0 to 1.
    pub pool: f64,
    /// The part that is in the kernel's page cache, and not in the pool. It is 0 with direct I/O,
    /// and if the kernel doesn't say ([`is_residency_known`]).
    pub cache: f64,
}

impl BufferManager {
    /// See [`super::Pool::estimate_residency`].
    pub(crate) fn estimate_residency(
        &self,
        relation: &Relation,
        blocks: BlockNo,
    ) -> Result<ResidencyEstimate, StorageError> {
        let count = SAMPLE.min(blocks);
        let tag = BufferTag::of(relation, 0);
        // One of each part, in the middle.
        let middle = |number: u32| {
            ((u64::from(number) * 2 + 1) * u64::from(blocks)) / (2 * u64::from(count))
        };
        let sample = (0..count).map(|number| middle(number) as BlockNo);
        let is_pooled =
            |block: &BlockNo| self.peek(tag.at(*block)).is_some_and(|state| state.has(flag::VALID));
        let others: Vec<BlockNo> = sample.filter(|block| !is_pooled(block)).collect();
        let mut cached = 0;
        // Of a page that is built from the log, nothing is in the cache of its file.
        if !relation.storage().is_direct() && relation.storage().replay().is_none() {
            for part in others.chunk_by(|one, other| one / SEGMENT_BLOCKS == other / SEGMENT_BLOCKS)
            {
                cached += in_page_cache(relation, part)?;
            }
        }
        let part = |found: usize| found as f64 / f64::from(count.max(1));
        Ok(ResidencyEstimate { pool: part(count as usize - others.len()), cache: part(cached) })
    }

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
            let in_segment = first % SEGMENT_BLOCKS;
            let end = blocks.end.min((first - in_segment).saturating_add(SEGMENT_BLOCKS));
            let part = in_segment..in_segment + (end - first);
            let cached = match relation.locate_file(first) {
                Ok(Located { file, .. }) => resident_blocks(&file, BLOCK_SIZE, part)
                    .map_err(|source| look_failed(&file, source))?,
                // A server hasn't created the file yet, and the pages are in the log.
                Err(StorageError::SegmentMissing { .. })
                    if relation.storage().replay().is_some() =>
                {
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
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

/// How many of these blocks of one segment are in the page cache; none if the kernel doesn't say.
fn in_page_cache(relation: &Relation, blocks: &[BlockNo]) -> Result<usize, StorageError> {
    let Some(first) = blocks.first() else { return Ok(0) };
    let file = relation.locate_file(*first)?.file;
    let blocks: Vec<u32> = blocks.iter().map(|block| block % SEGMENT_BLOCKS).collect();
    let found = match is_residency_known(&file) {
        Ok(false) => return Ok(0),
        Ok(true) => sampled_blocks(&file, BLOCK_SIZE, &blocks),
        Err(error) => Err(error),
    };
    let found = found.map_err(|source| look_failed(&file, source))?;
    Ok(found.into_iter().filter(|cached| *cached).count())
}

fn look_failed(file: &File, source: io::Error) -> StorageError {
    let path = file.path().to_owned();
    StorageError::Io { operation: "look at the cached part of", path, source }
}
