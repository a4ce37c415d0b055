//! Bulk writes that are larger than the pool, such as those of `COPY`. A bulk write reuses the
//! buffers of a small ring and flushes the pages in it, so that the pages of other sessions stay in
//! the pool.

use trunkline_aio::Operation;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{
    Backend, BackendType, BulkWrite, ExtendMethod, Strategy, Tally, WriteError,
};
use trunkline_sim::Fault;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, Pools, is_version};

const BUFFERS: u32 = 256;
/// Size of a bulk write's ring buffer.
const RING: u32 = BUFFERS / 8;
const NEEDS: Needs = Needs {
    pools: Pools::Both,
    buffers: BUFFERS,
    blocks: 160,
    handles: 64,
    seeds: 4,
    ..Needs::writable()
};

/// Extends relation 1 by `blocks` blocks, `step` at a time, and writes a version into each new
/// block.
fn load(cluster: &Cluster, backend: &mut Backend, bulk: &mut BulkWrite, blocks: u32, step: u32) {
    let mut made = 0;
    while made < blocks {
        made += load_some(cluster, backend, bulk, step.min(blocks - made)).expect("room");
    }
}

/// Extends relation 1 once, by up to `count` blocks.
fn load_some(
    cluster: &Cluster,
    backend: &mut Backend,
    bulk: &mut BulkWrite,
    count: u32,
) -> Result<u32, WriteError> {
    let method = ExtendMethod::PosixFallocate;
    let pins = backend.extend_in_bulk(bulk, &cluster.relation(1), count, method)?;
    pins.iter().for_each(|pin| cluster.change_pinned(backend, 1, pin, 7));
    Ok(pins.len() as u32)
}

/// Number of a relation's blocks in the pool.
fn resident(cluster: &Cluster, number: u32) -> u32 {
    let locator = cluster.relation(number).locator();
    cluster.pool.rows().iter().filter(|row| row.relation == locator).count() as u32
}

/// Sum of an access strategy's counters, as reported by `pg_stat_io`.
fn counted(cluster: &Cluster, context: Strategy) -> Tally {
    let mut sum = Tally::default();
    let rows = cluster.pool.counts();
    rows.iter().filter(|(key, _)| key.context == context).for_each(|(_, tally)| sum.add(tally));
    sum
}

/// Runs a checkpoint and checks that the file of relation 1 contains exactly these blocks.
fn assert_loaded(cluster: &Arc<Cluster>, blocks: u32) {
    cluster.checkpoint(&mut cluster.backend()).expect("a checkpoint");
    let found = cluster.on_disk(1);
    for (page, block) in found.chunks(8192).zip(0..blocks) {
        assert!(is_version(page, 1, block, 7), "block {block}");
    }
    assert_eq!(found.len() / 8192, blocks as usize);
}

#[test]
fn a_bulk_write_stays_in_its_ring_buffer() {
    for step in [1, 5, 16, 64] {
        let case = match step {
            1 => |cluster: &Arc<Cluster>| check_ring(cluster, 1),
            5 => |cluster: &Arc<Cluster>| check_ring(cluster, 5),
            16 => |cluster: &Arc<Cluster>| check_ring(cluster, 16),
            _ => |cluster: &Arc<Cluster>| check_ring(cluster, 64),
        };
        check(NEEDS, case);
    }
}

/// Writes 300 blocks through a ring of 32 buffers. This must not evict any page outside the ring,
/// and adjacent pages must be written together.
fn check_ring(cluster: &Arc<Cluster>, step: u32) {
    const BLOCKS: u32 = 300;
    cluster.create(1, 0);
    let mut backend = cluster.backend();
    (0..160).for_each(|block| cluster.assert_reads(&mut backend, block, 0));
    let mut bulk = backend.bulk_write();
    assert_eq!(bulk.buffers(), RING);
    load(cluster, &mut backend, &mut bulk, BLOCKS, step);
    assert_eq!(resident(cluster, 0), 160, "no other page was evicted");
    assert!(resident(cluster, 1) <= RING, "{} buffers", resident(cluster, 1));
    bulk.finish(&mut backend).expect("writes");
    backend.publish_counts();
    let counts = counted(cluster, Strategy::BulkWrite);
    assert_eq!((counts.extended_blocks, counts.evictions), (u64::from(BLOCKS), 0));
    assert!(counts.extends >= u64::from(BLOCKS / step.min(RING / 2)), "{counts:?}");
    assert!(counts.reuses >= u64::from(BLOCKS - RING), "{counts:?}");
    let written = u64::from(BLOCKS - RING)..=u64::from(BLOCKS);
    assert!(written.contains(&counts.written_blocks), "{counts:?}");
    assert!(counts.writes < counts.written_blocks / 4, "adjacent blocks are combined: {counts:?}");
    assert_eq!(counted(cluster, Strategy::Normal).written_blocks, 0);
    assert_loaded(cluster, BLOCKS);
}

