//! **HOT chains.** Index entries point to the root line pointer of a HOT chain. This module maps
//! each tuple of a page to its root, as PostgreSQL's `heap_get_root_tuples` does.
//!
//! ```text
//!   entry ──▶ 1 redirect ──▶ 4 heap-only ── ctid ──▶ 2 heap-only        roots: 1→1, 4→1, 2→1
//!   entry ──▶ 3 (updated elsewhere)                                     3→3
//! ```
//!
//! A HOT update doesn't change any indexed column, and it puts the new tuple on the same page, so
//! no index entries are needed for that tuple. It follows that a heap-only tuple must be reachable
//! from another line pointer on its page, and that no index entry may point to it.
//!
//! **Stale links.** If an update is rolled back, the old tuple's ctid link may remain. Later, the
//! line pointer may be reused for a tuple of a different chain, so the link then leads to the wrong
//! tuple. As in PostgreSQL, we detect this by comparing the xmax of the old tuple with the xmin of
//! the tuple that the link leads to. If xmax is a multixact, we compare its member that updated the
//! tuple. If we can't look up that member, for example because a multixact file is missing, we follow
//! the link last, and only if no other link has led to the same tuple.

use trunkline_format::heap_tuple::{HeapTuple, XMAX_IS_MULTI};
use trunkline_format::page::{LinePointerFlags, line_pointer, line_pointers};
use trunkline_format::transam::XidStatusLookup;
use trunkline_format::{BlockNo, PageBytes, Tid};

use super::content_problem::InvalidTarget;

/// The HOT chain roots of one page. We reuse the memory for the next page.
#[derive(Debug, Default)]
pub(super) struct HotRoots {
    /// The root line pointer for each line pointer of the page, or 0 if no chain has reached it
    /// yet.
    roots: Vec<u16>,
    /// The links of tuples whose xmax is a multixact that we couldn't look up. For each link, we
    /// keep the root of the tuple's chain and the line pointer that the link leads to.
    unknown_links: Vec<(u16, u16)>,
}

impl HotRoots {
    /// Finds the root of each tuple on `page`, which is block `block` of its table.
    ///
    /// The status pages that the tuples need should have been loaded for `lookup`, except for those
    /// of an all-visible page: all its chains begin with redirects, which need no look-up.
    pub(super) fn find<L: XidStatusLookup>(
        &mut self,
        page: &PageBytes,
        block: BlockNo,
        lookup: &mut L,
    ) {
        self.roots.clear();
        self.unknown_links.clear();
        for (item, pointer) in line_pointers(page) {
            match pointer.flags {
                LinePointerFlags::Normal => {
                    if let Some(tuple) = tuple_at(page, item)
                        && !tuple.is_heap_only()
                        && self.set_root(item, item)
                    {
                        self.follow(page, block, item, &tuple, lookup);
                    }
                }
                LinePointerFlags::Redirect => {
                    self.add_successor(page, block, item, pointer.offset, None, lookup)
                }
                LinePointerFlags::Unused | LinePointerFlags::Dead => {}
            }
        }
        while let Some((root, item)) = self.unknown_links.pop() {
            self.add_successor(page, block, root, item, None, lookup);
        }
    }

    /// Returns the root of the chain that contains line pointer `item`, or `None` if there is no
    /// such chain.
    pub(super) fn of(&self, item: u16) -> Option<u16> {
        self.roots.get(usize::from(item)).copied().filter(|root| *root != 0)
    }

    /// Follows the ctid link from a tuple to the next tuple of its chain, provided that both are on
    /// the same page.
    fn follow<L: XidStatusLookup>(
        &mut self,
        page: &PageBytes,
        block: BlockNo,
        root: u16,
        tuple: &HeapTuple<'_>,
        lookup: &mut L,
    ) {
        let next = tuple.next_version();
        if !tuple.is_hot_updated() || next.block != block {
            return;
        }
        let updater = match tuple.updating_multixact() {
            Some(multi) => lookup.updater(multi),
            None if tuple.infomask() & XMAX_IS_MULTI != 0 => Ok(None),
            None => Ok(Some(tuple.xmax())),
        };
        match updater {
            Ok(Some(xid)) => self.add_successor(page, block, root, next.item, Some(xid), lookup),
            // All members have only locked the tuple. If an update was rolled back and VACUUM has
            // replaced the multixact by one without the update, the link is still there.
            Ok(None) => {}
            // If the state of the tuple depends on the multixact, the error is reported there.
            Err(_) => self.unknown_links.push((root, next.item)),
        }
    }

    /// Adds a heap-only tuple to the chain of `root`, and then follows the tuple's link. If `by` is
    /// given, we first make sure that the tuple was inserted by that transaction.
    fn add_successor<L: XidStatusLookup>(
        &mut self,
        page: &PageBytes,
        block: BlockNo,
        root: u16,
        item: u16,
        by: Option<u32>,
        lookup: &mut L,
    ) {
        let Some(tuple) = tuple_at(page, item) else { return };
        let made = by.is_none_or(|by| by == tuple.xmin());
        // If a link leads back into its own chain, we stop here, because the tuple already has a
        // root. This also means that the recursion depth can't exceed the number of line pointers
        // on the page.
        if tuple.is_heap_only() && made && self.set_root(item, root) {
            self.follow(page, block, root, &tuple, lookup);
        }
    }

