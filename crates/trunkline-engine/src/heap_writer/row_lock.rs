//! Locks a row (PostgreSQL's `heap_lock_tuple`).
//!
//! The lock is the row's xmax, so it lasts until the transaction ends. A row that another transaction has locked would
//! need a multixact; there are none yet.

use trunkline_format::heap_tuple::{
    HeapTuple, KEYS_UPDATED, XMAX_EXCLUSIVE_LOCK, XMAX_INVALID, XMAX_IS_MULTI, XMAX_KEY_SHARE_LOCK,
    is_all_visible, is_only_locked,
};
use trunkline_format::page::line_pointer;
use trunkline_format::wal::heap_flags::{ALL_FROZEN_CLEARED, info_bits};
use trunkline_format::wal::resource_manager::heap_operation::LOCK;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{Lsn, PageBytes, Tid, visibility_map};

use super::error::HeapWriteError;
use super::session::{Ended, HeapSession};
use super::writer::HeapWriter;
use crate::page_change::ChangedPage;

/// How a row is locked, from the weakest mode to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLockMode {
    /// `FOR KEY SHARE`: the key does not change.
    KeyShare,
    /// `FOR SHARE`: the row does not change.
    Share,
    /// `FOR NO KEY UPDATE`: the transaction may change the row, apart from its key.
    NoKeyUpdate,
    /// `FOR UPDATE`: the transaction may change or delete the row.
    Update,
}

impl RowLockMode {
    /// `infobits_set` of the record.
    fn info_bits(self) -> u8 {
        info_bits::LOCK_ONLY
            | match self {
                Self::KeyShare => info_bits::KEY_SHARE,
                Self::Share => info_bits::KEY_SHARE | info_bits::EXCLUSIVE,
                Self::NoKeyUpdate => info_bits::EXCLUSIVE,
                Self::Update => info_bits::EXCLUSIVE | info_bits::KEYS_UPDATED,
            }
    }

    /// The mode in which xmax has locked a row.
    fn of(row: &HeapTuple<'_>) -> Self {
        let has = |bit: u16| row.infomask() & bit != 0;
        match (has(XMAX_KEY_SHARE_LOCK), has(XMAX_EXCLUSIVE_LOCK)) {
            (true, false) => Self::KeyShare,
            (true, true) => Self::Share,
            _ if row.infomask2() & KEYS_UPDATED == 0 => Self::NoKeyUpdate,
            _ => Self::Update,
        }
    }
}

impl HeapWriter {
    /// Locks a row version. If the row's xmax is a transaction that the caller knows to have ended, it is `ended`. Returns
    /// `None` if this transaction has locked the row as strongly already.
    ///
    /// # Errors
    /// [`HeapWriteError`]; the row was not locked. [`HeapWriteError::LockedBy`] if it has another xmax than `ended`.
    /// [`HeapWriteError::ChangedBy`] if this transaction has changed the row, or `ended` has and has committed.
    pub fn lock(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
        mode: RowLockMode,
        ended: Option<u32>,
    ) -> Result<Option<Lsn>, HeapWriteError> {
        let Tid { block, item } = tid;
        let ended = session.ended(ended)?;
        loop {
            let pin = session.pin(&self.relation, block)?;
            let mut room = session.room(&[&pin], 0)?;
            let Some(mut page) = session.lock(&pin)? else { continue };
            let xid = session.xid;
            if self.check_xmax(tid, &page, (xid, ended))? >= Some(mode) {
                return Ok(None);
            }
            let mut maps = session.lock_maps(&self.relation, &[(&pin, &page)])?;
            let bits = maps.first().map(|map| visibility_map::bits(&map.page, block));
            let was_frozen = is_all_visible(&page) && bits.is_some_and(|bits| bits.all_frozen);
            let flags = if was_frozen { ALL_FROZEN_CLEARED } else { 0 };
            let main: &[&[u8]] =
                &[&xid.to_le_bytes(), &item.to_le_bytes(), &[mode.info_bits(), flags]];
            let operation = NewRecord::plain(number::HEAP, LOCK, xid, main);
            let (relation, image) = (&self.relation, ImageMode::IfNeeded);
            let pages = &mut [ChangedPage { relation, block, page: &mut page, image, data: &[] }];
            let changer = &mut *session.changer;
            let place = changer.change_with_maps(&mut room, &operation, pages, &mut maps)?;
            return Ok(Some(place.end));
        }
    }

    /// The mode in which transaction `xid` has locked a row. `None` if it has not. Refuses a TID without a row version, and a
    /// row version that must not be locked or changed.
    pub(super) fn check_xmax(
        &self,
        tid: Tid,
        page: &PageBytes,
        (xid, ended): (u32, Option<Ended>),
    ) -> Result<Option<RowLockMode>, HeapWriteError> {
        self.check_row(tid, page)?;
        let bytes = line_pointer(page, tid.item).and_then(|pointer| pointer.item(page));
        let row = HeapTuple::parse(tid.item, bytes.unwrap_or_default());
        let row = row.map_err(|_| HeapWriteError::Damaged { location: self.at(tid) })?;
        let (xmax, infomask) = (row.xmax(), row.infomask());
        if xmax == 0 || infomask & XMAX_INVALID != 0 {
            return Ok(None);
        }
        let location = || self.at(tid);
        if infomask & XMAX_IS_MULTI != 0 {
            return Err(HeapWriteError::Multixact { location: location(), multixact: xmax });
        }
        if xmax == xid {
            if !is_only_locked(infomask) {
                return Err(HeapWriteError::ChangedBy { location: location(), xmax });
            }
            return Ok(Some(RowLockMode::of(&row)));
        }
        match ended.filter(|ended| ended.xid == xmax) {
            None => Err(HeapWriteError::LockedBy { location: location(), xmax }),
            Some(ended) if ended.has_committed && !is_only_locked(infomask) => {
                Err(HeapWriteError::ChangedBy { location: location(), xmax })
            }
            Some(_) => Ok(None),
        }
    }
}
