//! **Cost per page**: nanoseconds of elapsed time and of CPU time for one page, for several access
//! paths.
//!
//! There is no baseline for these rows. Instead, each round measures all access paths back to back,
//! so that they all run under the same load. One of these paths is a bare `pread`, which we include
//! for comparison.

use crate::failure::Result;
use crate::pairs::measure;
use crate::work::Done;
use serde::{Deserialize, Serialize};
use std::fmt;
use trunkline_measure::Estimate;

/// One access path to measure. `run` returns the number of pages it accessed.
pub(crate) struct Way<'a> {
    pub(crate) name: String,
    pub(crate) threads: usize,
    /// Called before each run, outside the measured time; for example, empties the pool.
    pub(crate) prepare: Box<dyn FnMut() -> Result<()> + 'a>,
    pub(crate) run: Box<dyn FnMut() -> Result<u64> + 'a>,
}

/// The measured cost of a page on one access path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cost {
    #[serde(rename = "way")]
    name: String,
    threads: usize,
    /// Elapsed nanoseconds per page, multiplied by the number of threads. For example, if there are
    /// two threads and each of them spends 1 µs on a page, the cost of a page is 1 µs and not 0.5
    /// µs.
    #[serde(rename = "nanos_per_page")]
    elapsed: Estimate,
    /// CPU nanoseconds per page, summed over all threads of the process.
    #[serde(rename = "cpu_nanos_per_page")]
    cpu: Estimate,
}

impl Cost {
    /// Measures all access paths in turn, `rounds` times. A warm-up round comes first and is
    /// discarded.
    pub(crate) fn of(rounds: usize, mut ways: Vec<Way<'_>>) -> Result<Vec<Cost>> {
        let mut samples = vec![(Vec::new(), Vec::new()); ways.len()];
        for round in 0..=rounds {
            for (way, (elapsed, cpu)) in ways.iter_mut().zip(&mut samples) {
                (way.prepare)()?;
                let sample = measure(|| {
                    let operations = (way.run)()?;
                    Ok(Done { operations, ..Done::default() })
                })?;
                if round > 0 {
                    let pages = sample.done.operations as f64;
                    elapsed.push(sample.elapsed * 1e9 * way.threads as f64 / pages);
                    cpu.push(sample.cpu * 1e9 / pages);
                }
            }
        }
        let cost = |(way, (elapsed, cpu)): (Way<'_>, (Vec<f64>, Vec<f64>))| {
            let (elapsed, cpu) = (Estimate::of(elapsed), Estimate::of(cpu));
            let cost = Cost { name: way.name, threads: way.threads, elapsed, cpu };
            eprintln!("{cost}");
            cost
        };
        Ok(ways.into_iter().zip(samples).map(cost).collect())
    }
}

/// The table's header rows.
pub(crate) const HEADER: &str = "| way | threads | ns per page | CPU ns per page |
|---|---|---|---|";

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, threads, elapsed, cpu } = self;
        write!(
            f,
            "| {name} | {threads} | {:.0} [{:.0}–{:.0}]",
            elapsed.median, elapsed.low, elapsed.high
        )?;
        write!(f, " | {:.0} [{:.0}–{:.0}] |", cpu.median, cpu.low, cpu.high)
    }
}
