//! Which of a few rows are there: index entries that look odd are judged by the rows that they lead
//! to, many at a time.
//!
//! ```text
//!   (7,3) (2,9) (7,1) … ──▶ by block: 2: 9   7: 1 3 ──▶ stream ──▶ chains of versions ──▶ live?
//! ```
//! An entry leads to the first line pointer of a chain of versions, of which at most one is live.
//! Pages that cannot be had say nothing: the check of the table tells of them.

use trunkline_aio::sync::Arc;
use trunkline_format::heap_tuple::{HeapTuple, is_all_visible};
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointer, line_pointers};
use trunkline_format::transam::{RowState, row_state};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, Tid};

use super::chains::Roots;
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockList, ReadStream, StreamOptions};
use crate::storage::Relation;
use crate::transactions::{Lookup, TransactionError, Transactions, XidStatusCache};

/// Judges rows of one table.
pub(super) struct Judge<'j> {
    heap: &'j Relation,
    transactions: &'j Arc<Transactions>,
    options: StreamOptions,
    /// Blocks of the table.
    blocks: BlockNo,
    statuses: XidStatusCache,
    roots: Roots,
    /// Of the page at hand: the line pointers of live versions, by those that entries lead to.
    live: Vec<(u16, u16)>,
}

impl<'j> Judge<'j> {
    /// Of the first `blocks` of a table.
    pub(super) fn new(
        heap: &'j Relation,
        blocks: BlockNo,
        transactions: &'j Arc<Transactions>,
        options: StreamOptions,
    ) -> Self {
        let options = StreamOptions { unordered: false, ..options };
        let (statuses, roots, live) = (XidStatusCache::default(), Roots::default(), Vec::new());
        Self { heap, transactions, options, blocks, statuses, roots, live }
    }

    /// Takes `rows` away, each as an entry has it and with what its owner wants to know it by, and
    /// tells `each` of those behind which there is a live version: where that is, and its bytes.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn live<T>(
        &mut self,
        backend: &mut Backend,
        rows: &mut Vec<(Tid, T)>,
        mut each: impl FnMut(&T, Tid, &HeapTuple<'_>),
    ) -> Result<(), ReadError> {
        rows.retain(|(row, _)| row.block < self.blocks);
        rows.sort_unstable_by_key(|(row, _)| *row);
        let groups = || rows.chunk_by(|(one, _), (other, _)| one.block == other.block);
        let blocks = groups().filter_map(|group| group.first()).map(|(row, _)| row.block);
        let list = BlockList::new(blocks.collect());
        let mut stream = ReadStream::new(backend, self.heap, list, self.options);
        for group in groups() {
            let page = match stream.next(backend) {
                Ok(Some(found)) => backend.read_lock(found.pin)?,
                Ok(None) => break,
                Err(ReadError::Cancelled) => return Err(ReadError::Cancelled),
                Err(_) => continue,
            };
            let Some((Tid { block, .. }, _)) = group.first() else { continue };
            let mut lookup = self.transactions.lookup(backend.session(), &mut self.statuses);
            find_live(&page, *block, &mut self.roots, &mut lookup, &mut self.live)?;
            for (row, what) in group {
                let version = self.live.iter().find(|(root, _)| *root == row.item);
                let Some(&(_, item)) = version else { continue };
                let bytes = line_pointer(&page, item).and_then(|line| line.item(&page));
                if let Ok(tuple) = HeapTuple::parse(item, bytes.unwrap_or_default()) {
                    each(what, Tid { block: row.block, item }, &tuple);
                }
            }
        }
        rows.clear();
        Ok(())
    }
}

/// Finds the live versions of a page, and the line pointers at the head of their chains.
fn find_live(
    page: &PageBytes,
    block: BlockNo,
    roots: &mut Roots,
    lookup: &mut Lookup<'_>,
    live: &mut Vec<(u16, u16)>,
) -> Result<(), ReadError> {
    live.clear();
    if is_new(page) || usize::from(PageHeader::parse(page).special) != BLOCK_SIZE {
        return Ok(());
    }
    roots.find(page, block);
    let all = is_all_visible(page);
    for (item, pointer) in line_pointers(page) {
        if pointer.flags != LinePointerFlags::Normal {
            continue;
        }
        let Ok(tuple) = HeapTuple::parse(item, pointer.item(page).unwrap_or_default()) else {
            continue;
        };
        let state = if all { Ok(RowState::Live) } else { row_state(&tuple, lookup) };
        match (state, roots.of(item)) {
            (Ok(RowState::Live), Some(root)) => live.push((root, item)),
            (Err(TransactionError::Cancelled), _) => return Err(ReadError::Cancelled),
            _ => {}
        }
    }
    Ok(())
}
