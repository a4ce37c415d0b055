//! A session is cancelled while it waits: for its own I/O, for another one's, to be admitted, for a
//! buffer, for a handle, for a lock in each mode. It is told at once, holds nothing afterwards, and
//! can go on when the cancel is cleared.

use crate::rig::{Rig, Setup, check};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Cancelled, Canceller};
use trunkline_engine::pool::{Backend, ReadError};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::rig::Task;

/// A session that does something in a thread of its own.
struct Victim {
    canceller: Canceller,
    task: Task<Backend>,
}

/// Starts `body`, which must end because it is cancelled.
fn start(
    rig: &Arc<Rig>,
    body: impl FnOnce(&Arc<Rig>, &mut Backend) -> bool + Send + 'static,
) -> Victim {
    let mut backend = rig.task_backend();
    let canceller = backend.session().canceller();
    let task = rig.spawn("victim", move |rig| {
        assert!(body(rig, &mut backend), "it was not cancelled");
        backend
    });
    Victim { canceller, task }
}

impl Victim {
    /// Cancels it; afterwards it has nothing, and works again.
    fn end(self, rig: &Arc<Rig>, free: impl FnOnce(), works: BlockNo) {
        rig.let_others_go();
        assert!(!self.task.is_done(), "it does not wait");
        self.canceller.cancel();
        let mut backend = self.task.join();
        assert_eq!(backend.pins(), 0);
        free();
        backend.session().clear_cancel();
        rig.read_ok(&mut backend, works);
    }
}

fn read_cancelled(rig: &Arc<Rig>, backend: &mut Backend, block: BlockNo) -> bool {
    let read = backend.read(&rig.relation(0), block).map(drop);
    matches!(read, Err(ReadError::Cancelled))
}

#[test]
fn while_it_waits_for_its_own_read() {
    check(Setup::both(), |rig| {
        if !rig.is_asynchronous() {
            return;
        }
        let held = rig.hold(3);
        let victim = start(rig, |rig, backend| read_cancelled(rig, backend, 3));
        held.wait();
        victim.end(rig, || held.release(), 3);
    });
}

#[test]
fn while_its_stream_waits() {
    check(Setup::both(), |rig| {
        if !rig.is_asynchronous() {
            return;
        }
        for unordered in [false, true] {
            rig.pool.evict_all();
            let held = rig.hold(3);
            let gone_on = Arc::new(Mutex::new(Vec::new()));
            let theirs = Arc::clone(&gone_on);
            let victim = start(rig, move |rig, backend| {
                let options = StreamOptions { full: true, unordered, ..StreamOptions::default() };
                let mut stream = rig.stream(backend, &[3, 4, 5], options);
                let cancelled = matches!(stream.next(backend), Err(ReadError::Cancelled));
                // Still cancelled; and after that it goes on where it was.
                assert!(matches!(stream.next(backend), Err(ReadError::Cancelled)));
                *theirs.lock() = vec![stream.pinned()];
                cancelled
            });
            held.wait();
            victim.end(rig, || held.release(), 3);
            assert_eq!(*gone_on.lock(), [3], "the read under way is the stream's all the same");
        }
    });
}

/// The stream itself goes on after a cancel: the same page comes.
#[test]
fn a_stream_goes_on_after_a_cancel() {
    check(Setup::both(), |rig| {
        if !rig.is_asynchronous() {
            return;
        }
        let held = rig.hold(3);
        let mut backend = rig.task_backend();
        let mut stream = rig.start_read(&mut backend, &[3, 4, 5]);
        held.wait();
        backend.session().canceller().cancel();
        assert!(matches!(stream.next(&mut backend), Err(ReadError::Cancelled)));
        backend.session().clear_cancel();
        held.release();
        assert_eq!(rig.drain(&mut backend, &mut stream), [Ok(3), Ok(4), Ok(5)]);
    });
}

#[test]
fn while_it_waits_for_another_sessions_read() {
    check(Setup::default(), |rig| {
        for by_stream in [false, true] {
            rig.pool.evict_all();
            let held = rig.hold(3);
            let other = rig.spawn("other", |rig| rig.read_ok(&mut rig.backend(), 3));
            held.wait();
            let victim = start(rig, move |rig, backend| match by_stream {
                false => read_cancelled(rig, backend, 3),
                true => {
                    let mut stream = rig.stream(backend, &[3], StreamOptions::default());
                    matches!(stream.next(backend), Err(ReadError::Cancelled))
                }
            });
            rig.wait_pins(3, 3);
            victim.end(rig, || held.release(), 3);
            other.join();
        }
    });
}

