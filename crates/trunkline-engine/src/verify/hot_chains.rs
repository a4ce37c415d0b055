//! **HOT chains.** Index entries point to the root line pointer of a HOT chain. This module maps
//! each tuple of a page to its root, as PostgreSQL's `heap_get_root_tuples` does.
//!
//! ```text
//!   entry ──▶ 1 redirect ──▶ 4 heap-only ── ctid ──▶ 2 heap-only        roots: 1→1, 4→1, 2→1
//!   entry ──▶ 3 (updated elsewhere)                                     3→3
//! ```
//!
//! A HOT update changes no indexed column and stays on the page, so it adds no index entries. A
//! heap-only tuple must therefore be reachable from another line pointer, and no index entry may
//! point to it.
//!
//! **Stale links.** An update's ctid link can remain after the update was rolled back. The link may
//! later lead to a tuple of another chain that reused the line pointer. Such a tuple's xmin differs
//! from the link's xmax, so we compare them, as PostgreSQL does. If xmax is a multixact, the tuple
//! header doesn't contain the updating transaction. We follow such links last, and only to tuples
//! that no other link has reached.

use trunkline_format::heap_tuple::{HeapTuple, XMAX_IS_MULTI};
use trunkline_format::page::{LinePointerFlags, line_pointer, line_pointers};
use trunkline_format::{BlockNo, PageBytes, Tid};

use super::content_problem::InvalidTarget;

/// The HOT chain roots of one page. The memory is reused for each page.
#[derive(Debug, Default)]
pub(super) struct HotRoots {
    /// The root of each line pointer; 0 if no chain has reached it yet.
    roots: Vec<u16>,
    /// Links that start at a tuple with a multixact as xmax. For each link: the root of the tuple's
    /// chain, and the line pointer in the tuple's ctid.
    multixact_links: Vec<(u16, u16)>,
}

impl HotRoots {
    /// Maps the tuples of `page`, which is block `block` of its table.
    pub(super) fn find(&mut self, page: &PageBytes, block: BlockNo) {
        self.roots.clear();
        self.multixact_links.clear();
        for (item, pointer) in line_pointers(page) {
            match pointer.flags {
                LinePointerFlags::Normal => {
                    if let Some(tuple) = tuple_at(page, item)
                        && !tuple.is_heap_only()
                        && self.set_root(item, item)
                    {
                        self.follow(page, block, item, &tuple);
                    }
                }
                LinePointerFlags::Redirect => {
                    self.add_successor(page, block, item, pointer.offset, None)
                }
                LinePointerFlags::Unused | LinePointerFlags::Dead => {}
            }
        }
        while let Some((root, item)) = self.multixact_links.pop() {
            self.add_successor(page, block, root, item, None);
        }
    }

    /// The root of line pointer `item`. `None` if no chain reaches it.
    pub(super) fn of(&self, item: u16) -> Option<u16> {
        self.roots.get(usize::from(item)).copied().filter(|root| *root != 0)
    }

    /// Follows the ctid link from a tuple to its successor, if the successor is on the same page.
    fn follow(&mut self, page: &PageBytes, block: BlockNo, root: u16, tuple: &HeapTuple<'_>) {
        let next = tuple.next_version();
        if !tuple.is_hot_updated() || next.block != block {
            return;
        }
        // To find the updating transaction, we would have to read the multixact files, which isn't
        // worth it here.
        if tuple.infomask() & XMAX_IS_MULTI != 0 {
            self.multixact_links.push((root, next.item));
            return;
        }
        self.add_successor(page, block, root, next.item, Some(tuple.xmax()));
    }

    /// Adds a heap-only tuple to the chain of `root` and follows its link. If `by` is given, the
    /// tuple must have been inserted by that transaction.
    fn add_successor(
        &mut self,
        page: &PageBytes,
        block: BlockNo,
        root: u16,
        item: u16,
        by: Option<u32>,
    ) {
        let Some(tuple) = tuple_at(page, item) else { return };
        let made = by.is_none_or(|by| by == tuple.xmin());
        // A link back into its own chain ends here, because the tuple it leads to already has a
        // root. The recursion can therefore never be deeper than the number of line pointers on the
        // page.
        if tuple.is_heap_only() && made && self.set_root(item, root) {
            self.follow(page, block, root, &tuple);
        }
    }

    /// Records a root. Returns false if the line pointer already has one.
    fn set_root(&mut self, item: u16, root: u16) -> bool {
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

/// The tuple that a normal line pointer points to. `None` for any other line pointer, or if the
/// tuple is invalid.
pub(super) fn tuple_at(page: &PageBytes, item: u16) -> Option<HeapTuple<'_>> {
    let pointer = line_pointer(page, item)?;
    let is_normal = pointer.flags == LinePointerFlags::Normal;
    HeapTuple::parse(item, pointer.item(page).filter(|_| is_normal)?).ok()
}

/// Checks the line pointer that an index entry with `tid` points to. Returns `None` if it may be
/// the root of a HOT chain: a tuple that isn't heap-only, a redirect, or a dead line pointer.
pub(super) fn invalid_target(page: &PageBytes, tid: Tid) -> Option<InvalidTarget> {
    let count = line_pointers(page).count() as u16;
    let pointer = line_pointer(page, tid.item).filter(|_| tid.item <= count);
    let Some(pointer) = pointer else { return Some(InvalidTarget::Beyond { count }) };
    match pointer.flags {
        LinePointerFlags::Unused => Some(InvalidTarget::Unused),
        LinePointerFlags::Redirect | LinePointerFlags::Dead => None,
        LinePointerFlags::Normal => {
            let tuple = tuple_at(page, tid.item);
            tuple.filter(HeapTuple::is_heap_only).map(|_| InvalidTarget::HeapOnly)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAP_ONLY: u16 = 0x8000;
    const HOT_UPDATED: u16 = 0x4000;

    /// Builds a page with the given line pointers. Each is either a redirect, or a tuple given as
    /// xmin, xmax, the line pointer of its successor and both infomasks.
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

    /// This was found on a page from PostgreSQL 15. An update by a member of a multixact was rolled
    /// back, and its line pointer was then reused for a tuple of another chain.
    #[test]
    fn a_stale_link_does_not_lead_into_another_chain() {
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
        let mut roots = HotRoots::default();
        roots.find(&page, 0);
        let found = [1, 2, 3, 4, 5, 6].map(|item| roots.of(item));
        assert_eq!(found, [None, None, Some(1), Some(2), Some(2), Some(2)]);
    }
}
