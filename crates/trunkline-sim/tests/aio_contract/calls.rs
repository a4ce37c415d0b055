//! Blocking calls that workers make for sessions. A call that hangs holds up neither the session
//! nor I/O, and it occupies only the share of its lane.

use std::task::{Context, Poll};
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::limits::CALL_LANES_MAX;
use trunkline_aio::{MethodKind, Session, WorkerSettings};
use trunkline_sim::matrix::Environment;
use trunkline_sim::matrix::io::{check, read, wait_ok};
use trunkline_sim::{CountingWaker, PausePoint};

fn is_sync(environment: Environment) -> bool {
    environment.method == MethodKind::Sync
}

/// A session whose calls are made by workers.
fn polled_session(instance: &trunkline_sim::matrix::Instance) -> Session {
    let mut session = instance.session();
    session.set_may_block(false);
    session
}

#[test]
fn a_task_is_woken_when_its_call_is_over() {
    check(|environment| {
        if is_sync(environment) {
            return;
        }
        let instance = environment.start();
        let file = instance.file("a", 2);
        let mut session = polled_session(&instance);
        let (gate, (wakes, waker)) = (PausePoint::new(), CountingWaker::new());
        let held = gate.clone();
        let mut call = session.call(1, move || {
            held.wait();
            7
        });
        let mut wait = session.polled_wait();
        let context = &mut Context::from_waker(&waker);
        assert!(session.poll_for(context, &mut wait, || call.is_done()).is_pending());
        assert_eq!(call.take(), None);
        // The session's I/O continues during the call.
        let mut slots = instance.slots(1, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        gate.release();
        loop {
            let before = wakes.count();
            match session.poll_for(context, &mut wait, || call.is_done()) {
                Poll::Ready(ended) => break ended.expect("not cancelled"),
                Poll::Pending => wakes.wait_while(before),
            }
        }
        assert_eq!((call.take(), call.take()), (Some(7), None));
    });
}

/// A thread that may block makes the call itself, and so does each session under `sync`.
#[test]
fn a_session_that_may_block_makes_its_calls_itself() {
    check(|environment| {
        let instance = environment.start();
        let mut session = instance.session();
        session.set_may_block(!is_sync(environment));
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let mut call = session.call(1, move || counted.fetch_add(1, Ordering::SeqCst));
        assert!(call.is_done());
        assert_eq!((call.take(), calls.load(Ordering::SeqCst)), (Some(0), 1));
    });
}

/// More calls hang in one lane than there are workers. Calls in other lanes and I/O go on.
#[test]
fn calls_that_hang_leave_workers_to_others() {
    check(|environment| {
        if is_sync(environment) {
            return;
        }
        let workers = WorkerSettings { min: 1, max: 4, ..WorkerSettings::default() };
        let instance = environment.start_with(|builder| builder.workers(workers));
        let file = instance.file("a", 4);
        let mut session = polled_session(&instance);
        let gate = PausePoint::new();
        let hang = |session: &mut Session| {
            let held = gate.clone();
            session.call(3, move || held.wait())
        };
        let mut hung: Vec<_> = (0..8).map(|_| hang(&mut session)).collect();
        gate.wait_for_arrivals(1);
        for number in (0..CALL_LANES_MAX as u64).filter(|number| *number != 3) {
            let mut call = session.call(number, move || number);
            session.wait_for(|| call.is_done()).expect("not cancelled");
            assert_eq!(call.take(), Some(number));
        }
        let mut slots = instance.slots(1, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(gate.arrivals(), 1, "a lane that completes nothing may use one worker");
        // A call that has not begun is not made if nothing waits for it.
        hung.truncate(3);
        gate.release();
        session.wait_for(|| hung.iter().all(|call| call.is_done())).expect("not cancelled");
        assert_eq!(gate.arrivals(), 3);
    });
}
