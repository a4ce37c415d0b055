//! A batch's wake-ups, delivered together.
//!
//! A ring driver reaps many results at a time. If it woke a session as soon as it saw the session's
//! first result, the session would take that result and go back to sleep before its next I/O
//! completes. Waking a session costs more than completing an I/O, so the driver just counts each
//! session's completed I/Os, and wakes each session once at the end of the batch.

use crate::limits::SESSIONS_MAX;
use crate::lock_free::bitmap::numbers;
use crate::tables::session_table::SessionTable;

/// Sessions to wake when this is dropped.
pub(crate) struct WakeBatch<'s> {
    sessions: &'s SessionTable,
    counts: [u32; SESSIONS_MAX],
    /// One bit per session with completed I/Os, so that dropping an almost empty batch is cheap.
    words: [u64; SESSIONS_MAX / 64],
}

impl<'s> WakeBatch<'s> {
    pub(crate) fn new(sessions: &'s SessionTable) -> Self {
        Self { sessions, counts: [0; SESSIONS_MAX], words: [0; SESSIONS_MAX / 64] }
    }

    /// Counts one completed I/O of `session`.
    pub(crate) fn add(&mut self, session: u32) {
        self.counts[session as usize] += 1;
        self.words[session as usize / 64] |= 1 << (session % 64);
    }
}

impl Drop for WakeBatch<'_> {
    fn drop(&mut self) {
        for (at, &bits) in self.words.iter().enumerate() {
            for session in numbers(at, bits) {
                let count = self.counts[session as usize];
                self.sessions.slot(session).event().completed(count);
            }
        }
    }
}
