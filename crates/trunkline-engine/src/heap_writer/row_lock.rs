//! Locks a row (PostgreSQL's `heap_lock_tuple`).
//!
//! The lock is the row's xmax, so it lasts until the transaction ends. If other transactions hold a lock that is compatible,
//! the xmax becomes a multixact of all of them.

use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::wal::heap_flags::{ALL_FROZEN_CLEARED, info_bits};
use trunkline_format::wal::resource_manager::heap_operation::LOCK;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{Lsn, Tid, visibility_map};

use super::error::HeapWriteError;
use super::lock_mode::RowLockMode;
use super::row_holders::RowHolders;
use super::session::HeapSession;
use super::writer::HeapWriter;
use crate::page_change::ChangedPage;

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