    /// Sets the root of a line pointer. Returns false if the line pointer already has a root.
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

/// Returns the tuple that a line pointer points to, or `None` if the line pointer isn't a normal
/// one or the tuple is invalid.
pub(super) fn tuple_at(page: &PageBytes, item: u16) -> Option<HeapTuple<'_>> {
    let pointer = line_pointer(page, item)?;
    let is_normal = pointer.flags == LinePointerFlags::Normal;
    HeapTuple::parse(item, pointer.item(page).filter(|_| is_normal)?).ok()
}

/// Checks the line pointer that an index entry with the given `tid` points to. Returns `None` if
/// the line pointer may be the root of a HOT chain, that is, if it's a redirect, is dead, or points
/// to a tuple that isn't heap-only.
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
    use trunkline_format::heap_tuple::XMAX_LOCK_ONLY;
    use trunkline_format::transam::XidStatus;

    use super::*;

    const HEAP_ONLY: u16 = 0x8000;
    const HOT_UPDATED: u16 = 0x4000;
    const XMAX_INVALID: u16 = 0x0800;

    /// Builds a page with the given line pointers. Each of them is either a redirect or a tuple.
    /// For a tuple, we specify its xmin, its xmax, the line pointer of the next tuple in its chain,
    /// and both infomasks.
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

    /// The updating members of multixacts. Other multixacts can't be looked up.
    struct Updaters(&'static [(u32, Option<u32>)]);

    impl XidStatusLookup for Updaters {
        type Error = ();

        fn fate(&mut self, _: u32) -> Result<XidStatus, ()> {
            Err(())
        }

        fn updater(&mut self, multi: u32) -> Result<Option<u32>, ()> {
            self.0.iter().find(|(id, _)| *id == multi).map(|(_, xid)| *xid).ok_or(())
        }
    }

    /// The roots of line pointers 1 to `COUNT`.
    fn roots<const COUNT: usize>(
        page: &PageBytes,
        mut lookup: impl XidStatusLookup,
    ) -> [Option<u16>; COUNT] {
        let mut roots = HotRoots::default();
        roots.find(page, 0, &mut lookup);
        std::array::from_fn(|at| roots.of(at as u16 + 1))
    }

    /// We found this case on a page written by PostgreSQL 15. A member of a multixact had updated
    /// the tuple, but the update was rolled back, and the line pointer of the new tuple was then
    /// reused for a tuple in another chain. We must get this right even without the multixacts.
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
        let expected = [None, None, Some(1), Some(2), Some(2), Some(2)];
        assert_eq!(roots(&page, Updaters(&[])), expected);
        assert_eq!(roots(&page, Updaters(&[(46, Some(199)), (47, Some(400))])), expected);
    }

    /// We found this case on a page written by PostgreSQL 18. Both tuples that link to the last one
    /// had been updated by members of multixacts, but one of the updates had been rolled back.
    #[test]
    fn a_link_of_an_update_that_was_rolled_back_is_not_followed() {
        let (only, updated) = (u32::from(HEAP_ONLY), u32::from(HEAP_ONLY | HOT_UPDATED));
        let (multi, invalid) = (u32::from(XMAX_IS_MULTI), u32::from(XMAX_INVALID));
        let items = |hint: u32| {
            [
                Err(3),
                Ok([100, 15, 4, u32::from(HOT_UPDATED), multi | hint]),
                Ok([200, 19, 4, updated, multi]),
                Ok([300, 0, 4, only, 0]),
            ]
        };
        let expected = [None, Some(2), Some(1), Some(1)];
        // The hint bit shows that the update was rolled back.
        assert_eq!(roots(&page(&items(invalid)), Updaters(&[])), expected);
        // Without the hint bit, only the members show which of the updates made the last tuple,
        // whichever of the two comes first.
        let multixacts = Updaters(&[(15, Some(250)), (19, Some(300))]);
        assert_eq!(roots(&page(&items(0)), multixacts), expected);
        let multixacts = Updaters(&[(15, Some(300)), (19, Some(250))]);
        assert_eq!(roots(&page(&items(0)), multixacts), [None, Some(2), Some(1), Some(2)]);
    }

    /// A multixact of lockers must not be looked up, because its members may be gone.
    #[test]
    fn the_link_of_a_tuple_that_was_only_locked_is_not_followed() {
        struct Refused;

        impl XidStatusLookup for Refused {
            type Error = ();

            fn fate(&mut self, xid: u32) -> Result<XidStatus, ()> {
                panic!("transaction {xid} looked up")
            }

            fn updater(&mut self, multi: u32) -> Result<Option<u32>, ()> {
                panic!("multixact {multi} looked up")
            }
        }

        let (only, multi) = (u32::from(HEAP_ONLY), u32::from(XMAX_IS_MULTI));
        let items =
            |mask: u32| [Ok([100, 15, 2, u32::from(HOT_UPDATED), mask]), Ok([300, 0, 2, only, 0])];
        let locked = page(&items(multi | u32::from(XMAX_LOCK_ONLY)));
        assert_eq!(roots(&locked, Refused), [Some(1), None]);
        let without_update = page(&items(multi));
        assert_eq!(roots(&without_update, Updaters(&[(15, None)])), [Some(1), None]);
    }
}
