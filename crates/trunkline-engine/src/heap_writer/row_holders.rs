//! Which transactions hold a row: those in its xmax, or in the multixact that is its xmax.
//!
//! ```text
//!   xmax, read under a share lock ─▶ holders: members and statuses are read without a lock
//!         ▲                                          │
//!         └── the page is locked for the change: does the row still have that xmax? If not, again.
//! ```
//! A multixact and a status may have to be read from a file, which must not happen while a session has room in the WAL.

use trunkline_format::PageBytes;
use trunkline_format::Tid;
use trunkline_format::heap_tuple::{
    HeapTuple, KEYS_UPDATED, XMAX_BITS, XMAX_INVALID, XMAX_IS_MULTI, is_only_locked,
};
use trunkline_format::page::line_pointer;
use trunkline_format::transam::XidStatus;

use super::error::HeapWriteError;
use super::lock_mode::RowLockMode;
use super::session::{HeapPin, HeapSession};
use super::writer::HeapWriter;

/// The xmax of a row, and the bits that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Xmax {
    id: u32,
    /// Of these, only `XMAX_BITS`.
    infomask: u16,
    /// Of these, only `KEYS_UPDATED`.
    infomask2: u16,
}

/// The transactions that hold a row, and how.
#[derive(Debug, Default)]
pub(super) struct RowHolders {
    /// The lock of the session's own transaction.
    pub(super) own: Option<RowLockMode>,
    /// Other transactions that have not ended.
    pub(super) others: Vec<(u32, RowLockMode)>,
}

impl HeapWriter {
    /// Pins the page of a row, and its map page if it is all-visible. Returns the row's xmax, if it has one.
    ///
    /// # Errors
    /// There is no row version at this TID, or it is damaged, or the page can't be read.
    pub(super) fn pin_row(
        &self,
        session: &mut HeapSession<'_>,
        tid: Tid,
    ) -> Result<(HeapPin, Option<Xmax>), HeapWriteError> {
        let (pin, xmax) =
            session.pin_and_look(&self.relation, tid.block, |page| self.xmax_of(tid, page))?;
        Ok((pin, xmax?))
    }

    /// The xmax of a row version.
    ///
    /// # Errors
    /// There is no row version at this TID, or it is damaged.
    pub(super) fn xmax_of(
        &self,
        tid: Tid,
        page: &PageBytes,
    ) -> Result<Option<Xmax>, HeapWriteError> {
        self.check_row(tid, page)?;
        let bytes = line_pointer(page, tid.item).and_then(|pointer| pointer.item(page));
        let row = HeapTuple::parse(tid.item, bytes.unwrap_or_default());
        let row = row.map_err(|_| HeapWriteError::Damaged { location: self.at(tid) })?;
        let (id, infomask) = (row.xmax(), row.infomask() & XMAX_BITS);
        let has_xmax = id != 0 && infomask & XMAX_INVALID == 0;
        let infomask2 = row.infomask2() & KEYS_UPDATED;
        Ok(has_xmax.then_some(Xmax { id, infomask, infomask2 }))
    }

    /// The transactions that hold a row with this xmax. `ended` has ended, as the caller says. The session must have no
    /// room in the WAL.
    ///
    /// # Errors
    /// [`HeapWriteError::ChangedBy`] if the row was changed by this transaction, or by `ended`, which has committed.
    /// [`HeapWriteError::LockedBy`] if it was changed by another transaction. Or the multixact or a status can't be read.
    pub(super) fn holders(
        &self,
        session: &mut HeapSession<'_>,
        (tid, xmax): (Tid, Option<Xmax>),
        ended: Option<u32>,
    ) -> Result<RowHolders, HeapWriteError> {
        let Some(xmax) = xmax else { return Ok(RowHolders::default()) };
        let (location, id) = (|| self.at(tid), xmax.id);
        if !is_only_locked(xmax.infomask) {
            return match ended {
                _ if xmax.infomask & XMAX_IS_MULTI != 0 => {
                    Err(HeapWriteError::Multixact { location: location(), multixact: id })
                }
                _ if id == session.xid => {
                    Err(HeapWriteError::ChangedBy { location: location(), xmax: id })
                }
                Some(ended) if ended == id => match session.status(id)? {
                    XidStatus::Committed => {
                        Err(HeapWriteError::ChangedBy { location: location(), xmax: id })
                    }
                    _ => Ok(RowHolders::default()),
                },
                _ => Err(HeapWriteError::LockedBy { location: location(), xmax: id }),
            };
        }
        let members = match xmax.infomask & XMAX_IS_MULTI {
            0 => vec![(id, xmax.lock_mode())],
            _ => {
                let members = session.multixacts.members(session.backend, id);
                let failed = |source| HeapWriteError::Members { multixact: id, source };
                let mode = |(xid, status)| (xid, RowLockMode::of_member(status));
                members.map_err(failed)?.into_iter().map(mode).collect()
            }
        };
        let mut holders = RowHolders::default();
        for (xid, mode) in members {
            if xid == session.xid {
                holders.own = holders.own.max(Some(mode));
            } else if Some(xid) != ended && session.is_running(xid)? {
                holders.others.push((xid, mode));
            }
        }
        Ok(holders)
    }

    /// Refuses to change a row that other transactions hold.
    ///
    /// # Errors
    /// As for [`HeapWriter::holders`], and [`HeapWriteError::LockedBy`].
    pub(super) fn refuse_others(
        &self,
        session: &mut HeapSession<'_>,
        (tid, xmax): (Tid, Option<Xmax>),
        ended: Option<u32>,
    ) -> Result<(), HeapWriteError> {
        match self.holders(session, (tid, xmax), ended)?.others.first() {
            Some(&(xmax, _)) => Err(HeapWriteError::LockedBy { location: self.at(tid), xmax }),
            None => Ok(()),
        }
    }
}

impl Xmax {
    /// The mode in which a transaction has locked the row.
    fn lock_mode(self) -> RowLockMode {
        RowLockMode::of_bits(self.infomask, self.infomask2)
    }
}
