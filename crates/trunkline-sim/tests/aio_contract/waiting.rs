//! Tests waits for a particular I/O, for any I/O, and for another session's I/O, as well as
//! polling, both with and without a cancel.
//!
//! A session must submit its staged I/O before it waits, and must receive each result exactly once.

use crate::completers::Heavy;
use std::time::Duration;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Callback, Cancelled, MethodKind, State, Status};
use trunkline_sim::matrix::io::{
    check, check_asynchronous, check_seeds, memory, original, read, spawn, wait_ok,
};
use trunkline_sim::matrix::{Environment, SIMULATED};
use trunkline_sim::{PausePoint, pause, poll_until_done};

/// One I/O is on a hung mount. `wait_any` must return the other I/Os as they complete.
#[test]
fn wait_any_returns_a_fast_io_although_an_older_one_hangs() {
    check_asynchronous(|environment| {
        let instance = environment.start();
        let (slow, fast) = (instance.file_on("slow", 4, 1), instance.file_on("fast", 4, 2));
        instance.disk.hold(1);
        let mut session = instance.session();
        let mut slots = instance.slots(4, 1);
        read(&mut session, &slow, 0, 1, &mut slots, 0);
        for slot in 1..4 {
            read(&mut session, &fast, slot, 1, &mut slots, slot as usize);
        }
        let mut seen = Vec::new();
        for _ in 1..4 {
            let (slot, outcome) = session.wait_any(&mut slots).expect("not cancelled");
            assert_eq!(outcome.status, Status::Ok);
            assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
            seen.push(slot);
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
        assert!(!slots.is_done(0));
        instance.disk.release(1);
        assert_eq!(session.wait_any(&mut slots).expect("not cancelled").0, 0);
    });
}

/// This is like the previous test, but on real files, with the older I/O stopped in its worker.
#[test]
fn wait_any_returns_a_fast_io_on_real_files() {
    let environment = Environment::real(MethodKind::Worker);
    let instance = environment.start();
    let file = instance.file("a", 4);
    let held = instance.probe.pause_at(State::CompletedIo, |io| io.offset == 0);
    let mut session = instance.session();
    let mut slots = instance.slots_with(2, 1, vec![Arc::new(Heavy)]);
    instance.wait_until("two workers", || instance.aio.worker_count() == 2);
    read(&mut session, &file, 0, 1, &mut slots, 0);
    held.wait();
    read(&mut session, &file, 1, 1, &mut slots, 1);
    // The stopped I/O is in COMPLETED_IO, so the waiting session may complete it. In that case,
    // either result is correct.
    let (slot, _) = session.wait_any(&mut slots).expect("not cancelled");
    assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
    held.release();
    session.wait_any(&mut slots).expect("not cancelled");
}

#[test]
fn polling_with_a_tiny_executor_gets_every_result() {
    check(|environment| {
        for callbacks in [vec![], vec![Arc::new(Heavy) as Arc<dyn Callback<Vec<u64>>>]] {
            let instance = environment.start();
            let file = instance.file("a", 16);
            let mut session = instance.session();
            session.set_may_block(false);
            let mut slots = instance.slots_with(8, 1, callbacks);
            for slot in 0..8 {
                read(&mut session, &file, slot, 1, &mut slots, slot as usize);
            }
            for slot in (0..8).rev() {
                let outcome = poll_until_done(&mut session, &mut slots, slot);
                assert_eq!(outcome.expect("not cancelled").status, Status::Ok);
                assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
            }
            assert_eq!(session.waits().0, 0, "a task never sleeps in the session");
        }
    });
}

/// A task may poll with a session that didn't issue the I/O.
#[test]
fn polling_for_another_sessions_io_is_woken() {
    check_asynchronous(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        instance.disk.hold(1);
        let mut issuer = instance.session();
        let mut slots = instance.slots(1, 1);
        read(&mut issuer, &file, 2, 1, &mut slots, 0);
        let disk = Arc::clone(&instance.disk);
        let opener = spawn("opener", move || {
            pause(Duration::from_millis(1));
            disk.release(1);
        });
        let mut poller = instance.session();
        poll_until_done(&mut poller, &mut slots, 0).expect("not cancelled");
        assert_eq!(memory(&mut slots, 0), original(2, 1));
        opener.join().expect("opens");
    });
}

