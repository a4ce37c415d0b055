//! Two pools over one cluster, each with its own pages. If one pool has synced a file, the other
//! one doesn't have to do so again. But if an fsync fails in one pool, checkpoints must fail in
//! both.

use trunkline_aio::Operation;
use trunkline_aio::facade::Arc;
use trunkline_engine::checkpoint::{CheckpointError, CheckpointOptions, checkpoint};
use trunkline_engine::pool::{Backend, BackendType, ExtendMethod, Pool};
use trunkline_sim::Fault;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs, is_version};

/// A second pool with the same log.
fn second(cluster: &Cluster) -> Pool {
    Pool::with_log(&cluster.aio, 32, Arc::new(cluster.log.clone())).expect("a pool")
}

/// Runs a checkpoint of one pool. Returns the number of pages written.
fn write_all(pool: &Pool) -> Result<u64, CheckpointError> {
    let mut backend = pool.backend(BackendType::Checkpointer).expect("a session");
    let report = checkpoint(pool, &mut backend, CheckpointOptions::default(), |_| {})?;
    Ok(report.buffers)
}

/// Extends relation 0 and fills the new pages. Returns the new blocks.
fn extend(cluster: &Cluster, backend: &mut Backend, step: u32) -> Vec<u32> {
    let method = [ExtendMethod::WriteZeros, ExtendMethod::PosixFallocate][step as usize % 2];
    let pins = backend.extend(&cluster.relation(0), 1 + step % 12, method).expect("room");
    pins.iter().for_each(|pin| cluster.change_pinned(backend, 0, pin, 4));
    pins.iter().map(|pin| pin.page().block()).collect()
}

/// Both pools change, extend and checkpoint the same relation at the same time. They never use the
/// same pages, so no change may be lost or overwritten.
#[test]
fn each_pool_writes_its_own_pages() {
    check(Needs { blocks: 32, seeds: 4, ..Needs::writable() }, |cluster| {
        let other = second(cluster);
        let theirs = other.clone();
        // One pool changes the even blocks and the other the odd blocks, and both extend the
        // relation.
        let task = cluster.spawn("other", move |cluster| {
            let mut backend = theirs.backend(BackendType::Client).expect("a session");
            let mut made = Vec::new();
            for step in 0..12 {
                cluster.change(&mut backend, 1 + step * 2, 4);
                made.extend(extend(cluster, &mut backend, step));
                if step % 4 == 3 {
                    write_all(&theirs).expect("a checkpoint");
                }
            }
            made
        });
        let (mut backend, mut made) = (cluster.backend(), Vec::new());
        for step in 0..12 {
            cluster.change(&mut backend, step * 2, 4);
            made.extend(extend(cluster, &mut backend, step + 1));
            if step % 3 == 2 {
                cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
            }
        }
        made.extend(task.join());
        write_all(&other).expect("a checkpoint");
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        made.sort_unstable();
        let end = 32 + made.len() as u32;
        assert_eq!(made, (32..end).collect::<Vec<_>>(), "no block twice");
        assert!((0..24).chain(made).all(|block| cluster.is_on_disk(block, 4)));
        assert_eq!(write_all(&other).expect("a checkpoint"), 0);
        if cluster.is_simulated() {
            let left = cluster.disk.after_crash(7);
            let bytes = left.content(cluster.relation(0).path(0).to_str().expect("a name"));
            let all = (0..24).chain(32..end);
            let version = |block: u32| &bytes[block as usize * 8192..][..8192];
            all.for_each(|block| assert!(is_version(version(block), 0, block, 4), "{block}"));
        }
        other.evict_all();
    });
}

/// When the kernel loses pages, it reports the error only once, to one of the two pools. The lost
/// pages may belong to either of them, so from then on checkpoints must fail in both.
#[test]
fn a_failed_fsync_fails_every_pool() {
    check(Needs { seeds: 3, ..Needs::writable() }, |cluster| {
        let other = second(cluster);
        let mut theirs = other.backend(BackendType::Client).expect("a session");
        let mut mine = cluster.backend();
        (0..8).for_each(|block| cluster.change(&mut mine, block, 1));
        (8..16).for_each(|block| cluster.change(&mut theirs, block, 1));
        cluster.inject(Operation::Fsync, Fault::Error(libc::EIO), 1);
        let first = write_all(&other).expect_err("a failed sync");
        assert!(matches!(first, CheckpointError::Sync { .. }), "{first}");
        cluster.clear_faults();
        let second = cluster.checkpoint(&mut mine).expect_err("the other pool's");
        assert!(matches!(second, CheckpointError::EarlierSync), "{second}");
        assert!(write_all(&other).is_err(), "permanent");
    });
}
