//! One page of a scan: which of its rows are handed out, and what is wrong with others.
//!
//! All rows of a page are judged when it arrives, as servers do it: the answers then do not depend
//! on when the consumer comes to a row, and nobody need look anything up while rows are handed out.
//! Of a page that says that everyone sees its rows there is nothing to judge, and each is looked at
//! once, when it is handed out: bringing it into the processor's cache is most of what it costs.

use std::fmt;

use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::page::{
    LinePointer, LinePointerFlags, PageHeader, is_new, line_pointer, line_pointers,
};
use trunkline_format::segment::segment_of;
use trunkline_format::transam::{RowState, XidStatusLookup, row_state};
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapTuple, PageBytes, Tid};

use super::RowFilter;
use super::error::{HeapError, RowError, RowProblem};
use crate::pool::{Page, ReadError};
use crate::storage::Relation;
use crate::transactions::TransactionError;

/// The rows of a page that are handed out. Its memory serves page after page.
#[derive(Debug, Default, Clone)]
pub(super) struct Judged {
    /// Every row is live: the line pointers are all there is to know, and nothing else is kept here.
    all_visible: bool,
    entries: Vec<Entry>,
    errors: Vec<RowError>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    item: u16,
    /// Where the tuple lies in the page, in bytes.
    offset: u16,
    length: u16,
    verdict: Verdict,
}

#[derive(Debug, Clone, Copy)]
enum Verdict {
    State(RowState),
    /// Its number among the page's errors.
    Error(u16),
}

impl Judged {
    /// Judges the rows of `page`, in place of those of the page before.
    pub(super) fn judge<S: XidStatusLookup<Error = TransactionError>>(
        &mut self,
        page: &PageBytes,
        relation: &Relation,
        block: BlockNo,
        rows: RowFilter,
        status: &mut S,
    ) -> Result<(), HeapError> {
        self.all_visible = false;
        self.entries.clear();
        self.errors.clear();
        if is_new(page) {
            return Ok(());
        }
        let special = PageHeader::parse(page).special;
        if usize::from(special) != BLOCK_SIZE {
            let path = relation.path(segment_of(block).0);
            return Err(HeapError::NotATable { path, block, special });
        }
        if is_all_visible(page) {
            self.all_visible = true;
            return Ok(());
        }
        for (item, pointer) in normal_lines(page) {
            let tuple = HeapTuple::parse(item, pointer.item(page).unwrap_or_default());
            let state = match tuple {
                Ok(tuple) => row_state(&tuple, status).map_err(RowProblem::Transaction),
                Err(_) => Err(RowProblem::Outside),
            };
            let verdict = match state {
                Ok(state) if rows == RowFilter::Visible && state != RowState::Live => continue,
                Ok(state) => Verdict::State(state),
                Err(RowProblem::Transaction(TransactionError::Cancelled)) => {
                    return Err(ReadError::Cancelled.into());
                }
                Err(problem) => self.error(row_error(relation, Tid { block, item }, problem)),
            };
            let (offset, length) = (pointer.offset, pointer.length);
            self.entries.push(Entry { item, offset, length, verdict });
        }
        Ok(())
    }

    #[cold]
    fn error(&mut self, error: RowError) -> Verdict {
        // At most 2042, one for each line pointer.
        let number = self.errors.len() as u16;
        self.errors.push(error);
        Verdict::Error(number)
    }
}

#[cold]
fn row_error(relation: &Relation, tid: Tid, problem: RowProblem) -> RowError {
    RowError { path: relation.path(segment_of(tid.block).0), tid, problem }
}

/// A page at hand, locked for reading, until the scan is asked for the next one.
pub struct HeapPage<'s> {
    page: Page<'s>,
    block: BlockNo,
    relation: &'s Relation,
    judged: &'s Judged,
}

impl fmt::Debug for HeapPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapPage({}, {} rows)", self.block, self.len())
    }
}

