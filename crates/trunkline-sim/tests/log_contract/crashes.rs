//! Crashes at random moments.

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, env, sched, thread};
use trunkline_sim::{Disk, FaultPlan, Rates};

use crate::disk_log::{Client, DiskLog, FIRST, Known, Place, Way, check, fillers};

/// Number of seeds of each test, for each way of making WAL durable, unless [`CRASHES_VARIABLE`] asks for more.
const SEEDS: u64 = 30;

/// The number of crashes that each test tries at least.
const CRASHES_VARIABLE: &str = "TRUNKLINE_LOG_CRASHES";

/// Crashes of each run.
const CRASHES: u64 = 12;

/// Copies of the disk at each moment, if more crashes are wanted than those of CI. Each has lost other writes.
const COPIES: u64 = 8;

/// Inserts and flushes at random.
fn work(client: &mut Client, number: u32, rng: &mut Rng) {
    for round in 0..12_u32 {
        let length = match rng.below(6) {
            0 => rng.below(20_000) as usize,
            _ => rng.below(300) as usize,
        };
        let Ok(place) = client.insert(number << 16 | round, length) else { return };
        if rng.below(2) == 0 && client.flush(place.end).is_err() {
            return;
        }
    }
}

/// What happened in some runs.
#[derive(Debug, Default)]
struct Happened {
    /// The number of copies of the disk after a crash, all of which were checked.
    crashes: u64,
    /// The number of fillers in the logs before their crashes.
    fillers: usize,
    /// The number of writes that began while another one was in flight.
    overlapping: u64,
}

/// Crashes copies of the disk while clients write, and checks each copy. Then the last copy's log goes on.
fn run(seed: u64, rates: Rates, way: Way, happened: &Mutex<Happened>) {
    let copies = if crashes_wanted() == 0 { 1 } else { COPIES };
    let rng = &mut Rng::new(seed);
    let mut disk = Arc::new(Disk::new());
    let plan = FaultPlan::random(seed, rates);
    let mut at = Place::START;
    let mut survivors = Vec::new();
    for _ in 0..2 {
        // A log that can't be opened because of a fault can be opened later.
        let log = loop {
            match DiskLog::open(&disk, &plan, rng, way, at) {
                Ok(log) => break log,
                Err(error) => assert!(plan.struck() > 0, "{error}"),
            }
        };
        let known =
            Arc::new(Mutex::new(Known { written: survivors.clone(), acknowledged: at.end.0 }));
        let clients = log.run_clients(3, rng, &known, work);
        let mut crashed = Vec::new();
        for _ in 0..1 + rng.below(CRASHES) {
            (0..rng.below(600)).for_each(|_| thread::yield_now());
            let acknowledged = known.lock().acknowledged;
            for _ in 0..copies {
                let copy = disk.after_crash(rng.below(u64::MAX));
                crashed.push((copy, acknowledged));
            }
        }
        clients.into_iter().for_each(|client| client.join().expect("no panic"));
        let written = known.lock().written.clone();
        let before = at.end;
        at = (crashed.iter())
            .map(|(copy, acknowledged)| check(copy, FIRST, *acknowledged, &written))
            .last()
            .expect("a crash");
        if plan.struck() == 0 {
            // Nothing has failed, so all that was flushed is there.
            let acknowledged = known.lock().acknowledged;
            assert!(acknowledged > before.0);
            check(&disk, FIRST, acknowledged, &written);
        }
        // The crashed log goes on, in a new instance.
        {
            let mut happened = happened.lock();
            happened.crashes += crashed.len() as u64;
            happened.overlapping += *log.overlapping.lock();
            happened.fillers += fillers(&disk);
        }
        drop(log);
        survivors = written.into_iter().filter(|record| record.place.end <= at.end).collect();
        let (copy, _) = crashed.pop().expect("a crash");
        disk = Arc::new(copy);
    }
}

/// The number of crashes that a test tries at least.
fn crashes_wanted() -> u64 {
    let number = env::var(CRASHES_VARIABLE)
        .map(|number| number.to_str().and_then(|number| number.parse().ok()).expect("a number"));
    number.unwrap_or(0)
}

/// Runs each way of making WAL durable with some seeds.
fn run_seeds(first: u64, rates: Rates) {
    let wanted = crashes_wanted() / Way::ALL.len() as u64;
    let mut all = 0;
    for way in Way::ALL {
        let happened = Arc::new(Mutex::new(Happened::default()));
        for seed in first.. {
            if seed >= first + SEEDS && happened.lock().crashes > wanted {
                break;
            }
            let theirs = Arc::clone(&happened);
            let report =
                sched::run(sched::Config::new(seed), move || run(seed, rates, way, &theirs));
            report.unwrap_or_else(|failure| panic!("{way:?}, seed {seed}: {failure}"));
        }
        // Otherwise the runs would show nothing about flushes beside each other.
        let happened = happened.lock();
        assert_eq!(happened.overlapping > 10, way.overlaps(), "{way:?}: {happened:?}");
        assert_eq!(happened.fillers > 10, way.overlaps(), "{way:?}: {happened:?}");
        all += happened.crashes;
    }
    println!("{all} crashes of the log");
}

#[test]
fn what_was_acknowledged_survives_a_crash() {
    run_seeds(1, Rates::default());
}

#[test]
fn what_was_acknowledged_survives_with_a_slow_disk_that_interrupts() {
    let rates = Rates { short: 60, again: 60, delay: 100, reorder: 100, ..Rates::default() };
    run_seeds(1000, rates);
}
