//! Handles: acquire, leak, release, define, batches, and quotas (PG 1 to 7).
//!
//! A session can't acquire two handles (PG 4): a doc test of `Io` shows that this doesn't compile.

use trunkline_aio::facade::thread;
use trunkline_aio::{Class, DefineError, Leaks, MethodKind, STATES, State, WorkerSettings};
use trunkline_sim::BLOCK;
use trunkline_sim::matrix::io::{
    ASYNCHRONOUS, check, check_seeds, memory, original, read, wait_ok, write,
};

/// PG 1: acquire a handle and leak it. When the scope ends, the leak must be reported, and
/// afterwards the session must still be usable.
#[test]
fn pg01_a_leaked_handle_is_reported_and_released_by_the_scope() {
    check(|environment| {
        let instance = environment.start();
        let mut session = instance.session();
        std::mem::forget(session.acquire(Class::Foreground));
        assert_eq!(instance.aio.handles_in_use(), 1);
        assert_eq!(session.end_scope(), Leaks { handed_out: true, ..Leaks::default() });
        assert_eq!((instance.aio.handles_in_use(), session.in_flight()), (0, 0));
        assert!(!session.end_scope().any());
        // Without a scope, the next acquire must notice the leak.
        std::mem::forget(session.acquire(Class::Foreground));
        session.acquire(Class::Foreground).expect("usable").release();
        assert_eq!((instance.aio.handles_in_use(), instance.aio.counters().leaked), (0, 2));
        // Dropping the session must release the handle as well.
        std::mem::forget(session.acquire(Class::Foreground));
        drop(session);
        assert_eq!((instance.aio.handles_in_use(), instance.aio.counters().leaked), (0, 3));
    });
}

/// PG 2: a handle that was released at the end of its scope can't be released a second time,
/// because `Io` borrows the session. If the handle is then acquired once more and dropped, no
/// further leak must be reported.
#[test]
fn pg02_a_handle_released_by_the_scope_stays_released() {
    check(|environment| {
        let instance = environment.start();
        let mut session = instance.session();
        std::mem::forget(session.acquire(Class::Foreground));
        assert!(session.end_scope().handed_out);
        let io = session.acquire(Class::Foreground).expect("usable");
        assert_eq!(io.wait_ref().generation(), 2);
        drop(io);
        assert!(!session.end_scope().any());
        assert_eq!(instance.probe.transitions(State::HandedOut, State::Idle), 2);
    });
}

/// PG 3: acquire and release in one scope reports nothing.
#[test]
fn pg03_a_released_handle_leaves_no_trace() {
    check(|environment| {
        let instance = environment.start();
        let mut session = instance.session();
        for _ in 0..100 {
            session.acquire(Class::Foreground).expect("a handle").release();
        }
        assert!(!session.end_scope().any());
        assert_eq!((instance.aio.handles_in_use(), instance.aio.counters().leaked), (0, 0));
        assert_eq!(instance.aio.counters().in_flight_samples, 0, "nothing was submitted");
    });
}

/// PG 5: after an error between acquire and define, the next acquire must work.
#[test]
fn pg05_an_error_after_acquire_releases_the_handle() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.iovecs(2));
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 1);
        let wanted = DefineError::MemoryTooShort { memory: BLOCK, length: 2 * BLOCK as u32 };
        let io = session.acquire(Class::Foreground).expect("a handle");
        let found = io.read(&file, 0, 2 * BLOCK as u32, &mut slots, 0);
        assert_eq!(found, Err(wanted));
        let pieces = slots.memory(0).expect("idle");
        pieces.extend((0..2).map(|_| instance.aio.region().lease(1).expect("a frame")));
        let io = session.acquire(Class::Foreground).expect("a handle");
        let found = io.read(&file, 0, 3 * BLOCK as u32, &mut slots, 0);
        assert_eq!(found, Err(DefineError::TooManyPieces { limit: 2 }));
        let other = environment.start();
        let mut foreign = other.slots(1, 1);
        let io = session.acquire(Class::Foreground).expect("a handle");
        let found = io.read(&file, 0, BLOCK as u32, &mut foreign, 0);
        assert_eq!(found, Err(DefineError::ForeignMemory));
        assert_eq!(instance.aio.handles_in_use(), 0);
        assert!(!session.end_scope().any());
        read(&mut session, &file, 1, 1, &mut slots, 0);
        wait_ok(&mut session, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0)[..BLOCK], original(1, 1));
    });
}

