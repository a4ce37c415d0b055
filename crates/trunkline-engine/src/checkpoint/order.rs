//! The order of a checkpoint's writes: by block within a tablespace, tablespaces in turn.
//!
//! Each tablespace may be a disk of its own. They are to end at the same time, so each gets as many
//! turns as its share of the work: always the one whose part is least done goes next. A turn is a
//! row of neighbours, so that taking turns does not break up combined writes.

use crate::pool::Tag;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Pages of one turn: several combined writes.
const TURN: usize = 256;

/// See the module.
pub(super) fn balanced(mut pages: Vec<(Tag, u32)>) -> impl Iterator<Item = (Tag, u32)> {
    pages.sort_unstable_by_key(|(tag, _)| tag.words());
    let mut spaces: BTreeMap<u64, Vec<(Tag, u32)>> = BTreeMap::new();
    for page in pages {
        spaces.entry(page.0.words()[0] & SPACE).or_default().push(page);
    }
    let spaces: Vec<Vec<(Tag, u32)>> = spaces.into_values().collect();
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> =
        (0..spaces.len()).map(|space| Reverse((0, space))).collect();
    let mut done = vec![0_usize; spaces.len()];
    let mut turns = Vec::new();
    while let Some(Reverse((_, space))) = heap.pop() {
        let first = done[space];
        let end = (first + TURN).min(spaces[space].len());
        turns.push((space, first..end));
        done[space] = end;
        if end < spaces[space].len() {
            let part = (end as u64) << 32;
            heap.push(Reverse((part / spaces[space].len() as u64, space)));
        }
    }
    turns.into_iter().flat_map(move |(space, range)| spaces[space][range].to_vec())
}

/// Cluster and tablespace in the first word of a tag.
const SPACE: u64 = 0x0000_FFFF_FFFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(space: u64, block: u32) -> (Tag, u32) {
        (Tag::from_words([1 << 56 | 1 << 32 | space, 5 << 32 | 9, 0]).at(block), block)
    }

    #[test]
    fn tablespaces_end_together_and_rows_stay_whole() {
        let pages = (0..9000).rev().map(|b| page(1, b)).chain((0..3000).map(|b| page(2, b)));
        let ordered: Vec<_> = balanced(pages.collect()).collect();
        assert_eq!(ordered.len(), 12_000);
        let half: usize = ordered[..6000].iter().filter(|(t, _)| t.words()[0] as u32 == 2).count();
        assert!((1300..1700).contains(&half), "{half} of the small one by half time");
        let breaks = ordered.windows(2).filter(|w| w[1].0 != w[0].0.at(w[0].0.block() + 1)).count();
        assert!(breaks < 60, "{breaks} breaks in rows");
    }
}
