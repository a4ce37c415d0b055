//! Seeded workloads of pools and read streams on the simulated disk, with faults.
//!
//! Every page must have the right contents. Every failure must be reported to the session that
//! issued the I/O, and not to any other session. Nothing may be leaked, and the runs together must
//! reach every cell of the coverage table.
//! ```text
//!   cargo test -p trunkline-sim --test pool_workload    a minute of seeds
//!   TRUNKLINE_POOL_FAULTS=1000000 …                     until a million faults: some minutes
//!   TRUNKLINE_POOL_SEED=7 TRUNKLINE_POOL_CLUSTER=1 …    one of the seeds again
//! ```
//! There is only one test here, because the cluster number affects how a seed runs. Any other test
//! in this process would use up some of the cluster numbers.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::facade::{Arc, Mutex, env, thread};
use trunkline_sim::pool_workload::{Cell, Counts, Meter, PoolWorkload, Runner};

/// Seeds to run in CI, which takes about a minute on two processors.
const SEEDS: u64 = 5000;

/// The most seeds we run before we give up on the cells that are still missing.
const SEEDS_MAX: u64 = 4 * SEEDS;

/// Threads that run seeds. Each has its own runner and takes every `THREADS`-th seed.
const THREADS: u64 = 2;

/// Totals of many runs.
#[derive(Default)]
struct Totals {
    seeds: u64,
    faults: u64,
    steps: u64,
    counts: Counts,
    meter: Meter,
    failures: BTreeMap<u64, String>,
}

/// Runs seeds until `enough` returns true or a run fails.
fn drive(enough: impl Fn(&Totals, u64) -> bool + Send + Sync + 'static) -> Totals {
    let (totals, enough) = (Arc::new(Mutex::new(Totals::default())), Arc::new(enough));
    let threads = (0..THREADS).map(|number| {
        let (totals, enough) = (Arc::clone(&totals), Arc::clone(&enough));
        // Created here and not in the thread, so that thread N gets the same cluster number every
        // time.
        let runner = Runner::new();
        let work = move || {
            for seed in (number..).step_by(THREADS as usize) {
                let over = {
                    let totals = totals.lock();
                    !totals.failures.is_empty() || enough(&totals, seed)
                };
                if over {
                    return;
                }
                let result = runner.run(PoolWorkload::of_seed(seed));
                let mut totals = totals.lock();
                totals.seeds += 1;
                match result {
                    Ok(report) => {
                        totals.faults += report.faults;
                        totals.steps += report.steps;
                        totals.counts.add(&report.counts);
                        totals.meter.add(&report.meter);
                    }
                    Err(failure) => {
                        let failure = format!("cluster {}: {failure}", runner.cluster());
                        totals.failures.insert(seed, failure);
                    }
                }
            }
        };
        thread::spawn(&format!("seeds {number}"), work).expect("a thread")
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("no panic"));
    std::mem::take(&mut *totals.lock())
}

/// Prints the totals. Fails if a run failed or a cell was missed.
fn check(totals: &Totals, time: Duration) {
    let Totals { seeds, faults, steps, counts, meter, failures } = totals;
    let (cells, missing) = meter.missing();
    println!(
        "{seeds} seeds in {time:.1?}, {:.1} per second; {faults} faults, {steps} switch points\n\
         {counts:?}\n{} of {cells} cells reached; the rarest: {:?}; completed by a third thread: {}",
        *seeds as f64 / time.as_secs_f64(),
        cells - missing.len(),
        meter.rarest(),
        meter.overtaken(),
    );
    assert!(failures.is_empty(), "{failures:#?}");
    let strategies = meter.missing_strategies();
    assert!(strategies.is_empty(), "not reached: {strategies:?}");
    assert!(missing.is_empty(), "not reached: {missing:#?}");
    assert!(counts.lock_waits.iter().all(|&waits| waits > 0), "{counts:?}");
}

#[test]
fn a_minute_of_seeds_reaches_every_cell_without_a_failure() {
    if let Some(seed) = number("TRUNKLINE_POOL_SEED") {
        return run_again(seed, number("TRUNKLINE_POOL_CLUSTER").unwrap_or(1));
    }
    let faults = number("TRUNKLINE_POOL_FAULTS").unwrap_or(0);
    assert_eq!(Cell::all().len(), 1920);
    let begun = clock::now();
    let totals = drive(move |totals, seed| {
        let complete = seed >= SEEDS && totals.meter.missing().1.is_empty();
        totals.faults >= faults && (complete || seed >= SEEDS_MAX)
    });
    check(&totals, clock::now().since(begun));
}

fn number(name: &str) -> Option<u64> {
    env::var(name)?.to_str()?.parse().ok()
}

/// Runs a seed again with the given cluster number. Since the cluster number is one of the inputs
/// to the hash of a buffer tag, a different number would give a different run.
fn run_again(seed: u64, cluster: u64) {
    let mut runner = Runner::new();
    while u64::from(runner.cluster()) < cluster {
        runner = Runner::new();
    }
    let report = runner.run(PoolWorkload::of_seed(seed));
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    println!("seed {seed}: {} faults, {} switch points", report.faults, report.steps);
}
