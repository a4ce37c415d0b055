//! **Known pages**: a bounded number of pages, by name. When it is full, a page that was not used for
//! long is forgotten (a clock sweep).

use std::collections::BTreeMap;

use trunkline_format::wal::RelFileLocator;
use trunkline_format::{BlockNo, Fork, PageBytes};

/// A page of a relation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PageName {
    relation: RelFileLocator,
    fork: Fork,
    block: BlockNo,
}

impl PageName {
    pub(super) fn new(relation: RelFileLocator, fork: Fork, block: BlockNo) -> Self {
        Self { relation, fork, block }
    }
}

#[derive(Debug)]
struct Slot {
    name: PageName,
    bytes: Box<PageBytes>,
    is_used: bool,
}

/// The pages.
#[derive(Debug)]
pub(super) struct KnownPages {
    slots: Vec<Slot>,
    /// The slot of each page.
    by_name: BTreeMap<PageName, usize>,
    slots_max: usize,
    hand: usize,
}

impl KnownPages {
    pub(super) fn new(slots_max: usize) -> Self {
        let slots_max = slots_max.max(1);
        Self { slots: Vec::new(), by_name: BTreeMap::new(), slots_max, hand: 0 }
    }

    /// Copies a page. Returns false if it isn't known; `page` is then unchanged.
    pub(super) fn read(&mut self, name: PageName, page: &mut PageBytes) -> bool {
        let slot = self.by_name.get(&name).and_then(|slot| self.slots.get_mut(*slot));
        let Some(slot) = slot else { return false };
        slot.is_used = true;
        page.copy_from_slice(&*slot.bytes);
        true
    }

    /// Remembers a page.
    pub(super) fn write(&mut self, name: PageName, page: &PageBytes) {
        if let Some(slot) = self.by_name.get(&name).and_then(|slot| self.slots.get_mut(*slot)) {
            slot.bytes.copy_from_slice(page);
            return;
        }
        let number = self.free_slot();
        match self.slots.get_mut(number) {
            Some(slot) => {
                self.by_name.remove(&slot.name);
                slot.name = name;
                slot.is_used = false;
                slot.bytes.copy_from_slice(page);
            }
            None => self.slots.push(Slot { name, bytes: Box::new(*page), is_used: false }),
        }
        self.by_name.insert(name, number);
    }

    /// The slot that the next page gets: a new one, or that of a page which wasn't used since the hand
    /// has passed it.
    fn free_slot(&mut self) -> usize {
        if self.slots.len() < self.slots_max {
            return self.slots.len();
        }
        loop {
            let number = self.hand;
            self.hand = (self.hand + 1) % self.slots_max;
            let was_used = match self.slots.get_mut(number) {
                Some(slot) => std::mem::take(&mut slot.is_used),
                None => false,
            };
            if !was_used {
                return number;
            }
        }
    }

    /// Forgets a page.
    pub(super) fn forget(&mut self, name: PageName) {
        let Some(number) = self.by_name.remove(&name) else { return };
        self.slots.swap_remove(number);
        if let Some(moved) = self.slots.get(number) {
            self.by_name.insert(moved.name, number);
        }
        self.hand = 0;
    }

    /// Forgets the pages of a fork from block `from` on.
    pub(super) fn cut(&mut self, relation: RelFileLocator, fork: Fork, from: BlockNo) {
        let first = PageName::new(relation, fork, from);
        let last = PageName::new(relation, fork, BlockNo::MAX);
        while let Some((name, _)) = self.by_name.range(first..=last).next() {
            let name = *name;
            self.forget(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_format::{BLOCK_SIZE, Oid};

    use super::*;

    fn name(block: BlockNo) -> PageName {
        let relation = RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: 1 };
        PageName::new(relation, Fork::Main, block)
    }

    #[test]
    fn a_page_that_was_used_outlives_others() {
        let mut pages = KnownPages::new(3);
        let (mut page, mut found) = ([0; BLOCK_SIZE], [0; BLOCK_SIZE]);
        for block in 0..20 {
            page.fill(block as u8);
            pages.write(name(block), &page);
            assert!(pages.read(name(0), &mut found), "block {block}");
            assert_eq!(found[0], 0);
            assert!(pages.slots.len() <= 3 && pages.by_name.len() == pages.slots.len());
        }
        assert!(pages.read(name(19), &mut found) && found == [19; BLOCK_SIZE]);
        assert!(!pages.read(name(10), &mut found));
    }

    #[test]
    fn pages_behind_a_cut_are_forgotten() {
        let (mut pages, page) = (KnownPages::new(10), [7; BLOCK_SIZE]);
        (0..8).for_each(|block| pages.write(name(block), &page));
        pages.cut(name(0).relation, Fork::Vm, 0);
        pages.cut(name(0).relation, Fork::Main, 3);
        let mut found = [0; BLOCK_SIZE];
        let known: Vec<_> = (0..8).filter(|block| pages.read(name(*block), &mut found)).collect();
        assert_eq!(known, [0, 1, 2]);
        pages.forget(name(1));
        assert!(!pages.read(name(1), &mut found) && pages.read(name(2), &mut found));
    }
}
