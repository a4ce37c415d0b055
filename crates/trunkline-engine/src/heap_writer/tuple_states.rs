//! Which tuples of a page are dead for every snapshot (PostgreSQL's `HeapTupleSatisfiesVacuum`).
//!
//! ```text
//!   xids_of(page) ─▶ statuses, read without a lock on the page ─▶ states of the tuples, under the lock
//!                           ▲                                          │ unknown XID: the page has changed
//!                           └──────────────────────────────────────────┘
//! ```
//! A status may have to be read from a file, which must not happen while a session has room in the WAL. A status that was
//! read earlier may be out of date: if it was "in progress", the tuple is kept.

use std::collections::BTreeMap;

use trunkline_format::PageBytes;
use trunkline_format::heap_tuple::{
    HeapTuple, XMAX_INVALID, XMAX_IS_MULTI, XMIN_FROZEN, heap_rows, is_only_locked,
};
use trunkline_format::transam::{
    FIRST_NORMAL_XID, RowState, XidStatus, XidStatusLookup, precedes, row_state,
};

use super::error::HeapWriteError;
use super::session::HeapSession;

/// What is known about transactions.
pub(super) struct TupleStates {
    /// All older transactions have ended, and no snapshot needs what they have removed.
    horizon: u32,
    known: BTreeMap<u32, XidStatus>,
}

/// Why the state of a tuple is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The page has a transaction whose status was not read.
    Status,
    /// The tuple has a multixact with a member that has updated it.
    Multixact { item: u16, multixact: u32 },
    /// The tuple does not fit into its item.
    Damaged { item: u16 },
    /// The tuple is dead, heap-only, and in no HOT chain.
    NotInChain { item: u16 },
    /// The tuple can't be frozen: its xmin before the horizon has not committed, or its xmax has.
    NotFrozen { item: u16, xid: u32, status: XidStatus },
}

/// A tuple's state for all snapshots together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TupleState {
    /// No snapshot sees it, now or later.
    Dead,
    /// It was deleted, but some snapshots may still see it.
    RecentlyDead,
    /// It was not deleted, or its deletion has not committed.
    Live,
    /// Its insertion has not ended.
    Inserting,
}

impl TupleStates {
    pub(super) fn new(horizon: u32) -> Self {
        Self { horizon, known: BTreeMap::new() }
    }

    pub(super) fn horizon(&self) -> u32 {
        self.horizon
    }

    /// Reads the statuses of transactions. No page may be locked, and a pin must be free.
    ///
    /// # Errors
    /// [`HeapWriteError::Status`].
    pub(super) fn read(
        &mut self,
        xids: &[u32],
        session: &mut HeapSession<'_>,
    ) -> Result<(), HeapWriteError> {
        for xid in xids {
            self.known.insert(*xid, session.status(*xid)?);
        }
        Ok(())
    }

    /// The state of a tuple.
    pub(super) fn of(&self, tuple: &HeapTuple<'_>) -> Result<TupleState, Unknown> {
        if let Some(multixact) = tuple.updating_multixact() {
            return Err(Unknown::Multixact { item: tuple.item(), multixact });
        }
        match row_state(tuple, &mut &*self)? {
            RowState::Live => Ok(TupleState::Live),
            RowState::Aborted => Ok(TupleState::Dead),
            RowState::InDoubt => Ok(TupleState::Inserting),
            RowState::Dead if precedes(tuple.xmax(), self.horizon) => Ok(TupleState::Dead),
            RowState::Dead => Ok(TupleState::RecentlyDead),
        }
    }

    /// Whether the transaction that deletes or updates the tuple has not ended.
    pub(super) fn is_deleting(&self, tuple: &HeapTuple<'_>) -> Result<bool, Unknown> {
        match deleter(tuple) {
            Some(xmax) => Ok(self.status(xmax)? == XidStatus::InProgress),
            None => Ok(false),
        }
    }

    /// How a transaction has ended. If one before the horizon is still marked as in progress, a crash interrupted it: it has aborted.
    pub(super) fn status(&self, xid: u32) -> Result<XidStatus, Unknown> {
        match self.known.get(&xid).ok_or(Unknown::Status)? {
            XidStatus::InProgress | XidStatus::SubCommitted if precedes(xid, self.horizon) => {
                Ok(XidStatus::Aborted)
            }
            XidStatus::SubCommitted => Ok(XidStatus::InProgress),
            status => Ok(*status),
        }
    }
}

impl XidStatusLookup for &TupleStates {
    type Error = Unknown;

    fn fate(&mut self, xid: u32) -> Result<XidStatus, Unknown> {
        self.status(xid)
    }

    fn updater(&mut self, multixact: u32) -> Result<Option<u32>, Unknown> {
        Err(Unknown::Multixact { item: 0, multixact })
    }
}

/// The transactions of a page whose statuses decide about its tuples.
pub(super) fn xids_of(page: &PageBytes) -> Vec<u32> {
    let mut xids = Vec::new();
    for tuple in heap_rows(page).flatten() {
        xids.extend(inserter(&tuple));
        xids.extend(deleter(&tuple));
    }
    xids.sort_unstable();
    xids.dedup();
    xids
}

/// The transaction that has inserted a tuple, unless it is frozen.
pub(super) fn inserter(tuple: &HeapTuple<'_>) -> Option<u32> {
    let is_frozen = tuple.infomask() & XMIN_FROZEN == XMIN_FROZEN;
    (!is_frozen && tuple.xmin() >= FIRST_NORMAL_XID).then(|| tuple.xmin())
}

/// The transaction that has deleted or updated a tuple, or tries to. `None` if xmax is a multixact, which is not an XID.
fn deleter(tuple: &HeapTuple<'_>) -> Option<u32> {
    let has_xid = tuple.infomask() & (XMAX_INVALID | XMAX_IS_MULTI) == 0;
    let is_deleted = has_xid && !is_only_locked(tuple.infomask());
    (is_deleted && tuple.xmax() >= FIRST_NORMAL_XID).then(|| tuple.xmax())
}
