//! Sets of sessions that sleep for something of the pool's, and how they are told.
//!
//! A session sleeps on one event, whatever it waits for (see `trunkline_aio::Session::wait_for`).
//! Before it sleeps it puts itself into a set, or says which buffer it waits for; then it looks
//! again. Whoever changes something afterwards finds it there and notifies it. Nothing here blocks
//! or allocates, so completions may call it.

use trunkline_aio::Notifiers;
use trunkline_aio::limits::SESSIONS_MAX;
use trunkline_aio::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Sessions that want to be told.
#[derive(Debug)]
pub(crate) struct SessionSet {
    bits: [AtomicU64; SESSIONS_MAX / 64],
    count: AtomicU32,
}

impl SessionSet {
    pub(crate) fn new() -> Self {
        Self { bits: [const { AtomicU64::new(0) }; SESSIONS_MAX / 64], count: AtomicU32::new(0) }
    }

    /// Adds a session. Look again after this.
    pub(crate) fn insert(&self, session: u32) {
        let bit = 1 << (session % 64);
        let old = self.bits[session as usize / 64].fetch_or(bit, Ordering::SeqCst);
        if old & bit == 0 {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(crate) fn remove(&self, session: u32) {
        let bit = 1 << (session % 64);
        let old = self.bits[session as usize / 64].fetch_and(!bit, Ordering::SeqCst);
        if old & bit != 0 {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether there is anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Tells everybody to look again; they stay in the set.
    pub(crate) fn notify(&self, notifiers: &Notifiers) {
        for (at, word) in self.bits.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                notifiers.notify(at as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
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
    pub(crate) fn notify(&self, buffer: u32, notifiers: &Notifiers) {
        for (session, waits_for) in self.buffers.iter().enumerate() {
            if waits_for.load(Ordering::SeqCst) == buffer + 1 {
                notifiers.notify(session as u32);
            }
        }
    }
}
