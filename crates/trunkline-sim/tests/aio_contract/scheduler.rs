//! Tests of the deterministic scheduler itself. It must be able to repeat a run exactly, and it
//! must find the kinds of bugs that the suites rely on it to find.
//!
//! A test tool that can't fail proves nothing, so each case here runs code with a known bug.

use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::facade::{Arc, Futex, FutexWait, Mutex, channel, random, sched, thread};
use trunkline_sim::matrix::io::{memory, original, read, spawn, wait_ok};
use trunkline_sim::matrix::{Environment, SIMULATED};
use trunkline_sim::pause;

/// Two runs with the same seed must switch threads at exactly the same points and take the same
/// amount of virtual time. Otherwise we couldn't reproduce a failure from its seed.
#[test]
fn the_same_seed_gives_the_same_run() {
    let once = |method, seed| {
        let report = Environment::simulated(method, seed).run(|environment| {
            let instance = environment.start();
            let file = instance.file("a", 16);
            let mut session = instance.session();
            let mut slots = instance.slots(16, 1);
            for slot in 0..16 {
                read(&mut session, &file, slot, 1, &mut slots, slot as usize);
            }
            for slot in 0..16 {
                wait_ok(&mut session, &mut slots, slot);
                assert_eq!(memory(&mut slots, slot), original(slot as u32, 1));
            }
        });
        report.expect("a simulated run")
    };
    for method in SIMULATED {
        let mut prints = Vec::new();
        for seed in 0..10 {
            let (one, two) = (once(method, seed), once(method, seed));
            let all = |r: sched::Report| (r.fingerprint, r.steps, r.switches, r.nanos);
            assert_eq!(all(one), all(two), "{method} seed {seed}");
            prints.push(one.fingerprint);
        }
        prints.sort_unstable();
        prints.dedup();
        // `sync` starts no workers, so its runs hardly differ.
        let least = if method == trunkline_aio::MethodKind::Sync { 1 } else { 10 };
        assert!(prints.len() >= least, "{method}: different seeds are different runs");
    }
}

/// Runs `body` under the scheduler. Returns the failure, if any.
fn failure(seed: u64, body: impl FnOnce() + Send + 'static) -> Option<sched::Failure> {
    let config = sched::Config { steps_max: 100_000, ..sched::Config::new(seed) };
    sched::run(config, body).err()
}

/// When no thread can run and no timeout is pending, the run must fail immediately and list the
/// blocked threads.
#[test]
fn a_deadlock_is_found_and_its_tasks_are_named() {
    let found = failure(7, || {
        let never = Arc::new(Futex::new(0));
        let other = Arc::clone(&never);
        drop(spawn("left alone", move || {
            other.wait(0, None);
        }));
        never.wait(0, None);
    });
    let text = found.expect("a deadlock").to_string();
    assert!(text.starts_with("seed 7: deadlock"), "{text}");
    assert!(text.contains("left alone") && text.contains("main"), "{text}");
}

/// Two threads take two locks in opposite orders. Some seed must hit the interleaving that
/// deadlocks.
#[test]
fn a_lock_taken_in_two_orders_is_found() {
    let found = (0..200).find_map(|seed| {
        failure(seed, || {
            let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
            let (a2, b2) = (Arc::clone(&a), Arc::clone(&b));
            let thread = spawn("other order", move || {
                let _first = b2.lock();
                let _second = a2.lock();
            });
            {
                let _first = a.lock();
                let _second = b.lock();
            }
            thread.join().expect("ends");
        })
    });
    assert!(found.expect("some seed finds it").message.starts_with("deadlock"));
}

/// A thread that only yields never blocks, so the number of steps is limited.
#[test]
fn a_livelock_is_found() {
    let found = failure(1, || {
        loop {
            thread::yield_now();
        }
    });
    assert!(found.expect("a livelock").message.starts_with("livelock"));
}

#[test]
fn a_panic_in_any_task_fails_the_run() {
    let found = failure(3, || {
        // Unlike `panic!`, this doesn't run the hook that prints a backtrace.
        let body = || std::panic::resume_unwind(Box::new("on purpose"));
        drop(spawn("unlucky", body));
        pause(Duration::from_secs(1));
    });
    assert_eq!(found.expect("a panic").message, "task unlucky panicked: on purpose");
}

