//! Pin limits: guarantee that a session can always pin all the pages it needs for a single
//! operation, even in a pool of 16 buffers.
//!
//! Before a session can take its first pin, it must be *admitted*: it receives permits for as many
//! pins as it is *guaranteed*. This number is [`PINS_GUARANTEED`], unless its current operation
//! needs more pages at the same time and has said so in advance. The sum of all permits never
//! exceeds the number of buffers. An admitted session will therefore always find a victim, although
//! it may have to wait until other sessions' I/O completes. A session that can't be admitted waits
//! until another session has released its pages. It holds no pins while it waits, so sessions
//! waiting for admission can't deadlock. A guarantee can only be raised by a session that holds no
//! pins, and it can't exceed the number of buffers. Otherwise, a session might wait forever.
//!
//! Additional permits are used for look-ahead. Each time a session asks for more permits, we grant
//! at most half of the free ones, and none at all while another session is waiting for admission.
//!
//! ```text
//!   invariant: buffers ≥ sum of all permits;  a session's pins ≤ its permits
//!
//!   no permits ──admit──▶ g ──grant──▶ more ──reclaim (under pressure)──▶ pins + g - 1
//!       ▲                                                                       │
//!       └───────────────── reclaimed by a waiter, if no pin is held ◀───────────┘
//!
//!   g: the session's guaranteed number of pins
//! ```
//!
//! PostgreSQL instead divides the pool by the maximum number of sessions. If some code path needs
//! more pins than that, it can fail with "no unpinned buffers available"
//! (`docs/postgres-lessons.md#lesson-11`, `#lesson-12`). In our scheme, a session without pins
//! doesn't reserve any buffers.
//!
//! # Why the invariant holds
//!
//! `taken` is never less than the sum of the permits in all accounts. When we grant permits, we
//! raise `taken` before the account, and when we reclaim permits, we lower the account before
//! `taken`. Between the two steps, `taken` may be too high and fewer permits seem to be free than
//! really are, but there are never more permits than buffers.
//!
//! A session's pin and permit counts and its guarantee are stored in one atomic word. A session
//! reserves a pin by checking its permits and incrementing the pin count in one step, so another
//! session can safely reclaim unused permits at any time, without a lock. The guarantee must be in
//! the same word, because a session that reclaims permits must leave as many as the guarantee says
//! at that moment. Only the session itself raises these counts, but any thread may lower them, for
//! example when a [`super::Pin`] is dropped on another thread.

use super::waiters::SessionSet;
use trunkline_aio::Notifier;
use trunkline_aio::facade::atomic::{AtomicU32, AtomicU64, Ordering};

/// Number of pins that an admitted session can always hold, unless it has asked for more
/// ([`super::Backend::guarantee_pins`]). That is enough for the current pages of two scans, plus
/// two more pages that these refer to, such as a TOAST page or a visibility map page. If a code
/// path would need more pins, it must ask for them in advance, or copy data out of a page and
/// release that page.
pub const PINS_GUARANTEED: u32 = 4;

/// Maximum number of pins that a session can be guaranteed.
const GUARANTEE_MAX: u32 = 255;

/// Bits of an account for its pins, and as many for its permits. The guarantee has the rest.
const COUNT_BITS: u32 = 28;

/// Maximum number of permits of one session: a pool of 2 TiB.
const PERMITS_MAX: u32 = (1 << COUNT_BITS) - 1;

const PERMIT: u64 = 1 << COUNT_BITS;

const GUARANTEE: u64 = 1 << (2 * COUNT_BITS);

const _: () = assert!(
    GUARANTEE_MAX as u64 == u64::MAX / GUARANTEE && PINS_GUARANTEED <= GUARANTEE_MAX,
    "pins, permits and guarantee fill a word"
);

/// A session's pins (low bits), permits and guaranteed number of pins (high bits), in its own cache
/// line.
#[derive(Debug)]
#[repr(align(64))]
struct Account(AtomicU64);

impl Account {
    /// A session without pins and permits.
    fn new() -> Self {
        Self(AtomicU64::new(GUARANTEE * u64::from(PINS_GUARANTEED)))
    }

