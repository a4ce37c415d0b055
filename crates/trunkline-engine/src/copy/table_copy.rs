//! Copies one table, page by page.
//!
//! Normally we keep a page locked while we print its rows. But if any of the rows have TOAST
//! values, we copy the page and defer printing it, so that we can fetch the values for several
//! pages together. Until that batch has been printed, we must defer all following pages too,
//! because the rows have to stay in physical order.

use trunkline_aio::facade::{Arc, Mutex};

use super::error::{CopyError, Finding, UnknownRows};
use super::line::{InvalidColumn, LineWriter};
use super::options::CopyOptions;
use super::output::LineBuffer;
use super::plan::Plan;
use super::report::CopyReport;
use crate::heap::{
    HeapPage, HeapRow, HeapScan, PageBatch, RowError, ScanOptions, ToastBatch, ToastReader,
    has_external,
};
use crate::job::{Job, WarningLog};
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;
use crate::transactions::Transactions;

/// We fetch a batch as soon as its TOAST values need at least this many bytes. Only the last row of
/// a batch can make it larger than that.
const FETCH_MAX: u64 = 8 << 20;
/// The most pages to defer before their TOAST values are fetched.
const PAGES_MAX: usize = 32;
/// The most findings to keep. All findings are counted.
const FINDINGS_KEPT: usize = 100;

/// The results of all workers together.
#[derive(Default)]
pub(super) struct Results {
    /// Without what only the end of the job shows.
    pub(super) report: CopyReport,
    pub(super) warnings: WarningLog,
}

/// Why a worker stops.
pub(super) enum Stop {
    /// The job was stopped.
    Cancelled,
    Failed(Box<CopyError>),
}

impl From<CopyError> for Stop {
    fn from(error: CopyError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// The copy of one table by one worker.
pub(super) struct TableCopy<'c> {
    pub(super) plan: &'c Plan,
    pub(super) options: &'c CopyOptions,
    pub(super) transactions: &'c Arc<Transactions>,
    pub(super) results: &'c Mutex<Results>,
    pub(super) writer: LineWriter<'c>,
    pub(super) lines: &'c mut LineBuffer,
    /// Rows written.
    pub(super) rows: u64,
    /// Damage that was skipped.
    pub(super) findings: u64,
}

impl TableCopy<'_> {
    /// Copies the table's rows. The statistics of its streams are added to the results even if
    /// there was an error.
    pub(super) fn run(&mut self, job: &Job, backend: &mut Backend) -> Result<(), Stop> {
        let options = ScanOptions {
            stream: self.options.stream,
            rows: self.options.rows,
            ..ScanOptions::default()
        };
        let table = &self.plan.files.rows;
        let mut scan = match HeapScan::of_table(backend, table, self.transactions, options) {
            Ok(scan) => scan,
            Err(error) => return self.finding(Finding::Page(ReadError::from(error).into())),
        };
        let stream = StreamOptions { sequential: false, ..self.options.stream };
        let mut deferred = self.plan.files.toast.clone().map(|table| DeferredPages {
            toast: ToastReader::new(backend, table, self.transactions, stream),
            pages: PageBatch::new(),
            batch: ToastBatch::new(),
            firsts: Vec::new(),
        });
        let mut progress = job.page_progress();
        let ended = loop {
            let step = match (scan.next_page(backend), &mut deferred) {
                // We must copy the page and release its content lock before fetching anything,
                // because a fetch reads the TOAST table through the same pool and may have to wait
                // for I/O.
                (Ok(Some(page)), Some(deferred)) if deferred.wants(&page) => {
                    deferred.pages.push(&page);
                    drop(page);
                    match deferred.pages.len() < PAGES_MAX {
                        true => Ok(()),
                        false => self.deferred_pages(backend, deferred),
                    }
                }
                (Ok(Some(page)), _) => self.page(&page),
                (Err(error), _) if error.is_cancelled() => Err(Stop::Cancelled),
                (other, deferred) => {
                    // Print the deferred pages first, because otherwise the output and the findings
                    // would be out of order.
                    let printed = match deferred {
                        Some(deferred) => self.deferred_pages(backend, deferred),
                        None => Ok(()),
                    };
                    match (printed, other) {
                        (Ok(()), Err(error)) => self.finding(Finding::Page(error)),
                        (Ok(()), Ok(_)) => break Ok(()),
                        (Err(stop), _) => Err(stop),
                    }
                }
            };
            if step.is_err() {
                break step;
            }
            if !progress.page_done() {
                break Err(Stop::Cancelled);
            }
        };
        // Publish the statistics even for an incomplete copy.
        let report = &mut self.results.lock().report;
        report.streams.add(&scan.stats());
        if let Some(deferred) = deferred {
            report.toast_streams.add(&deferred.toast.stats());
        }
        ended
    }

