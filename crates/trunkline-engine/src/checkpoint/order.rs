//! Checkpoint write order: pages are sorted by block within each tablespace, and the tablespaces
//! take turns.
//!
//! Each tablespace may be on a different disk. If we wrote one tablespace after another, all but
//! one of the disks would be idle, so we want all of them to finish at about the same time. We do
//! that by always continuing with the tablespace that has made the least progress (PostgreSQL's
//! `CkptTsStatus` heap). PostgreSQL switches after every page. We write many neighbouring pages
//! before we switch, because otherwise we could not combine them into larger writes.

use crate::pool::BufferTag;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of pages in one turn: several combined writes.
const TURN: usize = 256;

/// Sorts the pages of a checkpoint, and balances tablespaces.
pub(super) fn balanced(mut pages: Vec<(BufferTag, u32)>) -> impl Iterator<Item = (BufferTag, u32)> {
    pages.sort_unstable_by_key(|(tag, _)| {
        let [first, second, third] = tag.words();
        (first & SPACE, first & !SPACE, second, third)
    });
    let mut at = 0;
    let spaces = pages.chunk_by(|(one, _), (next, _)| space(*one) == space(*next));
    let mut spaces: Vec<Space> = spaces
        .map(|pages| {
            let first = at;
            at += pages.len();
            Space { first, next: first, end: at }
        })
        .collect();
    let numbers = 0..spaces.len();
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = numbers.map(|n| Reverse((0, n))).collect();
    let turns = std::iter::from_fn(move || {
        let Reverse((_, number)) = heap.pop()?;
        let space = &mut spaces[number];
        let turn = space.next..(space.next + TURN).min(space.end);
        space.next = turn.end;
        if space.next < space.end {
            heap.push(Reverse((space.part_done(), number)));
        }
        Some(turn)
    });
    turns.flatten().map(move |at| pages[at])
}

/// The pages of one tablespace, by their positions in the sorted list.
struct Space {
    first: usize,
    next: usize,
    end: usize,
}

impl Space {
    /// Fraction of the pages that were returned, in units of 2^-32.
    fn part_done(&self) -> u64 {
        (((self.next - self.first) as u64) << 32) / (self.end - self.first) as u64
    }
}

fn space(tag: BufferTag) -> u64 {
    tag.words()[0] & SPACE
}

/// Bits of cluster and tablespace in the first word of a tag.
const SPACE: u64 = 0x0000_FFFF_FFFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(space: u64, block: u32) -> (BufferTag, u32) {
        (BufferTag::from_words([1 << 56 | 1 << 32 | space, 5 << 32 | 9, 0]).at(block), block)
    }

    #[test]
    fn tablespaces_end_together_and_runs_stay_whole() {
        let pages = (0..9000).rev().map(|b| page(1, b)).chain((0..3000).map(|b| page(2, b)));
        let ordered: Vec<_> = balanced(pages.collect()).collect();
        assert_eq!(ordered.len(), 12_000);
        let half: usize = ordered[..6000].iter().filter(|(t, _)| t.words()[0] as u32 == 2).count();
        assert!((1300..1700).contains(&half), "{half} pages of the small tablespace at half time");
        let breaks = ordered.windows(2).filter(|w| w[1].0 != w[0].0.at(w[0].0.block() + 1)).count();
        assert!(breaks < 60, "{breaks} breaks in runs");
    }
}
