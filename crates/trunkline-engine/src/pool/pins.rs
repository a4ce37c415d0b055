//! How many pins a session may hold: so that nobody ever fails for want of one, however small the
//! pool.
//!
//! A session that wants its first pin is *admitted*: it gets permits for as many pins as any single
//! step of any code path needs ([`PINS_GUARANTEED`]). All permits together are never more than there
//! are buffers, so whoever was admitted finds a buffer, at the latest when the I/O of others ends;
//! who is not, waits until somebody else has finished with the pages. Beyond the guarantee, permits
//! are for looking ahead: they are granted only from what is free, at most half of it, and never
//! while somebody waits to be admitted.
//!
//! ```text
//!   buffers ≥ Σ permits;   a session's pins ≤ its permits
//!   no permits ──admit──▶ 4 ──extend──▶ more ──relieve (under pressure)──▶ pins + 3
//!       ▲                                                                      │
//!       └────────────── revoked by who waits, when no pin is held ◀────────────┘
//! ```
//! PostgreSQL divides the pool by all the sessions there could be, and fails when a path pins more
//! than that at once (facts: hard lessons 11 and 12). Here a session that holds nothing keeps
//! nothing from others.

use super::sessions::SessionSet;
use trunkline_aio::Notifier;
use trunkline_aio::limits::SESSIONS_MAX;
use trunkline_aio::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Pins that an admitted session can always have: the pages that two scans stand on, and two more
/// that those lead to. A path that needs further ones copies what it needs out of the first.
pub const PINS_GUARANTEED: u32 = 4;

const PERMIT: u64 = 1 << 32;

/// A session's pins (low half) and permits (high half), in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Account(AtomicU64);

/// See the module.
#[derive(Debug)]
pub(crate) struct Limiter {
    buffers: u32,
    guaranteed: u32,
    /// The largest part of the pool that one session's looking ahead may use, in buffers.
    ahead_max: u32,
    /// Permits given out.
    taken: AtomicU32,
    accounts: Box<[Account]>,
    /// Sessions that wait to be admitted.
    pub(crate) waiting: SessionSet,
}

fn pins(word: u64) -> u32 {
    word as u32
}

