//! Content locks: who waits for whom in the three modes, and that whoever gives a page back wakes
//! who wants it for himself.

use trunkline_aio::State;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_engine::pool::Strategy;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_sim::PausePoint;
use trunkline_sim::matrix::TestThread;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Stable,
    Write,
}

const MODES: [Mode; 3] = [Mode::Read, Mode::Stable, Mode::Write];

impl Mode {
    /// Whether both can be had at once.
    fn goes_with(self, other: Mode) -> bool {
        use Mode::{Read, Stable, Write};
        match (self, other) {
            (Write, _) | (_, Write) | (Stable, Stable) => false,
            (Read | Stable, Read) | (Read, Stable) => true,
        }
    }
}

/// Holds block 3 in a mode until the gate opens.
fn hold(cluster: &Arc<Cluster>, mode: Mode, gate: &PausePoint) -> TestThread<()> {
    let gate = gate.clone();
    cluster.spawn("holder", move |cluster| with_lock(cluster, mode, || gate.wait()))
}

fn with_lock(cluster: &Arc<Cluster>, mode: Mode, body: impl FnOnce()) {
    let mut backend = cluster.backend();
    let pin = backend.read(&cluster.relation(0), 3).expect("reads");
    match mode {
        Mode::Read => {
            let page = backend.read_lock(pin.page()).expect("locks");
            body();
            cluster.check_page(&page, 3);
        }
        Mode::Stable => {
            let page = backend.stable_lock(pin.page()).expect("locks");
            body();
            cluster.check_page(&page, 3);
        }
        Mode::Write => {
            let mut page = backend.write_lock(pin.page()).expect("locks");
            // Nobody sees this.
            page[6000] ^= 0xFF;
            body();
            page[6000] ^= 0xFF;
        }
    }
}

/// Every pair of modes: what goes together is had at once, what does not waits and is woken.
#[test]
fn modes_exclude_each_other_as_they_should() {
    check(Needs { seeds: 4, ..Needs::default() }, |cluster| {
        for first in MODES {
            for second in MODES {
                let gate = PausePoint::new();
                let holder = hold(cluster, first, &gate);
                gate.wait_for_arrivals(1);
                let got = Arc::new(AtomicBool::new(false));
                let theirs = Arc::clone(&got);
                let waiter = cluster.spawn("waiter", move |cluster| {
                    with_lock(cluster, second, || theirs.store(true, Ordering::SeqCst));
                });
                if first.goes_with(second) {
                    waiter.join();
                    assert!(got.load(Ordering::SeqCst));
                } else {
                    cluster.wait_pins(3, 2);
                    cluster.let_others_run();
                    assert!(!got.load(Ordering::SeqCst), "{first:?} and {second:?} at once");
                    gate.release();
                    waiter.join();
                }
                gate.release();
                holder.join();
            }
        }
    });
}

