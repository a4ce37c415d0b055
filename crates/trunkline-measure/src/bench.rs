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
//! With a server, a case of ours and the server's are pairs (`versus`), so cases that are compared
//! with each other are repeated equally often: they end in the same round. Two configurations of a
//! server go on until it is decided which of them is faster, or until a limit ends them: narrow times
//! of each don't imply that their ratio is narrow enough.

use std::time::Duration;

use trunkline_aio::Canceller;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::Engine;

use crate::error::{MeasureError, proceed};
use crate::machine::Machine;
use crate::repetition::{Ended, RepetitionRule};
use crate::report::{
    Key, MeasuredConfiguration, MeasuredServer, MeasuredTable, Measurement, Repetitions, Report,
    Skipped, SlowDisk,
};
use crate::runner::{Peer, Runner, ScratchTable};
use crate::sample::Sample;
use crate::server::{Server, ServerError, ServerMethod};
use crate::table::Table;
use crate::versus::{OverDefaults, Timed, best, over_defaults, versus};
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
    /// Round and seconds of each repetition.
    times: Vec<(u64, f64)>,
    spent: Duration,
    /// Time that the last repetition took with its preparation.
    last: Duration,
    /// Whether it has had its warm-up.
    is_warm: bool,
    /// Why it needs no more repetitions for itself.
    own_end: Option<Ended>,
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
    /// Cases of workloads that have begun, and of all workloads.
    cases: (usize, usize),
    started: Time,
}

/// Where the results of a workload are in the report: after those of the workloads before it.
struct Section {
    measurements: usize,
    best: usize,
    skipped: usize,
    rule: RepetitionRule,
    /// The server's name.
    server: String,
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

/// Finds out which cases are over. Without a server, cases are independent. With one, cases that are
/// compared with each other are over together: when all are steady after the same round and have a
/// verdict, or when one of them has been repeated as often or for as long as allowed. So each is looked
/// at after the same numbers of repetitions as alone, and one that was steady before is repeated until
/// the others are.
fn settle(all: &mut [Series], rule: &RepetitionRule) {
    let has_server = all.iter().any(|series| series.case.server.is_some());
    let ends: Vec<Option<Ended>> = (all.iter())
        .map(|series| match has_server && series.problem.is_none() {
            true => end_together(series, all, rule),
            false => series.own_end,
        })
        .collect();
    for (series, end) in all.iter_mut().zip(ends) {
        series.is_over = end.is_some();
        series.ended = end.unwrap_or(Ended::Interrupted);
    }
}

/// Why a case is over together with those that it is compared with, if it is. Failed ones don't
/// count. In the middle of a round, they have not been repeated equally often, and none is over.
fn end_together(series: &Series, all: &[Series], rule: &RepetitionRule) -> Option<Ended> {
    let mut group = all
        .iter()
        .filter(|other| other.problem.is_none() && other.case.is_comparable(&series.case));
    let count = series.repetitions.seconds.len();
    if group.clone().any(|other| other.repetitions.seconds.len() != count) {
        return None;
    }
    // A limit ends a group even if its times are steady, because its verdict may not be.
    let limit = |other: &Series| rule.limit(&other.repetitions.seconds, other.spent);
    match group.clone().find_map(limit) {
        // A limit has decided about the end and not this interval, so it isn't another look.
        Some(_) if rule.is_narrow(&series.repetitions.seconds) => Some(Ended::Steady),
        Some(end) => Some(series.own_end.unwrap_or(end)),
        None if lacks_verdict(group.clone(), rule) => None,
        None => group.all(|other| other.own_end.is_some()).then_some(Ended::Steady),
    }
}

/// Whether these cases are of both configurations of a server, and it isn't decided which is faster.
/// The interval of their ratio shares its error between the same looks as those of the times.
fn lacks_verdict<'a>(group: impl Iterator<Item = &'a Series>, rule: &RepetitionRule) -> bool {
    let all: Vec<Timed<'_>> = group.map(Series::timed).collect();
    let of = |method| all.iter().find(|it| it.case.server == Some(method));
    let [Some(_), Some(settings)] = ServerMethod::CONFIGURATIONS.map(of) else { return false };
    over_defaults(*settings, &all, rule).is_none_or(|over| over.is_undecided())
}

impl Section {
    fn after(report: &Report, rule: RepetitionRule) -> Self {
        Self {
            measurements: report.measurements.len(),
            best: report.best.len(),
            skipped: report.skipped.len(),
            rule,
            server: report.server.as_ref().map(|server| server.name.clone()).unwrap_or_default(),
        }
    }

