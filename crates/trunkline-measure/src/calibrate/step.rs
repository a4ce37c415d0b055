//! **Steps**: the result of one load, with intervals, as reports show it.

use serde::{Deserialize, Serialize};

use super::load::{Load, Window, Work, latencies};
use super::steady::is_steady;
use crate::estimate::Estimate;
use crate::latency::{Percentiles, percentiles};
use crate::rounding::rounded;

/// Rounds that a rate is estimated from, at most. Each has several windows, which evens out what is
/// due to the length of a window.
const ROUNDS_MAX: usize = 20;

/// What a device did under one load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    /// The kind of work.
    pub work: String,
    /// `direct` or `buffered`.
    pub mode: String,
    /// I/O method, or the method of durable writes; empty if any would do.
    pub method: String,
    /// I/Os in flight, or sessions.
    pub depth: u32,
    /// Bytes of an I/O.
    pub size: u32,
    /// How long it was measured, in seconds.
    pub seconds: f64,
    /// I/Os per second, with the 95 % interval.
    pub ios_per_second: Estimate,
    /// Bytes per second, with the 95 % interval.
    pub bytes_per_second: Estimate,
    /// Time of single I/Os in microseconds.
    pub micros: Option<Percentiles>,
    /// Whether the end was steady.
    pub steady: bool,
}

impl Step {
    /// Summarizes windows. The first one is left out, because the queue fills in it, unless it is the
    /// only one. `None` if nothing completed.
    pub(crate) fn of(load: &Load, windows: &[Window]) -> Option<Self> {
        let windows = settled(windows);
        let count: u64 = windows.iter().map(|window| window.count).sum();
        if count == 0 {
            return None;
        }
        let rates: Vec<f64> = windows.iter().map(|window| window.ios_per_second()).collect();
        Some(Self {
            work: work_name(load.work).to_owned(),
            mode: if load.is_direct { "direct" } else { "buffered" }.to_owned(),
            method: method_name(load),
            depth: load.depth,
            size: load.size,
            seconds: rounded(windows.iter().map(|window| window.seconds).sum(), 3),
            ios_per_second: rate(&windows, Window::ios_per_second),
            bytes_per_second: rate(&windows, Window::bytes_per_second),
            micros: times(&windows),
            steady: is_steady(&rates),
        })
    }
}

/// The windows that a rate can be computed from.
pub(crate) fn settled(windows: &[Window]) -> Vec<&Window> {
    let whole: Vec<&Window> = windows.iter().filter(|window| !window.is_tail).collect();
    match whole.len() {
        0 => windows.iter().collect(),
        1 => whole,
        _ => whole[1..].to_vec(),
    }
}

/// A rate over rounds of several windows.
pub(crate) fn rate(windows: &[&Window], of: fn(&Window) -> f64) -> Estimate {
    let size = windows.len().div_ceil(ROUNDS_MAX).max(1);
    // A rate of a round is the mean of its windows by time.
    let mean = |round: &[&Window]| {
        let seconds: f64 = round.iter().map(|window| window.seconds).sum();
        round.iter().map(|window| of(window) * window.seconds).sum::<f64>() / seconds.max(1e-9)
    };
    short(Estimate::of(windows.chunks(size).map(mean).collect()))
}

/// Rounds to a tenth, which is enough for rates of single I/Os and of bytes.
pub(crate) fn short(estimate: Estimate) -> Estimate {
    let Estimate { median, low, high } = estimate;
    Estimate { median: rounded(median, 1), low: rounded(low, 1), high: rounded(high, 1) }
}

/// Percentiles of all I/Os of the windows.
pub(crate) fn times(windows: &[&Window]) -> Option<Percentiles> {
    let mut all = latencies();
    for window in windows {
        // This can't fail: all histograms have the same bounds.
        all.add(&window.latency).ok()?;
    }
    percentiles(&all)
}

/// The name in reports.
pub(crate) fn work_name(work: Work) -> &'static str {
    match work {
        Work::Fill => "fill",
        Work::Random => "random read",
        Work::Sequential => "sequential read",
        Work::Mixed(_) => "mixed",
        Work::RandomWrite => "random write",
        Work::SequentialWrite => "sequential write",
        Work::Durable(_) => "durable write",
        Work::Flush(_) => "durable write beside page writes",
    }
}

fn method_name(load: &Load) -> String {
    match load.work {
        Work::Durable(method) => method.name().to_owned(),
        Work::Flush(bytes) => format!("flush after {} kB", bytes / 1024),
        _ => load.method.map_or_else(String::new, |method| method.name().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_rate_leaves_out_how_the_queue_filled_and_drained() {
        let load = Load {
            work: Work::Random,
            is_direct: true,
            method: None,
            workers: 8,
            depth: 4,
            size: 8192,
            pause: Duration::ZERO,
            duration: Duration::from_secs(1),
            window: Duration::from_millis(100),
        };
        let window = |count: u64, is_tail| {
            let mut window = Window { seconds: 0.1, is_tail, ..Window::new(0.0) };
            (0..count).for_each(|_| window.record(8192, Duration::from_micros(500)));
            window
        };
        let mut windows = vec![window(3, false)];
        windows.extend((0..6).map(|_| window(10, false)));
        windows.push(window(4, true));
        let step = Step::of(&load, &windows).expect("a step");
        assert_eq!(step.ios_per_second, Estimate { median: 100.0, low: 100.0, high: 100.0 });
        assert_eq!(step.bytes_per_second.median, 819_200.0);
        let p50 = step.micros.expect("times").p50;
        assert!((p50 / 500.0 - 1.0).abs() < 0.01 && step.steady, "{step:?}");
        assert!(Step::of(&load, &[]).is_none());
    }
}
