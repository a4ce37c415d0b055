//! Regression tests for lessons learned from PostgreSQL: numbers 11, 12, 13, 15, 16, 31 and 32 in
//! `docs/postgres-lessons.md`.
//!
//! Lesson 25 is in `locks`.

use std::task::{Context, Waker};
use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::{MethodKind, Operation, clock};
use trunkline_engine::pool::{PINS_GUARANTEED, Strategy};
use trunkline_engine::read_stream::{StreamOptions, StreamStats};
use trunkline_format::BlockNo;
use trunkline_sim::matrix::cluster::{check, check_real, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs, Pools};
use trunkline_sim::{Fault, PausedIo, Rule};

/// Makes every read take a while, so that reads can overlap.
const SLOW: Fault = Fault::Delay(Duration::from_micros(500));

/// Options for a stream that reads ahead at full distance from the start.
fn full(combine: u32) -> StreamOptions {
    StreamOptions { full: true, combine, ..StreamOptions::default() }
}

/// In a local pool, a stream must not pin more than a quarter of the buffers, whatever its options,
/// so that its session can use the rest. See `docs/postgres-lessons.md#lesson-11`.
#[test]
fn lesson_11_a_stream_does_not_pin_all_of_a_local_pool() {
    let needs = Needs { pools: Pools::Local, blocks: 128, seeds: 3, ..Needs::default() };
    check(needs, |cluster| {
        let list: Vec<BlockNo> = (0..128).collect();
        for options in [full(16), full(1), full(128), StreamOptions::default()] {
            cluster.pool.evict_all();
            let mut backend = cluster.backend();
            let options = StreamOptions { concurrency: 64, ..options };
            let mut stream = cluster.stream(&backend, &list, options);
            assert_eq!(stream.stats().capacity, 16);
            for turn in 0..128 {
                assert!(stream.next(&mut backend).expect("reads").is_some());
                assert!(stream.pinned() <= 16, "{} of 64 ahead", stream.pinned());
                if turn == 40 {
                    let pins: Vec<_> = (64..64 + 40)
                        .map(|block| backend.read(&cluster.relation(0), block).expect("a pin"))
                        .collect();
                    drop(pins);
                }
            }
        }
    });
}

/// A stream at its maximum look-ahead distance must leave enough pins for other sessions. See
/// `docs/postgres-lessons.md#lesson-12`.
#[test]
fn lesson_12_read_ahead_leaves_pins_for_other_sessions() {
    check(Needs { blocks: 128, ..Needs::default() }, |cluster| {
        let list: Vec<BlockNo> = (0..64).collect();
        let mut backend = cluster.backend();
        let mut stream = cluster.stream(&backend, &list, full(16));
        // By then the stream has reached its maximum distance.
        for _ in 0..24 {
            assert!(stream.next(&mut backend).expect("reads").is_some());
        }
        assert!(cluster.pool.permits() <= 64 - 2 * PINS_GUARANTEED, "{}", cluster.pool.permits());
        let others = (64 - cluster.pool.permits()) / PINS_GUARANTEED;
        let mut backends: Vec<_> = (0..others).map(|_| cluster.backend()).collect();
        let mut pins = Vec::new();
        for other in &mut backends {
            for step in 0..PINS_GUARANTEED {
                pins.push(other.read(&cluster.relation(0), 100 + step).expect("guaranteed"));
            }
        }
        // There are no permits left for another session, so this one has to wait. It must be
        // admitted as soon as pins are released.
        let last = cluster.spawn("last", |cluster| cluster.read_ok(&mut cluster.backend(), 110));
        cluster.let_others_run();
        drop(pins);
        last.join();
        let rest = cluster.drain(&mut backend, &mut stream);
        assert_eq!(rest.len(), 64 - 24);
    });
}

