//! Content locks. We test which lock modes conflict, and that a session waiting for a cleanup lock
//! is woken when the last other pin is released.

use trunkline_aio::State;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use trunkline_engine::pool::Strategy;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_sim::PausePoint;
use trunkline_sim::matrix::TestThread;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs};

/// The three content lock modes: share, share-exclusive and exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Stable,
    Write,
}

const MODES: [Mode; 3] = [Mode::Read, Mode::Stable, Mode::Write];

impl Mode {
    /// Whether two sessions can hold these modes at the same time.
    fn is_compatible_with(self, other: Mode) -> bool {
        use Mode::{Read, Stable, Write};
        match (self, other) {
            (Write, _) | (_, Write) | (Stable, Stable) => false,
            (Read | Stable, Read) | (Read, Stable) => true,
        }
    }
}

/// Starts a thread that waits for a cleanup lock on block 3, which has one other pin.
fn wait_for_cleanup_lock(cluster: &Arc<Cluster>) -> TestThread<()> {
    let cleaner = cluster.spawn("cleaner", |cluster| {
        let mut backend = cluster.backend();
        let pin = backend.read(&cluster.relation(0), 3).expect("reads");
        drop(backend.cleanup_lock(pin.page()).expect("locks"));
    });
    cluster.wait_pins(3, 2);
    cluster.let_others_run();
    cleaner
}

/// Locks block 3 in a mode until the pause point is released.
fn hold(cluster: &Arc<Cluster>, mode: Mode, gate: &PausePoint) -> TestThread<()> {
    let gate = gate.clone();
    cluster.spawn("holder", move |cluster| with_lock(cluster, mode, || gate.wait()))
}

/// Runs `body` while holding a lock on block 3. If it's an exclusive lock, we change the page and
/// restore it afterwards. Any session that was granted a lock in the meantime would notice the
/// change.
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
            // No other session may see this change.
            page[6000] ^= 0xFF;
            body();
            page[6000] ^= 0xFF;
        }
    }
}

/// We test every pair of lock modes. If the two modes are compatible, the second lock must be
/// granted immediately. If they conflict, the second session must wait, and must be woken when the
/// first lock is released.
#[test]
fn conflicting_lock_modes_exclude_each_other() {
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
                if first.is_compatible_with(second) {
                    waiter.join();
                    assert!(got.load(Ordering::SeqCst));
                } else {
                    cluster.wait_pins(3, 2);
                    cluster.let_others_run();
                    assert!(!got.load(Ordering::SeqCst), "{first:?} and {second:?} together");
                    gate.release();
                    waiter.join();
                }
                gate.release();
                holder.join();
            }
        }
    });
}

/// Many threads lock the same page in all modes. While one thread holds the exclusive lock, no
/// other thread may hold a lock in any mode.
#[test]
fn no_reader_sees_a_partial_change() {
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

/// A session that wants a cleanup lock must wait for all other pins, and must be woken when the
/// last of them is released. That pin may belong to a single read, or to a stream that moves on to
/// the next page, unpins its read-ahead, or is dropped.
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
            let cleaner = wait_for_cleanup_lock(cluster);
            assert!(!cleaner.is_done());
            match kind {
                0 => drop(pin),
                1 => drop(stream.next(&mut other).expect("reads")),
                2 => stream.release_ahead(),
                _ => drop(stream),
            }
            cleaner.join();
        }
    });
}

/// The last pin may belong to an I/O. In that case, it is released by a thread that never held a
/// pin itself. To test this, a session starts to read a page whose first read has failed, and ends
/// before the read completes. Meanwhile another session waits for the page to be unpinned. See
/// `docs/postgres-lessons.md#lesson-25`.
#[test]
fn lesson_25_an_io_that_drops_the_last_pin_wakes_the_waiter() {
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
        assert_eq!(cluster.pins(3), 1, "only the starter's pin, no I/O yet");
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
            assert!(!dropper.is_done(), "the I/O has the page pinned");
            held.release();
        } else {
            held.release();
            starter.join();
        }
        dropper.join();
    });
}

/// This is like the previous test, but here a session waits for a cleanup lock. At the same time,
/// another session releases the last other pin, and an I/O on the next block is stopped in each of
/// its states.
#[test]
fn lesson_25_a_pin_dropped_in_any_state_of_an_io_wakes_the_waiter() {
    check(Needs { seeds: 3, ..Needs::default() }, |cluster| {
        for state in
            [State::Submitted, State::CompletedIo, State::CompletedShared, State::CompletedLocal]
        {
            cluster.pool.evict_all();
            let mut other = cluster.backend();
            let pin = other.read(&cluster.relation(0), 3).expect("reads");
            let cleaner = wait_for_cleanup_lock(cluster);
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

/// Conditional locks never wait, like `ConditionalLockBuffer`.
#[test]
fn conditional_locks_return_immediately() {
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
