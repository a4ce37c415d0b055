//! One table: its rows, its long values, its visibility map, and its indexes against its rows.
//!
//! ```text
//!   indexes, leaf by leaf ──▶ Entries, by row ─┐
//!   blocks, one after the other ──▶ page ──────┴─▶ line pointers against entries
//!     visibility map's two bits ──────┘  └─▶ visible rows ─▶ columns ─▶ TOAST ─▶ types, keys
//! ```
//! The page is copied out first, so that nothing of it is locked while its values are fetched.

use trunkline_format::heap_tuple::{HeapTuple, XMAX_INVALID, XMIN_FROZEN, is_all_visible};
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointers};
use trunkline_format::transam::{FIRST_NORMAL_XID, RowState, row_state};
use trunkline_format::visibility_map::VisibilityBits;
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, Tid};

use super::age::Ages;
use super::chains::{Pointed, Roots, pointed_at};
use super::collect::collect;
use super::contents::Checks;
use super::entries::Entries;
use super::judge::Judge;
use super::map::VisibilityMap;
use super::orphans::Named;
use super::problem::{ContentProblem, Nowhere};
use super::sink::Sink;
use super::target::Target;
use super::unique::Unique;
use crate::heap::{ToastBatch, ToastReader};
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockRange, ReadStream, StreamOptions};
use crate::seq_scan::scan_strategy;
use crate::transactions::{TransactionError, Transactions, XidStatusCache};
use trunkline_aio::sync::Arc;

/// Bytes of long values that are fetched together.
const BATCH_BYTES: u64 = 4 << 20;

/// Checks a table.
///
/// # Errors
/// The session was cancelled.
pub(super) fn check(
    target: &Target,
    transactions: &Arc<Transactions>,
    backend: &mut Backend,
    checks: Checks,
    sink: &Sink<'_>,
) -> Result<(), ReadError> {
    let blocks = match target.heap.blocks() {
        Ok(blocks) => blocks,
        Err(error) => {
            sink.table(target, None, None, ContentProblem::Unreadable(error.to_string()));
            return Ok(());
        }
    };
    let strategy = scan_strategy(blocks, backend.pool_buffers());
    let stream = StreamOptions { strategy, sequential: true, ..checks.stream };
    let toast = target
        .toast
        .clone()
        .map(|toast| ToastReader::new(backend, toast, transactions, checks.stream));
    let mut check = TableCheck {
        target,
        transactions,
        checks,
        sink,
        ages: Ages {
            next: checks.next.filter(|_| checks.rows),
            frozen_xid: target.oldest.0,
            min_multi: target.oldest.1,
        },
        blocks,
        map: checks.rows.then(|| VisibilityMap::of(target, sink)),
        toast,
        batch: ToastBatch::new(),
        statuses: XidStatusCache::default(),
        named: (checks.rows && checks.next.is_some() && target.toast.is_some())
            .then(Named::default),
        roots: Roots::default(),
        entries: Vec::new(),
        text: Vec::new(),
    };
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
    if let Some(map) = &mut check.map {
        map.beyond_end(backend, blocks)?;
    }
    match (&check.named, &target.toast) {
        (Some(named), Some(toast)) if !sink.is_stopping() => {
            named.tell_of_others(target, toast, backend, transactions, checks.stream, sink)
        }
        _ => Ok(()),
    }
}

/// See the module.
pub(super) struct TableCheck<'t> {
    pub(super) target: &'t Target,
    transactions: &'t Arc<Transactions>,
    pub(super) checks: Checks,
    pub(super) sink: &'t Sink<'t>,
    ages: Ages,
    blocks: BlockNo,
    /// `None`: nobody asked.
    map: Option<VisibilityMap<'t>>,
    pub(super) toast: Option<ToastReader>,
    pub(super) batch: ToastBatch,
    statuses: XidStatusCache,
    /// The long values that rows name; `None`: nobody asks for others, or what it would say is not
    /// to be trusted.
    named: Option<Named>,
    pub(super) roots: Roots,
    /// Of each index.
    pub(super) entries: Vec<Entries>,
    pub(super) text: Vec<u8>,
}

