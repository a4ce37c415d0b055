//! Locks a row (PostgreSQL's `heap_lock_tuple`).
//!
//! The lock is the row's xmax, so it lasts until the transaction ends. If other transactions hold a lock that is compatible,
//! the xmax becomes a multixact of all of them.

use trunkline_format::heap_tuple::{
    KEYS_UPDATED, XMAX_EXCLUSIVE_LOCK, XMAX_KEY_SHARE_LOCK, is_all_visible,
};
use trunkline_format::transam::multixact::MemberStatus;
use trunkline_format::wal::heap_flags::{ALL_FROZEN_CLEARED, info_bits};
use trunkline_format::wal::resource_manager::heap_operation::LOCK;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{Lsn, Tid, visibility_map};

use super::error::HeapWriteError;
use super::row_holders::RowHolders;
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

    /// The mode in which an xmax with these bits has locked a row.
    pub(super) fn of_bits(infomask: u16, infomask2: u16) -> Self {
        let has = |bit: u16| infomask & bit != 0;
        match (has(XMAX_KEY_SHARE_LOCK), has(XMAX_EXCLUSIVE_LOCK)) {
            (true, false) => Self::KeyShare,
            (true, true) => Self::Share,
            _ if infomask2 & KEYS_UPDATED == 0 => Self::NoKeyUpdate,
            _ => Self::Update,
        }
    }

    /// The mode in which a member of a multixact has locked a row.
    pub(super) fn of_member(status: MemberStatus) -> Self {
        match status {
            MemberStatus::KeyShare => Self::KeyShare,
            MemberStatus::Share => Self::Share,
            MemberStatus::NoKeyUpdateLock | MemberStatus::NoKeyUpdate => Self::NoKeyUpdate,
            MemberStatus::UpdateLock | MemberStatus::Update => Self::Update,
        }
    }

    /// The status of a member with this lock.
    fn member_status(self) -> MemberStatus {
        match self {
            Self::KeyShare => MemberStatus::KeyShare,
            Self::Share => MemberStatus::Share,
            Self::NoKeyUpdate => MemberStatus::NoKeyUpdateLock,
            Self::Update => MemberStatus::UpdateLock,
        }
    }

    /// Whether two transactions can't have these locks on the same row (`tupleLockExtraInfo`).
    fn conflicts_with(self, other: Self) -> bool {
        match (self.min(other), self.max(other)) {
            (_, Self::Update) | (Self::Share | Self::NoKeyUpdate, Self::NoKeyUpdate) => true,
            (Self::KeyShare, _) | (Self::Share, _) => false,
            (Self::NoKeyUpdate | Self::Update, _) => unreachable!("the second is not weaker"),
        }
    }
}

impl HeapWriter {
    /// Locks a row version. `ended` is a transaction that the caller knows to have ended; other transactions that only have
    /// locked the row have ended if the commit log says so. Returns `None` if this transaction has locked the row as
    /// strongly already.
    ///
    /// # Errors
    /// [`HeapWriteError`]; the row was not locked. [`HeapWriteError::LockedBy`] if another transaction has a lock that
    /// conflicts with this one, or has changed the row. [`HeapWriteError::ChangedBy`] if this transaction has changed the row,
    /// or `ended` has and has committed.
    pub fn lock(
        &mut self,
        session: &mut HeapSession<'_>,
        tid: Tid,
        mode: RowLockMode,
        ended: Option<u32>,
    ) -> Result<Option<Lsn>, HeapWriteError> {
        let Tid { block, item } = tid;
        loop {
            let (mut pin, seen) = self.pin_row(session, tid)?;
            let holders = self.holders(session, (tid, seen), ended)?;
            if holders.own >= Some(mode) {
                return Ok(None);
            }
            let conflict = |(_, theirs): &&(u32, RowLockMode)| theirs.conflicts_with(mode);
            if let Some(&(xmax, _)) = holders.others.iter().find(conflict) {
                return Err(HeapWriteError::LockedBy { location: self.at(tid), xmax });
            }
            let (mut xmax, mut bits) = (session.xid, mode.info_bits());
            if !holders.others.is_empty() {
                // The multixact needs pins of its own.
                drop(pin);
                (xmax, bits) = self.share(session, &holders, mode)?;
                pin = session.pin(&self.relation, block)?;
            }
            let mut room = session.room(&[&pin], 0)?;
            let Some(mut page) = session.lock(&pin)? else { continue };
            if self.xmax_of(tid, &page)? != seen {
                continue;
            }
            let mut maps = session.lock_maps(&self.relation, &[(&pin, &page)])?;
            let map_bits = maps.first().map(|map| visibility_map::bits(&map.page, block));
            let was_frozen = is_all_visible(&page) && map_bits.is_some_and(|bits| bits.all_frozen);
            let flags = if was_frozen { ALL_FROZEN_CLEARED } else { 0 };
            let main: &[&[u8]] = &[&xmax.to_le_bytes(), &item.to_le_bytes(), &[bits, flags]];
            let operation = NewRecord::plain(number::HEAP, LOCK, session.xid, main);
            let (relation, image) = (&self.relation, ImageMode::IfNeeded);
            let pages = &mut [ChangedPage { relation, block, page: &mut page, image, data: &[] }];
            let changer = &mut *session.changer;
            let place = changer.change_with_maps(&mut room, &operation, pages, &mut maps)?;
            return Ok(Some(place.end));
        }
    }

    /// Creates a multixact of the other holders of a row and this transaction. Returns it, and the `infobits_set` of the
    /// record (`GetMultiXactIdHintBits`). If the row is not locked then, no row has the multixact.
    fn share(
        &self,
        session: &mut HeapSession<'_>,
        holders: &RowHolders,
        mode: RowLockMode,
    ) -> Result<(u32, u8), HeapWriteError> {
        let own = (session.xid, mode);
        let members = || holders.others.iter().chain([&own]);
        let strongest = members().map(|(_, mode)| *mode).max().unwrap_or(mode);
        let members: Vec<_> = members().map(|(xid, mode)| (*xid, mode.member_status())).collect();
        let created = session.multixacts.create(session.backend, session.changer, &members);
        let multixact = created.map_err(|source| HeapWriteError::NewMultixact { source })?;
        Ok((multixact, strongest.info_bits() | info_bits::IS_MULTI))
    }
}
