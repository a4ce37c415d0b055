//! **Comparison with a server**: ratios of pairs of repetitions.
//!
//! ```text
//!   round      1     2     3   …
//!   ours      10 ms 12 ms 11 ms
//!   server    20 ms 23 ms 22 ms
//!   ratio     0.50  0.52  0.50  ──▶ median with its interval from order statistics
//! ```
//! Two configurations of a server are compared in the same way: the time with the user's settings
//! divided by that with the defaults.
//!
//! A machine that gets slower slows down both halves of a pair, if they are close in time, and their
//! ratio stays the same. How close they are follows from the order of the cases (`workload`):
//!
//! ```text
//!   ours, the server's same method        next to each other; another number of workers is later
//!   defaults, settings                    a scan's selectivities and a restart in between
//! ```
//! If a disk changes within that time, as one with burst credit does, the pairs' ratios scatter. Their
//! interval is then wide, and says that nothing is decided.

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

/// A configuration is *slower* if its ratio to the defaults is above this, and *not slower* if it is at
/// most this. Smaller differences rarely matter.
const TOLERANCE: f64 = 1.05;

/// What a ratio of settings to defaults says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The interval is below 1.
    #[serde(rename = "faster")]
    Faster,
    /// The interval excludes more than 5 % longer.
    #[serde(rename = "not slower")]
    NotSlower,
    /// The interval is above 5 % longer.
    #[serde(rename = "slower")]
    Slower,
    /// The interval contains both.
    #[serde(rename = "undecided")]
    Undecided,
}

impl Verdict {
    fn of(ratio: &Estimate) -> Self {
        match ratio {
            Estimate { high, .. } if *high < 1.0 => Verdict::Faster,
            Estimate { high, .. } if *high <= TOLERANCE => Verdict::NotSlower,
            Estimate { low, .. } if *low > TOLERANCE => Verdict::Slower,
            _ => Verdict::Undecided,
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::NotSlower => "not slower",
            Verdict::Slower => "slower",
            Verdict::Undecided => "undecided",
        }
    }
}

/// The server's time with the user's settings divided by that with its defaults.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OverDefaults {
    /// Median of the pairs' ratios with its 95 % confidence interval.
    pub ratio: Estimate,
    /// Number of pairs.
    pub pairs: usize,
    /// What follows from the interval. None if the page cache was not in the wanted state when a
    /// repetition of either half began: then it isn't known what was compared.
    pub verdict: Option<Verdict>,
}

impl OverDefaults {
    /// The verdict in reports, or why there is none.
    pub fn verdict_name(&self) -> &'static str {
        self.verdict.map_or("cache not held", Verdict::name)
    }

    /// Whether the interval is too wide for a verdict, so that more repetitions may help.
    pub(crate) fn is_undecided(&self) -> bool {
        self.verdict == Some(Verdict::Undecided)
    }
}

/// Compares a case of the settings with the same case of the defaults. `None` if it isn't such a case,
/// or if there are too few pairs.
pub(crate) fn over_defaults(
    settings: Timed<'_>,
    servers: &[Timed<'_>],
    rule: &RepetitionRule,
) -> Option<OverDefaults> {
    if settings.case.server != Some(ServerMethod::Settings) {
        return None;
    }
    let is_default = |server: &&Timed<'_>| server.case.server == Some(ServerMethod::Defaults);
    let (ratio, pairs) = ratio(settings, *servers.iter().find(is_default)?, rule)?;
    Some(OverDefaults { ratio, pairs, verdict: Some(Verdict::of(&ratio)) })
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
    let (ratio, pairs) = ratio(ours, server, rule)?;
    Some(Versus { io_method: method.name().to_owned(), io_workers: method.workers(), ratio, pairs })
}

/// The ratio of two cases, and the number of rounds in which both were repeated.
fn ratio(over: Timed<'_>, under: Timed<'_>, rule: &RepetitionRule) -> Option<(Estimate, usize)> {
    let of_round = |round| under.times.iter().find(|time| time.0 == round).map(|time| time.1);
    let pairs: Vec<(f64, f64)> = (over.times.iter())
        .filter_map(|&(round, seconds)| Some((of_round(round)?, seconds)))
        .collect();
    let Estimate { median, low, high } = rule.ratio_of_pairs(&pairs)?;
    let ratio =
        Estimate { median: rounded(median, 4), low: rounded(low, 4), high: rounded(high, 4) };
    Some((ratio, pairs.len()))
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

    #[test]
    fn a_verdict_follows_from_the_ends_of_the_interval() {
        for (low, high, expected) in [
            (0.5, 0.9999, Verdict::Faster),
            (0.5, 1.0, Verdict::NotSlower),
            (0.9, 1.05, Verdict::NotSlower),
            (1.01, 1.05, Verdict::NotSlower),
            (0.9, 1.0501, Verdict::Undecided),
            (1.05, 2.0, Verdict::Undecided),
            (1.0501, 2.0, Verdict::Slower),
        ] {
            let found = Verdict::of(&Estimate { median: f64::midpoint(low, high), low, high });
            assert_eq!(found, expected, "{low}..{high}");
            let json = serde_json::to_string(&found).expect("JSON");
            assert_eq!(json, format!("\"{}\"", expected.name()));
        }
    }

    #[test]
    fn settings_are_compared_with_the_defaults_only() {
        let rule = RepetitionRule::default();
        let [defaults, settings] =
            ServerMethod::CONFIGURATIONS.map(|it| case(IoMethod::Worker, Some(it)));
        let (a, b) = (times(0.4, 1..9), times(0.2, 0..8));
        let timed = |case, times| Timed { case, times };
        let all = [timed(&defaults, &a[..]), timed(&settings, &b[..])];
        let found = over_defaults(all[1], &all, &rule).expect("compared");
        let half = Estimate { median: 0.5, low: 0.5, high: 0.5 };
        assert_eq!((found.ratio, found.pairs, found.verdict), (half, 7, Some(Verdict::Faster)));
        assert_eq!(over_defaults(all[0], &all, &rule), None);
        assert_eq!(over_defaults(all[1], &all[1..], &rule), None);
        // Five pairs have no interval.
        let few = [timed(&defaults, &a[..5]), all[1]];
        assert_eq!(over_defaults(all[1], &few, &rule), None);
    }
}