/// If another session uses or pins one of the pages in the ring buffer, that page must be removed
/// from the ring but stay in the pool. Otherwise the bulk write would evict a page that others
/// still need.
#[test]
fn a_page_that_other_sessions_use_leaves_the_ring_buffer() {
    check(NEEDS, |cluster| {
        cluster.create(1, 0);
        let mut backend = cluster.backend();
        let mut bulk = backend.bulk_write();
        load(cluster, &mut backend, &mut bulk, 16, 16);
        for block in 4..8 {
            (0..2).for_each(|_| drop(backend.read(&cluster.relation(1), block).expect("a hit")));
        }
        let held = backend.read(&cluster.relation(1), 10).expect("a hit");
        load(cluster, &mut backend, &mut bulk, 100, 8);
        for block in [4, 5, 6, 7, 10] {
            assert!(cluster.pool.contains(&cluster.relation(1), block), "block {block}");
        }
        assert!(resident(cluster, 1) <= RING + 5);
        drop(held);
        bulk.finish(&mut backend).expect("writes");
        assert_loaded(cluster, 116);
    });
}

/// A bulk write flushes its own pages, so if a write fails, it gets the error. No page may be lost,
/// and once the fault is gone, the bulk write must be able to continue.
#[test]
fn a_failed_write_of_the_ring_buffer_is_reported() {
    check_simulated(NEEDS, |cluster| {
        cluster.create(1, 0);
        let mut backend = cluster.backend();
        let mut bulk = backend.bulk_write();
        load(cluster, &mut backend, &mut bulk, RING, 16);
        let mut made = RING;
        for fault in [Fault::Error(libc::EIO), Fault::Error(libc::ENOSPC), Fault::Short(8192)] {
            cluster.inject(Operation::Writev, fault, 3);
            let mut failed = 0;
            for _ in 0..6 {
                match load_some(cluster, &mut backend, &mut bulk, 16) {
                    Ok(count) => made += count,
                    Err(error) => {
                        assert!(error.to_string().contains("base/5/16385"), "{error}");
                        failed += 1;
                    }
                }
                assert!(resident(cluster, 1) <= RING);
            }
            assert!(failed > 0 || matches!(fault, Fault::Short(_)));
            cluster.clear_faults();
            load(cluster, &mut backend, &mut bulk, 32, 16);
            made += 32;
        }
        assert_eq!(backend.pins(), 0);
        bulk.finish(&mut backend).expect("writes");
        assert_loaded(cluster, made);
    });
}

/// Two bulk writes into one relation run concurrently with checkpoints and with a session that
/// changes other pages.
#[test]
fn bulk_writes_run_beside_checkpoints_and_changes() {
    check(Needs { pools: Pools::Shared, seeds: 3, ..NEEDS }, |cluster| {
        cluster.create(1, 0);
        let loads: Vec<_> = (0..2)
            .map(|_| {
                cluster.spawn("load", |cluster| {
                    let mut backend =
                        cluster.pool.backend(BackendType::BackgroundWorker).expect("a session");
                    let mut bulk = backend.bulk_write();
                    load(cluster, &mut backend, &mut bulk, 120, 12);
                    bulk.finish(&mut backend).expect("writes");
                })
            })
            .collect();
        let changer = cluster.spawn("changer", |cluster| {
            let mut backend = cluster.backend();
            (0..160).for_each(|block| cluster.change(&mut backend, block, 3));
        });
        let mut backend = cluster.backend();
        while loads.iter().any(|task| !task.is_done()) {
            cluster.checkpoint(&mut backend).expect("a checkpoint");
            cluster.let_others_run();
        }
        loads.into_iter().for_each(|task| task.join());
        changer.join();
        assert_loaded(cluster, 240);
        assert!((0..160).all(|block| cluster.is_on_disk(block, 3)));
    });
}
