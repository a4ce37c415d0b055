//! Content locks: who waits for whom in the three modes, and that whoever gives a page back wakes
//! who wants it for himself.

use crate::rig::{Rig, Setup, check, check_simulated};
use trunkline_aio::State;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_engine::pool::Strategy;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_sim::Gate;
use trunkline_sim::rig::Task;

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
fn hold(rig: &Arc<Rig>, mode: Mode, gate: &Gate) -> Task<()> {
    let gate = gate.clone();
    rig.spawn("holder", move |rig| with_lock(rig, mode, || gate.pass()))
}

fn with_lock(rig: &Arc<Rig>, mode: Mode, body: impl FnOnce()) {
    let mut backend = rig.backend();
    let pin = backend.read(&rig.relation(0), 3).expect("reads");
    match mode {
        Mode::Read => {
            let page = backend.read_lock(pin.page()).expect("locks");
            body();
            rig.check_page(&page, 3);
        }
        Mode::Stable => {
            let page = backend.stable_lock(pin.page()).expect("locks");
            body();
            rig.check_page(&page, 3);
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
    check(Setup { seeds: 4, ..Setup::default() }, |rig| {
        for first in MODES {
            for second in MODES {
                let gate = Gate::new();
                let holder = hold(rig, first, &gate);
                gate.wait_for(1);
                let got = Arc::new(AtomicBool::new(false));
                let theirs = Arc::clone(&got);
                let waiter = rig.spawn("waiter", move |rig| {
                    with_lock(rig, second, || theirs.store(true, Ordering::SeqCst));
                });
                if first.goes_with(second) {
                    waiter.join();
                    assert!(got.load(Ordering::SeqCst));
                } else {
                    rig.wait_pins(3, 2);
                    rig.let_others_go();
                    assert!(!got.load(Ordering::SeqCst), "{first:?} and {second:?} at once");
                    gate.open();
                    waiter.join();
                }
                gate.open();
                holder.join();
            }
        }
    });
}

/// Many threads and all modes: a change is never seen half done.
#[test]
fn nobody_sees_a_change_in_the_making() {
    check(Setup { seeds: 12, ..Setup::default() }, |rig| {
        let writers = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..6)
            .map(|at| {
                let writers = Arc::clone(&writers);
                rig.spawn("locker", move |rig| {
                    for round in 0..4 {
                        let mode = MODES[(at + round) % 3];
                        with_lock(rig, mode, || {
                            let alone = u32::from(mode == Mode::Write);
                            let before = writers.fetch_add(alone, Ordering::SeqCst);
                            assert_eq!(before, 0, "{mode:?} beside a writer");
                            writers.fetch_sub(alone, Ordering::SeqCst);
                        });
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(Task::join);
    });
}

/// A cleanup lock waits for every other pin, and is woken by the last one's end: a point read's pin,
/// a stream's page, a stream that is dropped, pages that a stream lets go of.
#[test]
fn a_cleanup_lock_waits_for_pins_of_every_kind() {
    check(Setup::default(), |rig| {
        for kind in 0..4 {
            rig.pool.evict_all();
            let mut other = rig.backend();
            let mut pin = None;
            let options = StreamOptions {
                full: true,
                strategy: Strategy::Normal,
                ..StreamOptions::default()
            };
            let mut stream = rig.stream(&other, &[3, 4, 5], options);
            match kind {
                0 => pin = Some(other.read(&rig.relation(0), 3).expect("reads")),
                _ => drop(stream.next(&mut other).expect("reads")),
            }
            let cleaner = rig.spawn("cleaner", |rig| {
                let mut backend = rig.backend();
                let pin = backend.read(&rig.relation(0), 3).expect("reads");
                drop(backend.cleanup_lock(pin.page()).expect("locks"));
            });
            rig.wait_pins(3, 2);
            rig.let_others_go();
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
    check(Setup { seeds: 20, ..Setup::default() }, |rig| {
        rig.fail(3, 5);
        assert!(rig.backend().read(&rig.relation(0), 3).is_err());
        rig.hooks.keep_results();
        let step = rig.hooks.stop(State::HandedOut, |_| true);
        let held = rig.hold(3);
        let starter = rig.spawn("starter", |rig| {
            let mut backend = rig.backend();
            drop(rig.start_read(&mut backend, &[3]));
        });
        step.wait();
        assert_eq!(rig.pins(3), 1, "the starter's: no I/O yet");
        let dropper = rig.spawn("dropper", |rig| {
            rig.backend().invalidate(&rig.relation(0), 0).expect("not cancelled");
        });
        rig.let_others_go();
        step.release();
        held.wait();
        if rig.is_asynchronous() {
            starter.join();
            rig.wait_pins(3, 1);
            rig.let_others_go();
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
    check(Setup { seeds: 3, ..Setup::default() }, |rig| {
        for state in
            [State::Submitted, State::CompletedIo, State::CompletedShared, State::CompletedLocal]
        {
            rig.pool.evict_all();
            let mut other = rig.backend();
            let pin = other.read(&rig.relation(0), 3).expect("reads");
            let cleaner = rig.spawn("cleaner", |rig| {
                let mut backend = rig.backend();
                let pin = backend.read(&rig.relation(0), 3).expect("reads");
                drop(backend.cleanup_lock(pin.page()).expect("locks"));
            });
            rig.wait_pins(3, 2);
            rig.let_others_go();
            let held = rig.hooks.stop(state, |io| io.offset == 4 * 8192);
            let reader = rig.spawn("reader", |rig| rig.read_ok(&mut rig.backend(), 4));
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
    check_simulated(Setup { seeds: 2, ..Setup::both() }, |rig| {
        let mut backend = rig.backend();
        let pin = backend.read(&rig.relation(0), 3).expect("reads");
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
