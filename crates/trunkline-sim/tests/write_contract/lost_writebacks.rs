//! Failures of the kernel's writeback. The kernel reports such an error once to each open file.
//!
//! No matter which call the kernel reports the error to, the pages are lost, so no later checkpoint
//! may succeed. When a checkpoint runs concurrently with other I/O, it waits for the writeback of a
//! file before it syncs that file. It may therefore get the error from the writeback and not from
//! the fsync. This is what happens on ext4 if the device is full.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, Observed, Operation};
use trunkline_engine::checkpoint::{CheckpointError, CheckpointOptions};
use trunkline_engine::pool::Backend;
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::Fault;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, Pools, is_version};

const NEEDS: Needs = Needs {
    pools: Pools::Both,
    buffers: 64,
    blocks: 32,
    handles: 64,
    seeds: 4,
    ..Needs::writable()
};

/// Changes all of relation 0's pages.
fn change_all(cluster: &Cluster, backend: &mut Backend, version: u32) {
    (0..32).for_each(|block| cluster.change(backend, block, version));
}

/// Runs a checkpoint with frequent writeback.
fn checkpoint(cluster: &Cluster, backend: &mut Backend) -> Result<(), CheckpointError> {
    let options = CheckpointOptions { combine: 2, flush_after: 4, ..CheckpointOptions::default() };
    cluster.checkpoint_with(backend, options).map(drop)
}

/// Makes the disk lose a writeback during a checkpoint, and checks that the checkpoint fails. If
/// `beside_others` is set, another session holds a handle throughout, so that the checkpoint
/// doesn't appear to be running alone.
fn a_checkpoint_fails(cluster: &Arc<Cluster>, beside_others: bool) {
    let mut backend = cluster.backend();
    change_all(cluster, &mut backend, 1);
    checkpoint(cluster, &mut backend).expect("a checkpoint");
    change_all(cluster, &mut backend, 2);
    let mut other = cluster.aio.session().expect("a session");
    // An acquired handle counts as another session's I/O.
    let held = beside_others.then(|| other.acquire(Class::Foreground).expect("a handle"));
    cluster.disk.lose_writebacks(1);
    let error = checkpoint(cluster, &mut backend).expect_err("pages are lost");
    let CheckpointError::Sync { location, source } = &error else {
        panic!("{error}");
    };
    let path = cluster.relation(0).path(0);
    assert_eq!((location.path(), source.raw_os_error()), (&*path, Some(libc::EIO)));
    drop(held);
    cluster.assert_checkpoints_fail(&mut backend);
    let left = cluster.disk.after_crash(3);
    let bytes = left.content(cluster.relation(0).path(0).to_str().expect("a name"));
    let old =
        bytes.chunks(BLOCK_SIZE).zip(0..).filter(|(page, block)| is_version(page, 0, *block, 1));
    assert!(old.count() > 0, "something was lost");
}

#[test]
fn a_lost_writeback_fails_a_checkpoint_alone() {
    check_simulated(NEEDS, |cluster| a_checkpoint_fails(cluster, false));
}

#[test]
fn a_lost_writeback_fails_a_checkpoint_beside_other_io() {
    check_simulated(NEEDS, |cluster| a_checkpoint_fails(cluster, true));
}

/// The writeback of an evicted page fails. There is no caller that the error could be returned to,
/// so the pool must remember it, and later checkpoints must fail.
#[test]
fn a_writeback_error_of_an_eviction_fails_the_next_checkpoint() {
    let needs = Needs { buffers: 16, blocks: 64, seeds: 2, ..NEEDS };
    check(needs, |cluster| {
        cluster.inject(Operation::BeginWriteback, Fault::Error(libc::ENOSPC), 1);
        let is_writeback = |io: &Observed| io.operation == Operation::BeginWriteback;
        cluster.probe.record();
        let mut backend = cluster.backend();
        backend.set_flush_after(2);
        (0..64).for_each(|block| cluster.change(&mut backend, block, 1));
        cluster.settle();
        cluster.clear_faults();
        assert!(cluster.probe.recorded().iter().any(is_writeback), "no writeback was issued");
        let refused = cluster.checkpoint(&mut backend).expect_err("pages are lost");
        assert!(refused.is_sync_failure(), "{refused}");
        cluster.assert_checkpoints_fail(&mut backend);
        // Pages can still be read.
        (0..64).for_each(|block| cluster.assert_reads(&mut backend, block, 1));
    });
}
