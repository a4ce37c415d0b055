//! Sessions that wait for I/O which others issued, and for news by number: asleep and as tasks, for
//! an I/O that is only staged, one whose handle is released unused, one whose result nobody takes.

use std::future::poll_fn;
use std::task::{Context, Poll, Wake, Waker};
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, thread};
use trunkline_aio::{
    Batch, Builder, Callback, Cancelled, Class, Completion, InFlight, Method, MethodKind, Outcome,
    Session, WaitRef, Weight, WorkerSettings,
};
use trunkline_sim::matrix::io::{
    PassThrough, check, check_real, check_seeds, memory, original, read, spawn, wait_ok,
};
use trunkline_sim::matrix::{Environment, Instance, REAL};
use trunkline_sim::{PausePoint, block_on};

/// Counts how often a task was woken.
#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Both ways to wait for somebody's I/O.
const WAYS: [bool; 2] = [false, true];

fn join(session: &mut Session, io: WaitRef, polls: bool) -> Result<(), Cancelled> {
    match polls {
        false => session.join(io),
        true => block_on(poll_fn(|context| session.poll_join(context, io))),
    }
}

/// A thread that joins an I/O, whose reference it gets as one word, and says when it is through.
fn joins(
    instance: &Arc<Instance>,
    io: WaitRef,
    polls: bool,
) -> (Arc<AtomicBool>, thread::JoinHandle) {
    let through = Arc::new(AtomicBool::new(false));
    let (theirs, says, word) = (Arc::clone(instance), Arc::clone(&through), io.to_bits());
    let handle = spawn("joins", move || {
        let io = WaitRef::from_bits(word).expect("a reference");
        let mut session = theirs.session();
        join(&mut session, io, polls).expect("not cancelled");
        assert!(session.is_complete(io));
        says.store(true, Ordering::SeqCst);
    });
    (through, handle)
}

#[test]
fn any_number_of_strangers_join_an_io_asleep_or_as_tasks() {
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

/// The reference is public before the I/O is submitted: who waits from then on is woken.
#[test]
fn a_staged_io_wakes_its_joiners_when_it_ends() {
    check(|environment| {
        for polls in WAYS {
            let instance = Arc::new(environment.start_with(|builder| builder.try_cached_below(0)));
            let file = instance.file("a", 8);
            let mut session = instance.session();
            let mut slots = instance.slots(1, 1);
            let mut batch = session.batch();
            let io = read(&mut batch, &file, 3, 1, &mut slots, 0);
            let (through, thread) = joins(&instance, io, polls);
            if environment.is_simulated() {
                instance.quiesce();
                assert!(!through.load(Ordering::SeqCst), "{environment:?}");
            }
            assert_eq!(instance.row(io).map(|row| row.state), Some("STAGED"));
            drop(batch);
            thread.join().expect("the joiner");
            wait_ok(&mut session, &mut slots, 0);
        }
    });
}

/// A handle that is given back unused is over for whoever has its reference, also where the next
/// I/O of the same handle begins at once.
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
            let (through, thread) = joins(&instance, reference, polls);
            if environment.is_simulated() {
                instance.quiesce();
                assert!(!through.load(Ordering::SeqCst), "{environment:?}");
            }
            io.release();
            if environment.is_simulated() {
                instance.quiesce();
                assert!(through.load(Ordering::SeqCst), "before anything else happens");
            }
            let next = read(&mut session, &file, 1, 1, &mut slots, 0);
            assert_eq!(next.io_id(), reference.io_id());
            thread.join().expect("the joiner");
            wait_ok(&mut session, &mut slots, 0);
        }
    });
}

/// So is one whose definition failed.
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

/// Stands in the completion of the first I/O until it is let go.
struct Stands {
    first: AtomicBool,
    gate: PausePoint,
}

