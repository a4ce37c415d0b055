//! The threads of a copy: each takes a task, and goes through its tables page by page.
//!
//! A page stays locked while its rows are printed. Pages whose rows have values in TOAST are copied, and
//! those of several are fetched together. What was printed is handed to the output in pieces.

use std::io;

use trunkline_aio::sync::atomic::{AtomicUsize, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::BLOCK_SIZE;
use trunkline_format::segment::segment_of;

use super::error::{CopyError, Finding};
use super::plan::Plan;
use super::row::{Broken, Lines};
use super::{CopyOptions, Output, Outputs, Task};
use crate::catalog::Database;
use crate::heap::{
    HeapPage, HeapRow, HeapScan, PageCopies, RowError, ScanOptions, ToastBatch, ToastReader,
    has_external,
};
use crate::job::{Job, WarningLog};
use crate::pool::{Backend, Pool, ReadError};
use crate::read_stream::{StreamOptions, StreamStats};
use crate::transactions::Transactions;

/// Bytes that are handed to an output at once, at least.
const PIECE: usize = 128 << 10;
/// Bytes of TOASTed values that are fetched at once, at most, unless a single row has more.
const FETCH_MAX: u64 = 8 << 20;
/// Pages whose values are fetched together.
const COPIES_MAX: usize = 32;
/// Findings that are kept; more are only counted.
const FINDINGS_KEPT: usize = 100;

/// One copy, shared by its threads.
pub(super) struct Copy {
    pub(super) pool: Pool,
    pub(super) database: Arc<Database>,
    pub(super) transactions: Arc<Transactions>,
    pub(super) tasks: Vec<Task>,
    /// The task that nobody has taken yet.
    pub(super) next: AtomicUsize,
    pub(super) outputs: Arc<dyn Outputs>,
    pub(super) options: CopyOptions,
    pub(super) found: Mutex<Found>,
}

#[derive(Default)]
pub(super) struct Found {
    pub(super) tasks: usize,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) findings: Vec<(String, Finding)>,
    pub(super) findings_total: u64,
    pub(super) values_gone: u64,
    pub(super) streams: StreamStats,
    pub(super) toast_streams: StreamStats,
    pub(super) warnings: WarningLog,
}

/// Why a thread does not go on.
enum Stop {
    /// Somebody said so.
    Cancelled,
    Failed(Box<CopyError>),
}

impl From<ReadError> for Stop {
    /// Of the means of reading only; what is wrong with a page is a finding.
    fn from(_: ReadError) -> Self {
        Self::Cancelled
    }
}

impl Copy {
    pub(super) fn coordinate(self: Arc<Self>, job: &Arc<Job>) -> Result<(), CopyError> {
        let plans = self.tasks.iter().flat_map(|task| &task.plans);
        // A file that cannot be had is reported when it is its turn.
        let blocks: u64 = plans.map(|plan| u64::from(plan.files.rows.blocks().unwrap_or(0))).sum();
        job.observer().begins(self.tasks.len(), blocks * BLOCK_SIZE as u64);
        let threads = (self.options.threads as usize).clamp(1, self.tasks.len().max(1));
        job.run_workers(threads, || Ok(()), move |job, number| self.worker(job, number))
    }

    fn worker(&self, job: &Job, number: usize) -> Result<(), CopyError> {
        let kind = Job::backend_type(number);
        let mut backend = job.backend(&self.pool, kind, self.options.policy)?;
        loop {
            // Alone, orders nothing else.
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(number) else { return Ok(()) };
            let ended = self.task(job, &mut backend, number, task);
            let mut found = self.found.lock();
            found.warnings.take_from(&mut backend);
            match ended {
                Ok(()) => found.tasks += 1,
                // Cancellation is not an error of the copy: the caller asked for it.
                Err(Stop::Cancelled) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(*error),
            }
        }
    }

