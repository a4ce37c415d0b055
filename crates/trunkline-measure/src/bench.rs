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

use std::time::Duration;

use trunkline_aio::Canceller;
use trunkline_aio::clock;
use trunkline_aio::facade::Arc;
use trunkline_engine::Engine;

use crate::error::MeasureError;
use crate::machine::Machine;
use crate::repetition::RepetitionRule;
use crate::report::{Key, MeasuredTable, Measurement, Report, Skipped};
use crate::runner::{Runner, ScratchTable};
use crate::sample::Sample;
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
}

/// One case while it is being repeated.
struct Series {
    case: Case,
    samples: Vec<Sample>,
    seconds: Vec<f64>,
    /// Largest part of the table in the page cache.
    cached: Option<f64>,
    spent: Duration,
    is_over: bool,
    /// Why it has no result.
    problem: Option<String>,
}

impl Bench {
    /// Opens the sessions. The engine needs page memory beside the pool for the windows of `verify`
    /// and one page for each session, and `max_sessions` must allow for `verify`'s workers.
    ///
    /// # Errors
    /// [`MeasureError`]: a session can't be opened, or the table can't be read.
    pub fn new(
        engine: &Engine,
        table: Table,
        scratch: Option<ScratchTable>,
        plan: Plan,
        rule: RepetitionRule,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self, MeasureError> {
        let sessions = plan.sessions.iter().copied().max().unwrap_or(1);
        let numbers = (sessions, plan.seed);
        let runner = Runner::new(engine, table, scratch, numbers, Arc::clone(&watcher))?;
        Ok(Self { engine: engine.clone(), runner, plan, rule, watcher })
    }

    /// These cancel all waits of the measuring sessions.
    pub fn cancellers(&mut self) -> Vec<Canceller> {
        self.runner.cancellers()
    }

    /// Measures. If the watcher ends it, the report has the cases that were complete.
    ///
    /// # Errors
    /// [`MeasureError`]: something couldn't be read or written, or the wrong number of blocks was.
    pub fn run(mut self, origin: Origin) -> Result<Report, MeasureError> {
        let table = self.runner.table();
        let mut report = Report {
            schema: Report::SCHEMA,
            command: "bench".to_owned(),
            command_line: origin.command_line,
            program: origin.program,
            started: clock::unix_micros() / 1_000_000,
            machine: Machine::describe(table.first_file().unwrap_or(std::path::Path::new("."))),
            table: MeasuredTable {
                name: table.name().to_owned(),
                blocks: table.blocks(),
                rows_per_page: self.runner.rows_per_page(),
            },
            shared_buffers: self.engine.pool().buffers(),
            seed: self.plan.seed,
            rule: self.rule,
            complete: false,
            measurements: Vec::new(),
            skipped: Vec::new(),
        };
        let workloads: Vec<Workload> = self.plan.workloads.clone();
        let of = |workload: &Workload| self.plan.cases(*workload).len() as u64;
        let mut total = workloads.iter().map(of).sum::<u64>() * self.repetitions_max();
        let mut done = 0;
        for workload in workloads {
            let mut all = self.begin(workload);
            let measured = self.measure(&mut all, &mut done, &mut total);
            for series in all {
                series.finish(&self.rule, &mut report);
            }
            match measured {
                Ok(()) => {}
                // A session whose wait was cancelled reports a failed read.
                Err(_) if self.watcher.cancelled() => return Ok(report),
                Err(MeasureError::Cancelled) => return Ok(report),
                Err(error) => return Err(error),
            }
        }
        report.complete = true;
        Ok(report)
    }

    /// Repetitions of one case with the warm-up, at most.
    fn repetitions_max(&self) -> u64 {
        u64::from(self.rule.repetitions_max) + 1
    }

    fn begin(&self, workload: Workload) -> Vec<Series> {
        let begin = |case| Series {
            case,
            samples: Vec::new(),
            seconds: Vec::new(),
            cached: None,
            spent: Duration::ZERO,
            is_over: false,
            problem: None,
        };
        self.plan.cases(workload).into_iter().map(begin).collect()
    }

    /// Repeats the cases in turn until all are over.
    fn measure(
        &mut self,
        all: &mut [Series],
        done: &mut u64,
        total: &mut u64,
    ) -> Result<(), MeasureError> {
        for round in 0.. {
            let mut order: Vec<usize> = (0..all.len()).filter(|&at| !all[at].is_over).collect();
            if order.is_empty() {
                break;
            }
            if round % 2 == 0 {
                order.reverse();
            }
            for at in order {
                if self.watcher.cancelled() {
                    return Err(MeasureError::Cancelled);
                }
                let series = &mut all[at];
                self.repeat(series, round == 0)?;
                *done += 1;
                if series.is_over {
                    *total -= self.repetitions_max().saturating_sub(round + 1);
                }
                self.watcher.progressed(*done, *total, &series.case);
            }
        }
        Ok(())
    }

    /// Runs a case once. A case that isn't possible here is over.
    fn repeat(&mut self, series: &mut Series, is_warm_up: bool) -> Result<(), MeasureError> {
        let case = series.case;
        let status = self.engine.aio().set_method(case.method.into());
        if status.used != case.method.into() {
            let reason = status.fallbacks.last().map(ToString::to_string);
            series.skip(reason.unwrap_or_else(|| format!("{} is not available", case.method)));
            return Ok(());
        }
        let started = clock::now();
        let (sample, cached) = match self.runner.run(&case) {
            Ok(done) => done,
            Err(error) if error.is_of_direct_io() => {
                series.skip(error.to_string());
                return Ok(());
            }
            Err(error) => {
                let problem = self.runner.durable_direct_problem().filter(|_| case.direct);
                match (case.workload, problem) {
                    (Workload::Durable, Some(problem)) => {
                        series.skip(problem.to_owned());
                        return Ok(());
                    }
                    _ => return Err(error),
                }
            }
        };
        series.spent += clock::now().since(started);
        if !is_warm_up {
            series.seconds.push(sample.seconds);
            series.samples.push(sample);
            series.cached = cached.map(|part| part.max(series.cached.unwrap_or(0.0)));
            series.is_over = self.rule.is_over(&series.seconds, series.spent);
        }
        Ok(())
    }
}

impl Series {
    fn skip(&mut self, reason: String) {
        self.problem = Some(reason);
        self.is_over = true;
    }

    /// Adds the result to the report. A case without any repetition has none.
    fn finish(self, rule: &RepetitionRule, report: &mut Report) {
        if let Some(reason) = self.problem {
            report.skipped.push(Skipped { key: Key::of(&self.case), reason });
        } else if !self.samples.is_empty() {
            let steady = rule.is_steady(&self.seconds);
            let (case, samples) = (&self.case, &self.samples);
            report.measurements.push(Measurement::of(case, samples, self.cached, steady));
        }
    }
}
