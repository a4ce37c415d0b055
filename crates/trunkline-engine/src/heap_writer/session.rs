//! Pins and locks pages of a table, together with the pages of its visibility map.

use std::fmt;

use trunkline_aio::Cancelled;
use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::transam::XidStatus;
use trunkline_format::transam::multixact::MemberStatus;
use trunkline_format::visibility_map::map_block;
use trunkline_format::{BlockNo, Fork, PageBytes};

use super::error::{HeapWriteError, StatusError};
use crate::log_writer::{LogWriterError, Room};
use crate::page_change::{Changer, MapPage};
use crate::pool::{Backend, PageMut, Pin};
use crate::settings::ExtendMethod;
use crate::storage::{Relation, StorageError};

/// Knows how transactions have ended.
pub trait TransactionStatuses: fmt::Debug {
    /// How a transaction has ended. A transaction that a crash has interrupted is in progress. `backend` may have to read a
    /// page.
    ///
    /// # Errors
    /// The status could not be read.
    fn status(&self, backend: &mut Backend, xid: u32) -> Result<XidStatus, StatusError>;

    /// Whether a transaction has begun since the cluster was opened, and has not ended. `backend` may have to read a page.
    ///
    /// # Errors
    /// The status could not be read.
    fn is_running(&self, backend: &mut Backend, xid: u32) -> Result<bool, StatusError>;
}

/// Creates multixacts, and knows their members.
pub trait Multixacts: fmt::Debug {
    /// The members of a multixact, with their locks. `backend` may have to read pages, one at a time.
    ///
    /// # Errors
    /// The multixact does not exist, is damaged, or could not be read.
    fn members(
        &self,
        backend: &mut Backend,
        multixact: u32,
    ) -> Result<Vec<(u32, MemberStatus)>, StatusError>;

    /// Creates a multixact with these members, and logs it. Needs up to four pins, which is all that a session is
    /// guaranteed. The session must have no room in the WAL.
    ///
    /// # Errors
    /// It was not created. There may be limits on the number of members.
    ///
    /// # Panics
    /// If there are no members.
    fn create(
        &self,
        backend: &mut Backend,
        changer: &mut Changer,
        members: &[(u32, MemberStatus)],
    ) -> Result<u32, StatusError>;
}

/// A session with the right to change pages.
#[derive(Debug)]
pub struct HeapSession<'s> {
    /// Reads and locks pages.
    pub backend: &'s mut Backend,
    /// Changes them.
    pub changer: &'s mut Changer,
    /// How transactions have ended.
    pub statuses: &'s dyn TransactionStatuses,
    /// Which transactions share a lock on a row.
    pub multixacts: &'s dyn Multixacts,
    /// The transaction.
    pub xid: u32,
}

/// A pinned page of a table, and the page of the map with its bits, if that may be needed.
pub(super) struct HeapPin {
    pub(super) block: BlockNo,
    pub(super) pin: Pin,
    map: Option<Pin>,
}

