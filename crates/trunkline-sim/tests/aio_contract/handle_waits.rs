//! Waiting for a handle. Whenever a handle is freed, a session that still needs one must be woken.
//! That must work even if other sessions in the queue have been cancelled, have ended, or have
//! found a handle on their own. If the wake-up goes to such a session and gets lost, another
//! session keeps sleeping even though there is a free handle.
//!
//! A waiting session must sleep and not spin.

use crate::completers::Heavy;
use std::task::{Context, Waker};
use std::time::Duration;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Class, MethodKind, WorkerSettings};
use trunkline_sim::matrix::Environment;
use trunkline_sim::matrix::io::{
    check, check_asynchronous, check_seeds, memory, original, read, spawn, wait_ok,
};
use trunkline_sim::{PausePoint, pause};

/// If a session is cancelled while it waits for a handle, it may already have received a wake-up.
/// In that case, it must pass the wake-up on to the next session in the queue.
#[test]
fn a_cancelled_waiter_for_a_handle_passes_its_wake_up_on() {
    check_seeds(&[MethodKind::Sync], 100, |environment| {
        let instance = Arc::new(environment.start_with(|builder| builder.handles(1, 0, 0)));
        let mut holder = instance.session();
        let handle = holder.acquire(Class::Foreground).expect("the only one");
        let taken = PausePoint::new();
        let mut cancelled = instance.session();
        let canceller = cancelled.canceller();
        let first = spawn("cancelled", move || drop(cancelled.acquire(Class::Foreground)));
        instance.quiesce();
        let (theirs, gate) = (Arc::clone(&instance), taken.clone());
        let second = spawn("waiter", move || {
            let mut session = theirs.session();
            session.acquire(Class::Foreground).expect("not cancelled").release();
            gate.release();
        });
        instance.quiesce();
        // The cancel and the wake-up happen in either order, or together.
        let cancel = spawn("cancel", move || canceller.cancel());
        handle.release();
        cancel.join().expect("cancels");
        first.join().expect("ends");
        second.join().expect("takes the handle");
        assert_eq!(instance.aio.handles_in_use(), 0);
    });
}

/// Two handles are freed while two sessions are waiting. If one of the sessions finds a handle on
/// its own and keeps it, the wake-up for the second handle must still reach the other session.
#[test]
fn a_waiter_that_found_a_handle_itself_passes_its_wake_up_on() {
    check_seeds(&[MethodKind::Sync], 300, |environment| {
        let instance = Arc::new(environment.start_with(|builder| builder.handles(2, 0, 0)));
        let (mut a, mut b) = (instance.session(), instance.session());
        let (one, two) = (a.acquire(Class::LookAhead), b.acquire(Class::LookAhead));
        let done = PausePoint::new();
        let mut threads = Vec::new();
        // Both sessions keep their handle until the other has one, too.
        for class in [Class::LookAhead, Class::Foreground] {
            let (instance, done) = (Arc::clone(&instance), done.clone());
            threads.push(spawn(class.name(), move || {
                let mut session = instance.session();
                let handle = session.acquire(class).expect("not cancelled");
                done.wait();
                handle.release();
            }));
        }
        let gate = done.clone();
        threads.push(spawn("opener", move || {
            gate.wait_for_arrivals(2);
            gate.release();
        }));
        drop((one, two));
        threads.into_iter().for_each(|thread| thread.join().expect("ends"));
    });
}

/// After polling for a handle, a task's session may end, or the task may find a handle some other
/// way, give up, or drop its wait. In each of these cases it must leave the queue, because
/// otherwise it would use up a wake-up that another session needs.
#[test]
fn a_task_that_stops_polling_for_a_handle_consumes_no_wake_up() {
    #[derive(Clone, Copy)]
    enum Then {
        Ends,
        TriesAgain,
        GivesUp,
        DropsItsWait,
    }
    for then in [Then::Ends, Then::TriesAgain, Then::GivesUp, Then::DropsItsWait] {
        check_seeds(&[MethodKind::Sync], 20, move |environment| {
            let instance = Arc::new(environment.start_with(|builder| builder.handles(2, 0, 0)));
            let (mut a, mut b, mut task) =
                (instance.session(), instance.session(), instance.session());
            let one = a.acquire(Class::Foreground).expect("free");
            let two = b.acquire(Class::Foreground).expect("free");
            let mut context = Context::from_waker(Waker::noop());
            let mut wait = task.polled_wait();
            assert!(task.poll_acquire(&mut context, &mut wait, Class::Log).is_pending());
            let theirs = Arc::clone(&instance);
            let waiter = spawn("waiter", move || {
                let mut session = theirs.session();
                session.acquire(Class::LookAhead).expect("not cancelled").release();
            });
            instance.quiesce();
            let keep = match then {
                Then::Ends => {
                    drop(task);
                    None
                }
                Then::TriesAgain => {
                    one.release();
                    let polled = task.poll_acquire(&mut context, &mut wait, Class::Log);
                    assert!(polled.is_ready());
                    Some(polled)
                }
                Then::GivesUp => {
                    wait.leave_queue();
                    None
                }
                Then::DropsItsWait => {
                    drop(wait);
                    None
                }
            };
            two.release();
            waiter.join().expect("gets the handle that came free");
            drop(keep);
        });
    }
}

