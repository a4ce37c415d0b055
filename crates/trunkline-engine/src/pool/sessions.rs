//! Sets of sessions that sleep for something of the pool's, and how they are told.
//!
//! A session sleeps on one event, whatever it waits for (see `trunkline_aio::Session::wait_for`).
//! Before it sleeps it puts itself into a set, or says which buffer it waits for; then it looks
//! again. Whoever changes something afterwards finds it there and notifies it. Nothing here blocks
//! or allocates, so completions may call it.

use std::time::Duration;
use trunkline_aio::Notifier;
use trunkline_aio::limits::SESSIONS_MAX;
use trunkline_aio::sync::Futex;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Sessions that want to be told. A session can be in it several times, once for each of its streams
/// that waits.
#[derive(Debug)]
pub(crate) struct SessionSet {
    places: Box<[AtomicU32]>,
    count: AtomicU32,
}

impl SessionSet {
    pub(crate) fn new() -> Self {
        let places = (0..SESSIONS_MAX).map(|_| AtomicU32::new(0)).collect();
        Self { places, count: AtomicU32::new(0) }
    }

    /// Adds a session, once more if it is there. Look again after this.
    pub(crate) fn insert(&self, session: u32) {
        self.places[session as usize].fetch_add(1, Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes a session out once.
    pub(crate) fn remove(&self, session: u32) {
        let old = self.places[session as usize].fetch_sub(1, Ordering::SeqCst);
        assert!(old > 0, "session {session} taken out of a queue that it is not in");
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether there is anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Tells everybody to look again; they stay in the set.
    pub(crate) fn notify(&self, notifiers: &Notifier) {
        if self.is_empty() {
            return;
        }
        for (session, places) in self.places.iter().enumerate() {
            if places.load(Ordering::SeqCst) > 0 {
                notifiers.notify(session as u32);
            }
        }
    }
}

/// Wakes one thread that sleeps until it is rung, or for some time; the sessions that might ring pay
/// for it only when that thread has said that it wants them to.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    wanted: AtomicBool,
    bell: Futex,
}

impl Alarm {
    /// How often it was rung; for [`Alarm::wait`].
    pub(crate) fn rung(&self) -> u32 {
        self.bell.word().load(Ordering::SeqCst)
    }

    /// Sessions are to ring from now on, the first of them once. Look again after this.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Sleeps until it was rung more often than `seen`, or the time is over.
    pub(crate) fn wait(&self, seen: u32, timeout: Duration) {
        self.bell.wait(seen, Some(timeout));
        self.wanted.store(false, Ordering::SeqCst);
    }

    pub(crate) fn ring(&self) {
        self.bell.word().fetch_add(1, Ordering::SeqCst);
        self.bell.wake(u32::MAX >> 1);
    }

    /// What it waits for has happened.
    pub(crate) fn ring_if_wanted(&self) {
        if self.wanted.load(Ordering::SeqCst) && self.wanted.swap(false, Ordering::SeqCst) {
            self.ring();
        }
    }
}

/// Who sleeps until which buffer's word changes.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// By session: the buffer plus one, or 0.
    buffers: Box<[AtomicU32]>,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self { buffers: (0..SESSIONS_MAX).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The session will sleep for the buffer. Announce that in its word after this, and look.
    pub(crate) fn begin(&self, session: u32, buffer: u32) {
        self.buffers[session as usize].store(buffer + 1, Ordering::SeqCst);
    }

    /// It sleeps no longer.
    pub(crate) fn end(&self, session: u32) {
        self.buffers[session as usize].store(0, Ordering::SeqCst);
    }

    /// Tells who sleeps for the buffer.
    pub(crate) fn notify(&self, buffer: u32, notifiers: &Notifier) {
        for (session, waits_for) in self.buffers.iter().enumerate() {
            if waits_for.load(Ordering::SeqCst) == buffer + 1 {
                notifiers.notify(session as u32);
            }
        }
    }
}