impl HeapSession<'_> {
    /// Room for a record that changes this many pages, with `data` bytes of data.
    pub(crate) fn room_for_pages(
        &mut self,
        pages: u64,
        data: usize,
    ) -> Result<Room, LogWriterError> {
        self.changer.room(self.backend.session(), (1, pages, data as u64 + 64))
    }

    /// Locks a page exclusively, in a relation that has no visibility map.
    pub(crate) fn lock_page<'p>(&mut self, pin: &'p Pin) -> Result<PageMut<'p>, LogWriterError> {
        Ok(self.backend.write_lock(pin.page())?)
    }

    /// Pins a page, and its map page if it is all-visible.
    pub(super) fn pin(
        &mut self,
        relation: &Relation,
        block: BlockNo,
    ) -> Result<HeapPin, HeapWriteError> {
        Ok(self.pin_and_look(relation, block, |_| ())?.0)
    }

    /// [`HeapSession::pin`] that also looks at the page, under a share lock.
    pub(super) fn pin_and_look<T>(
        &mut self,
        relation: &Relation,
        block: BlockNo,
        look: impl FnOnce(&PageBytes) -> T,
    ) -> Result<(HeapPin, T), HeapWriteError> {
        let pin = self.backend.read(relation, block)?;
        let page = self.backend.read_lock(pin.page()).map_err(cancelled)?;
        let (is_visible, seen) = (is_all_visible(&page), look(&page));
        drop(page);
        let map = if is_visible { Some(self.pin_map(relation, block)?) } else { None };
        Ok((HeapPin { block, pin, map }, seen))
    }

    /// Pins a page and its map page.
    pub(super) fn pin_with_map(
        &mut self,
        relation: &Relation,
        block: BlockNo,
    ) -> Result<HeapPin, HeapWriteError> {
        let pin = self.backend.read(relation, block)?;
        let map = Some(self.pin_map(relation, block)?);
        Ok(HeapPin { block, pin, map })
    }

    /// Pins the map page with the bits of a block. Extends the map if it is too short, and creates it if it doesn't exist.
    fn pin_map(&mut self, relation: &Relation, block: BlockNo) -> Result<Pin, HeapWriteError> {
        let map = map_of(relation);
        let is_long_enough = matches!(map.blocks(), Ok(blocks) if blocks > map_block(block));
        if !is_long_enough {
            // The holder of the lock may wait for I/O that this session has staged.
            self.backend.session().submit();
            let _extending = relation.storage().map_extension().lock();
            let mut blocks = match map.blocks() {
                Err(StorageError::SegmentMissing { .. }) => {
                    map.create()?;
                    0
                }
                blocks => blocks?,
            };
            while blocks <= map_block(block) {
                blocks += self.backend.extend(&map, 1, ExtendMethod::default())?.len() as u32;
            }
        }
        Ok(self.backend.read(&map, map_block(block))?)
    }

    /// Room for a record that changes these pages, with `data` bytes of data, and for images of their map pages.
    pub(super) fn room(&mut self, pins: &[&HeapPin], data: usize) -> Result<Room, LogWriterError> {
        let maps = pins.iter().filter(|pin| pin.map.is_some()).count() as u64;
        let (records, pages) = (1 + maps, pins.len() as u64 + maps);
        self.changer.room(self.backend.session(), (records, pages, data as u64 + 64))
    }

    /// Locks a page. `None` if it has become all-visible, so that its map page must be pinned, too.
    pub(super) fn lock<'p>(
        &mut self,
        pin: &'p HeapPin,
    ) -> Result<Option<PageMut<'p>>, LogWriterError> {
        let page = self.lock_page(&pin.pin)?;
        let is_ready = pin.map.is_some() || !is_all_visible(&page);
        Ok(is_ready.then_some(page))
    }

    /// Locks the map pages of those pages that are all-visible. The pages themselves must be locked.
    pub(super) fn lock_maps<'p>(
        &mut self,
        relation: &Relation,
        pages: &[(&'p HeapPin, &PageBytes)],
    ) -> Result<Vec<MapPage<'p>>, LogWriterError> {
        let visible = pages.iter().filter(|(_, page)| is_all_visible(page));
        let maps = visible.filter_map(|(pin, _)| Some((map_block(pin.block), pin.map.as_ref()?)));
        let mut maps: Vec<(BlockNo, &'p Pin)> = maps.collect();
        // In ascending order, and each of them once.
        maps.sort_unstable_by_key(|(block, _)| *block);
        maps.dedup_by_key(|(block, _)| *block);
        maps.into_iter().map(|(block, pin)| self.lock_map(relation, block, pin)).collect()
    }

    /// Locks the map page of a page, which must be locked.
    pub(super) fn lock_own_map<'p>(
        &mut self,
        relation: &Relation,
        pin: &'p HeapPin,
    ) -> Result<Option<MapPage<'p>>, LogWriterError> {
        let Some(map) = &pin.map else { return Ok(None) };
        self.lock_map(relation, map_block(pin.block), map).map(Some)
    }

    /// How a transaction has ended. Must be called without room in the WAL, since the status may have to be read.
    pub(super) fn status(&mut self, xid: u32) -> Result<XidStatus, HeapWriteError> {
        let status = self.statuses.status(self.backend, xid);
        status.map_err(|source| HeapWriteError::Status { xid, source })
    }

    /// Whether a transaction is running. Must be called without room in the WAL.
    pub(super) fn is_running(&mut self, xid: u32) -> Result<bool, HeapWriteError> {
        let is_running = self.statuses.is_running(self.backend, xid);
        is_running.map_err(|source| HeapWriteError::Status { xid, source })
    }

    fn lock_map<'p>(
        &mut self,
        relation: &Relation,
        block: BlockNo,
        pin: &'p Pin,
    ) -> Result<MapPage<'p>, LogWriterError> {
        let page = self.backend.write_lock(pin.page())?;
        Ok(MapPage { relation: map_of(relation), block, page })
    }
}

/// The session was cancelled.
pub(super) fn cancelled(error: Cancelled) -> HeapWriteError {
    HeapWriteError::Log(error.into())
}

/// The visibility map of a table.
fn map_of(relation: &Relation) -> Relation {
    relation.storage().relation(relation.locator(), Fork::Vm)
}
