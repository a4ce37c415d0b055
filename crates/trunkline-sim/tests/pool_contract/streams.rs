//! Read streams with repeated blocks, and with blocks other sessions are reading: test_aio's cases
//! 34 to 37. Also tests what a stream counts.

use std::task::{Context, Waker};
use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::{MethodKind, Operation};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::Fault;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs, TestThread};

const UP_AND_DOWN: [BlockNo; 13] = [0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0];

/// Reads repeated blocks, with all combinations of options. The blocks are all misses, all hits, or
/// half of each.
#[test]
fn pg_34_a_repeated_block_is_read_once() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        let lists: [&[BlockNo]; 3] = [&[0, 2, 2, 4, 4], &UP_AND_DOWN, &[7; 20]];
        for list in lists {
            for (full, unordered) in [(false, false), (true, false), (false, true), (true, true)] {
                for (concurrency, combine) in [(0, 16), (1, 4), (16, 16)] {
                    cluster.pool.evict_all();
                    cluster.probe.record();
                    let mut wanted: Vec<_> = list.iter().map(|&block| Ok(block)).collect();
                    if unordered {
                        wanted.sort();
                    }
                    for _ in 0..2 {
                        let mut backend = cluster.backend();
                        let options = StreamOptions {
                            full,
                            unordered,
                            concurrency,
                            combine,
                            ..StreamOptions::default()
                        };
                        let mut stream = cluster.stream(&backend, list, options);
                        let mut seen = cluster.drain(&mut backend, &mut stream);
                        if unordered {
                            seen.sort();
                        }
                        assert_eq!(seen, wanted);
                    }
                    // However often a block is requested, it must be read only once.
                    let mut blocks = list.to_vec();
                    blocks.sort_unstable();
                    blocks.dedup();
                    let read: u32 = cluster.reads().iter().map(|read| read.1).sum();
                    assert_eq!(read as usize, blocks.len());
                }
            }
        }
    });
}

/// Starts a thread with a stream over three blocks, which must return all of them in order. Returns
/// its session id.
fn read_1_5_7(cluster: &Arc<Cluster>) -> (u32, TestThread<()>) {
    let mut backend = cluster.async_backend();
    let options = StreamOptions { full: true, combine: 4, ..StreamOptions::default() };
    let mut stream = cluster.stream(&backend, &[1, 5, 7], options);
    let session = backend.session_id();
    let reader = cluster.spawn("reader", move |cluster| {
        let seen = cluster.drain(&mut backend, &mut stream);
        assert_eq!(seen, [Ok(1), Ok(5), Ok(7)]);
    });
    (session, reader)
}

/// Another session is reading block 5, and we hold back the result. The stream must start reading
/// block 7 before it waits for block 5, and must still return all blocks in order.
#[test]
fn pg_35_a_stream_reads_ahead_past_another_sessions_read() {
    check(Needs::default(), |cluster| {
        cluster.probe.record();
        let held = cluster.hold(5);
        let other = cluster.spawn("other", |cluster| cluster.read_ok(&mut cluster.backend(), 5));
        held.wait();
        let (session, reader) = read_1_5_7(cluster);
        if cluster.is_asynchronous() {
            cluster
                .wait_until("block 7 is started", || cluster.reads_of(session).contains(&(7, 1)));
        }
        cluster.let_others_run();
        assert!(!reader.is_done());
        held.release();
        other.join();
        reader.join();
        assert_eq!(
            cluster.reads_of(session),
            [(1, 1), (7, 1)],
            "the other session has read block 5"
        );
    });
}

/// The other session's read fails. The stream must read block 5 itself, and only the other session
/// may receive the error.
#[test]
fn pg_36_a_stream_reads_a_block_again_that_another_session_failed_to_read() {
    check(Needs::default(), |cluster| {
        cluster.probe.record();
        let held = cluster.hold(5);
        let other = cluster.spawn("other", |cluster| {
            let mut backend = cluster.backend();
            let error = backend.read(&cluster.relation(0), 5).map(drop).expect_err("it fails");
            assert_eq!(backend.pins(), 0);
            error.to_string()
        });
        held.wait();
        let (session, reader) = read_1_5_7(cluster);
        cluster.wait_pins(5, 3);
        let mut times = 0;
        cluster.probe.change_results(move |io, raw| {
            let mine = io.offset == 5 * 8192;
            times += u32::from(mine);
            if mine && times == 1 { -5 } else { raw }
        });
        held.release();
        let error = other.join();
        assert!(error.contains("block 5"), "{error}");
        reader.join();
        cluster.probe.keep_results();
        let mut reads = cluster.reads_of(session);
        reads.sort_unstable();
        assert_eq!(reads, [(1, 1), (5, 1), (7, 1)]);
    });
}

