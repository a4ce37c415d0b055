//! Index entries sorted by TID, for comparing an index with its table.
//!
//! A table is read in block order, but an index is read in key order. To compare them, we have to
//! sort one of them, and we choose the index entries because they are smaller.
//!
//! ```text
//!   all leaves ──▶ entries of blocks low.. ──▶ memory full? drop the upper half of the blocks
//!                                               └▶ sort by TID: complete for blocks low..end
//! ```
//!
//! Each entry takes 16 bytes, consisting of its TID and a hash of its key. If there isn't enough
//! memory for all entries, we check the table in several parts, and walk the index once for each
//! part. For the same purpose (`heapallindexed`), PostgreSQL's `amcheck` uses a Bloom filter, which
//! needs less memory but doesn't detect every problem.

use trunkline_format::btree::Entry;
use trunkline_format::{BlockNo, Tid};

/// Bits below the block number: 16 for the line pointer and one for the dead flag.
const ITEM_BITS: u32 = 17;

/// One entry. The derived order sorts by TID, with a live entry before a dead one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PackedEntry {
    /// The block number, the line pointer and, in the lowest bit, whether a server has marked the
    /// entry as dead (`LP_DEAD`).
    place: u64,
    /// The hash of the key.
    hash: u64,
}

impl PackedEntry {
    /// The block that the entry points to.
    fn block(self) -> BlockNo {
        (self.place >> ITEM_BITS) as BlockNo
    }

    /// The TID that the entry points to.
    fn row(self) -> Tid {
        Tid { block: self.block(), item: (self.place >> 1) as u16 }
    }

    /// Whether a server has marked the entry as dead.
    fn is_dead(self) -> bool {
        self.place & 1 != 0
    }
}

/// The entries for a range of the table's blocks.
#[derive(Debug)]
pub(super) struct EntryTable {
    list: Vec<PackedEntry>,
    /// The first block of the range.
    low: BlockNo,
    /// The end (exclusive) of the range of blocks for which we have all entries. `None` if we have
    /// the entries of all blocks starting at `low`.
    end: Option<BlockNo>,
    /// The most entries to keep.
    most: usize,
    /// Whether entries of the range are missing.
    incomplete: bool,
    /// Where the next call of [`EntryTable::of_block`] continues in `list`.
    at: usize,
}

/// The result of looking up the entry for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryMatch {
    /// No entry.
    Nothing,
    /// An entry.
    Entry {
        /// The hash of its key.
        hash: u64,
        /// Whether a server has marked the entry as dead.
        dead: bool,
    },
}

impl EntryTable {
    /// Creates an empty table for the blocks starting at `low`, with room for `most` entries. We
    /// enforce a minimum size that is large enough for the entries of any single block, because
    /// otherwise the check of that part of the table might make no progress.
    pub(super) fn new(low: BlockNo, most: usize) -> Self {
        let most = most.max(1024);
        Self { list: Vec::new(), low, end: None, most, incomplete: false, at: 0 }
    }

    /// Adds the TIDs of an entry. There are several if the entry has a posting list.
    pub(super) fn add(&mut self, entry: &Entry<'_>, hash: u64) {
        for row in entry.rows() {
            if row.block < self.low || self.end.is_some_and(|end| row.block >= end) {
                continue;
            }
            let place = u64::from(row.block) << ITEM_BITS
                | u64::from(row.item) << 1
                | u64::from(entry.is_dead());
            self.list.push(PackedEntry { place, hash });
            if self.list.len() > self.most {
                self.drop_upper_half();
            }
        }
    }

