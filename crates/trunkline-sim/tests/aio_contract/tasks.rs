//! Sessions used by async tasks: they poll for any I/O and for a handle, and are woken by
//! notifications.
//!
//! The last cases test which objects a callback may own, and how a batch wakes workers.

use std::future::poll_fn;
use std::task::Poll;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{
    Aio, Callback, Cancelled, Class, Completion, MethodKind, Outcome, State, Status, Weight,
};
use trunkline_sim::matrix::io::{
    ASYNCHRONOUS, PassThrough, check, check_seeds, memory, original, read, spawn, wait_ok,
};
use trunkline_sim::{BLOCK, block_on};

/// A task needs to read more blocks than there are handles, so it has to poll both for free handles
/// and for results. It must never sleep inside the session.
#[test]
fn a_task_polls_for_handles_and_for_any_result() {
    check(|environment| {
        let instance = environment.start_with(|builder| builder.handles(4, 0, 0).session_quota(3));
        let file = instance.file("a", 20);
        let mut session = instance.session();
        session.set_may_block(false);
        let mut slots = instance.slots(8, 1);
        let mut wanted = [None; 8];
        let (mut next, mut got) = (0, 0);
        let mut wait = session.polled_wait();
        block_on(poll_fn(|context| {
            while next < 20 {
                let Some(slot) = slots.free_slot() else { break };
                match session.poll_acquire(context, &mut wait, Class::LookAhead) {
                    Poll::Pending => break,
                    Poll::Ready(io) => {
                        let io = io.expect("not cancelled");
                        let offset = u64::from(next) * BLOCK as u64;
                        io.read(&file, offset, BLOCK as u32, &mut slots, slot).expect("defined");
                        wanted[slot] = Some(next);
                        next += 1;
                    }
                }
            }
            while slots.pending() > 0 {
                match session.poll_any(context, &mut wait, &mut slots) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(result) => {
                        let (slot, outcome) = result.expect("not cancelled");
                        assert_eq!(outcome.status, Status::Ok);
                        let block = wanted[slot].take().expect("issued");
                        assert_eq!(memory(&mut slots, slot), original(block, 1));
                        got += 1;
                    }
                }
            }
            if next < 20 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        }));
        assert_eq!(got, 20);
        assert_eq!(session.waits().0, 0, "a task never sleeps in the session");
    });
}

/// A notification must wake a session just as its own I/O does. Its staged I/O must be submitted
/// before it sleeps.
#[test]
fn a_notification_wakes_a_session() {
    check(|environment| {
        let instance = Arc::new(environment.start_with(|builder| builder.try_cached_below(0)));
        let file = instance.file("a", 4);
        let mut session = instance.session();
        let mut slots = instance.slots(1, 1);
        let granted = Arc::new(AtomicBool::new(false));
        let mut batch = session.batch();
        let io = read(&mut batch, &file, 2, 1, &mut slots, 0);
        let (theirs, grants, waiter) = (Arc::clone(&instance), Arc::clone(&granted), batch.id());
        let other = spawn("grants", move || {
            // Notify the first session, but only after its staged read is complete.
            theirs.session().join(io).expect("not cancelled");
            grants.store(true, Ordering::SeqCst);
            theirs.aio.notifier().notify(waiter);
        });
        batch.wait_for(|| granted.load(Ordering::SeqCst)).expect("not cancelled");
        drop(batch);
        other.join().expect("grants");
        wait_ok(&mut session, &mut slots, 0);
        session.canceller().cancel();
        assert_eq!(session.wait_for(|| false), Err(Cancelled));
    });
}

/// A session that waits for n results must return as soon as n results are available. I/O on a
/// different set of slots must not affect this wait.
#[test]
fn a_wait_for_some_results_returns_when_they_are_there() {
    check(|environment| {
        for heavy in [false, true] {
            let instance = environment.start();
            let file = instance.file("a", 16);
            let mut session = instance.session();
            let callbacks = || -> Vec<Arc<dyn Callback>> {
                let weight = if heavy { Weight::Heavy } else { Weight::Light };
                vec![Arc::new(PassThrough(weight))]
            };
            let (mut slots, mut others) =
                (instance.slots_with(8, 1, callbacks()), instance.slots_with(4, 1, callbacks()));
            {
                let mut batch = session.batch();
                for slot in 0..8 {
                    read(&mut batch, &file, slot, 1, &mut slots, slot as usize);
                    if slot < 4 {
                        read(&mut batch, &file, 8 + slot, 1, &mut others, slot as usize);
                    }
                }
            }
            for count in [3, 5, 8, 100] {
                session.wait_some(&slots, count).expect("not cancelled");
                assert!(
                    slots.done_count() >= count.min(8),
                    "{environment:?}: {}",
                    slots.done_count()
                );
            }
            session.wait_some(&others, 4).expect("not cancelled");
            for slot in 0..8 {
                wait_ok(&mut session, &mut slots, slot);
                assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
            }
            session.wait_some(&slots, 1).expect("immediately: nothing is pending");
            while others.pending() > 0 {
                session.wait_any(&mut others).expect("not cancelled");
            }
            assert_eq!(others.done_count(), 0);
        }
    });
}