/// PG 6: a batch is leaked. The scope must submit its I/Os, and the session must stay usable.
#[test]
fn pg06_a_leaked_batch_is_reported_and_submitted() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.try_cached_below(0));
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(4, 1);
        let mut batch = session.batch();
        for slot in 0..3 {
            read(&mut batch, &file, slot, 1, &mut slots, slot as usize);
        }
        std::mem::forget(batch);
        assert_eq!(instance.probe.transitions(State::Staged, State::Submitted), 0, "still staged");
        assert_eq!(session.end_scope(), Leaks { staged: 3, batch: true, ..Leaks::default() });
        for slot in 0..3 {
            wait_ok(&mut session, &mut slots, slot);
        }
        assert!(!session.end_scope().any(), "the next I/O is submitted immediately again");
        read(&mut session, &file, 3, 1, &mut slots, 3);
        assert_eq!(instance.probe.transitions(State::Staged, State::Submitted), 4);
        wait_ok(&mut session, &mut slots, 3);
        assert_eq!(instance.aio.handles_in_use(), 0);
    });
}

/// PG 7: a batch that ends properly reports nothing. A wait inside an open batch must not hang.
#[test]
fn pg07_a_batch_that_ends_leaves_no_trace() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 2);
        let mut session = instance.session();
        drop(session.batch());
        assert!(!session.end_scope().any());
        let mut slots = instance.slots(1, 1);
        {
            let mut batch = session.batch();
            read(&mut batch, &file, 1, 1, &mut slots, 0);
            wait_ok(&mut batch, &mut slots, 0);
        }
        assert!(!session.end_scope().any());
        assert_eq!(memory(&mut slots, 0), original(1, 1));
    });
}

#[test]
fn every_transition_of_the_diagram_happens_and_no_other() {
    check(|environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(4, 1);
        session.acquire(Class::Log).expect("a handle").release();
        read(&mut session, &file, 0, 1, &mut slots, 0);
        write(&mut session, &file, 1, 1, 1, &mut slots, 1);
        session.acquire(Class::Log).expect("a handle").fsync(&file, &mut slots, 2);
        session.acquire(Class::Log).expect("a handle").fdatasync(&file, &mut slots, 3);
        for slot in 0..4 {
            wait_ok(&mut session, &mut slots, slot);
        }
        instance.settle();
        let mut edges = 0;
        for from in STATES {
            for to in STATES {
                let wanted = match (from, to) {
                    (State::Idle, State::HandedOut) => 5,
                    (State::HandedOut, State::Idle) => 1,
                    _ if from.may_become(to) => 4,
                    _ => 0,
                };
                let passed = instance.probe.transitions(from, to);
                assert_eq!(passed, wanted, "{environment:?} {} to {}", from.name(), to.name());
                edges += u64::from(passed > 0);
            }
        }
        assert_eq!(edges, 9);
    });
}

/// A batch with more I/Os than a session may stage must be submitted in parts.
#[test]
fn a_batch_of_seventy_is_submitted_in_parts() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.handles(128, 4, 8));
        let file = instance.file("a", 70);
        let mut session = instance.session();
        let mut slots = instance.slots(70, 1);
        {
            let mut batch = session.batch();
            for slot in 0..70 {
                read(&mut batch, &file, slot, 1, &mut slots, slot as usize);
            }
            let submitted = instance.probe.transitions(State::Staged, State::Submitted);
            assert!(submitted > 70 - 32, "fewer than 32 stay staged, {submitted} were submitted");
        }
        for _ in 0..70 {
            let (slot, outcome) = session.wait_any(&mut slots).expect("not cancelled");
            assert_eq!(outcome.count, BLOCK as u32);
            assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
        }
        assert_eq!(slots.pending(), 0);
        let counters = instance.aio.counters();
        assert_eq!(counters.completers.iter().sum::<u64>(), 70);
        assert_eq!(counters.in_flight_samples, 70);
    });
}