/// The classic lost wake-up. The waiter checks the condition first, and reads the futex word only
/// afterwards. If the condition becomes true between the two steps, the waiter misses the wake-up.
fn wait_wrongly(word: &Futex, ready: &AtomicU32) {
    while ready.load(Ordering::SeqCst) == 0 {
        let seen = word.word().load(Ordering::SeqCst);
        word.wait(seen, None);
    }
}

/// The correct order. The waiter reads the futex word before it checks the condition, so if the
/// condition becomes true after the check, the wait returns immediately.
fn wait_rightly(word: &Futex, ready: &AtomicU32) {
    loop {
        let seen = word.word().load(Ordering::SeqCst);
        if ready.load(Ordering::SeqCst) == 1 {
            return;
        }
        word.wait(seen, None);
    }
}

/// Runs one waiter and one thread that wakes it.
fn toy(seed: u64, waiter: fn(&Futex, &AtomicU32)) -> Option<sched::Failure> {
    failure(seed, move || {
        let shared = Arc::new((Futex::new(0), AtomicU32::new(0)));
        let theirs = Arc::clone(&shared);
        let thread = spawn("waiter", move || waiter(&theirs.0, &theirs.1));
        shared.1.store(1, Ordering::SeqCst);
        shared.0.word().fetch_add(1, Ordering::SeqCst);
        shared.0.wake(1);
        thread.join().expect("ends");
    })
}

#[test]
fn a_lost_wake_up_is_found_and_the_correct_version_passes() {
    let found = (0..200).filter(|&seed| toy(seed, wait_wrongly).is_some()).count();
    assert!(found > 0, "no seed of 200 loses the wake-up");
    for seed in 0..200 {
        assert!(toy(seed, wait_rightly).is_none(), "seed {seed}");
    }
}

/// Three threads sleep for different times, up to 30 seconds of virtual time. They must wake up in
/// the right order, and the whole run must take hardly any longer than the longest sleep.
#[test]
fn virtual_time_passes_only_when_no_thread_can_run() {
    let report = sched::run(sched::Config::new(5), || {
        let begin = clock::now();
        let order = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = [30, 10, 20]
            .into_iter()
            .map(|seconds| {
                let order = Arc::clone(&order);
                spawn("sleeper", move || {
                    let futex = Futex::new(0);
                    let timeout = Some(Duration::from_secs(seconds));
                    assert_eq!(futex.wait(0, timeout), FutexWait::TimedOut);
                    order.lock().push(seconds);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        assert_eq!(*order.lock(), [10, 20, 30]);
        let passed = clock::now().since(begin);
        assert!(passed >= Duration::from_secs(30) && passed < Duration::from_secs(31));
    });
    let nanos = report.expect("no failure").nanos;
    assert!((30_000_000_000..31_000_000_000).contains(&nanos));
}

#[test]
fn channels_lose_nothing_under_any_schedule() {
    for seed in 0..100 {
        let result = sched::run(sched::Config::new(seed), || {
            let (sender, receiver) = channel::bounded(2);
            let senders: Vec<_> = (0..3_u64)
                .map(|number| {
                    let sender = sender.clone();
                    spawn("sender", move || {
                        for message in 0..5 {
                            sender.send(number * 10 + message).expect("received");
                        }
                    })
                })
                .collect();
            drop(sender);
            let mut got: Vec<u64> = std::iter::from_fn(|| receiver.receive()).collect();
            senders.into_iter().for_each(|thread| thread.join().expect("ends"));
            got.sort_unstable();
            let wanted: Vec<u64> = (0..3).flat_map(|n| (0..5).map(move |m| n * 10 + m)).collect();
            assert_eq!(got, wanted);
        });
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn seeds_come_from_the_scheduler() {
    let seeds = |seed| {
        let found = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&found);
        let body = move || theirs.lock().extend([random::seed(), random::seed()]);
        sched::run(sched::Config::new(seed), body).expect("no failure");
        std::mem::take(&mut *found.lock())
    };
    assert_eq!(seeds(1), seeds(1));
    assert_ne!(seeds(1), seeds(2));
}
