//! Relations that go, or are cut off, while their pages are being written or read: nothing hangs,
//! nothing comes back, and nobody fails for want of a file that is gone.

use crate::rig::{Rig, Setup, check, check_simulated, is_version};
use std::path::Path;
use trunkline_aio::Operation;
use trunkline_aio::sync::Arc;
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_format::BLOCK_SIZE;

fn change_sixteen(rig: &Arc<Rig>, number: u32, version: u32) {
    let mut backend = rig.backend();
    (0..16).for_each(|block| rig.change_in(&mut backend, number, block, version));
}

fn pages_of(rig: &Arc<Rig>, number: u32) -> usize {
    let locator = rig.relation(number).locator();
    rig.pool.rows().iter().filter(|row| row.relation == locator).count()
}

#[test]
fn dropped_while_a_checkpoint_writes_it() {
    check(Setup::default(), |rig| {
        rig.create(1, 16);
        change_sixteen(rig, 1, 1);
        change_sixteen(rig, 0, 1);
        let (held, last) = (rig.hold_write(3), rig.hold_write(3));
        let writer = rig.spawn("checkpoint", |rig| {
            rig.checkpoint(&mut rig.backend()).map(drop).map_err(|error| error.to_string())
        });
        held.wait();
        let dropper = rig.spawn("drop", |rig| rig.backend().drop_relation(&rig.relation(1)));
        rig.let_others_go();
        drop((held, last));
        dropper.join().expect("dropped");
        assert_eq!(writer.join(), Ok(()));
        assert!(!rig.exists(1), "its file is gone");
        assert_eq!(pages_of(rig, 1), 0);
        assert!((0..16).all(|block| rig.is_on_disk(block, 1)));
    });
}

/// The checkpoint has noted its pages, and comes to them when they are gone.
#[test]
fn dropped_before_the_checkpoint_comes_to_it() {
    check(Setup::default(), |rig| {
        rig.create(1, 16);
        change_sixteen(rig, 0, 1);
        change_sixteen(rig, 1, 1);
        let mut other = rig.backend();
        let mut backend = rig.backend();
        let options = CheckpointOptions { combine: 4, ..CheckpointOptions::default() };
        let mut pages = 0;
        let report = checkpoint(&rig.pool, &mut backend, options, |_| {
            pages += 1;
            if pages == 6 {
                other.drop_relation(&rig.relation(1)).expect("dropped");
            }
        });
        let report = report.expect("the other pages are written");
        assert!((16..=20).contains(&report.buffers), "{report}");
        assert!(!rig.exists(1));
        assert!((0..16).all(|block| rig.is_on_disk(block, 1)));
    });
}

#[test]
fn cut_off_while_it_is_written() {
    check(Setup { local: false, ..Setup::default() }, |rig| {
        change_sixteen(rig, 0, 1);
        let held = rig.hold_write(12);
        let writer = rig.spawn("checkpoint", |rig| {
            rig.checkpoint(&mut rig.backend()).map(drop).map_err(|error| error.to_string())
        });
        held.wait();
        let cutter = rig.spawn("truncate", |rig| rig.backend().truncate(&rig.relation(0), 8));
        rig.let_others_go();
        assert!(!cutter.is_done(), "a page is still being written");
        held.release();
        cutter.join().expect("cut off");
        assert_eq!(writer.join(), Ok(()));
        assert_eq!(rig.on_disk(0).len(), 8 * BLOCK_SIZE, "nothing came back");
        rig.checkpoint(&mut rig.backend()).expect("a checkpoint");
        assert_eq!(rig.on_disk(0).len(), 8 * BLOCK_SIZE, "nothing came back");
        assert!((0..8).all(|block| rig.is_on_disk(block, 1)));
        assert_eq!(rig.relation(0).blocks().expect("looks"), 8);
        assert!(rig.backend().read(&rig.relation(0), 8).is_err());
    });
}

/// Nobody has read a page of the cluster through this pool yet: its checkpoint syncs what was cut off all
/// the same, or old pages come back after a crash.
#[test]
fn what_is_cut_off_stays_so() {
    check(Setup { seeds: 2, ..Setup::default() }, |rig| {
        let mut backend = rig.backend();
        backend.truncate(&rig.relation(0), 8).expect("cut off");
        let report = rig.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (0, 1));
        if rig.is_simulated() {
            let name = rig.relation(0).path(0);
            let length = |seed| rig.disk.after_crash(seed).length(name.to_str().expect("a name"));
            assert!((0..8).all(|seed| length(seed) == Some(8 * BLOCK_SIZE as u64)));
        }
    });
}

#[test]
fn cut_off_while_it_is_read() {
    check(Setup::default(), |rig| {
        let held = rig.hooks.hold_result(|io| io.operation == Operation::Readv);
        let reader = rig.spawn("read", |rig| {
            let mut backend = rig.backend();
            let pin = backend.read(&rig.relation(0), 12).expect("was there when it was read");
            let page = backend.read_lock(pin.page()).expect("locks");
            assert!(is_version(&*page, 0, 12, 0));
        });
        held.wait();
        let cutter = rig.spawn("truncate", |rig| rig.backend().truncate(&rig.relation(0), 8));
        rig.let_others_go();
        assert!(!cutter.is_done(), "a page is still being read");
        held.release();
        reader.join();
        cutter.join().expect("cut off");
        assert!(!rig.pool.contains(&rig.relation(0), 12));
        assert_eq!(rig.on_disk(0).len(), 8 * BLOCK_SIZE);
    });
}

