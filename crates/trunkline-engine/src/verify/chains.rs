//! Where a row's index entries point: the first line pointer of its chain of versions on a page.
//!
//! ```text
//!   entry ──▶ 1 redirect ──▶ 4 heap-only ── ctid ──▶ 2 heap-only        roots: 1→1, 4→1, 2→1
//!   entry ──▶ 3 (updated elsewhere)                                     3→3
//! ```
//! An update that changes no indexed column puts the new version on the same page, if it fits, and
//! no index hears of it. So a version marked as heap-only must be reachable from another line
//! pointer, and index entries must lead to none that is.

use trunkline_format::heap_tuple::{HeapTuple, XMAX_IS_MULTI};
use trunkline_format::page::{LinePointerFlags, line_pointer, line_pointers};
use trunkline_format::{BlockNo, PageBytes, Tid};

/// The roots of one page's rows. Its memory serves page after page.
#[derive(Debug, Default)]
pub(super) struct Roots(Vec<u16>);

impl Roots {
    /// Finds the roots of `page`, block `block` of its table.
    pub(super) fn find(&mut self, page: &PageBytes, block: BlockNo) {
        self.0.clear();
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
    }

    /// The root of line pointer `item`; `None` if no chain leads to it.
    pub(super) fn of(&self, item: u16) -> Option<u16> {
        self.0.get(usize::from(item)).copied().filter(|root| *root != 0)
    }

    /// Goes from a version to the one that replaced it.
    fn follow(&mut self, page: &PageBytes, block: BlockNo, root: u16, tuple: &HeapTuple<'_>) {
        let next = tuple.next_version();
        if !tuple.is_hot_updated() || next.block != block {
            return;
        }
        // The transaction of a multixact that updated is in files that are not worth a look here.
        let by = (tuple.infomask() & XMAX_IS_MULTI == 0).then(|| tuple.xmax());
        self.step(page, block, root, next.item, by);
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
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0.get_mut(at).is_some_and(|place| {
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
