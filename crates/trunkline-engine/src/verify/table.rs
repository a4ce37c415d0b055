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
use trunkline_format::transactions::{FIRST_NORMAL_XID, RowState, judge};
use trunkline_format::tuple::{Column as Stored, Walk};
use trunkline_format::types::{TextOptions, ValueError, write_text};
use trunkline_format::varlena::Varlena;
use trunkline_format::visibility_map::VisibilityBits;
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, Tid};

use super::age::Ages;
use super::chains::{Pointed, Roots, pointed_at};
use super::collect::collect;
use super::contents::{Checks, Sink};
use super::entries::{Entries, Found, KeyHash};
use super::map::VisibilityMap;
use super::problem::{ContentProblem, Nowhere};
use super::target::Target;
use crate::heap::{ToastBatch, ToastReader};
use crate::pool::{Backend, ReadError, Strategy};
use crate::read_stream::{BlockRange, ReadStream, StreamOptions};
use crate::transactions::{Memo, TransactionError, Transactions};
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
    let bulk = blocks > backend.shared.count() / 4;
    let strategy = if bulk { Strategy::BulkRead } else { Strategy::Normal };
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
        memo: Memo::default(),
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
    match &mut check.map {
        Some(map) => map.beyond_end(backend, blocks),
        None => Ok(()),
    }
}

struct TableCheck<'t> {
    target: &'t Target,
    transactions: &'t Arc<Transactions>,
    checks: Checks,
    sink: &'t Sink<'t>,
    ages: Ages,
    blocks: BlockNo,
    /// `None`: nobody asked.
    map: Option<VisibilityMap<'t>>,
    toast: Option<ToastReader>,
    batch: ToastBatch,
    memo: Memo,
    roots: Roots,
    /// Of each index.
    entries: Vec<Entries>,
    text: Vec<u8>,
}

/// A visible row's column.
#[derive(Clone, Copy)]
enum Cell<'p> {
    /// As it is stored in the page.
    Stored(&'p [u8]),
    Null,
    Missing,
    /// In TOAST: its number in the batch.
    Toast(usize),
    /// It could not be had, which was told.
    Broken,
}