/// Many threads and all modes: a change is never seen half done.
#[test]
fn nobody_sees_a_change_in_the_making() {
    check(Needs { seeds: 12, ..Needs::default() }, |cluster| {
        let writers = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..6)
            .map(|at| {
                let writers = Arc::clone(&writers);
                cluster.spawn("locker", move |cluster| {
                    for round in 0..4 {
                        let mode = MODES[(at + round) % 3];
                        with_lock(cluster, mode, || {
                            let alone = u32::from(mode == Mode::Write);
                            let before = writers.fetch_add(alone, Ordering::SeqCst);
                            assert_eq!(before, 0, "{mode:?} beside a writer");
                            writers.fetch_sub(alone, Ordering::SeqCst);
                        });
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(TestThread::join);
    });
}

/// A cleanup lock waits for every other pin, and is woken by the last one's end: a point read's pin,
/// a stream's page, a stream that is dropped, pages that a stream lets go of.
#[test]
fn a_cleanup_lock_waits_for_pins_of_every_kind() {
    check(Needs::default(), |cluster| {
        for kind in 0..4 {
            cluster.pool.evict_all();
            let mut other = cluster.backend();
            let mut pin = None;
            let options = StreamOptions {
                full: true,
                strategy: Strategy::Normal,
                ..StreamOptions::default()
            };
            let mut stream = cluster.stream(&other, &[3, 4, 5], options);
            match kind {
                0 => pin = Some(other.read(&cluster.relation(0), 3).expect("reads")),
                _ => drop(stream.next(&mut other).expect("reads")),
            }
            let cleaner = cluster.spawn("cleaner", |cluster| {
                let mut backend = cluster.backend();
                let pin = backend.read(&cluster.relation(0), 3).expect("reads");
                drop(backend.cleanup_lock(pin.page()).expect("locks"));
            });
            cluster.wait_pins(3, 2);
            cluster.let_others_run();
            assert!(!cleaner.is_done());
            match kind {
                0 => drop(pin),
                1 => drop(stream.next(&mut other).expect("reads")),
                2 => stream.let_go(),
                _ => drop(stream),
            }
            cleaner.join();
        }
    });
}

/// Hard lesson 25: the last pin may be an I/O's, given back by a thread that never had one of its
/// own. Here a page whose first read failed is read again by a session that then vanishes, while
/// another one waits for the page to be free of pins.
#[test]
fn lesson_25_the_end_of_an_io_wakes_who_waits_for_the_last_pin() {
    check(Needs { seeds: 20, ..Needs::default() }, |cluster| {
        cluster.fail(3, 5);
        assert!(cluster.backend().read(&cluster.relation(0), 3).is_err());
        cluster.probe.keep_results();
        let step = cluster.probe.pause_at(State::HandedOut, |_| true);
        let held = cluster.hold(3);
        let starter = cluster.spawn("starter", |cluster| {
            let mut backend = cluster.backend();
            drop(cluster.start_read(&mut backend, &[3]));
        });
        step.wait();
        assert_eq!(cluster.pins(3), 1, "the starter's: no I/O yet");
        let dropper = cluster.spawn("dropper", |cluster| {
            cluster.backend().invalidate(&cluster.relation(0), 0).expect("not cancelled");
        });
        cluster.let_others_run();
        step.release();
        held.wait();
        if cluster.is_asynchronous() {
            starter.join();
            cluster.wait_pins(3, 1);
            cluster.let_others_run();
            assert!(!dropper.is_done(), "the I/O has the page");
            held.release();
        } else {
            held.release();
            starter.join();
        }
        dropper.join();
    });
}

/// The same by force: a cleaner that has a pin and waits, while the session that has the other one
/// gives it back in the moment in which it completes its I/O on the neighbouring block.
#[test]
fn lesson_25_pins_given_back_at_every_step_of_an_io_wake_the_cleaner() {
    check(Needs { seeds: 3, ..Needs::default() }, |cluster| {
        for state in
            [State::Submitted, State::CompletedIo, State::CompletedShared, State::CompletedLocal]
        {
            cluster.pool.evict_all();
            let mut other = cluster.backend();
            let pin = other.read(&cluster.relation(0), 3).expect("reads");
            let cleaner = cluster.spawn("cleaner", |cluster| {
                let mut backend = cluster.backend();
                let pin = backend.read(&cluster.relation(0), 3).expect("reads");
                drop(backend.cleanup_lock(pin.page()).expect("locks"));
            });
            cluster.wait_pins(3, 2);
            cluster.let_others_run();
            let held = cluster.probe.pause_at(state, |io| io.offset == 4 * 8192);
            let reader =
                cluster.spawn("reader", |cluster| cluster.read_ok(&mut cluster.backend(), 4));
            held.wait();
            assert!(!cleaner.is_done());
            drop(pin);
            cleaner.join();
            held.release();
            reader.join();
        }
    });
}

/// A lock cannot be had on a page that another one is cleaning, nor be waited for in vain.
#[test]
fn try_locks_answer_at_once() {
    check_simulated(Needs { seeds: 2, ..Needs::one_session() }, |cluster| {
        let mut backend = cluster.backend();
        let pin = backend.read(&cluster.relation(0), 3).expect("reads");
        let page = pin.page();
        let read = page.try_read().expect("free");
        assert!(page.try_read().is_some() && page.try_write().is_none());
        let stable = page.try_read_stable().expect("beside a reader");
        assert!(page.try_read_stable().is_none() && page.try_read().is_some());
        drop((read, stable));
        let write = page.try_write().expect("free");
        assert!(page.try_read().is_none() && page.try_read_stable().is_none());
        drop(write);
        let mut again = backend.cleanup_lock(page).expect("the only pin");
        again[100] ^= 0;
    });
}
