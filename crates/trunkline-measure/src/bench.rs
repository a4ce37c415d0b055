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

use std::time::Duration;

use trunkline_aio::Canceller;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::Engine;

use crate::error::MeasureError;
use crate::machine::Machine;
use crate::repetition::{Ended, RepetitionRule};
use crate::report::{Key, MeasuredTable, Measurement, Repetitions, Report, Skipped};
use crate::runner::{Runner, ScratchTable};
use crate::table::Table;
use crate::watcher::{Watcher, proceed};
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

/// The report of a measurement that may still be running. Clones share it.
#[derive(Debug, Clone)]
pub struct Results(Arc<Mutex<Report>>);

impl Results {
    /// The report as far as it is known.
    pub fn report(&self) -> Report {
        self.0.lock().clone()
    }
}

/// One case while it is being repeated.
struct Series {
    case: Case,
    repetitions: Repetitions,
    spent: Duration,
    /// Time that the last repetition took with its preparation.
    last: Duration,
    is_over: bool,
    /// Why it is over.
    ended: Ended,
    /// Why it has no result, or fewer repetitions.
    problem: Option<String>,
}

/// How far the measurement is.
struct Progress {
    /// Repetitions, with warm-ups.
    done: u64,
    /// The same, at most.
    total: u64,
    /// Cases of workloads that have begun, and of all workloads.
    cases: (usize, usize),
    started: Time,
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
            table: MeasuredTable {
                name: table.name().to_owned(),
                blocks: table.blocks(),
                rows_per_page: self.runner.rows_per_page(),
            },
            shared_buffers: self.engine.pool().buffers(),
            io_min_workers: settings.io_min_workers(),
            io_max_workers: settings.io_max_workers(),
            seed: self.plan.seed,
            rule: self.rule,
            complete: false,
            against: None,
            measurements: Vec::new(),
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
        let workloads: Vec<Workload> = self.plan.workloads.clone();
        let cases = workloads.iter().map(|workload| self.plan.cases(*workload).len()).sum();
        let mut progress = Progress {
            done: 0,
            total: cases as u64 * (u64::from(self.rule.repetitions_max) + 1),
            cases: (0, cases),
            started: clock::now(),
        };
        let mut failed = None;
        for workload in workloads {
            let mut all = self.begin(workload);
            progress.cases.0 += all.len();
            let before = {
                let report = results.0.lock();
                (report.measurements.len(), report.skipped.len())
            };
            let (rule, watcher) = (self.rule, Arc::clone(&self.watcher));
            let measured = interleave(
                &mut all,
                |all, at, round| {
                    proceed(&*watcher)?;
                    watcher.begins(&all[at].case);
                    self.repeat(&mut all[at], round == 0, &mut failed)?;
                    progress.repeated(&rule, all, at, round);
                    watcher.progressed(progress.done, progress.total, &all[at].case);
                    watcher.estimated(progress.remaining(&rule, all));
                    Ok(())
                },
                |all| publish(all, before, &rule, results),
            );
            publish(&all, before, &self.rule, results);
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
        is_warm_up: bool,
        failed: &mut Option<MeasureError>,
    ) -> Result<(), MeasureError> {
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
            // A session whose wait was cancelled reports a failed read.
            Err(error) if self.watcher.cancelled() || error.is_of_run() => return Err(error),
            Err(error) if error.is_of_direct_io() => {
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
        series.last = clock::now().since(started);
        series.spent += series.last;
        if !is_warm_up {
            series.repetitions.add(sample, case.cache, cached);
            if let Some(ended) = self.rule.ended(&series.repetitions.seconds, series.spent) {
                (series.is_over, series.ended) = (true, ended);
            }
        }
        Ok(())
    }
}

/// Repeats the cases in turn until all are over. `repeat` gets all cases, the place of the one to be
/// repeated, and the number of the round, which is 0 for the warm-up.
///
/// # Errors
/// Those of `repeat`, at once.
fn interleave(
    all: &mut [Series],
    mut repeat: impl FnMut(&mut [Series], usize, u64) -> Result<(), MeasureError>,
    mut after_round: impl FnMut(&[Series]),
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
            repeat(all, at, round)?;
        }
        after_round(all);
    }
    Ok(())
}

