//! **Heap2**: prune, vacuum, freeze, `COPY`, and the visibility map.
//!
//! ```text
//!   17 to 19, data of block 0, each part only if its flag is set
//!     plans: how rows are frozen │ redirected: (from, to) … │ dead … │ unused … │ rows of the plans
//!   15, 16: one record each
//!     PRUNE: redirected, dead, unused │ VACUUM: unused │ FREEZE_PAGE: rows or plans
//! ```
//! Line pointers are changed before the page is compacted, since compaction drops items that no line
//! pointer needs any more; rows are frozen last. Only a record that has taken the page's cleanup lock
//! moves items. The others just cut unused line pointers from the end of the array.
//!
//! Mirrors `xl_heap_prune`, `xlhp_freeze_plan` and `xl_heap_multi_insert` in PostgreSQL's
//! `access/heapam_xlog.h`.

use crate::control::PgVersion;
use crate::heap_tuple::FROZEN_XID;
use crate::ids::{PageBytes, Tid};
use crate::page::{FLAG_ALL_VISIBLE, LinePointer, LinePointerFlags};
use crate::wal::block_ref::BlockRef;
use crate::wal::fields::Fields;

use super::change::{Change, Redone, data_of};
use super::compaction::{change_used, numbers, pairs, remove_dead, repair, set_unused, truncate};
use super::error::RedoError;
use super::heap_page::{RowLock, change_visible, open, operation_of};
use super::page_editor::PageEditor;
use super::prune_header::PruneHeader;
use super::row::{NewRow, Reused, Row};
use crate::wal::heap_flags::prune_flags::{
    CLEANUP_LOCK, HAS_DEAD, HAS_PLANS, HAS_REDIRECTED, HAS_UNUSED,
};
use crate::wal::resource_manager::heap_operation::INITIALISE;
use crate::wal::resource_manager::heap2_operation::{
    LOCK_UPDATED, MULTI_INSERT, NEW_CID, PRUNE, REWRITE, VACUUM, VISIBLE,
};

/// Size of `xlhp_freeze_plan`, and of `xl_heap_freeze_tuple` in 15.
const PLAN_SIZE: usize = 12;

/// `frzflags`: what becomes of the transaction of an old `VACUUM FULL`.
const FREEZE_MOVED: u8 = 0x02;
const INVALID_MOVED: u8 = 0x04;

