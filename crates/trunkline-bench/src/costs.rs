//! The cost of one page: nanoseconds of elapsed time and of CPU time for several ways of access.
//!
//! These measurements have no reference. All ways are measured one after the other in each round, so that they run
//! under the same load, and bare reads are in the same table.

use crate::Result;
use crate::pairs::measure;
use crate::statistics::Estimate;
use crate::work::Done;
use serde_json::{Value, json};
use std::fmt;

/// A way to come by pages, to be measured: a run says how many pages it came by.
pub(crate) struct Way<'a> {
    pub(crate) name: String,
    pub(crate) threads: usize,
    /// Runs before each run, not measured.
    pub(crate) prepare: Box<dyn FnMut() -> Result<()> + 'a>,
    pub(crate) run: Box<dyn FnMut() -> Result<u64> + 'a>,
}

/// What a page cost in one way.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    name: String,
    threads: usize,
    /// Of each thread's time.
    elapsed: Estimate,
    /// Of the process's.
    cpu: Estimate,
}

impl Cost {
    /// Measures all ways in turn, `rounds` times, after one round that does not count.
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

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let estimate = |e: Estimate| json!({"median": e.median, "low": e.low, "high": e.high});
        json!({
            "way": self.name,
            "threads": self.threads,
            "nanos_per_page": estimate(self.elapsed),
            "cpu_nanos_per_page": estimate(self.cpu),
        })
    }
}

/// The head of the table.
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
