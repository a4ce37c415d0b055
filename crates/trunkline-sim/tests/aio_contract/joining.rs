//! Sessions that wait for other sessions' I/O, and for notifications by session number, both
//! blocking and as async tasks.
//!
//! When a session starts to wait, the I/O might not even have been submitted yet. The handle might
//! be released without ever being used, or the issuer might never receive the result.

use std::future::poll_fn;
use std::task::{Context, Poll, Wake, Waker};
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, thread};
use trunkline_aio::{
    Batch, Builder, Callback, Cancelled, Class, Completion, InFlight, Method, MethodKind, Outcome,
    Session, WaitRef, Weight, WorkerSettings,
};
use trunkline_sim::matrix::io::{
    ASYNCHRONOUS, PassThrough, check, check_real, check_seeds, memory, original, read, spawn,
    wait_ok,
};
use trunkline_sim::matrix::{Environment, Instance, Matrix, REAL};
use trunkline_sim::{PausePoint, block_on};

/// A waker that counts a task's wake-ups.
#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Sleep (false) or poll (true).
const WAYS: [bool; 2] = [false, true];

fn join(session: &mut Session, io: WaitRef, polls: bool) -> Result<(), Cancelled> {
    match polls {
        false => session.join(io),
        true => {
            let mut wait = session.polled_wait();
            block_on(poll_fn(|context| session.poll_join(context, &mut wait, io)))
        }
    }
}

/// Starts a thread that joins an I/O and then sets a flag. We pass the wait reference to the thread
/// as a single word, as if it had been published in shared memory.
fn joins(
    instance: &Arc<Instance>,
    io: WaitRef,
    polls: bool,
) -> (Arc<AtomicBool>, thread::JoinHandle) {
    let joined = Arc::new(AtomicBool::new(false));
    let (theirs, says, word) = (Arc::clone(instance), Arc::clone(&joined), io.to_bits());
    let handle = spawn("joins", move || {
        let io = WaitRef::from_bits(word).expect("a reference");
        let mut session = theirs.session();
        join(&mut session, io, polls).expect("not cancelled");
        assert!(session.is_complete(io));
        says.store(true, Ordering::SeqCst);
    });
    (joined, handle)
}

#[test]
fn any_number_of_sessions_join_an_io_asleep_or_as_tasks() {
    check(|environment| {
        for weight in [Weight::Light, Weight::Heavy] {
            let instance = Arc::new(environment.start());
            let file = instance.file("a", 8);
            let mut session = instance.session();
            let mut slots = instance.slots_with(1, 1, vec![Arc::new(PassThrough(weight))]);
            let io = read(&mut session, &file, 3, 1, &mut slots, 0);
            let others: Vec<_> = (0..4).map(|at| joins(&instance, io, at % 2 == 0)).collect();
            for (_, thread) in others {
                thread.join().expect("a joiner");
            }
            wait_ok(&mut session, &mut slots, 0);
            assert_eq!(memory(&mut slots, 0), original(3, 1));
        }
    });
}

/// A wait reference may be published before its I/O has been submitted, so another session may
/// start waiting that early. It must nevertheless be woken when the I/O completes.
#[test]
fn a_staged_io_wakes_its_joiners_when_it_completes() {
    check(|environment| {
        for polls in WAYS {
            let instance = Arc::new(environment.start_with(|builder| builder.try_cached_below(0)));
            let file = instance.file("a", 8);
            let mut session = instance.session();
            let mut slots = instance.slots(1, 1);
            let mut batch = session.batch();
            let io = read(&mut batch, &file, 3, 1, &mut slots, 0);
            let (joined, thread) = joins(&instance, io, polls);
            if environment.is_simulated() {
                instance.quiesce();
                assert!(!joined.load(Ordering::SeqCst), "{environment:?}");
            }
            assert_eq!(instance.row(io).map(|row| row.state), Some("STAGED"));
            drop(batch);
            thread.join().expect("the joiner");
            wait_ok(&mut session, &mut slots, 0);
        }
    });
}

