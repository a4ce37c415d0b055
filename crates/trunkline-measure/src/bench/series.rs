//! **Series**: the repetitions of each case of a workload, in turn, and when they end.
//!
//! Without a server, each case ends by itself. With one, cases that are compared with each other end in
//! the same round, so that they are pairs (`versus`). Two configurations of a server go on until it is
//! decided which of them is faster, or until a limit ends them: narrow times of each don't imply that
//! their ratio is narrow enough.

use std::time::Duration;

use trunkline_aio::clock::{self, Time};

use crate::error::MeasureError;
use crate::repetition::{Ended, RepetitionRule};
use crate::report::Repetitions;
use crate::sample::Sample;
use crate::server::ServerMethod;
use crate::versus::{OverDefaults, Timed, over_defaults};
use crate::workload::Case;

/// One case while it is being repeated.
pub(super) struct Series {
    pub(super) case: Case,
    pub(super) repetitions: Repetitions,
    /// Round and seconds of each repetition.
    pub(super) times: Vec<(u64, f64)>,
    spent: Duration,
    /// Time that the last repetition took with its preparation.
    last: Duration,
    /// Whether it has had its warm-up.
    is_warm: bool,
    /// Why it needs no more repetitions for itself.
    own_end: Option<Ended>,
    pub(super) is_over: bool,
    /// Why it is over.
    pub(super) ended: Ended,
    /// Why it has no result, or fewer repetitions.
    pub(super) problem: Option<String>,
}

/// How far the measurement is.
pub(super) struct Progress {
    /// Repetitions, with warm-ups.
    pub(super) done: u64,
    /// Cases of workloads that have begun, and of all workloads.
    pub(super) cases: (usize, usize),
    pub(super) started: Time,
}

/// Repeats the cases in turn until all are over. `repeat` gets all cases, the place of the one to be
/// repeated, and the number of the round, which is 0 for the warm-up.
///
/// # Errors
/// Those of `repeat`, at once.
pub(super) fn interleave(
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
pub(super) fn settle(all: &mut [Series], rule: &RepetitionRule) {
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
        None if lacks_verdict(group.clone(), all, rule) => None,
        None => group.all(|other| other.own_end.is_some()).then_some(Ended::Steady),
    }
}

/// Whether both configurations of a server are among these cases, and it isn't decided which is faster.
/// The interval of their ratio shares its error between the same looks as those of the times. More
/// repetitions don't help if the page cache wasn't held.
fn lacks_verdict<'a>(
    group: impl Iterator<Item = &'a Series> + Clone,
    all: &[Series],
    rule: &RepetitionRule,
) -> bool {
    let of = |method| group.clone().find(|it| it.case.server == Some(method));
    let [Some(_), Some(settings)] = ServerMethod::CONFIGURATIONS.map(of) else { return false };
    over_defaults_if_held(settings, all, rule).is_none_or(|over| over.is_undecided())
}

/// Compares a server's settings with its defaults. There is no verdict if the page cache was not in the
/// wanted state when a repetition of either began.
pub(super) fn over_defaults_if_held(
    series: &Series,
    all: &[Series],
    rule: &RepetitionRule,
) -> Option<OverDefaults> {
    let over = over_defaults(series.timed(), &timed(all, &series.case, true), rule)?;
    let is_held = all
        .iter()
        .filter(|it| it.case.is_comparable(&series.case))
        .all(|it| !it.case.has_own_sizes() || it.repetitions.is_held(it.case.cache) != Some(false));
    Some(OverDefaults { verdict: over.verdict.filter(|_| is_held), ..over })
}

/// The measured cases that this one is compared with: ours, or the server's.
pub(super) fn timed<'a>(all: &'a [Series], case: &Case, is_server: bool) -> Vec<Timed<'a>> {
    let is_of_side = |series: &&Series| {
        series.case.server.is_some() == is_server
            && !series.times.is_empty()
            && series.case.is_comparable(case)
    };
    all.iter().filter(is_of_side).map(Series::timed).collect()
}

impl Progress {
    /// Repetitions at most, with those that are done. `all` are the cases of this workload.
    pub(super) fn total(&self, rule: &RepetitionRule, all: &[Series]) -> u64 {
        let (begun, total) = self.cases;
        let later = (total - begun) as u64 * (u64::from(rule.repetitions_max) + 1);
        self.done + all.iter().map(|series| series.left(rule)).sum::<u64>() + later
    }

    /// Estimates the time left: each case of this workload is repeated as often as possible, within
    /// its time, and cases of later workloads take as long as those before.
    pub(super) fn remaining(&self, rule: &RepetitionRule, all: &[Series]) -> Duration {
        let now: Duration = all.iter().map(|series| series.remaining(rule)).sum();
        let (begun, total) = self.cases;
        let spent = clock::now().since(self.started) + now;
        now + spent.mul_f64((total - begun) as f64 / begun.max(1) as f64)
    }
}

impl Series {
    pub(super) fn new(case: Case) -> Self {
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

    pub(super) fn timed(&self) -> Timed<'_> {
        Timed { case: &self.case, times: &self.times }
    }

    /// Adds a repetition, which took this time with its preparation. The one of round 0 is a warm-up.
    pub(super) fn repeated(
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

    pub(super) fn skip(&mut self, reason: String) {
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
    pub(super) fn remaining(&self, rule: &RepetitionRule) -> Duration {
        if self.is_over {
            return Duration::ZERO;
        }
        let left = rule.repetitions_max.saturating_sub(self.repetitions.seconds.len() as u32);
        let limit = Duration::from_secs_f64(rule.seconds_max).saturating_sub(self.spent);
        self.last.saturating_mul(left).min(limit)
    }
}
