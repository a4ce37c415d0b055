//! **Times of single I/Os**: the device time and the wait time of what happened between two
//! snapshots of an I/O instance, as percentiles.
//!
//! The instance records both in HDR histograms all the time. A histogram of one repetition is the
//! difference of two snapshots, so measuring doesn't add anything to the I/O path. The histograms
//! of all repetitions are then added up, because a 99.9th percentile needs thousands of I/Os.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use trunkline_aio::{CLASSES, Latencies, Operation};

use crate::rounding::rounded;

/// Latency of one run's operations, in microseconds, for runs that record each of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Latency {
    /// Computes both percentiles from single latencies, in any order. Returns `None` without
    /// operations.
    pub fn of(mut micros: Vec<f32>) -> Option<Self> {
        micros.sort_unstable_by(f32::total_cmp);
        let at = |part: usize| micros.get(micros.len() * part / 100).copied().map(f64::from);
        Some(Self { median: at(50)?, p99: at(99)? })
    }
}

/// Percentiles of times, in microseconds. Of fewer than 100 times, the 99th percentile would be the
/// largest one, so there is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Number of times.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile, of at least 100 times.
    pub p99: Option<f64>,
    /// The 99.9th percentile, of at least 1000 times.
    pub p999: Option<f64>,
}

/// Device and wait times of I/Os.
#[derive(Debug, Clone, Default)]
pub(crate) struct IoTimes {
    device: Option<Histogram<u32>>,
    wait: Option<Histogram<u32>>,
}

impl IoTimes {
    /// The I/Os of this operation that completed between two snapshots, of all classes.
    pub(crate) fn between(before: &Latencies, after: &Latencies, operation: Operation) -> Self {
        let mut times = Self::default();
        for class in CLASSES {
            let device = (before.device(class, operation), after.device(class, operation));
            let wait = (before.wait(class, operation), after.wait(class, operation));
            add(&mut times.device, difference(device));
            add(&mut times.wait, difference(wait));
        }
        times
    }

    /// Of a session that executes each I/O itself: it waits for as long as the device takes.
    pub(crate) fn executed_by_sessions(self) -> Self {
        Self { wait: self.device.clone(), device: self.device }
    }

    /// Adds the times of another repetition.
    pub(crate) fn add(&mut self, other: IoTimes) {
        add(&mut self.device, other.device);
        add(&mut self.wait, other.wait);
    }

    /// Time in the device; `None` if no I/O has completed.
    pub(crate) fn device(&self) -> Option<Percentiles> {
        percentiles(self.device.as_ref()?)
    }

    /// Time that sessions slept for I/O; `None` if they never did.
    pub(crate) fn wait(&self) -> Option<Percentiles> {
        percentiles(self.wait.as_ref()?)
    }
}

/// What was recorded after the first snapshot.
fn difference(
    (before, after): (Option<&Histogram<u32>>, Option<&Histogram<u32>>),
) -> Option<Histogram<u32>> {
    let mut recorded = after?.clone();
    if let Some(before) = before {
        // This can't fail: counts never decrease, and all of these histograms have equal bounds.
        recorded.subtract(before).ok()?;
    }
    Some(recorded)
}

fn add(sum: &mut Option<Histogram<u32>>, part: Option<Histogram<u32>>) {
    match (sum.as_mut(), part) {
        // Adding histograms with equal bounds can't fail.
        (Some(sum), Some(part)) => _ = sum.add(&part),
        (None, Some(part)) => *sum = Some(part),
        (_, None) => {}
    }
}

pub(crate) fn percentiles(histogram: &Histogram<u32>) -> Option<Percentiles> {
    let at = |quantile| rounded(histogram.value_at_quantile(quantile) as f64 / 1e3, 1);
    let count = histogram.len();
    (count > 0).then(|| Percentiles {
        count,
        p50: at(0.5),
        p99: (count >= 100).then(|| at(0.99)),
        p999: (count >= 1000).then(|| at(0.999)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(nanos: impl IntoIterator<Item = u64>) -> Histogram<u32> {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000_000_000, 2).expect("valid");
        nanos.into_iter().for_each(|value| histogram.record(value).expect("in range"));
        histogram
    }

    #[test]
    fn a_hundredth_of_all_operations_takes_longer_than_the_99th_percentile() {
        let micros = (0..1000).rev().map(|micros| micros as f32).collect();
        assert_eq!(Latency::of(micros), Some(Latency { median: 500.0, p99: 990.0 }));
        assert_eq!(Latency::of(vec![3.0]), Some(Latency { median: 3.0, p99: 3.0 }));
        assert_eq!(Latency::of(Vec::new()), None);
    }

    #[test]
    fn only_what_was_recorded_between_two_snapshots_counts() {
        // 1 ms each before; then 1100 I/Os of 100 µs, 9 of 10 ms and 2 of 1 s.
        let before = histogram(std::iter::repeat_n(1_000_000, 5000));
        let later = [(100_000, 1100), (10_000_000, 9), (1_000_000_000, 2)];
        let later = later.into_iter().flat_map(|(nanos, count)| std::iter::repeat_n(nanos, count));
        let mut after = before.clone();
        after.add(histogram(later)).expect("equal bounds");
        let found = difference((Some(&before), Some(&after))).expect("recorded");
        assert_eq!(found.len(), 1111);
        let Percentiles { count, p50, p99, p999 } = percentiles(&found).expect("not empty");
        assert_eq!(count, 1111);
        let [p99, p999] = [p99, p999].map(|time| time.expect("enough"));
        // Two significant digits are recorded.
        for (found, expected) in [(p50, 100.0), (p99, 100.0), (p999, 1_000_000.0)] {
            assert!((found / expected - 1.0).abs() < 0.01, "{found}, expected {expected}");
        }
        let nothing = difference((Some(&after), Some(&after))).expect("a histogram");
        assert_eq!(percentiles(&nothing), None);
        for (count, expected) in [(99, [false; 2]), (100, [true, false]), (1000, [true; 2])] {
            let some = percentiles(&histogram(std::iter::repeat_n(1000, count))).expect("some");
            assert_eq!([some.p99.is_some(), some.p999.is_some()], expected, "{count}");
        }
    }
}
