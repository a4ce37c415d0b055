//! **Heap pages** as the records of Heap and Heap2 see them: the operations, how a page is opened, and
//! which flags of a record say that its rows have become, or are no longer, visible to all.

use crate::control::PgVersion;
use crate::ids::{BLOCK_SIZE, PageBytes};
use crate::page::FLAG_ALL_VISIBLE;
use crate::wal::block_ref::BlockRef;
use crate::wal::fields::Fields;
use crate::wal::heap_flags::{INSERT_ALL_FROZEN_SET, VISIBLE_CLEARED};
use crate::wal::record::RecordHeader;
use crate::wal::resource_manager::heap_operation::{HOT_UPDATE, INITIALISE, INSERT, UPDATE};
use crate::wal::resource_manager::heap2_operation::MULTI_INSERT;
use crate::wal::resource_manager::number;

use super::change::Change;
use super::error::RedoError;
use super::page_editor::PageEditor;

/// The special space of a heap page is empty.
pub(super) const SPECIAL: u16 = BLOCK_SIZE as u16;

/// The operation of a Heap or Heap2 record, without [`INITIALISE`].
pub(super) fn operation_of(header: &RecordHeader) -> u8 {
    header.operation() & !INITIALISE
}

/// Opens the page, or makes it.
pub(super) fn open<'p>(
    page: &'p mut PageBytes,
    block: &BlockRef<'_>,
) -> Result<PageEditor<'p>, RedoError> {
    match block.will_init {
        true => Ok(PageEditor::initialise(page, SPECIAL)),
        false => PageEditor::open(page, SPECIAL),
    }
}

/// Checks that apply to every heap record, also on map pages: the init flag must match the operation, and the flags must
/// not contradict each other.
pub(super) fn check(change: &Change<'_>, block: &BlockRef<'_>) -> Result<(), RedoError> {
    let header = change.record.header();
    let operation = operation_of(header);
    let is_insert = (header.manager, operation) == (number::HEAP, INSERT);
    let is_multi_insert = (header.manager, operation) == (number::HEAP2, MULTI_INSERT);
    let is_update = header.manager == number::HEAP && matches!(operation, UPDATE | HOT_UPDATE);
    let has_flag = header.operation() & INITIALISE != 0;
    let may_have_flag = is_insert || is_multi_insert || is_update;
    if (has_flag && !may_have_flag) || (has_flag && block.id == 0) != block.will_init {
        return Err(RedoError::Initialisation { id: block.id });
    }
    let flags = match (is_insert, is_multi_insert) {
        (false, false) => return Ok(()),
        (true, _) => change.main().skip_to(2).u8(),
        (_, true) => change.main().u8(),
    };
    let flags = flags.ok_or(RedoError::Short)?;
    // Since 19, the flag sets bits in the map, too. A server sets it only in a multi-insert.
    let sets_visible = flags & INSERT_ALL_FROZEN_SET != 0;
    let may_set = is_multi_insert || change.version < PgVersion::V19;
    if sets_visible && (!may_set || flags & VISIBLE_CLEARED != 0) {
        return Err(RedoError::Flags { flags: flags.into() });
    }
    Ok(())
}

/// Clears the flag of the page if `is_cleared`, which a record says.
pub(super) fn clear_visible(page: &mut PageEditor<'_>, is_cleared: bool) {
    if is_cleared {
        page.change_flags(0, FLAG_ALL_VISIBLE);
    }
}

/// The same for inserts, which may also set the flag.
pub(super) fn change_visible(page: &mut PageEditor<'_>, insert_flags: u8) {
    clear_visible(page, insert_flags & VISIBLE_CLEARED != 0);
    if insert_flags & INSERT_ALL_FROZEN_SET != 0 {
        page.change_flags(FLAG_ALL_VISIBLE, 0);
    }
}

/// What the main data of delete, update, lock and lock of an updated version begins with.
pub(super) struct RowLock {
    pub(super) xmax: u32,
    pub(super) item: u16,
    pub(super) info: u8,
    pub(super) flags: u8,
}

impl RowLock {
    pub(super) fn take(fields: &mut Fields<'_>) -> Option<Self> {
        let (xmax, item) = (fields.u32()?, fields.u16()?);
        Some(Self { xmax, item, info: fields.u8()?, flags: fields.u8()? })
    }

    pub(super) fn of(change: &Change<'_>) -> Result<Self, RedoError> {
        Self::take(&mut change.main()).ok_or(RedoError::Short)
    }
}
