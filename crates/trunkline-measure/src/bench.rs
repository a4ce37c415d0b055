//! **Bench**: measures all cases of a plan, one workload after the other.
//!
//! ```text
//!   for each workload
//!     warm-up    each case once, discarded
//!     round 1    case 1, case 2, … case n
//!     round 2    case n, … case 2, case 1          only those that aren't over yet
//!     …
//! ```
//! The cases of a workload are interleaved, because a machine that is shared with others, or a disk
//! with burst credit, gets slower and faster over minutes. If we finished one method before the
//! next, such a change would look like a difference between them. The order alternates, so that no
//! case always runs after the same one.
//!
//! After each round, the results so far are put into [`Results`], which the caller shares. If a system
//! call hangs after Ctrl-C, the caller gives up this thread, and still has the results.
//!
//! A case that fails doesn't end the measurement: hours of results would be lost. It is reported, and
//! the first such error is returned at the end.
//!
//! When the cases end, and what a server changes about it: `series`. What is published: `section`.

mod section;
mod series;
#[cfg(test)]
mod tests;

use trunkline_aio::Canceller;
use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::Engine;

pub use self::section::Results;
use self::section::Section;
use self::series::{Progress, Series, interleave, settle};
use crate::error::{MeasureError, proceed};
use crate::machine::Machine;
use crate::repetition::RepetitionRule;
use crate::report::{
    Key, MeasuredConfiguration, MeasuredServer, MeasuredTable, Report, Skipped, SlowDisk,
};
use crate::runner::{Peer, Runner, ScratchTable};
use crate::server::{Server, ServerError, ServerMethod};
use crate::table::Table;
use crate::watcher::Watcher;
use crate::workload::{Case, Plan, Workload};

/// A measurement that is ready to run.
pub struct Bench {
    engine: Engine,
    runner: Runner,
    plan: Plan,
    rule: RepetitionRule,
    watcher: Arc<dyn Watcher>,
}

/// What the caller knows about the run, for the report.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The exact command line.
    pub command_line: String,
    /// Version of the program.
    pub program: String,
    /// The slow disk with the table.
    pub slow_disk: Option<SlowDisk>,
}

