//! Where a relation's blocks are: in the pool, in the operating system's cache, in both, in neither.
//!
//! Blocks in both are memory spent twice; blocks in the cache alone are read at the price of a copy.
//! With direct I/O the cache should hold nothing, which this shows.

use super::Pool;
use super::state::flag;
use super::tag::Tag;
use crate::storage::{Relation, StorageError};
use std::io;
use trunkline_aio::resident_blocks;
use trunkline_format::{BLOCK_SIZE, SEGMENT_BLOCKS};

/// Counts of blocks of one fork. `pool` and `cache` both include `both`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RelationResidency {
    /// All of them.
    pub blocks: u64,
    /// In the pool, valid.
    pub pool: u64,
    /// In the operating system's page cache.
    pub cache: u64,
    /// In both.
    pub both: u64,
}

impl RelationResidency {
    /// Adds another fork's, or relation's.
    pub fn add(&mut self, other: RelationResidency) {
        self.blocks += other.blocks;
        self.pool += other.pool;
        self.cache += other.cache;
        self.both += other.both;
    }
}

impl Pool {
    /// Looks where the blocks of a fork are, without reading any. The answer about the page cache is
    /// true for files that the caller owns or may write (see [`trunkline_aio::residency`]), and may
    /// be old by the time it is given, as that about the pool.
    ///
    /// # Errors
    /// A file of the fork cannot be used or mapped.
    pub fn residency(&self, relation: &Relation) -> Result<RelationResidency, StorageError> {
        let blocks = relation.blocks()?;
        let tag = Tag::of(relation, 0);
        let mut found = RelationResidency { blocks: u64::from(blocks), ..Default::default() };
        for first in (0..blocks).step_by(SEGMENT_BLOCKS as usize) {
            let file = relation.locate(first)?.file;
            let cached = resident_blocks(&file, BLOCK_SIZE).map_err(|source: io::Error| {
                let path = file.path().to_owned();
                StorageError::Io { operation: "look at the cached part of", path, source }
            })?;
            let last = blocks.min(first.saturating_add(SEGMENT_BLOCKS));
            for (block, at) in (first..last).zip(0..) {
                let seen = self.shared.table.peek(&self.shared.buffers, tag.at(block));
                let pool = seen.is_some_and(|seen| seen.has(flag::VALID));
                let cache = cached.get(at).copied().unwrap_or(false);
                found.pool += u64::from(pool);
                found.cache += u64::from(cache);
                found.both += u64::from(pool && cache);
            }
        }
        Ok(found)
    }
}
