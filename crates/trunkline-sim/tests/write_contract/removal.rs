//! Relations that go, or are cut off, while their pages are being written or read: nothing hangs,
//! nothing comes back, and nobody fails for want of a file that is gone.

use std::path::Path;
use trunkline_aio::Operation;
use trunkline_aio::sync::Arc;
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, Pools, is_version};

fn change_sixteen(cluster: &Arc<Cluster>, number: u32, version: u32) {
    let mut backend = cluster.backend();
    (0..16).for_each(|block| cluster.change_in(&mut backend, number, block, version));
}

fn pages_of(cluster: &Arc<Cluster>, number: u32) -> usize {
    let locator = cluster.relation(number).locator();
    cluster.pool.rows().iter().filter(|row| row.relation == locator).count()
}

#[test]
fn dropped_while_a_checkpoint_writes_it() {
    check(Needs::writable(), |cluster| {
        cluster.create(1, 16);
        change_sixteen(cluster, 1, 1);
        change_sixteen(cluster, 0, 1);
        let (held, last) = (cluster.hold_write(3), cluster.hold_write(3));
        let writer = cluster.spawn("checkpoint", |cluster| {
            cluster.checkpoint(&mut cluster.backend()).map(drop).map_err(|error| error.to_string())
        });
        held.wait();
        let dropper =
            cluster.spawn("drop", |cluster| cluster.backend().drop_relation(&cluster.relation(1)));
        cluster.let_others_run();
        drop((held, last));
        dropper.join().expect("dropped");
        assert_eq!(writer.join(), Ok(()));
        assert!(!cluster.exists(1), "its file is gone");
        assert_eq!(pages_of(cluster, 1), 0);
        assert!((0..16).all(|block| cluster.is_on_disk(block, 1)));
    });
}

/// The checkpoint has noted its pages, and comes to them when they are gone.
#[test]
fn dropped_before_the_checkpoint_comes_to_it() {
    check(Needs::writable(), |cluster| {
        cluster.create(1, 16);
        change_sixteen(cluster, 0, 1);
        change_sixteen(cluster, 1, 1);
        let mut other = cluster.backend();
        let mut backend = cluster.backend();
        let options = CheckpointOptions { combine: 4, ..CheckpointOptions::default() };
        let mut pages = 0;
        let report = checkpoint(&cluster.pool, &mut backend, options, |_| {
            pages += 1;
            if pages == 6 {
                other.drop_relation(&cluster.relation(1)).expect("dropped");
            }
        });
        let report = report.expect("the other pages are written");
        assert!((16..=20).contains(&report.buffers), "{report}");
        assert!(!cluster.exists(1));
        assert!((0..16).all(|block| cluster.is_on_disk(block, 1)));
    });
}

#[test]
fn cut_off_while_it_is_written() {
    check(Needs { pools: Pools::Shared, ..Needs::writable() }, |cluster| {
        change_sixteen(cluster, 0, 1);
        let held = cluster.hold_write(12);
        let writer = cluster.spawn("checkpoint", |cluster| {
            cluster.checkpoint(&mut cluster.backend()).map(drop).map_err(|error| error.to_string())
        });
        held.wait();
        let cutter = cluster
            .spawn("truncate", |cluster| cluster.backend().truncate(&cluster.relation(0), 8));
        cluster.let_others_run();
        assert!(!cutter.is_done(), "a page is still being written");
        held.release();
        cutter.join().expect("cut off");
        assert_eq!(writer.join(), Ok(()));
        assert_eq!(cluster.on_disk(0).len(), 8 * BLOCK_SIZE, "nothing came back");
        cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
        assert_eq!(cluster.on_disk(0).len(), 8 * BLOCK_SIZE, "nothing came back");
        assert!((0..8).all(|block| cluster.is_on_disk(block, 1)));
        assert_eq!(cluster.relation(0).blocks().expect("looks"), 8);
        assert!(cluster.backend().read(&cluster.relation(0), 8).is_err());
    });
}

/// Nobody has read a page of the cluster through this pool yet: its checkpoint syncs what was cut off all
/// the same, or old pages come back after a crash.
#[test]
fn what_is_cut_off_stays_so() {
    check(Needs { seeds: 2, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        backend.truncate(&cluster.relation(0), 8).expect("cut off");
        let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (0, 1));
        if cluster.is_simulated() {
            let name = cluster.relation(0).path(0);
            let length =
                |seed| cluster.disk.after_crash(seed).length(name.to_str().expect("a name"));
            assert!((0..8).all(|seed| length(seed) == Some(8 * BLOCK_SIZE as u64)));
        }
    });
}

#[test]
fn cut_off_while_it_is_read() {
    check(Needs::writable(), |cluster| {
        let held = cluster.probe.hold_result(|io| io.operation == Operation::Readv);
        let reader = cluster.spawn("read", |cluster| {
            let mut backend = cluster.backend();
            let pin = backend.read(&cluster.relation(0), 12).expect("was there when it was read");
            let page = backend.read_lock(pin.page()).expect("locks");
            assert!(is_version(&*page, 0, 12, 0));
        });
        held.wait();
        let cutter = cluster
            .spawn("truncate", |cluster| cluster.backend().truncate(&cluster.relation(0), 8));
        cluster.let_others_run();
        assert!(!cutter.is_done(), "a page is still being read");
        held.release();
        reader.join();
        cutter.join().expect("cut off");
        assert!(!cluster.pool.contains(&cluster.relation(0), 12));
        assert_eq!(cluster.on_disk(0).len(), 8 * BLOCK_SIZE);
    });
}