impl Bench {
    /// Opens the sessions. The engine needs page memory beside the pool for the windows of `verify`
    /// and one page for each session, and `max_sessions` must allow for `verify`'s workers.
    ///
    /// # Errors
    /// [`MeasureError`]: a session can't be opened, or the table can't be read.
    pub fn new(
        engine: &Engine,
        tables: (Table, Option<Peer>),
        scratch: Option<ScratchTable>,
        (plan, rule): (Plan, RepetitionRule),
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self, MeasureError> {
        let sessions = plan.sessions.iter().copied().max().unwrap_or(1);
        let numbers = (sessions, plan.seed);
        let runner = Runner::new(engine, tables, scratch, numbers, Arc::clone(&watcher))?;
        Ok(Self { engine: engine.clone(), runner, plan, rule, watcher })
    }

    /// These cancel all waits of the measuring sessions.
    pub fn cancellers(&mut self) -> Vec<Canceller> {
        self.runner.cancellers()
    }

    /// The report, still without measurements. [`Bench::run`] adds them.
    pub fn results(&self, origin: Origin) -> Results {
        let table = self.runner.table();
        let settings = self.engine.settings();
        Results(Arc::new(Mutex::new(Report {
            schema: Report::SCHEMA,
            command: "bench".to_owned(),
            command_line: origin.command_line,
            program: origin.program,
            started: clock::unix_micros() / 1_000_000,
            machine: Machine::describe(table.first_file().unwrap_or(std::path::Path::new("."))),
            table: self.described(table),
            shared_buffers: self.engine.pool().buffers(),
            io_min_workers: settings.io_min_workers(),
            io_max_workers: settings.io_max_workers(),
            slow_disk: origin.slow_disk,
            server: self.runner.peer().map(|peer| MeasuredServer {
                name: peer.server.name(),
                settings: peer.server.settings(),
                configurations: configurations(&peer.server),
                linear_10: self.described(&peer.linear_10),
            }),
            seed: self.plan.seed,
            rule: self.rule,
            complete: false,
            against: None,
            measurements: Vec::new(),
            best: Vec::new(),
            skipped: Vec::new(),
        })))
    }

    /// Measures. If the watcher ends it, `results` has what was measured until then, and so it has
    /// after an error.
    ///
    /// # Errors
    /// [`MeasureError`] of the first case that failed: something couldn't be read or written, or the
    /// wrong number of blocks was. Other cases were still measured, unless the cluster can't be read
    /// any more.
    pub fn run(mut self, results: &Results) -> Result<(), MeasureError> {
        let workloads = self.possible(results);
        let cases = workloads.iter().map(|workload| self.plan.cases(*workload).len()).sum();
        let mut progress = Progress { done: 0, cases: (0, cases), started: clock::now() };
        let mut failed = None;
        for workload in workloads {
            let mut all = self.begin(workload);
            progress.cases.0 += all.len();
            let section = Section::after(&results.0.lock(), self.rule);
            let (rule, watcher) = (self.rule, Arc::clone(&self.watcher));
            let measured = interleave(
                &mut all,
                |all, at, round| {
                    proceed(&*watcher)?;
                    watcher.begins(&all[at].case);
                    self.repeat(&mut all[at], round, &mut failed)?;
                    settle(all, &rule);
                    progress.done += 1;
                    watcher.progressed(progress.done, progress.total(&rule, all), &all[at].case);
                    watcher.estimated(progress.remaining(&rule, all));
                    Ok(())
                },
                |all| section.publish(all, results),
            );
            section.publish(&all, results);
            match measured {
                Ok(()) => {}
                // A session whose wait was cancelled reports a failed read.
                Err(_) if self.watcher.cancelled() => return Ok(()),
                Err(MeasureError::Cancelled) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        results.0.lock().complete = failed.is_none();
        failed.map_or(Ok(()), Err)
    }

    fn described(&self, table: &Table) -> MeasuredTable {
        MeasuredTable {
            name: table.name().to_owned(),
            blocks: table.blocks(),
            rows_per_page: self.runner.rows_per_page(),
        }
    }

    /// The workloads to measure. Those that a server can't do are named in the report.
    fn possible(&self, results: &Results) -> Vec<Workload> {
        let Some(server) = self.runner.peer().map(|peer| &peer.server) else {
            return self.plan.workloads.clone();
        };
        let name = server.name();
        let reason = |workload: Workload| match workload {
            Workload::Prewarm if !server.has_prewarm() => Some("it has no extension pg_prewarm"),
            workload => workload.without_equal(),
        };
        let skip = |workload: &Workload| {
            let case = self.plan.cases(*workload).into_iter().find(|case| case.server.is_some());
            let reason = reason(*workload)?.to_owned();
            Some(Skipped { key: Key::of(&case?, &name), reason })
        };
        results.0.lock().skipped.extend(self.plan.workloads.iter().filter_map(skip));
        let workloads = self.plan.workloads.iter().copied();
        workloads.filter(|workload| reason(*workload).is_none()).collect()
    }

    fn begin(&self, workload: Workload) -> Vec<Series> {
        self.plan.cases(workload).into_iter().map(Series::new).collect()
    }

    /// Runs a case once. An unavailable case is skipped. Keeps the first error of a case in `failed`.
    ///
    /// # Errors
    /// The measurement can't go on.
    fn repeat(
        &mut self,
        series: &mut Series,
        round: u64,
        failed: &mut Option<MeasureError>,
    ) -> Result<(), MeasureError> {
        let case = series.case;
        let status = self.engine.aio().set_method(case.method.into());
        if case.server.is_none() && status.used != case.method.into() {
            let reason = status.fallbacks.last().map(ToString::to_string);
            series.skip(reason.unwrap_or_else(|| format!("{} is not available", case.method)));
            return Ok(());
        }
        let started = clock::now();
        let (sample, cached) = match self.runner.run(&case) {
            Ok(done) => done,
            // A session whose wait was cancelled reports a failed read.
            Err(error) if self.watcher.cancelled() || error.is_of_run() => return Err(error),
            Err(error) if error.is_of_direct_io() || is_of_server_case(&error, &case) => {
                series.skip(error.to_string());
                return Ok(());
            }
            Err(error) => {
                let problem = self.runner.durable_direct_problem().filter(|_| case.direct);
                match (case.workload, problem) {
                    (Workload::Durable, Some(problem)) => series.skip(problem.to_owned()),
                    _ => {
                        series.skip(error.to_string());
                        failed.get_or_insert(error);
                    }
                }
                return Ok(());
            }
        };
        series.repeated(&self.rule, round, clock::now().since(started), (sample, cached));
        Ok(())
    }
}

/// The configurations of a server that are compared.
fn configurations(server: &Server) -> Vec<MeasuredConfiguration> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let of = |(method, shown): &(ServerMethod, Vec<(String, String)>)| MeasuredConfiguration {
        name: method.name().to_owned(),
        lines: match method {
            ServerMethod::Settings => server.lines().iter().map(owned).collect(),
            _ => Vec::new(),
        },
        shown: shown.clone(),
    };
    server.configurations().iter().map(of).collect()
}

/// Whether the server can't do this case, but may do others. A server that doesn't start with
/// io_uring was built without it, or isn't permitted to use it.
fn is_of_server_case(error: &MeasureError, case: &Case) -> bool {
    let MeasureError::Server(error) = error else { return false };
    let no_ring =
        matches!(error, ServerError::Ended { .. }) && case.server == Some(ServerMethod::IoUring);
    error.is_of_case() || no_ring
}
