//! **Order statistics**: medians, and confidence intervals that assume nothing about the
//! distribution.
//!
//! Times on a shared machine have outliers and aren't normally distributed, so we don't compute
//! means or standard deviations. Instead, we get the confidence interval of the median from order
//! statistics. The probability that the median is between the k-th smallest and the k-th largest of
//! n samples is given by the binomial distribution, no matter how the samples are distributed. With
//! 9 samples, for example, the median is between the second smallest and the second largest with
//! 96 % probability. The method is theorem 2.1 of J.-Y. Le Boudec, *Performance Evaluation of
//! Computer and Communication Systems* (EPFL Press, 2010). T. Hoefler and R. Belli, *Scientific
//! Benchmarking of Parallel Computing Systems* (SC '15), recommend it for measurements of computers,
//! and to repeat until the interval is narrow.
//!
//! ```
//! use trunkline_measure::Estimate;
//! let nine = Estimate::of((1..=9).map(f64::from).collect());
//! assert_eq!((nine.low, nine.median, nine.high), (2.0, 5.0, 8.0));
//! ```

use serde::{Deserialize, Serialize};

/// The confidence of an interval, unless the caller asks for another one.
const CONFIDENCE: f64 = 0.95;

/// The confidence of each of two intervals that are divided by each other.
const CONFIDENCE_OF_EACH: f64 = 0.975;

/// A median with its confidence interval. If there are too few samples for the confidence, no such
/// interval exists, so we report the full range instead.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The estimate with 95 % confidence. Without samples, all three values are NaN.
    pub fn of(samples: Vec<f64>) -> Self {
        Self::with_confidence(samples, CONFIDENCE)
    }

    /// The estimate with another confidence, such as 0.975.
    pub fn with_confidence(mut samples: Vec<f64>, confidence: f64) -> Self {
        samples.sort_by(f64::total_cmp);
        let skipped = outside(samples.len(), (1.0 - confidence) / 2.0);
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        let high = samples.len().saturating_sub(1 + skipped);
        Self { median: median(&samples), low: at(skipped), high: at(high) }
    }

    /// Width of the interval as a fraction of the median.
    pub fn spread(&self) -> f64 {
        (self.high - self.low) / self.median
    }

    /// The ratio of two quantities that were measured in pairs, second to first: the median of the
    /// pairs' ratios with its 95 % confidence interval. What slows down both halves of a pair cancels
    /// out.
    ///
    /// Returns `None` if there are too few pairs for the interval.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let is_enough = pairs.len() >= Self::samples_min(CONFIDENCE);
        is_enough.then(|| Self::of_ratios(pairs.iter().copied()))
    }

    /// The same with any number of pairs. With too few, the ends are the full range.
    pub fn of_ratios(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        Self::of(pairs.map(|(first, second)| second / first).collect())
    }

    /// For a ratio of times: whether the interval excludes that they are equal, and in which direction.
    pub fn verdict(&self) -> &'static str {
        match self {
            Estimate { high, .. } if *high < 1.0 => "faster",
            Estimate { low, .. } if *low > 1.0 => "slower",
            _ => "no difference",
        }
    }

    /// How many samples it takes for an interval with this confidence: 6 for 95 %, 7 for 97.5 %.
    pub fn samples_min(confidence: f64) -> usize {
        // The full range of n samples misses the median with probability 2 / 2^n.
        (1..64).find(|&n| 0.5_f64.powi(n - 1) <= 1.0 - confidence).map_or(64, |n| n as usize)
    }

    /// The ratio of the medians of independent samples, with 95 % confidence. `None` if there are too
    /// few samples.
    pub(crate) fn ratio(over: &[f64], under: &[f64]) -> Option<Self> {
        let enough = over.len().min(under.len()) >= Self::samples_min(CONFIDENCE_OF_EACH);
        let of = |samples: &[f64]| Self::with_confidence(samples.to_vec(), CONFIDENCE_OF_EACH);
        enough.then(|| Self::quotient(of(over), of(under)))
    }

    /// The ratio of the medians of independent samples: if both intervals contain their median, it is
    /// between the ratios of their ends. If each has a confidence of 97.5 %, the result has 95 %
    /// (Bonferroni). This is wider than necessary, but it holds for any two distributions, even if
    /// their shapes differ.
    pub(crate) fn quotient(over: Self, under: Self) -> Self {
        Self {
            median: over.median / under.median,
            low: over.low / under.high,
            high: over.high / under.low,
        }
    }
}

