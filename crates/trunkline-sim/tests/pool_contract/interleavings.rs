//! Two sessions need the same page, and one of them is stopped at a critical point: after looking
//! up the page but before opening the file, after allocating a buffer but before claiming the page,
//! after claiming the page but before submitting the read, or after the result has arrived but
//! before the page is verified.

use trunkline_aio::State;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_engine::pool::Evicted;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::matrix::TestThread;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, FileCall, Needs};

/// A thread that reads one block.
fn reader(cluster: &Arc<Cluster>, block: BlockNo) -> TestThread<()> {
    cluster.spawn("reader", move |cluster| cluster.read_ok(&mut cluster.backend(), block))
}

/// Starts a thread that reads adjacent blocks through a stream. The blocks are read with one I/O,
/// or with several if another session has read one of them first. Returns the thread, which returns
/// its session id.
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

/// Neither session has found the page in the pool, so each has allocated a buffer for it. The
/// faster session reads the page. The slower session must then release its own buffer, and use the
/// one that the faster session has filled.
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

/// This is like the previous test, but the faster session's read is still in flight, so the slower
/// session must join it.
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

/// A session is about to read three blocks when another session reads one of them. The first
/// session can claim only the blocks before that one, and must read any blocks after it with a
/// second I/O.
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

/// A session is about to read three adjacent blocks. The middle block is in the pool when the
/// session looks it up, but it is evicted before the session claims the blocks. The session must
/// notice this, and read the middle block as well.
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

/// After a failed read, the page has an entry in the mapping table but is not valid. A session that
/// wants to read the page again pins the buffer, so the page must not be evicted. If another
/// session reads it first, there must be no second read.
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

/// A session doesn't find the page in the pool, and is stopped before it opens the file. In the
/// meantime another session reads the page. In one variant, the page is also evicted again before
/// the first session continues.
#[test]
fn the_page_is_read_and_evicted_after_a_lookup() {
    check(Needs::default(), |cluster| {
        for stays in [false, true] {
            cluster.pool.evict_all();
            cluster.storage.forget(cluster.relation(0).locator());
            cluster.probe.record();
            let gate = cluster.files.hold(FileCall::Open);
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

/// We stop a read in each state of its I/O. In all these states, the page must not be evicted, and
/// other sessions that read or invalidate the page must be able to finish once the read continues.
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

/// The I/O has reached COMPLETED_IO, but the thread that reaped it has been stopped. A session that
/// waits for the I/O must run the callbacks itself, rather than wait for that thread to continue.
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

/// Many sessions read a relation that doesn't fit into the pool, while another session keeps
/// evicting pages. The scheduler may switch threads at any point of a lookup. Even so, a session
/// must never see the wrong page.
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

/// This is like the previous test, but the readers use streams, both ordered and unordered. Also,
/// the other sessions invalidate pages instead of evicting them, so they have to wait until the
/// readers release their pins.
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
