//! Seeded workloads of pools and streams on the simulated disk, with faults: every page right, every
//! failure told to exactly its issuer, nothing left behind, every cell of the meter filled.
//!
//! ```text
//!   cargo test -p trunkline-sim --test pool_workload                     a minute of seeds
//!   … -- --ignored                                                       until a million faults
//!   TRUNKLINE_POOL_SEED=7 TRUNKLINE_POOL_CLUSTER=1 … -- --ignored seed   one of them again
//! ```

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::sync::{Arc, Mutex, env, thread};
use trunkline_sim::pool_workload::{Cell, Counts, Lab, Meter, PoolWorkload};

/// Seeds of the run in CI: about a minute of them on two processors.
const SEEDS: u64 = 5000;

/// So many are tried until the meter is full.
const SEEDS_MAX: u64 = 4 * SEEDS;

/// Threads that run seeds; each has a lab, and every so-manieth seed is its own.
const THREADS: u64 = 2;

/// Faults of the long run.
const FAULTS: u64 = 1_000_000;

/// What many runs came to.
#[derive(Default)]
struct Totals {
    seeds: u64,
    faults: u64,
    steps: u64,
    counts: Counts,
    meter: Meter,
    findings: BTreeMap<u64, String>,
}

/// Runs seeds from `first` on until `enough`, or a finding.
fn drive(first: u64, enough: impl Fn(&Totals, u64) -> bool + Send + Sync + 'static) -> Totals {
    let (totals, enough) = (Arc::new(Mutex::new(Totals::default())), Arc::new(enough));
    let threads = (0..THREADS).map(|number| {
        let (totals, enough) = (Arc::clone(&totals), Arc::clone(&enough));
        // Here, so that each thread has the same cluster in every run.
        let lab = Lab::new();
        let work = move || {
            for seed in (first + number..).step_by(THREADS as usize) {
                let over = {
                    let totals = totals.lock();
                    !totals.findings.is_empty() || enough(&totals, seed)
                };
                if over {
                    return;
                }
                let result = lab.run(PoolWorkload::of_seed(seed));
                let mut totals = totals.lock();
                totals.seeds += 1;
                match result {
                    Ok(report) => {
                        totals.faults += report.faults;
                        totals.steps += report.steps;
                        totals.counts.add(&report.counts);
                        totals.meter.add(&report.meter);
                    }
                    Err(finding) => {
                        let finding = format!("cluster {}: {finding}", lab.cluster());
                        totals.findings.insert(seed, finding);
                    }
                }
            }
        };
        thread::spawn(&format!("seeds {number}"), work).expect("a thread")
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("no panic"));
    std::mem::take(&mut *totals.lock())
}

/// Says what was done, and demands that all was well.
fn judge(totals: &Totals, time: Duration) {
    let Totals { seeds, faults, steps, counts, meter, findings } = totals;
    let (cells, missing) = meter.missing();
    println!(
        "{seeds} seeds in {time:.1?}, {:.1} per second; {faults} faults, {steps} switch points\n\
         {counts:?}\n{} of {cells} cells filled; the rarest: {:?}; completed by a third thread: {}",
        *seeds as f64 / time.as_secs_f64(),
        cells - missing.len(),
        meter.rarest(),
        meter.overtaken(),
    );
    assert!(findings.is_empty(), "{findings:#?}");
    let strategies = meter.missing_strategies();
    assert!(strategies.is_empty(), "never met: {strategies:?}");
    assert!(missing.is_empty(), "empty: {missing:#?}");
    assert!(counts.lock_waits.iter().all(|&waits| waits > 0), "{counts:?}");
}

#[test]
fn a_minute_of_seeds_fills_the_meter_and_finds_nothing() {
    let begun = clock::now();
    let totals = drive(0, |totals, seed| {
        seed >= SEEDS_MAX || (seed >= SEEDS && totals.meter.missing().1.is_empty())
    });
    judge(&totals, clock::now().since(begun));
}

#[test]
#[ignore = "minutes; to be run by hand"]
fn a_million_faults() {
    let begun = clock::now();
    let totals = drive(1_000_000, |totals, _| totals.faults >= FAULTS);
    judge(&totals, clock::now().since(begun));
}

fn number(name: &str) -> Option<u64> {
    env::var(name)?.to_str()?.parse().ok()
}

#[test]
#[ignore = "a seed of a finding again, named by the environment"]
fn seed() {
    let Some(seed) = number("TRUNKLINE_POOL_SEED") else { return };
    run_again(seed, number("TRUNKLINE_POOL_CLUSTER").unwrap_or(1));
}

/// Runs a seed over a cluster of a number, which is a part of what decides the run.
fn run_again(seed: u64, cluster: u64) {
    let mut lab = Lab::new();
    while u64::from(lab.cluster()) < cluster {
        lab = Lab::new();
    }
    let report = lab.run(PoolWorkload::of_seed(seed)).unwrap_or_else(|finding| panic!("{finding}"));
    println!("seed {seed}: {} faults, {} switch points", report.faults, report.steps);
    assert_eq!(Cell::all().len(), 1920, "{:?}", report.counts);
}