/// If a handle is released without being used, every session that has a wait reference to it must
/// see the I/O as complete, even if the handle is reused for another I/O right away.
#[test]
fn a_released_handle_wakes_its_joiners() {
    check(|environment| {
        for polls in WAYS {
            let instance = Arc::new(environment.start_with(|builder| builder.handles(1, 0, 0)));
            let file = instance.file("a", 8);
            let mut session = instance.session();
            let mut slots = instance.slots(1, 1);
            let io = session.acquire(Class::Foreground).expect("a handle");
            let reference = io.wait_ref();
            let (joined, thread) = joins(&instance, reference, polls);
            if environment.is_simulated() {
                instance.quiesce();
                assert!(!joined.load(Ordering::SeqCst), "{environment:?}");
            }
            io.release();
            if environment.is_simulated() {
                instance.quiesce();
                assert!(joined.load(Ordering::SeqCst), "the release has not woken the joiner");
            }
            let next = read(&mut session, &file, 1, 1, &mut slots, 0);
            assert_eq!(next.io_id(), reference.io_id());
            thread.join().expect("the joiner");
            wait_ok(&mut session, &mut slots, 0);
        }
    });
}

/// As before, but defining the I/O fails.
#[test]
fn a_refused_definition_wakes_the_joiners() {
    check(|environment| {
        let instance = Arc::new(environment.start());
        let file = instance.file("a", 8);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 1);
        let io = session.acquire(Class::Foreground).expect("a handle");
        let (_, thread) = joins(&instance, io.wait_ref(), true);
        if environment.is_simulated() {
            instance.quiesce();
        }
        io.read(&file, 0, 1 << 20, &mut slots, 0).expect_err("more than the slot's memory");
        thread.join().expect("the joiner");
    });
}

/// A callback that stops in the first I/O's completion until the test releases it.
struct StopsFirst {
    first: AtomicBool,
    gate: PausePoint,
}

impl Callback for StopsFirst {
    fn name(&self) -> &'static str {
        "stops first"
    }
    fn weight(&self) -> Weight {
        Weight::Heavy
    }
    fn complete(&self, _io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        if !self.first.swap(true, Ordering::SeqCst) {
            self.gate.wait();
        }
        prior
    }
}

/// A session that joined a heavy I/O must complete it itself if the issuer doesn't wait and every
/// helper is busy.
#[test]
fn a_joiner_completes_a_heavy_io_itself() {
    let case = |environment: Environment| {
        for polls in WAYS {
            let only = WorkerSettings { min: 1, max: 1, ..WorkerSettings::default() };
            let instance = Arc::new(environment.start_with(|builder| builder.workers(only)));
            let file = instance.file_on("a", 8, 1);
            let mut session = instance.session();
            let gate = PausePoint::default();
            let stops = StopsFirst { first: AtomicBool::new(false), gate: gate.clone() };
            let mut slots = instance.slots_with(2, 1, vec![Arc::new(stops)]);
            let first = read(&mut session, &file, 0, 1, &mut slots, 0);
            gate.wait_for_arrivals(1);
            instance.disk.hold(1);
            let second = read(&mut session, &file, 5, 1, &mut slots, 1);
            let (joined, thread) = joins(&instance, second, polls);
            if environment.is_simulated() {
                // The joiner sleeps before the result arrives.
                instance.quiesce();
                assert!(!joined.load(Ordering::SeqCst), "{environment:?}");
            }
            instance.disk.release(1);
            thread.join().expect("the joiner");
            assert!(!session.is_complete(first), "the only helper is stopped");
            gate.release();
            wait_ok(&mut session, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 1);
            assert_eq!(memory(&mut slots, 1), original(5, 1));
        }
    };
    check_seeds(&[MethodKind::Custom], 60, case);
    case(Environment::real(MethodKind::IoUring));
}

/// A session that was woken to complete a heavy I/O may not get to run for a long time. In that
/// case, a helper must complete the I/O instead.
#[test]
fn a_heavy_io_with_a_joiner_that_does_not_run_is_completed_by_a_helper() {
    let case = |environment: Environment| {
        let instance = environment.start();
        let file = instance.file_on("a", 8, 1);
        instance.disk.hold(1);
        let (mut session, mut other) = (instance.session(), instance.session());
        let mut slots = instance.slots_with(1, 1, vec![Arc::new(PassThrough(Weight::Heavy))]);
        let waker = Waker::from(Arc::new(Count::default()));
        let io = read(&mut session, &file, 1, 1, &mut slots, 0);
        let mut wait = other.polled_wait();
        let polled = other.poll_join(&mut Context::from_waker(&waker), &mut wait, io);
        assert!(polled.is_pending() || !environment.is_simulated(), "the mount hangs");
        instance.disk.release(1);
        instance.wait_until("the completion", || session.is_complete(io));
        wait_ok(&mut session, &mut slots, 0);
    };
    check_seeds(&ASYNCHRONOUS, 60, case);
    check_real(case);
}