fn permits(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Limiter {
    /// For so many buffers; one session's looking ahead may use `ahead_max` of them.
    pub(crate) fn new(buffers: u32, ahead_max: u32) -> Self {
        Self {
            buffers,
            guaranteed: PINS_GUARANTEED.min(buffers),
            ahead_max,
            taken: AtomicU32::new(0),
            accounts: (0..SESSIONS_MAX).map(|_| Account::default()).collect(),
            waiting: SessionSet::new(),
        }
    }

    /// Pins that the session holds.
    pub(crate) fn pins(&self, session: u32) -> u32 {
        pins(self.word(session).load(Ordering::SeqCst))
    }

    /// Permits given out.
    pub(crate) fn taken(&self) -> u32 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Books one pin if the session's permits allow it.
    pub(crate) fn pin(&self, session: u32) -> bool {
        self.book(session, 1, 0) == 1
    }

    /// Books up to `want` pins for looking ahead; how many. Leaves enough of the guarantee for what
    /// the session does with the page at hand.
    pub(crate) fn pin_ahead(&self, session: u32, want: u32) -> u32 {
        self.book(session, want, self.guaranteed - 1)
    }

    fn book(&self, session: u32, want: u32, leave: u32) -> u32 {
        let word = self.word(session);
        let mut old = word.load(Ordering::SeqCst);
        loop {
            let count = want.min(permits(old).saturating_sub(pins(old) + leave));
            if count == 0 {
                return 0;
            }
            let new = old + u64::from(count);
            match word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return count,
                Err(now) => old = now,
            }
        }
    }

    /// Gives booked pins back. While somebody waits to be admitted, permits go with them.
    pub(crate) fn unpin(&self, session: u32, count: u32, notifiers: &Notifier) {
        let old = self.word(session).fetch_sub(u64::from(count), Ordering::SeqCst);
        assert!(pins(old) >= count, "more pins given back than were booked");
        if !self.waiting.is_empty() && self.relieve(session) {
            self.waiting.notify(notifiers);
        }
    }

    /// Admits the session, if it is not yet: true if it has its guaranteed permits.
    pub(crate) fn admit(&self, session: u32, notifiers: &Notifier) -> bool {
        if permits(self.word(session).load(Ordering::SeqCst)) >= self.guaranteed {
            return true;
        }
        if !self.take(self.guaranteed) {
            // Somebody may keep permits that he has no pins for.
            (0..SESSIONS_MAX as u32).filter(|&other| other != session).for_each(|other| {
                self.relieve(other);
            });
            if !self.take(self.guaranteed) {
                return false;
            }
            // That may have been more than this session needs.
            self.waiting.notify(notifiers);
        }
        self.word(session).fetch_add(PERMIT * u64::from(self.guaranteed), Ordering::SeqCst);
        true
    }

    /// Raises the permits of a session that is admitted, if that is free and nobody waits, so that
    /// it can book `want` more pins for looking ahead, or a part of them. That is bounded.
    pub(crate) fn extend(&self, session: u32, want: u32, notifiers: &Notifier) {
        let old = self.word(session).load(Ordering::SeqCst);
        let (held, may) = (pins(old), permits(old));
        let wanted = (held + want).min(self.ahead_max.max(1)) + self.guaranteed - 1;
        let short = wanted.saturating_sub(may);
        if short == 0 || may == 0 || !self.waiting.is_empty() {
            return;
        }
        let free = self.buffers - self.taken().min(self.buffers);
        let grant = short.min(free.div_ceil(2));
        if grant > 0 && self.take(grant) {
            self.grant(session, grant, notifiers);
        }
    }

    /// Raises the permits of a session that is admitted by one, if there is one that is nobody's.
    pub(crate) fn extend_by_one(&self, session: u32, notifiers: &Notifier) {
        if self.is_admitted(session) && self.take(1) {
            self.grant(session, 1, notifiers);
        }
    }

    /// Hands permits that were taken to a session, unless it has been relieved of all it had
    /// meanwhile: with fewer than the guarantee it could hold pins and wait to be admitted.
    fn grant(&self, session: u32, count: u32, notifiers: &Notifier) {
        let word = self.word(session);
        let mut old = word.load(Ordering::SeqCst);
        while permits(old) > 0 {
            let new = old + PERMIT * u64::from(count);
            match word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
        self.taken.fetch_sub(count, Ordering::SeqCst);
        // Somebody may have found them taken.
        self.waiting.notify(notifiers);
    }

    /// The most pins that one session may hold for looking ahead.
    pub(crate) fn ahead_max(&self) -> u32 {
        self.ahead_max.max(1)
    }

    /// Whether the session was admitted and has a pin already.
    pub(crate) fn is_admitted(&self, session: u32) -> bool {
        permits(self.word(session).load(Ordering::SeqCst)) > 0
    }

    /// Gives back permits that the session has no pins for, and tells who waits for some.
    pub(crate) fn give_up(&self, session: u32, notifiers: &Notifier) {
        if self.relieve(session) && !self.waiting.is_empty() {
            self.waiting.notify(notifiers);
        }
    }

    /// Takes away permits that the session has no pins for: all of them if it holds no pin, those
    /// beyond what it may still need with the pages at hand otherwise. Whether there were any.
    fn relieve(&self, session: u32) -> bool {
        let word = self.word(session);
        let mut old = word.load(Ordering::SeqCst);
        loop {
            let keep = if pins(old) == 0 { 0 } else { pins(old) + self.guaranteed - 1 };
            let spare = permits(old).saturating_sub(keep);
            if spare == 0 {
                return false;
            }
            let new = old - PERMIT * u64::from(spare);
            match word.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => {
                    self.taken.fetch_sub(spare, Ordering::SeqCst);
                    return true;
                }
                Err(now) => old = now,
            }
        }
    }

    fn take(&self, count: u32) -> bool {
        let mut old = self.taken.load(Ordering::SeqCst);
        while old + count <= self.buffers {
            match self.taken.compare_exchange(old, old + count, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
        false
    }

    fn word(&self, session: u32) -> &AtomicU64 {
        &self.accounts[session as usize].0
    }
}
