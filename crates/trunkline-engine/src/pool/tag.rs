//! Buffer tag: identifies the page that a buffer contains, and serves as the key of the mapping
//! table.
//!
//! ```text
//!   word 0   63..56 kind │ 55..48 fork │ 47..32 cluster │ 31..0 tablespace
//!   word 1   63..32 database           │ 31..0 relfilenode
//!   word 2   63..32 owner              │ 31..0 block
//! ```
//!
//! A tag is PostgreSQL's `BufferTag` with three additional fields. Because of the cluster number,
//! one pool can serve several data directories. The kind allows for pages that don't belong to any
//! relation (commit log, multixacts) and for pages that exist only in memory. The owner field is
//! zero, unless the page is private to one session, in which case no other session may see it.
//!
//! The descriptor stores the three words as atomics, so that a lookup can compare them without
//! taking a lock. This means that a lookup may see a mixture of the old and the new tag, and must
//! compare the tag again after it has pinned the buffer.

use crate::storage::{Relation, RelationLocator};
use trunkline_format::{BlockNo, Fork, Oid};

/// Kind of a tag: a block of a relation's fork.
const RELATION: u64 = 1;

/// Identity of one page: cluster, relation, fork and block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BufferTag {
    words: [u64; 3],
}

impl BufferTag {
    /// The tag of a block of a relation.
    pub(crate) fn of(relation: &Relation, block: BlockNo) -> Self {
        let RelationLocator { tablespace, database, relfilenode } = relation.locator();
        let cluster = u64::from(relation.storage().number());
        let fork = relation.fork() as u64;
        Self {
            words: [
                RELATION << 56 | fork << 48 | cluster << 32 | u64::from(tablespace.0),
                u64::from(database.0) << 32 | u64::from(relfilenode),
                u64::from(block),
            ],
        }
    }

    /// The tag of another block of the same fork.
    pub(crate) fn at(self, block: BlockNo) -> Self {
        let [first, second, third] = self.words;
        Self { words: [first, second, third >> 32 << 32 | u64::from(block)] }
    }

    /// The tag as three words. Sorting tags by these words puts the blocks of a fork next to each
    /// other and in order.
    pub(crate) fn words(self) -> [u64; 3] {
        self.words
    }

    /// A tag from words that were stored in a descriptor.
    pub(crate) fn from_words(words: [u64; 3]) -> Self {
        Self { words }
    }

    /// Number of the cluster (see [`crate::storage::Storage::number`]).
    pub(crate) fn cluster(self) -> u16 {
        (self.words[0] >> 32) as u16
    }

    /// The fork.
    pub(crate) fn fork(self) -> Fork {
        Fork::ALL.get((self.words[0] >> 48 & 0xFF) as usize).copied().unwrap_or_default()
    }

    /// The relation.
    pub(crate) fn locator(self) -> RelationLocator {
        RelationLocator {
            tablespace: Oid(self.words[0] as u32),
            database: Oid((self.words[1] >> 32) as u32),
            relfilenode: self.words[1] as u32,
        }
    }

    /// The block.
    pub(crate) fn block(self) -> BlockNo {
        self.words[2] as u32
    }

    /// Whether both tags are of the same fork.
    pub(crate) fn same_fork(self, other: BufferTag) -> bool {
        self.words[..2] == other.words[..2] && self.words[2] >> 32 == other.words[2] >> 32
    }

    /// Hash value for the mapping table: one Fibonacci multiplication per word (Knuth, The Art of
    /// Computer Programming 3, 6.4), after which the high half is folded onto the low half. This
    /// spreads consecutive blocks over all buckets, which a plain FNV or identity hash of the block
    /// number wouldn't guarantee.
    pub(crate) fn hash(self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut hash = self.words[0].wrapping_mul(STEP);
        hash = (hash.rotate_left(23) ^ self.words[1]).wrapping_mul(STEP);
        hash = (hash.rotate_left(23) ^ self.words[2]).wrapping_mul(STEP);
        hash ^ hash >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_blocks_spread_over_the_buckets() {
        let tag = BufferTag::from_words([RELATION << 56 | 1663, 5 << 32 | 16_384, 0]);
        let mut buckets = vec![0_u32; 4096];
        (0..4096).for_each(|block| buckets[(tag.at(block).hash() & 4095) as usize] += 1);
        let longest = buckets.iter().max().copied().unwrap_or_default();
        assert!(longest <= 8, "a chain of {longest}");
    }

    #[test]
    fn fields_survive_the_packing() {
        let tag =
            BufferTag::from_words([RELATION << 56 | 2 << 48 | 7 << 32 | 1663, 5 << 32 | 9, 77]);
        assert_eq!((tag.cluster(), tag.fork(), tag.block()), (7, Fork::Vm, 77));
        assert_eq!(tag.locator().to_string(), "1663/5/9");
        assert!(tag.same_fork(tag.at(78)) && tag.at(78).block() == 78);
    }
}