/// After a join has been cancelled, or its session has been dropped, no trace of the join may
/// remain. In particular, the I/O must not wake a session that gets the same id later.
#[test]
fn an_abandoned_join_leaves_nothing_behind() {
    check_seeds(&ASYNCHRONOUS, 60, |environment| {
        for cancels in [false, true] {
            let instance = environment.start();
            let file = instance.file_on("a", 8, 1);
            instance.disk.hold(1);
            let (mut session, mut other) = (instance.session(), instance.session());
            let mut slots = instance.slots(1, 1);
            let io = read(&mut session, &file, 1, 1, &mut slots, 0);
            instance.disk.wait_stuck(1);
            let (count, late) = (Arc::new(Count::default()), Arc::new(Count::default()));
            let (waker, late_waker) = (Waker::from(count.clone()), Waker::from(late.clone()));
            let mut context = Context::from_waker(&waker);
            let mut wait = other.polled_wait();
            assert_eq!(other.poll_join(&mut context, &mut wait, io), Poll::Pending);
            if cancels {
                other.canceller().cancel();
                assert_eq!(count.0.load(Ordering::SeqCst), 1);
                let polled = other.poll_join(&mut context, &mut wait, io);
                assert_eq!(polled, Poll::Ready(Err(Cancelled)));
                other.clear_cancel();
            } else {
                let id = other.id();
                drop(other);
                other = instance.session();
                assert_eq!(other.id(), id);
            }
            let mut context = Context::from_waker(&late_waker);
            let mut wait = other.polled_wait();
            assert_eq!(other.poll_for(&mut context, &mut wait, || false), Poll::Pending);
            instance.disk.release(1);
            wait_ok(&mut session, &mut slots, 0);
            instance.settle();
            assert_eq!(late.0.load(Ordering::SeqCst), 0, "{environment:?} cancels {cancels}");
        }
    });
}

/// A task may poll for several things at the same time. If one of the polls is ready, the wakers
/// registered by the polls that are still pending must not be removed.
#[test]
fn a_ready_poll_leaves_the_waker_of_a_pending_one() {
    check_seeds(&ASYNCHRONOUS, 60, |environment| {
        let instance = environment.start();
        let (slow, fast) = (instance.file_on("slow", 8, 1), instance.file_on("fast", 8, 2));
        instance.disk.hold(1);
        let (mut session, mut other) = (instance.session(), instance.session());
        let (mut slots, mut others) = (instance.slots(1, 1), instance.slots(1, 1));
        let io = read(&mut session, &slow, 1, 1, &mut slots, 0);
        let own = read(&mut other, &fast, 2, 1, &mut others, 0);
        instance.wait_until("the fast one", || session.is_complete(own));
        let (mut polled, mut wait) = (0, other.polled_wait());
        block_on(poll_fn(|context| {
            polled += 1;
            let joined = other.poll_join(context, &mut wait, io);
            if others.pending() > 0 {
                let own = other.poll(context, &mut wait, &mut others, 0);
                assert!(own.is_ready(), "{environment:?}");
                assert!(other.poll_for(context, &mut wait, || true).is_ready());
            }
            // The task has registered its waker.
            instance.disk.release(1);
            joined
        }))
        .expect("not cancelled");
        assert!(polled <= 3, "{polled}");
        wait_ok(&mut session, &mut slots, 0);
    });
}

