//! **Repetitions**: measures again until the interval of the median is narrow, and says so if it
//! never is.
//!
//! A case ends when the interval is no wider than the limit, after the largest number of
//! repetitions, or when its time is used up.
//!
//! If we looked at the interval after each repetition and stopped at the first narrow one, we would
//! select intervals that are narrow by chance, and these miss the median more often than they say. So
//! we look only at a few numbers of repetitions, by default 7, 12 and 20, and split the permitted
//! error between these looks (Bonferroni): the intervals of all looks together contain the median
//! with 95 % probability, so the one at which we stop does too. `--against` splits its error in the
//! same way.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// Probability that the interval of a case doesn't contain the median.
const ERROR: f64 = 0.05;
/// The same for each of two runs that are compared. Together, they have the probability above.
const ERROR_OF_EACH: f64 = 0.025;
/// Part of the error that the first look may use: the full range of 7 samples misses the median this
/// often, and there is no wider interval.
const ERROR_OF_FIRST: f64 = 1.0 / 64.0;

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

/// Why a case was not repeated any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Its interval is narrow enough.
    Steady,
    /// It, or a case that it is compared with, was repeated as often as allowed.
    Repetitions,
    /// Its time, or that of a case that it is compared with, was used up.
    Time,
    /// The measurement ended before.
    Interrupted,
    /// A repetition failed.
    Failed,
}