/// The pool is too small for the stream, the stream's queue wraps around, and hits split its reads.
/// If a buffer was pinned for a block but the block wasn't read, the buffer must not be used for a
/// different block. See `docs/postgres-lessons.md#lesson-13`.
#[test]
fn lesson_13_no_page_is_carried_over_to_the_wrong_block() {
    check(Needs { buffers: 24, blocks: 64, seeds: 6, ..Needs::one_session() }, |cluster| {
        let mut random = Rng::new(cluster.environment.seed.unwrap_or(77));
        for round in 0..6 {
            let mut list = Vec::new();
            while list.len() < 150 {
                // Runs of adjacent blocks, some of them read recently.
                let first = random.below(60) as BlockNo;
                list.extend(first..(first + 1 + random.below(6) as BlockNo).min(64));
            }
            let combine = [1, 2, 3, 5, 16, 128][round];
            let options = StreamOptions {
                unordered: random.below(2) == 0,
                full: random.below(2) == 0,
                concurrency: 1 + random.below(8) as u32,
                ..full(combine)
            };
            let mut backend = cluster.backend();
            let mut stream = cluster.stream(&backend, &list, options);
            let mut seen = cluster.drain(&mut backend, &mut stream);
            let mut wanted: Vec<Result<BlockNo, String>> = list.into_iter().map(Ok).collect();
            if options.unordered {
                seen.sort();
                wanted.sort();
            }
            assert_eq!(seen, wanted);
        }
    });
}

/// Reads blocks i, i+1, i+2, i+3 for each i, so that most blocks are requested four times in quick
/// succession. Each block must nevertheless be read only once.
fn overlapping(cluster: &Arc<Cluster>, count: BlockNo) -> StreamStats {
    let list: Vec<BlockNo> = (1..=count).flat_map(|i| i..i + 4).collect();
    let mut backend = cluster.backend();
    let mut stream = cluster.stream(&backend, &list, StreamOptions::default());
    for &block in &list {
        let found = stream.next(&mut backend).expect("reads").expect("a page");
        assert_eq!(found.block, block);
        assert_eq!(found.pin.block(), block);
        assert!(found.pin.try_read().is_some());
    }
    assert!(stream.next(&mut backend).expect("the end").is_none());
    let stats = stream.stats();
    drop((stream, backend));
    let total = cluster.pool.total();
    let blocks = u64::from(count) + 3;
    assert_eq!((total.read_blocks, total.hits), (blocks, u64::from(count) * 4 - blocks));
    assert_eq!((stats.io_blocks, stats.pages), (blocks, u64::from(count) * 4));
    stats
}

/// A request for a block that is already being read must not stall the stream. See
/// `docs/postgres-lessons.md#lesson-15`.
#[test]
fn lesson_15_a_repeated_block_joins_its_read_in_flight() {
    let needs = Needs { buffers: 1024, blocks: 10_004, ..Needs::default() };
    check_real(needs, |cluster| _ = overlapping(cluster, 10_000));
    check_real(Needs { pools: Pools::Local, direct: true, ..needs }, |cluster| {
        overlapping(cluster, 10_000);
    });
    let needs = Needs { buffers: 256, blocks: 404, seeds: 3, ..Needs::one_session() };
    check_simulated(needs, |cluster| {
        cluster.plan.set(vec![Rule::new(Operation::Readv, 1, SLOW).times(u64::MAX)]);
        let stats = overlapping(cluster, 400);
        if cluster.is_asynchronous() {
            assert!(stats.in_flight_mean() > 2.0, "no reads in parallel: {stats:?}");
        }
    });
}