/// Some handles are reserved for foreground reads and some for the WAL. Read-ahead must not take
/// any of the reserved handles, and foreground reads must not take the handles reserved for the
/// WAL. Even when all other handles are in use, the WAL must still be able to get one.
#[test]
fn the_reserves_of_log_and_foreground_hold() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.handles(10, 2, 3));
        let mut sessions: Vec<_> = (0..11).map(|_| instance.session()).collect();
        let mut next = sessions.iter_mut();
        let mut held = Vec::new();
        let mut take = |class, wanted: usize| {
            for _ in 0..wanted {
                held.push(next.next().expect("enough").try_acquire(class).expect("a handle"));
            }
        };
        let none = |class| instance.session().try_acquire(class).is_none();
        take(Class::LookAhead, 2);
        take(Class::Eviction, 1);
        take(Class::Checkpoint, 1);
        take(Class::Maintenance, 1);
        assert!(none(Class::LookAhead) && none(Class::Eviction));
        assert!(none(Class::Checkpoint) && none(Class::Maintenance));
        take(Class::Foreground, 3);
        assert!(none(Class::Foreground) && none(Class::LookAhead));
        take(Class::Log, 2);
        assert!(none(Class::Log), "all ten are in use");
        assert_eq!(instance.aio.handles_in_use(), 10);
        held.truncate(8);
        assert!(none(Class::Foreground), "two handles are reserved for the log");
        drop(held);
        assert_eq!(instance.aio.handles_in_use(), 0);
    });
}

/// A session may hold at most its quota of handles, except for WAL I/O.
#[test]
fn the_quota_of_a_session_holds() {
    check_seeds(&ASYNCHRONOUS, 20, |environment| {
        let instance = environment.start_with(|builder| builder.session_quota(3));
        let file = instance.file("a", 8);
        instance.disk.hold(1);
        let mut session = instance.session();
        let mut slots = instance.slots(5, 1);
        for slot in 0..3 {
            read(&mut session, &file, slot, 1, &mut slots, slot as usize);
        }
        assert!(session.try_acquire(Class::Foreground).is_none());
        let log = session.try_acquire(Class::Log).expect("exempt");
        log.read(&file, 3 * BLOCK as u64, BLOCK as u32, &mut slots, 3).expect("defined");
        assert_eq!(session.in_flight(), 4);
        assert!(
            instance.session().try_acquire(Class::Foreground).is_some(),
            "other sessions are not affected"
        );
        // At its quota, a session continues as soon as one of its own I/Os completes.
        let disk = trunkline_aio::facade::Arc::clone(&instance.disk);
        let opener = trunkline_sim::matrix::io::spawn("opener", move || disk.release(1));
        read(&mut session, &file, 4, 1, &mut slots, 4);
        while slots.pending() > 0 {
            session.wait_any(&mut slots).expect("not cancelled");
        }
        opener.join().expect("opens");
        assert_eq!(session.in_flight(), 0);
        for slot in 0..5 {
            assert_eq!(memory(&mut slots, slot as usize), original(slot, 1));
        }
    });
}

/// Handles are reused, so a wait reference to an earlier generation must count as complete.
#[test]
fn a_reused_handle_is_another_io() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.handles(1, 0, 0));
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 1);
        let mut old = Vec::new();
        for round in 0..20 {
            old.push(read(&mut session, &file, round % 4, 1, &mut slots, 0));
            wait_ok(&mut session, &mut slots, 0);
            assert_eq!(memory(&mut slots, 0), original(round % 4, 1));
        }
        for (at, io) in old.iter().enumerate() {
            assert_eq!((io.io_id(), io.generation()), (0, at as u64 + 1));
            assert!(session.is_complete(*io));
            session.join(*io).expect("immediately");
        }
    });
}

/// Part of PG 28: settings out of range are clamped, and the worker pool follows the clamped
/// values.
#[test]
fn worker_settings_are_clamped() {
    check_seeds(&[MethodKind::Worker], 5, |environment| {
        let zero = WorkerSettings { min: 0, max: 0, ..WorkerSettings::default() };
        let instance = environment.start_with(|builder| builder.workers(zero));
        instance.wait_until("one worker", || instance.aio.worker_count() == 1);
        instance.aio.set_workers(WorkerSettings { min: 6, max: 3, ..WorkerSettings::default() });
        instance.wait_until("six workers", || instance.aio.worker_count() == 6);
        thread::yield_now();
    });
}
