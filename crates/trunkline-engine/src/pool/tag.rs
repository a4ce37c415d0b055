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
//! one pool can serve several data directories. The kind separates pages of relations from those of
//! SLRUs (commit log, multixacts), which have no header. Their LSN is in the buffer's descriptor.
//! The owner field is zero, unless the page is private to one session, in which case no other
//! session may see it.
//!
//! The descriptor stores the three words as atomics, so that a lookup can compare them without
//! taking a lock. This means that a lookup may see a mixture of the old and the new tag, and must
//! compare the tag again after it has pinned the buffer.

use crate::storage::{Relation, RelationLocator};
use trunkline_format::{BlockNo, Fork, Oid};

/// Kind of a tag: a block of a relation's fork.
const RELATION: u64 = 1;

/// Kind of a tag: a page of an SLRU.
const SLRU: u64 = 2;

/// Number of blocks whose buckets are next to each other. A bucket has four bytes, and a cache line
/// 64.
const NEIGHBOURS: u64 = 16;

/// Identity of one page: cluster, relation, fork and block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BufferTag {
    words: [u64; 3],
}

impl BufferTag {
    /// The tag of a block of a relation.
    pub(crate) fn of(relation: &Relation, block: BlockNo) -> Self {
        let locator @ RelationLocator { tablespace, database, relfilenode } = relation.locator();
        let kind = if locator.slru().is_some() { SLRU } else { RELATION };
        let cluster = u64::from(relation.storage().number());
        let fork = relation.fork() as u64;
        Self {
            words: [
                kind << 56 | fork << 48 | cluster << 32 | u64::from(tablespace.0),
                u64::from(database.0) << 32 | u64::from(relfilenode),
                u64::from(block),
            ],
        }
    }

    /// Whether the page begins with a header, with an LSN and a checksum.
    pub(crate) fn has_header(self) -> bool {
        self.words[0] >> 56 != SLRU
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

    /// Hash value for the mapping table. Neighbouring blocks, [`NEIGHBOURS`] at a time, get
    /// neighbouring values, so that a scan finds their buckets in one cache line. A hash that
    /// spreads all blocks costs a cache miss for every page of a large pool.
    ///
    /// The group of neighbours is hashed with one Fibonacci multiplication per word (Knuth, The Art
    /// of Computer Programming 3, 6.4), after which we fold the upper bits, because a multiplication
    /// mixes these best. The result also decides where in the cache line a group begins. Otherwise,
    /// a relation of which only every sixteenth block is in the pool would use only every sixteenth
    /// bucket.
    pub(crate) fn hash(self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let within = self.words[2] % NEIGHBOURS;
        let mut hash = self.words[0].wrapping_mul(STEP);
        hash = (hash.rotate_left(23) ^ self.words[1]).wrapping_mul(STEP);
        hash = (hash.rotate_left(23) ^ (self.words[2] / NEIGHBOURS)).wrapping_mul(STEP);
        hash = (hash >> 29) ^ (hash >> 43);
        hash - hash % NEIGHBOURS + (hash + within) % NEIGHBOURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: BufferTag = BufferTag { words: [RELATION << 56 | 1663, 5 << 32 | 16_384, 0] };

    #[test]
    fn blocks_spread_over_the_buckets() {
        // Blocks at such distances occur in samples, in summaries of ranges, and in strided scans.
        for step in [1, 2, 3, 15, 16, 17, 64, 128, 1000, 131_072] {
            let mut buckets = vec![0_u32; 4096];
            let blocks = (0..4096).map(|at: u32| at.wrapping_mul(step));
            blocks.for_each(|block| buckets[(TAG.at(block).hash() & 4095) as usize] += 1);
            let longest = buckets.iter().max().copied().unwrap_or_default();
            assert!(longest <= 10, "a chain of {longest} with every {step}th block");
        }
    }

    #[test]
    fn neighbours_share_a_cache_line_and_no_bucket() {
        for first in (0..4096).step_by(NEIGHBOURS as usize) {
            let hashes = (first..first + NEIGHBOURS as u32).map(|block| TAG.at(block).hash());
            let mut buckets: Vec<u64> = hashes.collect();
            buckets.sort_unstable();
            let line = buckets[0];
            assert_eq!(line % NEIGHBOURS, 0);
            assert!(buckets.into_iter().eq(line..line + NEIGHBOURS), "block {first}");
        }
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
