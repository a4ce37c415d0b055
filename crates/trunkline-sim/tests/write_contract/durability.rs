//! Tests that a checkpoint is durable even if a write completes during one of its fsyncs, another
//! pool's fsync fails, a file is removed before its pages are written, or a directory hasn't been
//! synced yet.

use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, MethodKind, Observed, Operation, State};
use trunkline_engine::checkpoint::{CheckpointError, CheckpointOptions, checkpoint};
use trunkline_engine::pool::{Backend, BackendType, ExtendMethod, Pool};
use trunkline_engine::write_stream::{WriteOptions, WriteStream};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::matrix::Environment;
use trunkline_sim::matrix::cluster::{check, check_in, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, Pools, is_version, page};
use trunkline_sim::{Disk, Fault};

/// Selects fsyncs.
fn syncs(io: &Observed) -> bool {
    io.operation == Operation::Fsync
}

/// Whether all other I/O also stops when we hold back one result. That's the case if the result
/// arrives on the ring driver or on the device thread, because we then have to stop that thread.
fn holds_all(cluster: &Cluster) -> bool {
    matches!(cluster.environment.method, MethodKind::Custom | MethodKind::IoUring)
}

/// Writes a block of relation 0 without an fsync, like the background writer.
fn write(cluster: &Cluster, backend: &mut Backend, block: u32) {
    let mut stream = WriteStream::new(backend, WriteOptions::default());
    let row = cluster.row(0, block).expect("in the pool");
    stream.write(backend, &cluster.relation(0), block, row.bufferid - 1).expect("gathered");
    assert_eq!(stream.finish(backend).expect("written").blocks, 1);
}

/// Returns a block of a relation as it is on a disk.
fn page_on(cluster: &Cluster, disk: &Disk, number: u32, block: u32) -> Vec<u8> {
    let bytes = disk.content(cluster.relation(number).path(0).to_str().expect("a name"));
    let at = block as usize * BLOCK_SIZE;
    bytes.get(at..at + BLOCK_SIZE).map(<[u8]>::to_vec).unwrap_or_default()
}

/// If a write completes while an fsync of the same file is in flight, we can't be sure that the
/// fsync covers that write. The next checkpoint must therefore sync the file again. PostgreSQL uses
/// the cycle counter in `sync.c` for this.
#[test]
fn a_write_that_completes_during_an_fsync_needs_the_next_one() {
    check(Needs { blocks: 16, seeds: 4, ..Needs::writable() }, |cluster| {
        if holds_all(cluster) {
            return;
        }
        let mut backend = cluster.backend();
        cluster.change(&mut backend, 1, 1);
        let held = cluster.probe.hold_result(syncs);
        let task = cluster.spawn("checkpoint", |cluster| {
            cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint").files
        });
        held.wait();
        cluster.change(&mut backend, 2, 2);
        write(cluster, &mut backend, 2);
        held.release();
        assert_eq!(task.join(), 1);
        let next = cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!((next.buffers, next.files), (0, 1), "written, but not durable");
        if cluster.is_simulated() {
            let left = cluster.disk.after_crash(3);
            assert!(is_version(&page_on(cluster, &left, 0, 2), 0, 2, 2));
        }
    });
}

