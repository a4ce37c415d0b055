//! Pairs of measurements: the reference and a contender in turn, on the same work, in one run.
//!
//! The machine is shared, and so is its disk, so a rate says little about the rate a minute ago. Each pair is
//! measured back to back, the order alternates from pair to pair, and only ratios within a pair are compared. The
//! first pair is a warm-up and is not counted.

use crate::Result;
use crate::statistics::{Estimate, Latency};
use crate::work::Done;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// Something to be measured.
pub(crate) type Run<'a, W> = &'a mut dyn FnMut(&W) -> Result<Done>;

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) elapsed: f64,
    /// CPU seconds of the whole process, kernel threads of its rings included.
    pub(crate) cpu: f64,
    pub(crate) done: Done,
}

/// All pairs of a reference and a contender.
#[derive(Debug, Clone)]
pub(crate) struct Pairs(Vec<(Sample, Sample)>);

impl Pairs {
    /// Runs `count` pairs; `next` makes the work of a pair, `prepare` runs before each half of it.
    pub(crate) fn run<W>(
        count: usize,
        mut next: impl FnMut(u64) -> W,
        prepare: &mut dyn FnMut() -> Result<()>,
        reference: Run<'_, W>,
        contender: Run<'_, W>,
    ) -> Result<Self> {
        let mut pairs = Vec::with_capacity(count);
        for round in 0..=count {
            let work = next(round as u64);
            let mut half = |run: &mut dyn FnMut(&W) -> Result<Done>| {
                prepare()?;
                measure(|| run(&work))
            };
            let pair = if round % 2 == 0 {
                let first = half(reference)?;
                (first, half(contender)?)
            } else {
                let first = half(contender)?;
                (half(reference)?, first)
            };
            if round > 0 {
                pairs.push(pair);
            }
        }
        Ok(Self(pairs))
    }

    /// Pairs that the caller measured itself.
    pub(crate) fn of(pairs: Vec<(Sample, Sample)>) -> Self {
        Self(pairs)
    }

    /// The contender's rate over the reference's.
    pub(crate) fn rate_ratio(&self) -> Estimate {
        let ratio = |(reference, contender): &(Sample, Sample)| {
            operations_rate(contender) / operations_rate(reference)
        };
        Estimate::of(self.0.iter().map(ratio).collect())
    }

    /// The contender's CPU time per operation over the reference's.
    pub(crate) fn cpu_ratio(&self) -> Estimate {
        let cost = |sample: &Sample| sample.cpu / sample.done.operations as f64;
        let ratio = |pair: &(Sample, Sample)| cost(&pair.1) / cost(&pair.0);
        Estimate::of(self.0.iter().map(ratio).collect())
    }

    /// How long operations took, where every run has measured it.
    pub(crate) fn latencies(&self) -> Option<Latencies> {
        let each = |pair: &(Sample, Sample)| Some((pair.0.done.latency?, pair.1.done.latency?));
        let each: Vec<(Latency, Latency)> = self.0.iter().map(each).collect::<Option<_>>()?;
        let median = |value: &dyn Fn(&(Latency, Latency)) -> f64| {
            Estimate::of(each.iter().map(value).collect())
        };
        Some(Latencies {
            reference: Latency {
                median: median(&|pair| pair.0.median).median,
                p99: median(&|pair| pair.0.p99).median,
            },
            contender: Latency {
                median: median(&|pair| pair.1.median).median,
                p99: median(&|pair| pair.1.p99).median,
            },
            p99_ratio: median(&|pair| pair.1.p99 / pair.0.p99),
        })
    }

    /// Median over the reference's and over the contender's runs.
    pub(crate) fn medians(&self, value: impl Fn(&Sample) -> f64) -> (f64, f64) {
        let median = |values: Vec<f64>| Estimate::of(values).median;
        (
            median(self.0.iter().map(|pair| value(&pair.0)).collect()),
            median(self.0.iter().map(|pair| value(&pair.1)).collect()),
        )
    }
}

/// How long operations took, in microseconds; medians over the runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latencies {
    pub(crate) reference: Latency,
    pub(crate) contender: Latency,
    /// The contender's 99th percentile over the reference's.
    pub(crate) p99_ratio: Estimate,
}

/// Operations per second.
pub(crate) fn operations_rate(sample: &Sample) -> f64 {
    sample.done.operations as f64 / sample.elapsed
}

/// One run, with its time and the CPU time of the process; or those that it says it took.
pub(crate) fn measure(run: impl FnOnce() -> Result<Done>) -> Result<Sample> {
    let (cpu, started) = (cpu_seconds(), Instant::now());
    let done = run()?;
    let elapsed = started.elapsed().as_secs_f64();
    let (elapsed, cpu) = done.took.unwrap_or((elapsed, cpu_seconds() - cpu));
    Ok(Sample { elapsed, cpu, done })
}

/// CPU seconds of the process so far.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