/// The write under way fails; nobody needs the page any more.
#[test]
fn dropped_while_a_write_of_it_fails() {
    check(Setup::default(), |rig| {
        rig.create(1, 16);
        change_sixteen(rig, 1, 1);
        let held = rig.hold_write(3);
        rig.hooks.change_results(
            |io, raw| {
                if io.operation == Operation::Writev { -libc::EIO } else { raw }
            },
        );
        let writer = rig.spawn("checkpoint", |rig| rig.checkpoint(&mut rig.backend()).map(drop));
        held.wait();
        let dropper = rig.spawn("drop", |rig| rig.backend().drop_relation(&rig.relation(1)));
        rig.let_others_go();
        held.release();
        dropper.join().expect("dropped");
        writer.join().expect_err("the write failed all the same");
        rig.no_trouble();
        assert_eq!(pages_of(rig, 1), 0);
        let report = rig.checkpoint(&mut rig.backend()).expect("nothing is left of it");
        assert_eq!((report.buffers, report.files), (0, 0));
    });
}

/// Its pages were written by whoever needed their buffers, and not synced: nobody syncs them now.
#[test]
fn dropped_with_writes_that_were_not_synced() {
    check(Setup { buffers: 16, blocks: 32, ..Setup::default() }, |rig| {
        rig.create(1, 16);
        change_sixteen(rig, 1, 1);
        let mut backend = rig.backend();
        for block in 0..32 {
            rig.assert_reads(&mut backend, block, 0);
        }
        backend.drop_relation(&rig.relation(1)).expect("dropped");
        let report = rig.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (0, 0));
        // A relation of the same name is another one.
        rig.create(1, 4);
        rig.change_in(&mut backend, 1, 3, 7);
        let report = rig.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (1, 1));
        assert!(is_version(&rig.on_disk(1)[3 * BLOCK_SIZE..], 1, 3, 7));
    });
}

/// Sessions change a relation until it is gone, checkpoints run all the while.
#[test]
fn dropped_while_everybody_uses_others() {
    check(Setup { buffers: 32, blocks: 32, seeds: 3, ..Setup::default() }, |rig| {
        (1..5).for_each(|number| rig.create(number, 8));
        let tasks: Vec<_> = (1..5)
            .map(|number| {
                rig.spawn("session", move |rig| {
                    let mut backend = rig.backend();
                    for version in 1..4 {
                        (0..8).for_each(|at| rig.change_in(&mut backend, number, at, version));
                        (0..8)
                            .for_each(|at| rig.assert_reads(&mut backend, number * 8 - 8 + at, 0));
                    }
                    match number % 2 {
                        0 => backend.drop_relation(&rig.relation(number)).expect("dropped"),
                        _ => backend.truncate(&rig.relation(number), 2).expect("cut off"),
                    }
                })
            })
            .collect();
        let mut backend = rig.backend();
        while tasks.iter().any(|task| !task.is_done()) {
            rig.checkpoint(&mut backend).expect("a checkpoint");
            rig.let_others_go();
        }
        tasks.into_iter().for_each(crate::rig::Task::join);
        rig.checkpoint(&mut backend).expect("a checkpoint");
        assert!(!rig.exists(2) && !rig.exists(4));
        assert_eq!(rig.on_disk(1).len(), 2 * BLOCK_SIZE);
        assert_eq!(rig.on_disk(3).len(), 2 * BLOCK_SIZE);
    });
}

/// A session that has made room sits idle: what is dropped goes from the disk all the same.
#[test]
fn an_idle_session_keeps_no_dropped_file() {
    check_simulated(Setup { buffers: 16, blocks: 64, seeds: 4, ..Setup::default() }, |rig| {
        let mut idle = rig.backend();
        (0..64).for_each(|block| rig.change(&mut idle, block, 1));
        let mut other = rig.backend();
        rig.checkpoint(&mut other).expect("a checkpoint");
        other.drop_relation(&rig.relation(0)).expect("dropped");
        rig.wait_until("its file is closed", || rig.aio.open_files() == 0);
        drop(idle);
        rig.create(0, 64);
    });
}

/// A cluster that is closed goes as well.
#[test]
fn an_idle_session_keeps_no_closed_cluster() {
    check_simulated(Setup { buffers: 16, blocks: 64, seeds: 4, ..Setup::default() }, |rig| {
        let other = crate::rig::storage(Path::new("/sim/b"), &rig.files, false);
        let table = other.files().clone();
        let relation = crate::rig::relation(&other, 0);
        let bytes = trunkline_sim::rig::pages(0, 64);
        rig.disk.create(relation.path(0).to_str().expect("a name"), 1, &bytes);
        let mut idle = rig.backend();
        for block in 0..64 {
            let pin = idle.read(&relation, block).expect("reads");
            rig.change_pinned(&mut idle, 0, &pin, 1);
        }
        drop((relation, other));
        let mut backend = rig.backend();
        rig.checkpoint(&mut backend).expect("a checkpoint");
        rig.pool.evict_all();
        // It is let go of when the next checkpoint asks whose pages there are.
        rig.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!(table.open(), 0, "the cluster is still there");
        drop(idle);
    });
}