/// A write must be registered as a pending fsync before its page is marked clean. Otherwise, a
/// checkpoint that starts in between would find neither a dirty page nor a pending fsync, and the
/// write would not be durable. There are only a few instructions in between, so to hit that window
/// we need many seeds and a low rate of thread switches.
#[test]
fn a_page_is_clean_when_its_write_is_counted() {
    let needs = Needs { buffers: 16, blocks: 4, ..Needs::writable() };
    for seed in 0..1200 {
        let method = [MethodKind::Worker, MethodKind::Custom][seed as usize % 2];
        let switch_one_in = [150, 200, 250, 300][seed as usize / 2 % 4];
        let environment = Environment { switch_one_in, ..Environment::simulated(method, seed) };
        check_in(environment, needs, |cluster| {
            let mut backend = cluster.backend();
            cluster.change(&mut backend, 1, 1);
            let held = cluster.hold_write(1);
            let writer =
                cluster.spawn("writer", |cluster| write(cluster, &mut cluster.backend(), 1));
            held.wait();
            let pin = backend.read(&cluster.relation(0), 1).expect("a hit");
            held.release();
            // Spin until the write releases its content lock. Each attempt is a switch point.
            while pin.page().try_write().is_none() {}
            let options =
                CheckpointOptions { concurrency: 1, combine: 1, ..CheckpointOptions::default() };
            let report = cluster.checkpoint_with(&mut backend, options).expect("a checkpoint");
            assert_eq!((report.buffers, report.files), (0, 1));
            writer.join();
            let next = cluster.checkpoint(&mut backend).expect("a checkpoint");
            assert_eq!((next.buffers, next.files), (0, 0), "the write was counted too late");
        });
    }
}

/// Creates a second pool over the same cluster. Returns that pool, a session in it, and a session
/// in the cluster's first pool. Block 8 is dirty in the second pool, and block 1 is dirty in the
/// first.
fn two_dirty_pools(cluster: &Cluster) -> (Pool, Backend, Backend) {
    let log = Arc::new(cluster.log.clone());
    let other = Pool::with_log(&cluster.aio, 32, log).expect("a pool");
    let mut theirs = other.backend(BackendType::Client).expect("a session");
    let mut mine = cluster.backend();
    cluster.change(&mut mine, 0, 1);
    // If no I/O has completed on a mount yet, only one I/O at a time is allowed there. We run this
    // checkpoint to raise that limit, because the fsyncs of the two pools must be able to run at
    // the same time.
    cluster.checkpoint(&mut mine).expect("a checkpoint");
    cluster.change(&mut mine, 1, 1);
    cluster.change(&mut theirs, 8, 1);
    (other, theirs, mine)
}

/// Another pool's fsync fails while ours is in flight, and then ours succeeds. But the kernel
/// reports an error only once for each open file, so the error that the other pool received may
/// have been about one of our pages. Our checkpoint must therefore fail as well.
#[test]
fn an_fsync_of_another_pool_fails_during_a_checkpoint() {
    check(Needs { blocks: 16, seeds: 4, ..Needs::writable() }, |cluster| {
        if holds_all(cluster) {
            return;
        }
        let (other, mut theirs, mut mine) = two_dirty_pools(cluster);
        let held = cluster.probe.hold_result(syncs);
        let task =
            cluster.spawn("checkpoint", move |cluster| cluster.checkpoint(&mut mine).map(drop));
        held.wait();
        cluster.inject(Operation::Fsync, Fault::Error(libc::EIO), 1);
        let options = CheckpointOptions::default();
        let failed = checkpoint(&other, &mut theirs, options, |_| {}).expect_err("a failed sync");
        assert!(matches!(failed, CheckpointError::Sync { .. }), "{failed}");
        cluster.clear_faults();
        held.release();
        let ours = task.join().expect_err("pages may be lost");
        assert!(matches!(ours, CheckpointError::EarlierSync), "{ours}");
    });
}

/// This is like the previous test, except that when our fsync succeeds, the other pool's fsync is
/// still in flight. Our checkpoint must not report success until it knows the result of that fsync.
#[test]
fn a_checkpoint_waits_for_an_fsync_of_another_pool() {
    check_simulated(Needs { blocks: 16, seeds: 4, ..Needs::writable() }, |cluster| {
        if holds_all(cluster) {
            return;
        }
        let (other, mut theirs, mut mine) = two_dirty_pools(cluster);
        cluster.inject(Operation::Fsync, Fault::Error(libc::EIO), 1);
        let held = cluster.probe.hold_result(syncs);
        let options = CheckpointOptions::default();
        let failing = cluster
            .spawn("other", move |_| checkpoint(&other, &mut theirs, options, |_| {}).map(drop));
        held.wait();
        let task =
            cluster.spawn("checkpoint", move |cluster| cluster.checkpoint(&mut mine).map(drop));
        cluster.let_others_run();
        assert!(!task.is_done(), "the other fsync is not complete");
        held.release();
        failing.join().expect_err("a failed sync");
        task.join().expect_err("pages may be lost");
        cluster.clear_faults();
    });
}

