//! Tests of the order of repetitions, of their ends, and of what is published, with given times instead
//! of real work.

use super::section::Section;
use super::series::{Progress, Series, interleave, settle};
use super::*;
use crate::access::{Dataset, Scan};
use crate::repetition::Ended;
use crate::report::Measurement;
use crate::sample::Sample;
use crate::versus::{Timed, Verdict, over_defaults};
use crate::workload::{Cache, Task};
use std::time::Duration;
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
                let cached = (seconds / 100.0).min(0.05);
                series.repeated(rule, round, took, (sample, Some(cached)));
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
    assert_eq!(order.iter().filter(|it| it.0 == 9).map(|it| it.1).collect::<Vec<_>>(), [0, 1, 2]);
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
    assert_eq!(decide(|at, round| outlier(at == 2 && round % 5 == 3)), (20, steady, not_slower));
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
    let mut section = Section::after(&report, RULE);
    section.server = "PostgreSQL 18".into();
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
