//! One page of a heap scan, and the visibility of its rows.
//!
//! We determine the visibility of all rows of a page when we read the page, like PostgreSQL's
//! `heap_prepare_pagescan`. This way, the result doesn't depend on when the caller gets to a row.
//! It also means that we never have to consult the commit log while we are returning rows. If a
//! page of the commit log has to be read, the scan unlocks the heap page first (`StatusPages`).
//!
//! If the page is marked all-visible, we skip the visibility checks and don't touch a tuple until
//! we return it. This matters, because most of the cost of returning a tuple is loading it into the
//! CPU cache.

use std::fmt;

use trunkline_format::heap_tuple::{TUPLE_HEADER_SIZE, is_all_visible};
use trunkline_format::page::{
    LinePointer, LinePointerFlags, PageHeader, is_new, line_pointer, line_pointers,
};
use trunkline_format::transam::{RowState, XidStatusLookup, row_state};
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapTuple, PageBytes, Tid};

use super::error::{HeapError, RowError, RowProblem};
use super::hot_chain::{ChainRoot, visible_in_chain};
use super::wanted::Wanted;
use crate::pool::Page;
use crate::storage::Relation;
use crate::transactions::TransactionError;

/// Which tuples a scan returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowFilter {
    /// Live tuples only: what a server's `SELECT` sees.
    #[default]
    Visible,
    /// Only tuples that have been deleted or updated ([`RowState::Dead`]) and that VACUUM hasn't
    /// removed yet. This doesn't include tuples of aborted transactions, which were never visible.
    Dead,
    /// All tuples that have a normal line pointer, whatever their state, like `pageinspect` shows
    /// them.
    All,
    /// The row of a sequence, whose page has a special space.
    Sequence,
}

impl RowFilter {
    /// Returns whether a tuple in this state passes the filter.
    #[inline]
    fn passes(self, state: RowState) -> bool {
        match self {
            Self::Visible | Self::Sequence => state == RowState::Live,
            Self::Dead => state == RowState::Dead,
            Self::All => true,
        }
    }
}

/// Where the special space of a sequence's page starts: it has one word, aligned to 8 bytes.
const SEQUENCE_SPECIAL: usize = BLOCK_SIZE - 8;

/// The rows of a page that pass the filter. The scan reuses this memory for every page.
#[derive(Debug, Default, Clone)]
pub(super) struct PageRows {
    /// Whether the page is marked all-visible. If so, the line pointers are all we need, and
    /// `entries` and `errors` stay empty.
    all_visible: bool,
    /// Whether the caller must check the condition of an index scan.
    recheck: bool,
    /// The rows were listed by the block's source.
    listed: bool,
    entries: Vec<Entry>,
    errors: Vec<RowError>,
}

/// Either a tuple that passed the filter, or an invalid tuple. We store the tuple's offset rather
/// than a reference, so that an entry remains usable with a copy of the page (`PageBatch`).
#[derive(Debug, Clone, Copy)]
struct Entry {
    item: u16,
    /// The offset of the tuple within the page.
    offset: u16,
    length: u16,
    /// [`ChainRoot::entry`].
    number: u32,
    verdict: Verdict,
}

/// What we found out about a tuple.
#[derive(Debug, Clone, Copy)]
enum Verdict {
    State(RowState),
    /// An index into `PageRows::errors`. We don't store the error itself in the entry, because
    /// errors are large and rare.
    Error(u16),
}