/// After a writer has opened a relation's file, but before it has claimed any page, the relation is
/// dropped and created again. The page that the writer then claims belongs to the new file, so it
/// must be written to that file. (This can't happen in a checkpoint, which claims only pages it has
/// marked.)
#[test]
fn a_page_is_written_to_the_file_that_exists() {
    check(Needs { buffers: 16, blocks: 0, seeds: 4, ..Needs::writable() }, |cluster| {
        cluster.create(1, 16);
        let mut backend = cluster.backend();
        (0..16).for_each(|block| cluster.change_in(&mut backend, 1, block, 1));
        let before = cluster.row(1, 0).expect("in the pool").bufferid;
        let held = cluster.probe.pause_at(State::HandedOut, |io| io.class == Class::Eviction);
        let task = cluster.spawn("writer", move |cluster| {
            let mut backend = cluster.backend();
            let mut stream = WriteStream::new(&backend, WriteOptions::default());
            let gathered = stream.write(&mut backend, &cluster.relation(1), 0, before - 1);
            gathered.and_then(|()| stream.finish(&mut backend)).expect("nothing has failed");
        });
        held.wait();
        backend.drop_relation(&cluster.relation(1)).expect("dropped");
        cluster.create(1, 16);
        for block in 0..16 {
            let pin = backend.read(&cluster.relation(1), block).expect("reads");
            let mut bytes = backend.write_lock(pin.page()).expect("locks");
            // LSN 0, so that the write needs no log flush.
            bytes.copy_from_slice(&page(1, block, 2, 0));
            bytes.mark_dirty();
        }
        assert_eq!(
            cluster.row(1, 0).expect("in the pool").bufferid,
            before,
            "the buffer was reused"
        );
        held.release();
        task.join();
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        let found = cluster.on_disk(1);
        for (page, block) in found.chunks(BLOCK_SIZE).zip(0..) {
            assert!(is_version(page, 1, block, 2), "block {block} was written to the removed file");
        }
    });
}

/// A relation created before a checkpoint must survive a crash, so the checkpoint must fsync its
/// directory.
#[test]
fn a_new_relation_survives_a_crash_after_a_checkpoint() {
    check_simulated(Needs { seeds: 2, pools: Pools::Both, ..Needs::writable() }, |cluster| {
        let (relation, mut backend) = (cluster.relation(1), cluster.backend());
        relation.create().expect("made");
        let pins = backend.extend(&relation, 4, ExtendMethod::PosixFallocate).expect("room");
        pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, 1, pin, 1));
        let blocks = pins.len() as u32;
        drop(pins);
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        for seed in 0..16 {
            let left = cluster.disk.after_crash(seed);
            let sound = |block| {
                let page = page_on(cluster, &left, 1, block);
                !page.is_empty() && is_version(&page, 1, block, 1)
            };
            assert!((0..blocks).all(sound), "seed {seed}");
        }
    });
}