/// Completed reads occupy slots until the session takes their results, so a stream needs more slots
/// than it should have reads at the storage. A low limit stays exact.
#[test]
fn a_stream_has_an_eighth_more_slots_than_its_concurrency() {
    let needs = Needs { buffers: 512, blocks: 256, seeds: 3, ..Needs::one_session() };
    check_simulated(needs, |cluster| {
        // No read completes before this thread waits, because that is when virtual time passes.
        cluster.plan.set(vec![Rule::new(Operation::Readv, 1, SLOW).times(u64::MAX)]);
        // The blocks aren't adjacent, so each read is of one block.
        let list: Vec<BlockNo> = (0..256).step_by(2).collect();
        for (concurrency, slots) in [(7, 7), (16, 18)] {
            cluster.pool.evict_all();
            let mut backend = cluster.async_backend();
            let options = StreamOptions { concurrency, ..full(128) };
            let mut stream = cluster.stream(&backend, &list, options);
            if cluster.is_asynchronous() {
                let mut context = Context::from_waker(Waker::noop());
                assert!(stream.poll_next(&mut context, &mut backend).is_pending());
                assert_eq!(stream.stats().ios, slots);
            }
            assert_eq!(cluster.drain(&mut backend, &mut stream).len(), list.len());
        }
    });
}

/// Every other page is a hit. These hits must not reduce the look-ahead distance to one. See
/// `docs/postgres-lessons.md#lesson-16`.
#[test]
fn lesson_16_hits_do_not_end_read_ahead() {
    let needs = Needs { buffers: 512, blocks: 256, seeds: 3, ..Needs::one_session() };
    check_simulated(needs, |cluster| {
        let mut backend = cluster.backend();
        cluster.plan.set(vec![Rule::new(Operation::Readv, 1, SLOW).times(u64::MAX)]);
        (0..256).step_by(2).for_each(|block| cluster.read_ok(&mut backend, block));
        let list: Vec<BlockNo> = (0..256).collect();
        let mut stream = cluster.stream(&backend, &list, StreamOptions::default());
        assert_eq!(cluster.drain(&mut backend, &mut stream).len(), 256);
        let stats = stream.stats();
        assert_eq!((stats.ios, stats.io_blocks), (128, 128));
        if cluster.is_asynchronous() {
            assert!(stats.distance_max >= 16, "{stats:?}");
            assert!(stats.in_flight_mean() > 3.0, "{stats:?}");
        } else {
            assert!(stats.advised > 0, "{stats:?}");
        }
    });
}

/// If the consumer stops after the first page, as a query with `LIMIT 1` does, only one block must
/// be read. We also check that a stream doesn't look ahead if all blocks are hits.
#[test]
fn lesson_16_limit_1_reads_one_block() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        for strategy in [Strategy::Normal, Strategy::BulkRead, Strategy::Vacuum] {
            for unordered in [false, true] {
                cluster.pool.evict_all();
                cluster.probe.record();
                let mut backend = cluster.backend();
                let options = StreamOptions { strategy, unordered, ..StreamOptions::default() };
                let list: Vec<BlockNo> = (0..16).collect();
                let mut stream = cluster.stream(&backend, &list, options);
                let found = stream.next(&mut backend).expect("reads").expect("a page");
                assert_eq!(found.block, 0);
                drop(stream);
                assert_eq!(cluster.reads(), [(0, 1)]);
                list.iter().for_each(|&block| cluster.read_ok(&mut backend, block));
                let mut stream = cluster.stream(&backend, &list, options);
                for _ in 0..16 {
                    assert!(stream.next(&mut backend).expect("reads").is_some());
                    assert!(stream.pinned() <= 1, "reads ahead over hits");
                }
                assert_eq!(stream.stats().ios, 0);
            }
        }
    });
}