#[test]
fn while_it_waits_to_be_admitted() {
    check(Setup { buffers: 16, ..Setup::default() }, |rig| {
        for by_stream in [false, true] {
            let mut others: Vec<_> = (0..4).map(|_| rig.backend()).collect();
            let pins: Vec<_> = others
                .iter_mut()
                .map(|other| other.read(&rig.relation(0), 1).expect("reads"))
                .collect();
            assert_eq!(rig.pool.permits(), 16);
            let victim = start(rig, move |rig, backend| match by_stream {
                false => read_cancelled(rig, backend, 3),
                true => {
                    let mut stream = rig.stream(backend, &[3], StreamOptions::default());
                    matches!(stream.next(backend), Err(ReadError::Cancelled))
                }
            });
            victim.end(rig, || drop(pins), 3);
        }
    });
}

/// Reads that nobody waits for any more have every buffer.
#[test]
fn while_it_waits_for_a_buffer() {
    check(Setup { buffers: 16, blocks: 32, ..Setup::default() }, |rig| {
        if !rig.is_asynchronous() {
            return;
        }
        for by_stream in [false, true] {
            rig.pool.evict_all();
            let held = rig.fill_with_reads();
            let victim = start(rig, move |rig, backend| match by_stream {
                false => read_cancelled(rig, backend, 30),
                true => {
                    let mut stream = rig.stream(backend, &[30], StreamOptions::default());
                    matches!(stream.next(backend), Err(ReadError::Cancelled))
                }
            });
            victim.end(rig, || held.iter().for_each(trunkline_sim::Held::release), 30);
            rig.settle();
        }
    });
}

#[test]
fn while_it_waits_for_a_handle() {
    // Six handles, two of them the log's.
    check(Setup { handles: 6, ..Setup::default() }, |rig| {
        for by_stream in [false, true] {
            rig.pool.evict_all();
            let held: Vec<_> = (0..4).map(|block| rig.hold(block)).collect();
            let others: Vec<_> = (0..4)
                .map(|block| rig.spawn("other", move |rig| rig.read_ok(&mut rig.backend(), block)))
                .collect();
            held.iter().for_each(|held| _ = held.wait());
            let victim = start(rig, move |rig, backend| match by_stream {
                false => read_cancelled(rig, backend, 9),
                true => {
                    let mut stream = rig.stream(backend, &[9], StreamOptions::default());
                    matches!(stream.next(backend), Err(ReadError::Cancelled))
                }
            });
            let free = || {
                held.iter().for_each(trunkline_sim::Held::release);
                others.into_iter().for_each(Task::join);
            };
            victim.end(rig, free, 9);
        }
    });
}

#[test]
fn while_it_waits_for_a_lock() {
    check(Setup::default(), |rig| {
        for mode in 0..4 {
            let mut other = rig.backend();
            let pin = other.read(&rig.relation(0), 3).expect("reads");
            let mut locked = pin.page().try_write();
            if mode == 3 {
                // A cleanup lock waits for the pin alone.
                locked = None;
            }
            let victim = start(rig, move |rig, backend| {
                let pin = backend.read(&rig.relation(0), 3).expect("a hit");
                match mode {
                    0 => matches!(backend.read_lock(pin.page()), Err(Cancelled)),
                    1 => matches!(backend.stable_lock(pin.page()), Err(Cancelled)),
                    2 => matches!(backend.write_lock(pin.page()), Err(Cancelled)),
                    _ => matches!(backend.cleanup_lock(pin.page()), Err(Cancelled)),
                }
            });
            rig.wait_pins(3, 2);
            // The lock ends with the pin, which ends with the session's next turn.
            victim.end(rig, || locked = None, if mode == 3 { 4 } else { 3 });
        }
    });
}

#[test]
fn while_it_waits_to_forget_a_relation() {
    check(Setup::default(), |rig| {
        let mut other = rig.backend();
        let pin = other.read(&rig.relation(0), 3).expect("reads");
        let victim = start(rig, |rig, backend| {
            matches!(backend.invalidate(&rig.relation(0), 0), Err(Cancelled))
        });
        victim.end(rig, || drop(pin), 3);
    });
}
