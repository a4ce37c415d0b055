//! Several tasks poll one session. Each has its own waker, must be woken whatever the others wait
//! for, and must not take a wake-up along when it gives up.

use crate::completers::Heavy;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::facade::thread::JoinHandle;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Class, MethodKind, PolledWait, Session};
use trunkline_sim::matrix::Instance;
use trunkline_sim::matrix::io::{
    ASYNCHRONOUS, check, check_asynchronous, check_seeds, memory, original, read, spawn, wait_ok,
};
use trunkline_sim::{BLOCK, CountingWaker, block_on};

/// A task that is polled by hand.
struct Task {
    wait: PolledWait,
    wakes: Arc<CountingWaker>,
    waker: Waker,
}

impl Task {
    fn new(session: &Session) -> Self {
        let (wakes, waker) = CountingWaker::new();
        Self { wait: session.polled_wait(), wakes, waker }
    }

    /// Polls for a handle. Returns whether the task would have got one.
    fn polls_for_handle(&mut self, session: &mut Session, class: Class) -> bool {
        let mut context = Context::from_waker(&self.waker);
        session.poll_acquire(&mut context, &mut self.wait, class).is_ready()
    }
}

/// Starts a thread whose session waits for a handle, and then releases it.
fn spawn_waiter(instance: &Arc<Instance>, class: Class) -> JoinHandle {
    let instance = Arc::clone(instance);
    spawn("waiter", move || {
        let mut session = instance.session();
        session.acquire(class).expect("not cancelled").release();
    })
}

/// A signal wakes all tasks of a session, each through its own waker, and only once.
#[test]
fn every_task_of_a_session_is_woken() {
    check(|environment| {
        let instance = environment.start();
        let mut session = instance.session();
        let mut tasks: Vec<_> = (0..20).map(|_| Task::new(&session)).collect();
        for _ in 0..2 {
            for task in &mut tasks {
                let mut context = Context::from_waker(&task.waker);
                let polled = session.poll_for(&mut context, &mut task.wait, || false);
                assert_eq!(polled, Poll::Pending);
            }
        }
        // A task that is gone must not be woken any more.
        let gone = tasks.remove(7);
        drop(gone.wait);
        instance.aio.notifier().notify(session.id());
        instance.aio.notifier().notify(session.id());
        assert_eq!(gone.wakes.count(), 0);
        assert!(tasks.iter().all(|task| task.wakes.count() == 1));
    });
}

/// One task waits for an I/O, and then another one polls. The completion must wake the first task,
/// even while the session's thread sleeps until more I/Os are complete.
#[test]
fn a_completion_wakes_the_task_that_polled_before_another() {
    check_asynchronous(|environment| {
        for sleeps in [false, true] {
            let instance = Arc::new(environment.start());
            let (slow, fast) = (instance.file_on("slow", 8, 1), instance.file_on("fast", 8, 2));
            instance.disk.hold(1);
            instance.disk.hold(2);
            let mut session = instance.session();
            let (mut slots, mut others) = (instance.slots(1, 1), instance.slots(2, 1));
            read(&mut session, &fast, 1, 1, &mut slots, 0);
            read(&mut session, &slow, 2, 1, &mut others, 0);
            read(&mut session, &slow, 3, 1, &mut others, 1);
            let (mut first, mut second) = (Task::new(&session), Task::new(&session));
            let mut context = Context::from_waker(&first.waker);
            assert!(session.poll(&mut context, &mut first.wait, &mut slots, 0).is_pending());
            let mut context = Context::from_waker(&second.waker);
            assert!(session.poll_any(&mut context, &mut second.wait, &mut others).is_pending());
            let (theirs, wakes) = (Arc::clone(&instance), Arc::clone(&first.wakes));
            let releases = spawn("releases", move || {
                theirs.quiesce();
                theirs.disk.release(2);
                theirs.wait_until("a wake-up", || wakes.count() > 0);
                theirs.disk.release(1);
            });
            if sleeps {
                session.wait_some(&others, 2).expect("not cancelled");
            }
            releases.join().expect("the first task is woken");
            wait_ok(&mut session, &mut slots, 0);
            wait_ok(&mut session, &mut others, 0);
            wait_ok(&mut session, &mut others, 1);
        }
    });
}

/// Reads the blocks one after the other, like a task of a runtime that shares a session.
fn read_blocks(
    instance: &trunkline_sim::matrix::Instance,
    session: &Mutex<Session>,
    blocks: impl Iterator<Item = u32>,
) {
    let file = instance.file("a", 40);
    let mut slots = instance.slots(1, 1);
    let mut wait = session.lock().polled_wait();
    for block in blocks {
        let offset = u64::from(block) * BLOCK as u64;
        block_on(poll_fn(|context| {
            let mut session = session.lock();
            let io = session.poll_acquire(context, &mut wait, Class::LookAhead);
            io.map(|io| {
                let io = io.expect("not cancelled");
                io.read(&file, offset, BLOCK as u32, &mut slots, 0).expect("defined");
            })
        }));
        let outcome =
            block_on(poll_fn(|context| session.lock().poll(context, &mut wait, &mut slots, 0)));
        assert_eq!(outcome.expect("not cancelled").count, BLOCK as u32);
        assert_eq!(memory(&mut slots, 0), original(block, 1));
    }
}