/// A cancel must interrupt every kind of wait, but not the I/O itself. It stays active until it is
/// cleared.
#[test]
fn a_cancelled_wait_ends_and_the_io_continues() {
    check_asynchronous(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        instance.disk.hold(1);
        let mut session = instance.session();
        let mut slots = instance.slots(2, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        read(&mut session, &file, 2, 1, &mut slots, 1);
        let canceller = session.canceller();
        let cancel = spawn("cancel", move || canceller.cancel());
        assert_eq!(session.wait(&mut slots, 0), Err(Cancelled));
        assert_eq!(
            session.wait_any(&mut slots),
            Err(Cancelled),
            "the cancel stays until it is cleared"
        );
        let io = slots.wait_ref(0).expect("issued");
        assert_eq!(session.join(io), Err(Cancelled));
        assert_eq!(poll_until_done(&mut session, &mut slots, 0), Err(Cancelled));
        cancel.join().expect("cancels");
        session.clear_cancel();
        instance.disk.release(1);
        for slot in 0..2 {
            wait_ok(&mut session, &mut slots, slot);
            assert_eq!(memory(&mut slots, slot), original(1 + slot as u32, 1));
        }
    });
}

/// Session ids are reused, so the canceller of a session that has ended may refer to the id of a
/// newer session. Using that canceller must not cancel the newer session, nor may it mask a real
/// cancel of that session.
#[test]
fn a_stale_canceller_has_no_effect() {
    check_asynchronous(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let old = instance.session().canceller();
        instance.disk.hold(1);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        old.cancel();
        instance.disk.release(1);
        wait_ok(&mut session, &mut slots, 0);
        session.canceller().cancel();
        old.cancel();
        instance.disk.hold(1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        assert_eq!(session.wait(&mut slots, 0), Err(Cancelled), "its own cancel was lost");
        instance.disk.release(1);
    });
}

/// A result that was received by slot must not be returned by `wait_any` again.
#[test]
fn a_result_taken_by_its_slot_is_not_found_again() {
    check_asynchronous(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(2, 1);
        for _ in 0..10 {
            read(&mut session, &file, 0, 1, &mut slots, 0);
            read(&mut session, &file, 1, 1, &mut slots, 1);
            wait_ok(&mut session, &mut slots, 0);
            let (slot, outcome) = session.wait_any(&mut slots).expect("not cancelled");
            assert_eq!((slot, outcome.status), (1, Status::Ok));
            assert_eq!(slots.pending(), 0);
            assert_eq!(slots.first_done(), None);
        }
    });
}

/// A session must submit its staged I/O before it waits for anything else. Otherwise, two sessions
/// could deadlock by each waiting for I/O that the other has staged but not submitted.
#[test]
fn waiting_submits_what_is_staged() {
    check_seeds(&SIMULATED, 30, |environment| {
        let instance = Arc::new(environment.start());
        let file = instance.file("a", 4);
        let shown: Arc<Mutex<Vec<trunkline_aio::WaitRef>>> = Arc::default();
        let both = PausePoint::new();
        let mut threads = Vec::new();
        for number in 0..2_usize {
            let (instance, shown, both) = (Arc::clone(&instance), Arc::clone(&shown), both.clone());
            let file = file.clone();
            threads.push(spawn("stages and joins", move || {
                let mut session = instance.session();
                let mut slots = instance.slots(1, 1);
                let mut batch = session.batch();
                let io = read(&mut batch, &file, number as u32, 1, &mut slots, 0);
                let staged = {
                    let mut shown = shown.lock();
                    shown.push(io);
                    shown.len()
                };
                if staged == 2 {
                    both.release();
                }
                both.wait();
                let other = shown.lock().iter().copied().find(|&other| other != io);
                batch.join(other.expect("both have staged")).expect("not cancelled");
                drop(batch);
                wait_ok(&mut session, &mut slots, 0);
            }));
        }
        threads.into_iter().for_each(|thread| thread.join().expect("gets on"));
    });
}