impl TableCheck<'_> {
    /// Reads the entries of all indexes, for blocks from `low` on; how far they reach.
    fn collect_entries(
        &mut self,
        backend: &mut Backend,
        low: BlockNo,
        first: bool,
    ) -> Result<Option<BlockNo>, ReadError> {
        self.entries.clear();
        let indexes = &self.target.indexes;
        let most = self.checks.entries_max / indexes.len().max(1);
        let mut end: Option<BlockNo> = None;
        for index in indexes {
            let mut entries = Entries::new(low, most);
            let part = (self.blocks, first);
            let stream = self.checks.stream;
            let unique = (first && index.unique).then(|| {
                let judge = Judge::new(&self.target.heap, self.blocks, self.transactions, stream);
                Unique::new(self.target, index, judge, most, self.sink)
            });
            collect(index, backend, stream, part, &mut entries, unique, self.sink)?;
            entries.finish();
            end = match (end, entries.end()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            self.entries.push(entries);
        }
        Ok(end)
    }

    fn scan(
        &mut self,
        backend: &mut Backend,
        blocks: std::ops::Range<BlockNo>,
        options: StreamOptions,
    ) -> Result<(), ReadError> {
        let heap = &self.target.heap;
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
                    self.problem(block, None, ContentProblem::Unreadable(error.to_string()));
                    self.values_unknown();
                    // About one block the stream goes on; about the file there is no more.
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

    pub(super) fn problem(
        &self,
        block: Option<BlockNo>,
        item: Option<u16>,
        problem: ContentProblem,
    ) {
        self.sink.table(self.target, block, item, problem);
    }

    /// What long values some rows name could not be found out.
    fn values_unknown(&mut self) {
        if let Some(named) = &mut self.named {
            named.set_incomplete();
        }
    }

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
        if is_new(page) {
            self.entries_lead_to_rows(block, page, true);
            return Ok(());
        }
        if usize::from(PageHeader::parse(page).special) != BLOCK_SIZE {
            self.problem(Some(block), None, ContentProblem::NotATable);
            self.values_unknown();
            return Ok(());
        }
        self.roots.find(page, block);
        self.entries_lead_to_rows(block, page, false);
        let promised = is_all_visible(page);
        if bits.all_visible && !promised {
            self.problem(Some(block), None, ContentProblem::NoPageFlag);
        }
        if bits.all_frozen && !bits.all_visible {
            self.problem(Some(block), None, ContentProblem::MapBits);
        }
        let mut waiting = Vec::new();
        for (item, pointer) in line_pointers(page) {
            let at = |problem| self.problem(Some(block), Some(item), problem);
            match pointer.flags {
                LinePointerFlags::Normal => {}
                LinePointerFlags::Dead if promised || bits.all_visible => {
                    at(ContentProblem::DeadLinePointer);
                    continue;
                }
                _ => continue,
            }
            let tuple = HeapTuple::parse(item, pointer.item(page).unwrap_or_default());
            let Ok(tuple) = tuple else {
                at(ContentProblem::Row);
                self.values_unknown();
                continue;
            };
            if let (Some(named), Some(toast)) = (&mut self.named, &self.target.toast) {
                named.take(&tuple, self.target, toast);
            }
            let mut lookup = self.transactions.lookup(backend.session(), &mut self.statuses);
            let state = match row_state(&tuple, &mut lookup) {
                Ok(state) => state,
                Err(TransactionError::Cancelled) => return Err(ReadError::Cancelled),
                Err(error) => {
                    self.problem(
                        Some(block),
                        Some(item),
                        ContentProblem::Transaction(error.to_string()),
                    );
                    continue;
                }
            };
            let at = |problem| self.problem(Some(block), Some(item), problem);
            self.ages.check(&tuple, Tid { block, item }, state, at);
            if state != RowState::Live {
                if promised || bits.all_visible {
                    self.problem(Some(block), Some(item), ContentProblem::NotVisible { state });
                }
                continue;
            }
            if bits.all_frozen && !is_frozen(&tuple) {
                self.problem(Some(block), Some(item), ContentProblem::NotFrozen);
            }
            self.row(block, &tuple, &mut waiting);
            if self.batch.bytes() > BATCH_BYTES {
                self.settle(backend, block, &mut waiting)?;
            }
        }
        self.settle(backend, block, &mut waiting)
    }

    /// Every entry for a row of `block` leads to a line pointer that may have entries.
    fn entries_lead_to_rows(&mut self, block: BlockNo, page: &PageBytes, new: bool) {
        let (target, sink) = (self.target, self.sink);
        for (index, entries) in target.indexes.iter().zip(&mut self.entries) {
            let mut before = None;
            for row in entries.of_block(block) {
                let at = |problem| sink.table(target, Some(block), Some(row.item), problem);
                let name = || index.name.clone();
                if before.replace(row) == Some(row) {
                    at(ContentProblem::EntryTwice { index: name() });
                    continue;
                }
                let found = match pointed_at(page, row) {
                    _ if new => Nowhere::NewPage,
                    Pointed::Sound => continue,
                    Pointed::Missing { count } => Nowhere::Beyond { count },
                    Pointed::Unused => Nowhere::Unused,
                    Pointed::HeapOnly => Nowhere::HeapOnly,
                };
                at(ContentProblem::EntryNowhere { index: name(), found });
            }
        }
    }
}

/// Whether a visible row will never again need to be frozen.
fn is_frozen(tuple: &HeapTuple<'_>) -> bool {
    let inserted = tuple.infomask() & XMIN_FROZEN == XMIN_FROZEN || tuple.xmin() < FIRST_NORMAL_XID;
    // What a lock that is long gone left behind does no harm.
    inserted && (tuple.infomask() & XMAX_INVALID != 0 || tuple.xmax() == 0)
}
