//! **Paired measurement**: alternates the baseline and a contender on the same work in one run.
//!
//! CPUs and disk are shared with other tenants, so a rate measured a minute ago says little about
//! the current rate. We therefore measure both halves of a pair back to back, and compare only
//! ratios within a pair. The order alternates from pair to pair, because the second half may
//! profit from caches that the first one filled. The first pair is a warm-up and is discarded.

use crate::Result;
use crate::statistics::{Estimate, Latency};
use crate::work::Done;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// A measurable subject: performs the given work and reports what it did.
pub(crate) type Run<'a, W> = &'a mut dyn FnMut(&W) -> Result<Done>;

/// Measurements of one run: half of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) elapsed: f64,
    /// CPU seconds of the whole process, including the kernel threads that serve its rings.
    pub(crate) cpu: f64,
    pub(crate) done: Done,
}

/// All pairs of one baseline and one contender.
#[derive(Debug, Clone)]
pub(crate) struct Pairs(Vec<(Sample, Sample)>);

impl Pairs {
    /// Runs `count` pairs. `next` generates each pair's work; `prepare` runs before each half,
    /// outside the measured time.
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

    /// Wraps pairs that the caller measured. `checkpoint-spread` needs it, because its order
    /// within a pair is fixed.
    pub(crate) fn of(pairs: Vec<(Sample, Sample)>) -> Self {
        Self(pairs)
    }

    /// The contender's rate divided by the baseline's rate.
    pub(crate) fn rate_ratio(&self) -> Estimate {
        let ratio = |(reference, contender): &(Sample, Sample)| {
            operations_rate(contender) / operations_rate(reference)
        };
        Estimate::of(self.0.iter().map(ratio).collect())
    }

    /// The contender's CPU time per operation divided by the baseline's.
    pub(crate) fn cpu_ratio(&self) -> Estimate {
        let cost = |sample: &Sample| sample.cpu / sample.done.operations as f64;
        let ratio = |pair: &(Sample, Sample)| cost(&pair.1) / cost(&pair.0);
        Estimate::of(self.0.iter().map(ratio).collect())
    }

    /// Latencies, if every run recorded them.
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

    /// Medians over the baseline's runs and over the contender's runs.
    pub(crate) fn medians(&self, value: impl Fn(&Sample) -> f64) -> (f64, f64) {
        let median = |values: Vec<f64>| Estimate::of(values).median;
        (
            median(self.0.iter().map(|pair| value(&pair.0)).collect()),
            median(self.0.iter().map(|pair| value(&pair.1)).collect()),
        )
    }
}

/// Operation latency in microseconds; each value is a median over the runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latencies {
    pub(crate) reference: Latency,
    pub(crate) contender: Latency,
    /// The contender's 99th percentile divided by the baseline's.
    pub(crate) p99_ratio: Estimate,
}

/// Operations per second.
pub(crate) fn operations_rate(sample: &Sample) -> f64 {
    sample.done.operations as f64 / sample.elapsed
}

/// Executes one run and measures elapsed and CPU time. If the run measured itself (in a child
/// process, for example), its own numbers are used instead.
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
