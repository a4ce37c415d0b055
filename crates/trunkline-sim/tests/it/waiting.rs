//! Waiting: for one, for any, by polling, for another's, for a handle; cancelled or not.
//! And who completes: each kind of thread does, and is counted.

use crate::rig::{
    Bench, SIMULATED, check, check_seeds, memory, original, read, run_seed, spawn, wait_ok,
};
use std::task::{Context, Waker};
use std::time::Duration;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{
    Callback, Cancelled, Class, Completer, Completion, MethodKind, Outcome, State, Status, Weight,
    WorkerSettings,
};
use trunkline_sim::{BLOCK, Gate, pause, poll_until_done};

/// Under the scheduler, with a method that does not block the issuer.
fn check_free(case: fn(Bench)) {
    check_seeds(MethodKind::Worker, 30, case);
    check_seeds(MethodKind::Custom, 30, case);
}

struct Heavy;

impl Callback for Heavy {
    fn name(&self) -> &'static str {
        "heavy"
    }
    fn weight(&self) -> Weight {
        Weight::Heavy
    }
    fn complete(&self, io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        let sum =
            io.memory.iter().flat_map(|lease| lease.iter()).map(|&byte| u64::from(byte)).sum();
        io.data.fill(sum);
        prior
    }
}

#[test]
fn wait_any_returns_the_fast_one_although_an_older_one_hangs() {
    check_free(|bench| {
        let rig = bench.start();
        let (slow, fast) = (rig.file_on("slow", 4, 1), rig.file_on("fast", 4, 2));
        rig.hold(1);
        let mut session = rig.session();
        let mut slots = rig.slots(4, 1);
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
        rig.disk.release(1);
        assert_eq!(session.wait_any(&mut slots).expect("not cancelled").0, 0);
    });
}

/// The same on real files: the older one is held in its worker.
#[test]
fn wait_any_returns_the_fast_one_on_real_files() {
    let bench = Bench::real(MethodKind::Worker);
    let rig = bench.start();
    let file = rig.file("a", 4);
    let held = rig.hooks.stop(State::CompletedIo, |io| io.offset == 0);
    let mut session = rig.session();
    let mut slots = rig.slots_with(2, 1, vec![Arc::new(Heavy)]);
    rig.wait_until("two workers", || rig.aio.worker_count() == 2);
    read(&mut session, &file, 0, 1, &mut slots, 0);
    held.wait();
    read(&mut session, &file, 1, 1, &mut slots, 1);
    // The held one is in COMPLETED_IO, so the waiter may complete it: then both are fine.
    let (slot, _) = session.wait_any(&mut slots).expect("not cancelled");
    assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
    held.release();
    session.wait_any(&mut slots).expect("not cancelled");
}

