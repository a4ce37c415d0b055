//! Cancels sessions while they wait for their own read, another session's read, admission, a
//! buffer, a handle, or a content lock in each mode.
//!
//! The wait must return immediately, and the session must not hold any resources afterwards. Once
//! the cancel has been cleared, the session must be usable again. In PostgreSQL, waits for LWLocks
//! can't be interrupted, but here it must be possible to cancel every wait.

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Cancelled, Canceller};
use trunkline_engine::pool::{Backend, ReadError};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::matrix::TestThread;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs};

/// A session on its own thread that the test will cancel.
struct Victim {
    canceller: Canceller,
    task: TestThread<Backend>,
}

/// Starts `body`, which must return true if it was cancelled.
fn start(
    cluster: &Arc<Cluster>,
    body: impl FnOnce(&Arc<Cluster>, &mut Backend) -> bool + Send + 'static,
) -> Victim {
    let mut backend = cluster.async_backend();
    let canceller = backend.session().canceller();
    let task = cluster.spawn("victim", move |cluster| {
        assert!(body(cluster, &mut backend), "the session was not cancelled");
        backend
    });
    Victim { canceller, task }
}

impl Victim {
    /// Cancels the session and checks that it has no pins left. Then calls `free`, which releases
    /// whatever the session was waiting for, and checks that the session can read block `works`.
    fn end(self, cluster: &Arc<Cluster>, free: impl FnOnce(), works: BlockNo) {
        cluster.let_others_run();
        assert!(!self.task.is_done(), "the session does not wait");
        self.canceller.cancel();
        let mut backend = self.task.join();
        assert_eq!(backend.pins(), 0);
        free();
        backend.session().clear_cancel();
        cluster.read_ok(&mut backend, works);
    }
}

/// Reads a block directly or through a stream. Returns whether the read was cancelled.
fn read_cancelled(
    cluster: &Arc<Cluster>,
    backend: &mut Backend,
    block: BlockNo,
    by_stream: bool,
) -> bool {
    let read = match by_stream {
        false => backend.read(&cluster.relation(0), block).map(drop),
        true => cluster.stream(backend, &[block], StreamOptions::default()).next(backend).map(drop),
    };
    matches!(read, Err(ReadError::Cancelled))
}

#[test]
fn a_session_is_cancelled_while_it_waits_for_its_own_read() {
    check(Needs::one_session().asynchronous(), |cluster| {
        let held = cluster.hold(3);
        let victim = start(cluster, |cluster, backend| read_cancelled(cluster, backend, 3, false));
        held.wait();
        victim.end(cluster, || held.release(), 3);
    });
}

#[test]
fn a_session_is_cancelled_while_its_stream_waits() {
    check(Needs::one_session().asynchronous(), |cluster| {
        for unordered in [false, true] {
            cluster.pool.evict_all();
            let held = cluster.hold(3);
            let pinned = Arc::new(Mutex::new(Vec::new()));
            let theirs = Arc::clone(&pinned);
            let victim = start(cluster, move |cluster, backend| {
                let options = StreamOptions { full: true, unordered, ..StreamOptions::default() };
                let mut stream = cluster.stream(backend, &[3, 4, 5], options);
                let cancelled = matches!(stream.next(backend), Err(ReadError::Cancelled));
                // The cancel stays active until it is cleared. The stream then continues where it
                // stopped.
                assert!(matches!(stream.next(backend), Err(ReadError::Cancelled)));
                *theirs.lock() = vec![stream.pinned()];
                cancelled
            });
            held.wait();
            victim.end(cluster, || held.release(), 3);
            assert_eq!(*pinned.lock(), [3], "the stream keeps its read in flight");
        }
    });
}

/// A cancel must not lose the page that the stream was waiting for.
#[test]
fn a_stream_continues_after_a_cancel() {
    check(Needs::one_session().asynchronous(), |cluster| {
        let held = cluster.hold(3);
        let mut backend = cluster.async_backend();
        let mut stream = cluster.start_read(&mut backend, &[3, 4, 5]);
        held.wait();
        backend.session().canceller().cancel();
        assert!(matches!(stream.next(&mut backend), Err(ReadError::Cancelled)));
        backend.session().clear_cancel();
        held.release();
        assert_eq!(cluster.drain(&mut backend, &mut stream), [Ok(3), Ok(4), Ok(5)]);
    });
}