/// Tasks on threads of their own share two sessions and have fewer handles than they want. A lost
/// wake-up would leave one of them asleep.
#[test]
fn tasks_that_share_sessions_read_everything() {
    check(|environment| {
        let instance =
            Arc::new(environment.start_with(|builder| builder.handles(3, 0, 0).session_quota(2)));
        drop(instance.file("a", 40));
        let sessions = [(), ()].map(|()| {
            let mut session = instance.session();
            session.set_may_block(false);
            Arc::new(Mutex::new(session))
        });
        let tasks: Vec<_> = (0..6)
            .map(|number| {
                let (instance, session) = (Arc::clone(&instance), sessions[number % 2].clone());
                spawn("task", move || {
                    read_blocks(&instance, &session, (number as u32..40).step_by(6));
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().expect("reads everything"));
        assert_eq!(instance.aio.handles_in_use(), 0);
    });
}

/// A freed handle wakes a session. One of its tasks is dropped before it polls again, while the
/// session lives on. Another session must get the handle, or another task of this session.
#[test]
fn a_wait_that_is_dropped_after_its_wake_up_passes_it_on() {
    for has_other_task in [false, true] {
        check_seeds(&[MethodKind::Sync], 30, move |environment| {
            let instance = Arc::new(environment.start_with(|builder| builder.handles(1, 0, 0)));
            let (mut holder, mut session) = (instance.session(), instance.session());
            let handle = holder.acquire(Class::Foreground).expect("the only one");
            let (mut chosen, mut other) = (Task::new(&session), Task::new(&session));
            assert!(!chosen.polls_for_handle(&mut session, Class::Foreground));
            if has_other_task {
                assert!(!other.polls_for_handle(&mut session, Class::Foreground));
            }
            let waiter = spawn_waiter(&instance, Class::Foreground);
            instance.quiesce();
            handle.release();
            assert_eq!(chosen.wakes.count(), 1);
            assert_eq!(other.wakes.count(), u32::from(has_other_task));
            drop(chosen);
            waiter.join().expect("gets the handle");
            assert!(!has_other_task || other.polls_for_handle(&mut session, Class::Foreground));
        });
    }
}

/// A session is woken for a handle when it has reached its quota, through another of its tasks. It
/// can't use the handle, so it must pass the wake-up on.
#[test]
fn a_session_that_is_woken_at_its_quota_passes_the_wake_up_on() {
    check_asynchronous(|environment| {
        let instance =
            Arc::new(environment.start_with(|builder| builder.handles(2, 0, 0).session_quota(1)));
        let file = instance.file("a", 4);
        instance.disk.hold(1);
        let (mut a, mut b) = (instance.session(), instance.session());
        let one = a.acquire(Class::LookAhead).expect("free");
        let two = b.acquire(Class::LookAhead).expect("free");
        let (mut idle, mut session) = (instance.session(), instance.session());
        let (mut first, mut task) = (Task::new(&idle), Task::new(&session));
        assert!(!first.polls_for_handle(&mut idle, Class::Foreground));
        assert!(!task.polls_for_handle(&mut session, Class::LookAhead));
        let waiter = spawn_waiter(&instance, Class::Maintenance);
        instance.quiesce();
        // The first handle wakes the idle session, which does not poll. Another task takes it.
        one.release();
        assert_eq!((first.wakes.count(), task.wakes.count()), (1, 0));
        let mut slots = instance.slots(1, 1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        two.release();
        assert_eq!(task.wakes.count(), 1);
        assert!(!task.polls_for_handle(&mut session, Class::LookAhead));
        waiter.join().expect("gets the second handle");
        instance.disk.release(1);
        wait_ok(&mut session, &mut slots, 0);
    });
}

/// Two tasks of one session join the same I/O, and share the session's bit among its joiners. If
/// one task finds the I/O complete and removes the bit, the other must be woken nevertheless.
#[test]
fn a_join_that_ends_does_not_end_another_tasks_join() {
    check_seeds(&ASYNCHRONOUS, 300, |environment| {
        let instance = Arc::new(environment.start());
        let file = instance.file("a", 8);
        let mut issuer = instance.session();
        let mut slots = instance.slots(1, 1);
        let session = Arc::new(Mutex::new(instance.session()));
        for block in 0..4 {
            let io = read(&mut issuer, &file, block, 1, &mut slots, 0);
            let tasks = [(), ()].map(|()| {
                let session = Arc::clone(&session);
                spawn("joins", move || {
                    let mut wait = session.lock().polled_wait();
                    let joined = block_on(poll_fn(|context| {
                        session.lock().poll_join(context, &mut wait, io)
                    }));
                    joined.expect("not cancelled");
                })
            });
            tasks.into_iter().for_each(|task| task.join().expect("joins"));
            wait_ok(&mut issuer, &mut slots, 0);
        }
    });
}

/// A wait may outlive its session. The next session with its number must neither be woken for it,
/// nor lose its own position when the old wait is dropped.
#[test]
fn a_wait_that_outlives_its_session_has_no_effect_on_the_next_one() {
    check_seeds(&[MethodKind::Sync], 20, |environment| {
        let instance = environment.start_with(|builder| builder.handles(1, 0, 0));
        let (mut holder, mut session) = (instance.session(), instance.session());
        let handle = holder.acquire(Class::Foreground).expect("the only one");
        let mut old = Task::new(&session);
        assert!(!old.polls_for_handle(&mut session, Class::Foreground));
        let id = session.id();
        drop(session);
        let mut session = instance.session();
        assert_eq!(session.id(), id);
        let mut task = Task::new(&session);
        assert!(!task.polls_for_handle(&mut session, Class::Foreground));
        let foreign = catch_unwind(AssertUnwindSafe(|| {
            old.polls_for_handle(&mut session, Class::Foreground)
        }));
        assert!(foreign.is_err(), "polled with another session's wait");
        let Task { wait, wakes, .. } = old;
        drop(wait);
        handle.release();
        assert_eq!((wakes.count(), task.wakes.count()), (0, 1));
        assert!(task.polls_for_handle(&mut session, Class::Foreground));
    });
}

/// The condition of a wait panics just after a driver has assigned an I/O to the session. The I/O
/// must still be completed, or its handle would be lost.
#[test]
fn a_panic_in_a_condition_loses_no_handle() {
    static ASSIGNED: AtomicU32 = AtomicU32::new(0);
    check_seeds(&[MethodKind::Custom], 40, |environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots_with(1, 1, vec![Arc::new(Heavy)]);
        instance.disk.hold(1);
        let io = read(&mut session, &file, 1, 1, &mut slots, 0);
        instance.disk.wait_stuck(1);
        // The third test is made when the wait has been announced.
        let (tests, released) = (AtomicU32::new(0), AtomicBool::new(false));
        let waited = catch_unwind(AssertUnwindSafe(|| {
            session.wait_for(|| {
                if tests.fetch_add(1, Ordering::SeqCst) == 2 {
                    instance.disk.release(1);
                    released.store(true, Ordering::SeqCst);
                    instance.wait_until("a raw result", || {
                        let row = instance.row(io);
                        row.is_none_or(|row| row.state == "COMPLETED_IO")
                    });
                    instance.quiesce();
                    let left = instance.row(io).is_some();
                    ASSIGNED.fetch_add(u32::from(left), Ordering::SeqCst);
                    std::panic::resume_unwind(Box::new("a condition panics"));
                }
                false
            })
        }));
        assert!(waited.is_err() && released.load(Ordering::SeqCst));
        drop((session, slots));
        instance.wait_until("a free handle", || instance.aio.handles_in_use() == 0);
    });
    assert!(ASSIGNED.load(Ordering::SeqCst) > 0, "no I/O was assigned to the session");
}

/// The condition of a wait for a handle panics. The session must not keep its position in the
/// queue.
#[test]
fn a_panic_in_a_condition_leaves_no_position_in_a_queue() {
    check_seeds(&[MethodKind::Sync], 20, |environment| {
        let instance = Arc::new(environment.start_with(|builder| builder.handles(1, 0, 0)));
        let (mut holder, mut session) = (instance.session(), instance.session());
        let handle = holder.acquire(Class::Foreground).expect("the only one");
        let waited = catch_unwind(AssertUnwindSafe(|| {
            let condition = || std::panic::resume_unwind(Box::new("a condition panics"));
            session.acquire_unless(Class::Foreground, condition).map(drop)
        }));
        assert!(waited.is_err());
        let waiter = spawn_waiter(&instance, Class::Foreground);
        instance.quiesce();
        handle.release();
        waiter.join().expect("gets the handle, which the first session doesn't want");
        drop(session);
    });
}

/// A wait for a handle also ends with its condition, and a handle comes first.
#[test]
fn a_wait_for_a_handle_ends_with_its_condition() {
    check(|environment| {
        let instance = Arc::new(environment.start_with(|builder| builder.handles(1, 0, 0)));
        let (mut holder, mut session) = (instance.session(), instance.session());
        let handle = holder.acquire(Class::Foreground).expect("the only one");
        let (done, notifier) = (Arc::new(AtomicBool::new(false)), instance.aio.notifier());
        let (sets, id) = (Arc::clone(&done), session.id());
        let other = spawn("sets", move || {
            sets.store(true, Ordering::SeqCst);
            notifier.notify(id);
        });
        let condition = || done.load(Ordering::SeqCst);
        let none = session.acquire_unless(Class::Foreground, condition).expect("not cancelled");
        assert!(none.is_none());
        drop(none);
        other.join().expect("sets");
        handle.release();
        let some = session.acquire_unless(Class::Foreground, condition).expect("not cancelled");
        assert!(some.is_some());
    });
}