    /// Drops the upper half of the entries, and shortens the range of blocks accordingly. The
    /// entries aren't sorted yet, but we can find the middle one in linear time by using a
    /// selection algorithm.
    fn drop_upper_half(&mut self) {
        let middle = self.list.len() / 2;
        let (_, entry, _) = self.list.select_nth_unstable(middle);
        let end = entry.block().max(self.low.saturating_add(1));
        self.list.retain(|entry| entry.block() < end);
        self.end = Some(end);
        if self.list.len() > self.most {
            // All entries point to the same block. Since a block can't have more than a few hundred
            // line pointers, the index must be damaged. We keep only some of the entries, and make
            // sure that we won't report any entries as missing.
            self.list.truncate(self.most / 2);
            self.incomplete = true;
        }
    }

    /// Records that some entries couldn't be read, so that we no longer report any entries as
    /// missing.
    pub(super) fn set_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Whether entries of the range may be missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// The end (exclusive) of the range of blocks for which we have all entries, or `None` if there
    /// is no limit.
    pub(super) fn end(&self) -> Option<BlockNo> {
        self.end
    }

    /// Sorts the entries. Must be called before any lookup.
    pub(super) fn finish(&mut self) {
        self.list.sort_unstable();
        self.at = 0;
    }

    /// Returns the TIDs of all entries that point to `block`, in ascending order. The caller must
    /// also request the blocks in ascending order.
    pub(super) fn of_block(&mut self, block: BlockNo) -> impl Iterator<Item = Tid> + '_ {
        let rest = self.list.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|entry| entry.block() < block);
        let rest = self.list.get(self.at..).unwrap_or_default();
        rest.iter().take_while(move |entry| entry.block() == block).map(|entry| entry.row())
    }

    /// Finds the entry for `row`. If the index has both a live and a dead entry for the row, we
    /// return the live entry, because it comes first in the sort order.
    pub(super) fn find(&self, row: Tid) -> EntryMatch {
        let place = u64::from(row.block) << ITEM_BITS | u64::from(row.item) << 1;
        let at = self.list.partition_point(|entry| entry.place < place);
        match self.list.get(at) {
            Some(entry) if entry.row() == row => {
                EntryMatch::Entry { hash: entry.hash, dead: entry.is_dead() }
            }
            _ => EntryMatch::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(block: BlockNo, item: u16, hash: u64) -> PackedEntry {
        PackedEntry { place: u64::from(block) << ITEM_BITS | u64::from(item) << 1, hash }
    }

    #[test]
    fn a_table_can_be_checked_in_parts() {
        let all: Vec<PackedEntry> =
            (0..5000_u32).map(|at| entry(at * 7 % 500, (at / 500) as u16 + 1, at.into())).collect();
        let (mut low, mut seen, mut parts) = (0, Vec::new(), 0);
        loop {
            let mut entries = EntryTable::new(low, 0);
            for entry in &all {
                if entry.block() >= low && entries.end.is_none_or(|end| entry.block() < end) {
                    entries.list.push(*entry);
                    if entries.list.len() > entries.most {
                        entries.drop_upper_half();
                    }
                }
            }
            entries.finish();
            assert!(!entries.is_incomplete());
            let end = entries.end().unwrap_or(500);
            for block in low..end {
                let rows: Vec<Tid> = entries.of_block(block).collect();
                assert_eq!(rows.len(), 10, "{block}");
                for row in rows {
                    assert!(matches!(entries.find(row), EntryMatch::Entry { dead: false, .. }));
                    seen.push(row);
                }
            }
            assert_eq!(entries.find(Tid { block: low, item: 77 }), EntryMatch::Nothing);
            parts += 1;
            match entries.end() {
                Some(end) => low = end,
                None => break,
            }
        }
        assert_eq!(seen.len(), 5000);
        assert!(parts > 4 && seen.is_sorted(), "{parts}");
    }

    #[test]
    fn too_many_entries_for_one_block_do_not_loop() {
        let mut entries = EntryTable::new(3, 0);
        for at in 0..5000_u64 {
            entries.list.push(entry(3, 1, at));
            if entries.list.len() > entries.most {
                entries.drop_upper_half();
            }
        }
        assert!(entries.is_incomplete());
        assert_eq!(entries.end(), Some(4));
    }
}
