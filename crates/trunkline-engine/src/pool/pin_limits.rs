//! Pin limits: guarantees that a session can always pin the pages that a single operation needs,
//! even in a pool of 16 buffers.
//!
//! A session that wants its first pin is *admitted*: it gets permits for [`PINS_GUARANTEED`] pins,
//! which is as many as any single step of any code path needs. The sum of all permits never exceeds
//! the number of buffers. An admitted session therefore always finds a victim, at the latest when
//! other sessions' I/O completes. A session that cannot be admitted waits until another session has
//! released its pages. It holds no pin while it waits, so sessions that wait for admission cannot
//! deadlock each other.
//!
//! Permits beyond the guarantee are for look-ahead. Each grant takes at most half of the free
//! permits, and none are granted while any session is waiting for admission.
//!
//! ```text
//!   invariant: buffers ≥ sum of all permits;  a session's pins ≤ its permits
//!
//!   no permits ──admit──▶ 4 ──grant──▶ more ──reclaim (under pressure)──▶ pins + 3
//!       ▲                                                                    │
//!       └──────────────── reclaimed by a waiter, if no pin is held ◀─────────┘
//! ```
//!
//! PostgreSQL divides the pool by the number of sessions that could exist, and reports "no unpinned
//! buffers available" if a code path pins more (`docs/postgres-lessons.md#lesson-11`,
//! `#lesson-12`). Here a session without pins reserves nothing.
//!
//! # Why the invariant holds
//!
//! `taken` is never less than the sum of the permits in all accounts. A grant raises `taken` first
//! and the account second. A reclaim lowers the account first and `taken` second. A thread that
//! stops between the two steps only makes permits scarcer for a moment, but there are never more
//! permits than buffers.
//!
//! A session's pins and permits share one atomic word. Reserving a pin tests the permits and counts
//! the pin in one step, so another session can reclaim unused permits at any time without a lock.
//! Only the session itself raises its pins and permits, but any thread may lower them, for example
//! when a [`super::Pin`] is dropped elsewhere.

use super::waiters::SessionSet;
use trunkline_aio::Notifier;
use trunkline_aio::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use trunkline_aio::limits::SESSIONS_MAX;

/// Pins that an admitted session can always hold: the current pages of two scans, and two further
/// pages that those lead to, such as a TOAST or visibility map page. A code path that would need
/// more pins copies the data out of a page and releases it.
pub const PINS_GUARANTEED: u32 = 4;

const PERMIT: u64 = 1 << 32;

/// A session's pins (low half) and permits (high half), in its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Account(AtomicU64);

impl Account {
    fn load(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Applies `change` to the account, and returns the old value. If `change` returns `None`, so
    /// does this, and the account stays as it is. `change` runs again whenever another thread has
    /// changed the account in between.
    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut old = self.load();
        loop {
            match self.0.compare_exchange(old, change(old)?, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Some(old),
                Err(now) => old = now,
            }
        }
    }
}

fn pins(account: u64) -> u32 {
    account as u32
}

fn permits(account: u64) -> u32 {
    (account >> 32) as u32
}

/// The session holds this many pins, which is at least its guarantee, and no permit is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyPins(pub(crate) u32);

/// The permits of all sessions.
#[derive(Debug)]
pub(crate) struct PinLimiter {
    buffers: u32,
    guaranteed: u32,
    /// Maximum number of buffers that one session's look-ahead may use.
    ahead_max: u32,
    /// Permits given out. May exceed the sum of all accounts for a moment, but is never less.
    taken: AtomicU32,
    accounts: Box<[Account]>,
    /// Sessions that wait for admission. While it is not empty, no permits are granted for
    /// look-ahead, and unused permits are returned with every pin that is released.
    waiters: SessionSet,
    notifier: Notifier,
}

impl PinLimiter {
    /// For a pool of `buffers`; one session's look-ahead may use `ahead_max` of them.
    pub(crate) fn new(buffers: u32, ahead_max: u32, notifier: Notifier) -> Self {
        Self {
            buffers,
            guaranteed: PINS_GUARANTEED.min(buffers),
            ahead_max,
            taken: AtomicU32::new(0),
            accounts: (0..SESSIONS_MAX).map(|_| Account::default()).collect(),
            waiters: SessionSet::new(),
            notifier,
        }
    }

    /// Pins that the session holds or has reserved.
    pub(crate) fn pins(&self, session: u32) -> u32 {
        pins(self.account(session).load())
    }

    /// Permits given out.
    pub(crate) fn taken(&self) -> u32 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Sessions that wait for admission.
    pub(crate) fn waiters(&self) -> &SessionSet {
        &self.waiters
    }

    /// Maximum number of pins that one session's look-ahead may hold.
    pub(crate) fn ahead_max(&self) -> u32 {
        self.ahead_max.max(1)
    }

    /// Reserves one pin if the session's permits allow it.
    pub(crate) fn reserve(&self, session: u32) -> bool {
        self.reserve_up_to(session, 1, 0) == 1
    }

    /// Reserves up to `want` pins for look-ahead, and returns how many it reserved. Leaves enough
    /// of the guarantee for the work on the current page.
    pub(crate) fn reserve_ahead(&self, session: u32, want: u32) -> u32 {
        self.reserve_up_to(session, want, self.guaranteed - 1)
    }

