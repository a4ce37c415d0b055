//! Issuers that disappear: slots, sessions and threads are dropped with I/O in flight (PG 11, 12).
//!
//! Every I/O must still complete, and until then, the memory and files it uses must not be freed.

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Class, MethodKind, State};
use trunkline_sim::matrix::Environment;
use trunkline_sim::matrix::io::{
    check, check_stoppable, memory, original, read, spawn, wait_ok, write,
};
use trunkline_sim::{BLOCK, content};

/// PG 11: session A starts a read and doesn't wait. Session B joins it, and then reads the block
/// itself.
#[test]
fn pg11_a_read_whose_issuer_does_not_wait_is_complete_for_others() {
    check(|environment| {
        let instance = Arc::new(environment.start());
        let file = instance.file("a", 4);
        let mut a = instance.session();
        let mut slots = instance.slots(1, 1);
        let io = read(&mut a, &file, 2, 1, &mut slots, 0);
        let theirs = Arc::clone(&instance);
        let b = spawn("b", move || {
            let mut b = theirs.session();
            b.join(io).expect("not cancelled");
            assert!(b.is_complete(io));
            let file = theirs.file("a", 4);
            let mut slots = theirs.slots(1, 1);
            read(&mut b, &file, 2, 1, &mut slots, 0);
            wait_ok(&mut b, &mut slots, 0);
            assert_eq!(memory(&mut slots, 0), original(2, 1));
        });
        b.join().expect("b reads");
        wait_ok(&mut a, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(2, 1), "the result waits for its issuer");
    });
}

/// PG 12: session A starts a read and disconnects. Session B must not be affected.
#[test]
fn pg12_a_read_whose_issuer_disconnects_is_complete_for_others() {
    check(|environment| {
        let instance = Arc::new(environment.start());
        let file = instance.file("a", 4);
        let shown = Arc::new(Mutex::new(None));
        let (theirs, seen, theirs_file) = (Arc::clone(&instance), Arc::clone(&shown), file.clone());
        let a = spawn("a", move || {
            let mut a = theirs.session();
            let mut slots = theirs.slots(1, 1);
            *seen.lock() = Some(read(&mut a, &theirs_file, 2, 1, &mut slots, 0));
        });
        a.join().expect("a issues and ends");
        let io = shown.lock().expect("issued");
        let mut b = instance.session();
        b.join(io).expect("not cancelled");
        let mut slots = instance.slots(1, 1);
        read(&mut b, &file, 2, 1, &mut slots, 0);
        wait_ok(&mut b, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(2, 1));
        drop(slots);
        instance.settle();
        instance.wait_until("all frames", || {
            instance.aio.region().free_frames() == instance.aio.region().frames()
        });
    });
}

/// The session and its thread end, but the slots survive. Another session must receive the results.
#[test]
fn a_thread_that_ends_right_after_submit_loses_nothing() {
    check(|environment| {
        let instance = Arc::new(environment.start());
        let file = instance.file("a", 32);
        let handed = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (instance, handed, file) =
                    (Arc::clone(&instance), Arc::clone(&handed), file.clone());
                spawn("short-lived", move || {
                    let mut session = instance.session();
                    let mut slots = instance.slots(4, 2);
                    {
                        let mut batch = session.batch();
                        for slot in 0..4 {
                            let first = number * 8 + slot * 2;
                            read(&mut batch, &file, first, 2, &mut slots, slot as usize);
                        }
                    }
                    handed.lock().push((number, slots));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("issues"));
        let mut session = instance.session();
        for (number, mut slots) in std::mem::take(&mut *handed.lock()) {
            for slot in 0..4 {
                let outcome = wait_ok(&mut session, &mut slots, slot as usize);
                assert_eq!(outcome.count, 2 * BLOCK as u32, "{environment:?}");
                let first = number * 8 + slot * 2;
                assert_eq!(
                    memory(&mut slots, slot as usize),
                    original(first, 2),
                    "{environment:?}"
                );
            }
        }
        assert_eq!(instance.aio.handles_in_use(), 0);
    });
}

/// With io_uring, the kernel may execute large buffered reads in threads that belong to the
/// submitting thread, and when that thread exits, the reads are cancelled. For this reason, only
/// the ring driver may submit, because it doesn't exit until shutdown.
#[test]
fn exiting_threads_leave_their_large_reads_running_under_io_uring() {
    let environment = Environment::real(MethodKind::IoUring);
    let instance = Arc::new(environment.start_with(|builder| builder.region_bytes(16 << 20)));
    let file = instance.file("a", 128);
    for _ in 0..10 {
        let (theirs, file) = (Arc::clone(&instance), file.clone());
        let handed = Arc::new(Mutex::new(None));
        let back = Arc::clone(&handed);
        let thread = spawn("short-lived", move || {
            let mut session = theirs.session();
            let mut slots = theirs.slots(12, 128);
            {
                let mut batch = session.batch();
                for slot in 0..12 {
                    read(&mut batch, &file, 0, 128, &mut slots, slot);
                }
            }
            *back.lock() = Some(slots);
        });
        thread.join().expect("issues");
        let mut slots = handed.lock().take().expect("handed over");
        let mut session = instance.session();
        for slot in 0..12 {
            wait_ok(&mut session, &mut slots, slot);
            assert_eq!(memory(&mut slots, slot), original(0, 128));
        }
    }
}

/// Dropping the slots abandons the results but not the memory: the frames must stay leased until
/// the I/O completes.
#[test]
fn frames_of_dropped_slots_are_freed_after_completion_and_not_before() {
    check_stoppable(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let all = instance.aio.region().free_frames();
        let mut session = instance.session();
        let mut slots = instance.slots(2, 2);
        let held = instance.probe.pause_at(State::CompletedIo, |_| true);
        let io = read(&mut session, &file, 0, 2, &mut slots, 0);
        held.wait();
        drop(slots);
        assert_eq!(instance.aio.region().free_frames(), all - 4, "the I/O still owns its slots");
        held.release();
        session.join(io).expect("not cancelled");
        instance.wait_until("all frames", || instance.aio.region().free_frames() == all);
    });
}

