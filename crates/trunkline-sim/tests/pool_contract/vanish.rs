//! Consumers that unpin their read-ahead, reset their stream, or end while reads are in flight. We
//! also change the I/O method while a stream is running.

use trunkline_aio::MethodKind;
use trunkline_engine::pool::{Evicted, Strategy};
use trunkline_engine::read_stream::{BlockList, StreamOptions};
use trunkline_format::BlockNo;
use trunkline_sim::matrix::Needs;
use trunkline_sim::matrix::cluster::check;

const ALL: [BlockNo; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Stream options that exercise every combination of order and full read-ahead.
fn every_kind() -> impl Iterator<Item = StreamOptions> {
    let strategies = [Strategy::Normal, Strategy::BulkRead, Strategy::Vacuum];
    strategies.into_iter().flat_map(|strategy| {
        [(false, 1), (true, 1), (false, 4), (true, 4)].map(move |(unordered, combine)| {
            StreamOptions { unordered, combine, strategy, full: true, ..StreamOptions::default() }
        })
    })
}

/// After each page, the consumer unpins all of the stream's read-ahead, including blocks that are
/// still being read. It must not have any pins left afterwards, and the stream must still return
/// every page exactly once.
#[test]
fn a_consumer_may_unpin_read_ahead_after_every_page() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        for options in every_kind() {
            cluster.pool.evict_all();
            let mut backend = cluster.backend();
            let mut stream = cluster.stream(&backend, &ALL, options);
            let mut seen = Vec::new();
            while let Some(found) = stream.next(&mut backend).expect("reads") {
                let page = found.pin.try_read().expect("not locked");
                cluster.check_page(&page, found.block);
                seen.push(found.block);
                drop(page);
                stream.release_ahead();
                assert_eq!((backend.pins(), stream.pinned()), (0, 0));
            }
            if options.unordered {
                seen.sort_unstable();
            }
            assert_eq!(seen, ALL);
            drop(stream);
            drop(backend);
            cluster.settle();
        }
    });
}

/// If a block is unpinned while it is being read, it stays in the pool. The stream must therefore
/// find the block there later, rather than read it again.
#[test]
fn unpinned_read_ahead_is_not_read_twice() {
    check(Needs::one_session(), |cluster| {
        cluster.probe.record();
        let mut backend = cluster.backend();
        let mut stream = cluster.start_read(&mut backend, &ALL);
        stream.release_ahead();
        let mut seen = cluster.drain(&mut backend, &mut stream);
        if !cluster.is_asynchronous() {
            // Under `sync` the first page was ready immediately, so it was the current page and got
            // dropped.
            seen.insert(0, Ok(0));
        }
        let wanted: Vec<Result<BlockNo, String>> = ALL.map(Ok).to_vec();
        // With another method, a fast read may have had the same effect.
        assert!(seen == wanted || seen == wanted[1..], "{seen:?}");
        let blocks: u32 = cluster.reads().iter().map(|read| read.1).sum();
        assert_eq!(blocks, 16);
    });
}

/// Drops streams and backends in every order, with reads in every state. Nothing may hang or leak.
#[test]
fn streams_and_backends_are_dropped_in_every_order() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        for options in every_kind() {
            for taken in [0, 1, 3] {
                for backend_first in [false, true] {
                    cluster.pool.evict_all();
                    let mut backend = cluster.async_backend();
                    let mut stream = cluster.stream(&backend, &ALL, options);
                    for _ in 0..taken {
                        let _ = stream.next(&mut backend).expect("reads");
                    }
                    if backend_first {
                        drop(backend);
                        drop(stream);
                    } else {
                        drop(stream);
                        assert_eq!(backend.pins(), 0);
                        drop(backend);
                    }
                    cluster.settle();
                    assert!(cluster.pool.rows().iter().all(|row| row.pins == 0));
                }
            }
        }
    });
}

/// A stream is reset while its reads are in flight. It must not return any of the old blocks.
#[test]
fn a_reset_discards_read_ahead() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        for options in every_kind() {
            cluster.pool.evict_all();
            let mut backend = cluster.backend();
            let mut stream = cluster.stream(&backend, &[0, 1, 2, 3, 4, 5, 6, 7], options);
            let _ = stream.next(&mut backend).expect("reads");
            for _ in 0..3 {
                stream.reset(BlockList::new(vec![12, 2, 13, 3]));
                assert_eq!(backend.pins(), 0);
                let _ = stream.next(&mut backend).expect("reads");
            }
            stream.reset(BlockList::new(vec![5, 14]));
            let mut seen = cluster.drain(&mut backend, &mut stream);
            seen.sort();
            assert_eq!(seen, [Ok(14), Ok(5)].into_iter().rev().collect::<Vec<_>>());
            // A stream that has ended can be reset as well.
            stream.reset(BlockList::new(vec![1]));
            assert_eq!(cluster.drain(&mut backend, &mut stream), [Ok(1)]);
            stream.reset(BlockList::new(Vec::new()));
            assert_eq!(cluster.drain(&mut backend, &mut stream), []);
        }
    });
}

/// The I/O method changes after every page, with the stream's reads still in flight.
#[test]
fn the_method_changes_under_a_stream() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        let fast = if cluster.is_simulated() { MethodKind::Custom } else { MethodKind::IoUring };
        let methods = [MethodKind::Sync, MethodKind::Worker, fast, MethodKind::Sync, fast];
        for options in every_kind() {
            for full in [false, true] {
                cluster.pool.evict_all();
                let mut backend = cluster.async_backend();
                let options = StreamOptions { full, ..options };
                // The blocks are scattered. Under `sync` we only issue `posix_fadvise` for them, so
                // they must still be read by the next method.
                let list: Vec<BlockNo> = (0..32).map(|at| at * 7 % 16).collect();
                let mut stream = cluster.stream(&backend, &list, options);
                let mut seen = Vec::new();
                for turn in 0.. {
                    cluster.aio.set_method(methods[turn % methods.len()]);
                    let Some(found) = stream.next(&mut backend).expect("reads") else { break };
                    cluster.check_page(&found.pin.try_read().expect("free"), found.block);
                    seen.push(found.block);
                }
                let mut wanted = list;
                if options.unordered {
                    seen.sort_unstable();
                    wanted.sort_unstable();
                }
                assert_eq!(seen, wanted);
            }
        }
        cluster.aio.set_method(cluster.environment.method);
    });
}

/// Eviction must skip a stream's current page, its read-ahead, and its reads in flight.
#[test]
fn eviction_skips_the_pages_of_a_stream() {
    check(Needs::one_session(), |cluster| {
        let mut backend = cluster.backend();
        let options = StreamOptions { full: true, combine: 4, ..StreamOptions::default() };
        let mut stream = cluster.stream(&backend, &ALL, options);
        for _ in 0..16 {
            let block = stream.next(&mut backend).expect("reads").expect("a page").block;
            cluster.pool.evict_all();
            let Evicted { skipped, .. } = cluster.pool.evict_relation(&cluster.relation(0), 0);
            // The current page, and the pages pinned ahead.
            assert!(skipped > stream.pinned(), "{skipped} skipped");
            assert!(cluster.pool.contains(&cluster.relation(0), block));
            assert_eq!(cluster.pool.evict_relation(&cluster.relation(0), 16), Evicted::default());
        }
        assert!(stream.next(&mut backend).expect("the end").is_none());
        cluster.settle();
        cluster.pool.evict_all();
        assert_eq!(cluster.pool.rows().len(), 0);
    });
}