/// One row version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapRow<'p> {
    /// Where it is (`ctid`).
    pub tid: Tid,
    /// What it is.
    pub state: RowState,
    /// Its bytes.
    pub tuple: HeapTuple<'p>,
}

impl<'s> HeapPage<'s> {
    pub(super) fn new(
        page: Page<'s>,
        block: BlockNo,
        relation: &'s Relation,
        judged: &'s Judged,
    ) -> Self {
        Self { page, block, relation, judged }
    }

    /// The block.
    pub fn block(&self) -> BlockNo {
        self.block
    }

    /// The page's bytes.
    pub fn bytes(&self) -> &PageBytes {
        &self.page
    }

    /// How many rows are handed out, those with errors included.
    pub fn len(&self) -> usize {
        match self.judged.all_visible {
            true => normal_lines(&self.page).count(),
            false => self.judged.entries.len(),
        }
    }

    /// Whether no row is handed out.
    pub fn is_empty(&self) -> bool {
        match self.judged.all_visible {
            true => normal_lines(&self.page).next().is_none(),
            false => self.judged.entries.is_empty(),
        }
    }

    /// The rows that the scan's filter lets pass, in the order of their line pointers; an error in the
    /// place of each that cannot be had, whatever the filter.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.page, self.block, self.relation, self.judged)
    }

    /// The table.
    pub(super) fn relation(&self) -> &'s Relation {
        self.relation
    }

    /// What became of its rows.
    pub(super) fn judged(&self) -> &'s Judged {
        self.judged
    }
}

/// The rows of a page.
#[derive(Debug, Clone)]
pub struct Rows<'p> {
    page: &'p PageBytes,
    block: BlockNo,
    relation: &'p Relation,
    judged: &'p Judged,
    /// The line pointer before the next one, or the next of the rows that were judged.
    next: u16,
    end: u16,
}

impl<'p> Rows<'p> {
    #[inline]
    pub(super) fn new(
        page: &'p PageBytes,
        block: BlockNo,
        relation: &'p Relation,
        judged: &'p Judged,
    ) -> Self {
        let end = match judged.all_visible {
            true => PageHeader::parse(page).line_pointer_count(),
            // At most 2042.
            false => judged.entries.len() as u16,
        };
        Self { page, block, relation, judged, next: 0, end }
    }

    #[inline]
    fn row(&self, entry: &Entry) -> Result<HeapRow<'p>, RowError> {
        let Entry { item, offset, length, verdict } = *entry;
        match verdict {
            Verdict::State(state) => {
                let start = usize::from(offset);
                let row = self.live(item, self.page.get(start..start + usize::from(length)))?;
                Ok(HeapRow { state, ..row })
            }
            Verdict::Error(number) => {
                let error = self.judged.errors.get(usize::from(number)).cloned();
                Err(error.unwrap_or_else(|| self.outside(item)))
            }
        }
    }

    /// The row in these bytes, which is live.
    #[inline]
    fn live(&self, item: u16, bytes: Option<&'p [u8]>) -> Result<HeapRow<'p>, RowError> {
        match HeapTuple::parse(item, bytes.unwrap_or_default()) {
            Ok(tuple) => {
                let tid = Tid { block: self.block, item };
                Ok(HeapRow { tid, state: RowState::Live, tuple })
            }
            Err(_) => Err(self.outside(item)),
        }
    }

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
            if !self.judged.all_visible {
                let entry = self.judged.entries.get(usize::from(self.next - 1))?;
                return Some(self.row(entry));
            }
            let line = line_pointer(self.page, self.next)?;
            if line.flags == LinePointerFlags::Normal {
                return Some(self.live(self.next, line.item(self.page)));
            }
        }
        None
    }
}

/// The line pointers that lead to row versions.
#[inline]
fn normal_lines(page: &PageBytes) -> impl Iterator<Item = (u16, LinePointer)> + '_ {
    line_pointers(page).filter(|(_, line)| line.flags == LinePointerFlags::Normal)
}
