//! It may take a long time to open a file, e.g. if its mount hangs. Before a writer opens one, it
//! must submit the pages it has already claimed. Otherwise those pages would stay locked the whole
//! time.

use std::ops::Range;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::ExtendMethod;
use trunkline_format::BlockNo;
use trunkline_sim::PausePoint;
use trunkline_sim::matrix::cluster::check_simulated;
use trunkline_sim::matrix::{Cluster, FileCall, Needs};

/// Closes the file of relation 1, as happens when the open-file table is full. Returns two pause
/// points. The next thread to open the file releases the first one, so that we know it has got
/// there, and then waits at the second one.
fn close_and_hold(cluster: &Cluster) -> (PausePoint, PausePoint) {
    cluster.storage.forget(cluster.relation(1).locator());
    let (opening, go) = (PausePoint::new(), PausePoint::new());
    let (begun, gate) = (opening.clone(), go.clone());
    cluster.files.before(FileCall::Open, move || {
        begun.release();
        gate.wait();
    });
    (opening, go)
}

/// Runs `work`, which must first write pages of relation 0 and then pages of relation 1. The file
/// of relation 1 is closed, so it has to be opened. While it is being opened, `blocks` of relation
/// 0 must not be locked.
fn assert_unlocked_during_open(
    cluster: &Arc<Cluster>,
    blocks: Range<BlockNo>,
    work: impl FnOnce(&Arc<Cluster>) + Send + 'static,
) {
    let (opening, go) = close_and_hold(cluster);
    let worker = cluster.spawn("worker", work);
    cluster.wait_until("the second file is being opened", || opening.is_released());
    let writer = cluster.spawn("writer", move |cluster| {
        let mut backend = cluster.backend();
        blocks.for_each(|block| cluster.change(&mut backend, block, 2));
    });
    cluster.let_others_run();
    cluster.let_others_run();
    let free = writer.is_done();
    go.release();
    writer.join();
    worker.join();
    assert!(free, "pages are locked by a write that is not submitted");
}

/// Whether writes are staged at all. Inline writes aren't, because they execute immediately.
fn stages(cluster: &Cluster) -> bool {
    cluster.is_asynchronous() && !cluster.environment.writes_inline()
}

#[test]
fn a_checkpoint_keeps_no_page_locked_while_it_opens_a_file() {
    check_simulated(Needs { seeds: 4, ..Needs::writable() }, |cluster| {
        if !stages(cluster) {
            return;
        }
        cluster.create(1, 4);
        let mut backend = cluster.backend();
        cluster.change(&mut backend, 3, 1);
        cluster.change_in(&mut backend, 1, 2, 1);
        assert_unlocked_during_open(cluster, 3..4, |cluster| {
            cluster.checkpoint(&mut cluster.backend()).map(drop).expect("a checkpoint");
        });
    });
}

#[test]
fn an_eviction_keeps_no_page_locked_while_it_opens_a_file() {
    check_simulated(Needs { buffers: 16, seeds: 4, ..Needs::writable() }, |cluster| {
        if !stages(cluster) {
            return;
        }
        cluster.create(1, 16);
        let mut backend = cluster.backend();
        (0..8).for_each(|block| cluster.change(&mut backend, block, 1));
        (0..8).for_each(|block| cluster.change_in(&mut backend, 1, block, 1));
        assert_unlocked_during_open(cluster, 3..4, |cluster| {
            cluster.assert_reads(&mut cluster.backend(), 20, 0)
        });
    });
}

/// This is like the previous test, but for a bulk write whose ring buffer contains pages of both
/// relations.
#[test]
fn a_bulk_write_keeps_no_page_locked_while_it_opens_a_file() {
    let needs = Needs { buffers: 256, blocks: 0, seeds: 4, ..Needs::writable() };
    check_simulated(needs, |cluster| {
        if !stages(cluster) {
            return;
        }
        cluster.create(1, 0);
        let mut backend = cluster.backend();
        let mut bulk = backend.bulk_write();
        for number in [0, 1] {
            let relation = cluster.relation(number);
            let method = ExtendMethod::PosixFallocate;
            let pins = backend.extend_in_bulk(&mut bulk, &relation, 12, method).expect("room");
            pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, number, pin, 1));
        }
        cluster.create(2, 0);
        assert_unlocked_during_open(cluster, 0..12, move |cluster| {
            for _ in 0..4 {
                let (relation, method) = (cluster.relation(2), ExtendMethod::PosixFallocate);
                let pins = backend.extend_in_bulk(&mut bulk, &relation, 8, method).expect("room");
                pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, 2, pin, 1));
            }
            bulk.finish(&mut backend).expect("writes");
        });
    });
}