    fn task(
        &self,
        job: &Job,
        backend: &mut Backend,
        number: usize,
        task: &Task,
    ) -> Result<(), Stop> {
        let name = || task.plans.first().map_or_else(String::new, |plan| plan.name.clone());
        let failed = |source| Stop::Failed(Box::new(CopyError::Output { table: name(), source }));
        let mut writer = Writer {
            output: self.outputs.open(number).map_err(failed)?,
            pending: Vec::with_capacity(2 * PIECE),
            rows: 0,
            bytes: 0,
            findings: 0,
        };
        for (at, plan) in task.plans.iter().enumerate() {
            let options = self.options.text.options(&self.database);
            let mut lines = Lines::new(plan, self.options.format, self.options.extras, options);
            if at == 0 && self.options.header {
                lines.header(&mut writer.pending);
            }
            let copied = self.table(job, backend, plan, &mut lines, &mut writer);
            self.found.lock().values_gone += lines.gone;
            copied?;
        }
        writer.flush().map_err(failed)?;
        let Writer { output, rows, bytes, findings, .. } = writer;
        output.finish(findings == 0).map_err(failed)?;
        let mut found = self.found.lock();
        found.rows += rows;
        found.bytes += bytes;
        Ok(())
    }

    fn table(
        &self,
        job: &Job,
        backend: &mut Backend,
        plan: &Plan,
        lines: &mut Lines<'_>,
        writer: &mut Writer,
    ) -> Result<(), Stop> {
        let options = ScanOptions { stream: self.options.stream, rows: self.options.rows };
        let rows = &plan.files.rows;
        let mut scan = match HeapScan::of_table(backend, rows, &self.transactions, options) {
            Ok(scan) => scan,
            Err(error) => {
                return self.finding(plan, writer, Finding::Page(ReadError::from(error).into()));
            }
        };
        let stream = StreamOptions { sequential: false, ..self.options.stream };
        let toast = plan.files.toast.clone();
        let mut toast =
            toast.map(|table| ToastReader::new(backend, table, &self.transactions, stream));
        let (mut fetch, mut progress) = (Fetch::default(), job.page_progress());
        let ended = loop {
            let step = match scan.next_page(backend) {
                Ok(Some(page)) if toast.is_some() && fetch.wants(&page) => {
                    fetch.copies.push(&page);
                    drop(page);
                    match fetch.copies.len() < COPIES_MAX {
                        true => Ok(()),
                        false => self.copies(plan, backend, &mut toast, &mut fetch, lines, writer),
                    }
                }
                Ok(Some(page)) => self.page(plan, &page, lines, writer),
                Err(error) if error.is_cancelled() => Err(Stop::Cancelled),
                other => {
                    let copies = &mut fetch;
                    let printed = self.copies(plan, backend, &mut toast, copies, lines, writer);
                    match (printed, other) {
                        (Ok(()), Err(error)) => self.finding(plan, writer, Finding::Page(error)),
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
        let mut found = self.found.lock();
        found.streams.add(&scan.stats());
        if let Some(toast) = toast {
            found.toast_streams.add(&toast.stats());
        }
        ended
    }

    /// The rows of a page, none of which has values in TOAST.
    fn page(
        &self,
        plan: &Plan,
        page: &HeapPage<'_>,
        lines: &mut Lines<'_>,
        writer: &mut Writer,
    ) -> Result<(), Stop> {
        let nothing = ToastBatch::new();
        for row in page.rows() {
            self.row(plan, row, lines, &nothing, 0, writer)?;
        }
        writer.keep(plan)
    }

    /// The rows of the pages that were copied, their values fetched from TOAST many at a time.
    fn copies(
        &self,
        plan: &Plan,
        backend: &mut Backend,
        toast: &mut Option<ToastReader>,
        fetch: &mut Fetch,
        lines: &mut Lines<'_>,
        writer: &mut Writer,
    ) -> Result<(), Stop> {
        let Some(toast) = toast else { return Ok(()) };
        let Fetch { copies, batch, firsts } = fetch;
        let (mut ahead, mut rows) = (copies.rows(), copies.rows());
        loop {
            batch.clear();
            firsts.clear();
            for row in ahead.by_ref() {
                firsts.push(batch.len());
                if let Ok(row) = row {
                    lines.pointers(&row.tuple, batch);
                }
                if batch.bytes() >= FETCH_MAX {
                    break;
                }
            }
            if firsts.is_empty() {
                break;
            }
            toast.fetch(backend, batch)?;
            for (&first, row) in firsts.iter().zip(rows.by_ref()) {
                self.row(plan, row, lines, batch, first, writer)?;
                writer.keep(plan)?;
            }
        }
        drop((ahead, rows));
        copies.clear();
        Ok(())
    }

    #[inline]
    fn row(
        &self,
        plan: &Plan,
        row: Result<HeapRow<'_>, RowError>,
        lines: &mut Lines<'_>,
        batch: &ToastBatch,
        first: usize,
        writer: &mut Writer,
    ) -> Result<(), Stop> {
        let row = match row {
            Ok(row) => row,
            Err(error) => return self.finding(plan, writer, Finding::Row(error)),
        };
        match lines.write(&row, batch, first, &mut writer.pending) {
            Ok(()) => {
                writer.rows += 1;
                Ok(())
            }
            Err(Broken { column, problem }) => {
                let path = plan.files.rows.path(segment_of(row.tid.block).0);
                let column = column.and_then(|at| plan.shown.get(at));
                let column =
                    column.map(|column| String::from_utf8_lossy(&column.name).into_owned());
                let finding = Finding::Value { path, tid: row.tid, column, problem };
                self.finding(plan, writer, finding)
            }
        }
    }

    /// Notes what is damaged, or stops for it.
    #[cold]
    fn finding(&self, plan: &Plan, writer: &mut Writer, finding: Finding) -> Result<(), Stop> {
        let table = plan.name.clone();
        if !self.options.keep_going {
            // What came before it is printed, so that one sees how far it went.
            writer.keep_all(plan)?;
            return Err(Stop::Failed(Box::new(CopyError::Finding {
                table,
                finding: Box::new(finding),
            })));
        }
        writer.findings += 1;
        let mut found = self.found.lock();
        found.findings_total += 1;
        if found.findings.len() < FINDINGS_KEPT {
            found.findings.push((table, finding));
        }
        Ok(())
    }
}

/// Values that are fetched together.
#[derive(Default)]
struct Fetch {
    /// The pages of their rows.
    copies: PageCopies,
    batch: ToastBatch,
    /// The number of each row's first.
    firsts: Vec<usize>,
}

impl Fetch {
    /// Whether a page's rows are to wait: for values of their own, or for those of rows before them.
    fn wants(&self, page: &HeapPage<'_>) -> bool {
        !self.copies.is_empty() || page.rows().flatten().any(|row| has_external(&row.tuple))
    }
}

/// What is written, and what will be.
struct Writer {
    output: Box<dyn Output>,
    /// Lines that the output was not given yet.
    pending: Vec<u8>,
    rows: u64,
    bytes: u64,
    findings: u64,
}

impl Writer {
    /// Hands the lines over if they are many.
    #[inline]
    fn keep(&mut self, plan: &Plan) -> Result<(), Stop> {
        if self.pending.len() < PIECE { Ok(()) } else { self.keep_all(plan) }
    }

    fn keep_all(&mut self, plan: &Plan) -> Result<(), Stop> {
        let failed = |source| CopyError::Output { table: plan.name.clone(), source };
        self.flush().map_err(|source| Stop::Failed(Box::new(failed(source))))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write(&self.pending)?;
        self.bytes += self.pending.len() as u64;
        self.pending.clear();
        // A huge value is not to be paid for by all that follow.
        self.pending.shrink_to(16 * PIECE);
        Ok(())
    }
}