/// The write under way fails; nobody needs the page any more.
#[test]
fn dropped_while_a_write_of_it_fails() {
    check(Needs::writable(), |cluster| {
        cluster.create(1, 16);
        change_sixteen(cluster, 1, 1);
        let held = cluster.hold_write(3);
        cluster.probe.change_results(|io, raw| {
            if io.operation == Operation::Writev { -libc::EIO } else { raw }
        });
        let writer = cluster
            .spawn("checkpoint", |cluster| cluster.checkpoint(&mut cluster.backend()).map(drop));
        held.wait();
        let dropper =
            cluster.spawn("drop", |cluster| cluster.backend().drop_relation(&cluster.relation(1)));
        cluster.let_others_run();
        held.release();
        dropper.join().expect("dropped");
        writer.join().expect_err("the write failed all the same");
        cluster.clear_faults();
        assert_eq!(pages_of(cluster, 1), 0);
        let report = cluster.checkpoint(&mut cluster.backend()).expect("nothing is left of it");
        assert_eq!((report.buffers, report.files), (0, 0));
    });
}

/// Its pages were written by whoever needed their buffers, and not synced: nobody syncs them now.
#[test]
fn dropped_with_writes_that_were_not_synced() {
    check(Needs { buffers: 16, blocks: 32, ..Needs::writable() }, |cluster| {
        cluster.create(1, 16);
        change_sixteen(cluster, 1, 1);
        let mut backend = cluster.backend();
        for block in 0..32 {
            cluster.assert_reads(&mut backend, block, 0);
        }
        backend.drop_relation(&cluster.relation(1)).expect("dropped");
        let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (0, 0));
        // A relation of the same name is another one.
        cluster.create(1, 4);
        cluster.change_in(&mut backend, 1, 3, 7);
        let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (1, 1));
        assert!(is_version(&cluster.on_disk(1)[3 * BLOCK_SIZE..], 1, 3, 7));
    });
}

/// Sessions change a relation until it is gone, checkpoints run all the while.
#[test]
fn dropped_while_everybody_uses_others() {
    check(Needs { buffers: 32, blocks: 32, seeds: 3, ..Needs::writable() }, |cluster| {
        (1..5).for_each(|number| cluster.create(number, 8));
        let tasks: Vec<_> = (1..5)
            .map(|number| {
                cluster.spawn("session", move |cluster| {
                    let mut backend = cluster.backend();
                    for version in 1..4 {
                        (0..8).for_each(|at| cluster.change_in(&mut backend, number, at, version));
                        (0..8).for_each(|at| {
                            cluster.assert_reads(&mut backend, number * 8 - 8 + at, 0)
                        });
                    }
                    match number % 2 {
                        0 => backend.drop_relation(&cluster.relation(number)).expect("dropped"),
                        _ => backend.truncate(&cluster.relation(number), 2).expect("cut off"),
                    }
                })
            })
            .collect();
        let mut backend = cluster.backend();
        while tasks.iter().any(|task| !task.is_done()) {
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            cluster.let_others_run();
        }
        tasks.into_iter().for_each(trunkline_sim::matrix::TestThread::join);
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert!(!cluster.exists(2) && !cluster.exists(4));
        assert_eq!(cluster.on_disk(1).len(), 2 * BLOCK_SIZE);
        assert_eq!(cluster.on_disk(3).len(), 2 * BLOCK_SIZE);
    });
}

/// A session that has made room sits idle: what is dropped goes from the disk all the same.
#[test]
fn an_idle_session_keeps_no_dropped_file() {
    check_simulated(Needs { buffers: 16, blocks: 64, seeds: 4, ..Needs::writable() }, |cluster| {
        let mut idle = cluster.backend();
        (0..64).for_each(|block| cluster.change(&mut idle, block, 1));
        let mut other = cluster.backend();
        cluster.checkpoint(&mut other).expect("a checkpoint");
        other.drop_relation(&cluster.relation(0)).expect("dropped");
        cluster.wait_until("its file is closed", || cluster.aio.open_files() == 0);
        drop(idle);
        cluster.create(0, 64);
    });
}

/// A cluster that is closed goes as well.
#[test]
fn an_idle_session_keeps_no_closed_cluster() {
    check_simulated(Needs { buffers: 16, blocks: 64, seeds: 4, ..Needs::writable() }, |cluster| {
        let other = trunkline_sim::matrix::cluster::storage(
            Path::new("/sim/b"),
            Arc::clone(&cluster.files) as _,
            false,
        );
        let table = other.files().clone();
        let relation = trunkline_sim::matrix::cluster::relation(&other, 0);
        let bytes = trunkline_sim::matrix::pages(0, 64);
        cluster.disk.create(relation.path(0).to_str().expect("a name"), 1, &bytes);
        let mut idle = cluster.backend();
        for block in 0..64 {
            let pin = idle.read(&relation, block).expect("reads");
            cluster.change_pinned(&mut idle, 0, &pin, 1);
        }
        drop((relation, other));
        let mut backend = cluster.backend();
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        cluster.pool.evict_all();
        // It is let go of when the next checkpoint asks whose pages there are.
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!(table.open(), 0, "the cluster is still there");
        drop(idle);
    });
}
