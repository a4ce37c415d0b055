//! Tests of the worker pool, in virtual time. The pool must grow and shrink as needed, and adapt
//! when its settings are changed. If one mount hangs, there must be enough workers left for the
//! other mounts.
//!
//! Waiting a minute for an idle worker to exit costs nothing in virtual time.

use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::{Completer, MethodKind, State, WorkerSettings};
use trunkline_sim::matrix::io::{check_seeds, memory, original, read, spawn, wait_ok};
use trunkline_sim::matrix::{Environment, Instance};
use trunkline_sim::pause;

const SECOND: Duration = Duration::from_secs(1);

/// Default settings with these limits.
fn settings(min: usize, max: usize) -> WorkerSettings {
    WorkerSettings { min, max, ..WorkerSettings::default() }
}

/// Runs a case under `worker`, on the simulated disk.
fn check(case: impl FnOnce(Environment) + Clone + Send + 'static) {
    check_seeds(&[MethodKind::Worker], 20, case);
}

/// Issues one single-block read into each slot, in one batch.
fn fill(
    instance: &Instance,
    session: &mut trunkline_aio::Session,
    name: &str,
    device: u64,
    count: u32,
) -> trunkline_aio::Slots {
    let file = instance.file_on(name, count, device);
    let mut slots = instance.slots(count as usize, 1);
    let mut batch = session.batch();
    for slot in 0..count {
        read(&mut batch, &file, slot, 1, &mut slots, slot as usize);
    }
    drop(batch);
    slots
}

/// Waits for all slots and checks their contents.
fn drain(session: &mut trunkline_aio::Session, slots: &mut trunkline_aio::Slots) {
    while slots.pending() > 0 {
        let (slot, _) = session.wait_any(slots).expect("not cancelled");
        assert_eq!(memory(slots, slot), original(slot as u32, 1));
    }
}

/// Reads a number of blocks, one after the other. A mount may have at most one more I/O in flight
/// than it has completed so far, so this raises its limit.
fn warm_up(instance: &Instance, session: &mut trunkline_aio::Session, device: u64, reads: u32) {
    for _ in 0..reads {
        let mut slots = fill(instance, session, "warm-up", device, 1);
        drain(session, &mut slots);
    }
}

/// As long as the queue is too long, one worker is started per interval, until the maximum is
/// reached. Workers that have been idle for a minute exit, until only the minimum number remains.
#[test]
fn the_pool_grows_to_its_maximum_one_per_interval_and_shrinks_again() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.workers(settings(2, 5)));
        instance.quiesce();
        assert_eq!(instance.aio.worker_count(), 2);
        let mut session = instance.session();
        warm_up(&instance, &mut session, 1, 5);
        instance.disk.hold(1);
        let mut slots = fill(&instance, &mut session, "a", 1, 20);
        let begin = clock::now();
        let mut launched = Vec::new();
        let mut known = 2;
        while known < 5 {
            pause(Duration::from_millis(5));
            let count = instance.aio.worker_count();
            if count > known {
                launched.push(clock::now());
                assert_eq!(count, known + 1, "one at a time");
                known = count;
            }
            assert!(clock::now().since(begin) < SECOND, "{known} workers after a second");
        }
        for pair in launched.windows(2) {
            let apart = pair[1].since(pair[0]);
            assert!(apart >= Duration::from_millis(95), "{apart:?} between two launches");
        }
        pause(10 * SECOND);
        assert_eq!(instance.aio.worker_count(), 5, "one mount has no larger share");
        assert_eq!(instance.aio.counters().workers_launched, 5);
        instance.disk.release(1);
        drain(&mut session, &mut slots);
        let idle = clock::now();
        wait_for_workers(&instance, 2);
        let took = clock::now().since(idle);
        assert!(took > 59 * SECOND, "left after {took:?} of idleness");
        pause(600 * SECOND);
        assert_eq!(instance.aio.worker_count(), 2, "never below the minimum");
    });
}

/// Waits, in virtual time, until there are exactly this many workers.
fn wait_for_workers(instance: &Instance, workers: usize) {
    for _ in 0..1000 {
        if instance.aio.worker_count() == workers {
            return;
        }
        pause(SECOND);
    }
    panic!("{} workers, {workers} wanted", instance.aio.worker_count());
}

/// Single reads with pauses in between must never launch a second worker.
#[test]
fn an_idle_pool_does_not_grow() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.workers(settings(1, 8)));
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 1);
        instance.quiesce();
        for _ in 0..20 {
            read(&mut session, &file, 1, 1, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 0);
            pause(SECOND);
        }
        assert_eq!(instance.aio.counters().workers_launched, 1);
    });
}

/// PG 28: the pool must reach new sizes that are set while it runs, both larger and smaller.
#[test]
fn pg28_sizes_changed_live_are_reached() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.workers(settings(1, 1)));
        let mut rng = Rng::new(environment.seed.unwrap_or_default());
        let mut session = instance.session();
        for _ in 0..6 {
            let size = 1 + rng.below(32) as usize;
            instance.aio.set_workers(settings(size, size));
            let mut slots = fill(&instance, &mut session, "a", 1, 8);
            drain(&mut session, &mut slots);
            wait_for_workers(&instance, size);
        }
    });
}

/// A session that must not block doesn't execute its I/O even if the queue is full.
#[test]
fn a_full_queue_does_not_overflow_to_a_session_that_must_not_block() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.worker_queue(1));
        let mut session = instance.session();
        session.set_may_block(false);
        let mut slots = fill(&instance, &mut session, "a", 1, 32);
        drain(&mut session, &mut slots);
        let counters = instance.aio.counters();
        assert_eq!((counters.overflowed, counters.completed_by(Completer::Inline)), (0, 0));
        assert_eq!(counters.completers.iter().sum::<u64>(), 32);
    });
}

