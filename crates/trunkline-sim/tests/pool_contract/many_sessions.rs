//! More sessions than the pool has buffers for: they wait for admission, and all of them are served.

use std::collections::VecDeque;
use std::task::{Context, Poll, Wake, Waker};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::pool::PINS_GUARANTEED;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_sim::matrix::cluster::{check_real, check_simulated};
use trunkline_sim::matrix::{Cluster, Needs};

/// The tasks that were woken, in this order.
type Woken = Arc<Mutex<VecDeque<usize>>>;

struct Task {
    number: usize,
    woken: Woken,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.lock().push_back(self.number);
    }
}

/// A few sessions hold all permits of the pool. Every other session of the instance polls for a
/// page and is polled again only if it was woken.
fn check_admission(cluster: &Arc<Cluster>) {
    let sessions = cluster.aio.sessions_max() as usize;
    let relation = cluster.relation(0);
    let mut holders: Vec<_> =
        (0..cluster.pool.buffers() / PINS_GUARANTEED).map(|_| cluster.backend()).collect();
    // The page that the others want is in the pool, so they wait only for admission.
    cluster.read_ok(&mut holders[0], 1);
    let pins: Vec<_> =
        holders.iter_mut().map(|holder| holder.read(&relation, 0).expect("reads")).collect();
    let woken = Woken::default();
    let mut tasks: Vec<_> = (0..sessions - holders.len())
        .map(|number| {
            let backend = cluster.backend();
            let stream = cluster.stream(&backend, &[1], StreamOptions::default());
            let waker = Waker::from(Arc::new(Task { number, woken: Arc::clone(&woken) }));
            Some((backend, stream, waker))
        })
        .collect();
    let mut poll = |at: usize| {
        let (mut backend, mut stream, waker) = tasks[at].take().expect("not done");
        match stream.poll_next(&mut Context::from_waker(&waker), &mut backend) {
            Poll::Pending => {
                assert_eq!(backend.pins(), 0, "a session that waits for admission holds a pin");
                tasks[at] = Some((backend, stream, waker));
                return false;
            }
            Poll::Ready(found) => assert_eq!(found.expect("reads").expect("a page").block, 1),
        }
        // The stream and the backend are dropped here, which releases the page.
        true
    };
    let waiting = sessions - holders.len();
    assert!((0..waiting).all(|at| !poll(at)));
    assert!(woken.lock().is_empty());
    drop(pins);
    let (mut done, mut seen) = (0, vec![false; waiting]);
    while done < waiting {
        cluster.wait_until("a wake-up", || !woken.lock().is_empty());
        let Some(at) = woken.lock().pop_front() else { continue };
        if !seen[at] && poll(at) {
            seen[at] = true;
            done += 1;
        }
    }
    assert!(cluster.pool.permits() <= cluster.pool.buffers());
}

#[test]
fn thousands_of_sessions_wait_for_admission() {
    let needs = Needs { buffers: 16, sessions: 5_000, ..Needs::default() };
    check_real(needs, check_admission);
    check_simulated(Needs { sessions: 300, seeds: 2, ..needs }, check_admission);
}
