//! Races in a handle's life cycle. Each test stops a thread just after that thread has moved a
//! handle to a new state, and lets other sessions use the I/O in the meantime.
//!
//! Most races in a handle's life cycle involve the handle's state, the issuer and one other
//! session. We therefore test every state together with everything that the issuer and the other
//! session can do.

use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Cancelled, Class, Outcome, STATES, State, Status, WaitRef, Weight};
use trunkline_sim::matrix::io::{PassThrough, check_seeds, memory, original, spawn};
use trunkline_sim::matrix::{Environment, Instance, Matrix, REAL, SIMULATED};
use trunkline_sim::{BLOCK, poll_until_done};

/// What another session does while the handle is in that state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherSession {
    Joins,
    Looks,
    Cancels,
    /// Closes the issuer's file.
    Closes,
    /// Acquires all handles, so it must wait until the I/O's handle is freed.
    Acquires,
}

/// What the issuer does after issuing the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Issuer {
    Waits,
    WaitsForAny,
    Polls,
    /// Drops its slots.
    GivesUp,
    /// Drops its session but keeps its slots.
    Leaves,
    /// Reads the same block again into another slot.
    ReadsAgain,
}

const OTHER_SESSIONS: [OtherSession; 5] = [
    OtherSession::Joins,
    OtherSession::Looks,
    OtherSession::Cancels,
    OtherSession::Closes,
    OtherSession::Acquires,
];
const ISSUERS: [Issuer; 6] = [
    Issuer::Waits,
    Issuer::WaitsForAny,
    Issuer::Polls,
    Issuer::GivesUp,
    Issuer::Leaves,
    Issuer::ReadsAgain,
];

#[test]
fn every_state_with_every_action_under_the_scheduler() {
    check_seeds(&SIMULATED, 4, all_actions);
}

#[test]
fn every_state_with_every_action_on_real_files() {
    Matrix::real(&REAL).run(all_actions);
}

/// Runs all combinations in one environment.
fn all_actions(environment: Environment) {
    let mut weight = Weight::Light;
    for state in STATES {
        for other_session in OTHER_SESSIONS {
            for issuer in ISSUERS {
                one(environment, state, other_session, issuer, weight);
                weight = if weight == Weight::Light { Weight::Heavy } else { Weight::Light };
            }
        }
    }
}

fn one(
    environment: Environment,
    state: State,
    other_session: OtherSession,
    issuer: Issuer,
    weight: Weight,
) {
    let context =
        format!("{environment:?} {} {other_session:?} {issuer:?} {weight:?}", state.name());
    let instance = Arc::new(environment.start_with(|builder| builder.handles(3, 1, 0)));
    let all = instance.aio.region().free_frames();
    let held = instance.probe.pause_at(state, |_| true);
    let file = Arc::new(Mutex::new(Some(instance.file("a", 8))));
    let canceller = Arc::new(Mutex::new(None));
    let (theirs, shown, text) = (Arc::clone(&instance), Arc::clone(&file), context.clone());
    let cancels = Arc::clone(&canceller);
    let own = spawn("issuer", move || {
        let session = theirs.session();
        *cancels.lock() = Some(session.canceller());
        let target = shown.lock().clone().expect("open");
        issue_and(issuer, &theirs, session, target, weight, &text);
    });
    let io = held.wait();
    let started = Arc::new(AtomicBool::new(false));
    let (theirs, begun) = (Arc::clone(&instance), Arc::clone(&started));
    let other = spawn("other_session", move || {
        // Set the flag only after reading the row, so that the row is read while the other thread
        // is stopped. The other actions may sleep, so for those the flag just means that they are
        // about to start.
        if other_session == OtherSession::Looks {
            look(&theirs, io, state);
        }
        begun.store(true, Ordering::SeqCst);
        match other_session {
            OtherSession::Joins => theirs.session().join(io).expect("not cancelled"),
            OtherSession::Looks => {}
            OtherSession::Cancels => canceller.lock().take().expect("set before the I/O").cancel(),
            OtherSession::Closes => drop(file.lock().take()),
            OtherSession::Acquires => {
                let (mut a, mut b) = (theirs.session(), theirs.session());
                let log = a.acquire(Class::Log).expect("not cancelled");
                b.acquire(Class::LookAhead).expect("not cancelled").release();
                log.release();
            }
        }
    });
    instance.wait_until("the other_session", || started.load(Ordering::SeqCst));
    if environment.is_simulated() {
        instance.quiesce();
    }
    held.release();
    other.join().unwrap_or_else(|_| panic!("other_session: {context}"));
    own.join().unwrap_or_else(|_| panic!("issuer: {context}"));
    instance.settle();
    let session = instance.session();
    assert!(session.is_complete(io), "{context}");
    drop(session);
    instance.wait_until("all frames", || instance.aio.region().free_frames() == all);
}

/// Checks the handle's row. In COMPLETED_IO the handle may have moved on, because the waiting
/// issuer completes it.
fn look(instance: &Instance, io: WaitRef, state: State) {
    match instance.row(io) {
        Some(row) => assert!(row.state == state.name() || state == State::CompletedIo, "{row:?}"),
        None => assert!(matches!(state, State::Idle | State::CompletedIo), "{}", state.name()),
    }
}

fn issue_and(
    issuer: Issuer,
    instance: &Instance,
    mut session: trunkline_aio::Session,
    file: trunkline_aio::File,
    weight: Weight,
    context: &str,
) {
    let mut slots = instance.slots_with(2, 1, vec![Arc::new(PassThrough(weight))]);
    // If the session is cancelled before it gets a handle, it issues no I/O. That's correct, too.
    let Ok(io) = session.acquire(Class::Foreground) else { return };
    io.read(&file, 3 * BLOCK as u64, BLOCK as u32, &mut slots, 0).expect("defined");
    drop(file);
    let first = match issuer {
        Issuer::Waits => session.wait(&mut slots, 0),
        Issuer::WaitsForAny => session.wait_any(&mut slots).map(|(slot, outcome)| {
            assert_eq!(slot, 0, "{context}");
            outcome
        }),
        Issuer::Polls => poll_until_done(&mut session, &mut slots, 0),
        Issuer::GivesUp => {
            drop(slots);
            return;
        }
        Issuer::Leaves => {
            drop(session);
            session = instance.session();
            session.wait(&mut slots, 0)
        }
        Issuer::ReadsAgain => {
            let (again, offset) = (instance.file("a", 8), 3 * BLOCK as u64);
            let mut issued = false;
            while !issued {
                session.clear_cancel();
                let io = session.acquire(Class::Foreground);
                issued = io.map(|io| io.read(&again, offset, BLOCK as u32, &mut slots, 1)).is_ok();
            }
            let outcome = retry(&mut session, &mut slots, 1);
            assert_eq!(outcome.status, Status::Ok, "{context}");
            assert_eq!(memory(&mut slots, 1), original(3, 1), "{context}");
            session.wait(&mut slots, 0)
        }
    };
    let outcome = first.unwrap_or_else(|Cancelled| retry(&mut session, &mut slots, 0));
    assert_eq!(outcome.status, Status::Ok, "{context}");
    assert_eq!(memory(&mut slots, 0), original(3, 1), "{context}");
}

/// Waits again after a cancel.
fn retry(
    session: &mut trunkline_aio::Session,
    slots: &mut trunkline_aio::Slots,
    slot: usize,
) -> Outcome {
    loop {
        match session.wait(slots, slot) {
            Ok(outcome) => return outcome,
            Err(Cancelled) => session.clear_cancel(),
        }
    }
}
