//! **Locked pages**: the pages that a record may change, pinned before there is room for it, and locked after that.

use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BlockNo, Lsn, PageBytes};

use super::error::BtreeWriteError;
use crate::heap_writer::HeapSession;
use crate::log_writer::Room;
use crate::page_change::{ChangedPage, Changer};
use crate::pool::{PageMut, Pin};
use crate::storage::Relation;

/// Pins pages.
pub(super) fn pin(
    session: &mut HeapSession<'_>,
    relation: &Relation,
    blocks: &[BlockNo],
) -> Result<Vec<Pin>, BtreeWriteError> {
    let pins = blocks.iter().map(|block| Ok(session.backend.read(relation, *block)?));
    pins.collect()
}

/// A block reference of a record.
pub(super) struct Part<'a> {
    /// Its number.
    pub(super) id: u8,
    pub(super) block: BlockNo,
    pub(super) image: ImageMode,
    pub(super) data: &'a [&'a [u8]],
}

/// Pages that are locked for changing.
pub(super) struct LockedPages<'p> {
    relation: Relation,
    pages: Vec<(BlockNo, PageMut<'p>)>,
}

impl<'p> LockedPages<'p> {
    /// Locks pages in this order.
    pub(super) fn lock(
        session: &mut HeapSession<'_>,
        relation: &Relation,
        pins: &'p [Pin],
    ) -> Result<Self, BtreeWriteError> {
        let mut pages = Vec::with_capacity(pins.len());
        for pin in pins {
            pages.push((pin.page().block(), session.lock_page(pin)?));
        }
        Ok(Self { relation: relation.clone(), pages })
    }

    /// A page, if it is locked.
    pub(super) fn get(&self, block: BlockNo) -> Option<&PageBytes> {
        self.pages.iter().find(|(locked, _)| *locked == block).map(|(_, page)| &**page)
    }

    /// Changes pages by a record. Returns its end.
    pub(super) fn change(
        &mut self,
        changer: &mut Changer,
        room: &mut Room,
        operation: &NewRecord<'_>,
        parts: &[Part<'_>],
    ) -> Result<Lsn, BtreeWriteError> {
        let relation = &self.relation;
        let mut changed: Vec<(u8, ChangedPage<'_, 'p>)> = Vec::with_capacity(parts.len());
        for (block, page) in &mut self.pages {
            if let Some(part) = parts.iter().find(|part| part.block == *block) {
                let (image, data) = (part.image, part.data);
                let block = *block;
                changed.push((part.id, ChangedPage { relation, block, page, image, data }));
            }
        }
        assert_eq!(changed.len(), parts.len(), "a page that a record changes is locked");
        changed.sort_by_key(|(id, _)| *id);
        let (ids, mut pages): (Vec<u8>, Vec<_>) = changed.into_iter().unzip();
        Ok(changer.change_numbered(room, operation, &ids, &mut pages)?.end)
    }
}
