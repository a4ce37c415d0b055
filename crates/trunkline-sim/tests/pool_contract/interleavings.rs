//! Two sessions at one page, each stopped where the other one can do the most harm: between the
//! look-up and the file, between the buffers and the claim, between the claim and the storage,
//! between the result and the verdict.

use crate::rig::{Rig, Setup, check, check_simulated};
use trunkline_aio::State;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::random::Rng;
use trunkline_engine::pool::Evicted;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::rig::Task;

fn reader(rig: &Arc<Rig>, block: BlockNo) -> Task<()> {
    rig.spawn("reader", move |rig| rig.read_ok(&mut rig.backend(), block))
}

/// Reads blocks as one read if nobody comes in between; the session.
fn run_reader(rig: &Arc<Rig>, blocks: &'static [BlockNo]) -> Task<u32> {
    rig.spawn("run reader", move |rig| {
        let mut backend = rig.backend();
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = rig.stream(&backend, blocks, options);
        let wanted: Vec<_> = blocks.iter().map(|&block| Ok(block)).collect();
        assert_eq!(rig.drain(&mut backend, &mut stream), wanted);
        backend.session_id()
    })
}

/// Both have seen that the page is not there, and both have a buffer for it. The faster one reads.
#[test]
fn two_insert_the_same_page() {
    check(Setup::default(), |rig| {
        rig.hooks.record();
        let step = rig.hooks.stop(State::HandedOut, |_| true);
        let slow = reader(rig, 3);
        step.wait();
        reader(rig, 3).join();
        step.release();
        slow.join();
        assert_eq!(rig.reads(), [(3, 1)]);
        let total = rig.pool.total();
        assert_eq!((total.hits, total.joins), (1, 0));
        assert_eq!(rig.pool.rows().len(), 1);
    });
}

/// The same, but the faster one's read is still under way: the slower one joins it.
#[test]
fn two_insert_the_same_page_and_one_joins() {
    check(Setup::default(), |rig| {
        rig.hooks.record();
        let step = rig.hooks.stop(State::HandedOut, |_| true);
        let slow = reader(rig, 3);
        step.wait();
        let held = rig.hold(3);
        let fast = reader(rig, 3);
        held.wait();
        step.release();
        rig.wait_pins(3, 3);
        held.release();
        slow.join();
        fast.join();
        assert_eq!(rig.reads(), [(3, 1)]);
        assert_eq!(rig.pool.total().joins, 1);
    });
}

