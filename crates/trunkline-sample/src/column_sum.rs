//! The sum of an integer column, computed by a parallel sequential scan.
//!
//! This is equivalent to `SELECT sum(column) FROM table`, but it doesn't use the catalogs, so the
//! caller must specify the position of the column within a row. If we can't tell whether a row is
//! visible without looking in the commit log, we count the row but don't add its value to the sum.

use std::sync::Arc;

use trunkline_engine::job::{End, Observer};
use trunkline_engine::pool::Pool;
use trunkline_engine::seq_scan::{
    PageConsumer, SeqScanError, SeqScanOptions, SeqScanReport, seq_scan,
};
use trunkline_engine::storage::Relation;
use trunkline_format::{BlockNo, PageBytes};

use crate::page_sum::{FixedColumn, PageSum, sum_int4};

/// The result of a sum.
#[derive(Debug)]
pub struct SumReport {
    /// Rows and their sum.
    pub total: PageSum,
    /// The first invalid row, by block and line pointer, if any.
    pub corrupt: Option<(BlockNo, u16)>,
    /// The report of the underlying scan. If the scan ended early, the sum includes only the pages
    /// that were scanned.
    pub scan: SeqScanReport,
}

impl SumReport {
    /// Whether the sum covers all visible rows, apart from pages with warnings.
    pub fn is_exact(&self) -> bool {
        self.scan.end == End::Complete && self.total.is_exact()
    }
}

/// Sums a column over the visible rows of a table.
///
/// # Errors
/// See [`SeqScanError`].
pub fn sum(
    pool: &Pool,
    relation: &Relation,
    column: FixedColumn,
    options: SeqScanOptions,
    observer: Arc<dyn Observer>,
) -> Result<SumReport, SeqScanError> {
    let consumer = move || ColumnSum { column, total: PageSum::default(), corrupt: None };
    let (parts, scan) = seq_scan(pool, relation, options, observer, consumer)?;
    let mut total = PageSum::default();
    parts.iter().for_each(|part| total.add(&part.total));
    let corrupt = parts.iter().filter_map(|part| part.corrupt).min();
    Ok(SumReport { total, corrupt, scan })
}

/// The sum computed by one participant of the parallel scan, which is either the leader or a
/// worker. Each participant has its own sum, so that they don't have to synchronise with each other
/// until the end.
struct ColumnSum {
    column: FixedColumn,
    total: PageSum,
    corrupt: Option<(BlockNo, u16)>,
}

impl PageConsumer for ColumnSum {
    #[inline]
    fn page(&mut self, block: BlockNo, page: &PageBytes) {
        let sum = sum_int4(page, self.column);
        self.total.add(&sum);
        let found = sum.corrupt.map(|item| (block, item));
        self.corrupt = [self.corrupt, found].into_iter().flatten().min();
    }
}