    /// Prints the rows of a page without TOAST values.
    fn page(&mut self, page: &HeapPage<'_>) -> Result<(), Stop> {
        let nothing = ToastBatch::new();
        for row in page.rows() {
            self.row(row, &nothing, 0)?;
        }
        Ok(self.lines.flush_if_full(self.plan)?)
    }

    /// Fetches the TOAST values of the deferred pages and prints their rows, in batches of about
    /// [`FETCH_MAX`] bytes.
    fn deferred_pages(
        &mut self,
        backend: &mut Backend,
        deferred: &mut DeferredPages,
    ) -> Result<(), Stop> {
        let DeferredPages { toast, pages, batch, firsts } = deferred;
        // We need two iterators over the same rows: `ahead` collects the TOAST pointers for a
        // batch, and `rows` then prints the rows of that batch.
        let (mut ahead, mut rows) = (pages.rows(), pages.rows());
        loop {
            batch.clear();
            firsts.clear();
            for row in ahead.by_ref() {
                firsts.push(batch.len());
                if let Ok(row) = row {
                    self.writer.pointers(&row.tuple, batch);
                }
                // Fetch now. The remaining rows form another batch.
                if batch.bytes() >= FETCH_MAX {
                    break;
                }
            }
            if firsts.is_empty() {
                break;
            }
            // We only get an error here if the session was cancelled. Damage is stored in the
            // batch, as the error of the damaged value.
            toast.fetch(backend, batch).map_err(|_| Stop::Cancelled)?;
            for (&first, row) in firsts.iter().zip(rows.by_ref()) {
                self.row(row, batch, first)?;
                self.lines.flush_if_full(self.plan)?;
            }
        }
        drop((ahead, rows));
        pages.clear();
        Ok(())
    }

    /// Prints a row. Its TOAST values start at number `first` in `batch`.
    #[inline]
    fn row(
        &mut self,
        row: Result<HeapRow<'_>, RowError>,
        batch: &ToastBatch,
        first: usize,
    ) -> Result<(), Stop> {
        let row = match row {
            Ok(row) => row,
            Err(error) => return self.finding(Finding::Row(error)),
        };
        match self.writer.write(&row, batch, first, &mut self.lines.pending) {
            Ok(()) => {
                self.rows += 1;
                Ok(())
            }
            Err(InvalidColumn { column, problem }) => {
                let location = self.plan.files.rows.location(row.tid.block);
                let location = location.at_item(row.tid.item);
                let column = column.and_then(|at| self.plan.shown.get(at));
                let column =
                    column.map(|column| String::from_utf8_lossy(&column.name).into_owned());
                self.finding(Finding::Value { location, column, problem })
            }
        }
    }

    /// Records damage, or stops the copy because of it.
    #[cold]
    fn finding(&mut self, finding: Finding) -> Result<(), Stop> {
        let table = self.plan.name.clone();
        if !self.options.keep_going {
            // Write the rows that precede the damage first, so that the user can see in the output
            // how far the copy got.
            self.lines.flush(&table)?;
            return Err(CopyError::Finding { table, finding: Box::new(finding) }.into());
        }
        self.findings += 1;
        let report = &mut self.results.lock().report;
        report.findings_total += 1;
        report.pages_unreadable += u64::from(matches!(finding, Finding::Page(_)));
        // A single missing file can affect any number of rows. If we reported each of them, the
        // other findings would be lost among them.
        if let Some(fault) = finding.file_fault() {
            let same = |known: &&mut UnknownRows| {
                known.table == table
                    && known.first.file_fault().is_some_and(|known| known.path == fault.path)
            };
            match report.unknown_rows.iter_mut().find(same) {
                Some(known) => known.rows += 1,
                None => report.unknown_rows.push(UnknownRows { table, rows: 1, first: finding }),
            }
        } else if report.findings.len() < FINDINGS_KEPT {
            report.findings.push((table, finding));
        }
        Ok(())
    }
}

/// Pages whose rows are waiting for TOAST values.
struct DeferredPages {
    toast: ToastReader,
    pages: PageBatch,
    batch: ToastBatch,
    /// For each row, the number of its first value in the batch.
    firsts: Vec<usize>,
}

impl DeferredPages {
    /// Whether to defer printing a page. We must do that if any of its rows have TOAST values, or
    /// if there are already deferred pages that have to be printed before it.
    fn wants(&self, page: &HeapPage<'_>) -> bool {
        !self.pages.is_empty() || page.rows().flatten().any(|row| has_external(&row.tuple))
    }
}