/// The median of sorted samples.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) && middle > 0 {
        f64::midpoint(at(middle - 1), at(middle))
    } else {
        at(middle)
    }
}

/// Number of samples to drop at each end to get the interval. This is the largest number for which
/// the probability on that side is at most `tail`.
fn outside(samples: usize, tail: f64) -> usize {
    // Probability that exactly k of n samples are below the median, accumulated from k = 0.
    let mut probability = 0.5_f64.powi(i32::try_from(samples).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for below in 0..samples {
        sum += probability;
        if sum > tail {
            return below.saturating_sub(1);
        }
        probability *= (samples - below) as f64 / (below + 1) as f64;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_follows_the_binomial_distribution() {
        // The expected values are taken from tables for the two-sided 5% sign test. We subtract
        // one, because the tables list the rank of the lower bound.
        for (samples, skipped) in [(1, 0), (5, 0), (6, 0), (9, 1), (12, 2), (15, 3), (20, 5)] {
            assert_eq!(outside(samples, 0.025), skipped, "of {samples}");
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Estimate::of(vec![3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Estimate::of(vec![4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(Estimate::of(vec![7.0]), Estimate { median: 7.0, low: 7.0, high: 7.0 });
        assert!(Estimate::of(Vec::new()).median.is_nan());
    }

    #[test]
    fn nine_samples_lose_one_at_each_end() {
        let samples = (1..=9).rev().map(f64::from).collect();
        let nine = Estimate::of(samples);
        assert_eq!(nine, Estimate { median: 5.0, low: 2.0, high: 8.0 });
        assert_eq!(nine.spread(), 1.2);
    }

    #[test]
    fn an_interval_takes_enough_samples() {
        assert_eq!(Estimate::samples_min(0.95), 6);
        assert_eq!(Estimate::samples_min(0.975), 7);
        // Seven samples that halve the time: the full ranges are the intervals.
        let slow = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
        let fast = slow.map(|time| time / 2.0);
        let [over, under] =
            [fast, slow].map(|times| Estimate::with_confidence(times.into(), 0.975));
        assert_eq!(
            Estimate::quotient(over, under),
            Estimate { median: 0.5, low: 5.0 / 16.0, high: 8.0 / 10.0 }
        );
    }

    #[test]
    fn what_both_halves_of_a_pair_have_in_common_cancels_out() {
        let pairs: Vec<(f64, f64)> =
            (1..=6).map(|it| (f64::from(it), 3.0 * f64::from(it))).collect();
        assert_eq!(Estimate::of_pairs(&pairs), Some(Estimate { median: 3.0, low: 3.0, high: 3.0 }));
        assert_eq!(Estimate::of_pairs(&pairs[..5]), None);
    }

    /// The stated confidence, checked by counting: all 2^n ways in which n samples can be below or
    /// above the median are equally likely.
    #[test]
    fn the_interval_misses_the_median_as_rarely_as_it_says() {
        for samples in 6..=16_usize {
            let skipped = outside(samples, 0.025);
            let misses =
                |below: u32| below as usize <= skipped || samples - below as usize <= skipped;
            let missed = (0..1_u32 << samples).filter(|ways| misses(ways.count_ones())).count();
            let missed = missed as f64 / f64::from(1_u32 << samples);
            assert!(missed <= 0.05, "{samples} samples: {missed}");
        }
    }
}
