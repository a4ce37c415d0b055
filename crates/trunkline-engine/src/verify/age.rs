//! Whether the transactions that a row's header names can be: none that the table was frozen past,
//! and none that was not given out yet.
//!
//! ```text
//!   relfrozenxid ≤ xmin, xmax < next transaction          relminmxid ≤ multixact < next multixact
//! ```
//! Hint bits hide such ids from whoever only asks what is visible: a server that compares them with
//! its snapshot sees another table. Only of a cluster that was shut down does the control file know
//! which id comes next; of others nothing is said.

use trunkline_format::heap_tuple::{
    HeapTuple, MOVED_IN, MOVED_OFF, XMAX_EXCLUSIVE_LOCK, XMAX_INVALID, XMAX_IS_MULTI,
    XMAX_LOCK_ONLY, XMIN_FROZEN,
};
use trunkline_format::transam::{FIRST_NORMAL_XID, RowState, precedes};
use trunkline_format::{ClusterState, ControlFile, Tid};

use super::problem::{ContentProblem, HeaderId};

/// In `t_infomask`: a lock that others may share.
const XMAX_KEY_SHARE_LOCK: u16 = 0x0010;

/// The ids that a cluster gives out next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextIds {
    xid: u32,
    multi: u32,
}

impl NextIds {
    /// `None` if the cluster was not shut down.
    pub(super) fn of(control: &ControlFile) -> Option<Self> {
        let checkpoint = &control.checkpoint;
        let (xid, multi) = (checkpoint.next_xid as u32, checkpoint.next_multi);
        (control.state == ClusterState::ShutDown).then_some(Self { xid, multi })
    }
}

/// What the headers of one table's rows may name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ages {
    /// `None`: nothing is known.
    pub(super) next: Option<NextIds>,
    /// `relfrozenxid`.
    pub(super) frozen_xid: u32,
    /// `relminmxid`.
    pub(super) min_multi: u32,
}

impl Ages {
    /// Tells `each` what is wrong with the header of a row at `at`.
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
        // Frozen, an xmax that came to nothing is wiped out, and the link to what it made stays.
        let touched = frozen || xmax != 0 || mask & (MOVED_IN | MOVED_OFF) != 0;
        if state == RowState::Live && !touched && tuple.next_version() != at {
            each(ContentProblem::NextVersion { next: tuple.next_version() });
        }
        // Of a row that never was, nobody looks at who deleted it.
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
            each(ContentProblem::Age { which, found: xmax, oldest, next });
        }
    }

    fn has_xid(&self, xid: u32, next: NextIds) -> bool {
        let oldest = self.frozen_xid;
        (oldest < FIRST_NORMAL_XID || !precedes(xid, oldest)) && precedes(xid, next.xid)
    }

    /// Ids of multixacts go round as well, and all but 0 are ordinary.
    fn has_multi(&self, multi: u32, next: NextIds) -> bool {
        let before = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
        (self.min_multi == 0 || !before(multi, self.min_multi)) && before(multi, next.multi)
    }

    fn xid(&self, which: HeaderId, found: u32, next: NextIds) -> ContentProblem {
        ContentProblem::Age { which, found, oldest: self.frozen_xid, next: next.xid }
    }
}

/// Whether a multixact is a mere lock from before 9.3, brought here by `pg_upgrade`: the server
/// knows that it is over without looking.
fn is_old_lock(mask: u16) -> bool {
    let locks = mask & (XMAX_LOCK_ONLY | XMAX_EXCLUSIVE_LOCK | XMAX_KEY_SHARE_LOCK);
    locks == XMAX_LOCK_ONLY
}