/// All buffers are pinned by abandoned reads, so there is no victim to be found. The clock sweep
/// must give up after a few rounds rather than spin. See `docs/postgres-lessons.md#lesson-31`.
#[test]
fn lesson_31_the_clock_sweep_ends_when_every_buffer_is_pinned() {
    check(Needs { buffers: 16, blocks: 32, ..Needs::one_session().asynchronous() }, |cluster| {
        let held = cluster.fill_with_reads(16);
        let mut backend = cluster.async_backend();
        let mut context = Context::from_waker(Waker::noop());
        for strategy in [Strategy::Normal, Strategy::BulkRead] {
            let options = StreamOptions { strategy, ..full(16) };
            let mut stream = cluster.stream(&backend, &[20, 21, 22, 23], options);
            let (rounds, _) = cluster.pool.clock_position();
            for _ in 0..3 {
                assert!(stream.poll_next(&mut context, &mut backend).is_pending());
            }
            let (after, _) = cluster.pool.clock_position();
            assert!(after - rounds <= 12, "{} rounds for nothing", after - rounds);
        }
        assert_eq!(cluster.pool.evict_all().evicted, 0);
        held.iter().for_each(PausedIo::release);
        cluster.settle();
        cluster.read_ok(&mut backend, 20);
    });
}

/// Issues some reads, because only one worker at a time may work on a mount where no I/O has
/// completed yet.
fn warm_up(cluster: &Arc<Cluster>) {
    let mut backend = cluster.async_backend();
    (40..56).for_each(|block| cluster.read_ok(&mut backend, block));
}

/// One read is slow, and an unordered stream must return all other blocks before that one. See
/// `docs/postgres-lessons.md#lesson-32`.
#[test]
fn lesson_32_an_unordered_stream_does_not_wait_for_the_slowest() {
    let needs = Needs { blocks: 64, ..Needs::one_session().asynchronous() };
    check_simulated(needs, |cluster| {
        warm_up(cluster);
        let slow = Fault::Delay(Duration::from_secs(10));
        cluster.plan.set(vec![Rule::new(Operation::Readv, 1, slow)]);
        let mut backend = cluster.async_backend();
        // No two blocks are adjacent, so each gets its own read.
        let list: Vec<BlockNo> = (0..12).map(|at| at * 2).collect();
        let options = StreamOptions { unordered: true, ..full(4) };
        let mut stream = cluster.stream(&backend, &list, options);
        let begin = clock::now();
        for _ in 1..12 {
            assert!(stream.next(&mut backend).expect("reads").is_some());
        }
        let waited = clock::now().since(begin);
        assert!(waited < Duration::from_secs(5), "{waited:?} for the fast ones");
        assert_eq!(cluster.drain(&mut backend, &mut stream).len(), 1);
    });
    // We can stop a single worker, but stopping a ring driver would stop all I/O.
    check_real(needs, |cluster| {
        if cluster.environment.method != MethodKind::Worker {
            return;
        }
        warm_up(cluster);
        let held = cluster.hold(0);
        let mut backend = cluster.async_backend();
        let options = StreamOptions { unordered: true, concurrency: 8, ..full(8) };
        let list: Vec<BlockNo> = (0..8).map(|at| at * 2).collect();
        let mut stream = cluster.stream(&backend, &list, options);
        for _ in 1..8 {
            let found = stream.next(&mut backend).expect("reads").expect("a page");
            assert_ne!(found.block, 0);
        }
        held.release();
        assert_eq!(cluster.drain(&mut backend, &mut stream), [Ok(0)]);
    });
}

/// An ordered stream can't return later blocks before the slow read completes, but it must still
/// start reading them.
#[test]
fn lesson_32_an_ordered_stream_starts_later_reads_behind_a_slow_one() {
    check(Needs::one_session().asynchronous(), |cluster| {
        cluster.probe.record();
        let held = cluster.hold(0);
        let mut backend = cluster.async_backend();
        let list: Vec<BlockNo> = (0..8).map(|at| at * 2).collect();
        let mut stream = cluster.stream(&backend, &list, full(8));
        let session = backend.session_id();
        let reader =
            cluster.spawn("reader", move |cluster| cluster.drain(&mut backend, &mut stream));
        held.wait();
        cluster.wait_until("later reads", || cluster.reads_of(session).len() > 1);
        cluster.let_others_run();
        assert!(!reader.is_done());
        held.release();
        assert_eq!(reader.join(), list.into_iter().map(Ok).collect::<Vec<_>>());
    });
}
