//! **Comparison with a server**: ratios of pairs of repetitions.
//!
//! ```text
//!   round      1     2     3   …
//!   ours      10 ms 12 ms 11 ms
//!   server    20 ms 23 ms 22 ms
//!   ratio     0.50  0.52  0.50  ──▶ median with its interval from order statistics
//! ```
//! In each round, our cases and the server's alternate, so the two halves of a pair are close in
//! time. A machine that gets slower for a minute slows down both, and their ratio stays the same.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::repetition::RepetitionRule;
use crate::rounding::{SECONDS_PLACES, rounded};
use crate::server::ServerMethod;
use crate::workload::{Cache, Case};

/// A case with the times of its repetitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timed<'a> {
    pub(crate) case: &'a Case,
    /// Round and seconds of each repetition.
    pub(crate) times: &'a [(u64, f64)],
}

impl Timed<'_> {
    fn median(&self) -> f64 {
        Estimate::of(self.times.iter().map(|(_, seconds)| *seconds).collect()).median
    }
}

/// Our time divided by the server's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// The server's method.
    pub io_method: String,
    /// Its worker processes.
    pub io_workers: Option<u32>,
    /// Median of the pairs' ratios with its 95 % confidence interval.
    pub ratio: Estimate,
    /// Number of pairs.
    pub pairs: usize,
}

/// Our fastest method and the server's for one piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The workload.
    pub workload: String,
    /// The scan.
    pub scan: String,
    /// Part of the rows.
    pub selectivity_percent: Option<f64>,
    /// State of the page cache.
    pub cache: Option<Cache>,
    /// I/Os in flight.
    pub concurrency: u32,
    /// Largest I/O in blocks.
    pub combine_blocks: u32,
    /// Our method and mode.
    pub ours: String,
    /// Median of its times.
    pub seconds: f64,
    /// The server's method.
    pub server: String,
    /// Median of its times.
    pub server_seconds: f64,
    /// Ours divided by the server's; none if there are too few pairs.
    pub versus: Option<Versus>,
}

/// Compares a case of ours with the server's case of the same method. If it has several, such as
/// numbers of workers, or none, its fastest one is taken. `None` if there are too few pairs.
pub(crate) fn versus(
    ours: Timed<'_>,
    servers: &[Timed<'_>],
    rule: &RepetitionRule,
) -> Option<Versus> {
    let is_same = |server: &&Timed<'_>| {
        server.case.server.and_then(ServerMethod::ours) == Some(ours.case.method)
    };
    let same: Vec<Timed<'_>> = servers.iter().filter(is_same).copied().collect();
    of_pair(ours, fastest(if same.is_empty() { servers } else { &same })?, rule)
}

/// The fastest of ours against the fastest of the server's.
pub(crate) fn best(
    ours: &[Timed<'_>],
    servers: &[Timed<'_>],
    rule: &RepetitionRule,
) -> Option<Best> {
    let (own, server) = (fastest(ours)?, fastest(servers)?);
    let mode = if own.case.direct { "direct" } else { "buffered" };
    Some(Best {
        workload: own.case.workload.name().to_owned(),
        scan: own.case.scan_name().to_owned(),
        selectivity_percent: own.case.selectivity_percent(),
        cache: own.case.cache,
        concurrency: own.case.concurrency,
        combine_blocks: own.case.combine,
        ours: format!("{} {mode}", own.case.method),
        seconds: rounded(own.median(), SECONDS_PLACES),
        server: server.case.server.map(ServerMethod::label).unwrap_or_default(),
        server_seconds: rounded(server.median(), SECONDS_PLACES),
        versus: of_pair(own, server, rule),
    })
}

fn fastest<'a>(all: &[Timed<'a>]) -> Option<Timed<'a>> {
    all.iter().copied().min_by(|a, b| a.median().total_cmp(&b.median()))
}

fn of_pair(ours: Timed<'_>, server: Timed<'_>, rule: &RepetitionRule) -> Option<Versus> {
    let method = server.case.server?;
    let of_round = |round| server.times.iter().find(|time| time.0 == round).map(|time| time.1);
    let pairs: Vec<(f64, f64)> = (ours.times.iter())
        .filter_map(|&(round, seconds)| Some((of_round(round)?, seconds)))
        .collect();
    let Estimate { median, low, high } = rule.ratio_of_pairs(&pairs)?;
    Some(Versus {
        io_method: method.name().to_owned(),
        io_workers: method.workers(),
        ratio: Estimate {
            median: rounded(median, 4),
            low: rounded(low, 4),
            high: rounded(high, 4),
        },
        pairs: pairs.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Task, Workload};
    use trunkline_engine::settings::IoMethod;

    fn case(method: IoMethod, server: Option<ServerMethod>) -> Case {
        Case {
            workload: Workload::Sequential,
            task: Task::Whole,
            server,
            method,
            direct: false,
            cache: Some(Cache::Cold),
            concurrency: 16,
            combine: 16,
            sessions: 1,
        }
    }

    fn times(seconds: f64, rounds: std::ops::Range<u64>) -> Vec<(u64, f64)> {
        // The machine gets slower.
        rounds.map(|round| (round, seconds * (1.0 + round as f64))).collect()
    }

    #[test]
    fn a_machine_that_gets_slower_does_not_change_a_ratio() {
        let rule = RepetitionRule::default();
        let ours = case(IoMethod::Worker, None);
        let [few, many] =
            [3, 12].map(|number| case(IoMethod::Worker, Some(ServerMethod::Worker(number))));
        let sync = case(IoMethod::Sync, Some(ServerMethod::Sync));
        // Round 0 is missing on one side, round 8 on the other.
        let (a, b, c, d) = (times(0.1, 0..8), times(0.4, 1..9), times(0.2, 1..9), times(0.1, 1..9));
        let timed = |case, times| Timed { case, times };
        let servers = [timed(&few, &b[..]), timed(&many, &c[..]), timed(&sync, &d[..])];
        let found = versus(timed(&ours, &a), &servers, &rule).expect("compared");
        // The same method with the better number of workers.
        assert_eq!(
            (found.io_method.as_str(), found.io_workers, found.pairs),
            ("worker", Some(12), 7)
        );
        assert_eq!(found.ratio, Estimate { median: 0.5, low: 0.5, high: 0.5 });
        assert_eq!(found.ratio.verdict(), "faster");
        let best = best(&[timed(&ours, &a)], &servers, &rule).expect("compared");
        assert_eq!((best.ours.as_str(), best.server.as_str()), ("worker buffered", "sync"));
        let against = best.versus.expect("enough pairs");
        assert_eq!((against.ratio.median, against.ratio.verdict()), (1.0, "no difference"));
        // Without the same method, the fastest one counts.
        let ring = case(IoMethod::IoUring, None);
        let found = versus(timed(&ring, &a), &servers, &rule).expect("compared");
        assert_eq!(found.io_method, "sync");
        // Five pairs have no interval.
        assert_eq!(versus(timed(&ours, &a[..6]), &servers, &rule), None);
        assert_eq!(versus(timed(&ours, &a), &[], &rule), None);
    }
}
