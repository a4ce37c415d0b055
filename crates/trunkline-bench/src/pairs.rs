//! **Paired measurement**: alternates the baseline and a contender on the same work in one run.
//!
//! We share the CPUs and the disk with other tenants, so a rate that we measured a minute ago says
//! little about the current rate. We therefore measure both halves of a pair back to back, and
//! compare only the ratios within a pair. The order alternates from pair to pair, because the
//! second half may benefit from caches that the first half has filled. The first pair is a warm-up
//! and is discarded.

use crate::failure::Result;
use crate::work::Done;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use trunkline_measure::{Estimate, Latency};

/// The two halves of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Reference,
    Contender,
}

/// Measurements of one run: half of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) elapsed: f64,
    /// CPU seconds of the whole process, including the kernel threads that serve its rings.
    pub(crate) cpu: f64,
    pub(crate) done: Done,
}

impl Sample {
    /// Operations per second.
    pub(crate) fn rate(&self) -> f64 {
        self.done.operations as f64 / self.elapsed
    }

    /// CPU time per operation in microseconds.
    pub(crate) fn cpu_micros(&self) -> f64 {
        self.cpu * 1e6 / self.done.operations as f64
    }
}

/// All pairs of one baseline and one contender.
#[derive(Debug, Clone)]
pub(crate) struct Pairs(Vec<(Sample, Sample)>);

impl Pairs {
    /// Runs the given number of pairs. The `half` closure is called with one of the two halves and
    /// the number of the pair, and must prepare and measure that half. Both halves of a pair must
    /// do the same work.
    pub(crate) fn run(
        count: usize,
        mut half: impl FnMut(Half, u64) -> Result<Sample>,
    ) -> Result<Self> {
        let mut pairs = Vec::with_capacity(count);
        for round in 0..=count as u64 {
            let pair = if round % 2 == 0 {
                let first = half(Half::Reference, round)?;
                (first, half(Half::Contender, round)?)
            } else {
                let first = half(Half::Contender, round)?;
                (half(Half::Reference, round)?, first)
            };
            if round > 0 {
                pairs.push(pair);
            }
        }
        Ok(Self(pairs))
    }

    /// Wraps pairs that the caller measured. `checkpoint-spread` needs it, because its order
    /// within a pair is fixed.
    pub(crate) fn of(pairs: Vec<(Sample, Sample)>) -> Self {
        Self(pairs)
    }

    /// The contender's value divided by the baseline's, over all pairs.
    pub(crate) fn ratio(&self, value: impl Fn(&Sample) -> f64) -> Estimate {
        Estimate::of_ratios(self.0.iter().map(|pair| (value(&pair.0), value(&pair.1))))
    }

    /// Medians over the baseline's runs and over the contender's runs.
    pub(crate) fn medians(&self, value: impl Fn(&Sample) -> f64) -> Sides<f64> {
        let median = |values: Vec<f64>| Estimate::of(values).median;
        Sides {
            reference: median(self.0.iter().map(|pair| value(&pair.0)).collect()),
            contender: median(self.0.iter().map(|pair| value(&pair.1)).collect()),
        }
    }

    /// Latencies, if every run recorded them.
    pub(crate) fn latencies(&self) -> Option<Latencies> {
        let mut runs = self.0.iter().flat_map(|pair| [&pair.0, &pair.1]);
        if runs.any(|run| run.done.latency.is_none()) {
            return None;
        }
        let of = |run: &Sample| run.done.latency.unwrap_or(Latency { median: 0.0, p99: 0.0 });
        let (median, p99) = (self.medians(|run| of(run).median), self.medians(|run| of(run).p99));
        Some(Latencies {
            reference: Latency { median: median.reference, p99: p99.reference },
            contender: Latency { median: median.contender, p99: p99.contender },
            p99_ratio: self.ratio(|run| of(run).p99),
        })
    }
}

/// A value of the baseline and one of the contender.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Sides<T> {
    pub(crate) reference: T,
    pub(crate) contender: T,
}

/// Operation latency in microseconds; each value is a median over the runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Latencies {
    pub(crate) reference: Latency,
    pub(crate) contender: Latency,
    /// The contender's 99th percentile divided by the baseline's.
    pub(crate) p99_ratio: Estimate,
}

/// Executes one run and measures its elapsed time and CPU time. If the run has measured itself, for
/// example in a child process, we use its own numbers instead.
pub(crate) fn measure(run: impl FnOnce() -> Result<Done>) -> Result<Sample> {
    let (cpu, started) = (cpu_seconds(), Instant::now());
    let done = run()?;
    let elapsed = started.elapsed().as_secs_f64();
    let (elapsed, cpu) = done.took.unwrap_or((elapsed, cpu_seconds() - cpu));
    Ok(Sample { elapsed, cpu, done })
}

/// CPU seconds the process has consumed so far.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
