//! Sessions to be woken at the end of a batch of results, once each.
//!
//! A driver reaps many results at a time. Woken for the first one, a session would take it and
//! sleep again before the next; a wake-up costs more than a completion. So a driver collects here
//! whose I/Os it completed, and how many, and wakes when it is through with the batch.

use crate::limits::SESSIONS_MAX;
use crate::session::SessionSlot;

/// See the module. Dropping it wakes.
pub(crate) struct Wakes<'s> {
    sessions: &'s [SessionSlot],
    counts: [u32; SESSIONS_MAX],
    /// A bit per session with a count.
    words: [u64; SESSIONS_MAX / 64],
}

impl<'s> Wakes<'s> {
    pub(crate) fn new(sessions: &'s [SessionSlot]) -> Self {
        Self { sessions, counts: [0; SESSIONS_MAX], words: [0; SESSIONS_MAX / 64] }
    }

    /// One more I/O of this session is complete.
    pub(crate) fn add(&mut self, session: u32) {
        self.counts[session as usize] += 1;
        self.words[session as usize / 64] |= 1 << (session % 64);
    }
}

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        for (at, mut bits) in self.words.into_iter().enumerate() {
            while bits != 0 {
                let session = at * 64 + bits.trailing_zeros() as usize;
                self.sessions[session].event.completed(self.counts[session]);
                bits &= bits - 1;
            }
        }
    }
}
