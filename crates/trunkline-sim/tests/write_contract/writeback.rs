//! Writeback control: after a certain number of page writes, we ask the kernel to start writing its
//! dirty pages to disk.
//!
//! These tests check that writeback requests are treated like any other I/O. The statistics must
//! count them, they must do no harm if they are unsupported or hang, and they must not keep dropped
//! files open. `lost_writebacks` covers writeback failures.

use std::path::Path;
use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::{MethodKind, Observed, Operation};
use trunkline_engine::checkpoint::{
    BackgroundWriter, BackgroundWriterSettings, CheckpointOptions, CheckpointReport,
};
use trunkline_engine::pool::{Backend, ExtendMethod};
use trunkline_format::BLOCK_SIZE;
use trunkline_sim::Fault;
use trunkline_sim::matrix::cluster::{self, check, check_simulated, storage};
use trunkline_sim::matrix::{Cluster, Needs, Pools, page};

/// Selects writebacks.
fn is_writeback(io: &Observed) -> bool {
    io.operation == Operation::BeginWriteback
}

/// Number of writebacks since recording began.
fn issued(cluster: &Cluster) -> u64 {
    cluster.probe.recorded().iter().filter(|io| is_writeback(io)).count() as u64
}

/// Number of writebacks in the pool's statistics.
fn counted(cluster: &Cluster) -> u64 {
    cluster.pool.counts().iter().map(|(_, tally)| tally.writebacks).sum()
}

/// Runs a checkpoint with small writes and the given `checkpoint_flush_after`.
fn checkpoint(cluster: &Cluster, backend: &mut Backend, flush_after: u32) -> CheckpointReport {
    let options = CheckpointOptions { flush_after, combine: 2, ..CheckpointOptions::default() };
    cluster.checkpoint_with(backend, options).expect("a checkpoint")
}

/// Changes more pages than there are buffers, so that the session must evict.
fn change_and_evict(cluster: &Cluster, backend: &mut Backend, version: u32) {
    (0..64).for_each(|block| cluster.change(backend, block, version));
}

/// Evictions, checkpoints and bulk writes all request writeback, and the statistics must match the
/// I/Os that were issued.
#[test]
fn every_kind_of_writer_starts_writeback() {
    let needs =
        Needs { buffers: 16, blocks: 64, pools: Pools::Both, seeds: 4, ..Needs::writable() };
    check(needs, |cluster| {
        cluster.probe.record();
        let mut backend = cluster.backend();
        change_and_evict(cluster, &mut backend, 1);
        checkpoint(cluster, &mut backend, 0);
        assert_eq!(issued(cluster), 0, "writeback is off");

        backend.set_flush_after(4);
        change_and_evict(cluster, &mut backend, 2);
        let by_session = issued(cluster);
        assert!(by_session > 0, "an eviction");

        let report = checkpoint(cluster, &mut backend, 4);
        let by_checkpoint = issued(cluster) - by_session;
        assert!(by_checkpoint > 0 && report.writes.writebacks == by_checkpoint, "{report:?}");

        let mut bulk = backend.bulk_write();
        for _ in 0..8 {
            let made = backend.extend_in_bulk(&mut bulk, &cluster.relation(0), 4, METHOD);
            let pins = made.expect("room");
            pins.iter().for_each(|pin| cluster.change_pinned(&mut backend, 0, pin, 3));
        }
        bulk.finish(&mut backend).expect("written");
        assert!(issued(cluster) > by_session + by_checkpoint, "a bulk write");
        backend.publish_counts();
        assert_eq!(counted(cluster), issued(cluster), "each writeback is counted");
    });
}

const METHOD: ExtendMethod = ExtendMethod::WriteZeros;

