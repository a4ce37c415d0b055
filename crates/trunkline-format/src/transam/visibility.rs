//! **Visibility** of a tuple in a stopped cluster.
//!
//! ```text
//!   inserted?   frozen, hint, bootstrap, or committed in the log    else aborted, or in doubt
//!   deleted?    no xmax, a mere lock, or its transaction (of a      else dead
//!               multixact: the one that updates) did not commit
//! ```
//! A tuple is visible if and only if it is [`RowState::Live`]. A delete counts only if its
//! transaction is known to have committed. If the transaction was only prepared, it may still roll
//! back; if a crash interrupted it, it has effectively aborted.
//!
//! Mirrors `HeapTupleSatisfiesMVCC` and `HeapTupleSatisfiesVacuum` in PostgreSQL's
//! `access/heap/heapam_visibility.c`, except that no transaction is in progress.

use super::commit_log::XidStatus;
use crate::heap_tuple::{
    BOOTSTRAP_XID, FROZEN_XID, HeapTuple, MOVED_IN, MOVED_OFF, Visible, XMAX_IS_MULTI,
    XMIN_COMMITTED, XMIN_FROZEN, XMIN_INVALID,
};

/// Looks up the status of transactions and multixacts.
pub trait XidStatusLookup {
    /// The error that a failed look-up returns.
    type Error;

    /// Returns the status of a normal transaction. Only called for xids from
    /// [`super::FIRST_NORMAL_XID`] on.
    ///
    /// # Errors
    /// The commit log page cannot be read.
    fn fate(&mut self, xid: u32) -> Result<XidStatus, Self::Error>;

    /// Returns the multixact member that updated or deleted the tuple, if any.
    ///
    /// # Errors
    /// A page of the multixact's offsets or members cannot be read.
    fn updater(&mut self, multi: u32) -> Result<Option<u32>, Self::Error>;
}

/// A tuple's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowState {
    /// Visible: inserted and not deleted.
    Live,
    /// Inserted, but then deleted or updated.
    Dead,
    /// The inserting transaction aborted.
    Aborted,
    /// The inserting transaction has neither committed nor aborted: it is prepared, or a crash
    /// interrupted it. A running server would call `TransactionIdIsInProgress`.
    InDoubt,
}

/// Prints the state as it appears in a result column.
impl std::fmt::Display for RowState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Live => "live",
            Self::Dead => "dead",
            Self::Aborted => "aborted",
            Self::InDoubt => "in doubt",
        })
    }
}

/// Determines a tuple's state on a page that is not all-visible (on an all-visible page, every
/// tuple is live). Consults `status` only if the hint bits don't suffice.
///
/// # Errors
///
/// Any error from `status`.
#[inline]
pub fn row_state<S: XidStatusLookup>(
    tuple: &HeapTuple<'_>,
    status: &mut S,
) -> Result<RowState, S::Error> {
    match tuple.visible() {
        Visible::Yes => Ok(RowState::Live),
        Visible::No => {
            let hints = tuple.infomask() & XMIN_FROZEN;
            let aborted = hints == XMIN_INVALID && tuple.xmin() != FROZEN_XID;
            Ok(if aborted { RowState::Aborted } else { RowState::Dead })
        }
        Visible::InDoubt => judge_by_log(tuple, status),
    }
}

/// Consults the commit log, because hint bits of xmin or xmax are missing. We test in the same
/// order as `HeapTupleSatisfiesMVCC`: first xmin, then the hint bits of xmax, then xmax itself. A
/// lock-only multixact is never looked up, because its members may already be truncated.
#[cold]
fn judge_by_log<S: XidStatusLookup>(
    tuple: &HeapTuple<'_>,
    status: &mut S,
) -> Result<RowState, S::Error> {
    let infomask = tuple.infomask();
    if infomask & XMIN_COMMITTED == 0 {
        let inserted = match moved(tuple, status)? {
            Some(fate) => fate,
            None => fate(tuple.xmin(), status)?,
        };
        match inserted {
            XidStatus::Committed => {}
            XidStatus::Aborted => return Ok(RowState::Aborted),
            XidStatus::InProgress | XidStatus::SubCommitted => return Ok(RowState::InDoubt),
        }
    }
    // Now that we know that xmin committed, the hint bits of xmax may suffice.
    let settled = infomask | XMIN_COMMITTED;
    match Visible::by_hints(settled, tuple.xmin(), tuple.xmax()) {
        Visible::Yes => return Ok(RowState::Live),
        Visible::No => return Ok(RowState::Dead),
        Visible::InDoubt => {}
    }
    let deleter = match infomask & XMAX_IS_MULTI {
        0 => Some(tuple.xmax()),
        _ => status.updater(tuple.xmax())?,
    };
    let deleted = match deleter {
        Some(xid) => fate(xid, status)? == XidStatus::Committed,
        None => false,
    };
    Ok(if deleted { RowState::Dead } else { RowState::Live })
}

/// `VACUUM FULL` before 9.0 moved tuples in its own transaction, `t_xvac`. If that transaction
/// committed, the new copy is valid; otherwise, the old copy is.
fn moved<S: XidStatusLookup>(
    tuple: &HeapTuple<'_>,
    status: &mut S,
) -> Result<Option<XidStatus>, S::Error> {
    let infomask = tuple.infomask();
    if infomask & (MOVED_OFF | MOVED_IN) == 0 {
        return Ok(None);
    }
    let committed = fate(tuple.xvac(), status)? == XidStatus::Committed;
    let here = committed == (infomask & MOVED_OFF == 0);
    Ok(Some(if here { XidStatus::Committed } else { XidStatus::Aborted }))
}

/// The status of any transaction. Special xids have no commit log entry.
fn fate<S: XidStatusLookup>(xid: u32, status: &mut S) -> Result<XidStatus, S::Error> {
    match xid {
        0 => Ok(XidStatus::InProgress),
        BOOTSTRAP_XID | FROZEN_XID => Ok(XidStatus::Committed),
        _ => status.fate(xid),
    }
}