    /// Reserves as many of `want` pins as the permits allow, if `leave` permits stay unused.
    fn reserve_up_to(&self, session: u32, want: u32, leave: u32) -> u32 {
        let count = |old| want.min(permits(old).saturating_sub(pins(old) + leave));
        let reserve = |old| (count(old) > 0).then(|| old + u64::from(count(old)));
        self.account(session).update(reserve).map_or(0, count)
    }

    /// Reserves one pin, with an additional permit if one is free. Returns false if the session
    /// must be admitted first.
    ///
    /// # Errors
    /// The session holds its whole guarantee, and no permit is free. If it waited and other
    /// sessions did the same, they would deadlock.
    pub(crate) fn reserve_or_grant(&self, session: u32) -> Result<bool, TooManyPins> {
        if self.reserve(session) {
            return Ok(true);
        }
        if !self.is_admitted(session) {
            return Ok(false);
        }
        if self.take(1) {
            self.grant(session, 1);
        }
        if self.reserve(session) {
            return Ok(true);
        }
        match self.pins(session) {
            held if held >= PINS_GUARANTEED => Err(TooManyPins(held)),
            _ => Ok(false),
        }
    }

    /// Returns reserved pins. While a session waits for admission, also returns unused permits. The
    /// pin count is lowered before the waiters are tested, and a waiter registers before it tries
    /// to be admitted, so at least one of the two sees the other.
    pub(crate) fn give_back(&self, session: u32, count: u32) {
        let old = self.account(session).0.fetch_sub(u64::from(count), Ordering::SeqCst);
        assert!(pins(old) >= count, "more pins given back than were reserved");
        if !self.waiters.is_empty() && self.reclaim(session) {
            self.waiters.notify(&self.notifier);
        }
    }

    /// Admits the session. Returns true if it has its guaranteed permits, whether they were granted
    /// now or earlier.
    pub(crate) fn admit(&self, session: u32) -> bool {
        if permits(self.account(session).load()) >= self.guaranteed {
            return true;
        }
        if !self.take(self.guaranteed) {
            // Other sessions may keep permits that they have no pins for. Keeping them saves a call
            // of this function on their next read, so we reclaim such permits only here.
            (0..SESSIONS_MAX as u32).filter(|&other| other != session).for_each(|other| {
                self.reclaim(other);
            });
            if !self.take(self.guaranteed) {
                return false;
            }
            // We may have reclaimed more than this session needs, so let other waiters try as well.
            self.waiters.notify(&self.notifier);
        }
        self.account(session).0.fetch_add(PERMIT * u64::from(self.guaranteed), Ordering::SeqCst);
        true
    }

    /// Raises the permits of an admitted session so that it can reserve up to `want` more pins for
    /// look-ahead. It grants at most half of the free permits, so that the first of several scans
    /// doesn't take the whole pool: the second scan still gets half of the rest. Grants nothing
    /// while a session waits for admission.
    pub(crate) fn grant_ahead(&self, session: u32, want: u32) {
        let old = self.account(session).load();
        let (held, allowed) = (pins(old), permits(old));
        let wanted = (held + want).min(self.ahead_max.max(1)) + self.guaranteed - 1;
        let short = wanted.saturating_sub(allowed);
        if short == 0 || allowed == 0 || !self.waiters.is_empty() {
            return;
        }
        let free = self.buffers - self.taken().min(self.buffers);
        let count = short.min(free.div_ceil(2));
        if count > 0 && self.take(count) {
            self.grant(session, count);
        }
    }

    /// Adds permits that have already been taken to the session's account, unless all of the
    /// session's permits were reclaimed in between. With fewer permits than the guarantee, the
    /// session could hold pins while it waits for admission, which could deadlock.
    fn grant(&self, session: u32, count: u32) {
        let grant = |old| (permits(old) > 0).then_some(old + PERMIT * u64::from(count));
        if self.account(session).update(grant).is_some() {
            return;
        }
        self.taken.fetch_sub(count, Ordering::SeqCst);
        // A waiter may have failed to get permits because we held these for a moment.
        self.waiters.notify(&self.notifier);
    }

    /// Whether the session has permits.
    fn is_admitted(&self, session: u32) -> bool {
        permits(self.account(session).load()) > 0
    }

    /// Returns the permits that the session has no pins for.
    pub(crate) fn return_permits(&self, session: u32) {
        if self.reclaim(session) && !self.waiters.is_empty() {
            self.waiters.notify(&self.notifier);
        }
    }

    /// Reclaims permits that the session doesn't need. If it holds no pin, it needs none. Otherwise
    /// it keeps one permit for each pin, and enough for the further pages that the current
    /// operation may have to pin. Returns true if any permits were reclaimed.
    fn reclaim(&self, session: u32) -> bool {
        let spare = |old| {
            let keep = if pins(old) == 0 { 0 } else { pins(old) + self.guaranteed - 1 };
            permits(old).saturating_sub(keep)
        };
        let reclaim = |old| (spare(old) > 0).then(|| old - PERMIT * u64::from(spare(old)));
        let Some(old) = self.account(session).update(reclaim) else { return false };
        self.taken.fetch_sub(spare(old), Ordering::SeqCst);
        true
    }

    /// Takes `count` free permits, or none. This is the only place where `taken` grows, so it is
    /// the place that upholds the invariant.
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

    fn account(&self, session: u32) -> &Account {
        &self.accounts[session as usize]
    }
}
