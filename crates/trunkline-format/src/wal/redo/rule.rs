//! The general rule: image, initialisation, position, and then the manager's own rule.

use crate::ids::{Fork, Lsn, PageBytes};
use crate::page::{PageHeader, is_new, set_lsn};
use crate::wal::block_ref::BlockRef;
use crate::wal::image::{ImageError, PageImage};
use crate::wal::resource_manager::number;
use crate::wal::resource_manager::xlog_operation::{FPI, FPI_FOR_HINT};

use super::change::{Change, Redone};
use super::error::RedoError;
use super::{btree, heap, heap_page, map, prune, sequence};

/// How the records of one manager change a page.
type Rule = fn(&mut PageBytes, &Change<'_>, &BlockRef<'_>) -> Result<Redone, RedoError>;

/// Whether redo needs to know the page before the record. Otherwise the record makes it from
/// scratch, and everything before it can be forgotten.
pub fn requires_base(block: &BlockRef<'_>) -> bool {
    !block.will_init && !block.image.is_some_and(|image| image.applies())
}

/// Applies a record to the page that block reference `id` names. `page` contains the page as it was,
/// zeros if it doesn't exist, or anything if [`requires_base`] is false.
///
/// # Errors
///
/// [`RedoError`] if the record doesn't fit to the page, or one of the two is damaged. The contents of
/// the page are undefined then.
pub fn redo(page: &mut PageBytes, change: &Change<'_>, id: u8) -> Result<Redone, RedoError> {
    let block = change.record.block(id).ok_or(RedoError::NoBlock { id })?;
    if let Some(image) = block.image.filter(|image| image.applies()) {
        restore(page, &image, change.end)?;
        return Ok(Redone::Restored);
    }
    let manager = change.record.header().manager;
    if matches!(manager, number::HEAP | number::HEAP2) {
        heap_page::check(change, block)?;
    }
    let rule: Rule = match (manager, block.fork) {
        (number::XLOG, _) if block.will_init => return Err(RedoError::Initialisation { id }),
        (number::XLOG, _) => return without_image(change, id),
        (number::HEAP | number::HEAP2, Fork::Vm) => map::redo,
        (number::HEAP, _) => heap::redo,
        (number::HEAP2, _) => prune::redo,
        (number::BTREE, _) => btree::redo,
        (number::SEQUENCE, _) => sequence::redo,
        _ => return Ok(change.unsupported()),
    };
    if block.will_init {
        page.fill(0);
        return rule(page, change, block);
    }
    // Pages of the visibility map are made when a bit is set first.
    if is_new(page) && block.fork != Fork::Vm {
        return Ok(Redone::MissingBase);
    }
    if PageHeader::parse(page).lsn >= change.end {
        return Ok(Redone::AlreadyNewer);
    }
    rule(page, change, block)
}

/// Restores the image of a record that ends at `end`, even one that is only there to compare. The page
/// is then the server's own after the record.
///
/// # Errors
///
/// The image doesn't decompress. The contents of the page are undefined then.
pub fn restore(page: &mut PageBytes, image: &PageImage<'_>, end: Lsn) -> Result<(), ImageError> {
    image.restore(page)?;
    // A page that was logged before it was initialised stays all zeros.
    if !is_new(page) {
        set_lsn(page, end);
    }
    Ok(())
}

/// XLOG records are nothing but images. A hint's record may lack them, if the page was changed since.
fn without_image(change: &Change<'_>, id: u8) -> Result<Redone, RedoError> {
    match change.record.header().operation() {
        FPI_FOR_HINT => Ok(Redone::Unchanged),
        FPI => Err(RedoError::NoImage { id }),
        _ => Ok(change.unsupported()),
    }
}
