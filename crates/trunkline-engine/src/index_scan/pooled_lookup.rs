//! Looks up a key that leads to one row, without a scan.
//!
//! Scans have streams, which pays if many pages must be read. To set them up takes longer than finding
//! one row. So a caller that looks up single rows tries this first. It gives up as soon as anything is
//! locked, damaged or unusual, and the scan that follows waits, or reports what is wrong.
//!
//! A page that is missing is read if the caller's thread may block. Each page of such a look-up says which
//! one is next, so there is nothing to read ahead.

use trunkline_format::btree::{BtreePage, Cut, KeyRanges, LeafEnd, Meta, Step};
use trunkline_format::{BlockNo, PageBytes};

use super::scan::IndexedTable;
use crate::heap::{ChainRoot, HeapPage, pooled_rows};
use crate::pool::Backend;
use crate::storage::Relation;

/// More pages than this are left to a scan, which notices an endless loop.
const PAGES_MAX: usize = 32;

/// What a look-up does about a page that isn't in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingPage {
    /// It gives up, so it never waits.
    GiveUp,
    /// It reads the page, and the thread waits for that.
    Read,
}

/// Passes the rows in `ranges` to `take`, or `None` if there are none. Returns `None`, and does nothing,
/// unless all of the following is true: the entries are on one leaf and lead to one page of the table,
/// these pages and those above them are in the pool or can be read, no page is locked exclusively or
/// damaged, and the state of the rows' transactions is cached.
pub fn look_up_row<R>(
    backend: &mut Backend,
    table: &IndexedTable,
    ranges: &KeyRanges,
    missing: MissingPage,
    take: impl FnOnce(Option<HeapPage<'_>>) -> R,
) -> Option<R> {
    let index = table.index.relation();
    let meta = read(backend, (index, missing), 0, |page| Meta::parse(page).ok())?;
    let (mut block, mut level) = (meta.fast_root, meta.fast_level);
    let from = ranges.start();
    let mut found = Entries::default();
    for _ in 0..PAGES_MAX {
        // An empty index has no root.
        if block == 0 {
            return None;
        }
        let step = read(backend, (index, missing), block, |bytes| {
            let page = BtreePage::parse(bytes).ok()?;
            if page.is_ignored() || page.level() != level {
                return None;
            }
            let step = ranges.step(&page, &from).ok()?;
            match step {
                Step::Here(_) if level == 0 => {
                    found.add(table, ranges, &page, &from, &meta, block)?
                }
                Step::Here(_) => return None,
                _ => {}
            }
            Some(step)
        })?;
        match step {
            Step::Right(right) => block = right,
            Step::Down(child) => (block, level) = (child, level.checked_sub(1)?),
            Step::Here(_) => {
                let Some(block) = found.block else { return Some(take(None)) };
                let _pin = match missing {
                    MissingPage::GiveUp => None,
                    // While it is pinned, it stays in the pool.
                    MissingPage::Read => Some(backend.read(&table.rows, block).ok()?),
                };
                return rows(backend, table, block, &found.roots, take);
            }
        }
    }
    None
}

/// Matching entries, all of one page of the table.
#[derive(Default)]
struct Entries {
    block: Option<BlockNo>,
    roots: Vec<ChainRoot>,
}

impl Entries {
    /// Adds those of a leaf. `None` if there may be others, or if something is wrong with them.
    fn add(
        &mut self,
        table: &IndexedTable,
        ranges: &KeyRanges,
        page: &BtreePage<'_>,
        from: &Cut,
        meta: &Meta,
        leaf: BlockNo,
    ) -> Option<()> {
        let mut fits = true;
        let (layout, mut last) = (table.index.layout(), Vec::new());
        let end = ranges.scan_leaf(layout, page, from, meta.orders_rows(), &mut last, |entry| {
            for tid in entry.rows() {
                fits &= tid.item != 0
                    && tid.block < table.sizes.table_blocks
                    && *self.block.get_or_insert(tid.block) == tid.block;
                let place = (leaf, entry.item());
                self.roots.push(ChainRoot { item: tid.item, entry: 0, place });
            }
        });
        (fits && end.ok()? == LeafEnd::Ended).then_some(())
    }
}

/// Passes the rows of a page that is in the pool to `take`.
fn rows<R>(
    backend: &mut Backend,
    table: &IndexedTable,
    block: BlockNo,
    roots: &[ChainRoot],
    take: impl FnOnce(Option<HeapPage<'_>>) -> R,
) -> Option<R> {
    let (relations, wanted) = ((&table.rows, table.index.relation()), (block, roots));
    let take = |page: HeapPage<'_>| take(Some(page));
    pooled_rows(backend, relations, &table.transactions, wanted, take)
}

/// Passes a page of the index to `use_page`, if it is in the pool, or may be read, and can be locked at
/// once.
fn read<R>(
    backend: &mut Backend,
    (index, missing): (&Relation, MissingPage),
    block: BlockNo,
    use_page: impl FnOnce(&PageBytes) -> Option<R>,
) -> Option<R> {
    let pin = match missing {
        MissingPage::GiveUp => backend.find(index, block)?,
        MissingPage::Read => backend.read(index, block).ok()?,
    };
    let page = pin.page().try_read()?;
    use_page(&page)
}
