//! **Comparisons**: cases measured in turn, many times, so that a disk that changes meanwhile
//! changes for all of them.
//!
//! A ratio of two cases has an interval (`Estimate::ratio`) from seven rounds on. With fewer rounds
//! there is no interval, and no setting is recommended from it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::{Load, Window};
use super::step::{short, times};
use crate::estimate::Estimate;
use crate::latency::Percentiles;

/// A round isn't shorter, because a slow disk does little in it.
const ROUND_MIN: Duration = Duration::from_millis(100);
/// A round is as short as it takes to have this many in the time of the comparison.
const ROUNDS_PLANNED: u32 = 9;
/// Rounds even if they take longer than planned, so that there is an interval.
const ROUNDS_MIN: usize = 7;
/// After this many times the planned time, a comparison ends with fewer rounds.
const LATE: u32 = 3;
/// No more rounds than this: the interval hardly gets narrower.
const ROUNDS_MAX: usize = 20;

/// A case of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// I/Os in flight, or sessions.
    pub depth: u32,
    /// I/Os per second, or microseconds (mean) for flush settings: the median of the
    /// rounds with its interval.
    pub value: Estimate,
    /// The value in each round.
    pub samples: Vec<f64>,
    /// Time of single I/Os in microseconds, of all rounds.
    pub micros: Option<Percentiles>,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// I/Os per second of the whole round.
    Rate,
    /// The mean time of single I/Os. A round has few, so its percentiles would depend on their number.
    Mean,
}

/// A case while it is being measured.
pub(crate) struct Contestant {
    pub(crate) name: String,
    pub(crate) load: Load,
    samples: Vec<f64>,
    windows: Vec<Window>,
    is_skipped: bool,
}

impl Contestant {
    pub(crate) fn new(name: impl Into<String>, load: Load) -> Self {
        Self {
            name: name.into(),
            load,
            samples: Vec::new(),
            windows: Vec::new(),
            is_skipped: false,
        }
    }

    /// How long a round of each of `count` cases takes.
    pub(crate) fn round(time: Duration, count: usize) -> Duration {
        let cases = u32::try_from(count).unwrap_or(1).max(1);
        (time / cases / ROUNDS_PLANNED).max(ROUND_MIN)
    }

    /// Adds a round. The first one of each case warms up.
    pub(crate) fn add(&mut self, measure: Measure, windows: Vec<Window>) {
        // The end, at which the queue drains, has another rate.
        let has_whole = windows.iter().any(|window| !window.is_tail);
        let windows: Vec<Window> =
            windows.into_iter().filter(|window| !(has_whole && window.is_tail)).collect();
        let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
        let count: u64 = windows.iter().map(|window| window.count).sum();
        let sample = match measure {
            Measure::Rate => (seconds > 0.0).then(|| count as f64 / seconds),
            Measure::Mean => mean_micros(&windows),
        };
        if let Some(sample) = sample.filter(|_| count > 0) {
            self.samples.push(sample);
            self.windows.extend(windows);
        }
    }

    /// Leaves the case out from now on.
    pub(crate) fn skip(&mut self) {
        self.is_skipped = true;
    }

    pub(crate) fn is_skipped(&self) -> bool {
        self.is_skipped
    }

    /// The result, if there is any.
    pub(crate) fn finish(self) -> Option<Case> {
        if self.samples.is_empty() {
            return None;
        }
        let windows: Vec<&Window> = self.windows.iter().collect();
        Some(Case {
            name: self.name,
            depth: self.load.depth,
            micros: times(&windows),
            value: short(Estimate::of(self.samples.clone())),
            samples: self.samples,
        })
    }
}

/// The mean time of all I/Os in microseconds.
fn mean_micros(windows: &[Window]) -> Option<f64> {
    let count: u64 = windows.iter().map(|window| window.latency.len()).sum();
    let sum: f64 =
        windows.iter().map(|window| window.latency.mean() * window.latency.len() as f64).sum();
    (count > 0).then(|| sum / count as f64 / 1e3)
}

/// Whether a comparison has taken so long, in seconds, that it ends even within a round.
pub(crate) fn is_late(spent: f64, planned: Duration) -> bool {
    spent >= (planned * LATE).as_secs_f64()
}

/// Whether a comparison has enough rounds after `round` of them.
pub(crate) fn is_over(round: usize, spent: Duration, planned: Duration) -> bool {
    round >= ROUNDS_MAX || round >= ROUNDS_MIN && spent >= planned || spent >= planned * LATE
}

impl Case {
    /// How this case's value relates to another one's, if there are enough rounds.
    pub fn ratio(&self, other: &Case) -> Option<Estimate> {
        Estimate::ratio(&self.samples, &other.samples)
    }
}
