//! Which line pointers of a page are redirected, become dead, or become unused (PostgreSQL's
//! `heap_page_prune_and_freeze`).
//!
//! ```text
//!   HOT chain   1 ─▶ 4 ─▶ 5 ─▶ 7        dead, dead, recently dead, live
//!   after       1 ══════▶ 5 ─▶ 7        1 is redirected, 4 is unused: indexes name only 1
//!   all dead    1 ─▶ 4                  1 is dead, until no index names it; 4 is unused
//! ```
//! A chain begins at a tuple that is not heap-only, or at a redirect. It goes on while a version is dead or recently dead,
//! and the next one was inserted by the transaction that has updated it. Everything before the last dead version can go.

use trunkline_format::PageBytes;
use trunkline_format::heap_tuple::{HOT_UPDATED, HeapTuple};
use trunkline_format::page::{LinePointer, LinePointerFlags, line_pointers};
use trunkline_format::transam::{XidStatus, precedes};

use super::tuple_states::{TupleState, TupleStates, Unknown, inserter};

/// What a prune changes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct PrunePlan {
    /// Line pointers, and those to which they are redirected.
    pub(super) redirected: Vec<(u16, u16)>,
    pub(super) dead: Vec<u16>,
    pub(super) unused: Vec<u16>,
    /// The snapshot conflict horizon: the newest xmax of the removed tuples, or 0.
    pub(super) newest_removed: u32,
}

/// An item of the page.
#[derive(Clone, Copy)]
struct Item<'p> {
    number: u16,
    pointer: LinePointer,
    tuple: Option<(HeapTuple<'p>, TupleState)>,
    /// Whether a chain contains it.
    is_done: bool,
}

impl PrunePlan {
    /// The plan for a page.
    ///
    /// # Errors
    /// [`Unknown`].
    pub(super) fn new(page: &PageBytes, states: &TupleStates) -> Result<Self, Unknown> {
        let mut items = Vec::new();
        for (number, pointer) in line_pointers(page) {
            let mut tuple = None;
            if pointer.flags == LinePointerFlags::Normal {
                let bytes = pointer.item(page).unwrap_or_default();
                let parsed = HeapTuple::parse(number, bytes);
                let parsed = parsed.map_err(|_| Unknown::Damaged { item: number })?;
                tuple = Some((parsed, states.of(&parsed)?));
            }
            items.push(Item { number, pointer, tuple, is_done: false });
        }
        let mut plan = Self::default();
        for at in 0..items.len() {
            if items.get(at).is_some_and(is_root) {
                plan.add_chain(&mut items, at, states)?;
            }
        }
        for item in items.iter().filter(|item| !item.is_done) {
            // What is left is heap-only, and not in a chain.
            if let Some((tuple, TupleState::Dead)) = &item.tuple {
                let is_aborted = match inserter(tuple) {
                    Some(xmin) => states.status(xmin)? == XidStatus::Aborted,
                    None => false,
                };
                if !is_aborted && tuple.infomask2() & HOT_UPDATED != 0 {
                    return Err(Unknown::NotInChain { item: item.number });
                }
                plan.remove(tuple, states)?;
                plan.unused.push(item.number);
            }
        }
        Ok(plan)
    }

    /// Whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        self.redirected.is_empty() && self.dead.is_empty() && self.unused.is_empty()
    }

    /// Whether a normal item stays as it is.
    pub(super) fn keeps(&self, item: u16) -> bool {
        let is_redirected = self.redirected.iter().any(|(from, _)| *from == item);
        !is_redirected && !self.dead.contains(&item) && !self.unused.contains(&item)
    }

    fn add_chain(
        &mut self,
        items: &mut [Item<'_>],
        root: usize,
        states: &TupleStates,
    ) -> Result<(), Unknown> {
        let Chain { members, dead } = Chain::follow(items, root);
        let is_redirect =
            items.get(root).is_some_and(|item| item.pointer.flags == LinePointerFlags::Redirect);
        for member in members.iter().take(dead) {
            if let Some((tuple, TupleState::Dead)) = at_mut(items, *member).and_then(|i| i.tuple) {
                self.remove(&tuple, states)?;
            }
        }
        let Some((first, rest)) = members.split_first() else { return Ok(()) };
        // A redirect to nothing is as good as a dead item.
        let is_dangling = is_redirect && rest.is_empty();
        let gone = match members.get(dead) {
            None => rest,
            Some(_) if dead == 0 => &[],
            Some(_) => rest.get(..dead - 1).unwrap_or_default(),
        };
        match members.get(dead) {
            _ if is_dangling => self.dead.push(*first),
            None => self.dead.push(*first),
            Some(_) if dead == 0 => {}
            Some(survivor) => self.redirected.push((*first, *survivor)),
        }
        self.unused.extend_from_slice(gone);
        for member in members {
            if let Some(item) = at_mut(items, member) {
                item.is_done = true;
            }
        }
        Ok(())
    }

    /// A tuple goes from the page (`HeapTupleHeaderAdvanceConflictHorizon`).
    fn remove(&mut self, tuple: &HeapTuple<'_>, states: &TupleStates) -> Result<(), Unknown> {
        let is_committed = match inserter(tuple) {
            Some(xmin) => states.status(xmin)? == XidStatus::Committed,
            None => true,
        };
        let xmax = tuple.xmax();
        // No snapshot has seen a row that its own transaction has deleted.
        if is_committed && xmax != tuple.xmin() && precedes(self.newest_removed, xmax) {
            self.newest_removed = xmax;
        }
        Ok(())
    }
}

/// The line pointers of a HOT chain.
struct Chain {
    members: Vec<u16>,
    /// How many members come before the first one that must stay.
    dead: usize,
}

impl Chain {
    fn follow(items: &[Item<'_>], root: usize) -> Self {
        let mut chain = Self { members: Vec::new(), dead: 0 };
        let (mut next, mut updater) = (root as u16 + 1, None);
        while let Some(item) = at(items, next).filter(|item| !item.is_done) {
            // A damaged page could have a circle.
            if chain.members.contains(&next) {
                break;
            }
            if item.pointer.flags == LinePointerFlags::Redirect && chain.members.is_empty() {
                chain.members.push(next);
                next = item.pointer.offset;
                continue;
            }
            let Some((tuple, state)) = item.tuple else { break };
            if updater.is_some_and(|updater| updater != tuple.xmin()) {
                break;
            }
            chain.members.push(next);
            match state {
                TupleState::Dead => chain.dead = chain.members.len(),
                TupleState::RecentlyDead => {}
                TupleState::Live | TupleState::Inserting => break,
            }
            if !tuple.is_hot_updated() {
                break;
            }
            next = tuple.next_version().item;
            updater = Some(tuple.xmax());
        }
        chain
    }
}

/// Whether a chain may begin here.
fn is_root(item: &Item<'_>) -> bool {
    let is_indexed = item.tuple.is_some_and(|(tuple, _)| !tuple.is_heap_only());
    is_indexed || item.pointer.flags == LinePointerFlags::Redirect
}

fn at<'i, 'p>(items: &'i [Item<'p>], number: u16) -> Option<&'i Item<'p>> {
    items.get(usize::from(number.checked_sub(1)?))
}

fn at_mut<'i, 'p>(items: &'i mut [Item<'p>], number: u16) -> Option<&'i mut Item<'p>> {
    items.get_mut(usize::from(number.checked_sub(1)?))
}