    /// Puts the results of the workload into the report, in the order of its cases. They replace
    /// those of the round before.
    fn publish(&self, all: &[Series], results: &Results) {
        let measurements: Vec<Measurement> =
            all.iter().filter_map(|series| self.measurement(series, all)).collect();
        let skip = |series: &Series| {
            let key = Key::of(&series.case, &self.server);
            Some(Skipped { key, reason: series.problem.clone()? })
        };
        let mut compared: Vec<&Case> = Vec::new();
        let fastest = all.iter().filter_map(|series| {
            let is_new = !compared.iter().any(|case| case.is_comparable(&series.case));
            compared.extend(is_new.then_some(&series.case));
            let of = |is_server| timed(all, &series.case, is_server);
            is_new.then(|| best(&of(false), &of(true), &self.rule)).flatten()
        });
        let mut report = results.0.lock();
        report.measurements.truncate(self.measurements);
        report.measurements.extend(measurements);
        report.best.truncate(self.best);
        report.best.extend(fastest);
        report.skipped.truncate(self.skipped);
        report.skipped.extend(all.iter().filter_map(skip));
    }

    fn measurement(&self, series: &Series, all: &[Series]) -> Option<Measurement> {
        let key = Key::of(&series.case, &self.server);
        let mut measurement = Measurement::of(key, &series.repetitions, &self.rule, series.ended)?;
        let servers = timed(all, &series.case, true);
        if series.case.server.is_none() {
            measurement.versus = versus(series.timed(), &servers, &self.rule);
        } else {
            let over = over_defaults(series.timed(), &servers, &self.rule);
            let is_held = all.iter().filter(|it| it.case.is_comparable(&series.case)).all(|it| {
                !it.case.has_own_sizes() || it.repetitions.is_held(it.case.cache) != Some(false)
            });
            measurement.over_defaults =
                over.map(|it| OverDefaults { verdict: it.verdict.filter(|_| is_held), ..it });
        }
        Some(measurement)
    }
}

/// The measured cases that this one is compared with: ours, or the server's.
fn timed<'a>(all: &'a [Series], case: &Case, is_server: bool) -> Vec<Timed<'a>> {
    let is_of_side = |series: &&Series| {
        series.case.server.is_some() == is_server
            && !series.times.is_empty()
            && series.case.is_comparable(case)
    };
    all.iter().filter(is_of_side).map(Series::timed).collect()
}

