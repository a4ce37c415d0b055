//! **Repetitions**: measures again until the interval of the median is narrow, and says so if it
//! never is.
//!
//! A case ends when the interval is no wider than the limit, after the largest number of
//! repetitions, or when its time is used up. Looking at the interval after each repetition makes the
//! real confidence a little lower than the stated one; this is the price for not wasting time on
//! cases that are steady at once. `--against` doesn't rely on it alone, because its intervals are
//! wider.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// When a case has been repeated often enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RepetitionRule {
    /// Largest number of repetitions, not counting the first, which is discarded as a warm-up.
    pub repetitions_max: u32,
    /// Largest width of a steady case's interval, as a fraction of the median.
    pub spread_max: f64,
    /// A case is not repeated after it has taken this many seconds.
    pub seconds_max: f64,
}

impl Default for RepetitionRule {
    fn default() -> Self {
        Self { repetitions_max: 20, spread_max: 0.1, seconds_max: 60.0 }
    }
}

impl RepetitionRule {
    /// Fewest repetitions of a steady case: what the interval of a ratio takes, so that each run
    /// can be compared with another one.
    pub const REPETITIONS_MIN: usize = 7;

    /// Whether these times, in seconds, are steady.
    pub fn is_steady(&self, seconds: &[f64]) -> bool {
        seconds.len() >= Self::REPETITIONS_MIN
            && Estimate::of(seconds.to_vec()).spread() <= self.spread_max
    }

    /// Whether a case needs no more repetitions. `spent` includes the preparation.
    pub fn is_over(&self, seconds: &[f64], spent: Duration) -> bool {
        self.is_steady(seconds)
            || seconds.len() >= self.repetitions_max as usize
            || (!seconds.is_empty() && spent.as_secs_f64() >= self.seconds_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: RepetitionRule =
        RepetitionRule { repetitions_max: 10, spread_max: 0.05, seconds_max: 60.0 };

    #[test]
    fn equal_times_are_steady_as_soon_as_there_are_enough() {
        assert!(!RULE.is_over(&[1.0; 6], Duration::ZERO));
        assert!(RULE.is_over(&[1.0; 7], Duration::ZERO) && RULE.is_steady(&[1.0; 7]));
    }

    #[test]
    fn a_wide_interval_is_repeated_and_is_never_called_steady() {
        let times: Vec<f64> = (0..10).map(|at| 1.0 + 0.1 * f64::from(at % 3)).collect();
        assert!(!RULE.is_over(&times[..9], Duration::ZERO));
        assert!(RULE.is_over(&times, Duration::ZERO) && !RULE.is_steady(&times));
    }

    #[test]
    fn time_that_is_used_up_ends_a_case_with_at_least_one_result() {
        let hour = Duration::from_secs(3600);
        assert!(!RULE.is_over(&[], hour));
        assert!(RULE.is_over(&[1.0], hour) && !RULE.is_steady(&[1.0]));
    }
}
