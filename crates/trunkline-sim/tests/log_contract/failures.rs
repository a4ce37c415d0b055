//! Each write and each sync of a run fails once. The log must stop, and must not lose what it has acknowledged.

use trunkline_aio::Operation;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, sched, thread};
use trunkline_engine::log_writer::WalSyncMethod;
use trunkline_sim::{Disk, Fault, FaultPlan, Rule};

use crate::disk_log::{DiskLog, FIRST, Known, Place, Way, check};

/// The seed of all runs, so that each execution of one run fails once.
const SEED: u64 = 7;

/// Runs a few clients until the log fails. Returns whether it did.
fn run(seed: u64, way: Way, operation: Operation, nth: u64) -> bool {
    let rng = &mut Rng::new(seed);
    let disk = Arc::new(Disk::new());
    let plan = FaultPlan::none();
    let log = DiskLog::open(&disk, &plan, rng, way, Place::START).expect("opens");
    // The segments are there, so that what fails is a flush.
    log.log.create_segments_ahead().expect("created");
    plan.set(vec![Rule::new(operation, nth, Fault::Error(libc_eio()))]);
    let known = Arc::new(Mutex::new(Known::default()));
    let clients = log.run_clients(3, rng, &known, |client, number, rng| {
        let mut has_failed = false;
        for round in 0..8_u32 {
            let Ok(place) = client.insert(number << 16 | round, rng.below(500) as usize) else {
                return;
            };
            let flushed = client.flush(place.end);
            assert!(!has_failed || flushed.is_err(), "a flush after a failure was acknowledged");
            has_failed |= flushed.is_err();
        }
    });
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    let has_failed = plan.struck() > 0;
    let known = known.lock();
    check(&disk.after_crash(seed), FIRST, known.acknowledged, &known.written);
    if has_failed {
        // Even if a sync of another flush has made everything durable.
        let mut client = log.client(&Arc::new(Mutex::new(Known::default())));
        let error = client.insert(1, 10).expect_err("the log has failed").to_string();
        assert!(error.contains("no more WAL can be written"), "{error}");
    }
    has_failed
}

fn libc_eio() -> i32 {
    5
}

/// Lets the first, second, … execution of an operation fail, until a run has fewer.
fn fail_each(way: Way, operation: Operation) -> u64 {
    for nth in 1.. {
        let failed = Arc::new(Mutex::new(false));
        let result = Arc::clone(&failed);
        let body = move || *result.lock() = run(SEED, way, operation, nth);
        sched::run(sched::Config::new(SEED), body)
            .unwrap_or_else(|failure| panic!("{way:?}: {failure}"));
        if !*failed.lock() {
            return nth - 1;
        }
    }
    0
}

#[test]
fn a_failed_write_ends_the_log() {
    for way in Way::ALL {
        assert!(fail_each(way, Operation::Writev) > 5, "{way:?}");
    }
}

#[test]
fn a_failed_sync_ends_the_log() {
    for way in Way::ALL {
        let syncs = fail_each(way, Operation::Fdatasync);
        assert_eq!(syncs > 5, way.sync_method == WalSyncMethod::Fdatasync, "{way:?}: {syncs}");
    }
}

/// The kernel drops what a failed sync should have written, reports that once for each open file, and lets the next
/// sync succeed.
#[test]
fn a_sync_that_loses_data_is_not_made_good_by_another() {
    for seed in 1..=100 {
        for way in Way::ALL {
            let report = sched::run(sched::Config::new(seed), move || lose_a_sync(seed, way));
            report.unwrap_or_else(|failure| panic!("{way:?}, seed {seed}: {failure}"));
        }
    }
}

fn lose_a_sync(seed: u64, way: Way) {
    let rng = &mut Rng::new(seed);
    let disk = Arc::new(Disk::new());
    let log = DiskLog::open(&disk, &FaultPlan::none(), rng, way, Place::START);
    let log = log.expect("opens");
    log.log.create_segments_ahead().expect("created");
    let known = Arc::new(Mutex::new(Known::default()));
    let clients = log.run_clients(4, rng, &known, |client, number, rng| {
        for round in 0..8_u32 {
            let length = rng.below(500) as usize;
            let Ok(place) = client.insert(number << 16 | round, length) else { return };
            if client.flush(place.end).is_err() {
                return;
            }
        }
    });
    (0..rng.below(2000)).for_each(|_| thread::yield_now());
    disk.lose_syncs(1);
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    let known = known.lock();
    check(&disk.after_crash(seed), FIRST, known.acknowledged, &known.written);
}
