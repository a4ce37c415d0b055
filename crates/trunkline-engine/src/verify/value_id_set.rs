//! A compact set of TOAST value ids, like a Roaring bitmap.
//!
//! ```text
//!   upper 16 bits ──▶ lower 16 bits:  up to 4096 as a sorted list, 2 bytes each
//!                                     more as a bitmap of 8 KiB
//! ```
//!
//! Value ids are assigned sequentially, so they are dense. Each id takes up at most about two
//! bytes, and even a set of all 2³² ids needs only 512 MiB.

use std::collections::BTreeMap;

/// Maximum number of ids in a list. A longer list would take up more memory than a bitmap.
const FEW_MAX: usize = 4096;
/// 64-bit words of a bitmap.
const WORDS: usize = (1 << 16) / 64;

/// The set.
#[derive(Debug, Default)]
pub(super) struct ValueIdSet(BTreeMap<u16, Lower>);

/// The lower halves of all ids in the set that have the same upper half.
#[derive(Debug)]
enum Lower {
    Few(Vec<u16>),
    Many(Box<[u64; WORDS]>),
}

impl ValueIdSet {
    /// Adds an id. Converts a list to a bitmap when the list has become too long.
    pub(super) fn insert(&mut self, id: u32) {
        let (upper, lower) = halves(id);
        let set = self.0.entry(upper).or_insert_with(|| Lower::Few(Vec::new()));
        match set {
            Lower::Few(list) => {
                if let Err(at) = list.binary_search(&lower) {
                    list.insert(at, lower);
                }
                if list.len() > FEW_MAX {
                    let mut bits = Box::new([0; WORDS]);
                    list.iter().for_each(|&lower| mark(&mut bits, lower));
                    *set = Lower::Many(bits);
                }
            }
            Lower::Many(bits) => mark(bits, lower),
        }
    }

    /// Whether the set contains an id.
    pub(super) fn contains(&self, id: u32) -> bool {
        let (upper, lower) = halves(id);
        match self.0.get(&upper) {
            None => false,
            Some(Lower::Few(list)) => list.binary_search(&lower).is_ok(),
            Some(Lower::Many(bits)) => {
                let word = bits.get(usize::from(lower / 64)).copied().unwrap_or_default();
                word >> (lower % 64) & 1 != 0
            }
        }
    }
}

/// The upper and the lower 16 bits of an id.
fn halves(id: u32) -> (u16, u16) {
    ((id >> 16) as u16, id as u16)
}

/// Sets a bit of a bitmap.
fn mark(bits: &mut [u64; WORDS], lower: u16) {
    if let Some(word) = bits.get_mut(usize::from(lower / 64)) {
        *word |= 1 << (lower % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use trunkline_aio::facade::random::Rng;

    #[test]
    fn contains_exactly_the_inserted_ids() {
        let mut random = Rng::new(0x1D5);
        let (mut ids, mut expected) = (ValueIdSet::default(), BTreeSet::new());
        let take = |id, ids: &mut ValueIdSet, expected: &mut BTreeSet<u32>| {
            ids.insert(id);
            expected.insert(id);
        };
        for id in [0, 1, 65_535, 65_536, u32::MAX, u32::MAX - 1] {
            take(id, &mut ids, &mut expected);
        }
        // Dense numbers in one place and sparse ones elsewhere, some of them twice.
        for _ in 0..20_000 {
            take(7 << 16 | random.below(30_000) as u32, &mut ids, &mut expected);
            take(random.next_u64() as u32, &mut ids, &mut expected);
        }
        assert!(matches!(ids.0.get(&7), Some(Lower::Many(_))));
        assert!(expected.iter().all(|id| ids.contains(*id)));
        for _ in 0..100_000 {
            let id = random.next_u64() as u32;
            assert_eq!(ids.contains(id), expected.contains(&id), "{id}");
        }
        for id in 7 << 16..8 << 16 {
            assert_eq!(ids.contains(id), expected.contains(&id), "{id}");
        }
    }

    #[test]
    fn a_long_list_becomes_a_bitmap() {
        let mut ids = ValueIdSet::default();
        for id in (0..FEW_MAX as u32).rev() {
            ids.insert(2 * id);
        }
        assert!(matches!(ids.0.get(&0), Some(Lower::Few(list)) if list.is_sorted()));
        ids.insert(1);
        assert!(matches!(ids.0.get(&0), Some(Lower::Many(_))));
        assert!((0..8192).all(|id| ids.contains(id) == (id % 2 == 0 || id == 1)));
    }
}