/// One session's completion frees a handle for an unrelated session.
#[test]
fn a_completion_wakes_another_session_that_waits_for_a_handle() {
    check_asynchronous(|environment| {
        let instance = Arc::new(environment.start_with(|builder| builder.handles(1, 0, 0)));
        let file = instance.file("a", 4);
        instance.disk.hold(1);
        let mut issuer = instance.session();
        let mut slots = instance.slots(1, 1);
        let io = read(&mut issuer, &file, 1, 1, &mut slots, 0);
        let theirs = Arc::clone(&instance);
        let waiter = spawn("waiter", move || {
            let mut session = theirs.session();
            session.acquire(Class::Foreground).expect("not cancelled").release();
            assert!(session.is_complete(io));
        });
        instance.quiesce();
        instance.disk.release(1);
        waiter.join().expect("gets the handle");
        wait_ok(&mut issuer, &mut slots, 0);
    });
}

/// Many sessions wait for a handle, but none is freed. The sessions must sleep, rather than keep
/// waking each other.
#[test]
fn sessions_that_wait_for_a_handle_sleep() {
    let report = Environment::simulated(MethodKind::Worker, 3).run(|environment| {
        let instance = Arc::new(environment.start_with(|builder| builder.handles(2, 0, 0)));
        let file = instance.file("a", 4);
        instance.disk.hold(1);
        let mut issuer = instance.session();
        let mut slots = instance.slots(1, 1);
        read(&mut issuer, &file, 0, 1, &mut slots, 0);
        let keep = issuer.acquire(Class::Foreground);
        let mut threads = Vec::new();
        let counts = Arc::new(Mutex::new(0));
        for _ in 0..4 {
            let (instance, counts) = (Arc::clone(&instance), Arc::clone(&counts));
            threads.push(spawn("waiter", move || {
                let mut session = instance.session();
                for _ in 0..5 {
                    let handle = session.acquire(Class::Foreground).expect("not cancelled");
                    pause(Duration::from_millis(10));
                    handle.release();
                }
                *counts.lock() += 1;
            }));
        }
        pause(Duration::from_secs(1));
        assert_eq!(*counts.lock(), 0);
        drop(keep);
        pause(Duration::from_secs(1));
        assert_eq!(*counts.lock(), 4, "one handle is enough for all of them in turn");
        instance.disk.release(1);
        wait_ok(&mut issuer, &mut slots, 0);
        threads.into_iter().for_each(|thread| thread.join().expect("ends"));
    });
    assert!(report.is_some_and(|report| report.steps < 100_000), "the waiters do not sleep");
}

/// A session that has used up its quota can't acquire another handle even if one is free. It
/// therefore waits for its own I/O, and must not wake any of the sessions that are waiting for a
/// handle.
#[test]
fn sessions_that_wait_at_their_quota_sleep() {
    for seed in 0..20 {
        let report = Environment::simulated(MethodKind::Custom, seed).run(|environment| {
            let instance = Arc::new(environment.start_with(|builder| builder.session_quota(1)));
            drop(instance.file("a", 4));
            instance.disk.hold(1);
            let mut threads = Vec::new();
            for _ in 0..3 {
                let instance = Arc::clone(&instance);
                threads.push(spawn("at its quota", move || {
                    let file = instance.file("a", 4);
                    let mut session = instance.session();
                    let mut slots = instance.slots(2, 1);
                    read(&mut session, &file, 0, 1, &mut slots, 0);
                    read(&mut session, &file, 1, 1, &mut slots, 1);
                    wait_ok(&mut session, &mut slots, 0);
                    wait_ok(&mut session, &mut slots, 1);
                }));
            }
            instance.disk.wait_stuck(3);
            instance.session().acquire(Class::Foreground).expect("handles are free").release();
            pause(Duration::from_secs(1));
            instance.disk.release(1);
            threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        });
        assert!(report.is_some_and(|r| r.steps < 100_000), "seed {seed}: the waiters do not sleep");
    }
}

/// A session's own staged I/Os may occupy all handles, so it must submit them before it waits for
/// one.
#[test]
fn waiting_for_a_handle_submits_what_is_staged() {
    check(|environment| {
        let instance =
            environment.start_with(|builder| builder.handles(3, 0, 0).try_cached_below(0));
        let file = instance.file("a", 12);
        let mut session = instance.session();
        let mut slots = instance.slots(12, 1);
        let mut batch = session.batch();
        for slot in 0..12 {
            read(&mut batch, &file, slot, 1, &mut slots, slot as usize);
        }
        drop(batch);
        for slot in 0..12 {
            wait_ok(&mut session, &mut slots, slot);
            assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
        }
    });
}

/// When one of a session's own I/Os is reaped, its callbacks may be left for that session to run,
/// even though the session is waiting for a handle. The session must then complete the I/O, because
/// that may be what frees the handle it needs.
#[test]
fn a_session_that_waits_for_a_handle_completes_its_reaped_io() {
    check_seeds(&[MethodKind::Custom], 100, |environment| {
        let instance = environment.start_with(|builder| {
            let workers = WorkerSettings { min: 1, max: 1, ..WorkerSettings::default() };
            builder.handles(2, 0, 0).workers(workers)
        });
        let file = instance.file("a", 10);
        let mut session = instance.session();
        let mut slots = instance.slots_with(10, 1, vec![Arc::new(Heavy)]);
        for slot in 0..10 {
            read(&mut session, &file, slot, 1, &mut slots, slot as usize);
        }
        for _ in 0..10 {
            let (slot, _) = session.wait_any(&mut slots).expect("not cancelled");
            assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
        }
    });
}
