//! Marks a page as all-visible or all-frozen (PostgreSQL's `visibilitymap_set`).
//!
//! The flag of the page and its bits in the map are set by one record, and only after this session has seen all tuples of
//! the page under the lock under which it sets them. So no bit depends on what another session says. The flag of the page without
//! the bits is allowed, but not the bits without the flag: no change would clear them.

use trunkline_format::heap_tuple::{heap_rows, is_all_visible};
use trunkline_format::page::{LinePointerFlags, is_new, line_pointers};
use trunkline_format::transam::precedes;
use trunkline_format::visibility_map::{self, VisibilityBits};
use trunkline_format::wal::resource_manager::heap2_operation::VISIBLE;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BlockNo, PageBytes};

use super::error::HeapWriteError;
use super::freeze_plan::has_xmax;
use super::session::{HeapPin, HeapSession, cancelled};
use super::tuple_states::{TupleState, TupleStates, Unknown, inserter, xids_of};
use super::writer::HeapWriter;
use crate::log_writer::Room;
use crate::page_change::ChangedPage;
use crate::pool::PageMut;

/// What can be said about all tuples of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageVisibility {
    all_frozen: bool,
    /// The newest XID that has inserted a tuple, or 0: older snapshots may not see the whole page.
    newest: u32,
}

impl HeapWriter {
    /// Marks a page as all-visible if it is, and as all-frozen if it is that too. All transactions before `horizon` have
    /// ended, and every snapshot sees what they have inserted. Returns the bits that the page has in the map now.
    ///
    /// # Errors
    /// [`HeapWriteError`]; no bit was set.
    pub fn set_visible(
        &mut self,
        session: &mut HeapSession<'_>,
        block: BlockNo,
        horizon: u32,
    ) -> Result<VisibilityBits, HeapWriteError> {
        let mut states = TupleStates::new(horizon);
        loop {
            let pin = session.pin_with_map(&self.relation, block)?;
            let xids = {
                let page = session.backend.read_lock(pin.pin.page()).map_err(cancelled)?;
                xids_of(&page)
            };
            states.read(&xids, session)?;
            if !self.relation.storage().checksums() {
                // The change doesn't move the page's LSN, so a write of the page waits for no commit. The commits that
                // were just seen must not be lost any more.
                session.changer.flush_all(session.backend.session())?;
            }
            let mut room = session.room(&[&pin], 0)?;
            let Some(mut page) = session.lock(&pin)? else { continue };
            match visibility(&page, &states) {
                Ok(Some(found)) => {
                    return self.log_visible(session, (&mut room, &mut page), &pin, found);
                }
                Ok(None) => return Ok(VisibilityBits::default()),
                Err(Unknown::Status) => {}
                Err(unknown) => return Err(self.refusal(block, unknown)),
            }
        }
    }

    fn log_visible<'p>(
        &self,
        session: &mut HeapSession<'_>,
        (room, page): (&mut Room, &mut PageMut<'p>),
        pin: &'p HeapPin,
        found: PageVisibility,
    ) -> Result<VisibilityBits, HeapWriteError> {
        let bits = VisibilityBits { all_visible: true, all_frozen: found.all_frozen };
        let Some(mut map) = session.lock_own_map(&self.relation, pin)? else {
            unreachable!("the map page was pinned")
        };
        let before = visibility_map::bits(&map.page, pin.block);
        if is_all_visible(page) && before.all_visible && (before.all_frozen || !bits.all_frozen) {
            return Ok(before);
        }
        let main: &[&[u8]] = &[&found.newest.to_le_bytes(), &[bits.to_bits()]];
        let operation = NewRecord::plain(number::HEAP2, VISIBLE, session.xid, main);
        // Without checksums, the page keeps its LSN, and a torn write of it does no harm.
        let has_checksums = self.relation.storage().checksums();
        let pages = &mut [
            ChangedPage {
                relation: &map.relation,
                block: map.block,
                page: &mut map.page,
                image: ImageMode::IfNeeded,
                data: &[],
            },
            ChangedPage {
                relation: &self.relation,
                block: pin.block,
                page,
                image: if has_checksums { ImageMode::IfNeeded } else { ImageMode::Never },
                data: &[],
            },
        ];
        session.changer.change(room, &operation, pages)?;
        Ok(bits)
    }
}

/// Whether every snapshot sees all tuples of a page. `None` if not (`heap_page_is_all_visible`).
fn visibility(page: &PageBytes, states: &TupleStates) -> Result<Option<PageVisibility>, Unknown> {
    let mut found = PageVisibility { all_frozen: true, newest: 0 };
    let is_dead = |flags| flags == LinePointerFlags::Dead;
    if is_new(page) || line_pointers(page).any(|(_, pointer)| is_dead(pointer.flags)) {
        return Ok(None);
    }
    for tuple in heap_rows(page) {
        let tuple = tuple.map_err(|error| Unknown::Damaged { item: error.item })?;
        if states.of(&tuple)? != TupleState::Live || states.is_deleting(&tuple)? {
            return Ok(None);
        }
        if let Some(xmin) = inserter(&tuple) {
            if !precedes(xmin, states.horizon()) {
                return Ok(None);
            }
            found.all_frozen = false;
            found.newest = if precedes(found.newest, xmin) { xmin } else { found.newest };
        }
        found.all_frozen &= !has_xmax(&tuple);
    }
    Ok(Some(found))
}
