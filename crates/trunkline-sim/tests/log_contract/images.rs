//! Checkpoints that begin while sessions change pages: the first change of a page after one has an image of it.

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, sched, thread};
use trunkline_engine::log_writer::Inserter;
use trunkline_format::wal::{LogEvent, RelFileLocator};
use trunkline_format::{Lsn, Oid};
use trunkline_sim::{Disk, FaultPlan};

use crate::disk_log::{DiskLog, FIRST, Known, Place, Way, for_each_event};

/// Number of seeds.
const SEEDS: u64 = 60;

/// Changes of each page.
const CHANGES: u32 = 25;

/// `CHECKPOINT_REDO` of the manager `XLOG`.
const CHECKPOINT_REDO: u8 = 0xE0;

fn relation() -> RelFileLocator {
    RelFileLocator { tablespace: Oid(1663), database: Oid(1), number: 16384 }
}

fn run(seed: u64) {
    let rng = &mut Rng::new(seed);
    let disk = Arc::new(Disk::new());
    let way = Way::ALL[(seed % 4) as usize];
    let log = DiskLog::open(&disk, &FaultPlan::none(), rng, way, Place::START);
    let log = log.expect("opens");
    let known = Arc::new(Mutex::new(Known::default()));
    let clients = log.run_clients(3, rng, &known, |client, number, _| {
        let mut page = Box::new([0; 8192]);
        for _ in 0..CHANGES {
            client.change(relation(), number, &mut page).expect("inserted");
        }
    });
    let mut inserter = Inserter::new(&log.log).expect("an inserter");
    let mut session = log.aio.session().expect("a session");
    for _ in 0..5 {
        (0..rng.below(200)).for_each(|_| thread::yield_now());
        let mut room = log.log.room(&mut session, 1, 64).expect("room");
        inserter.begin_checkpoint(&mut room).expect("inserted");
    }
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    let mut client = log.client(&known);
    client.flush(log.log.end()).expect("durable");
    let (mut redo, mut changed, mut images) = (Lsn(0), [Lsn(0); 4], 0);
    for_each_event(&disk, FIRST, |event| {
        let LogEvent::Record(found) = event else { return };
        if found.record.header().operation() == CHECKPOINT_REDO {
            redo = found.start;
        }
        for block in found.record.blocks() {
            let before = &mut changed[block.block as usize];
            let has_image = block.image.is_some_and(|image| image.applies());
            assert_eq!(has_image, *before <= redo, "block {} at {}", block.block, found.start);
            images += u32::from(has_image);
            *before = found.end;
        }
    });
    // Each page has one at its first change.
    assert!((3..=18).contains(&images), "{images}");
}

#[test]
fn the_first_change_after_a_checkpoint_has_an_image() {
    for seed in 1..=SEEDS {
        let report = sched::run(sched::Config::new(seed), move || run(seed));
        report.unwrap_or_else(|failure| panic!("{failure}"));
    }
}