impl Progress {
    /// Repetitions at most, with those that are done. `all` are the cases of this workload.
    fn total(&self, rule: &RepetitionRule, all: &[Series]) -> u64 {
        let (begun, total) = self.cases;
        let later = (total - begun) as u64 * (u64::from(rule.repetitions_max) + 1);
        self.done + all.iter().map(|series| series.left(rule)).sum::<u64>() + later
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
            times: Vec::new(),
            spent: Duration::ZERO,
            last: Duration::ZERO,
            is_warm: false,
            own_end: None,
            is_over: false,
            ended: Ended::Interrupted,
            problem: None,
        }
    }

    fn timed(&self) -> Timed<'_> {
        Timed { case: &self.case, times: &self.times }
    }

    /// Adds a repetition, which took this time with its preparation. The one of round 0 is a warm-up.
    fn repeated(
        &mut self,
        rule: &RepetitionRule,
        round: u64,
        took: Duration,
        (sample, cached): (Sample, Option<f64>),
    ) {
        self.last = took;
        self.spent += took;
        self.is_warm = true;
        if round > 0 {
            self.times.push((round, sample.seconds));
            self.repetitions.add(sample, self.case.cache, cached);
            self.own_end = rule.ended(&self.repetitions.seconds, self.spent);
        }
    }

    fn skip(&mut self, reason: String) {
        self.problem = Some(reason);
        self.own_end = Some(Ended::Failed);
    }

    /// Repetitions at most until it is over, with the warm-up.
    fn left(&self, rule: &RepetitionRule) -> u64 {
        let repeated = self.repetitions.seconds.len() as u64 + u64::from(self.is_warm);
        let left = (u64::from(rule.repetitions_max) + 1).saturating_sub(repeated);
        if self.is_over { 0 } else { left }
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
    use crate::access::{Dataset, Scan};
    use crate::versus::Verdict;
    use crate::workload::{Cache, Task};
    use trunkline_engine::settings::IoMethod;

    const RULE: RepetitionRule =
        RepetitionRule { repetitions_max: 9, spread_max: 0.1, seconds_max: 100.0 };

    fn series(concurrency: u32) -> Series {
        let (dataset, scan, selectivity) = (Dataset::Uniform, Scan::Index, 0.1);
        Series::new(Case {
            workload: Workload::Uniform,
            task: Task::Range { dataset, scan, selectivity },
            server: None,
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
        run_by(&RULE, all, times)
    }

    fn run_by(
        rule: &RepetitionRule,
        all: &mut [Series],
        times: fn(usize, u64) -> Option<f64>,
    ) -> (Vec<(u64, usize)>, u64) {
        let cases = (all.len(), all.len());
        let mut progress = Progress { done: 0, cases, started: clock::now() };
        let mut order = Vec::new();
        let mut shown = (0, progress.total(rule, all));
        let measured = interleave(
            all,
            |all, at, round| {
                order.push((round, at));
                let series = &mut all[at];
                let Some(seconds) = times(at, round) else {
                    return Err(MeasureError::Cancelled);
                };
                if seconds == 0.0 {
                    series.skip("not available".to_owned());
                } else {
                    let took = Duration::from_secs_f64(seconds);
                    let sample = Sample { seconds, ..Sample::default() };
                    series.repeated(rule, round, took, (sample, Some(seconds / 100.0)));
                }
                settle(all, rule);
                progress.done += 1;
                let total = progress.total(rule, all);
                assert!(progress.done <= total && total <= shown.1, "{total} after {shown:?}");
                shown = (progress.done, total);
                Ok(())
            },
            |_| {},
        );
        assert_eq!(measured.is_ok(), shown.0 == shown.1);
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
        let progress = Progress { done, cases: (2, 4), started: clock::now() };
        assert_eq!(progress.total(&RULE, &all), 6 + 7 + 20);
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
        let section = Section::after(&report, RULE);
        let results = Results(Arc::new(Mutex::new(report)));
        // Each round replaces the results of the round before.
        for _ in 0..2 {
            section.publish(&all, &results);
        }
        let report = results.report();
        let new = &report.measurements[section.measurements..];
        assert_eq!(new.iter().map(|case| case.repetitions).collect::<Vec<_>>(), [2, 2]);
        assert!(new.iter().all(|case| case.ended == Ended::Interrupted && !case.steady));
        assert!(new.iter().all(|case| case.seconds.low.is_none() && case.seconds.median == 2.5));
        // The least cold repetition counts.
        assert!(new.iter().all(|case| case.cached_percent == Some(3.0)));
        assert_eq!(report.skipped.len(), section.skipped + 1);
    }

    /// A case of ours and three of the server's, of which the last one is other work.
    fn pairs() -> Vec<Series> {
        let servers = [None, Some(ServerMethod::Worker(3)), Some(ServerMethod::Sync)];
        let mut all: Vec<Series> = servers
            .map(|server| {
                let mut series = series(4);
                series.case.server = server;
                series
            })
            .into();
        let mut other = series(8);
        other.case.server = Some(ServerMethod::Sync);
        all.push(other);
        all
    }

    #[test]
    fn cases_that_are_compared_end_in_the_same_round() {
        let mut all = pairs();
        // Ours is always the same; the server's is not, until it is repeated as often as allowed.
        let (order, done) =
            run(&mut all, |at, round| Some([1.0, 1.0 + (round % 3) as f64, 1.0, 1.0][at]));
        let counts = |all: &[Series]| {
            all.iter().map(|series| series.repetitions.seconds.len()).collect::<Vec<_>>()
        };
        assert_eq!((counts(&all), done), (vec![9, 9, 9, 7], 38));
        assert_eq!(
            order.iter().filter(|it| it.0 == 9).map(|it| it.1).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        let ended = |all: &[Series]| all.iter().map(|series| series.ended).collect::<Vec<_>>();
        assert_eq!(ended(&all), [Ended::Steady, Ended::Repetitions, Ended::Steady, Ended::Steady]);
        // One that fails or isn't available leaves the others to be compared.
        let mut all = pairs();
        run(&mut all, |at, round| Some(if (at, round) == (1, 3) { 0.0 } else { 1.0 }));
        assert_eq!(counts(&all), [7, 2, 7, 7]);
        assert_eq!(ended(&all), [Ended::Steady, Ended::Failed, Ended::Steady, Ended::Steady]);
        // One whose time is used up ends all, here between two looks.
        let mut all = pairs();
        run(&mut all, |at, round| Some(if at == 2 { 12.0 } else { 1.0 + (round % 2) as f64 }));
        assert_eq!(counts(&all), [8, 8, 8, 9]);
        assert_eq!(ended(&all), [Ended::Time, Ended::Time, Ended::Steady, Ended::Repetitions]);
    }

    /// Both configurations of a server, and a case of ours.
    fn configurations() -> Vec<Series> {
        let [defaults, settings] = ServerMethod::CONFIGURATIONS.map(Some);
        let of = |server| {
            let mut series = series(4);
            series.case.server = server;
            series
        };
        [None, defaults, settings].map(of).into()
    }

    /// The seconds of a repetition.
    fn outlier(bad: bool) -> Option<f64> {
        Some(if bad { 1.08 } else { 1.0 })
    }

    /// Runs both configurations, with up to 20 repetitions. Returns how many there were, why they
    /// ended, and the verdict.
    fn decide(times: fn(usize, u64) -> Option<f64>) -> (usize, Ended, Option<Verdict>) {
        let rule = RepetitionRule { repetitions_max: 20, ..RULE };
        let mut all = configurations();
        run_by(&rule, &mut all, times);
        assert_eq!(all[1].times.len(), all[2].times.len());
        let timed: Vec<Timed<'_>> = all.iter().map(Series::timed).collect();
        let over = over_defaults(timed[2], &timed, &rule).and_then(|over| over.verdict);
        (all[2].times.len(), all[2].ended, over)
    }

    #[test]
    fn configurations_are_repeated_until_there_is_a_verdict() {
        let (steady, not_slower) = (Ended::Steady, Some(Verdict::NotSlower));
        // All times are narrow at the first look. The range of seven ratios is too wide if one of
        // them is above the tolerance, and later intervals leave out such outliers.
        assert_eq!(decide(|_, _| Some(1.0)), (7, steady, not_slower));
        assert_eq!(decide(|at, round| outlier((at, round) == (2, 3))), (12, steady, not_slower));
        assert_eq!(
            decide(|at, round| outlier(at == 2 && round % 5 == 3)),
            (20, steady, not_slower)
        );
        assert_eq!(
            decide(|at, round| outlier(at == 2 && round % 2 == 1)),
            (20, steady, Some(Verdict::Undecided))
        );
        // Repetitions of 8 s each: there is time for 12 and the warm-up.
        assert_eq!(
            decide(|at, round| outlier(at == 2 && round % 2 == 1).map(|it| it * 8.0)),
            (12, steady, Some(Verdict::Undecided))
        );
        // One that fails leaves nothing to be decided.
        let mut all = configurations();
        run(&mut all, |at, round| match (at, round) {
            (1, 2) => Some(0.0),
            (2, 3) => Some(1.08),
            _ => Some(1.0),
        });
        assert_eq!([&all[0], &all[2]].map(|it| it.times.len()), [7, 7]);
    }

    #[test]
    fn a_cache_that_was_not_held_leaves_no_verdict() {
        let report = crate::page::tests::report();
        let section = Section::after(&report, RULE);
        for (at, held) in [(0, true), (1, false), (2, false)] {
            let mut all = configurations();
            for (place, series) in all.iter_mut().enumerate() {
                for round in 1..8 {
                    let part = if place == at && round == 3 { 0.5 } else { 0.0 };
                    let sample = Sample { seconds: 1.0, ..Sample::default() };
                    series.repeated(&RULE, round, Duration::ZERO, (sample, Some(part)));
                }
            }
            let found = section.measurement(&all[2], &all).expect("measured");
            let over = found.over_defaults.expect("compared");
            assert_eq!((over.pairs, over.ratio.median), (7, 1.0));
            assert_eq!(over.verdict, held.then_some(Verdict::NotSlower));
            let name = if held { "not slower" } else { "cache not held" };
            assert_eq!(over.verdict_name(), name);
        }
    }

    #[test]
    fn each_round_publishes_what_is_compared_with_the_server() {
        let report = crate::page::tests::report();
        let section = Section { server: "PostgreSQL 18".into(), ..Section::after(&report, RULE) };
        let results = Results(Arc::new(Mutex::new(report)));
        let mut all = Vec::new();
        for rounds in [4, 8] {
            all = pairs();
            for (series, seconds) in all.iter_mut().zip([1.0, 2.0, 4.0, 8.0]) {
                for round in 0..rounds {
                    let sample = Sample { seconds, ..Sample::default() };
                    series.repeated(&RULE, round, Duration::ZERO, (sample, None));
                }
            }
            all[2].skip("it has crashed".to_owned());
            settle(&mut all, &RULE);
            section.publish(&all, &results);
            let report = results.report();
            let new = &report.measurements[section.measurements..];
            let ratio = |case: &Measurement| Some(case.versus.as_ref()?.ratio.median);
            // Three pairs have no interval.
            let expected = (rounds == 8).then_some(0.5);
            assert_eq!(new.iter().map(ratio).collect::<Vec<_>>(), [expected, None, None, None]);
            assert_eq!(new[1].key.system, "PostgreSQL 18");
            assert_eq!(report.skipped.len(), section.skipped + 1);
            assert_eq!(report.best.len(), section.best + 1);
            let best = &report.best[section.best];
            assert_eq!((best.seconds, best.server_seconds), (1.0, 2.0));
            assert_eq!(best.versus.is_some(), rounds == 8);
        }
        assert!(all[0].is_over && all[1].is_over);
    }
}