#[test]
fn a_session_is_cancelled_while_it_waits_for_another_sessions_read() {
    check(Needs::default(), |cluster| {
        for by_stream in [false, true] {
            cluster.pool.evict_all();
            let held = cluster.hold(3);
            let other =
                cluster.spawn("other", |cluster| cluster.read_ok(&mut cluster.backend(), 3));
            held.wait();
            let victim = start(cluster, move |cluster, backend| {
                read_cancelled(cluster, backend, 3, by_stream)
            });
            cluster.wait_pins(3, 3);
            victim.end(cluster, || held.release(), 3);
            other.join();
        }
    });
}

/// Cancels a session that waits for admission, because four other sessions hold all pin permits.
#[test]
fn a_session_is_cancelled_while_it_waits_for_admission() {
    check(Needs { buffers: 16, ..Needs::default() }, |cluster| {
        for by_stream in [false, true] {
            let mut others: Vec<_> = (0..4).map(|_| cluster.backend()).collect();
            let pins: Vec<_> = others
                .iter_mut()
                .map(|other| other.read(&cluster.relation(0), 1).expect("reads"))
                .collect();
            assert_eq!(cluster.pool.permits(), 16);
            let victim = start(cluster, move |cluster, backend| {
                read_cancelled(cluster, backend, 3, by_stream)
            });
            victim.end(cluster, || drop(pins), 3);
        }
    });
}

/// Cancels a session that waits for a buffer, because abandoned reads pin every buffer.
#[test]
fn a_session_is_cancelled_while_it_waits_for_a_buffer() {
    check(Needs { buffers: 16, blocks: 32, ..Needs::default().asynchronous() }, |cluster| {
        for by_stream in [false, true] {
            cluster.pool.evict_all();
            let held = cluster.fill_with_reads(16);
            let victim = start(cluster, move |cluster, backend| {
                read_cancelled(cluster, backend, 30, by_stream)
            });
            victim.end(cluster, || held.iter().for_each(trunkline_sim::PausedIo::release), 30);
            cluster.settle();
        }
    });
}

#[test]
fn a_session_is_cancelled_while_it_waits_for_a_handle() {
    // Two of the six handles are reserved for the log.
    check(Needs { handles: 6, ..Needs::default() }, |cluster| {
        for by_stream in [false, true] {
            cluster.pool.evict_all();
            let held: Vec<_> = (0..4).map(|block| cluster.hold(block)).collect();
            let others: Vec<_> = (0..4)
                .map(|block| {
                    cluster.spawn("other", move |cluster| {
                        cluster.read_ok(&mut cluster.backend(), block)
                    })
                })
                .collect();
            held.iter().for_each(|held| _ = held.wait());
            let victim = start(cluster, move |cluster, backend| {
                read_cancelled(cluster, backend, 9, by_stream)
            });
            let free = || {
                held.iter().for_each(trunkline_sim::PausedIo::release);
                others.into_iter().for_each(TestThread::join);
            };
            victim.end(cluster, free, 9);
        }
    });
}

#[test]
fn a_session_is_cancelled_while_it_waits_for_a_content_lock() {
    check(Needs::default(), |cluster| {
        for mode in 0..4 {
            let mut other = cluster.backend();
            let pin = other.read(&cluster.relation(0), 3).expect("reads");
            let mut locked = pin.page().try_write();
            // A cleanup lock must wait only for the other session's pin, so that session must not
            // hold a lock.
            if mode == 3 {
                locked = None;
            }
            let victim = start(cluster, move |cluster, backend| {
                let pin = backend.read(&cluster.relation(0), 3).expect("a hit");
                match mode {
                    0 => matches!(backend.read_lock(pin.page()), Err(Cancelled)),
                    1 => matches!(backend.stable_lock(pin.page()), Err(Cancelled)),
                    2 => matches!(backend.write_lock(pin.page()), Err(Cancelled)),
                    _ => matches!(backend.cleanup_lock(pin.page()), Err(Cancelled)),
                }
            });
            cluster.wait_pins(3, 2);
            // The other session still has its pin, so after mode 3 we must read another block.
            victim.end(cluster, || locked = None, if mode == 3 { 4 } else { 3 });
        }
    });
}

#[test]
fn a_session_is_cancelled_while_it_invalidates_a_relation() {
    check(Needs::default(), |cluster| {
        let mut other = cluster.backend();
        let pin = other.read(&cluster.relation(0), 3).expect("reads");
        let victim = start(cluster, |cluster, backend| {
            matches!(backend.invalidate(&cluster.relation(0), 0), Err(Cancelled))
        });
        victim.end(cluster, || drop(pin), 3);
    });
}
