//! Tests of the wake-ups: a session that frees permits, or changes how many it needs, wakes the
//! sessions that wait for admission. The pool has 16 buffers.

use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Wake, Waker};
use trunkline_aio::{Aio, Builder, MethodKind, PolledWait, Session};

fn start() -> (Aio, PinLimiter) {
    let aio = Builder::new().method(MethodKind::Sync).start().expect("starts");
    let limits = PinLimiter::new(16, 8, aio.notifier());
    (aio, limits)
}

/// A session without permits.
fn session(aio: &Aio, limits: &PinLimiter, guaranteed: u32) -> Session {
    let session = aio.session().expect("a session");
    limits.guarantee(session.id(), guaranteed).expect("no pins");
    session
}

/// A session, admitted with its guaranteed permits and holding one pin.
fn holder(aio: &Aio, limits: &PinLimiter, guaranteed: u32) -> Session {
    let session = session(aio, limits, guaranteed);
    assert!(limits.admit(session.id()) && limits.reserve(session.id()));
    session
}

/// A task that waits for the admission of its session.
struct Waiting {
    session: Session,
    wait: PolledWait,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Waiting {
    fn start(session: Session, limits: &PinLimiter) -> Self {
        limits.waiters.insert(session.id());
        let wait = session.polled_wait();
        let mut waiting = Self { session, wait, wakes: Arc::default() };
        assert!(!waiting.poll(limits));
        waiting
    }

    /// Polls the task. Returns true if the session is admitted.
    fn poll(&mut self, limits: &PinLimiter) -> bool {
        let waker = Waker::from(Arc::clone(&self.wakes));
        let id = self.session.id();
        let admitted = || limits.admit(id);
        match self.session.poll_for(&mut Context::from_waker(&waker), &mut self.wait, admitted) {
            Poll::Ready(ended) => ended.is_ok(),
            Poll::Pending => false,
        }
    }

    fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_waiter_that_needs_more_passes_on_what_it_reclaimed() {
    let (aio, limits) = start();
    let holders: Vec<_> = (0..4).map(|_| holder(&aio, &limits, 4)).collect();
    let needs_more = session(&aio, &limits, 12);
    let mut needs_less = Waiting::start(session(&aio, &limits, 4), &limits);
    // The last holder has released its pin in `give_back`, but has not looked for waiters yet. A
    // session that needs twelve pins reclaims its permits, which are not enough for it.
    limits.account(holders[3].id()).0.fetch_sub(1, Ordering::SeqCst);
    let before = needs_less.wakes();
    let _needs_more = Waiting::start(needs_more, &limits);
    assert!(needs_less.wakes() > before, "no other session can wake it");
    assert!(needs_less.poll(&limits));
}

#[test]
fn a_lower_guarantee_leaves_permits_to_others() {
    let (aio, limits) = start();
    let holder = holder(&aio, &limits, 12);
    let mut waiting = Waiting::start(session(&aio, &limits, 8), &limits);
    limits.guarantee(holder.id(), 5).expect("fewer pins");
    assert_eq!(waiting.wakes(), 1);
    assert!(waiting.poll(&limits));
}

#[test]
fn a_session_that_waits_may_need_fewer_pins() {
    let (aio, limits) = start();
    let _holders = [holder(&aio, &limits, 4), holder(&aio, &limits, 4)];
    let mut waiting = Waiting::start(session(&aio, &limits, 12), &limits);
    limits.guarantee(waiting.session.id(), 8).expect("fewer pins");
    assert_eq!(waiting.wakes(), 1);
    assert!(waiting.poll(&limits));
}

#[test]
fn the_same_guarantee_again_wakes_no_session() {
    let (aio, limits) = start();
    let holder = holder(&aio, &limits, 12);
    let waiting = Waiting::start(session(&aio, &limits, 8), &limits);
    limits.guarantee(holder.id(), 12).expect("the same");
    assert_eq!(waiting.wakes(), 0);
}
