//! **Visibility** of a tuple in a stopped cluster.
//!
//! ```text
//!   inserted?   frozen, hint, bootstrap, or committed in the log    else aborted, or in doubt
//!   deleted?    no xmax, a mere lock, or its transaction (of a      else dead
//!               multixact: the one that updates) did not commit
//! ```
//! A tuple is visible if and only if its state is [`RowState::Live`]. We treat a tuple as deleted
//! only if we know that the deleting transaction has committed. A transaction that is merely
//! prepared may still roll back, and a transaction that was interrupted by a crash has effectively
//! aborted.
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
    /// The inserting transaction has neither committed nor aborted, which means that it was
    /// prepared or that it was interrupted by a crash. A running server would call
    /// `TransactionIdIsInProgress` to check whether it is still running.
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

/// Determines the state of a tuple on a page that is not marked all-visible. (On an all-visible
/// page, every tuple is live.) We look up a transaction in `status` only if the tuple's hint bits
/// are not sufficient.
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

/// Determines the state of a tuple by looking in the commit log, because a hint bit for xmin or
/// xmax has not been set. Like `HeapTupleSatisfiesMVCC`, we test xmin first, then the hint bits for
/// xmax, and finally xmax itself. If xmax is a multixact that only locks the tuple, we must not
/// look it up, because its members may already have been truncated away.
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

/// Before PostgreSQL 9.0, `VACUUM FULL` moved tuples in a transaction whose XID is stored in
/// `t_xvac`. If that transaction committed, the new copy of the tuple is the valid one. Otherwise,
/// the old copy is still valid.
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
