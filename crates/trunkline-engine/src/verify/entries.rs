//! The entries of an index, by the rows that they lead to: a table is read in the order of its
//! blocks, an index in the order of its keys, and one of the two must be turned round.
//!
//! ```text
//!   all leaves ──▶ entries of blocks low.. ──▶ too many? keep the lower half of the blocks
//!                                               └▶ sorted by row, for blocks low..end
//! ```
//! Of each entry sixteen bytes are kept: its row, and a hash of its key. Where that is more than
//! there is memory for, the table is done in parts, and the index is walked once for each.

use trunkline_format::btree::{Entry, Fault, KeyLayout};
use trunkline_format::{BlockNo, Tid};

/// Bits of a line pointer's number and of the mark.
const ITEM_BITS: u32 = 17;

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    /// Block, line pointer, and a bit that says that the server marked the entry as dead.
    place: u64,
    hash: u64,
}

impl Kept {
    fn block(self) -> BlockNo {
        (self.place >> ITEM_BITS) as BlockNo
    }

    fn row(self) -> Tid {
        Tid { block: self.block(), item: (self.place >> 1) as u16 }
    }

    fn is_dead(self) -> bool {
        self.place & 1 != 0
    }
}

/// The entries for a part of a table's blocks.
#[derive(Debug)]
pub(super) struct Entries {
    list: Vec<Kept>,
    low: BlockNo,
    /// The block behind the last one whose entries are all here; `None`: there is none behind.
    end: Option<BlockNo>,
    most: usize,
    /// Whether some are missing.
    incomplete: bool,
    /// Where [`Entries::of_block`] goes on.
    at: usize,
}

/// What an index has for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// No entry.
    Nothing,
    /// An entry.
    Entry {
        /// Of its key.
        hash: u64,
        /// The server takes it for one that nobody needs.
        dead: bool,
    },
}

impl Entries {
    /// None yet, of blocks from `low` on; at most `most` at a time.
    pub(super) fn new(low: BlockNo, most: usize) -> Self {
        let most = most.max(1024);
        Self { list: Vec::new(), low, end: None, most, incomplete: false, at: 0 }
    }

    /// Adds the rows of an entry.
    pub(super) fn add(&mut self, entry: &Entry<'_>, hash: u64) {
        for row in entry.rows() {
            if row.block < self.low || self.end.is_some_and(|end| row.block >= end) {
                continue;
            }
            let place = u64::from(row.block) << ITEM_BITS
                | u64::from(row.item) << 1
                | u64::from(entry.is_dead());
            self.list.push(Kept { place, hash });
            if self.list.len() > self.most {
                self.shrink();
            }
        }
    }

    /// Leaves out the upper half of the blocks.
    fn shrink(&mut self) {
        let middle = self.list.len() / 2;
        let (_, kept, _) = self.list.select_nth_unstable(middle);
        let end = kept.block().max(self.low.saturating_add(1));
        self.list.retain(|kept| kept.block() < end);
        self.end = Some(end);
        if self.list.len() > self.most {
            // All of one block, which has a few hundred line pointers: the index is damaged, and
            // what is missing is not looked for.
            self.list.truncate(self.most / 2);
            self.incomplete = true;
        }
    }

    /// Some entries could not be had: that one is missing means nothing.
    pub(super) fn set_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Whether some entries are missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// The block behind the last one whose entries are here; `None` if all are.
    pub(super) fn end(&self) -> Option<BlockNo> {
        self.end
    }

    /// Sorts what was added, for the questions that follow.
    pub(super) fn finish(&mut self) {
        self.list.sort_unstable();
        self.at = 0;
    }

