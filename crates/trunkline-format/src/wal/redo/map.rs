//! **Visibility map pages** of heap records.
//!
//! ```text
//!   block reference   main: block 70 000 ──▶ DELETE, flag: map bits cleared
//!   changes also      vm:   block 2, bits of 70 000          whether the record names it or not
//! ```
//! Records that make a page no longer all-visible clear its bits in the map. Since August 2026 (17.11,
//! 18.6, and 19) they name the map page if one of the bits was set. Older minor releases never name
//! it; redo derives it from the heap block. So does ours, by what a record names and not by the release that
//! has written it: [`derived_pages`] lists map pages that are changed without a block reference.
//!
//! Such a page is changed without looking at its position, and keeps it. That can only clear a bit
//! that a later record sets again, or lose it for good, which is safe: a bit that isn't set says
//! nothing.
//!
//! A truncation cuts the map off as well. On the last map page that stays, it clears the bits of all
//! blocks that are gone; that page is derived, too.
//!
//! Mirrors `heapam_xlog.c` and `visibilitymap.c` in PostgreSQL's `access/heap`.

use crate::control::PgVersion;
use crate::ids::{BLOCK_SIZE, BlockNo, Fork, PageBytes};
use crate::little_endian::read_at;
use crate::page::is_new;
use crate::page::set_lsn;
use crate::visibility_map::{BLOCKS_PER_PAGE, bit_place, map_block};
use crate::wal::block_ref::BlockRef;
use crate::wal::effect::Truncation;
use crate::wal::heap_flags::{
    ALL_FROZEN_CLEARED, INSERT_ALL_FROZEN_SET, NEW_VISIBLE_CLEARED, VISIBLE_CLEARED,
};
use crate::wal::locator::RelFileLocator;
use crate::wal::record::Record;
use crate::wal::resource_manager::{heap_operation, heap2_operation, number};

use super::change::{Change, Redone};
use super::error::RedoError;
use super::heap_page::operation_of;
use super::page_editor::initialise;
use super::prune_header::{ALL_BITS, ALL_FROZEN, PruneHeader};

/// A page that a record changes without naming it. It belongs to the visibility map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DerivedPage {
    /// The relation.
    pub relation: RelFileLocator,
    /// The fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNo,
}

impl DerivedPage {
    fn is_named_by(&self, block: &BlockRef<'_>) -> bool {
        (block.relation, block.fork, block.block) == (self.relation, self.fork, self.block)
    }
}

/// What a record does to the bits of a heap block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BitChange {
    relation: RelFileLocator,
    block: BlockNo,
    set: u8,
    clear: u8,
}

impl BitChange {
    /// The page that has the bits.
    fn page(&self) -> DerivedPage {
        DerivedPage { relation: self.relation, fork: Fork::Vm, block: map_block(self.block) }
    }
}

/// The pages that a record changes without naming them, at most two. None of them needs a base: a
/// page that doesn't exist has no bit set.
pub fn derived_pages(
    record: &Record<'_>,
    version: PgVersion,
) -> impl Iterator<Item = DerivedPage> + use<> {
    // At the border of two map pages, the later one is removed, and the other one stays as it is.
    let truncated = map_truncation(record).filter(|cut| cut.blocks % BLOCKS_PER_PAGE != 0);
    let truncated = truncated.map(|cut| DerivedPage {
        relation: cut.relation,
        fork: Fork::Vm,
        block: map_block(cut.blocks),
    });
    let named = |page: &DerivedPage| record.blocks().iter().any(|block| page.is_named_by(block));
    let [first, second] = bit_changes(record, version).map(|change| {
        // A record that sets bits names the map page, or there is nothing to set.
        change
            .filter(|change| change.set == 0)
            .map(|change| change.page())
            .filter(|page| !named(page))
    });
    let second = second.filter(|second| Some(*second) != first);
    [truncated, first, second].into_iter().flatten()
}

/// The heap blocks whose bits in the map a record clears, whether it names the map page or not.
pub fn cleared_map_bits(
    record: &Record<'_>,
    version: PgVersion,
) -> impl Iterator<Item = BlockNo> + use<> {
    let changes = bit_changes(record, version).into_iter().flatten();
    changes.filter(|change| change.set == 0).map(|change| change.block)
}

/// Applies a record to a page that [`derived_pages`] has returned.
pub fn redo_derived(page: &mut PageBytes, change: &Change<'_>, map: BlockNo) -> Redone {
    if is_new(page) {
        initialise(page, BLOCK_SIZE as u16);
    }
    for bits in bit_changes(change.record, change.version).into_iter().flatten() {
        apply(page, map, bits);
    }
    if let Some(cut) = map_truncation(change.record).filter(|cut| map_block(cut.blocks) == map) {
        clear_from(page, cut.blocks);
    }
    Redone::Applied
}

