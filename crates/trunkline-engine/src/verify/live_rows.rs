//! Finds live rows behind index entries, many at a time.
//!
//! Some index entries look suspicious but may be harmless, for example two entries with the same
//! key in a unique index. To decide whether they are really a problem, we have to check whether
//! their rows are visible.
//!
//! ```text
//!   (7,3) (2,9) (7,1) … ──▶ by block: 2: 9   7: 1 3 ──▶ stream ──▶ HOT chains ──▶ live?
//! ```
//!
//! An index entry points to the root of a HOT chain, and at most one tuple in that chain is live.
//! If a page can't be read, we skip it, because the table check reports it anyway.

use trunkline_aio::facade::Arc;
use trunkline_format::heap_tuple::{HeapTuple, is_all_visible};
use trunkline_format::page::{PageHeader, is_new, line_pointers};
use trunkline_format::transam::{RowState, row_state};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, Tid};

use super::hot_chains::{HotRoots, tuple_at};
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockList, ReadStream, StreamOptions};
use crate::storage::Relation;
use crate::transactions::{Lookup, StatusPages, Transactions};

/// Finds live rows of one table.
pub(super) struct LiveRowFinder<'f> {
    heap: &'f Relation,
    transactions: &'f Arc<Transactions>,
    options: StreamOptions,
    /// The number of blocks of the table.
    blocks: BlockNo,
    statuses: StatusPages,
    roots: HotRoots,
    /// The live tuples on the current page. For each tuple, the root line pointer of its chain and
    /// its own line pointer.
    live: Vec<(u16, u16)>,
}

impl<'f> LiveRowFinder<'f> {
    /// Creates a finder for a table of `blocks` blocks. The read stream must return the pages in
    /// the order in which we requested them, because otherwise we couldn't tell which page belongs
    /// to which group of rows.
    pub(super) fn new(
        heap: &'f Relation,
        blocks: BlockNo,
        transactions: &'f Arc<Transactions>,
        options: StreamOptions,
    ) -> Self {
        let options = StreamOptions { unordered: false, ..options };
        let (statuses, roots, live) = (StatusPages::default(), HotRoots::default(), Vec::new());
        Self { heap, transactions, options, blocks, statuses, roots, live }
    }

    /// Looks up all `rows`, leaving the vector empty. A row consists of the TID of an index entry
    /// and a value chosen by the caller. Whenever an entry leads to a live tuple, we call `each`
    /// with that value, the tuple's own TID and the tuple. These calls are made in table order.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn find_live<T>(
        &mut self,
        backend: &mut Backend,
        rows: &mut Vec<(Tid, T)>,
        mut each: impl FnMut(&T, Tid, &HeapTuple<'_>),
    ) -> Result<(), ReadError> {
        // Skip entries that point beyond the end of the table, because the index walk has already
        // reported them.
        rows.retain(|(row, _)| row.block < self.blocks);
        // Sort by TID, so that each page is read once and in sequential order.
        rows.sort_unstable_by_key(|(row, _)| *row);
        let groups = || rows.chunk_by(|(one, _), (other, _)| one.block == other.block);
        let blocks = groups().filter_map(|group| group.first()).map(|(row, _)| row.block);
        let list = BlockList::new(blocks.collect());
        let mut stream = ReadStream::new(backend, self.heap, list, self.options);
        for group in groups() {
            let page = match stream.next(backend) {
                Ok(Some(found)) => {
                    self.transactions.lock_and_load(backend, found.pin, &mut self.statuses)?
                }
                Ok(None) => break,
                Err(ReadError::Cancelled) => return Err(ReadError::Cancelled),
                Err(_) => continue,
            };
            let Some((Tid { block, .. }, _)) = group.first() else { continue };
            let mut lookup = self.transactions.lookup(&mut self.statuses);
            live_tuples(&page, *block, &mut self.roots, &mut lookup, &mut self.live);
            for (row, what) in group {
                // At most one tuple of a HOT chain is live, so the first match is the only one.
                let version = self.live.iter().find(|(root, _)| *root == row.item);
                let Some(&(_, item)) = version else { continue };
                if let Some(tuple) = tuple_at(&page, item) {
                    each(what, Tid { block: row.block, item }, &tuple);
                }
            }
        }
        rows.clear();
        Ok(())
    }
}

/// Finds the live tuples of a page and the roots of their HOT chains.
fn live_tuples(
    page: &PageBytes,
    block: BlockNo,
    roots: &mut HotRoots,
    lookup: &mut Lookup<'_>,
    live: &mut Vec<(u16, u16)>,
) {
    live.clear();
    if is_new(page) || usize::from(PageHeader::parse(page).special) != BLOCK_SIZE {
        return;
    }
    roots.find(page, block, lookup);
    let all = is_all_visible(page);
    for (item, _) in line_pointers(page) {
        let Some(tuple) = tuple_at(page, item) else { continue };
        let state = if all { Ok(RowState::Live) } else { row_state(&tuple, lookup) };
        if let (Ok(RowState::Live), Some(root)) = (state, roots.of(item)) {
            live.push((root, item));
        }
    }
}
