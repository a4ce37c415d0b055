//! Relation locator: the numbers that identify a relation's files.
//!
//! The pool also has pages that belong to no relation: those of the commit log and of multixacts. PostgreSQL keeps them in
//! a cache of their own (`slru.c`). Here, the files of an SLRU are found, read, written and synced like those of a
//! relation, so they have a locator too. It names no tablespace, which no relation's does. Two things are different:
//!
//! | | relation | SLRU |
//! |---|---|---|
//! | blocks of a segment file | 131,072 | 32 |
//! | page header, with LSN and checksum | yes | no |

use std::fmt;

use trunkline_format::transam::{SEGMENT_PAGES, Slru};
use trunkline_format::wal::RelFileLocator;
use trunkline_format::{BLOCK_SIZE, BlockNo, Oid, SEGMENT_BLOCKS};

/// The SLRUs, in the order of the numbers that their locators have, from 1.
const SLRUS: [Slru; 3] = [Slru::CommitLog, Slru::Offsets, Slru::Members];

/// In place of a tablespace, for SLRUs.
const NO_TABLESPACE: Oid = Oid(0);

/// Physical identity of a relation (`RelFileLocator`), or of an SLRU.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct RelationLocator {
    /// The tablespace: 1663 is `base`, 1664 is `global`. It is 0 for an SLRU, and never for a relation.
    pub tablespace: Oid,
    /// The database; 0 for the shared relations in `global`.
    pub database: Oid,
    /// The file number, from 1. It differs from the relation's OID after a rewrite such as
    /// `VACUUM FULL`.
    pub relfilenode: u32,
}

impl RelationLocator {
    /// The locator of an SLRU's files.
    pub(crate) fn of_slru(slru: Slru) -> Self {
        let number = SLRUS.iter().zip(1..).find(|(other, _)| **other == slru);
        let relfilenode = number.map_or(0, |(_, number)| number);
        Self { tablespace: NO_TABLESPACE, database: Oid(0), relfilenode }
    }

    /// The SLRU, if the files are not those of a relation.
    pub fn slru(self) -> Option<Slru> {
        if self.tablespace != NO_TABLESPACE {
            return None;
        }
        SLRUS.into_iter().find(|slru| Self::of_slru(*slru) == self)
    }

    /// The number of blocks of a full segment.
    pub(crate) fn segment_blocks(self) -> u32 {
        if self.slru().is_some() { SEGMENT_PAGES as u32 } else { SEGMENT_BLOCKS }
    }

    /// The segment that contains `block`, and the block's byte offset in the segment's file.
    pub(crate) fn segment_of(self, block: BlockNo) -> (u32, u64) {
        let blocks = self.segment_blocks();
        (block / blocks, u64::from(block % blocks) * BLOCK_SIZE as u64)
    }

    /// The first block of a segment that exists.
    pub(crate) fn first_block(self, segment: u32) -> BlockNo {
        segment.saturating_mul(self.segment_blocks())
    }

    /// The number of blocks from `block` to the end of its segment. The last segment that a fork can have is one block
    /// shorter than the others, because `InvalidBlockNumber` isn't a valid block number.
    pub(crate) fn blocks_left(self, block: BlockNo) -> u32 {
        let blocks = self.segment_blocks();
        (blocks - block % blocks).min(BlockNo::MAX - block)
    }
}

/// As WAL records name it.
impl From<RelationLocator> for RelFileLocator {
    fn from(locator: RelationLocator) -> Self {
        let RelationLocator { tablespace, database, relfilenode: number } = locator;
        Self { tablespace, database, number }
    }
}

/// As a WAL record names it.
impl From<RelFileLocator> for RelationLocator {
    fn from(locator: RelFileLocator) -> Self {
        let RelFileLocator { tablespace, database, number: relfilenode } = locator;
        Self { tablespace, database, relfilenode }
    }
}

/// As in PostgreSQL's messages: `1663/5/16384`. An SLRU has the name of its directory: `pg_xact`.
impl fmt::Display for RelationLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slru() {
            Some(slru) => f.write_str(slru.directory()),
            None => write!(f, "{}/{}/{}", self.tablespace, self.database, self.relfilenode),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::segment::LAST_SEGMENT;

    const TABLE: RelationLocator =
        RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 1 };

    #[test]
    fn blocks_to_the_end_of_a_segment() {
        for (block, left) in [
            (0, 131_072),
            (131_071, 1),
            (131_072, 131_072),
            (LAST_SEGMENT * SEGMENT_BLOCKS, 131_071),
            (BlockNo::MAX - 1, 1),
            (BlockNo::MAX, 0),
        ] {
            assert_eq!(TABLE.blocks_left(block), left, "block {block}");
        }
    }

    #[test]
    fn files_of_an_slru_have_32_pages() {
        assert_eq!((TABLE.slru(), TABLE.segment_of(131_073)), (None, (1, 8192)));
        for (slru, name) in
            SLRUS.into_iter().zip(["pg_xact", "pg_multixact/offsets", "pg_multixact/members"])
        {
            let locator = RelationLocator::of_slru(slru);
            assert_eq!((locator.slru(), locator.to_string()), (Some(slru), name.into()));
            assert_eq!((locator.segment_of(31), locator.segment_of(97)), ((0, 253_952), (3, 8192)));
            assert_eq!((locator.first_block(3), locator.blocks_left(97)), (96, 31));
            let other = RelationLocator { tablespace: Oid(1663), ..locator };
            assert_eq!(other.slru(), None);
        }
    }
}