/// A checkpoint must have the fsyncs of all five segments in flight at the same time. PostgreSQL
/// syncs one segment after the other.
#[test]
fn segments_are_synced_in_parallel() {
    const FILES: u32 = 5;
    check_simulated(Needs { blocks: 4, seeds: 4, ..Needs::writable().asynchronous() }, |cluster| {
        let mut backend = cluster.backend();
        for number in 0..FILES {
            cluster.create(number, 4);
            cluster.change_in(&mut backend, number, 2, 1);
        }
        let first = cluster.probe.pause_at(State::Defined, syncs);
        let task = cluster.spawn("checkpoint", |cluster| {
            cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint").files
        });
        first.wait();
        // From here on, hold back all fsyncs.
        cluster.probe.record();
        cluster.disk.hold(1);
        first.release();
        let under_way = || {
            let recorded = cluster.probe.recorded();
            let mut files: Vec<u64> =
                recorded.iter().filter(|io| syncs(io)).map(|io| io.file_id).collect();
            files.sort_unstable();
            files.dedup();
            files.len()
        };
        cluster.wait_until("an fsync of every file", || under_way() == FILES as usize);
        assert_eq!(cluster.aio.handles_in_use(), FILES);
        cluster.disk.release(1);
        assert_eq!(task.join(), u64::from(FILES));
    });
}

/// Fsyncs run in parallel, but we measure the duration of each fsync separately.
#[test]
fn a_fast_fsync_is_measured_as_fast() {
    check_simulated(Needs { blocks: 4, seeds: 4, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        cluster.create(1, 4);
        cluster.change_in(&mut backend, 0, 2, 1);
        cluster.change_in(&mut backend, 1, 2, 1);
        let long = Duration::from_millis(300);
        cluster.inject(Operation::Fsync, Fault::Delay(long), 1);
        let report = cluster.checkpoint(&mut backend).expect("a checkpoint");
        assert_eq!(report.files, 2);
        assert!(report.longest_sync >= long, "{report:?}");
        assert!(report.average_sync < report.longest_sync.mul_f64(0.6), "{report:?}");
    });
}

/// We stop an fsync in each of its states, and a session changes a page in the meantime. In half of
/// the cases we also cancel the checkpoint that issued the fsync. The next checkpoint must make the
/// change durable.
#[test]
fn changes_during_an_fsync_in_every_state_are_not_lost() {
    check(Needs { blocks: 16, seeds: 1, ..Needs::writable() }, |cluster| {
        let states = [State::Defined, State::Staged, State::Submitted, State::CompletedIo];
        let cases = states.into_iter().flat_map(|state| [false, true].map(|cut| (state, cut)));
        for ((state, cancelled), version) in cases.zip(1..) {
            let mut backend = cluster.backend();
            (0..16).for_each(|block| cluster.change(&mut backend, block, version));
            let held = cluster.probe.pause_at(state, syncs);
            let canceller = backend.session().canceller();
            let task = cluster
                .spawn("checkpoint", move |cluster| cluster.checkpoint(&mut backend).map(drop));
            held.wait();
            if cancelled {
                canceller.cancel();
            }
            let mut other = cluster.backend();
            cluster.change(&mut other, 1, version + 100);
            held.release();
            let ended = task.join();
            assert!(ended.is_ok() || cancelled, "{state:?}: {ended:?}");
            cluster.settle();
            cluster.checkpoint(&mut other).expect("a checkpoint");
            assert!(cluster.is_on_disk(1, version + 100));
            if cluster.is_simulated() {
                let left = cluster.disk.after_crash(3);
                assert!(is_version(&page_on(cluster, &left, 0, 1), 0, 1, version + 100));
            }
        }
    });
}

/// Faults that aren't errors must lead to a retry, so that the fsync succeeds in the end.
#[test]
fn an_fsync_retries_interruptions() {
    check(Needs { blocks: 16, seeds: 2, ..Needs::writable() }, |cluster| {
        for (fault, version) in HIDDEN.into_iter().zip(1..) {
            let mut backend = cluster.backend();
            (0..16).for_each(|block| cluster.change(&mut backend, block, version));
            cluster.inject(Operation::Fsync, fault, 2);
            let ended = cluster.checkpoint(&mut backend).map(drop);
            cluster.clear_faults();
            ended.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        }
    });
}

/// Faults the issuer never sees.
const HIDDEN: [Fault; 4] =
    [Fault::Interrupted, Fault::Again, Fault::Delay(Duration::from_millis(3)), Fault::Reorder];