    /// The rows of `block` that entries lead to, in order; blocks are asked for in rising order.
    pub(super) fn of_block(&mut self, block: BlockNo) -> impl Iterator<Item = Tid> + '_ {
        let rest = self.list.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|kept| kept.block() < block);
        let rest = self.list.get(self.at..).unwrap_or_default();
        rest.iter().take_while(move |kept| kept.block() == block).map(|kept| kept.row())
    }

    /// The entry for `row`.
    pub(super) fn find(&self, row: Tid) -> Found {
        let place = u64::from(row.block) << ITEM_BITS | u64::from(row.item) << 1;
        let at = self.list.partition_point(|kept| kept.place < place);
        match self.list.get(at) {
            Some(kept) if kept.row() == row => {
                Found::Entry { hash: kept.hash, dead: kept.is_dead() }
            }
            _ => Found::Nothing,
        }
    }
}

/// A hash of a key, from its columns' payloads. Two of them are equal by chance once in 2⁶⁴.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    /// Of no columns.
    pub(super) fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    /// With one more column.
    pub(super) fn column(self, payload: Option<&[u8]>) -> Self {
        let Some(payload) = payload else { return self.word(u64::MAX) };
        let (words, rest) = payload.as_chunks::<8>();
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let start = self.word(payload.len() as u64);
        let whole = words.iter().fold(start, |hash, word| hash.word(u64::from_le_bytes(*word)));
        whole.word(u64::from_le_bytes(last))
    }

    fn word(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(mixed ^ mixed >> 29)
    }

    /// The hash.
    pub(super) fn finish(self) -> u64 {
        self.0
    }
}

/// The hash of an entry's columns, those left out for which `known` is false.
pub(super) fn hash_entry(
    layout: &KeyLayout,
    entry: &Entry<'_>,
    known: &[bool],
) -> Result<u64, Fault> {
    let mut hash = KeyHash::new();
    let mut room = Vec::new();
    let columns = layout.attributes(entry).zip(layout.columns()).zip(known).zip(1..);
    for (((stored, column), known), number) in columns {
        let stored = stored?;
        if !known {
            continue;
        }
        let payload = stored.map(|stored| column.payload(stored, &mut room)).transpose();
        let fault = Fault::Value { item: entry.item(), column: number };
        hash = hash.column(payload.map_err(|_| fault)?);
    }
    Ok(hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(block: BlockNo, item: u16, hash: u64) -> Kept {
        Kept { place: u64::from(block) << ITEM_BITS | u64::from(item) << 1, hash }
    }

    #[test]
    fn a_table_is_done_in_parts() {
        let all: Vec<Kept> =
            (0..5000_u32).map(|at| kept(at * 7 % 500, (at / 500) as u16 + 1, at.into())).collect();
        let (mut low, mut seen, mut parts) = (0, Vec::new(), 0);
        loop {
            let mut entries = Entries::new(low, 0);
            for kept in &all {
                if kept.block() >= low && entries.end.is_none_or(|end| kept.block() < end) {
                    entries.list.push(*kept);
                    if entries.list.len() > entries.most {
                        entries.shrink();
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
                    assert!(matches!(entries.find(row), Found::Entry { dead: false, .. }));
                    seen.push(row);
                }
            }
            assert_eq!(entries.find(Tid { block: low, item: 77 }), Found::Nothing);
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
    fn too_many_for_one_block_end_too() {
        let mut entries = Entries::new(3, 0);
        for at in 0..5000_u64 {
            entries.list.push(kept(3, 1, at));
            if entries.list.len() > entries.most {
                entries.shrink();
            }
        }
        assert!(entries.is_incomplete());
        assert_eq!(entries.end(), Some(4));
    }

    #[test]
    fn hashes_tell_columns_apart() {
        let hash = |columns: &[Option<&[u8]>]| {
            columns.iter().fold(KeyHash::new(), |hash, column| hash.column(*column)).finish()
        };
        let all = [
            hash(&[]),
            hash(&[None]),
            hash(&[Some(b"")]),
            hash(&[Some(b"\0")]),
            hash(&[Some(b"ab"), Some(b"c")]),
            hash(&[Some(b"a"), Some(b"bc")]),
            hash(&[Some(b"abcdefgh")]),
            hash(&[Some(b"abcdefgh\0")]),
            hash(&[None, Some(b"")]),
            hash(&[Some(b""), None]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
    }
}