/// One is about to read three blocks; another one reads the first, the second or the last of them.
/// The claim stops there, and the buffers that were meant for the rest are given back.
#[test]
fn a_claim_stops_at_a_page_that_somebody_else_was_faster_with() {
    type Case = (BlockNo, &'static [(BlockNo, u32)]);
    const CASES: [Case; 3] = [(2, &[(3, 2)]), (3, &[(2, 1), (4, 1)]), (4, &[(2, 2)])];
    check(Setup::default(), |rig| {
        for (taken, reads) in CASES {
            rig.pool.evict_all();
            rig.hooks.record();
            let step = rig.hooks.stop(State::HandedOut, |_| true);
            let slow = run_reader(rig, &[2, 3, 4]);
            step.wait();
            reader(rig, taken).join();
            step.release();
            assert_eq!(rig.reads_of(slow.join()), reads, "block {taken} was taken");
        }
    });
}

/// A page that one has seen in the middle of its run is evicted before the claim: it is not hit, but
/// nothing is lost: it is read after all.
#[test]
fn a_page_is_evicted_between_the_look_and_the_claim() {
    check(Setup::default(), |rig| {
        rig.read_ok(&mut rig.backend(), 3);
        let step = rig.hooks.stop(State::HandedOut, |_| true);
        let slow = run_reader(rig, &[2, 3, 4]);
        step.wait();
        assert_eq!(rig.pool.evict_all(), Evicted { evicted: 1, skipped: 0 });
        step.release();
        slow.join();
    });
}

/// A page whose read failed is known and not there; another one evicts it, or reads it, before the
/// claim of who has just pinned it.
#[test]
fn a_page_that_failed_is_claimed_by_two() {
    check(Setup::default(), |rig| {
        rig.fail(3, 5);
        assert!(rig.backend().read(&rig.relation(0), 3).is_err());
        rig.hooks.keep_results();
        rig.hooks.record();
        let step = rig.hooks.stop(State::HandedOut, |_| true);
        let slow = reader(rig, 3);
        step.wait();
        assert_eq!(rig.pool.evict_all(), Evicted { evicted: 0, skipped: 1 }, "it is pinned");
        reader(rig, 3).join();
        step.release();
        slow.join();
        assert_eq!(rig.reads(), [(3, 1)]);
    });
}

/// One has looked the page up in vain and stops before it opens the file; meanwhile the page comes
/// and goes, and comes again.
#[test]
fn the_page_comes_and_goes_behind_a_look_up() {
    check(Setup::default(), |rig| {
        for stays in [false, true] {
            rig.pool.evict_all();
            rig.storage.forget(rig.relation(0).locator());
            rig.hooks.record();
            let gate = rig.system.hold_open();
            let slow = reader(rig, 3);
            gate.wait_for(1);
            reader(rig, 3).join();
            if !stays {
                assert_eq!(rig.pool.evict_relation(&rig.relation(0), 0).evicted, 1);
            }
            gate.open();
            slow.join();
            assert_eq!(rig.reads().len(), if stays { 1 } else { 2 });
        }
    });
}

/// A read stopped at every step of its I/O: nobody can evict its page, a second session waits for
/// it or finds it, who wants to forget the relation waits.
#[test]
fn eviction_leaves_a_page_alone_while_it_is_read() {
    check(Setup { seeds: 4, ..Setup::default() }, |rig| {
        for state in [
            State::Defined,
            State::Staged,
            State::Submitted,
            State::CompletedIo,
            State::CompletedShared,
            State::CompletedLocal,
        ] {
            rig.pool.evict_all();
            let held = rig.hooks.stop(state, |io| io.offset == 3 * 8192);
            let first = reader(rig, 3);
            held.wait();
            let row = rig.pool.rows().into_iter().find(|row| row.block == 3).expect("a buffer");
            assert!(!rig.pool.evict(row.bufferid));
            assert_eq!(rig.pool.evict_all(), Evicted { evicted: 0, skipped: 1 }, "{state:?}");
            assert_eq!(row.valid, state >= State::CompletedShared, "{state:?}");
            let second = reader(rig, 3);
            let dropper = rig.spawn("dropper", |rig| {
                rig.backend().invalidate(&rig.relation(0), 0).expect("not cancelled");
            });
            rig.let_others_go();
            held.release();
            first.join();
            second.join();
            dropper.join();
        }
    });
}

/// The I/O is in COMPLETED_IO and its reaper stands still: whoever waits completes it.
#[test]
fn a_joiner_completes_what_its_issuer_does_not() {
    check(Setup::default(), |rig| {
        let mut backend = rig.task_backend();
        let held = rig.hooks.stop(State::CompletedIo, |io| io.offset == 3 * 8192);
        let starter = rig.spawn("starter", |rig| {
            let mut backend = rig.task_backend();
            let stream = rig.start_read(&mut backend, &[3]);
            drop((stream, backend));
        });
        held.wait();
        rig.read_ok(&mut backend, 3);
        held.release();
        starter.join();
    });
}

/// Small pool, many sessions, a relation that does not fit, one session that evicts all the time:
/// the look-up races with eviction at every switch point, and never gives a wrong page.
#[test]
fn look_ups_and_evictions_under_many_seeds() {
    check(Setup { buffers: 24, blocks: 32, seeds: 24, ..Setup::default() }, |rig| {
        let seed = rig.bench.seed.unwrap_or(1);
        let readers: Vec<_> = (0..5)
            .map(|number| {
                rig.spawn("reader", move |rig| {
                    let mut random = Rng::new(seed * 16 + number);
                    let mut backend = rig.backend();
                    for _ in 0..25 {
                        // Few of them often, all of them now and then.
                        let range = if random.below(3) == 0 { 32 } else { 4 };
                        rig.read_ok(&mut backend, random.below(range) as BlockNo);
                    }
                })
            })
            .collect();
        let evictor =
            rig.spawn("evictor", |rig| (0..30).map(|_| rig.pool.evict_all().evicted).sum::<u32>());
        readers.into_iter().for_each(Task::join);
        evictor.join();
    });
}

/// The same with forgetting, which waits for pins, and with streams of both orders.
#[test]
fn streams_and_forgetting_under_many_seeds() {
    check_simulated(Setup { buffers: 16, blocks: 32, seeds: 20, ..Setup::default() }, |rig| {
        let tasks: Vec<_> = (0..4)
            .map(|number: u32| {
                rig.spawn("scanner", move |rig| {
                    let mut backend = rig.backend();
                    let list: Vec<BlockNo> = (0..32).map(|at| (at * 5 + number) % 32).collect();
                    let unordered = number.is_multiple_of(2);
                    let options = StreamOptions { unordered, ..StreamOptions::default() };
                    let mut stream = rig.stream(&backend, &list, options);
                    let seen = rig.drain(&mut backend, &mut stream);
                    assert!(seen.len() == 32 && seen.iter().all(Result::is_ok), "{seen:?}");
                })
            })
            .collect();
        let droppers: Vec<_> = (0..2)
            .map(|_| {
                rig.spawn("dropper", |rig| {
                    let mut backend = rig.backend();
                    for first in [0, 8, 16] {
                        backend.invalidate(&rig.relation(0), first).expect("not cancelled");
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(Task::join);
        droppers.into_iter().for_each(Task::join);
    });
}
