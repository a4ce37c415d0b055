//! Checks one table: its rows, their TOAST values, its visibility map, and its indexes against its
//! rows.
//!
//! ```text
//!   indexes, leaf by leaf ──▶ EntryTable, by TID ─┐
//!   blocks, in order ───────▶ page ───────────────┴─▶ line pointers against entries
//!     visibility map bits ────┘  └─▶ visible rows ─▶ columns ─▶ TOAST ─▶ types, keys
//! ```
//!
//! We make a copy of each page before we check it. To check the rows on a page, we may have to read
//! TOAST values and commit log pages, and we must not hold the page's content lock for that long.
//!
//! If there isn't enough memory for all index entries, we check the table in several parts, and
//! walk the indexes again for each part. See `entry_table.rs`.

use trunkline_format::heap_tuple::{HeapTuple, XMAX_INVALID, XMIN_FROZEN, is_all_visible};
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointers};
use trunkline_format::transam::{FIRST_NORMAL_XID, RowState, row_state};
use trunkline_format::visibility_map::VisibilityBits;
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, Tid};

use super::btree_check::collect_entries;
use super::checked_table::CheckedTable;
use super::content_options::Checks;
use super::content_problem::{ContentProblem, InvalidTarget};
use super::entry_collector::EntryCollector;
use super::entry_table::EntryTable;
use super::hot_chains::invalid_target;
use super::live_rows::LiveRowFinder;
use super::map_reader::MapReader;
use super::row_check::RowCheck;
use super::sink::Sink;
use super::status_files::Needed;
use super::toast_orphans::ReferencedValues;
use super::unique_check::UniqueCheck;
use super::xid_range::XidRanges;
use crate::heap::ToastReader;
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockRange, ReadStream, StreamOptions};
use crate::seq_scan::scan_strategy;
use crate::transactions::{StatusPages, Transactions};
use trunkline_aio::facade::Arc;

/// Number of bytes of TOAST values to fetch together.
const BATCH_BYTES: u64 = 4 << 20;

/// Checks a table and its indexes.
///
/// # Errors
/// The session was cancelled.
pub(super) fn check(
    table: &CheckedTable,
    transactions: &Arc<Transactions>,
    backend: &mut Backend,
    checks: Checks,
    sink: &Sink<'_>,
) -> Result<(), ReadError> {
    // Determine the table's length only once, because all parts of the check must use the same
    // length. It shouldn't change anyway, since no server is running.
    let blocks = match table.heap.blocks() {
        Ok(blocks) => blocks,
        Err(error) => {
            sink.table(table, None, None, ContentProblem::Unreadable(error.to_string()));
            return Ok(());
        }
    };
    // As in a query, don't let a large table evict everything else from the pool.
    let strategy = scan_strategy(blocks, backend.pool_buffers());
    let stream = StreamOptions { strategy, sequential: true, ..checks.stream };
    let toast = table
        .toast
        .clone()
        .map(|toast| ToastReader::new(backend, toast, transactions, checks.stream));
    let mut check = TableCheck {
        table,
        transactions,
        checks,
        sink,
        xids: XidRanges {
            next: checks.next.filter(|_| checks.rows),
            frozen_xid: table.oldest.0,
            min_multi: table.oldest.1,
        },
        blocks,
        // We check the visibility map together with the rows, because its bits describe the rows.
        map: checks.rows.then(|| MapReader::new(table, sink)),
        statuses: StatusPages::default(),
        references: ReferencedValues::of(table).filter(|_| checks.rows && checks.next.is_some()),
        rows: RowCheck::new(table, checks, toast, sink),
    };
    // In each iteration, check the blocks for which we have all index entries in memory.
    let (mut low, mut first) = (0, true);
    loop {
        let end = match checks.indexes {
            true => check.collect_entries(backend, low, first)?,
            false => None,
        };
        let until = end.unwrap_or(blocks).min(blocks);
        check.scan(backend, low..until, stream)?;
        match end {
            Some(end) if end < blocks && !sink.is_stopping() => (low, first) = (end, false),
            _ => break,
        }
    }
    // The scan only looks at the map's bits for existing blocks, so check the bits beyond the end
    // of the table separately.
    if let Some(map) = &mut check.map {
        map.check_end(backend, blocks)?;
    }
    match &check.references {
        Some(references) if !sink.is_stopping() => {
            references.report_orphans(backend, transactions, checks.stream, sink)
        }
        _ => Ok(()),
    }
}