    fn load(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Applies `change` to the account, and returns the old value. If `change` returns `None`, the
    /// account is left unchanged and this also returns `None`. If another thread has changed the
    /// account in the meantime, `change` is called again.
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
    account as u32 & PERMITS_MAX
}

fn permits(account: u64) -> u32 {
    (account / PERMIT) as u32 & PERMITS_MAX
}

fn guaranteed(account: u64) -> u32 {
    (account / GUARANTEE) as u32
}

/// The session holds this many pins, which is at least its guaranteed number, and there are no free
/// permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyPins(pub(crate) u32);

/// A session can't be guaranteed the number of pins that an operation needs. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuaranteeError {
    /// No session can have that many: the limit is the size of the pool, but at most 255.
    #[error(
        "the operation needs {pins} pinned pages at a time, but a session can have at most {limit} \
         in a pool of {buffers} buffers"
    )]
    TooMany {
        /// Pins requested.
        pins: u32,
        /// Maximum number of pins that can be guaranteed.
        limit: u32,
        /// Size of the pool.
        buffers: u32,
    },
    /// The session holds pins, so it must not wait for more. Release them first, including those of
    /// its streams.
    #[error("the session holds {held} pins and can't be admitted for {pins}")]
    PinsHeld {
        /// Pins requested.
        pins: u32,
        /// Pins that the session holds.
        held: u32,
    },
}

/// The permits of all sessions.
#[derive(Debug)]
pub(crate) struct PinLimiter {
    buffers: u32,
    /// Maximum number of buffers that one session's look-ahead may use.
    ahead_max: u32,
    /// Number of permits that have been taken. It may briefly be higher than the sum of all
    /// accounts, but never lower.
    taken: AtomicU32,
    accounts: Box<[Account]>,
    /// Sessions with permits. A session that can't be admitted reclaims permits only from these. Of
    /// thousands of sessions, only a few may have permits.
    admitted: SessionSet,
    /// Sessions waiting for admission. While there are any, we don't grant permits for look-ahead,
    /// and a session that releases a pin also returns its unused permits.
    waiters: SessionSet,
    notifier: Notifier,
}

impl PinLimiter {
    /// Creates the limits for a pool of `buffers` buffers. One session's look-ahead may use at most
    /// `ahead_max` of them.
    pub(crate) fn new(buffers: u32, ahead_max: u32, notifier: Notifier) -> Self {
        let sessions = notifier.session_numbers();
        Self {
            buffers,
            ahead_max: ahead_max.clamp(1, PERMITS_MAX / 2),
            taken: AtomicU32::new(0),
            accounts: (0..sessions).map(|_| Account::new()).collect(),
            admitted: SessionSet::new(sessions),
            waiters: SessionSet::new(sessions),
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
        self.ahead_max
    }

    /// Sets the number of pins that the session is guaranteed once it is admitted, but at least
    /// [`PINS_GUARANTEED`]. If the number is raised, the session has to be admitted again.
    ///
    /// # Errors
    /// See [`GuaranteeError`].
    pub(crate) fn guarantee(&self, session: u32, pins_wanted: u32) -> Result<(), GuaranteeError> {
        let (wanted, limit) = (pins_wanted.max(PINS_GUARANTEED), self.buffers.min(GUARANTEE_MAX));
        if wanted > limit {
            let (pins, buffers) = (pins_wanted, self.buffers);
            return Err(GuaranteeError::TooMany { pins, limit, buffers });
        }
        let change = |old| match guaranteed(old).checked_sub(wanted) {
            Some(fewer) => Some(old - GUARANTEE * u64::from(fewer)),
            // Without permits, the session has to be admitted again.
            None => (pins(old) == 0).then_some(GUARANTEE * u64::from(wanted)),
        };
        let account = self.account(session);
        let Some(old) = account.update(change) else {
            let held = pins(account.load());
            return Err(GuaranteeError::PinsHeld { pins: pins_wanted, held });
        };
        if guaranteed(old) < wanted {
            self.reclaimed(session, permits(old), old);
        }
        if guaranteed(old) != wanted && !self.waiters.is_empty() {
            self.reclaim(session);
            // Even if there was nothing to reclaim, one of this session's own streams may be
            // waiting for admission, and may need fewer permits now.
            self.waiters.notify(&self.notifier);
        }
        Ok(())
    }

    /// Reserves one pin if the session's permits allow it.
    pub(crate) fn reserve(&self, session: u32) -> bool {
        self.reserve_up_to(session, 1, |_| 0) == 1
    }

    /// Reserves up to `want` pins for look-ahead, and returns the number of pins reserved. It
    /// leaves enough permits for the other pages that the session may have to pin while it
    /// processes the current page.
    pub(crate) fn reserve_ahead(&self, session: u32, want: u32) -> u32 {
        self.reserve_up_to(session, want, |account| guaranteed(account) - 1)
    }

    /// Reserves up to `want` pins, as far as the session's permits allow, but leaves at least
    /// `leave` permits of the account unused.
    fn reserve_up_to(&self, session: u32, want: u32, leave: impl Fn(u64) -> u32) -> u32 {
        let count = |old| want.min(permits(old).saturating_sub(pins(old) + leave(old)));
        let reserve = |old| (count(old) > 0).then(|| old + u64::from(count(old)));
        self.account(session).update(reserve).map_or(0, count)
    }

    /// Reserves one pin. If the session's permits are used up, tries to take another permit.
    /// Returns false if the session must be admitted first.
    ///
    /// # Errors
    /// The session already holds its guaranteed number of pins, and no permit is free. We don't
    /// wait for one, because sessions that wait while holding pins could deadlock.
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
        let account = self.account(session).load();
        match pins(account) {
            held if held >= guaranteed(account) => Err(TooManyPins(held)),
            _ => Ok(false),
        }
    }