/// A session can be notified by its number, wherever it is waiting. Its staged I/O must be
/// submitted before it sleeps.
#[test]
fn a_session_is_notified_by_its_number() {
    check(|environment| {
        for polls in WAYS {
            let instance = Arc::new(environment.start_with(|builder| builder.try_cached_below(0)));
            let file = instance.file("a", 8);
            let mut session = instance.session();
            let mut slots = instance.slots(1, 1);
            let granted = Arc::new(AtomicBool::new(false));
            let mut batch = session.batch();
            let io = read(&mut batch, &file, 2, 1, &mut slots, 0);
            let (notifiers, id) = (instance.aio.notifier(), batch.id());
            let (theirs, grants) = (Arc::clone(&instance), Arc::clone(&granted));
            let other = spawn("grants", move || {
                theirs.session().join(io).expect("not cancelled");
                grants.store(true, Ordering::SeqCst);
                notifiers.clone().notify(id);
                for unused in [0, 255, 256, u32::MAX] {
                    notifiers.notify(unused);
                }
            });
            let done = || granted.load(Ordering::SeqCst);
            let mut wait = batch.polled_wait();
            let waited = match polls {
                false => batch.wait_for(done),
                true => block_on(poll_fn(|context| batch.poll_for(context, &mut wait, done))),
            };
            waited.expect("not cancelled");
            assert!(done());
            drop(batch);
            other.join().expect("granted");
            wait_ok(&mut session, &mut slots, 0);
            let canceller = session.canceller();
            canceller.cancel();
            let polled =
                block_on(poll_fn(|context| session.poll_for(context, &mut wait, || false)));
            assert_eq!(polled, Err(Cancelled));
        }
    });
}

/// A task joins one I/O after another. At the time of the join, each I/O is just about to complete
/// or has just completed. The task must not miss a completion or a notification.
#[test]
fn a_task_that_joins_while_the_io_completes_is_woken() {
    let case = |environment: Environment| {
        let instance = environment.start();
        let file = instance.file("a", 8);
        let (mut session, mut other) = (instance.session(), instance.session());
        let mut slots = instance.slots(1, 1);
        let (notifiers, id, issuer) = (instance.aio.notifier(), other.id(), session.id());
        let (shown, followed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (published, follows) = (Arc::clone(&shown), Arc::clone(&followed));
        let theirs = notifiers.clone();
        let follower = spawn("follows", move || {
            let (mut last, mut wait) = (0, other.polled_wait());
            while last != u64::MAX {
                let news = || shown.load(Ordering::SeqCst) != last;
                let notified =
                    block_on(poll_fn(|context| other.poll_for(context, &mut wait, news)));
                notified.expect("not cancelled");
                last = shown.load(Ordering::SeqCst);
                if let Some(io) = WaitRef::from_bits(last).filter(|_| last != u64::MAX) {
                    join(&mut other, io, true).expect("not cancelled");
                    assert!(other.is_complete(io));
                }
                follows.store(last, Ordering::SeqCst);
                theirs.notify(issuer);
            }
        });
        for block in 0..6 {
            let io = read(&mut session, &file, block, 1, &mut slots, 0);
            published.store(io.to_bits(), Ordering::SeqCst);
            notifiers.notify(id);
            wait_ok(&mut session, &mut slots, 0);
            // Nothing else wakes this task.
            let followed = || followed.load(Ordering::SeqCst) == io.to_bits();
            session.wait_for(followed).expect("not cancelled");
        }
        published.store(u64::MAX, Ordering::SeqCst);
        notifiers.notify(id);
        follower.join().expect("the follower");
    };
    // Also use rare switches, so that a whole completion can happen during a single check.
    let matrix = Matrix::simulated(&ASYNCHRONOUS, 400).vary(|environment| {
        let switch_one_in = [3, 10, 30, 60][environment.seed.unwrap_or(0) as usize % 4];
        [Environment { switch_one_in, ..environment }]
    });
    matrix.run(case);
}

/// A method that records that its instance has shut down.
struct Ends(Arc<AtomicBool>);

impl Method for Ends {
    fn submit(&self, _core: &Arc<InFlight>, _batch: &mut Batch<'_>) {}
    fn shut_down(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn notifiers_do_not_keep_an_instance_from_ending() {
    let ended = Arc::new(AtomicBool::new(false));
    let custom = Arc::new(Ends(Arc::clone(&ended)));
    let aio = Builder::new().custom_method(custom).start().expect("starts");
    let session = aio.session().expect("a session");
    let (notifiers, id) = (aio.notifier(), session.id());
    drop(session);
    drop(aio);
    assert!(ended.load(Ordering::SeqCst));
    notifiers.notify(id);
}

/// A session reports the current I/O method.
#[test]
fn a_session_knows_the_method_in_force() {
    for method in REAL {
        let instance = Environment::real(method).start();
        let session = instance.session();
        assert_eq!(session.method(), method);
        for next in REAL {
            instance.aio.set_method(next);
            assert_eq!(session.method(), next);
        }
    }
}
