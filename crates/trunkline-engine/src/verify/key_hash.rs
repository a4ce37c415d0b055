//! Hashes of index keys, for comparing row keys with index entries in little memory.
//!
//! Eight bytes per key are enough to tell whether two keys differ. The hash needn't resist attacks,
//! and since it's never stored, it can change at any time.

use trunkline_format::btree::{Entry, Fault, KeyLayout};

/// Hash of a key, computed from the payloads of its columns. The chance that two different keys
/// have the same hash is 1 in 2⁶⁴.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    /// The hash of no columns (the offset basis of FNV-1a).
    pub(super) fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    /// Adds a column, or a null. We hash the length first, so that column boundaries matter.
    pub(super) fn column(self, payload: Option<&[u8]>) -> Self {
        let Some(payload) = payload else { return self.word(u64::MAX) };
        let (words, rest) = payload.as_chunks::<8>();
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let start = self.word(payload.len() as u64);
        let whole = words.iter().fold(start, |hash, word| hash.word(u64::from_le_bytes(*word)));
        whole.word(u64::from_le_bytes(last))
    }

    /// Mixes in one word: a multiplication by the golden ratio, and a shift that brings the upper
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

/// Hashes the columns of an entry for which `known` is true. Values are decompressed first, because
/// an index may compress a value that the table stores uncompressed.
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