/// Puts the results of a workload into the report, in the order of its cases. `before` is what the
/// report had before this workload.
fn publish(
    all: &[Series],
    (measured, skipped): (usize, usize),
    rule: &RepetitionRule,
    results: &Results,
) {
    let of =
        |series: &Series| Measurement::of(&series.case, &series.repetitions, rule, series.ended);
    let measurements: Vec<Measurement> = all.iter().filter_map(of).collect();
    let skip = |series: &Series| {
        Some(Skipped { key: Key::of(&series.case), reason: series.problem.clone()? })
    };
    let mut report = results.0.lock();
    report.measurements.truncate(measured);
    report.measurements.extend(measurements);
    report.skipped.truncate(skipped);
    report.skipped.extend(all.iter().filter_map(skip));
}

impl Progress {
    /// Counts a repetition.
    fn repeated(&mut self, rule: &RepetitionRule, all: &[Series], at: usize, round: u64) {
        self.done += 1;
        if all[at].is_over {
            self.total -= u64::from(rule.repetitions_max).saturating_sub(round);
        }
    }

    /// Estimates the time left: each case of this workload is repeated as often as possible, within
    /// its time, and cases of later workloads take as long as those before.
    fn remaining(&self, rule: &RepetitionRule, all: &[Series]) -> Duration {
        let now: Duration = all.iter().map(|series| series.remaining(rule)).sum();
        let (begun, total) = self.cases;
        let spent = clock::now().since(self.started) + now;
        now + spent.mul_f64((total - begun) as f64 / begun.max(1) as f64)
    }
}

impl Series {
    fn new(case: Case) -> Self {
        Self {
            case,
            repetitions: Repetitions::default(),
            spent: Duration::ZERO,
            last: Duration::ZERO,
            is_over: false,
            ended: Ended::Interrupted,
            problem: None,
        }
    }

    fn skip(&mut self, reason: String) {
        self.problem = Some(reason);
        (self.is_over, self.ended) = (true, Ended::Failed);
    }

