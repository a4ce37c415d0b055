//! Which tuples of a page are frozen, and how (PostgreSQL's `heap_prepare_freeze_tuple`).
//!
//! A frozen tuple has no transactions any more: xmin is marked as frozen, and an xmax that has aborted, or has only locked
//! the row, is removed. If one tuple must be frozen, every tuple on the page that can be frozen is: the page is logged anyway.

use trunkline_format::PageBytes;
use trunkline_format::heap_tuple::{
    HOT_UPDATED, HeapTuple, KEYS_UPDATED, XMAX_BITS, XMAX_INVALID, XMAX_IS_MULTI, XMIN_FROZEN,
    heap_rows, is_only_locked,
};
use trunkline_format::transam::{FIRST_NORMAL_XID, XidStatus, precedes};

use super::prune_plan::PrunePlan;
use super::tuple_states::{TupleStates, Unknown, inserter};

/// A tuple after it is frozen. The order is that of plans in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FrozenTuple {
    xmax: u32,
    infomask2: u16,
    infomask: u16,
    item: u16,
}

/// What is frozen on a page.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct FreezePlan {
    tuples: Vec<FrozenTuple>,
}

impl FreezePlan {
    /// The plan for what a prune leaves. Nothing is frozen unless a tuple has an XID before `limit`.
    ///
    /// # Errors
    /// [`Unknown`].
    pub(super) fn new(
        page: &PageBytes,
        prune: &PrunePlan,
        states: &TupleStates,
        limit: u32,
    ) -> Result<Self, Unknown> {
        let mut plan = Self::default();
        let mut is_needed = false;
        for tuple in heap_rows(page) {
            let tuple = tuple.map_err(|error| Unknown::Damaged { item: error.item })?;
            if !prune.keeps(tuple.item()) {
                continue;
            }
            let xids = [inserter(&tuple), xmax_xid(&tuple)?];
            is_needed |= xids.into_iter().flatten().any(|xid| precedes(xid, limit));
            plan.tuples.extend(freeze(&tuple, xids, states)?);
        }
        if !is_needed {
            plan.tuples.clear();
        }
        plan.tuples.sort_unstable();
        Ok(plan)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tuples.is_empty()
    }

    /// How many tuples are frozen.
    pub(super) fn count(&self) -> u16 {
        self.tuples.len() as u16
    }

    /// The number of plans, the plans (`xlhp_freeze_plan`), and the tuples of all plans.
    pub(super) fn to_record(&self) -> (Vec<u8>, Vec<u8>) {
        let same = |a: &FrozenTuple, b: &FrozenTuple| {
            (a.xmax, a.infomask2, a.infomask) == (b.xmax, b.infomask2, b.infomask)
        };
        let groups: Vec<&[FrozenTuple]> = self.tuples.chunk_by(same).collect();
        let mut plans = Vec::with_capacity(4 + groups.len() * 12);
        plans.extend_from_slice(&(groups.len() as u16).to_le_bytes());
        plans.extend_from_slice(&[0; 2]);
        for group in groups {
            let Some(first) = group.first() else { continue };
            plans.extend_from_slice(&first.xmax.to_le_bytes());
            plans.extend_from_slice(&first.infomask2.to_le_bytes());
            plans.extend_from_slice(&first.infomask.to_le_bytes());
            // No flags: nothing is left of an old `VACUUM FULL`.
            plans.extend_from_slice(&[0; 2]);
            plans.extend_from_slice(&(group.len() as u16).to_le_bytes());
        }
        let items = self.tuples.iter().flat_map(|tuple| tuple.item.to_le_bytes());
        (plans, items.collect())
    }
}

/// The tuple after it is frozen. `None` if nothing of it can be frozen.
fn freeze(
    tuple: &HeapTuple<'_>,
    [xmin, xmax]: [Option<u32>; 2],
    states: &TupleStates,
) -> Result<Option<FrozenTuple>, Unknown> {
    let is_old = |xid: &u32| precedes(*xid, states.horizon());
    let (xmin, xmax) = (xmin.filter(is_old), xmax.filter(is_old));
    let item = tuple.item();
    let mut frozen = FrozenTuple {
        xmax: tuple.xmax(),
        infomask2: tuple.infomask2(),
        infomask: tuple.infomask(),
        item,
    };
    if let Some(xid) = xmin {
        match states.status(xid)? {
            XidStatus::Committed => frozen.infomask |= XMIN_FROZEN,
            status => return Err(Unknown::NotFrozen { item, xid, status }),
        }
    }
    if let Some(xid) = xmax {
        let is_update = tuple.infomask() & XMAX_INVALID == 0 && !is_only_locked(tuple.infomask());
        if is_update && let status @ XidStatus::Committed = states.status(xid)? {
            return Err(Unknown::NotFrozen { item, xid, status });
        }
        frozen.xmax = 0;
        frozen.infomask = frozen.infomask & !XMAX_BITS | XMAX_INVALID;
        frozen.infomask2 &= !(HOT_UPDATED | KEYS_UPDATED);
    }
    Ok((xmin.is_some() || xmax.is_some()).then_some(frozen))
}

/// Whether a tuple has an xmax, whatever that has done.
pub(super) fn has_xmax(tuple: &HeapTuple<'_>) -> bool {
    let is_multixact = tuple.infomask() & XMAX_IS_MULTI != 0;
    tuple.xmax() >= if is_multixact { 1 } else { FIRST_NORMAL_XID }
}

/// The XID that is the xmax of a tuple, whatever it has done. A multixact is not an XID. It stays on the tuple until another
/// transaction locks or changes the row.
///
/// # Errors
/// [`Unknown::Multixact`] if a member has updated the tuple.
fn xmax_xid(tuple: &HeapTuple<'_>) -> Result<Option<u32>, Unknown> {
    if let Some(multixact) = tuple.updating_multixact() {
        return Err(Unknown::Multixact { item: tuple.item(), multixact });
    }
    let is_xid = tuple.infomask() & XMAX_IS_MULTI == 0;
    Ok((is_xid && has_xmax(tuple)).then(|| tuple.xmax()))
}