impl PageRows {
    /// Determines which of the wanted rows on `page` are visible. Any information about the previous
    /// page is overwritten. If `status` has not loaded the status of a row, that row is left out. The
    /// caller must then load the missing statuses and call this again.
    pub(super) fn prepare<S: XidStatusLookup<Error = TransactionError>>(
        &mut self,
        page: &PageBytes,
        relation: &Relation,
        block: BlockNo,
        (rows, wanted, index): (RowFilter, Wanted<'_>, Option<&Relation>),
        status: &mut S,
    ) -> Result<(), HeapError> {
        self.all_visible = false;
        self.entries.clear();
        self.errors.clear();
        self.listed = matches!(wanted, Wanted::Chains { .. });
        let roots = match wanted {
            Wanted::All { recheck } => {
                self.recheck = recheck;
                None
            }
            Wanted::Chains { roots, recheck } => {
                self.recheck = recheck;
                Some(roots)
            }
        };
        if let Some(roots) = roots.filter(|_| is_new(page)) {
            self.follow_chains(page, relation, block, (roots, index), status);
            return Ok(());
        }
        // This page was added when the table was extended, but it was never initialized, for
        // example because of a crash right after the extension. It has no rows.
        if is_new(page) {
            return Ok(());
        }
        let special = PageHeader::parse(page).special;
        // The checksum and the page header are OK, so presumably this is not a damaged page, but a
        // page of an index or a sequence. If we interpreted its items as tuples, we would return
        // garbage.
        let expected = match rows {
            RowFilter::Sequence => SEQUENCE_SPECIAL,
            _ => BLOCK_SIZE,
        };
        if usize::from(special) != expected {
            return Err(HeapError::NotATable { location: relation.location(block), special });
        }
        if let Some(roots) = roots {
            self.follow_chains(page, relation, block, (roots, index), status);
            return Ok(());
        }
        if is_all_visible(page) {
            // Without entries and errors, the page has no rows: all of its tuples are live.
            self.all_visible = rows.passes(RowState::Live);
            return Ok(());
        }
        for (item, pointer) in normal_lines(page) {
            // If an item extends beyond the end of the page, we get an empty slice here, which then
            // fails to parse.
            let tuple = HeapTuple::parse(item, pointer.item(page).unwrap_or_default());
            let state = match tuple {
                Ok(tuple) => row_state(&tuple, status).map_err(RowProblem::Transaction),
                Err(_) => Err(RowProblem::Outside),
            };
            let verdict = match state {
                // This is the usual case for dead tuples. We don't need them, so don't even add
                // them to the list.
                Ok(state) if !rows.passes(state) => continue,
                Ok(state) => Verdict::State(state),
                Err(RowProblem::Transaction(TransactionError::NotLoaded { .. })) => continue,
                Err(problem) => self.error(row_error(relation, Tid { block, item }, problem)),
            };
            let (offset, length) = (pointer.offset, pointer.length);
            self.entries.push(Entry { item, offset, length, number: 0, verdict });
        }
        Ok(())
    }

    /// Finds the visible row of each chain. Chains without one are left out.
    fn follow_chains<S: XidStatusLookup<Error = TransactionError>>(
        &mut self,
        page: &PageBytes,
        relation: &Relation,
        block: BlockNo,
        (roots, index): (&[ChainRoot], Option<&Relation>),
        status: &mut S,
    ) {
        let all_visible = !is_new(page) && is_all_visible(page);
        for root in roots {
            let ChainRoot { item: root_item, entry: number, place: (leaf, leaf_item) } = *root;
            let entry = match visible_in_chain(page, block, root_item, all_visible, status) {
                Ok(None) => continue,
                Ok(Some((item, pointer))) => Entry {
                    item,
                    offset: pointer.offset,
                    length: pointer.length,
                    number,
                    verdict: Verdict::State(RowState::Live),
                },
                Err((item, problem)) => {
                    let of_index = index.filter(|_| leaf_item != 0);
                    let error = match (of_index, &problem) {
                        (Some(index), RowProblem::Entry(_)) => {
                            row_error(index, Tid { block: leaf, item: leaf_item }, problem)
                        }
                        _ => row_error(relation, Tid { block, item }, problem),
                    };
                    let verdict = self.error(error);
                    Entry { item, offset: 0, length: 0, number, verdict }
                }
            };
            self.entries.push(entry);
        }
    }

    /// Stores an error and returns a verdict that refers to it. This is marked cold so that the
    /// compiler moves the error handling out of the loop over the line pointers.
    #[cold]
    fn error(&mut self, error: RowError) -> Verdict {
        // A page has at most 2042 line pointers. More entries of an index may point to it, if both are
        // damaged, but then one error is as good as another.
        let number = self.errors.len().min(usize::from(u16::MAX)) as u16;
        self.errors.push(error);
        Verdict::Error(number)
    }
}

/// Adds the row's location to a problem. We only do this for errors, because building the path
/// needs a memory allocation.
#[cold]
fn row_error(relation: &Relation, tid: Tid, problem: RowProblem) -> RowError {
    RowError { location: relation.location(tid.block).at_item(tid.item), problem }
}

/// The current page of a scan, pinned and under a share lock.
pub struct HeapPage<'s> {
    page: Page<'s>,
    block: BlockNo,
    relation: &'s Relation,
    page_rows: &'s PageRows,
}