/// A wait for n results is cancelled. The session must forget this n, or else it would delay the
/// next wait.
#[test]
fn a_cancelled_wait_for_some_does_not_delay_the_next_wait() {
    check_seeds(&ASYNCHRONOUS, 30, |environment| {
        let instance = environment.start();
        let (slow, fast) = (instance.file_on("slow", 8, 1), instance.file_on("fast", 8, 2));
        instance.disk.hold(1);
        let mut session = instance.session();
        let mut slots = instance.slots(4, 1);
        for slot in 0..2 {
            read(&mut session, &slow, slot, 1, &mut slots, slot as usize);
        }
        read(&mut session, &fast, 2, 1, &mut slots, 2);
        let canceller = session.canceller();
        let cancel = spawn("cancel", move || {
            trunkline_sim::pause(std::time::Duration::from_millis(1));
            canceller.cancel();
        });
        assert_eq!(session.wait_some(&slots, 3), Err(Cancelled));
        cancel.join().expect("cancels");
        session.clear_cancel();
        assert_eq!(slots.done_count(), 1);
        assert_eq!(session.wait_any(&mut slots).expect("not cancelled").0, 2);
        read(&mut session, &fast, 3, 1, &mut slots, 3);
        assert_eq!(session.wait_any(&mut slots).expect("not cancelled").0, 3);
        instance.disk.release(1);
        session.wait_some(&slots, 2).expect("not cancelled");
        assert_eq!(slots.done_count(), 2);
    });
}

/// A callback that records which thread drops it. It also owns the kinds of objects that a callback
/// may own.
struct Owner {
    dropped_by: Arc<Mutex<Option<String>>>,
    aio: Option<Aio>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Last, because it may end the instance.
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        *self.dropped_by.lock() = Some(name);
        drop(self.aio.take());
    }
}

impl Callback for Owner {
    fn name(&self) -> &'static str {
        "owner"
    }
    fn weight(&self) -> Weight {
        Weight::Light
    }
    fn complete(&self, _io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        prior
    }
}

/// The thread that completes an I/O may end up with the last reference to its slots. It must not
/// run the destructors of the callbacks itself, because they are supplied by the embedder and may
/// block.
#[test]
fn callbacks_of_dropped_slots_are_dropped_by_a_worker() {
    check_seeds(&[MethodKind::Custom], 30, |environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let dropped_by = Arc::new(Mutex::new(None));
        let owner = Owner { dropped_by: Arc::clone(&dropped_by), aio: None };
        let mut session = instance.session();
        let mut slots = instance.slots_with(1, 1, vec![Arc::new(owner)]);
        instance.disk.hold(1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        instance.disk.wait_stuck(1);
        drop(slots);
        assert_eq!(*dropped_by.lock(), None, "the I/O still owns the callbacks");
        instance.disk.release(1);
        instance.wait_until("dropped", || dropped_by.lock().is_some());
        let name = dropped_by.lock().clone().expect("dropped");
        assert!(name.starts_with("aio worker"), "dropped by {name}");
    });
}

/// The callback of an in-flight I/O may own the last clone of the instance. In that case one of the
/// instance's own threads shuts the instance down. It must not wait for itself to exit.
#[test]
fn an_instance_may_be_ended_by_its_own_worker() {
    check_seeds(&ASYNCHRONOUS, 30, |environment| {
        let instance = environment.start();
        let file = instance.file("a", 4);
        let dropped_by = Arc::new(Mutex::new(None));
        let aio = Some(instance.aio.clone());
        let owner = Owner { dropped_by: Arc::clone(&dropped_by), aio };
        let mut session = instance.session();
        let mut slots = instance.slots_with(1, 1, vec![Arc::new(owner)]);
        instance.disk.hold(1);
        read(&mut session, &file, 1, 1, &mut slots, 0);
        instance.disk.wait_stuck(1);
        let probe = Arc::clone(&instance.probe);
        // Dropping the instance releases the mount.
        drop((slots, session, file, instance));
        // If shutdown hung, the scheduler would report a deadlock.
        trunkline_sim::pause(std::time::Duration::from_secs(1));
        assert_eq!(probe.transitions(State::CompletedLocal, State::Idle), 1);
        assert!(dropped_by.lock().is_some());
    });
}

/// A batch must wake only one worker, namely the idle worker with the lowest number. That worker
/// wakes the next one if there is more work. In this test, the scheduler doesn't switch to another
/// thread until the current one sleeps. So the first worker to execute an I/O must be the one that
/// the batch woke.
#[test]
fn a_batch_wakes_one_worker() {
    static OTHER_WORKERS: AtomicU32 = AtomicU32::new(0);
    for seed in 0..40 {
        let environment = trunkline_sim::matrix::Environment {
            switch_one_in: u32::MAX,
            ..trunkline_sim::matrix::Environment::simulated(MethodKind::Worker, seed)
        };
        environment.run(move |environment| {
            let workers = trunkline_aio::WorkerSettings {
                min: 4,
                ..trunkline_aio::WorkerSettings::default()
            };
            let instance = environment.start_with(|builder| builder.workers(workers));
            instance.wait_until("four workers", || instance.aio.worker_count() == 4);
            instance.quiesce();
            let file = instance.file("a", 16);
            let first = Arc::new(Mutex::new(None));
            let executed = Arc::clone(&first);
            instance.probe.change_results(move |_, raw| {
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                executed.lock().get_or_insert(name);
                raw
            });
            let mut session = instance.session();
            let mut slots = instance.slots(16, 1);
            {
                let mut batch = session.batch();
                for slot in 0..16 {
                    read(&mut batch, &file, slot, 1, &mut slots, slot as usize);
                }
            }
            for slot in 0..16 {
                wait_ok(&mut session, &mut slots, slot);
            }
            let lowest = first.lock().as_deref() == Some("aio worker 0");
            OTHER_WORKERS.fetch_add(u32::from(!lowest), Ordering::SeqCst);
        });
    }
    assert_eq!(OTHER_WORKERS.load(Ordering::SeqCst), 0, "other workers were woken too");
}
