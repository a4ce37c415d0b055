//! Sessions that wait for the WAL to become durable, each up to its own LSN.
//!
//! A session announces its LSN, checks its condition, and sleeps. A flush first makes the condition true and then looks
//! for waiters. Both are sequentially consistent, so no wake-up is lost. A flush that ends wakes every session whose LSN
//! is now durable, and one that needs more. That session begins the next flush, which takes all records that are
//! complete by then; waking all of them would only make most of them wait again. Tasks can't begin a flush, so they
//! wait elsewhere ([`super::requests`]).

use trunkline_aio::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use trunkline_aio::{Cancelled, Notifier, Session};
use trunkline_format::Lsn;

/// The LSN of a session that doesn't wait. No session waits for the beginning of the WAL.
const NONE: u64 = 0;

/// The LSNs for which sessions wait, by session number.
#[derive(Debug)]
pub(super) struct Waiters {
    wanted: Box<[AtomicU64]>,
    count: AtomicU32,
    notifier: Notifier,
}

impl Waiters {
    pub(super) fn new(notifier: Notifier) -> Self {
        let wanted = (0..notifier.session_numbers()).map(|_| AtomicU64::new(NONE)).collect();
        Self { wanted, count: AtomicU32::new(0), notifier }
    }

    /// Sleeps until `done` holds, announced with the LSN that the session wants.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn wait(
        &self,
        session: &mut Session,
        wanted: Lsn,
        done: impl Fn() -> bool,
    ) -> Result<(), Cancelled> {
        let announced = &self.wanted[session.id() as usize];
        self.count.fetch_add(1, Ordering::SeqCst);
        announced.store(wanted.0, Ordering::SeqCst);
        let waited = session.wait_for(done);
        announced.store(NONE, Ordering::SeqCst);
        self.count.fetch_sub(1, Ordering::SeqCst);
        waited
    }

    /// Wakes the sessions that want no more than `durable`, and one that wants more than `claimed`.
    pub(super) fn wake(&self, durable: Lsn, claimed: Lsn) {
        let mut is_chosen = false;
        for (session, wanted) in self.iter() {
            if wanted <= durable {
                self.notifier.notify(session);
            } else if wanted > claimed && !is_chosen {
                is_chosen = true;
                self.notifier.notify(session);
            }
        }
    }

    /// Wakes all of them.
    pub(super) fn wake_all(&self) {
        self.iter().for_each(|(session, _)| self.notifier.notify(session));
    }

    fn iter(&self) -> impl Iterator<Item = (u32, Lsn)> {
        let is_empty = self.count.load(Ordering::SeqCst) == 0;
        let all = if is_empty { &[] } else { &self.wanted[..] };
        let sessions = (0..).zip(all).map(|(id, wanted)| (id, wanted.load(Ordering::SeqCst)));
        sessions.filter(|(_, wanted)| *wanted != NONE).map(|(id, wanted)| (id, Lsn(wanted)))
    }
}
