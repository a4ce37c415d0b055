//! The job that runs a copy: its workers take tasks from a list until none are left.
//!
//! Each worker has its own backend. [`Results`] adds up all workers' results.

use trunkline_aio::facade::atomic::{AtomicUsize, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::BLOCK_SIZE;

use super::error::CopyError;
use super::line::LineWriter;
use super::options::CopyOptions;
use super::output::{CopyTask, LineBuffer, Outputs};
use super::report::CopyReport;
use super::table_copy::{Results, Stop, TableCopy};
use crate::catalog::Database;
use crate::datadir::DataDir;
use crate::job::{Job, JobError, Observer};
use crate::pool::{Backend, Pool};

/// Copies the tables of all tasks. They must be tables of `database`, in the cluster `dir`.
///
/// Once a second, before we finish each output, and at the end, we check that no server has started
/// on `dir`. If an output was finished, we therefore know that the cluster was stopped while we
/// copied its rows.
///
/// # Errors
/// See [`CopyError`].
pub fn copy(
    pool: &Pool,
    dir: &DataDir,
    database: &Arc<Database>,
    tasks: Vec<CopyTask>,
    outputs: Arc<dyn Outputs>,
    options: CopyOptions,
    observer: Arc<dyn Observer>,
) -> Result<CopyReport, CopyError> {
    let job = Job::new(pool.aio(), observer);
    let copy = Arc::new(CopyJob {
        pool: pool.clone(),
        dir: dir.clone(),
        database: Arc::clone(database),
        tasks,
        next: AtomicUsize::new(0),
        outputs,
        options,
        results: Mutex::default(),
    });
    copy.results.lock().report.rows_of_tasks = vec![None; copy.tasks.len()];
    let before = pool.total();
    let shared = Arc::clone(&copy);
    let summary = job.run(move |job| shared.coordinate(job))?;
    let Results { report, warnings } = std::mem::take(&mut *copy.results.lock());
    Ok(CopyReport {
        end: summary.end,
        blocks: summary.blocks,
        counts: pool.total().since(&before),
        warnings: warnings.kept,
        warnings_lost: warnings.lost,
        elapsed: summary.working,
        io: summary.io,
        ..report
    })
}

/// One copy, shared by its workers.
struct CopyJob {
    pool: Pool,
    dir: DataDir,
    database: Arc<Database>,
    tasks: Vec<CopyTask>,
    /// The next task that no worker has taken yet.
    next: AtomicUsize,
    outputs: Arc<dyn Outputs>,
    options: CopyOptions,
    results: Mutex<Results>,
}

impl CopyJob {
    /// Announces the amount of work and starts the workers, but no more of them than there are
    /// tasks.
    fn coordinate(self: Arc<Self>, job: &Arc<Job>) -> Result<(), CopyError> {
        let plans = self.tasks.iter().flat_map(|task| &task.plans);
        // If a file can't be opened here, we don't report that until its table is copied.
        let blocks: u64 = plans.map(|plan| u64::from(plan.files.rows.blocks().unwrap_or(0))).sum();
        job.observer().begins(self.tasks.len(), blocks * BLOCK_SIZE as u64);
        let workers = (self.options.threads as usize).clamp(1, self.tasks.len().max(1));
        let copy = Arc::clone(&self);
        job.run_workers(workers, || copy.recheck(), move |job, number| self.worker(job, number))
    }

    /// Returns an error if a server has started on the cluster.
    fn recheck(&self) -> Result<(), CopyError> {
        Ok(self.dir.recheck().map_err(JobError::from)?)
    }

    /// Copies tasks until there are none left.
    fn worker(&self, job: &Job, number: usize) -> Result<(), CopyError> {
        let kind = Job::backend_type(number);
        let mut backend = job.backend(&self.pool, kind, self.options.policy)?;
        loop {
            // Relaxed ordering is enough, because the tasks were written before the workers were
            // started, and nothing else depends on the counter.
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(number) else { return Ok(()) };
            // Collect the warnings even if the task has failed, because they may explain why.
            let ended = self.copy_task(job, &mut backend, number, task);
            let mut results = self.results.lock();
            results.warnings.take_from(&mut backend);
            match ended {
                Ok(()) => results.report.tasks += 1,
                // Don't treat cancellation as an error of the copy, because the caller asked for
                // it.
                Err(Stop::Cancelled) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(*error),
            }
        }
    }

    /// Writes all tables of one task to its output. We call finish on the output only if all tables
    /// were copied. Otherwise we just drop it, which gives the implementation a chance to delete
    /// the partial output.
    fn copy_task(
        &self,
        job: &Job,
        backend: &mut Backend,
        number: usize,
        task: &CopyTask,
    ) -> Result<(), Stop> {
        let table = task.plans.first().map_or("", |plan| &plan.name);
        let output = self.outputs.open(number);
        let output = output.map_err(|source| CopyError::output(table, source))?;
        let mut lines = LineBuffer::new(output);
        let (mut rows, mut findings) = (0, 0);
        for (at, plan) in task.plans.iter().enumerate() {
            let text = self.options.text.options(&self.database);
            let writer = LineWriter::new(plan, &self.options.format, self.options.extras, text);
            if at == 0 && self.options.header {
                writer.header(&mut lines.pending);
            }
            let mut copy = TableCopy {
                plan,
                options: &self.options,
                transactions: self.database.transactions(),
                results: &self.results,
                writer,
                lines: &mut lines,
                rows: 0,
                findings: 0,
            };
            let copied = copy.run(job, backend);
            rows += copy.rows;
            findings += copy.findings;
            self.results.lock().report.values_gone += copy.writer.gone;
            copied?;
        }
        let bytes = lines.finish(table, task.whole && findings == 0, || self.recheck())?;
        let report = &mut self.results.lock().report;
        if let Some(of_task) = report.rows_of_tasks.get_mut(number) {
            *of_task = Some(rows);
        }
        report.rows += rows;
        report.bytes += bytes;
        Ok(())
    }
}
