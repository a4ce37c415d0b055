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
use super::session::HeapSession;
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
    /// Locks a row version. If the row's xmax is a transaction that the caller knows to have ended without changing the
    /// row, it is `ended`. Returns `None` if this transaction has locked the row as strongly already.
    ///
    /// # Errors
    /// [`HeapWriteError`]; the row was not locked. [`HeapWriteError::LockedBy`] if it has another xmax than `ended`.
    pub fn lock(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
        mode: RowLockMode,
        ended: Option<u32>,
    ) -> Result<Option<Lsn>, HeapWriteError> {
        let Tid { block, item } = tid;
        loop {
            let pin = session.pin(&self.relation, block)?;
            let mut room = session.room(&[&pin], 0)?;
            let Some(mut page) = session.lock(&pin)? else { continue };
            self.check_row(tid, &page)?;
            let xid = session.xid;
            let Some(mode) = self.needed_lock(tid, &page, mode, (xid, ended))? else {
                return Ok(None);
            };
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

    /// The mode that the row must be locked in. `None` if it is.
    fn needed_lock(
        &self,
        tid: Tid,
        page: &PageBytes,
        wanted: RowLockMode,
        (xid, ended): (u32, Option<u32>),
    ) -> Result<Option<RowLockMode>, HeapWriteError> {
        let bytes = line_pointer(page, tid.item).and_then(|pointer| pointer.item(page));
        let row = HeapTuple::parse(tid.item, bytes.unwrap_or_default());
        let row = row.map_err(|_| HeapWriteError::Damaged { location: self.at(tid) })?;
        let (xmax, infomask) = (row.xmax(), row.infomask());
        if xmax == 0 || infomask & XMAX_INVALID != 0 {
            return Ok(Some(wanted));
        }
        let location = || self.at(tid);
        if infomask & XMAX_IS_MULTI != 0 {
            return Err(HeapWriteError::Multixact { location: location(), multixact: xmax });
        }
        if xmax == xid {
            if !is_only_locked(infomask) {
                return Err(HeapWriteError::ChangedBy { location: location(), xmax });
            }
            let is_enough = RowLockMode::of(&row) >= wanted;
            return Ok((!is_enough).then_some(wanted));
        }
        match ended == Some(xmax) {
            true => Ok(Some(wanted)),
            false => Err(HeapWriteError::LockedBy { location: location(), xmax }),
        }
    }
}
