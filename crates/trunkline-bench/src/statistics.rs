//! **Order statistics**: medians of paired ratios, and their confidence intervals.
//!
//! Measurements on a shared machine have outliers and aren't normally distributed, so we don't
//! compute means or standard deviations. Instead, we get the confidence interval of the median from
//! order statistics. The probability that the median is between the k-th smallest and the k-th
//! largest of n samples is given by the binomial distribution, no matter how the samples are
//! distributed. With 9 pairs, for example, the median is between the second smallest and the second
//! largest sample with 96% probability.

use serde::{Deserialize, Serialize};

/// A median with a confidence interval of at least 95%. If there are fewer than six samples, no
/// such interval exists, so we report the full range instead.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Estimate {
    /// Computes the estimate. Without samples, all three values are NaN.
    pub(crate) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let skipped = outside(samples.len());
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        let high = samples.len().saturating_sub(1 + skipped);
        Self { median: median(&samples), low: at(skipped), high: at(high) }
    }
}

/// Latency of one run's operations, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) median: f64,
    /// The 99th percentile.
    pub(crate) p99: f64,
}

impl Latency {
    /// Computes both percentiles from single latencies, in any order. Returns `None` without
    /// operations.
    pub(crate) fn of(mut micros: Vec<f32>) -> Option<Self> {
        micros.sort_unstable_by(f32::total_cmp);
        let at = |part: usize| micros.get(micros.len() * part / 100).copied().map(f64::from);
        Some(Self { median: at(50)?, p99: at(99)? })
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
/// the probability on that side is at most 2.5%.
fn outside(samples: usize) -> usize {
    // Probability that exactly k of n samples are below the median, accumulated from k = 0.
    let mut probability = 0.5_f64.powi(i32::try_from(samples).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for below in 0..samples {
        sum += probability;
        if sum > 0.025 {
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
            assert_eq!(outside(samples), skipped, "of {samples}");
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
    fn a_hundredth_of_all_operations_takes_longer_than_the_99th_percentile() {
        let micros = (0..1000).rev().map(|micros| micros as f32).collect();
        assert_eq!(Latency::of(micros), Some(Latency { median: 500.0, p99: 990.0 }));
        assert_eq!(Latency::of(vec![3.0]), Some(Latency { median: 3.0, p99: 3.0 }));
        assert_eq!(Latency::of(Vec::new()), None);
    }

    #[test]
    fn nine_samples_lose_one_at_each_end() {
        let samples = (1..=9).rev().map(f64::from).collect();
        assert_eq!(Estimate::of(samples), Estimate { median: 5.0, low: 2.0, high: 8.0 });
    }
}
