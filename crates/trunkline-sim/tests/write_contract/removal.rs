//! Relations that are dropped or truncated while other sessions read or write their pages. Nothing
//! may hang, removed pages must not reappear, and no session may get an error because a file has
//! been removed.

use std::path::Path;
use trunkline_aio::Operation;
use trunkline_aio::facade::Arc;
use trunkline_engine::checkpoint::{CheckpointOptions, checkpoint};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, Pools, is_version};

/// Number of a relation's pages in the pool.
fn pages_of(cluster: &Arc<Cluster>, number: u32) -> usize {
    let locator = cluster.relation(number).locator();
    cluster.pool.rows().iter().filter(|row| row.relation == locator).count()
}

/// The drop must wait for the write in flight, because the write still needs its buffer when it
/// completes. The checkpoint itself must succeed.
#[test]
fn a_relation_is_dropped_while_a_checkpoint_writes_it() {
    check(Needs::writable(), |cluster| {
        cluster.create(1, 16);
        cluster.change_sixteen(1, 1);
        cluster.change_sixteen(0, 1);
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
        assert!(!cluster.exists(1), "its file is removed");
        assert_eq!(pages_of(cluster, 1), 0);
        assert!((0..16).all(|block| cluster.is_on_disk(block, 1)));
    });
}

/// A checkpoint has marked the pages it is going to write, and then the relation is dropped. The
/// checkpoint must skip the relation's pages, and must not create the file again.
#[test]
fn a_relation_is_dropped_before_the_checkpoint_writes_it() {
    check(Needs::writable(), |cluster| {
        cluster.create(1, 16);
        cluster.change_sixteen(0, 1);
        cluster.change_sixteen(1, 1);
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

/// A write beyond the new end would extend the file again. The truncation must therefore wait for
/// the write in flight.
#[test]
fn a_relation_is_truncated_while_it_is_written() {
    check(Needs { pools: Pools::Shared, ..Needs::writable() }, |cluster| {
        cluster.change_sixteen(0, 1);
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
        assert_eq!(cluster.on_disk(0).len(), 8 * BLOCK_SIZE, "no block came back");
        cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
        assert_eq!(cluster.on_disk(0).len(), 8 * BLOCK_SIZE, "no block came back");
        assert!((0..8).all(|block| cluster.is_on_disk(block, 1)));
        assert_eq!(cluster.relation(0).blocks().expect("a length"), 8);
        assert!(cluster.backend().read(&cluster.relation(0), 8).is_err());
    });
}

/// The relation is truncated in a pool that has never read any of its pages. Even so, the next
/// checkpoint must sync the file. Otherwise the old pages could reappear after a crash.
#[test]
fn a_truncation_survives_a_crash_after_a_checkpoint() {
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

/// A block is truncated away while it is being read. The truncation must wait for that read. The
/// reader must still get the page, because the block existed when the read began.
#[test]
fn a_relation_is_truncated_while_it_is_read() {
    check(Needs::writable(), |cluster| {
        let held = cluster.probe.hold_result(|io| io.operation == Operation::Readv);
        let reader = cluster.spawn("read", |cluster| {
            let mut backend = cluster.backend();
            let pin = backend.read(&cluster.relation(0), 12).expect("the block existed");
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

/// A relation is dropped while a checkpoint's write to it fails. The checkpoint must report the
/// error. However, the page must not stay dirty as a result, since it's no longer needed.
#[test]
fn a_relation_is_dropped_while_its_write_fails() {
    check(Needs::writable(), |cluster| {
        cluster.create(1, 16);
        cluster.change_sixteen(1, 1);
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
        writer.join().expect_err("the write failed");
        cluster.clear_faults();
        assert_eq!(pages_of(cluster, 1), 0);
        let report = cluster.checkpoint(&mut cluster.backend()).expect("no page is left");
        assert_eq!((report.buffers, report.files), (0, 0));
    });
}

/// The relation's pages were evicted but never synced. After the drop, no checkpoint may try to
/// sync the missing file.
#[test]
fn a_dropped_relation_is_not_synced() {
    check(Needs { buffers: 16, blocks: 32, ..Needs::writable() }, |cluster| {
        cluster.create(1, 16);
        cluster.change_sixteen(1, 1);
        let mut backend = cluster.backend();
        for block in 0..32 {
            cluster.assert_reads(&mut backend, block, 0);
        }
        backend.drop_relation(&cluster.relation(1)).expect("dropped");
        let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (0, 0));
        // A new relation under the same relfilenode must be synced again.
        cluster.create(1, 4);
        cluster.change_in(&mut backend, 1, 3, 7);
        // A cluster that has no pages left is dropped only by the next checkpoint.
        let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((report.buffers, report.files), (1, 1));
        assert!(is_version(&cluster.on_disk(1)[3 * BLOCK_SIZE..], 1, 3, 7));
    });
}

/// Sessions change relations and then drop or truncate them, with checkpoints running throughout.
#[test]
fn relations_are_dropped_while_others_are_used() {
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

/// An idle session may still have to start writeback for pages that it evicted from a relation. If
/// the relation is dropped, its file must be closed anyway, because the kernel doesn't free the
/// space until then.
#[test]
fn an_idle_session_keeps_no_dropped_file_open() {
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

/// Likewise, if a cluster has been closed, an idle session must not keep its files open.
#[test]
fn an_idle_session_keeps_no_closed_cluster_open() {
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
        // The next checkpoint drops clusters without pages.
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!(table.open(), 0, "the cluster is still open");
        drop(idle);
    });
}