/// Applies a Heap2 record to a heap page.
pub(super) fn redo(
    page: &mut PageBytes,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<Redone, RedoError> {
    let operation = operation_of(change.record.header());
    let is_visible = operation == VISIBLE;
    if matches!(operation, REWRITE | NEW_CID) {
        return Ok(Redone::Unchanged);
    }
    if is_visible && change.version >= PgVersion::V19 {
        return Ok(change.unsupported());
    }
    if block.id != u8::from(is_visible) {
        return Err(RedoError::UnexpectedBlock { id: block.id });
    }
    let mut page = open(page, block)?;
    let moves_position = match operation {
        VISIBLE => {
            page.change_flags(FLAG_ALL_VISIBLE, 0);
            change.hints_are_logged
        }
        MULTI_INSERT => multi_insert(&mut page, change, block).map(|()| true)?,
        LOCK_UPDATED => lock_updated(&mut page, change).map(|()| true)?,
        _ if change.version >= PgVersion::V17 => prune(&mut page, change, block)?,
        PRUNE => prune_before_17(&mut page, change, block).map(|()| true)?,
        VACUUM => vacuum_before_17(&mut page, change, block).map(|()| true)?,
        _ => freeze_before_17(&mut page, change, block).map(|()| true)?,
    };
    if moves_position {
        page.set_lsn(change.end);
    }
    Ok(if block.will_init { Redone::Initialised } else { Redone::Applied })
}

fn multi_insert(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let mut main = change.main();
    let flags = main.u8().ok_or(RedoError::Short)?;
    main.align(2);
    let count = main.u16().ok_or(RedoError::Short)?;
    let is_first = change.record.header().operation() & INITIALISE != 0;
    let mut fields = Fields::of(data_of(block)?);
    for number in 1..=count {
        let item = if is_first { number } else { main.u16().ok_or(RedoError::Short)? };
        fields.align(2);
        let length = fields.u16().ok_or(RedoError::Short)?;
        let row = NewRow::take(&mut fields, length.into()).ok_or(RedoError::Short)?;
        let own = Tid { block: block.block, item };
        row.add(page, own, (change.record.header().xid, 0), Reused::default())?;
    }
    match fields.rest().len() {
        0 => {}
        found => return Err(RedoError::Long { found }),
    }
    change_visible(page, flags);
    Ok(())
}

/// Locks a version that was updated already, so its link and command number stay.
fn lock_updated(page: &mut PageEditor<'_>, change: &Change<'_>) -> Result<(), RedoError> {
    let RowLock { xmax, item, info, .. } = RowLock::of(change)?;
    let mut row = Row::at(page, item)?;
    row.set_info_bits(info);
    row.set_xmax(xmax);
    Ok(())
}

/// Changes line pointers, under the cleanup lock. `redirected` are pairs.
fn change_line_pointers(
    page: &mut PageEditor<'_>,
    [redirected, dead, unused]: [&[u8]; 3],
) -> Result<(), RedoError> {
    for (item, to) in pairs(redirected) {
        let flags = LinePointerFlags::Redirect;
        change_used(page, item, LinePointer { offset: to, flags, length: 0 })?;
    }
    for item in numbers(dead) {
        let flags = LinePointerFlags::Dead;
        change_used(page, item, LinePointer { offset: 0, flags, length: 0 })?;
    }
    set_unused(page, unused)?;
    // A redirect must still point to a normal tuple after the other lists are applied.
    pairs(redirected).try_for_each(|(_, to)| page.item(to).map(|_| ()))
}

/// 17 and later. Returns whether the position of the page moves.
fn prune(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<bool, RedoError> {
    let header = PruneHeader::parse(change.record, change.version).ok_or(RedoError::Short)?;
    let parts = PruneParts::parse(header, block.data.unwrap_or_default());
    let parts = parts.ok_or(RedoError::Short)?;
    let PruneParts { plans, redirected, dead, unused, frozen } = parts;
    let changes_pointers = !(redirected.is_empty() && dead.is_empty() && unused.is_empty());
    if changes_pointers {
        if header.has(CLEANUP_LOCK) {
            change_line_pointers(page, [redirected, dead, unused])?;
            repair(page)?;
        } else {
            if !(redirected.is_empty() && dead.is_empty()) {
                return Err(RedoError::Flags { flags: header.flags });
            }
            remove_dead(page, unused)?;
            truncate(page)?;
        }
    }
    freeze(page, plans, frozen)?;
    if header.map_bits()? != 0 {
        page.change_flags(FLAG_ALL_VISIBLE, 0);
    }
    Ok(changes_pointers || !plans.is_empty() || change.hints_are_logged)
}

/// The lists in the data of a prune record since 17.
struct PruneParts<'b> {
    plans: &'b [u8],
    redirected: &'b [u8],
    dead: &'b [u8],
    unused: &'b [u8],
    /// The rows of the plans, one plan after the other.
    frozen: &'b [u8],
}

impl<'b> PruneParts<'b> {
    fn parse(header: PruneHeader, data: &'b [u8]) -> Option<Self> {
        let mut fields = Fields::of(data);
        let mut list = |flag: u16, element: usize| -> Option<&'b [u8]> {
            if !header.has(flag) {
                return Some(&[]);
            }
            let count = usize::from(fields.u16()?);
            if flag == HAS_PLANS {
                fields.align(4);
            }
            fields.bytes(count * element)
        };
        let plans = list(HAS_PLANS, PLAN_SIZE)?;
        let redirected = list(HAS_REDIRECTED, 4)?;
        let (dead, unused) = (list(HAS_DEAD, 2)?, list(HAS_UNUSED, 2)?);
        Some(Self { plans, redirected, dead, unused, frozen: fields.rest() })
    }
}