/// A visible row that waits for its long values.
struct Waiting<'p> {
    item: u16,
    cells: Vec<Cell<'p>>,
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
            collect(index, backend, self.checks.stream, part, &mut entries, self.sink)?;
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

    fn problem(&self, block: Option<BlockNo>, item: Option<u16>, problem: ContentProblem) {
        self.sink.table(self.target, block, item, problem);
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
                continue;
            };
            let mut lookup = self.transactions.lookup(backend.session(), &mut self.memo);
            let state = match judge(&tuple, &mut lookup) {
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

    /// Takes a visible row apart, as far as its own page has it.
    fn row<'p>(&mut self, block: BlockNo, tuple: &HeapTuple<'p>, waiting: &mut Vec<Waiting<'p>>) {
        let item = tuple.item();
        self.sink.count_row();
        if self.roots.of(item).is_none() {
            self.problem(Some(block), Some(item), ContentProblem::NoChain);
        }
        let expected = self.target.columns.len() as u16;
        if tuple.natts() > expected {
            let found = tuple.natts();
            self.problem(Some(block), Some(item), ContentProblem::Columns { found, expected });
        }
        let mut walk = Walk::of(tuple);
        let mut cells = Vec::with_capacity(self.target.columns.len());
        for column in &self.target.columns {
            let error = match walk.next(column.attribute) {
                Ok(Stored::Value(stored)) => match self.cell(column.attribute.len, stored) {
                    Ok(cell) => {
                        cells.push(if column.dropped { Cell::Null } else { cell });
                        continue;
                    }
                    Err(error) => error,
                },
                Ok(Stored::Null) => {
                    cells.push(Cell::Null);
                    continue;
                }
                Ok(Stored::Missing) => {
                    cells.push(Cell::Missing);
                    continue;
                }
                Err(error) => error.to_string(),
            };
            let column = String::from_utf8_lossy(&column.name).into_owned();
            self.problem(Some(block), Some(item), ContentProblem::Value { column, error });
            // Where the next column begins is not known either.
            cells.resize(self.target.columns.len(), Cell::Broken);
            break;
        }
        waiting.push(Waiting { item, cells });
    }

    fn cell<'p>(&mut self, len: i16, stored: &'p [u8]) -> Result<Cell<'p>, String> {
        if len != -1 {
            return Ok(Cell::Stored(stored));
        }
        match Varlena::parse(stored).map_err(|error| error.to_string())? {
            Varlena::External(pointer) => Ok(Cell::Toast(self.batch.push(pointer))),
            Varlena::Plain(_) | Varlena::Compressed(_) => Ok(Cell::Stored(stored)),
        }
    }

    /// Fetches the long values of the rows that wait, and checks these rows.
    fn settle(
        &mut self,
        backend: &mut Backend,
        block: BlockNo,
        waiting: &mut Vec<Waiting<'_>>,
    ) -> Result<(), ReadError> {
        if !self.batch.is_empty()
            && let Some(toast) = &mut self.toast
        {
            toast.fetch(backend, &mut self.batch)?;
        }
        for row in waiting.drain(..) {
            self.check_row(block, &row);
        }
        self.batch.clear();
        Ok(())
    }

    fn check_row(&mut self, block: BlockNo, row: &Waiting<'_>) {
        let target = self.target;
        let at = |problem| self.sink.table(target, Some(block), Some(row.item), problem);
        let catalog = &*target.database;
        let options = TextOptions::new(self.checks.major, catalog);
        let (mut room, mut text) = (Vec::new(), std::mem::take(&mut self.text));
        for (cell, column) in row.cells.iter().zip(&target.columns) {
            let name = || String::from_utf8_lossy(&column.name).into_owned();
            let payload = match self.payload(*cell, column, &mut room) {
                Ok(Some(payload)) => payload,
                Ok(None) => continue,
                Err(error) => {
                    at(match cell {
                        Cell::Toast(_) => ContentProblem::Toast { column: name(), error },
                        _ => ContentProblem::Value { column: name(), error },
                    });
                    continue;
                }
            };
            let Some(ty) = column.ty.as_ref().filter(|_| self.checks.rows) else { continue };
            text.clear();
            match write_text(ty, payload, &options, &mut text) {
                Ok(()) | Err(ValueError::Unsupported(_)) => {}
                Err(error) => {
                    at(ContentProblem::Value { column: name(), error: error.to_string() });
                }
            }
        }
        self.text = text;
        if self.checks.indexes {
            self.row_has_entries(block, row);
        }
    }

    /// A column's payload; `None` if it is null or could not be had.
    fn payload<'r>(
        &'r self,
        cell: Cell<'r>,
        column: &'r super::target::Column,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, String> {
        match cell {
            Cell::Null | Cell::Broken => Ok(None),
            Cell::Missing => Ok(column.missing.as_deref()),
            Cell::Stored(stored) if column.attribute.len == -1 => {
                let value = Varlena::parse(stored).and_then(|value| value.payload(room));
                value.map(Some).map_err(|error| error.to_string())
            }
            Cell::Stored(stored) => Ok(Some(stored)),
            Cell::Toast(number) => match self.batch.value(number) {
                Some(Ok(value)) => Ok(Some(value)),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("the table has no TOAST table".into()),
            },
        }
    }

    /// Every index has an entry for the row, with the row's key.
    fn row_has_entries(&self, block: BlockNo, row: &Waiting<'_>) {
        let Some(root) = self.roots.of(row.item) else { return };
        let at = |problem| self.problem(Some(block), Some(row.item), problem);
        for (index, entries) in self.target.indexes.iter().zip(&self.entries) {
            let name = || index.name.clone();
            match entries.find(Tid { block, item: root }) {
                Found::Nothing if index.partial || entries.is_incomplete() => {}
                Found::Nothing => {
                    at(ContentProblem::NoEntry { index: name(), dead: false, root });
                }
                Found::Entry { dead: true, .. } => {
                    at(ContentProblem::NoEntry { index: name(), dead: true, root });
                }
                Found::Entry { hash, .. } => {
                    if self.key(row, index).is_some_and(|expected| expected != hash) {
                        at(ContentProblem::OtherKey { index: name(), root });
                    }
                }
            }
        }
    }

    /// The hash of the row's key in an index, columns left out that are computed; `None` if a
    /// column could not be had.
    fn key(&self, row: &Waiting<'_>, index: &super::target::IndexTarget) -> Option<u64> {
        let mut hash = KeyHash::new();
        let mut room = Vec::new();
        for (source, stored_as) in index.sources.iter().zip(index.index.layout().columns()) {
            let Some(source) = *source else { continue };
            let (cell, column) = (*row.cells.get(source)?, self.target.columns.get(source)?);
            if matches!(cell, Cell::Broken) {
                return None;
            }
            let mut payload = self.payload(cell, column, &mut room).ok()?;
            // Names are stored without their padding.
            if stored_as.attribute.len == -2 {
                payload = payload.and_then(|name| name.split(|byte| *byte == 0).next());
            }
            hash = hash.column(payload);
        }
        Some(hash.finish())
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