    /// Releases reserved pins. If any session is waiting for admission, also returns this session's
    /// unused permits. We lower the pin count before we check for waiters, and a waiter registers
    /// itself before it tries to be admitted. So either we see the waiter, or the waiter sees the
    /// lower pin count.
    pub(crate) fn give_back(&self, session: u32, count: u32) {
        let old = self.account(session).0.fetch_sub(u64::from(count), Ordering::SeqCst);
        assert!(pins(old) >= count, "more pins given back than were reserved");
        if !self.waiters.is_empty() && self.reclaim(session) {
            self.waiters.notify(&self.notifier);
        }
    }

    /// Admits the session. Returns true if it now has its guaranteed permits, including if it
    /// already had them.
    pub(crate) fn admit(&self, session: u32) -> bool {
        let account = self.account(session).load();
        let guaranteed = guaranteed(account);
        if permits(account) >= guaranteed {
            return true;
        }
        if !self.take(guaranteed) {
            // Other sessions may have permits that they aren't using. They normally keep them,
            // because that saves them this call on their next read, so we reclaim unused permits
            // only if we have run out of free ones.
            let others = self.admitted.iter().filter(|&other| other != session);
            let reclaimed = others.filter(|&other| self.reclaim(other)).count();
            let taken = self.take(guaranteed);
            if reclaimed > 0 {
                // Let other waiters try as well. We may have reclaimed more than this session needs.
                // Or it needs more than that, but one of them doesn't, and the session from which
                // we reclaimed the permits can't notify it any more.
                self.waiters.notify(&self.notifier);
            }
            if !taken {
                return false;
            }
        }
        // Add it to the set first, so that no permits are hidden from other sessions.
        self.admitted.insert(session);
        self.account(session).0.fetch_add(PERMIT * u64::from(guaranteed), Ordering::SeqCst);
        true
    }

    /// Takes additional permits for an admitted session, so that it can reserve up to `want` more
    /// pins for look-ahead. We grant at most half of the free permits, so that the first of several
    /// scans can't take the whole pool: the second scan can still get half of what is left. Grants
    /// nothing while a session is waiting for admission.
    pub(crate) fn grant_ahead(&self, session: u32, want: u32) {
        let old = self.account(session).load();
        let (held, allowed) = (pins(old), permits(old));
        let wanted = (held + want).min(self.ahead_max) + guaranteed(old) - 1;
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

    /// Adds permits that the caller has already taken to the session's account. If all of the
    /// session's permits have been reclaimed in the meantime, we don't add any. Otherwise the
    /// session would have fewer permits than the guarantee, so it could hold pins while it waits
    /// for admission, which might cause a deadlock.
    fn grant(&self, session: u32, count: u32) {
        let fits = |old| permits(old) > 0 && permits(old) + count <= PERMITS_MAX;
        let grant = |old| fits(old).then_some(old + PERMIT * u64::from(count));
        if self.account(session).update(grant).is_some() {
            return;
        }
        self.taken.fetch_sub(count, Ordering::SeqCst);
        // A waiter may have failed to get permits because we were holding these for a moment.
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

    /// Reclaims the permits that the session doesn't need. A session without pins doesn't need any
    /// permits. Otherwise we leave it one permit per pin, plus enough for the other pages that its
    /// current operation may have to pin. Returns true if any permits were reclaimed.
    fn reclaim(&self, session: u32) -> bool {
        let spare = |old| {
            let keep = if pins(old) == 0 { 0 } else { pins(old) + guaranteed(old) - 1 };
            permits(old).saturating_sub(keep)
        };
        let reclaim = |old| (spare(old) > 0).then(|| old - PERMIT * u64::from(spare(old)));
        let Some(old) = self.account(session).update(reclaim) else { return false };
        self.reclaimed(session, spare(old), old);
        true
    }

    /// Makes permits available that were just removed from an account, which was `old` before.
    fn reclaimed(&self, session: u32, count: u32, old: u64) {
        self.taken.fetch_sub(count, Ordering::SeqCst);
        if count > 0 && count == permits(old) {
            self.admitted.remove(session);
        }
    }

    /// Takes `count` permits if that many are free, otherwise none. No other function increases
    /// `taken`, so this check is enough to maintain the invariant.
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

#[cfg(test)]
mod tests;