impl Callback for Stands {
    fn name(&self) -> &'static str {
        "stands"
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

/// Where results are reaped, a session that joined a heavy I/O completes it although its issuer
/// looks away and every helper is busy.
#[test]
fn a_joiner_completes_a_heavy_io_itself() {
    let case = |environment: Environment| {
        for polls in WAYS {
            let only = WorkerSettings { min: 1, max: 1, ..WorkerSettings::default() };
            let instance = Arc::new(environment.start_with(|builder| builder.workers(only)));
            let file = instance.file_on("a", 8, 1);
            let mut session = instance.session();
            let gate = PausePoint::default();
            let stands = Stands { first: AtomicBool::new(false), gate: gate.clone() };
            let mut slots = instance.slots_with(2, 1, vec![Arc::new(stands)]);
            let first = read(&mut session, &file, 0, 1, &mut slots, 0);
            gate.wait_for_arrivals(1);
            instance.disk.hold(1);
            let second = read(&mut session, &file, 5, 1, &mut slots, 1);
            let (through, thread) = joins(&instance, second, polls);
            if environment.is_simulated() {
                // Asleep before the result is there.
                instance.quiesce();
                assert!(!through.load(Ordering::SeqCst), "{environment:?}");
            }
            instance.disk.release(1);
            thread.join().expect("the joiner");
            assert!(!session.is_complete(first), "the only helper still stands");
            gate.release();
            wait_ok(&mut session, &mut slots, 0);
            wait_ok(&mut session, &mut slots, 1);
            assert_eq!(memory(&mut slots, 1), original(5, 1));
        }
    };
    check_seeds(&[MethodKind::Custom], 60, case);
    case(Environment::real(MethodKind::IoUring));
}

/// Who is woken for a heavy I/O and does not come does not keep it from being completed.
#[test]
fn a_heavy_io_whose_joiner_is_gone_is_completed_by_a_helper() {
    let case = |environment: Environment| {
        let instance = environment.start();
        let file = instance.file_on("a", 8, 1);
        instance.disk.hold(1);
        let (mut session, mut other) = (instance.session(), instance.session());
        let mut slots = instance.slots_with(1, 1, vec![Arc::new(PassThrough(Weight::Heavy))]);
        let waker = Waker::from(Arc::new(Count::default()));
        let io = read(&mut session, &file, 1, 1, &mut slots, 0);
        let polled = other.poll_join(&mut Context::from_waker(&waker), io);
        assert!(polled.is_pending() || !environment.is_simulated(), "the mount hangs");
        instance.disk.release(1);
        instance.wait_until("the completion", || session.is_complete(io));
        wait_ok(&mut session, &mut slots, 0);
    };
    for method in [MethodKind::Worker, MethodKind::Custom] {
        check_seeds(&[method], 60, case);
    }
    check_real(case);
}

/// A join that was cancelled, or given up with its session, is forgotten: the I/O's end wakes nobody
/// who does not wait for it any more.
#[test]
fn a_join_that_is_given_up_leaves_nothing_behind() {
    for method in [MethodKind::Worker, MethodKind::Custom] {
        check_seeds(&[method], 60, |environment| {
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
                assert_eq!(other.poll_join(&mut context, io), Poll::Pending);
                if cancels {
                    other.canceller().cancel();
                    assert_eq!(count.0.load(Ordering::SeqCst), 1);
                    assert_eq!(other.poll_join(&mut context, io), Poll::Ready(Err(Cancelled)));
                    other.clear_cancel();
                } else {
                    let id = other.id();
                    drop(other);
                    other = instance.session();
                    assert_eq!(other.id(), id);
                }
                let mut context = Context::from_waker(&late_waker);
                assert_eq!(other.poll_for(&mut context, || false), Poll::Pending);
                instance.disk.release(1);
                wait_ok(&mut session, &mut slots, 0);
                instance.settle();
                assert_eq!(late.0.load(Ordering::SeqCst), 0, "{environment:?} cancels {cancels}");
            }
        });
    }
}

/// A task may poll for several things in one go; that one of them is ready does not take away the
/// waker that another one has left.
#[test]
fn a_ready_poll_leaves_the_waker_of_a_pending_one() {
    for method in [MethodKind::Worker, MethodKind::Custom] {
        check_seeds(&[method], 60, |environment| {
            let instance = environment.start();
            let (slow, fast) = (instance.file_on("slow", 8, 1), instance.file_on("fast", 8, 2));
            instance.disk.hold(1);
            let (mut session, mut other) = (instance.session(), instance.session());
            let (mut slots, mut others) = (instance.slots(1, 1), instance.slots(1, 1));
            let io = read(&mut session, &slow, 1, 1, &mut slots, 0);
            let own = read(&mut other, &fast, 2, 1, &mut others, 0);
            instance.wait_until("the fast one", || session.is_complete(own));
            let mut polled = 0;
            block_on(poll_fn(|context| {
                polled += 1;
                let joined = other.poll_join(context, io);
                if others.pending() > 0 {
                    assert!(other.poll(context, &mut others, 0).is_ready(), "{environment:?}");
                    assert!(other.poll_for(context, || true).is_ready());
                }
                // Now the task has said that it sleeps.
                instance.disk.release(1);
                joined
            }))
            .expect("not cancelled");
            assert!(polled <= 3, "{polled}");
            wait_ok(&mut session, &mut slots, 0);
        });
    }
}

/// Whoever knows a session's number can wake it wherever it waits; what it had staged goes out.
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
                for nobody in [0, 255, 256, u32::MAX] {
                    notifiers.notify(nobody);
                }
            });
            let done = || granted.load(Ordering::SeqCst);
            let waited = match polls {
                false => batch.wait_for(done),
                true => block_on(poll_fn(|context| batch.poll_for(context, done))),
            };
            waited.expect("not cancelled");
            assert!(done());
            drop(batch);
            other.join().expect("granted");
            wait_ok(&mut session, &mut slots, 0);
            let canceller = session.canceller();
            canceller.cancel();
            let polled = block_on(poll_fn(|context| session.poll_for(context, || false)));
            assert_eq!(polled, Err(Cancelled));
        }
    });
}

/// A task that joins one I/O after another, each about to end or just over, misses none of the ends
/// nor of the news.
#[test]
fn a_task_that_joins_as_the_io_ends_is_not_forgotten() {
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
            let mut last = 0;
            while last != u64::MAX {
                let news = || shown.load(Ordering::SeqCst) != last;
                let told = block_on(poll_fn(|context| other.poll_for(context, news)));
                told.expect("not cancelled");
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
            // Nothing else wakes it meanwhile.
            let followed = || followed.load(Ordering::SeqCst) == io.to_bits();
            session.wait_for(followed).expect("not cancelled");
        }
        published.store(u64::MAX, Ordering::SeqCst);
        notifiers.notify(id);
        follower.join().expect("the follower");
    };
    for method in [MethodKind::Worker, MethodKind::Custom] {
        for seed in 0..400 {
            // With rare switches too: what is to be met is one look, and a whole completion in it.
            let switch_one_in = [3, 10, 30, 60][seed as usize % 4];
            let environment = Environment::simulated(method, seed);
            Environment { switch_one_in, ..environment }.run(case);
        }
    }
}

/// Says when its instance has ended.
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

/// The method in force, as a session sees it.
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
