//! One page of a scan: which of its rows are handed out, and what is wrong with others.
//!
//! All rows of a page are judged when it arrives, as servers do it: the answers then do not depend
//! on when the consumer comes to a row, and nobody need look anything up while rows are handed out.

use std::fmt;

use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointers};
use trunkline_format::segment::segment_of;
use trunkline_format::transactions::{RowState, TransactionStatus, judge};
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapTuple, PageBytes, Tid};

use super::RowFilter;
use super::error::{HeapError, RowError, RowProblem};
use crate::pool::{Page, ReadError};
use crate::storage::Relation;
use crate::transactions::TransactionError;

/// The rows of a page that are handed out. Its memory serves page after page.
#[derive(Debug, Default)]
pub(super) struct Judged {
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
    pub(super) fn judge<S: TransactionStatus<Error = TransactionError>>(
        &mut self,
        page: &PageBytes,
        relation: &Relation,
        block: BlockNo,
        rows: RowFilter,
        status: &mut S,
    ) -> Result<(), HeapError> {
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
        let all_visible = is_all_visible(page);
        for (item, pointer) in line_pointers(page) {
            if pointer.flags != LinePointerFlags::Normal {
                continue;
            }
            let tuple = HeapTuple::parse(item, pointer.item(page).unwrap_or_default());
            let state = match tuple {
                Ok(_) if all_visible => Ok(RowState::Live),
                Ok(tuple) => judge(&tuple, status).map_err(RowProblem::Transaction),
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
        self.judged.entries.len()
    }

    /// Whether no row is handed out.
    pub fn is_empty(&self) -> bool {
        self.judged.entries.is_empty()
    }

    /// The rows that the scan's filter lets pass, in the order of their line pointers; an error in the
    /// place of each that cannot be had, whatever the filter.
    pub fn rows(&self) -> impl Iterator<Item = Result<HeapRow<'_>, RowError>> + '_ {
        self.judged.entries.iter().map(|entry| self.row(entry))
    }

    #[inline]
    fn row(&self, entry: &Entry) -> Result<HeapRow<'_>, RowError> {
        let Entry { item, offset, length, verdict } = *entry;
        let tid = Tid { block: self.block, item };
        let outside = || row_error(self.relation, tid, RowProblem::Outside);
        match verdict {
            Verdict::State(state) => {
                let start = usize::from(offset);
                let bytes = self.page.get(start..start + usize::from(length)).unwrap_or_default();
                let tuple = HeapTuple::parse(item, bytes).map_err(|_| outside())?;
                Ok(HeapRow { tid, state, tuple })
            }
            Verdict::Error(number) => {
                Err(self.judged.errors.get(usize::from(number)).cloned().unwrap_or_else(outside))
            }
        }
    }
}
