//! Checks that the transaction ids in tuple headers are within the table's range, as amcheck's
//! `verify_heapam` does.
//!
//! ```text
//!   relfrozenxid ≤ xmin, xmax < next transaction          relminmxid ≤ multixact < next multixact
//! ```
//!
//! A reader that only looks up transaction outcomes doesn't notice an invalid id if the row has
//! hint bits. A server, however, also compares the id with its snapshot, so an invalid id can make
//! a row visible that shouldn't be, or hide a row that should be visible.
//!
//! The next ids in the control file are only exact if the cluster was shut down cleanly. If it
//! wasn't, we skip these checks.

use trunkline_format::heap_tuple::{
    HeapTuple, MOVED_IN, MOVED_OFF, XMAX_EXCLUSIVE_LOCK, XMAX_INVALID, XMAX_IS_MULTI,
    XMAX_KEY_SHARE_LOCK, XMAX_LOCK_ONLY, XMIN_FROZEN,
};
use trunkline_format::transam::{FIRST_NORMAL_XID, RowState, precedes};
use trunkline_format::{ClusterState, ControlFile, Tid};

use super::content_problem::{ContentProblem, HeaderId};

/// The ids that the cluster will assign next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextIds {
    xid: u32,
    multi: u32,
}

impl NextIds {
    /// The next ids from the control file. `None` if the cluster was not shut down.
    pub(super) fn of(control: &ControlFile) -> Option<Self> {
        let checkpoint = &control.checkpoint;
        let (xid, multi) = (checkpoint.next_xid as u32, checkpoint.next_multi);
        (control.state == ClusterState::ShutDown).then_some(Self { xid, multi })
    }
}

/// The range of ids that the rows of one table may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct XidRanges {
    /// The next ids to be assigned. If we don't know them, we don't check anything.
    pub(super) next: Option<NextIds>,
    /// `relfrozenxid`.
    pub(super) frozen_xid: u32,
    /// `relminmxid`.
    pub(super) min_multi: u32,
}

impl XidRanges {
    /// Checks the header of the tuple whose TID is `at`, and passes each problem to `each`.
    pub(super) fn check(
        &self,
        tuple: &HeapTuple<'_>,
        at: Tid,
        state: RowState,
        mut each: impl FnMut(ContentProblem),
    ) {
        let Some(next) = self.next else { return };
        let mask = tuple.infomask();
        let frozen = mask & XMIN_FROZEN == XMIN_FROZEN || tuple.xmin() < FIRST_NORMAL_XID;
        if !frozen && !self.has_xid(tuple.xmin(), next) {
            each(self.xid(HeaderId::Xmin, tuple.xmin(), next));
        }
        let xmax = tuple.xmax();
        // Freezing clears the xmax of an aborted update, but doesn't reset the tuple's ctid link.
        let touched = frozen || xmax != 0 || mask & (MOVED_IN | MOVED_OFF) != 0;
        if state == RowState::Live && !touched && tuple.next_version() != at {
            each(ContentProblem::StrayLink { next: tuple.next_version() });
        }
        // If the inserting transaction aborted, servers don't look at xmax.
        let inserted = matches!(state, RowState::Live | RowState::Dead);
        if !inserted || mask & XMAX_INVALID != 0 || xmax == 0 {
            return;
        }
        if mask & XMAX_IS_MULTI == 0 {
            if xmax >= FIRST_NORMAL_XID && !self.has_xid(xmax, next) {
                each(self.xid(HeaderId::Xmax, xmax, next));
            }
        } else if !is_old_lock(mask) && !self.has_multi(xmax, next) {
            let (oldest, next) = (self.min_multi, next.multi);
            let which = HeaderId::Multixact;
            each(ContentProblem::XidRange { which, found: xmax, oldest, next });
        }
    }

    /// Whether a transaction id is within the range of the table.
    fn has_xid(&self, xid: u32, next: NextIds) -> bool {
        let oldest = self.frozen_xid;
        (oldest < FIRST_NORMAL_XID || !precedes(xid, oldest)) && precedes(xid, next.xid)
    }

    /// Whether a multixact id is within the table's range. Like transaction ids, multixact ids wrap
    /// around, but 0 is the only special value.
    fn has_multi(&self, multi: u32, next: NextIds) -> bool {
        let before = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
        (self.min_multi == 0 || !before(multi, self.min_multi)) && before(multi, next.multi)
    }

    /// Makes a problem about a transaction id.
    fn xid(&self, which: HeaderId, found: u32, next: NextIds) -> ContentProblem {
        ContentProblem::XidRange { which, found, oldest: self.frozen_xid, next: next.xid }
    }
}

/// Whether a multixact is just a row lock that was taken before 9.3 and kept by `pg_upgrade`
/// (`HEAP_LOCKED_UPGRADED`). Such a lock is no longer held, so servers don't look up the multixact.
fn is_old_lock(mask: u16) -> bool {
    let locks = mask & (XMAX_LOCK_ONLY | XMAX_EXCLUSIVE_LOCK | XMAX_KEY_SHARE_LOCK);
    locks == XMAX_LOCK_ONLY
}
