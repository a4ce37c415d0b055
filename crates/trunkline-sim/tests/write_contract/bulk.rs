//! Loads that are larger than the pool: they go round in a ring of their own, write what they leave
//! there themselves, and everybody else's pages stay.

use crate::rig::{Rig, Setup, check, check_simulated, is_version};
use trunkline_aio::Operation;
use trunkline_aio::sync::Arc;
use trunkline_engine::pool::{
    Backend, BackendType, BulkWrite, ExtendMethod, Strategy, Tally, WriteError,
};
use trunkline_sim::Fault;

const BUFFERS: u32 = 256;
const RING: u32 = BUFFERS / 8;
const SETUP: Setup =
    Setup { local: true, buffers: BUFFERS, blocks: 160, handles: 64, seeds: 4, direct: false };

/// Adds so many blocks to relation 1, each with a version in it.
fn load(rig: &Rig, backend: &mut Backend, bulk: &mut BulkWrite, blocks: u32, step: u32) {
    let mut made = 0;
    while made < blocks {
        made += load_some(rig, backend, bulk, step.min(blocks - made)).expect("room");
    }
}

fn load_some(
    rig: &Rig,
    backend: &mut Backend,
    bulk: &mut BulkWrite,
    count: u32,
) -> Result<u32, WriteError> {
    let method = ExtendMethod::PosixFallocate;
    let pins = backend.extend_in_bulk(bulk, &rig.relation(1), count, method)?;
    pins.iter().for_each(|pin| rig.change_pinned(backend, 1, pin, 7));
    Ok(pins.len() as u32)
}

/// Blocks that the pool has of a relation.
fn resident(rig: &Rig, number: u32) -> u32 {
    let locator = rig.relation(number).locator();
    rig.pool.rows().iter().filter(|row| row.relation == locator).count() as u32
}

fn counted(rig: &Rig, context: Strategy) -> Tally {
    let mut sum = Tally::default();
    let rows = rig.pool.counts();
    rows.iter().filter(|(key, _)| key.context == context).for_each(|(_, tally)| sum.add(tally));
    sum
}

fn assert_loaded(rig: &Arc<Rig>, blocks: u32) {
    rig.checkpoint(&mut rig.backend()).expect("a checkpoint");
    let found = rig.on_disk(1);
    for (page, block) in found.chunks(8192).zip(0..blocks) {
        assert!(is_version(page, 1, block, 7), "block {block}");
    }
    assert_eq!(found.len() / 8192, blocks as usize);
}

#[test]
fn a_load_stays_in_its_ring() {
    for step in [1, 5, 16, 64] {
        let case = match step {
            1 => |rig: &Arc<Rig>| stay(rig, 1),
            5 => |rig: &Arc<Rig>| stay(rig, 5),
            16 => |rig: &Arc<Rig>| stay(rig, 16),
            _ => |rig: &Arc<Rig>| stay(rig, 64),
        };
        check(SETUP, case);
    }
}

fn stay(rig: &Arc<Rig>, step: u32) {
    const BLOCKS: u32 = 300;
    rig.create(1, 0);
    let mut backend = rig.backend();
    (0..160).for_each(|block| rig.assert_reads(&mut backend, block, 0));
    let mut bulk = backend.bulk_write();
    assert_eq!(bulk.buffers(), RING);
    load(rig, &mut backend, &mut bulk, BLOCKS, step);
    assert_eq!(resident(rig, 0), 160, "nobody else's page had to go");
    assert!(resident(rig, 1) <= RING, "{} buffers", resident(rig, 1));
    bulk.finish(&mut backend).expect("writes");
    backend.show_counts();
    let counts = counted(rig, Strategy::BulkWrite);
    assert_eq!((counts.extended_blocks, counts.evictions), (u64::from(BLOCKS), 0));
    assert!(counts.extends >= u64::from(BLOCKS / step.min(RING / 2)), "{counts:?}");
    assert!(counts.reuses >= u64::from(BLOCKS - RING), "{counts:?}");
    let written = u64::from(BLOCKS - RING)..=u64::from(BLOCKS);
    assert!(written.contains(&counts.written_blocks), "{counts:?}");
    assert!(counts.writes < counts.written_blocks / 4, "neighbours together: {counts:?}");
    assert_eq!(counted(rig, Strategy::Normal).written_blocks, 0);
    assert_loaded(rig, BLOCKS);
}