#[test]
fn the_background_writer_starts_writeback() {
    check_simulated(Needs { buffers: 64, blocks: 256, seeds: 3, ..Needs::writable() }, |cluster| {
        cluster.probe.record();
        let settings = BackgroundWriterSettings {
            delay: Duration::from_millis(1),
            multiplier: 10.0,
            flush_after: 2,
            ..BackgroundWriterSettings::default()
        };
        let writer = BackgroundWriter::start(&cluster.pool, settings).expect("starts");
        let mut backend = cluster.backend();
        for block in 0..512 {
            // The clock hand passes over all pages, and it always finds enough clean ones.
            match block % 4 {
                0 => cluster.change(&mut backend, block % 256, 1),
                _ => drop(backend.read(&cluster.relation(0), block % 256).expect("reads")),
            }
            if block % 32 == 31 {
                let rounds = writer.counts().rounds;
                cluster.wait_until("two rounds", || writer.counts().rounds >= rounds + 2);
            }
        }
        drop(writer);
        assert!(issued(cluster) > 0);
        assert_eq!(counted(cluster), issued(cluster));
    });
}

/// Ranges that are close together are merged, because issuing a call for each of them would cost
/// more than including the clean pages in between. The merged range must end at the last block that
/// was written.
#[test]
fn ranges_close_together_are_one_writeback() {
    check(Needs { buffers: 64, blocks: 64, seeds: 2, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        (0..64).step_by(2).for_each(|block| cluster.change(&mut backend, block, 1));
        cluster.probe.record();
        let report = checkpoint(cluster, &mut backend, 32);
        assert_eq!((report.buffers, report.writes.writebacks), (32, 1), "{report:?}");
        let ranges = cluster.probe.recorded().into_iter().filter(is_writeback);
        let ranges: Vec<_> = ranges.map(|io| (io.offset, io.length)).collect();
        assert_eq!(ranges, [(0, 63 * BLOCK_SIZE as u32)]);
    });
}

/// If there is no other I/O to disturb, a checkpoint merges adjacent ranges into longer ones. For
/// scattered pages, it uses `checkpoint_flush_after` as configured.
#[test]
fn a_checkpoint_alone_uses_longer_ranges() {
    check(Needs { buffers: 512, blocks: 512, seeds: 2, ..Needs::writable() }, |cluster| {
        let (mut backend, environment) = (cluster.backend(), &cluster.environment);
        let options =
            CheckpointOptions { flush_after: 4, combine: 16, ..CheckpointOptions::default() };
        (0..512).for_each(|block| cluster.change(&mut backend, block, 1));
        let report = cluster.checkpoint_with(&mut backend, options).expect("a checkpoint");
        assert_eq!(report.buffers, 512);
        // The checkpoint issues 32 writes, so if we only followed `checkpoint_flush_after`, there
        // would be one writeback request per write. If the writes complete in order, they're merged
        // into two long ranges. Some methods complete writes out of order, which leaves gaps
        // between the ranges, so we have to allow more requests.
        let in_order = environment.method == MethodKind::Sync || environment.writes_inline();
        let most = if in_order { 2 } else { 31 };
        assert!((1..=most).contains(&report.writes.writebacks), "{report:?}");

        (0..512).step_by(2).for_each(|block| cluster.change(&mut backend, block, 2));
        let report = cluster.checkpoint_with(&mut backend, options).expect("a checkpoint");
        assert!(report.buffers == 256 && report.writes.writebacks > 4, "{report:?}");
    });
}