/// A write must continue after its issuer is gone, and must use the memory it was given. That
/// memory must not be given to new slots.
#[test]
fn a_write_continues_without_its_session_and_slots() {
    check_stoppable(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let held = instance.probe.pause_at(State::CompletedIo, |_| true);
        let io = {
            let mut session = instance.session();
            let mut slots = instance.slots(1, 2);
            write(&mut session, &file, 1, 2, 9, &mut slots, 0)
        };
        held.wait();
        let mut session = instance.session();
        assert_eq!(session.in_flight(), 0, "another session's I/O is not charged to it");
        let mut slots = instance.slots(1, 1);
        slots.memory(0).expect("idle")[0].fill(0x33);
        held.release();
        session.join(io).expect("not cancelled");
        instance.settle();
        let wanted: Vec<u8> = (1..3).flat_map(|block| content(0, block, 9)).collect();
        assert_eq!(instance.bytes("a")[BLOCK..3 * BLOCK], wanted);
        assert_eq!(session.in_flight(), 0);
    });
}

/// A thread panics with I/O staged and in flight, and with an acquired handle.
#[test]
fn a_panic_with_io_in_flight_leaves_nothing_behind() {
    check(|environment| {
        let instance = Arc::new(environment.start());
        let file = instance.file("a", 8);
        let theirs = Arc::clone(&instance);
        let thread = spawn("panics", move || {
            let body = std::panic::AssertUnwindSafe(|| {
                let mut session = theirs.session();
                let mut slots = theirs.slots(4, 1);
                read(&mut session, &file, 0, 1, &mut slots, 0);
                let mut batch = session.batch();
                read(&mut batch, &file, 1, 1, &mut slots, 1);
                let _io = batch.acquire(Class::Log);
                // Unlike `panic!`, this doesn't run the hook that prints a backtrace.
                std::panic::resume_unwind(Box::new("on purpose"));
            });
            assert!(std::panic::catch_unwind(body).is_err());
        });
        thread.join().expect("caught");
        instance.settle();
        instance.wait_until("all frames", || {
            instance.aio.region().free_frames() == instance.aio.region().frames()
        });
        assert_eq!(instance.aio.counters().completers.iter().sum::<u64>(), 2);
    });
}

/// Completion must not depend on any session waiting for the I/O.
#[test]
fn io_completes_without_a_waiting_session() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 16);
        let mut session = instance.session();
        let mut slots = instance.slots(16, 1);
        {
            let mut batch = session.batch();
            for slot in 0..16 {
                read(&mut batch, &file, slot, 1, &mut slots, slot as usize);
            }
        }
        instance.wait_until("all complete", || instance.aio.handles_in_use() == 0);
        instance.wait_until("all published", || (0..16).all(|slot| slots.is_done(slot)));
        assert_eq!(session.waits().0, 0, "the session never slept");
    });
}