/// A page that others have come to use leaves the ring and stays in the pool; so does one that is held.
#[test]
fn what_others_use_leaves_the_ring() {
    check(SETUP, |rig| {
        rig.create(1, 0);
        let mut backend = rig.backend();
        let mut bulk = backend.bulk_write();
        load(rig, &mut backend, &mut bulk, 16, 16);
        for block in 4..8 {
            (0..2).for_each(|_| drop(backend.read(&rig.relation(1), block).expect("a hit")));
        }
        let held = backend.read(&rig.relation(1), 10).expect("a hit");
        load(rig, &mut backend, &mut bulk, 100, 8);
        for block in [4, 5, 6, 7, 10] {
            assert!(rig.pool.contains(&rig.relation(1), block), "block {block}");
        }
        assert!(resident(rig, 1) <= RING + 5);
        drop(held);
        bulk.finish(&mut backend).expect("writes");
        assert_loaded(rig, 116);
    });
}

/// Who loads is told of a write that failed, loses nothing by it, and goes on when it is over.
#[test]
fn a_failed_write_of_the_ring() {
    check_simulated(SETUP, |rig| {
        rig.create(1, 0);
        let mut backend = rig.backend();
        let mut bulk = backend.bulk_write();
        load(rig, &mut backend, &mut bulk, RING, 16);
        let mut made = RING;
        for fault in [Fault::Error(libc::EIO), Fault::Error(libc::ENOSPC), Fault::Short(8192)] {
            rig.trouble(Operation::Writev, fault, 3);
            let mut failed = 0;
            for _ in 0..6 {
                match load_some(rig, &mut backend, &mut bulk, 16) {
                    Ok(count) => made += count,
                    Err(error) => {
                        assert!(error.to_string().contains("base/5/16385"), "{error}");
                        failed += 1;
                    }
                }
                assert!(resident(rig, 1) <= RING);
            }
            assert!(failed > 0 || matches!(fault, Fault::Short(_)));
            rig.no_trouble();
            load(rig, &mut backend, &mut bulk, 32, 16);
            made += 32;
        }
        assert_eq!(backend.pins(), 0);
        bulk.finish(&mut backend).expect("writes");
        assert_loaded(rig, made);
    });
}

/// Two loads, a checkpoint, and sessions that change other pages.
#[test]
fn beside_everything_else() {
    check(Setup { local: false, seeds: 3, ..SETUP }, |rig| {
        rig.create(1, 0);
        let loads: Vec<_> = (0..2)
            .map(|_| {
                rig.spawn("load", |rig| {
                    let mut backend =
                        rig.pool.backend(BackendType::BackgroundWorker).expect("a session");
                    let mut bulk = backend.bulk_write();
                    load(rig, &mut backend, &mut bulk, 120, 12);
                    bulk.finish(&mut backend).expect("writes");
                })
            })
            .collect();
        let changer = rig.spawn("changer", |rig| {
            let mut backend = rig.backend();
            (0..160).for_each(|block| rig.change(&mut backend, block, 3));
        });
        let mut backend = rig.backend();
        while loads.iter().any(|task| !task.is_done()) {
            rig.checkpoint(&mut backend).expect("a checkpoint");
            rig.let_others_go();
        }
        loads.into_iter().for_each(|task| task.join());
        changer.join();
        assert_loaded(rig, 240);
        assert!((0..160).all(|block| rig.is_on_disk(block, 3)));
    });
}
