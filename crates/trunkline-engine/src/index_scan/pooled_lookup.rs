//! Looks up a key for which everything is in the pool already.
//!
//! Scans have streams, which pays if pages must be read. To set them up takes longer than finding one
//! cached row. So a caller that looks up single rows tries this first. It gives up as soon as anything
//! is missing, locked, damaged or unusual, and the scan that follows waits, or reports what is wrong.

use trunkline_format::btree::{BtreePage, Cut, KeyRanges, LeafEnd, Meta, Step};
use trunkline_format::{BlockNo, PageBytes};

use super::scan::IndexedTable;
use crate::heap::{ChainRoot, HeapPage, pooled_rows};
use crate::pool::Backend;
use crate::storage::Relation;

/// More pages than this are left to a scan, which notices an endless loop.
const PAGES_MAX: usize = 32;

/// Passes the rows in `ranges` to `take`, or `None` if there are none. Returns `None`, and does nothing,
/// unless all of the following is true: the entries are on one leaf and lead to one page of the table,
/// these pages and those above them are in the pool, no page is locked exclusively or damaged, and the
/// state of the rows' transactions is cached. Nothing is waited for, and nothing is read.
pub fn look_up_in_pool<R>(
    backend: &mut Backend,
    table: &IndexedTable,
    ranges: &KeyRanges,
    take: impl FnOnce(Option<HeapPage<'_>>) -> R,
) -> Option<R> {
    let index = table.index.relation();
    let meta = read(backend, index, 0, |page| Meta::parse(page).ok())?;
    let (mut block, mut level) = (meta.fast_root, meta.fast_level);
    let from = ranges.start();
    let mut found = Entries::default();
    for _ in 0..PAGES_MAX {
        // An empty index has no root.
        if block == 0 {
            return None;
        }
        let step = read(backend, index, block, |bytes| {
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
                let relations = (&table.rows, index);
                let wanted = (block, &*found.roots);
                let take = |page: HeapPage<'_>| take(Some(page));
                return pooled_rows(backend, relations, &table.transactions, wanted, take);
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

/// Passes a page of the index to `use_page`, if it is in the pool and can be locked at once.
fn read<R>(
    backend: &mut Backend,
    index: &Relation,
    block: BlockNo,
    use_page: impl FnOnce(&PageBytes) -> Option<R>,
) -> Option<R> {
    let pin = backend.find(index, block)?;
    let page = pin.page().try_read()?;
    use_page(&page)
}
