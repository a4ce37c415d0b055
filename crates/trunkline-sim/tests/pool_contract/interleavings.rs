//! Two sessions need the same page, and one is stopped at a critical point: between lookup and
//! opening the file, between buffer allocation and claim, between claim and submission, or between
//! result and verification.

use trunkline_aio::State;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_engine::pool::Evicted;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::matrix::TestThread;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs};

/// A thread that reads one block.
fn reader(cluster: &Arc<Cluster>, block: BlockNo) -> TestThread<()> {
    cluster.spawn("reader", move |cluster| cluster.read_ok(&mut cluster.backend(), block))
}

/// Starts a thread that reads adjacent blocks with one I/O, or with several if another session
/// reads one of the blocks first. Returns the thread's session id.
fn run_reader(cluster: &Arc<Cluster>, blocks: &'static [BlockNo]) -> TestThread<u32> {
    cluster.spawn("run reader", move |cluster| {
        let mut backend = cluster.backend();
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = cluster.stream(&backend, blocks, options);
        let wanted: Vec<_> = blocks.iter().map(|&block| Ok(block)).collect();
        assert_eq!(cluster.drain(&mut backend, &mut stream), wanted);
        backend.session_id()
    })
}

/// Both sessions missed the page and have allocated a buffer for it. The faster session reads the
/// page. The slower session must release its own buffer and use that page.
#[test]
fn two_sessions_insert_the_same_page() {
    check(Needs::default(), |cluster| {
        cluster.probe.record();
        let step = cluster.probe.pause_at(State::HandedOut, |_| true);
        let slow = reader(cluster, 3);
        step.wait();
        reader(cluster, 3).join();
        step.release();
        slow.join();
        assert_eq!(cluster.reads(), [(3, 1)]);
        let total = cluster.pool.total();
        assert_eq!((total.hits, total.joins), (1, 0));
        assert_eq!(cluster.pool.rows().len(), 1);
    });
}

/// As before, but the faster session's read is still in flight, so the slower one must join it.
#[test]
fn two_sessions_insert_the_same_page_and_one_joins() {
    check(Needs::default(), |cluster| {
        cluster.probe.record();
        let step = cluster.probe.pause_at(State::HandedOut, |_| true);
        let slow = reader(cluster, 3);
        step.wait();
        let held = cluster.hold(3);
        let fast = reader(cluster, 3);
        held.wait();
        step.release();
        cluster.wait_pins(3, 3);
        held.release();
        slow.join();
        fast.join();
        assert_eq!(cluster.reads(), [(3, 1)]);
        assert_eq!(cluster.pool.total().joins, 1);
    });
}