    /// Time that it needs at most.
    fn remaining(&self, rule: &RepetitionRule) -> Duration {
        if self.is_over {
            return Duration::ZERO;
        }
        let left = rule.repetitions_max.saturating_sub(self.repetitions.seconds.len() as u32);
        let limit = Duration::from_secs_f64(rule.seconds_max).saturating_sub(self.spent);
        self.last.saturating_mul(left).min(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Dataset;
    use crate::sample::Sample;
    use crate::workload::{Cache, Scan, Task};
    use trunkline_engine::settings::IoMethod;

    const RULE: RepetitionRule =
        RepetitionRule { repetitions_max: 9, spread_max: 0.1, seconds_max: 100.0 };

    fn series(concurrency: u32) -> Series {
        let (dataset, scan, selectivity) = (Dataset::Uniform, Scan::Index, 0.1);
        Series::new(Case {
            workload: Workload::Uniform,
            task: Task::Range { dataset, scan, selectivity },
            method: IoMethod::Worker,
            direct: false,
            cache: Some(Cache::Cold),
            concurrency,
            combine: 16,
            sessions: 1,
        })
    }

    /// Runs all cases with these times for each, in seconds, instead of real work. Returns the order
    /// of the repetitions, as round and case, and what the progress showed last.
    fn run(all: &mut [Series], times: fn(usize, u64) -> Option<f64>) -> (Vec<(u64, usize)>, u64) {
        let total = all.len() as u64 * u64::from(RULE.repetitions_max + 1);
        let cases = (all.len(), all.len());
        let mut progress = Progress { done: 0, total, cases, started: clock::now() };
        let mut order = Vec::new();
        let measured = interleave(
            all,
            |all, at, round| {
                order.push((round, at));
                let series = &mut all[at];
                let Some(seconds) = times(at, round) else {
                    return Err(MeasureError::Cancelled);
                };
                series.last = Duration::from_secs_f64(seconds);
                series.spent += series.last;
                if seconds == 0.0 {
                    series.skip("not available".to_owned());
                } else if round > 0 {
                    let sample = Sample { seconds, ..Sample::default() };
                    series.repetitions.add(sample, Some(Cache::Cold), Some(seconds / 100.0));
                    if let Some(ended) = RULE.ended(&series.repetitions.seconds, series.spent) {
                        (series.is_over, series.ended) = (true, ended);
                    }
                }
                progress.repeated(&RULE, all, at, round);
                assert!(progress.done <= progress.total);
                Ok(())
            },
            |_| {},
        );
        assert_eq!(measured.is_ok(), progress.done == progress.total);
        (order, progress.done)
    }

    #[test]
    fn cases_alternate_until_each_is_over() {
        let mut all: Vec<Series> = (1..=4).map(series).collect();
        // Steady at the first look, never steady, not available, and slow.
        let (order, done) =
            run(&mut all, |at, round| Some([1.0, 1.0 + (round % 3) as f64, 0.0, 30.0][at]));
        let rounds: Vec<Vec<usize>> = (0..11)
            .map(|round| order.iter().filter(|it| it.0 == round).map(|it| it.1).collect())
            .collect();
        assert_eq!(rounds[..4], [vec![3, 2, 1, 0], vec![0, 1, 3], vec![3, 1, 0], vec![0, 1, 3]]);
        assert_eq!(
            rounds[4..],
            [vec![1, 0], vec![0, 1], vec![1, 0], vec![0, 1], vec![1], vec![1], vec![]]
        );
        // With the warm-up: 8, 10, 1 and 4 repetitions.
        assert_eq!(done, 23);
        let ended = all.iter().map(|series| series.ended);
        assert!(ended.eq([Ended::Steady, Ended::Repetitions, Ended::Failed, Ended::Time]));
        let counts = all.iter().map(|series| series.repetitions.seconds.len());
        assert!(counts.eq([7, 9, 0, 3]));
    }

    #[test]
    fn the_time_left_is_within_the_time_of_each_case() {
        let mut all: Vec<Series> = (1..=2).map(series).collect();
        let (_, done) = run(&mut all, |at, round| (round < 3).then_some([2.0, 40.0][at]));
        assert_eq!(done, 6);
        // 7 more of 2 s each; for the other one, there is no time left.
        assert_eq!(all[0].remaining(&RULE), Duration::from_secs(14));
        assert_eq!(all[1].remaining(&RULE), Duration::ZERO);
        // Twice as many cases as have begun: twice the time, and what has been spent is short.
        let progress = Progress { done, total: 20, cases: (2, 4), started: clock::now() };
        let remaining = progress.remaining(&RULE, &all).as_secs();
        assert!(remaining >= 28, "{remaining} s");
    }

    #[test]
    fn what_was_measured_before_an_interruption_is_in_the_report() {
        let mut all: Vec<Series> = (1..=3).map(series).collect();
        run(&mut all, |at, round| match (at, round) {
            (1, _) => Some(0.0),
            (_, 3) => None,
            (_, round) => Some(round as f64 + 1.0),
        });
        let report = crate::page::tests::report();
        let before = (report.measurements.len(), report.skipped.len());
        let results = Results(Arc::new(Mutex::new(report)));
        // Each round replaces the results of the round before.
        for _ in 0..2 {
            publish(&all, before, &RULE, &results);
        }
        let report = results.report();
        let new = &report.measurements[before.0..];
        assert_eq!(new.iter().map(|case| case.repetitions).collect::<Vec<_>>(), [2, 2]);
        assert!(new.iter().all(|case| case.ended == Ended::Interrupted && !case.steady));
        assert!(new.iter().all(|case| case.seconds.low.is_none() && case.seconds.median == 2.5));
        // The least cold repetition counts.
        assert!(new.iter().all(|case| case.cached_percent == Some(3.0)));
        assert_eq!(report.skipped.len(), before.1 + 1);
    }
}
