//! HOT chains of index entries: from the line pointer that an entry points to, the root, to the row
//! version that is visible (`heap_hot_search_buffer`).
//!
//! ```text
//!   entry ──▶ 1 redirect ──▶ 4 updated ── ctid ──▶ 2 visible
//! ```
//! At most one version of a chain is visible. An update that was rolled back leaves its link behind,
//! and the link's line pointer may have been reused since, so a link counts only if the transaction
//! that updated the one tuple has inserted the other.

use trunkline_format::heap_tuple::XMAX_IS_MULTI;
use trunkline_format::page::{LinePointer, LinePointerFlags, PageHeader, is_new, line_pointer};
use trunkline_format::transam::{RowState, XidStatusLookup, row_state};
use trunkline_format::{BlockNo, HeapTuple, PageBytes, Tid};

use super::error::{CHAIN_MAX, EntryProblem, RowProblem};
use crate::transactions::TransactionError;

/// A row that an index entry points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainRoot {
    /// The line pointer.
    pub item: u16,
    /// A number of the caller's, which [`HeapRow::entry`](super::HeapRow::entry) returns.
    pub entry: u32,
    /// The entry's place in the index: the leaf, and the line pointer on it. The line pointer is 0 if
    /// the place isn't known.
    pub place: (BlockNo, u16),
}

/// The end of a chain: its visible tuple, with its line pointer.
pub(super) type Visible = Option<(u16, LinePointer)>;

/// Finds the visible tuple of a chain. `Ok(None)` if there is none. Statuses that aren't loaded are
/// noted by `status`, and the result doesn't count then.
pub(super) fn visible_in_chain<S: XidStatusLookup<Error = TransactionError>>(
    page: &PageBytes,
    block: BlockNo,
    root: u16,
    all_visible: bool,
    status: &mut S,
) -> Result<Visible, (u16, RowProblem)> {
    let tid = Tid { block, item: root };
    let bad = |problem| Err((root, RowProblem::Entry(problem)));
    let count = if is_new(page) { 0 } else { PageHeader::parse(page).line_pointer_count() };
    let Some(mut pointer) = line_pointer(page, root).filter(|_| (1..=count).contains(&root)) else {
        return bad(EntryProblem::Beyond { tid, count });
    };
    let mut item = root;
    match pointer.flags {
        LinePointerFlags::Unused => return bad(EntryProblem::Unused { tid }),
        LinePointerFlags::Dead => return Ok(None),
        LinePointerFlags::Redirect => {
            item = pointer.offset;
            let target = line_pointer(page, item).filter(|_| (1..=count).contains(&item));
            let Some(target) = target else { return Ok(None) };
            pointer = target;
        }
        LinePointerFlags::Normal => {}
    }
    let mut inserted_by = None;
    for _ in 0..CHAIN_MAX {
        if pointer.flags != LinePointerFlags::Normal {
            return Ok(None);
        }
        let tuple = HeapTuple::parse(item, pointer.item(page).unwrap_or_default());
        let tuple = tuple.map_err(|_| (item, RowProblem::Outside))?;
        if item == root && tuple.is_heap_only() {
            return bad(EntryProblem::HeapOnly { tid });
        }
        // The link was left behind by an update that was rolled back.
        if inserted_by.is_some_and(|by| by != tuple.xmin()) {
            return Ok(None);
        }
        let state = match all_visible {
            true => RowState::Live,
            false => match row_state(&tuple, status) {
                Ok(state) => state,
                Err(TransactionError::NotLoaded { .. }) => return Ok(None),
                Err(error) => return Err((item, RowProblem::Transaction(error))),
            },
        };
        if state == RowState::Live {
            return Ok(Some((item, pointer)));
        }
        let next = tuple.next_version();
        if !tuple.is_hot_updated() || next.block != block {
            return Ok(None);
        }
        let is_multi = tuple.infomask() & XMAX_IS_MULTI != 0;
        inserted_by = match tuple.updating_multixact() {
            Some(multi) => match status.updater(multi) {
                // All members have only locked the tuple.
                Ok(None) | Err(TransactionError::NotLoaded { .. }) => return Ok(None),
                Ok(updater) => updater,
                // The tuple's own state doesn't depend on it.
                Err(_) => None,
            },
            None if is_multi => return Ok(None),
            None => Some(tuple.xmax()),
        };
        item = next.item;
        let following = line_pointer(page, item).filter(|_| (1..=count).contains(&item));
        let Some(following) = following else { return Ok(None) };
        pointer = following;
    }
    bad(EntryProblem::Endless { tid })
}
