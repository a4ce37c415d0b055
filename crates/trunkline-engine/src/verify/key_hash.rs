//! Hashes of index keys, for comparing row keys with index entries in little memory.
//!
//! We use eight bytes per key, which is enough to tell whether two keys are different. The hash
//! function doesn't have to withstand attacks. We can change it at any time, because hashes are
//! never stored.

use super::checked_table::CheckedIndex;
use trunkline_format::btree::{Entry, Fault};

/// A hash of an index key, computed from the payloads of the key's columns. If two keys are
/// different, the chance that they nevertheless have the same hash is 1 in 2⁶⁴.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    /// The hash of a key without columns (the offset basis of FNV-1a).
    pub(super) fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    /// Adds a column, which may be null. We hash the length of the column first, so that the hash
    /// depends on where one column ends and the next begins.
    pub(super) fn column(self, payload: Option<&[u8]>) -> Self {
        let Some(payload) = payload else { return self.word(u64::MAX) };
        let (words, rest) = payload.as_chunks::<8>();
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let start = self.word(payload.len() as u64);
        let whole = words.iter().fold(start, |hash, word| hash.word(u64::from_le_bytes(*word)));
        whole.word(u64::from_le_bytes(last))
    }

    /// Mixes one word into the hash by multiplying with the golden ratio and shifting the upper
    /// bits down.
    fn word(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(mixed ^ mixed >> 29)
    }

    /// Returns the hash of the columns so far.
    pub(super) fn finish(self) -> u64 {
        self.0
    }
}

/// Hashes those columns of an entry for which `known` is true. We decompress the values first,
/// because a value can be compressed in an index even if it's stored uncompressed in the table.
pub(super) fn hash_entry(
    index: &CheckedIndex,
    entry: &Entry<'_>,
    known: &[bool],
) -> Result<u64, Fault> {
    let layout = index.index.layout();
    let mut hash = KeyHash::new();
    let mut room = Vec::new();
    let columns = layout.attributes(entry).zip(layout.columns()).zip(known).zip(1..).enumerate();
    for (at, (((stored, column), known), number)) in columns {
        let stored = stored?;
        if !known {
            continue;
        }
        let payload = stored.map(|stored| column.payload(stored, &mut room)).transpose();
        let payload = payload.map_err(|_| Fault::Value { item: entry.item(), column: number })?;
        hash = hash.column(payload.map(|payload| index.significant(at, payload)));
    }
    Ok(hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_column_boundaries() {
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