/// The truncation of a visibility map.
fn map_truncation(record: &Record<'_>) -> Option<Truncation> {
    Truncation::of(record).filter(|cut| cut.visibility_map)
}

/// Clears the bits of `block` and all later ones on its map page.
fn clear_from(page: &mut PageBytes, block: BlockNo) {
    let (at, shift) = bit_place(block);
    if let Some([byte, rest @ ..]) = page.get_mut(at..) {
        *byte &= !(u8::MAX << shift);
        rest.fill(0);
    }
}

/// Applies a heap record to a map page that it names. The page need not exist.
pub(super) fn redo(
    page: &mut PageBytes,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<Redone, RedoError> {
    let mut is_changed = change.version >= PgVersion::V19;
    let found = bit_changes(change.record, change.version).into_iter().flatten();
    let mut found = found.filter(|bits| bits.page().is_named_by(block)).peekable();
    if found.peek().is_none() {
        return Err(RedoError::UnexpectedBlock { id: block.id });
    }
    if is_new(page) {
        initialise(page, BLOCK_SIZE as u16);
        is_changed = true;
    }
    for bits in found {
        is_changed |= apply(page, block.block, bits);
    }
    // A server doesn't touch the page if the bits are as they should be.
    if is_changed {
        set_lsn(page, change.end);
    }
    Ok(Redone::Applied)
}

/// Changes the bits of a block, if they are on this page. Returns whether they were different.
fn apply(page: &mut PageBytes, map: BlockNo, bits: BitChange) -> bool {
    if map_block(bits.block) != map {
        return false;
    }
    let (at, shift) = bit_place(bits.block);
    let Some(byte) = page.get_mut(at) else { return false };
    let before = *byte;
    *byte = before & !(bits.clear << shift) | bits.set << shift;
    *byte != before
}

/// What a record says about the bits of heap blocks.
fn bit_changes(record: &Record<'_>, version: PgVersion) -> [Option<BitChange>; 2] {
    let main = record.main_data();
    let flags = |at: usize| read_at::<u8>(main, at).unwrap_or_default();
    let heap_block = |id: u8| record.block(id).filter(|block| block.fork == Fork::Main);
    let change = |id: u8, set: u8, clear: u8| {
        let BlockRef { relation, block, .. } = *heap_block(id)?;
        (set | clear != 0).then_some(BitChange { relation, block, set, clear })
    };
    let cleared =
        |id: u8, is_cleared: bool, bits: u8| change(id, 0, if is_cleared { bits } else { 0 });
    let inserted = |flags: u8| cleared(0, flags & VISIBLE_CLEARED != 0, ALL_BITS);
    match (record.header().manager, operation_of(record.header())) {
        (number::HEAP, heap_operation::INSERT) => [inserted(flags(2)), None],
        (number::HEAP, heap_operation::DELETE) => {
            [cleared(0, flags(7) & VISIBLE_CLEARED != 0, ALL_BITS), None]
        }
        (number::HEAP, heap_operation::UPDATE | heap_operation::HOT_UPDATE) => {
            let old = if heap_block(1).is_some() { 1 } else { 0 };
            let has = |flag: u8| flags(7) & flag != 0;
            [
                cleared(old, has(VISIBLE_CLEARED), ALL_BITS),
                cleared(0, has(NEW_VISIBLE_CLEARED), ALL_BITS),
            ]
        }
        (number::HEAP, heap_operation::LOCK) | (number::HEAP2, heap2_operation::LOCK_UPDATED) => {
            [cleared(0, flags(7) & ALL_FROZEN_CLEARED != 0, ALL_FROZEN), None]
        }
        (number::HEAP2, heap2_operation::MULTI_INSERT) => {
            // Before 19, another record sets the bits. If both flags are set, the bits are cleared, which is always safe.
            let is_set = version >= PgVersion::V19 && flags(0) & INSERT_ALL_FROZEN_SET != 0;
            let set = if is_set { change(0, ALL_BITS, 0) } else { None };
            [inserted(flags(0)).or(set), None]
        }
        (number::HEAP2, heap2_operation::VISIBLE) if version < PgVersion::V19 => {
            [change(1, flags(4) & ALL_BITS, 0), None]
        }
        (
            number::HEAP2,
            heap2_operation::PRUNE | heap2_operation::VACUUM | heap2_operation::FREEZE_PAGE,
        ) => {
            let bits = PruneHeader::parse(record, version).map(PruneHeader::map_bits);
            [change(0, bits.and_then(Result::ok).unwrap_or(0), 0), None]
        }
        _ => [None, None],
    }
}
