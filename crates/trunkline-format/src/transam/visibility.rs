//! **Visibility** of a tuple in a cluster that is not running.
//!
//! ```text
//!   inserted?   frozen, hint, bootstrap, or committed in the log    else aborted, or in doubt
//!   deleted?    no xmax, a mere lock, or its transaction (of a      else dead
//!               multixact: the one that updates) did not commit
//! ```
//! A tuple is visible exactly if it is [`RowState::Live`]. A deletion by a transaction that is not
//! known to have committed does not count: a prepared transaction can still roll back, and after a
//! crash an interrupted one has.
//!
//! Mirrors `HeapTupleSatisfiesMVCC` and `HeapTupleSatisfiesVacuum` of PostgreSQL's
//! `access/heap/heapam_visibility.c`, without transactions in progress.

use super::commit_log::XidStatus;
use crate::heap_tuple::{
    BOOTSTRAP_XID, FROZEN_XID, HeapTuple, MOVED_IN, MOVED_OFF, Visible, XMAX_IS_MULTI,
    XMIN_COMMITTED, XMIN_FROZEN, XMIN_INVALID,
};

/// Looks up the status of transactions and multixacts.
pub trait XidStatusLookup {
    /// Why a look-up failed.
    type Error;

    /// The status of an ordinary transaction. Called only for ids from
    /// [`super::FIRST_NORMAL_XID`] on.
    ///
    /// # Errors
    /// Its page cannot be read.
    fn fate(&mut self, xid: u32) -> Result<XidStatus, Self::Error>;

    /// The member of a multixact that updated or deleted the row, if one did.
    ///
    /// # Errors
    /// Its page cannot be read.
    fn updater(&mut self, multi: u32) -> Result<Option<u32>, Self::Error>;
}

/// The state of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowState {
    /// Visible: inserted, and not deleted.
    Live,
    /// Inserted, and deleted or replaced.
    Dead,
    /// Its insertion was rolled back.
    Aborted,
    /// The inserting transaction neither committed nor aborted: it is prepared, or was interrupted
    /// by a crash. A running server would decide by `TransactionIdIsInProgress`.
    InDoubt,
}

/// As a column of results has it.
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

/// The state of a tuple on a page that is not marked all-visible, where every tuple is live. Looks
/// up in `status` only what the hint bits do not decide.
///
/// # Errors
///
/// Those of `status`.
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

/// Decides by the commit log, because the hint bits of xmin or xmax are missing. The order of the
/// tests is that of `HeapTupleSatisfiesMVCC`: first xmin, then the hint bits of xmax, then xmax. A
/// multixact that only locks is never looked up, because its members may be truncated already.
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
    // With xmin known to be committed, the hint bits of xmax may suffice.
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

/// `VACUUM FULL` before 9.0 moved tuples in a transaction of its own, `t_xvac`. If that did not
/// commit, the old copy is valid; if it did, the new one.
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

/// The status of any transaction. Reserved ids are not in the commit log.
fn fate<S: XidStatusLookup>(xid: u32, status: &mut S) -> Result<XidStatus, S::Error> {
    match xid {
        0 => Ok(XidStatus::InProgress),
        BOOTSTRAP_XID | FROZEN_XID => Ok(XidStatus::Committed),
        _ => status.fate(xid),
    }
}
