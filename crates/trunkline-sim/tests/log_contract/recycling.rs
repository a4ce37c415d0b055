//! Checkpoints recycle segments while sessions write, and the machine crashes.

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, sched};
use trunkline_format::Lsn;
use trunkline_sim::{Disk, FaultPlan, Rates};

use crate::disk_log::{Client, DiskLog, Known, Place, Way, check, segment_size};

/// Number of seeds for each way of making WAL durable.
const SEEDS: u64 = 5;

/// Clients of each run.
const CLIENTS: u32 = 2;

/// Records of each client.
const ROUNDS: u32 = 130;

/// A disk after a crash, where redo began then, and what was acknowledged before.
type Crashed = (Disk, Lsn, u64);

/// What the clients of a run share.
struct Run {
    disk: Arc<Disk>,
    known: Arc<Mutex<Known>>,
    /// Where redo begins.
    redo: Mutex<Lsn>,
    crashed: Mutex<Vec<Crashed>>,
}

impl Run {
    /// Inserts more than a segment, and flushes at random. The first client also makes checkpoints.
    fn work(&self, client: &mut Client, number: u32, rng: &mut Rng) {
        for round in 0..ROUNDS {
            let length = rng.below(25_000) as usize;
            let place = client.insert(number << 16 | round, length).expect("inserted");
            if rng.below(3) == 0 {
                client.flush(place.end).expect("durable");
            }
            if number == 1 && rng.below(20) == 0 {
                self.checkpoint(client);
            }
            if rng.below(25) == 0 {
                let (redo, acknowledged) = (*self.redo.lock(), self.known.lock().acknowledged);
                let copy = self.disk.after_crash(rng.below(u64::MAX));
                self.crashed.lock().push((copy, redo, acknowledged));
            }
        }
    }

    /// Redo begins at the last record that is known to be durable.
    fn checkpoint(&self, client: &Client) {
        let redo = {
            let (known, mut redo) = (self.known.lock(), self.redo.lock());
            let acknowledged = known.acknowledged;
            let durable = known.written.iter().filter(|it| it.place.end.0 <= acknowledged);
            *redo = durable.map(|it| it.place.start).fold(*redo, Lsn::max);
            *redo
        };
        client.recycle_before(redo);
    }
}

/// Two runs of a log on one disk. Returns the number of the last segment in which redo began.
fn run(seed: u64, rates: Rates, way: Way) -> u64 {
    let rng = &mut Rng::new(seed);
    let mut disk = Arc::new(Disk::new());
    let (mut at, mut survivors) = (Place::START, Vec::new());
    let mut most = 0;
    for _ in 0..2 {
        let plan = FaultPlan::random(rng.below(u64::MAX), rates);
        let log = DiskLog::open(&disk, &plan, rng, way, at).expect("opens");
        let known = Known { written: survivors, acknowledged: at.end.0 };
        let known = Arc::new(Mutex::new(known));
        let run = Arc::new(Run {
            disk: Arc::clone(&disk),
            known: Arc::clone(&known),
            redo: Mutex::new(at.redo),
            crashed: Mutex::default(),
        });
        let theirs = Arc::clone(&run);
        let clients = log.run_clients(CLIENTS, rng, &known, move |client, number, rng| {
            theirs.work(client, number, rng);
        });
        clients.into_iter().for_each(|client| client.join().expect("no panic"));
        drop(log);
        let written = known.lock().written.clone();
        let mut crashed = std::mem::take(&mut *run.crashed.lock());
        for (copy, redo, acknowledged) in &crashed {
            at = check(copy, *redo, *acknowledged, &written);
            most = most.max(segment_size().segment_of(*redo));
        }
        survivors = written.into_iter().filter(|record| record.place.end <= at.end).collect();
        disk = Arc::new(crashed.pop().expect("a crash").0);
    }
    most
}

#[test]
fn a_log_ends_where_it_should_in_recycled_segments() {
    let rates = Rates { again: 30, delay: 50, reorder: 50, ..Rates::default() };
    for way in Way::ALL {
        let most = Arc::new(Mutex::new(0));
        for seed in 1..=SEEDS {
            let result = Arc::clone(&most);
            let body = move || {
                let found = run(seed, rates, way);
                let mut most = result.lock();
                *most = found.max(*most);
            };
            let report = sched::run(sched::Config::new(seed), body);
            report.unwrap_or_else(|failure| panic!("{way:?}, seed {seed}: {failure}"));
        }
        // The log has gone on in the fourth segment, which had been the first one.
        let most = *most.lock();
        assert!(most >= 4, "{way:?}: up to segment {most}");
    }
}