#[test]
fn polling_with_a_tiny_executor_gets_every_result() {
    check(|bench| {
        for callbacks in [vec![], vec![Arc::new(Heavy) as Arc<dyn Callback>]] {
            let rig = bench.start();
            let file = rig.file("a", 16);
            let mut session = rig.session();
            session.set_may_block(false);
            let mut slots = rig.slots_with(8, 1, callbacks);
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

/// The task that polls has another session than the one that issued.
#[test]
fn polling_for_another_sessions_io_is_woken() {
    check_free(|bench| {
        let rig = bench.start();
        let file = rig.file("a", 4);
        rig.hold(1);
        let mut issuer = rig.session();
        let mut slots = rig.slots(1, 1);
        read(&mut issuer, &file, 2, 1, &mut slots, 0);
        let disk = Arc::clone(&rig.disk);
        let opener = spawn("opener", move || {
            pause(Duration::from_millis(1));
            disk.release(1);
        });
        let mut poller = rig.session();
        poll_until_done(&mut poller, &mut slots, 0).expect("not cancelled");
        assert_eq!(memory(&mut slots, 0), original(2, 1));
        opener.join().expect("opens");
    });
}

#[test]
fn a_cancelled_wait_ends_and_the_io_goes_on() {
    check_free(|bench| {
        let rig = bench.start();
        let file = rig.file("a", 4);
        rig.hold(1);
        let mut session = rig.session();
        let mut slots = rig.slots(2, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        read(&mut session, &file, 2, 1, &mut slots, 1);
        let canceller = session.canceller();
        let cancel = spawn("cancel", move || canceller.cancel());
        assert_eq!(session.wait(&mut slots, 0), Err(Cancelled));
        assert_eq!(session.wait_any(&mut slots), Err(Cancelled), "until it is cleared");
        let io = slots.wait_ref(0).expect("issued");
        assert_eq!(session.join(io), Err(Cancelled));
        assert_eq!(poll_until_done(&mut session, &mut slots, 0), Err(Cancelled));
        cancel.join().expect("cancels");
        session.clear_cancel();
        rig.disk.release(1);
        for slot in 0..2 {
            wait_ok(&mut session, &mut slots, slot);
            assert_eq!(memory(&mut slots, slot), original(1 + slot as u32, 1));
        }
    });
}

/// A canceller of a session that ended does nothing to the next one of that number, not even by
/// coming between that one's own cancel and its look.
#[test]
fn a_stale_canceller_cancels_nobody() {
    check_free(|bench| {
        let rig = bench.start();
        let file = rig.file("a", 4);
        let old = rig.session().canceller();
        rig.hold(1);
        let mut session = rig.session();
        let mut slots = rig.slots(1, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        old.cancel();
        rig.disk.release(1);
        wait_ok(&mut session, &mut slots, 0);
        session.canceller().cancel();
        old.cancel();
        rig.hold(1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        assert_eq!(session.wait(&mut slots, 0), Err(Cancelled), "its own cancel was lost");
        rig.disk.release(1);
    });
}

/// Cancelled while it waits for a handle: the wake that was meant for it goes to the next.
#[test]
fn a_cancelled_waiter_for_a_handle_passes_the_wake_on() {
    check_seeds(MethodKind::Sync, 100, |bench| {
        let rig = Arc::new(bench.start_with(|builder| builder.handles(1, 0, 0)));
        let mut holder = rig.session();
        let handle = holder.acquire(Class::Foreground).expect("the only one");
        let taken = Gate::new();
        let mut cancelled = rig.session();
        let canceller = cancelled.canceller();
        let first = spawn("cancelled", move || drop(cancelled.acquire(Class::Foreground)));
        rig.quiet();
        let (theirs, gate) = (Arc::clone(&rig), taken.clone());
        let second = spawn("waiter", move || {
            let mut session = theirs.session();
            session.acquire(Class::Foreground).expect("not cancelled").release();
            gate.open();
        });
        rig.quiet();
        // In any order, at the same time.
        let cancel = spawn("cancel", move || canceller.cancel());
        handle.release();
        cancel.join().expect("cancels");
        first.join().expect("ends");
        second.join().expect("takes the handle");
        assert_eq!(rig.aio.handles_in_use(), 0);
    });
}

/// Two handles come free, and one of those who wait takes one and keeps it: the wake for the other
/// must reach the other waiter.
#[test]
fn a_waiter_that_took_a_handle_by_itself_passes_its_wake_on() {
    check_seeds(MethodKind::Sync, 300, |bench| {
        let rig = Arc::new(bench.start_with(|builder| builder.handles(2, 0, 0)));
        let (mut a, mut b) = (rig.session(), rig.session());
        let (one, two) = (a.acquire(Class::LookAhead), b.acquire(Class::LookAhead));
        let done = Gate::new();
        let mut threads = Vec::new();
        // Each keeps its handle until both have one.
        for class in [Class::LookAhead, Class::Foreground] {
            let (rig, done) = (Arc::clone(&rig), done.clone());
            threads.push(spawn(class.name(), move || {
                let mut session = rig.session();
                let handle = session.acquire(class).expect("not cancelled");
                done.pass();
                handle.release();
            }));
        }
        let gate = done.clone();
        threads.push(spawn("opener", move || {
            gate.wait_for(2);
            gate.open();
        }));
        drop((one, two));
        threads.into_iter().for_each(|thread| thread.join().expect("ends"));
    });
}

/// A task that polled for a handle goes away, or finds one by itself: in both cases it must not
/// stay in the queue, where it would swallow the wake-up of somebody who still waits.
#[test]
fn a_task_that_no_longer_polls_for_a_handle_swallows_no_wake() {
    #[derive(Clone, Copy)]
    enum Then {
        Ends,
        TriesAgain,
        WaitsForIo,
    }
    for then in [Then::Ends, Then::TriesAgain, Then::WaitsForIo] {
        for seed in 0..20 {
            let config = trunkline_aio::sync::sched::Config::new(seed);
            let result = trunkline_aio::sync::sched::run(config, move || {
                let bench = Bench::simulated(MethodKind::Sync, seed);
                let rig = Arc::new(bench.start_with(|builder| builder.handles(2, 0, 0)));
                let (mut a, mut b, mut task) = (rig.session(), rig.session(), rig.session());
                let one = a.acquire(Class::Foreground).expect("free");
                let two = b.acquire(Class::Foreground).expect("free");
                let mut context = Context::from_waker(Waker::noop());
                assert!(task.poll_acquire(&mut context, Class::Log).is_pending());
                let theirs = Arc::clone(&rig);
                let waiter = spawn("waiter", move || {
                    let mut session = theirs.session();
                    session.acquire(Class::LookAhead).expect("not cancelled").release();
                });
                rig.quiet();
                let keep = match then {
                    Then::Ends => {
                        drop(task);
                        None
                    }
                    Then::TriesAgain => {
                        one.release();
                        let polled = task.poll_acquire(&mut context, Class::Log);
                        assert!(polled.is_ready());
                        Some(polled)
                    }
                    Then::WaitsForIo => {
                        assert!(task.try_acquire(Class::LookAhead).is_none());
                        None
                    }
                };
                two.release();
                waiter.join().expect("gets the handle that came free");
                drop(keep);
            });
            result.unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}

/// A completion frees a handle for somebody who has nothing to do with it.
#[test]
fn a_completion_wakes_a_stranger_who_waits_for_a_handle() {
    check_free(|bench| {
        let rig = Arc::new(bench.start_with(|builder| builder.handles(1, 0, 0)));
        let file = rig.file("a", 4);
        rig.hold(1);
        let mut issuer = rig.session();
        let mut slots = rig.slots(1, 1);
        let io = read(&mut issuer, &file, 1, 1, &mut slots, 0);
        let theirs = Arc::clone(&rig);
        let waiter = spawn("waiter", move || {
            let mut session = theirs.session();
            session.acquire(Class::Foreground).expect("not cancelled").release();
            assert!(session.is_complete(io));
        });
        rig.quiet();
        rig.disk.release(1);
        waiter.join().expect("gets the handle");
        wait_ok(&mut issuer, &mut slots, 0);
    });
}

/// A result that is taken by its slot, in the moment it comes, is not found again by wait_any.
#[test]
fn a_result_taken_by_its_slot_is_not_found_again() {
    check_free(|bench| {
        let rig = bench.start();
        let file = rig.file("a", 4);
        let mut session = rig.session();
        let mut slots = rig.slots(2, 1);
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

/// Many sessions wait for a handle that does not come: they sleep, and do not wake one another.
#[test]
fn waiters_for_a_handle_sleep_quietly() {
    let report = run_seed(MethodKind::Worker, 3, |bench| {
        let rig = Arc::new(bench.start_with(|builder| builder.handles(2, 0, 0)));
        let file = rig.file("a", 4);
        rig.hold(1);
        let mut issuer = rig.session();
        let mut slots = rig.slots(1, 1);
        read(&mut issuer, &file, 0, 1, &mut slots, 0);
        let keep = issuer.acquire(Class::Foreground);
        let mut threads = Vec::new();
        let counts = Arc::new(Mutex::new(0));
        for _ in 0..4 {
            let (rig, counts) = (Arc::clone(&rig), Arc::clone(&counts));
            threads.push(spawn("waiter", move || {
                let mut session = rig.session();
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
        rig.disk.release(1);
        wait_ok(&mut issuer, &mut slots, 0);
        threads.into_iter().for_each(|thread| thread.join().expect("ends"));
    });
    assert!(report.steps < 100_000, "{} switch points: they do not sleep", report.steps);
}

/// Sessions at their quota wait for their own I/O, not for a handle, and wake nobody.
#[test]
fn waiters_at_their_quota_sleep_quietly() {
    for seed in 0..20 {
        let report = run_seed(MethodKind::Custom, seed, |bench| {
            let rig = Arc::new(bench.start_with(|builder| builder.session_quota(1)));
            drop(rig.file("a", 4));
            rig.hold(1);
            let mut threads = Vec::new();
            for _ in 0..3 {
                let rig = Arc::clone(&rig);
                threads.push(spawn("at its quota", move || {
                    let file = rig.file("a", 4);
                    let mut session = rig.session();
                    let mut slots = rig.slots(2, 1);
                    read(&mut session, &file, 0, 1, &mut slots, 0);
                    read(&mut session, &file, 1, 1, &mut slots, 1);
                    wait_ok(&mut session, &mut slots, 0);
                    wait_ok(&mut session, &mut slots, 1);
                }));
            }
            rig.disk.wait_stuck(3);
            rig.session().acquire(Class::Foreground).expect("there are some").release();
            pause(Duration::from_secs(1));
            rig.disk.release(1);
            threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        });
        assert!(report.steps < 100_000, "seed {seed}: {} switch points", report.steps);
    }
}

/// Each kind of thread completes, and the sum is the number of I/Os.
#[test]
fn every_kind_of_thread_completes_and_is_counted() {
    let one = |bench: Bench, heavy: bool, wait: bool| {
        let rig = bench.start();
        let file = rig.file("a", 4);
        let mut session = rig.session();
        let callbacks: Vec<Arc<dyn Callback>> =
            if heavy { vec![Arc::new(Heavy)] } else { Vec::new() };
        let mut slots = rig.slots_with(1, 1, callbacks);
        if heavy {
            slots.data(0).expect("idle").push(0);
        }
        read(&mut session, &file, 1, 1, &mut slots, 0);
        if !wait {
            rig.wait_until("complete", || slots.is_done(0));
        }
        wait_ok(&mut session, &mut slots, 0);
        if heavy {
            let wanted = original(1, 1).iter().map(|&byte| u64::from(byte)).sum::<u64>();
            assert_eq!(slots.data(0).expect("idle")[..], [wanted]);
        }
        let counters = rig.aio.counters();
        assert_eq!(counters.completers.iter().sum::<u64>(), 1);
        counters
    };
    check_one(MethodKind::Sync, Completer::Inline, one, false, true);
    check_one(MethodKind::Worker, Completer::Worker, one, false, false);
    check_one(MethodKind::IoUring, Completer::Reaper, one, false, true);
    check_one(MethodKind::IoUring, Completer::Helper, one, true, false);
    // The session that waits gets the I/O handed, or finds it; under the scheduler the other ways
    // are open too.
    static WAITED: trunkline_aio::sync::atomic::AtomicU64 =
        trunkline_aio::sync::atomic::AtomicU64::new(0);
    use trunkline_aio::sync::atomic::Ordering;
    for seed in 0..50 {
        run_seed(MethodKind::Custom, seed, |bench| {
            let rig = bench.start();
            let file = rig.file("a", 4);
            let mut session = rig.session();
            let mut slots = rig.slots_with(1, 1, vec![Arc::new(Heavy)]);
            read(&mut session, &file, 1, 1, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 0);
            let waiter = rig.aio.counters().completed_by(Completer::Waiter);
            WAITED.fetch_add(waiter, Ordering::SeqCst);
        });
    }
    assert!(WAITED.load(Ordering::SeqCst) > 10);
}

fn check_one(
    method: MethodKind,
    completer: Completer,
    one: fn(Bench, bool, bool) -> trunkline_aio::Counters,
    heavy: bool,
    wait: bool,
) {
    let counters = one(Bench::real(method), heavy, wait);
    assert_eq!(counters.completed_by(completer), 1, "{method}: {:?}", counters.completers);
}

/// A read that is needed now, with nothing else in flight, needs no hop to another thread; with
/// something in flight, or from a task, it goes to the method.
#[test]
fn a_needed_read_is_executed_by_its_issuer_when_it_is_alone() {
    check_free(|bench| {
        let rig = bench.start();
        let (file, slow) = (rig.file_on("a", 4, 1), rig.file_on("slow", 4, 2));
        rig.hold(2);
        let mut session = rig.session();
        let mut slots = rig.slots(2, 1);
        let needed = |session: &mut trunkline_aio::Session, slots: &mut _| {
            let io = session.acquire(Class::Foreground).expect("a handle").needed_now();
            io.read(&file, BLOCK as u64, BLOCK as u32, slots, 1).expect("defined");
            wait_ok(session, slots, 1);
            assert_eq!(memory(slots, 1), original(1, 1));
        };
        needed(&mut session, &mut slots);
        let counters = rig.aio.counters();
        assert_eq!((counters.needed_now, counters.completed_by(Completer::Inline)), (1, 1));
        session.set_may_block(false);
        needed(&mut session, &mut slots);
        session.set_may_block(true);
        read(&mut session, &slow, 0, 1, &mut slots, 0);
        needed(&mut session, &mut slots);
        let counters = rig.aio.counters();
        assert_eq!((counters.needed_now, counters.completed_by(Completer::Inline)), (1, 1));
        rig.disk.release(2);
        wait_ok(&mut session, &mut slots, 0);
    });
}

/// A session that has staged I/O and waits for something else submits first: two sessions that
/// wait for each other's staged I/O both get on.
#[test]
fn waiting_submits_what_is_staged() {
    for method in SIMULATED {
        check_seeds(method, 30, |bench| {
            let rig = Arc::new(bench.start());
            let file = rig.file("a", 4);
            let shown: Arc<Mutex<Vec<trunkline_aio::WaitRef>>> = Arc::default();
            let both = Gate::new();
            let mut threads = Vec::new();
            for number in 0..2_usize {
                let (rig, shown, both) = (Arc::clone(&rig), Arc::clone(&shown), both.clone());
                let file = file.clone();
                threads.push(spawn("stages and joins", move || {
                    let mut session = rig.session();
                    let mut slots = rig.slots(1, 1);
                    let mut batch = session.batch();
                    let io = read(&mut batch, &file, number as u32, 1, &mut slots, 0);
                    let staged = {
                        let mut shown = shown.lock();
                        shown.push(io);
                        shown.len()
                    };
                    if staged == 2 {
                        both.open();
                    }
                    both.pass();
                    let other = shown.lock().iter().copied().find(|&other| other != io);
                    batch.join(other.expect("both have staged")).expect("not cancelled");
                    drop(batch);
                    wait_ok(&mut session, &mut slots, 0);
                }));
            }
            threads.into_iter().for_each(|thread| thread.join().expect("gets on"));
        });
    }
}

/// The same for a session that waits for a handle while its staged I/Os hold all of them.
#[test]
fn waiting_for_a_handle_submits_what_is_staged() {
    check(|bench| {
        let rig = bench.start_with(|builder| builder.handles(3, 0, 0).try_cached_below(0));
        let file = rig.file("a", 12);
        let mut session = rig.session();
        let mut slots = rig.slots(12, 1);
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

/// A session that waits for a handle is handed reaped I/O of its own, and completes it.
#[test]
fn a_waiter_for_a_handle_completes_what_it_is_handed() {
    check_seeds(MethodKind::Custom, 100, |bench| {
        let rig = bench.start_with(|builder| {
            let workers = WorkerSettings { min: 1, max: 1, ..WorkerSettings::default() };
            builder.handles(2, 0, 0).workers(workers)
        });
        let file = rig.file("a", 10);
        let mut session = rig.session();
        let mut slots = rig.slots_with(10, 1, vec![Arc::new(Heavy)]);
        for slot in 0..10 {
            read(&mut session, &file, slot, 1, &mut slots, slot as usize);
        }
        for _ in 0..10 {
            let (slot, _) = session.wait_any(&mut slots).expect("not cancelled");
            assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
        }
    });
}