/// How rows are frozen.
struct Freeze {
    xmax: u32,
    infomask2: u16,
    infomask: u16,
    flags: u8,
}

impl Freeze {
    fn apply(&self, page: &mut PageEditor<'_>, item: u16) -> Result<(), RedoError> {
        let mut row = Row::at(page, item)?;
        row.set_xmax(self.xmax);
        if self.flags & FREEZE_MOVED != 0 {
            row.set_field3(FROZEN_XID);
        }
        if self.flags & INVALID_MOVED != 0 {
            row.set_field3(0);
        }
        row.set_masks(self.infomask2, self.infomask);
        Ok(())
    }
}

/// Freezes rows by plans, each for some of the rows.
fn freeze(page: &mut PageEditor<'_>, plans: &[u8], rows: &[u8]) -> Result<(), RedoError> {
    let mut rows = Fields::of(rows);
    for plan in plans.as_chunks::<PLAN_SIZE>().0 {
        let (plan, count) = freeze_plan(plan).ok_or(RedoError::Short)?;
        for _ in 0..count {
            plan.apply(page, rows.u16().ok_or(RedoError::Short)?)?;
        }
    }
    match rows.rest().len() {
        0 => Ok(()),
        found => Err(RedoError::Long { found }),
    }
}

fn freeze_plan(plan: &[u8]) -> Option<(Freeze, u16)> {
    let mut fields = Fields::of(plan);
    let (xmax, infomask2, infomask) = (fields.u32()?, fields.u16()?, fields.u16()?);
    let flags = fields.u8()?;
    fields.align(2);
    Some((Freeze { xmax, infomask2, infomask, flags }, fields.u16()?))
}

fn prune_before_17(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let mut main = change.main().skip_to(4);
    let redirected = main.u16().ok_or(RedoError::Short)?;
    let dead = main.u16().ok_or(RedoError::Short)?;
    let mut fields = Fields::of(block.data.unwrap_or_default());
    let redirected = fields.bytes(usize::from(redirected) * 4).ok_or(RedoError::Short)?;
    let dead = fields.bytes(usize::from(dead) * 2).ok_or(RedoError::Short)?;
    change_line_pointers(page, [redirected, dead, fields.rest()])?;
    repair(page)
}

fn vacuum_before_17(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let count = change.first_number()?;
    let unused = Fields::of(data_of(block)?).bytes(usize::from(count) * 2);
    remove_dead(page, unused.ok_or(RedoError::Short)?)?;
    truncate(page)
}

fn freeze_before_17(
    page: &mut PageEditor<'_>,
    change: &Change<'_>,
    block: &BlockRef<'_>,
) -> Result<(), RedoError> {
    let count = change.main().skip_to(4).u16().ok_or(RedoError::Short)?;
    let mut fields = Fields::of(data_of(block)?);
    let list = fields.bytes(usize::from(count) * PLAN_SIZE).ok_or(RedoError::Short)?;
    if change.version >= PgVersion::V16 {
        return freeze(page, list, fields.rest());
    }
    for row in list.as_chunks::<PLAN_SIZE>().0 {
        let (row, item) = freeze_row(row).ok_or(RedoError::Short)?;
        row.apply(page, item)?;
    }
    Ok(())
}

/// `xl_heap_freeze_tuple` of 15.
fn freeze_row(row: &[u8]) -> Option<(Freeze, u16)> {
    let mut fields = Fields::of(row);
    let (xmax, item) = (fields.u32()?, fields.u16()?);
    let (infomask2, infomask, flags) = (fields.u16()?, fields.u16()?, fields.u8()?);
    Some((Freeze { xmax, infomask2, infomask, flags }, item))
}