impl fmt::Debug for HeapPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapPage({}, {} rows)", self.block, self.len())
    }
}

/// One tuple of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapRow<'p> {
    /// Its block and line pointer (`ctid`).
    pub tid: Tid,
    /// Its visibility.
    pub state: RowState,
    /// Its bytes.
    pub tuple: HeapTuple<'p>,
    /// [`ChainRoot::entry`] of the index entry that has led to the row; 0 in other scans.
    pub entry: u32,
}

impl<'s> HeapPage<'s> {
    pub(super) fn new(
        page: Page<'s>,
        block: BlockNo,
        relation: &'s Relation,
        page_rows: &'s PageRows,
    ) -> Self {
        Self { page, block, relation, page_rows }
    }

    /// The block number.
    pub fn block(&self) -> BlockNo {
        self.block
    }

    /// The bytes of the page.
    pub fn bytes(&self) -> &PageBytes {
        &self.page
    }

    /// Whether the rows must be checked against the condition of the index scan that has led to the
    /// page, because a lossy bitmap doesn't know its rows.
    pub fn needs_recheck(&self) -> bool {
        self.page_rows.recheck
    }

    /// Whether the page has only the rows that an index scan has listed, rather than all of them.
    pub fn is_listed(&self) -> bool {
        self.page_rows.listed
    }

    /// The number of rows that pass the filter, including rows with errors.
    pub fn len(&self) -> usize {
        match self.page_rows.all_visible {
            true => normal_lines(&self.page).count(),
            false => self.page_rows.entries.len(),
        }
    }

    /// Whether no row passes the filter.
    pub fn is_empty(&self) -> bool {
        match self.page_rows.all_visible {
            true => normal_lines(&self.page).next().is_none(),
            false => self.page_rows.entries.is_empty(),
        }
    }

    /// Returns the rows that pass the filter, in the order of their line pointers, or in the order in
    /// which they were listed ([`HeapPage::is_listed`]). If a row is invalid, we return an error for
    /// it, regardless of the filter.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.page, self.block, self.relation, self.page_rows)
    }

    /// Appends the data of all rows to `data`, if each of them has this many columns, and no nulls, so
    /// that columns of fixed length are at the same offsets in all of them. Returns false if that
    /// isn't so; the data of some rows may then have been appended. This is faster than
    /// [`HeapPage::rows`] for callers that need nothing else of a row.
    ///
    /// # Errors
    /// That of the first invalid row.
    pub fn plain_data<'a>(
        &'a self,
        columns: u16,
        data: &mut Vec<&'a [u8]>,
    ) -> Result<bool, RowError> {
        let rows = self.rows();
        let is_plain = |tuple: &HeapTuple<'_>| tuple.nulls().is_empty() && tuple.natts() >= columns;
        if !self.page_rows.all_visible {
            data.reserve(self.page_rows.entries.len());
            for row in rows {
                let tuple = row?.tuple;
                if !is_plain(&tuple) {
                    return Ok(false);
                }
                data.push(tuple.data());
            }
            return Ok(true);
        }
        data.reserve(usize::from(PageHeader::parse(&self.page).line_pointer_count()));
        for (item, line) in normal_lines(&self.page) {
            let tuple = HeapTuple::parse(item, line.item(&self.page).unwrap_or_default());
            let Ok(tuple) = tuple else { return Err(rows.outside(item)) };
            if !is_plain(&tuple) {
                return Ok(false);
            }
            data.push(tuple.data());
        }
        Ok(true)
    }

    /// Counts the rows that pass the filter. On an all-visible page, only the line pointers are read,
    /// so an item that isn't a tuple is counted if it is long enough for one.
    ///
    /// # Errors
    /// That of the first invalid row.
    pub fn count_rows(&self) -> Result<usize, RowError> {
        let rows = self.rows();
        if !self.page_rows.all_visible {
            return rows.map(|row| row.map(|_| 1)).sum();
        }
        let mut count = 0;
        for (item, line) in normal_lines(&self.page) {
            match line.item(&self.page) {
                Some(bytes) if bytes.len() >= usize::from(TUPLE_HEADER_SIZE) => count += 1,
                _ => return Err(rows.outside(item)),
            }
        }
        Ok(count)
    }

    /// The table that the page belongs to.
    pub(super) fn relation(&self) -> &'s Relation {
        self.relation
    }

    /// The rows that pass the filter.
    pub(super) fn page_rows(&self) -> &'s PageRows {
        self.page_rows
    }
}

