//! A target: a range of blocks in one fork, the unit of prewarming.
//!
//! A target knows its files, so that workers can be assigned by mount.

use std::ops::Range;

use trunkline_format::{BLOCK_SIZE, BlockNo, Fork};

use crate::datadir::FileEntry;
use crate::storage::RelationLocator;

/// Blocks of one fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The relation.
    pub locator: RelationLocator,
    /// Its fork.
    pub fork: Fork,
    /// Its selected segments, in order.
    pub files: Vec<FileEntry>,
    /// The first block to load, counted over all segments.
    pub first: BlockNo,
    /// The end of the range, exclusive.
    pub end: BlockNo,
}

impl Target {
    /// The mount that contains the files. All files of a relation are in one tablespace directory.
    pub(super) fn device(&self) -> u64 {
        self.files.first().map_or(0, |file| file.device)
    }

    /// The blocks to load, as one range per file.
    pub fn ranges(&self) -> impl Iterator<Item = Range<BlockNo>> + '_ {
        self.files.iter().filter_map(|file| {
            let first = file.first_block()?;
            let end = first.saturating_add(file.blocks());
            let range = first.max(self.first)..end.min(self.end);
            (!range.is_empty()).then_some(range)
        })
    }

    /// The number of blocks to load.
    pub fn blocks(&self) -> u64 {
        self.ranges().map(|range| range.len() as u64).sum()
    }

    /// The files that contain blocks to load, each truncated after its last such block.
    pub fn wanted_files(&self) -> Vec<FileEntry> {
        let wanted = self.files.iter().filter_map(|file| {
            let begin = file.first_block()?;
            let end = begin.saturating_add(file.blocks()).min(self.end);
            let wanted = begin.max(self.first) < end;
            let bytes = u64::from(end.saturating_sub(begin)) * BLOCK_SIZE as u64;
            wanted.then(|| FileEntry { bytes, ..file.clone() })
        });
        wanted.collect()
    }
}