/// A session is about to read three blocks when another session reads one of them. The claim must
/// stop at that block, and the remaining blocks need a second read.
#[test]
fn a_claim_stops_at_a_page_that_another_session_has_read() {
    type Case = (BlockNo, &'static [(BlockNo, u32)]);
    const CASES: [Case; 3] = [(2, &[(3, 2)]), (3, &[(2, 1), (4, 1)]), (4, &[(2, 2)])];
    check(Needs::default(), |cluster| {
        for (taken, reads) in CASES {
            cluster.pool.evict_all();
            cluster.probe.record();
            let step = cluster.probe.pause_at(State::HandedOut, |_| true);
            let slow = run_reader(cluster, &[2, 3, 4]);
            step.wait();
            reader(cluster, taken).join();
            step.release();
            assert_eq!(cluster.reads_of(slow.join()), reads, "block {taken} was taken");
        }
    });
}

/// The session is about to read three adjacent blocks. The lookup found the middle block in the
/// pool, but its page is evicted before the session claims the blocks for its read. The session
/// must notice that and read the middle block as well.
#[test]
fn a_page_is_evicted_between_the_lookup_and_the_claim() {
    check(Needs::default(), |cluster| {
        cluster.read_ok(&mut cluster.backend(), 3);
        let step = cluster.probe.pause_at(State::HandedOut, |_| true);
        let slow = run_reader(cluster, &[2, 3, 4]);
        step.wait();
        assert_eq!(cluster.pool.evict_all(), Evicted { evicted: 1, skipped: 0 });
        step.release();
        slow.join();
    });
}

/// After a failed read, the page is in the mapping table but not valid. A pin must protect it from
/// eviction, and another session may read it first.
#[test]
fn a_page_that_failed_is_claimed_by_two_sessions() {
    check(Needs::default(), |cluster| {
        cluster.fail(3, 5);
        assert!(cluster.backend().read(&cluster.relation(0), 3).is_err());
        cluster.probe.keep_results();
        cluster.probe.record();
        let step = cluster.probe.pause_at(State::HandedOut, |_| true);
        let slow = reader(cluster, 3);
        step.wait();
        assert_eq!(
            cluster.pool.evict_all(),
            Evicted { evicted: 0, skipped: 1 },
            "the page is pinned"
        );
        reader(cluster, 3).join();
        step.release();
        slow.join();
        assert_eq!(cluster.reads(), [(3, 1)]);
    });
}

/// A session misses the page and stops before it opens the file. While it's stopped, another
/// session reads the page and, in one variant, evicts it again.
#[test]
fn the_page_is_read_and_evicted_after_a_lookup() {
    check(Needs::default(), |cluster| {
        for stays in [false, true] {
            cluster.pool.evict_all();
            cluster.storage.forget(cluster.relation(0).locator());
            cluster.probe.record();
            let gate = cluster.files.hold_open();
            let slow = reader(cluster, 3);
            gate.wait_for_arrivals(1);
            reader(cluster, 3).join();
            if !stays {
                assert_eq!(cluster.pool.evict_relation(&cluster.relation(0), 0).evicted, 1);
            }
            gate.release();
            slow.join();
            assert_eq!(cluster.reads().len(), if stays { 1 } else { 2 });
        }
    });
}

/// A read is stopped in each state of its I/O. Its page must not be evicted, a second session must
/// wait for the read or get a hit, and invalidation must wait.
#[test]
fn a_page_that_is_being_read_is_not_evicted() {
    check(Needs { seeds: 4, ..Needs::default() }, |cluster| {
        for state in [
            State::Defined,
            State::Staged,
            State::Submitted,
            State::CompletedIo,
            State::CompletedShared,
            State::CompletedLocal,
        ] {
            cluster.pool.evict_all();
            let held = cluster.probe.pause_at(state, |io| io.offset == 3 * 8192);
            let first = reader(cluster, 3);
            held.wait();
            let row = cluster.pool.rows().into_iter().find(|row| row.block == 3).expect("a buffer");
            assert!(!cluster.pool.evict(row.bufferid));
            assert_eq!(cluster.pool.evict_all(), Evicted { evicted: 0, skipped: 1 }, "{state:?}");
            assert_eq!(row.valid, state >= State::CompletedShared, "{state:?}");
            let second = reader(cluster, 3);
            let dropper = cluster.spawn("dropper", |cluster| {
                cluster.backend().invalidate(&cluster.relation(0), 0).expect("not cancelled");
            });
            cluster.let_others_run();
            held.release();
            first.join();
            second.join();
            dropper.join();
        }
    });
}

/// The I/O is in COMPLETED_IO but the thread that reaped it is stopped. A waiting session must run
/// the callbacks instead of waiting for that thread.
#[test]
fn a_joiner_completes_what_its_issuer_does_not() {
    check(Needs::default(), |cluster| {
        let mut backend = cluster.async_backend();
        let held = cluster.probe.pause_at(State::CompletedIo, |io| io.offset == 3 * 8192);
        let starter = cluster.spawn("starter", |cluster| {
            let mut backend = cluster.async_backend();
            let stream = cluster.start_read(&mut backend, &[3]);
            drop((stream, backend));
        });
        held.wait();
        cluster.read_ok(&mut backend, 3);
        held.release();
        starter.join();
    });
}

/// Many sessions read a relation that doesn't fit into the pool, while another session evicts
/// continuously. Lookup races with eviction at every switch point, and must never return a wrong
/// page.
#[test]
fn lookups_and_evictions_under_many_seeds() {
    check(Needs { buffers: 24, blocks: 32, seeds: 24, ..Needs::default() }, |cluster| {
        let seed = cluster.environment.seed.unwrap_or(1);
        let readers: Vec<_> = (0..5)
            .map(|number| {
                cluster.spawn("reader", move |cluster| {
                    let mut random = Rng::new(seed * 16 + number);
                    let mut backend = cluster.backend();
                    for _ in 0..25 {
                        // Most reads are of the same few blocks, so they race with each other.
                        let range = if random.below(3) == 0 { 32 } else { 4 };
                        cluster.read_ok(&mut backend, random.below(range) as BlockNo);
                    }
                })
            })
            .collect();
        let evictor = cluster.spawn("evictor", |cluster| {
            (0..30).map(|_| cluster.pool.evict_all().evicted).sum::<u32>()
        });
        readers.into_iter().for_each(TestThread::join);
        evictor.join();
    });
}

/// As in the previous test, lookups race with other sessions' changes to the pool. Here the readers
/// use ordered and unordered streams, and instead of evicting pages we invalidate them, which must
/// wait for other sessions to release their pins.
#[test]
fn streams_and_invalidations_under_many_seeds() {
    check_simulated(Needs { buffers: 16, blocks: 32, seeds: 20, ..Needs::default() }, |cluster| {
        let tasks: Vec<_> = (0..4)
            .map(|number: u32| {
                cluster.spawn("scanner", move |cluster| {
                    let mut backend = cluster.backend();
                    let list: Vec<BlockNo> = (0..32).map(|at| (at * 5 + number) % 32).collect();
                    let unordered = number.is_multiple_of(2);
                    let options = StreamOptions { unordered, ..StreamOptions::default() };
                    let mut stream = cluster.stream(&backend, &list, options);
                    let seen = cluster.drain(&mut backend, &mut stream);
                    assert!(seen.len() == 32 && seen.iter().all(Result::is_ok), "{seen:?}");
                })
            })
            .collect();
        let droppers: Vec<_> = (0..2)
            .map(|_| {
                cluster.spawn("dropper", |cluster| {
                    let mut backend = cluster.backend();
                    for first in [0, 8, 16] {
                        backend.invalidate(&cluster.relation(0), first).expect("not cancelled");
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(TestThread::join);
        droppers.into_iter().for_each(TestThread::join);
    });
}
