//! Thousands of sessions: each of them waits and is woken, and the one beyond the limit is refused.
//!
//! Most of the sessions are polled by one thread, which polls a session again only if it was woken.
//! A lost wake-up therefore makes a case hang.

use std::task::{Context, Poll, Wake, Waker};
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Builder, Class, Session};
use trunkline_sim::matrix::io::{check_real, memory, original, read, spawn, wait_ok};
use trunkline_sim::matrix::{Environment, Instance};

/// Number of sessions, which isn't a multiple of the size of any bitmap's word.
const SESSIONS: u32 = 5_000;

/// The tasks that were woken, in this order.
type Woken = Arc<Mutex<Vec<usize>>>;

struct Task {
    number: usize,
    woken: Woken,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.lock().push(self.number);
    }
}

/// A waker for each of `count` tasks, and the list of those that were woken.
fn wakers(count: usize) -> (Woken, Vec<Waker>) {
    let woken = Woken::default();
    let waker = |number| Waker::from(Arc::new(Task { number, woken: Arc::clone(&woken) }));
    let wakers = (0..count).map(waker).collect();
    (woken, wakers)
}

fn start(environment: Environment, configure: impl FnOnce(Builder) -> Builder) -> Instance {
    environment.start_with(|builder| configure(builder.sessions(SESSIONS).try_cached_below(0)))
}

/// Some sessions sleep in their own thread and the others are polled, until an I/O completes that
/// all of them have joined.
#[test]
fn thousands_of_sessions_join_one_io() {
    check_real(|environment| {
        if !environment.is_asynchronous() {
            return;
        }
        let instance = Arc::new(start(environment, |builder| builder));
        let file = instance.file("a", 4);
        let mut issuer = instance.session();
        let mut slots = instance.slots(1, 1);
        let held = instance.probe.hold_result(|_| true);
        let io = read(&mut issuer, &file, 2, 1, &mut slots, 0);
        assert_eq!(held.wait(), io);
        let mut sessions: Vec<_> = (1..SESSIONS).map(|_| instance.session()).collect();
        let error = instance.aio.session().expect_err("all are in use");
        assert_eq!(error.limit, SESSIONS);
        assert!(error.to_string().contains("5000") && error.to_string().contains("max_sessions"));
        let sleepers: Vec<_> = sessions
            .drain(SESSIONS as usize - 65..)
            .map(|mut session: Session| {
                spawn("sleeps", move || session.join(io).expect("no cancel"))
            })
            .collect();
        let (woken, wakers) = wakers(sessions.len());
        let mut waits: Vec<_> = sessions.iter().map(Session::polled_wait).collect();
        let mut poll = |at: usize| {
            let mut context = Context::from_waker(&wakers[at]);
            sessions[at].poll_join(&mut context, &mut waits[at], io)
        };
        assert!((0..wakers.len()).all(|at| poll(at).is_pending()));
        assert!(woken.lock().is_empty());
        held.release();
        let mut joined = 0;
        while joined < wakers.len() {
            instance.wait_until("a wake-up", || !woken.lock().is_empty());
            let now = std::mem::take(&mut *woken.lock());
            joined += now.into_iter().filter(|&at| poll(at) == Poll::Ready(Ok(()))).count();
        }
        sleepers.into_iter().for_each(|thread| thread.join().expect("woken"));
        wait_ok(&mut issuer, &mut slots, 0);
        assert_eq!(memory(&mut slots, 0), original(2, 1));
    });
}

/// All sessions wait for the only handle. Each of them gets it once, in the order of their arrival.
#[test]
fn thousands_of_sessions_wait_for_a_handle() {
    check_real(|environment| {
        let instance = start(environment, |builder| builder.handles(1, 0, 0));
        let mut holder = instance.session();
        let held = holder.acquire(Class::Foreground).expect("free");
        let mut sessions: Vec<_> = (1..SESSIONS).map(|_| instance.session()).collect();
        let (woken, wakers) = wakers(sessions.len());
        let mut waits: Vec<_> = sessions.iter().map(Session::polled_wait).collect();
        for (at, session) in sessions.iter_mut().enumerate() {
            let mut context = Context::from_waker(&wakers[at]);
            let class = Class::Foreground;
            assert!(session.poll_acquire(&mut context, &mut waits[at], class).is_pending());
        }
        assert!(woken.lock().is_empty());
        held.release();
        for turn in 0..wakers.len() {
            assert_eq!(std::mem::take(&mut *woken.lock()), [turn], "one handle wakes one session");
            let mut context = Context::from_waker(&wakers[turn]);
            let got =
                sessions[turn].poll_acquire(&mut context, &mut waits[turn], Class::Foreground);
            assert!(matches!(got, Poll::Ready(Ok(_))));
        }
        assert!(woken.lock().is_empty());
    });
}