/// The state of one table's check.
struct TableCheck<'t> {
    table: &'t CheckedTable,
    transactions: &'t Arc<Transactions>,
    checks: Checks,
    sink: &'t Sink<'t>,
    xids: XidRanges,
    /// The length of the table when the check began.
    blocks: BlockNo,
    /// `None` if rows are not checked.
    map: Option<MapReader<'t>>,
    statuses: StatusPages,
    /// The TOAST values that rows refer to. `None` if we aren't checking for orphans. We never do
    /// if the cluster wasn't shut down, because the result would be unreliable.
    references: Option<ReferencedValues<'t>>,
    rows: RowCheck<'t>,
}

impl TableCheck<'_> {
    /// Collects the entries of all indexes for the blocks starting at `low`, dividing the available
    /// memory evenly among the indexes. Returns the end of the range of blocks for which we have
    /// all entries of every index, or `None` if there is no limit.
    fn collect_entries(
        &mut self,
        backend: &mut Backend,
        low: BlockNo,
        first: bool,
    ) -> Result<Option<BlockNo>, ReadError> {
        self.rows.entries.clear();
        let indexes = &self.table.indexes;
        let most = self.checks.entries_max / indexes.len().max(1);
        let mut end: Option<BlockNo> = None;
        for index in indexes {
            let mut entries = EntryTable::new(low, most);
            let part = (self.blocks, first);
            let stream = self.checks.stream;
            // Check uniqueness only on the first walk, because that walk visits all entries.
            let unique = (first && index.unique).then(|| {
                let finder =
                    LiveRowFinder::new(&self.table.heap, self.blocks, self.transactions, stream);
                UniqueCheck::new(self.table, index, finder, most, self.sink)
            });
            let collector = EntryCollector::new(index, part, &mut entries, unique, self.sink);
            collect_entries(collector, backend, stream)?;
            entries.finish();
            end = match (end, entries.end()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            self.rows.entries.push(entries);
        }
        Ok(end)
    }

    /// Checks the pages of a range of blocks, in order.
    fn scan(
        &mut self,
        backend: &mut Backend,
        blocks: std::ops::Range<BlockNo>,
        options: StreamOptions,
    ) -> Result<(), ReadError> {
        let heap = &self.table.heap;
        let mut stream = ReadStream::new(backend, heap, BlockRange::new(blocks), options);
        let mut copy = Box::new([0; BLOCK_SIZE]);
        loop {
            let block = match stream.next(backend) {
                Ok(Some(found)) => {
                    *copy = *backend.read_lock(found.pin)?;
                    found.block
                }
                Ok(None) => return Ok(()),
                Err(ReadError::Cancelled) => return Err(ReadError::Cancelled),
                Err(error) => {
                    let block = error.block();
                    self.problem(block, ContentProblem::Unreadable(error.to_string()));
                    self.references_unknown();
                    // If the error concerned only one block, the stream continues with the next
                    // block. If it concerned the whole file, the stream has ended.
                    if block.is_none() {
                        return Ok(());
                    }
                    continue;
                }
            };
            self.page(backend, block, &copy)?;
            self.sink.count_page();
            if self.sink.is_stopping() {
                return Ok(());
            }
        }
    }

    /// Adds a finding about the table or one of its pages.
    fn problem(&self, block: Option<BlockNo>, problem: ContentProblem) {
        self.sink.table(self.table, block, None, problem);
    }

    /// Records that we couldn't read the TOAST references of some rows. From now on, we can't
    /// report any orphans, because one of those rows may refer to them.
    fn references_unknown(&mut self) {
        if let Some(references) = &mut self.references {
            references.set_incomplete();
        }
    }

    /// Checks one page: its visibility map bits, its line pointers and its tuples.
    fn page(
        &mut self,
        backend: &mut Backend,
        block: BlockNo,
        page: &PageBytes,
    ) -> Result<(), ReadError> {
        let bits = match &mut self.map {
            Some(map) => map.bits(backend, block)?,
            None => VisibilityBits::default(),
        };
        // A new page has no rows, so no index entry should point to it.
        if is_new(page) {
            self.check_entry_targets(block, page, true);
            return Ok(());
        }
        if usize::from(PageHeader::parse(page).special) != BLOCK_SIZE {
            self.problem(Some(block), ContentProblem::NotATable);
            self.references_unknown();
            return Ok(());
        }
        self.check_entry_targets(block, page, false);
        let all_visible = is_all_visible(page);
        if bits.all_visible && !all_visible {
            self.problem(Some(block), ContentProblem::NoPageFlag);
        }
        if bits.all_frozen && !bits.all_visible {
            self.problem(Some(block), ContentProblem::MapBits);
        }
        let mut pending = Vec::new();
        let (table, sink) = (self.table, self.sink);
        self.transactions.load_for(page, backend.session(), &mut self.statuses)?;
        // Every visible row must be reachable from the root of a HOT chain, to which its index
        // entries point.
        let mut lookup = self.transactions.lookup(&mut self.statuses);
        self.rows.roots.find(page, block, &mut lookup);
        for (item, pointer) in line_pointers(page) {
            let at = |problem| sink.table(table, Some(block), Some(item), problem);
            match pointer.flags {
                LinePointerFlags::Normal => {}
                // VACUUM never marks a page all-visible before it has removed all dead line
                // pointers from the page.
                LinePointerFlags::Dead if all_visible || bits.all_visible => {
                    at(ContentProblem::DeadLinePointer);
                    continue;
                }
                _ => continue,
            }
            let tuple = HeapTuple::parse(item, pointer.item(page).unwrap_or_default());
            let Ok(tuple) = tuple else {
                at(ContentProblem::Row);
                self.references_unknown();
                continue;
            };
            // We need the references of all versions of a row, so add them before checking the
            // tuple's visibility.
            if let Some(references) = &mut self.references {
                references.add(&tuple);
            }
            // Look up the tuple's real state even if the page is marked all-visible, because we
            // want to find out whether the page should be.
            let mut lookup = self.transactions.lookup(&mut self.statuses);
            let state = match row_state(&tuple, &mut lookup) {
                Ok(state) => state,
                Err(error) => {
                    sink.unknown(table, Tid { block, item }, Needed::Row, &error);
                    continue;
                }
            };
            self.xids.check(&tuple, Tid { block, item }, state, at);
            if state != RowState::Live {
                if all_visible || bits.all_visible {
                    at(ContentProblem::NotVisible { state });
                }
                continue;
            }
            if bits.all_frozen && !is_frozen(&tuple) {
                at(ContentProblem::NotFrozen);
            }
            self.rows.add(block, &tuple, &mut pending);
            if self.rows.bytes_pending() > BATCH_BYTES {
                self.rows.check_pending(backend, block, &mut pending)?;
            }
        }
        self.rows.check_pending(backend, block, &mut pending)
    }

    /// Checks that every index entry for `block` points to a line pointer that may be the root of a
    /// HOT chain. The entries are sorted by TID, so if there are two entries for the same row, they
    /// are next to each other.
    fn check_entry_targets(&mut self, block: BlockNo, page: &PageBytes, new: bool) {
        let (table, sink) = (self.table, self.sink);
        for (index, entries) in table.indexes.iter().zip(&mut self.rows.entries) {
            let mut before = None;
            for row in entries.of_block(block) {
                let at = |problem| sink.table(table, Some(block), Some(row.item), problem);
                let name = || index.name.clone();
                // Report a duplicate entry only once, and don't check its target again.
                if before.replace(row) == Some(row) {
                    at(ContentProblem::EntryTwice { index: name() });
                    continue;
                }
                let found = match new {
                    true => Some(InvalidTarget::NewPage),
                    false => invalid_target(page, row),
                };
                if let Some(found) = found {
                    at(ContentProblem::EntryTarget { index: name(), found });
                }
            }
        }
    }
}

/// Whether a visible tuple is frozen, which means that it will remain visible no matter which
/// transaction ids are assigned later.
fn is_frozen(tuple: &HeapTuple<'_>) -> bool {
    let inserted = tuple.infomask() & XMIN_FROZEN == XMIN_FROZEN || tuple.xmin() < FIRST_NORMAL_XID;
    // If xmax is marked invalid, we can ignore it: its transaction either aborted or only locked
    // the row.
    inserted && (tuple.infomask() & XMAX_INVALID != 0 || tuple.xmax() == 0)
}
