//! **Sequences**: a record contains the whole page, that is, its only row.
//!
//! Mirrors `seq_redo` of PostgreSQL.

use crate::ids::{BLOCK_SIZE, PageBytes};
use crate::sequence;
use crate::wal::block_ref::BlockRef;
use crate::wal::locator::RelFileLocator;

use super::change::{Change, Redone};
use super::error::RedoError;
use super::page_editor::{PageEditor, Slot};

/// The special space contains only the magic number.
const SPECIAL: u16 = BLOCK_SIZE as u16 - 8;

/// Applies a Sequence record.
pub(super) fn redo(
    page: &mut PageBytes,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<Redone, RedoError> {
    if change.record.header().operation() != 0 {
        return Ok(change.unsupported());
    }
    if block.id != 0 {
        return Err(RedoError::UnexpectedBlock { id: block.id });
    }
    if !block.will_init {
        return Err(RedoError::Initialisation { id: block.id });
    }
    let row = change.main().skip_to(RelFileLocator::SIZE).rest();
    let mut page = PageEditor::initialise(page, SPECIAL);
    page.put(usize::from(SPECIAL), &sequence::MAGIC.to_le_bytes());
    let at = page.add(1, row.len(), Slot::Free)?;
    page.put(at, row);
    page.set_lsn(change.end);
    Ok(Redone::Initialised)
}