impl Ended {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Steady => "steady",
            Ended::Repetitions => "repetitions",
            Ended::Time => "time",
            Ended::Interrupted => "interrupted",
            Ended::Failed => "failed",
        }
    }
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

    /// Numbers of repetitions at which we look whether the case is steady. Each is five thirds of
    /// the one before, so that there are few, and little time is wasted between two of them.
    fn looks(&self) -> Vec<usize> {
        let last = self.repetitions_max as usize;
        let all =
            std::iter::successors(Some(Self::REPETITIONS_MIN), |&at| Some((at * 5).div_ceil(3)));
        let mut looks: Vec<usize> = all.take_while(|&at| at < last).collect();
        looks.extend((last >= Self::REPETITIONS_MIN).then_some(last));
        looks
    }

    /// The confidence of an interval after this number of repetitions, so that the intervals of all
    /// looks together miss the median with at most this probability.
    fn confidence(&self, repetitions: usize, error: f64) -> f64 {
        let later = self.looks().len().saturating_sub(1);
        if later == 0 || repetitions < Self::REPETITIONS_MIN {
            return 1.0 - error;
        }
        let first = ERROR_OF_FIRST.min(error);
        match repetitions {
            Self::REPETITIONS_MIN => 1.0 - first,
            _ => 1.0 - (error - first) / later as f64,
        }
    }

    fn interval_within(&self, seconds: &[f64], error: f64) -> Option<Estimate> {
        let confidence = self.confidence(seconds.len(), error);
        let is_enough = seconds.len() >= Estimate::samples_min(confidence);
        is_enough.then(|| Estimate::with_confidence(seconds.to_vec(), confidence))
    }

    /// The median of a case's times with its 95 % interval, which takes into account how often we
    /// have looked. Returns `None` if there are too few times.
    pub fn interval(&self, seconds: &[f64]) -> Option<Estimate> {
        self.interval_within(seconds, ERROR)
    }

    /// New times divided by those of another run, with at least 95 % confidence; see
    /// `Estimate::quotient`. Returns `None` if there are too few times on either side.
    pub fn ratio(&self, new: &[f64], old_rule: &Self, old: &[f64]) -> Option<Estimate> {
        if new.len().min(old.len()) < Self::REPETITIONS_MIN {
            return None;
        }
        let over = self.interval_within(new, ERROR_OF_EACH)?;
        let under = old_rule.interval_within(old, ERROR_OF_EACH)?;
        Some(Estimate::quotient(over, under))
    }

    /// The ratio of two quantities that were measured in pairs, second to first, with its 95 %
    /// interval, which takes into account how often we have looked; see [`Estimate::of_ratios`].
    /// Returns `None` if there are too few pairs.
    pub(crate) fn ratio_of_pairs(&self, pairs: &[(f64, f64)]) -> Option<Estimate> {
        let ratios: Vec<f64> = pairs.iter().map(|(first, second)| second / first).collect();
        self.interval(&ratios)
    }

    /// Whether these times, in seconds, are steady.
    pub fn is_steady(&self, seconds: &[f64]) -> bool {
        self.looks().contains(&seconds.len()) && self.is_narrow(seconds)
    }

    /// Whether the interval of these times is as narrow as that of a steady case. A case whose
    /// repetitions end for another reason may be narrow between two looks.
    pub(crate) fn is_narrow(&self, seconds: &[f64]) -> bool {
        seconds.len() >= Self::REPETITIONS_MIN
            && self.interval(seconds).is_some_and(|interval| interval.spread() <= self.spread_max)
    }

    /// Why a case needs no more repetitions, if it doesn't. `spent` includes the preparation.
    pub fn ended(&self, seconds: &[f64], spent: Duration) -> Option<Ended> {
        if self.is_steady(seconds) { Some(Ended::Steady) } else { self.limit(seconds, spent) }
    }

    /// Which limit has been reached, if one has, whether or not the case is steady.
    pub(crate) fn limit(&self, seconds: &[f64], spent: Duration) -> Option<Ended> {
        if seconds.len() >= self.repetitions_max as usize {
            return Some(Ended::Repetitions);
        }
        let is_late = !seconds.is_empty() && spent.as_secs_f64() >= self.seconds_max;
        is_late.then_some(Ended::Time)
    }

    /// Whether a case needs no more repetitions.
    pub fn is_over(&self, seconds: &[f64], spent: Duration) -> bool {
        self.ended(seconds, spent).is_some()
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
        assert!((7..10).all(|at| !RULE.is_over(&times[..at], Duration::ZERO)));
        assert_eq!(RULE.ended(&times, Duration::ZERO), Some(Ended::Repetitions));
        assert!(RULE.is_over(&times, Duration::ZERO) && !RULE.is_steady(&times));
    }

    #[test]
    fn time_that_is_used_up_ends_a_case_with_at_least_one_result() {
        let hour = Duration::from_secs(3600);
        assert!(!RULE.is_over(&[], hour));
        assert!(RULE.is_over(&[1.0], hour) && !RULE.is_steady(&[1.0]));
    }

    #[test]
    fn the_interval_is_looked_at_a_few_times_only() {
        let looks = |repetitions_max| RepetitionRule { repetitions_max, ..RULE }.looks();
        assert_eq!(looks(20), [7, 12, 20]);
        assert_eq!((looks(6), looks(7), looks(8)), (vec![], vec![7], vec![7, 8]));
        assert_eq!(looks(1000), [7, 12, 20, 34, 57, 95, 159, 265, 442, 737, 1000]);
        let rule = RepetitionRule { repetitions_max: 20, ..RULE };
        let steady: Vec<usize> = (1..=20).filter(|&at| rule.is_steady(&vec![1.0; at])).collect();
        assert_eq!(steady, [7, 12, 20]);
    }

    #[test]
    fn the_intervals_of_all_looks_share_the_error() {
        // Probability that the interval misses the median, from its ranks.
        let missed = |repetitions: usize, skipped: f64| {
            let mut ways = 1.0;
            let mut sum = 0.0;
            for below in 0..=skipped as usize {
                sum += ways;
                ways *= (repetitions - below) as f64 / (below + 1) as f64;
            }
            2.0 * sum / 2_f64.powi(repetitions as i32)
        };
        for repetitions_max in [7, 8, 12, 13, 20, 21, 100, 1000] {
            let rule = RepetitionRule { repetitions_max, ..RULE };
            for error in [ERROR, ERROR_OF_EACH] {
                let misses = rule.looks().into_iter().map(|at| {
                    let times: Vec<f64> = (0..at).map(|time| time as f64).collect();
                    // Times that are equal to their ranks.
                    missed(at, rule.interval_within(&times, error).expect("enough").low)
                });
                let sum: f64 = misses.sum();
                assert!(sum > 0.0 && sum <= error, "{repetitions_max}: {sum}, not {error}");
            }
        }
    }

    #[test]
    fn too_few_times_have_no_interval() {
        assert_eq!(RULE.interval(&[1.0; 5]), None);
        assert!(RULE.interval(&[1.0; 6]).is_some());
        assert_eq!(RULE.ratio(&[1.0; 6], &RULE, &[1.0; 7]), None);
        assert_eq!(RULE.ratio(&[1.0; 7], &RULE, &[1.0; 6]), None);
        let half = RULE.ratio(&[1.0; 7], &RULE, &[2.0; 10]).expect("enough");
        assert_eq!((half.low, half.high), (0.5, 0.5));
    }
}