/// Writeback is only a hint to the kernel. A session that needs buffers must not block just because
/// writeback hangs.
#[test]
fn a_session_does_not_wait_for_writeback() {
    check_simulated(Needs { buffers: 16, blocks: 64, seeds: 6, ..Needs::writable() }, |cluster| {
        // If we issued writeback inline, the session itself would block. An I/O worker would hang
        // along with it.
        if cluster.environment.method != MethodKind::Custom || cluster.environment.writes_inline() {
            return;
        }
        let mut backend = cluster.backend();
        backend.set_flush_after(1000);
        for number in 1..=6 {
            let path = cluster.relation(number).path(0);
            let bytes: Vec<u8> = (0..4).flat_map(|block| page(number, block, 0, 0)).collect();
            cluster.disk.create(path.to_str().expect("a name"), HUNG, &bytes);
            (0..4).for_each(|block| cluster.change_in(&mut backend, number, block, 1));
        }
        (0..32).for_each(|block| cluster.change(&mut backend, block, 1));
        cluster.settle();
        cluster.disk.hold(HUNG);
        cluster.probe.record();
        backend.set_flush_after(1);
        let task = cluster.spawn("session", move |cluster| {
            (32..64).for_each(|block| cluster.change(&mut backend, block, 1));
        });
        cluster.wait_until("the session continues", || task.is_done());
        assert!(issued(cluster) > 4, "more than can be in flight");
        assert!(cluster.aio.handles_in_use() > 0, "some hang");
        cluster.disk.release(HUNG);
        task.join();
    });
}

/// A mount that no other relation uses.
const HUNG: u64 = 2;

/// File systems that don't support `sync_file_range` return one of these errors. Even on such a
/// file system, the pages must still be written.
#[test]
fn unsupported_writeback_is_not_an_error() {
    check(Needs { buffers: 16, blocks: 64, seeds: 2, ..Needs::writable() }, |cluster| {
        cluster.probe.record();
        let mut backend = cluster.backend();
        backend.set_flush_after(2);
        let errors = [libc::ENOSYS, libc::EOPNOTSUPP, libc::EINVAL, libc::ESPIPE];
        for (errno, version) in errors.into_iter().zip(1..) {
            cluster.inject(Operation::BeginWriteback, Fault::Error(errno), u64::MAX);
            change_and_evict(cluster, &mut backend, version);
            checkpoint(cluster, &mut backend, 2);
            cluster.clear_faults();
            assert!((0..64).all(|block| cluster.is_on_disk(block, version)));
        }
        assert!(issued(cluster) > 0);
    });
}

/// Idle sessions and bulk writes may still have pending writeback ranges when a cluster is closed.
/// These ranges must not keep the cluster's files open.
#[test]
fn pending_writeback_keeps_no_closed_cluster_open() {
    check_simulated(Needs { buffers: 32, blocks: 64, seeds: 4, ..Needs::writable() }, |cluster| {
        let other = storage(Path::new("/sim/b"), Arc::clone(&cluster.files) as _, false);
        let table = other.files().clone();
        let relation = cluster::relation(&other, 0);
        let bytes: Vec<u8> = (0..64).flat_map(|block| page(0, block, 0, 0)).collect();
        cluster.disk.create(relation.path(0).to_str().expect("a name"), 1, &bytes);
        cluster.probe.record();
        let mut idle = cluster.backend();
        idle.set_flush_after(1000);
        let mut bulk = idle.bulk_write();
        for block in 0..64 {
            let pin = idle.read(&relation, block).expect("reads");
            cluster.change_pinned(&mut idle, 0, &pin, 1);
        }
        for _ in 0..8 {
            let made = idle.extend_in_bulk(&mut bulk, &relation, 2, METHOD).expect("room");
            made.iter().for_each(|pin| cluster.change_pinned(&mut idle, 0, pin, 1));
        }
        drop((relation, other));
        let mut backend = cluster.backend();
        // Only the next checkpoint drops a cluster that has no pages left.
        checkpoint(cluster, &mut backend, 0);
        cluster.pool.evict_all();
        // The next checkpoint drops clusters without pages.
        checkpoint(cluster, &mut backend, 0);
        assert_eq!(issued(cluster), 0, "ranges of the closed cluster were written back");
        assert_eq!(table.open(), 0, "the cluster is still open");
        // The session and the bulk write must be able to go on without that cluster.
        idle.set_flush_after(1);
        change_and_evict(cluster, &mut idle, 1);
        bulk.finish(&mut idle).expect("no write in flight");
        drop(idle);
    });
}