/// The rows of a page.
#[derive(Debug, Clone)]
pub struct Rows<'p> {
    page: &'p PageBytes,
    block: BlockNo,
    relation: &'p Relation,
    page_rows: &'p PageRows,
    /// If the page is all-visible, this is the last line pointer we returned; otherwise it's the
    /// index of the next entry.
    next: u32,
    end: u32,
}

impl<'p> Rows<'p> {
    #[inline]
    pub(super) fn new(
        page: &'p PageBytes,
        block: BlockNo,
        relation: &'p Relation,
        page_rows: &'p PageRows,
    ) -> Self {
        let end = match page_rows.all_visible {
            true => PageHeader::parse(page).line_pointer_count().into(),
            false => page_rows.entries.len() as u32,
        };
        Self { page, block, relation, page_rows, next: 0, end }
    }

    /// Returns the row for an entry. Parsing the tuple again is cheap, so we do that here rather
    /// than store the parsed tuple, which would make entries larger.
    #[inline]
    fn row(&self, entry: &Entry) -> Result<HeapRow<'p>, RowError> {
        let Entry { item, offset, length, number: entry, verdict } = *entry;
        match verdict {
            Verdict::State(state) => {
                let start = usize::from(offset);
                // live() always sets the state to `Live`, so we must replace that with the real
                // state.
                let row = self.live(item, self.page.get(start..start + usize::from(length)))?;
                Ok(HeapRow { state, entry, ..row })
            }
            Verdict::Error(number) => {
                let error = self.page_rows.errors.get(usize::from(number)).cloned();
                Err(error.unwrap_or_else(|| self.outside(item)))
            }
        }
    }

    /// Parses the tuple of a live row.
    #[inline]
    fn live(&self, item: u16, bytes: Option<&'p [u8]>) -> Result<HeapRow<'p>, RowError> {
        match HeapTuple::parse(item, bytes.unwrap_or_default()) {
            Ok(tuple) => {
                let tid = Tid { block: self.block, item };
                Ok(HeapRow { tid, state: RowState::Live, tuple, entry: 0 })
            }
            Err(_) => Err(self.outside(item)),
        }
    }

    /// The error for a tuple that doesn't fit into its item or page.
    #[cold]
    fn outside(&self, item: u16) -> RowError {
        row_error(self.relation, Tid { block: self.block, item }, RowProblem::Outside)
    }
}

impl<'p> Iterator for Rows<'p> {
    type Item = Result<HeapRow<'p>, RowError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            self.next += 1;
            // Entries exist only if visibility was checked.
            if !self.page_rows.all_visible {
                let entry = self.page_rows.entries.get(self.next as usize - 1)?;
                return Some(self.row(entry));
            }
            let item = self.next as u16;
            let line = line_pointer(self.page, item)?;
            if line.flags == LinePointerFlags::Normal {
                return Some(self.live(item, line.item(self.page)));
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.end.saturating_sub(self.next) as usize))
    }
}

/// The line pointers that point to a tuple (`LP_NORMAL`). This excludes redirected, dead and unused
/// line pointers.
#[inline]
fn normal_lines(page: &PageBytes) -> impl Iterator<Item = (u16, LinePointer)> + '_ {
    line_pointers(page).filter(|(_, line)| line.flags == LinePointerFlags::Normal)
}
