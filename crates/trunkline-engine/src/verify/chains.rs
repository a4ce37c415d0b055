//! Where a row's index entries point: the first line pointer of its chain of versions on a page.
//!
//! ```text
//!   entry ──▶ 1 redirect ──▶ 4 heap-only ── ctid ──▶ 2 heap-only        roots: 1→1, 4→1, 2→1
//!   entry ──▶ 3 (updated elsewhere)                                     3→3
//! ```
//! An update that changes no indexed column puts the new version on the same page, if it fits, and
//! no index hears of it. So a version marked as heap-only must be reachable from another line
//! pointer, and index entries must lead to none that is.
//!
//! A link can be left of an update that was rolled back, and lead to another chain's version that
//! took the place since: who made that tells. Where the header names a multixact it does not tell,
//! so links of these are followed last, to versions that no other link has led to.

use trunkline_format::heap_tuple::{HeapTuple, XMAX_IS_MULTI};
use trunkline_format::page::{LinePointerFlags, line_pointer, line_pointers};
use trunkline_format::{BlockNo, PageBytes, Tid};

/// The roots of one page's rows. Its memory serves page after page.
#[derive(Debug, Default)]
pub(super) struct Roots {
    /// By line pointers; 0 where no chain has led to yet.
    roots: Vec<u16>,
    /// Links of versions that multixacts replaced: the root, and the line pointer they lead to.
    doubtful: Vec<(u16, u16)>,
}

impl Roots {
    /// Finds the roots of `page`, block `block` of its table.
    pub(super) fn find(&mut self, page: &PageBytes, block: BlockNo) {
        self.roots.clear();
        self.doubtful.clear();
        for (item, pointer) in line_pointers(page) {
            match pointer.flags {
                LinePointerFlags::Normal => {
                    let Ok(tuple) = HeapTuple::parse(item, pointer.item(page).unwrap_or_default())
                    else {
                        continue;
                    };
                    if !tuple.is_heap_only() && self.take(item, item) {
                        self.follow(page, block, item, &tuple);
                    }
                }
                LinePointerFlags::Redirect => self.step(page, block, item, pointer.offset, None),
                LinePointerFlags::Unused | LinePointerFlags::Dead => {}
            }
        }
        while let Some((root, item)) = self.doubtful.pop() {
            self.step(page, block, root, item, None);
        }
    }

    /// The root of line pointer `item`; `None` if no chain leads to it.
    pub(super) fn of(&self, item: u16) -> Option<u16> {
        self.roots.get(usize::from(item)).copied().filter(|root| *root != 0)
    }

    /// Goes from a version to the one that replaced it.
    fn follow(&mut self, page: &PageBytes, block: BlockNo, root: u16, tuple: &HeapTuple<'_>) {
        let next = tuple.next_version();
        if !tuple.is_hot_updated() || next.block != block {
            return;
        }
        // The transaction of a multixact that updated is in files that are not worth a look here.
        if tuple.infomask() & XMAX_IS_MULTI != 0 {
            self.doubtful.push((root, next.item));
            return;
        }
        self.step(page, block, root, next.item, Some(tuple.xmax()));
    }

    /// Takes a heap-only version into the chain of `root`, if transaction `by` made it.
    fn step(&mut self, page: &PageBytes, block: BlockNo, root: u16, item: u16, by: Option<u32>) {
        let Some(pointer) = line_pointer(page, item) else { return };
        if pointer.flags != LinePointerFlags::Normal {
            return;
        }
        let bytes = pointer.item(page).unwrap_or_default();
        let Ok(tuple) = HeapTuple::parse(item, bytes) else { return };
        let made = by.is_none_or(|by| by == tuple.xmin());
        // A chain that comes back to itself ends where it was before; so does the recursion, which
        // is no deeper than a page has line pointers.
        if tuple.is_heap_only() && made && self.take(item, root) {
            self.follow(page, block, root, &tuple);
        }
    }

    /// Notes a root; false if there is one.
    fn take(&mut self, item: u16, root: u16) -> bool {
        let at = usize::from(item);
        if self.roots.len() <= at {
            self.roots.resize(at + 1, 0);
        }
        self.roots.get_mut(at).is_some_and(|place| {
            let free = *place == 0;
            if free {
                *place = root;
            }
            free
        })
    }
}

/// The line pointer that an index entry leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pointed {
    /// A row or a chain of them, or what is left of one.
    Sound,
    /// There is no such line pointer.
    Missing {
        /// How many there are.
        count: u16,
    },
    /// It is unused.
    Unused,
    /// It is a version that only other versions lead to.
    HeapOnly,
}

/// What an entry for `tid` leads to in `page`.
pub(super) fn pointed_at(page: &PageBytes, tid: Tid) -> Pointed {
    let count = line_pointers(page).count() as u16;
    let pointer = line_pointer(page, tid.item).filter(|_| tid.item <= count);
    let Some(pointer) = pointer else { return Pointed::Missing { count } };
    match pointer.flags {
        LinePointerFlags::Unused => Pointed::Unused,
        LinePointerFlags::Redirect | LinePointerFlags::Dead => Pointed::Sound,
        LinePointerFlags::Normal => {
            let tuple = HeapTuple::parse(tid.item, pointer.item(page).unwrap_or_default());
            match tuple.is_ok_and(|tuple| tuple.is_heap_only()) {
                true => Pointed::HeapOnly,
                false => Pointed::Sound,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP_ONLY: u16 = 0x8000;
    const HOT_UPDATED: u16 = 0x4000;

    /// A page with these line pointers: a redirect to another one, or a version with xmin, xmax,
    /// the one after it, and both masks.
    fn page(items: &[Result<[u32; 5], u32>]) -> Box<PageBytes> {
        let mut page = Box::new([0; 8192]);
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(12, &(24 + 4 * items.len() as u16).to_le_bytes());
        let mut end = 8192;
        for (at, item) in items.iter().enumerate() {
            let pointer = match *item {
                Err(to) => to | 2 << 15,
                Ok([xmin, xmax, next, mask2, mask]) => {
                    end -= 32;
                    put(end, &xmin.to_le_bytes());
                    put(end + 4, &xmax.to_le_bytes());
                    put(end + 16, &(next as u16).to_le_bytes());
                    put(end + 18, &(mask2 as u16 | 1).to_le_bytes());
                    put(end + 20, &(mask as u16).to_le_bytes());
                    put(end + 22, &[24]);
                    end as u32 | 1 << 15 | 28 << 17
                }
            };
            put(24 + 4 * at, &pointer.to_le_bytes());
        }
        put(14, &(end as u16).to_le_bytes());
        put(16, &8192_u16.to_le_bytes());
        page
    }

    /// Seen on a page of PostgreSQL 15: an update by a multixact's member was rolled back, and its
    /// version's place taken by a version of another chain.
    #[test]
    fn a_link_that_was_left_leads_to_no_other_chain() {
        let (only, updated) = (u32::from(HEAP_ONLY), u32::from(HEAP_ONLY | HOT_UPDATED));
        let multi = u32::from(XMAX_IS_MULTI);
        let page = page(&[
            Err(3),
            Err(4),
            Ok([100, 46, 4, updated, multi]),
            Ok([200, 300, 5, updated, 0]),
            Ok([300, 47, 6, updated, multi]),
            Ok([400, 0, 6, only, 0]),
        ]);
        let mut roots = Roots::default();
        roots.find(&page, 0);
        let found = [1, 2, 3, 4, 5, 6].map(|item| roots.of(item));
        assert_eq!(found, [None, None, Some(1), Some(2), Some(2), Some(2)]);
    }
}