/// Two of the stream's blocks are part of a single read by another session, so both join the same
/// I/O.
#[test]
fn pg_37_two_blocks_join_one_read_of_another_session() {
    check(Needs::default(), |cluster| {
        cluster.probe.record();
        let held = cluster.hold(3);
        let other = cluster.spawn("other", |cluster| {
            let mut backend = cluster.backend();
            let options = StreamOptions { full: true, combine: 3, ..StreamOptions::default() };
            let mut stream = cluster.stream(&backend, &[2, 3, 4], options);
            assert_eq!(cluster.drain(&mut backend, &mut stream), [Ok(2), Ok(3), Ok(4)]);
        });
        held.wait();
        let mut backend = cluster.async_backend();
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = cluster.stream(&backend, &[2, 4, 6], options);
        let session = backend.session_id();
        let reader = cluster.spawn("reader", move |cluster| {
            assert_eq!(cluster.drain(&mut backend, &mut stream), [Ok(2), Ok(4), Ok(6)]);
        });
        cluster.wait_pins(2, 3);
        held.release();
        other.join();
        reader.join();
        assert_eq!(cluster.reads_of(session), [(6, 1)]);
        let first: Vec<_> = cluster.reads().into_iter().filter(|read| read.0 != 6).collect();
        assert_eq!(first, [(2, 3)]);
    });
}

/// Two streams of one session are polled alternately. Both must return their blocks in order.
#[test]
fn two_polled_streams_share_one_session() {
    check(Needs::one_session(), |cluster| {
        let mut backend = cluster.async_backend();
        let options = StreamOptions { full: true, combine: 2, ..StreamOptions::default() };
        let lists: [&[BlockNo]; 2] = [&[0, 1, 2, 3, 4, 5, 6, 7], &[7, 6, 5, 4, 3, 2, 1, 0]];
        let mut streams = lists.map(|list| cluster.stream(&backend, list, options));
        let mut seen = [Vec::new(), Vec::new()];
        let mut context = Context::from_waker(Waker::noop());
        cluster.wait_until("both streams end", || {
            let mut ended = 0;
            for (stream, seen) in streams.iter_mut().zip(&mut seen) {
                if let std::task::Poll::Ready(found) = stream.poll_next(&mut context, &mut backend)
                {
                    match found.expect("reads") {
                        Some(found) => seen.push(found.block),
                        None => ended += 1,
                    }
                }
            }
            ended == 2
        });
        assert_eq!(seen, lists);
        assert_eq!(backend.pins(), 0);
    });
}

/// Two streams take turns in one session. Each of them counts its own hits, reads and times, and
/// together they have counted exactly what the pool has counted.
#[test]
fn each_stream_counts_its_own_hits_reads_and_times() {
    check(Needs::one_session(), |cluster| {
        let mut backend = cluster.backend();
        (0..4).for_each(|block| cluster.read_ok(&mut backend, block));
        backend.publish_counts();
        let before = cluster.pool.total();
        if cluster.is_simulated() {
            cluster.inject(Operation::Readv, Fault::Delay(Duration::from_micros(500)), 100);
        }
        let options = StreamOptions { combine: 2, ..StreamOptions::default() };
        let lists: [Vec<BlockNo>; 2] = [(0..8).collect(), (8..16).collect()];
        let mut streams = lists.map(|list| cluster.stream(&backend, &list, options));
        for block in 0..8 {
            for (stream, first) in streams.iter_mut().zip([0, 8]) {
                let found = stream.next(&mut backend).expect("reads").expect("a page");
                assert_eq!(found.block, first + block);
            }
        }
        let usage = streams.each_mut().map(|stream| {
            assert!(stream.next(&mut backend).expect("the end").is_none());
            stream.buffer_usage()
        });
        assert_eq!(usage.map(|usage| (usage.hits, usage.read_blocks)), [(4, 4), (0, 8)]);
        for (usage, stream) in usage.iter().zip(&streams) {
            assert_eq!(usage.reads, stream.stats().ios);
            assert!(usage.device_nanos > 0, "{usage:?}");
            // On a fast disk, a read may have ended before the stream looks for it.
            let waited = usage.waits > 0 && usage.wait_nanos > 0;
            assert!(waited || !cluster.is_simulated(), "{usage:?}");
        }
        drop(streams);
        let mut sum = usage[0];
        sum.add(&usage[1]);
        backend.publish_counts();
        assert_eq!(cluster.pool.total().since(&before), sum);
        cluster.clear_faults();
    });
}

/// If a session executes a read itself, it waits for as long as the read takes. Under `sync`, it
/// does so for every read.
#[test]
fn a_read_that_the_session_executes_itself_counts_as_a_wait() {
    check(Needs::one_session(), |cluster| {
        let mut backend = cluster.backend();
        cluster.read_ok(&mut backend, 0);
        let list: Vec<BlockNo> = (1..16).collect();
        let blocks = match backend.session().method() {
            MethodKind::Sync => &list[..],
            _ => &list[..1],
        };
        let mut stream = cluster.stream(&backend, blocks, StreamOptions::default());
        assert_eq!(cluster.drain(&mut backend, &mut stream).len(), blocks.len());
        drop(stream);
        backend.publish_counts();
        let total = cluster.pool.total();
        assert_eq!((total.waits, total.wait_nanos), (total.reads, total.device_nanos));
    });
}