/// If the queue is full, the issuer executes the I/O itself.
#[test]
fn a_full_queue_overflows_to_the_issuer_and_is_counted() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.worker_queue(1));
        let mut session = instance.session();
        let mut slots = fill(&instance, &mut session, "a", 1, 32);
        drain(&mut session, &mut slots);
        let counters = instance.aio.counters();
        assert!(counters.overflowed >= 31, "{counters:?}");
        assert_eq!(counters.overflowed, counters.completed_by(Completer::Inline));
        assert_eq!(counters.completers.iter().sum::<u64>(), 32);
    });
}

/// A hung mount must not occupy more workers than its share, so that the other mount's I/O can
/// complete.
#[test]
fn a_mount_that_hangs_leaves_workers_for_the_others() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.workers(settings(2, 4)));
        drop((instance.file_on("hung", 1, 1), instance.file_on("good", 1, 2)));
        let mut session = instance.session();
        // With odd seeds, the mount hangs only after it has completed I/O for a while.
        if environment.seed.unwrap_or_default() % 2 == 1 {
            warm_up(&instance, &mut session, 1, 5);
        }
        instance.disk.hold(1);
        let mut hung = fill(&instance, &mut session, "hung16", 1, 16);
        for _ in 0..3 {
            let begin = clock::now();
            let mut good = fill(&instance, &mut session, "good16", 2, 16);
            drain(&mut session, &mut good);
            let took = clock::now().since(begin);
            assert!(took < 2 * SECOND, "{took:?}");
            pause(5 * SECOND);
        }
        assert_eq!(hung.pending(), 16);
        assert!((0..16).all(|slot| !hung.is_done(slot)));
        instance.disk.release(1);
        drain(&mut session, &mut hung);
    });
}

/// A mount that has never completed an I/O may occupy only one worker, even if no other I/O is
/// queued.
#[test]
fn a_mount_that_never_answered_holds_one_worker() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.workers(settings(2, 4)));
        instance.disk.hold(1);
        let mut session = instance.session();
        let mut hung = fill(&instance, &mut session, "hung", 1, 16);
        pause(10 * SECOND);
        assert_eq!(instance.aio.worker_count(), 2, "no growth for I/O that cannot start");
        let begin = clock::now();
        let mut good = fill(&instance, &mut session, "good", 2, 16);
        drain(&mut session, &mut good);
        let took = clock::now().since(begin);
        assert!(took < Duration::from_millis(50), "{took:?}");
        assert_eq!(hung.pending(), 16);
        instance.disk.release(1);
        drain(&mut session, &mut hung);
    });
}

/// A batch contains I/O for two mounts, but wakes only one worker. That worker may hang in its very
/// first I/O, so it must wake the next worker before it executes anything.
#[test]
fn a_batch_over_a_hung_and_a_good_mount_gets_the_good_half_done() {
    check_seeds(&[MethodKind::Worker], 60, |environment| {
        let instance = environment.start_with(|builder| builder.workers(settings(3, 3)));
        let (bad, good) = (instance.file_on("bad", 4, 1), instance.file_on("good", 4, 2));
        let mut session = instance.session();
        let mut slots = instance.slots(2, 1);
        // First build up a history in which woken workers found little work.
        for _ in 0..10 {
            read(&mut session, &good, 0, 1, &mut slots, 0);
            read(&mut session, &good, 1, 1, &mut slots, 1);
            wait_ok(&mut session, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 1);
            instance.quiesce();
        }
        instance.disk.hold(1);
        {
            let mut batch = session.batch();
            read(&mut batch, &bad, 1, 1, &mut slots, 0);
            read(&mut batch, &good, 2, 1, &mut slots, 1);
        }
        let begin = clock::now();
        let disk = Arc::clone(&instance.disk);
        let rescue = spawn("rescue", move || {
            pause(10 * SECOND);
            disk.release(1);
        });
        wait_ok(&mut session, &mut slots, 1);
        let took = clock::now().since(begin);
        assert!(took < SECOND, "the good mount waited {took:?} for the hung one");
        wait_ok(&mut session, &mut slots, 0);
        rescue.join().expect("ends");
    });
}

/// With a maximum of one worker, a hanging worker must be replaced after a second.
#[test]
fn a_stuck_worker_is_replaced() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.workers(settings(1, 1)));
        let (bad, good) = (instance.file_on("bad", 4, 1), instance.file_on("good", 4, 2));
        instance.disk.hold(1);
        let mut session = instance.session();
        let mut slots = instance.slots(4, 1);
        read(&mut session, &bad, 0, 1, &mut slots, 0);
        instance.disk.wait_stuck(1);
        let begin = clock::now();
        for slot in 1..4 {
            read(&mut session, &good, slot, 1, &mut slots, slot as usize);
        }
        for slot in 1..4 {
            wait_ok(&mut session, &mut slots, slot);
        }
        let took = clock::now().since(begin);
        assert!(took < 2 * SECOND, "{took:?}");
        assert_eq!(instance.aio.worker_count(), 2, "the stuck worker does not count");
        instance.disk.release(1);
        wait_ok(&mut session, &mut slots, 0);
        wait_for_workers(&instance, 1);
    });
}

/// At shutdown, the workers exit after completing all I/O they were given.
#[test]
fn the_pool_ends_with_its_instance() {
    check(|environment| {
        let instance = environment.start();
        let mut session = instance.session();
        let slots = fill(&instance, &mut session, "a", 1, 16);
        let probe = Arc::clone(&instance.probe);
        drop((slots, session, instance));
        assert_eq!(probe.transitions(State::CompletedLocal, State::Idle), 16);
        // The run ends only if every task ends; otherwise the scheduler reports a deadlock.
    });
}
