//! A batch's wake-ups, delivered together.
//!
//! A ring driver reaps many results at a time. If it woke a session as soon as it saw the session's
//! first result, the session would take that result and go back to sleep before its next I/O
//! completes. Waking a session costs more than completing an I/O, so the driver just counts each
//! session's completed I/Os, and wakes each session once at the end of the batch.

use crate::lock_free::bitmap::numbers;
use crate::tables::session_table::SessionTable;

/// Sessions to wake at the end of a batch. The driver uses the same memory for all its batches.
#[derive(Debug)]
pub(crate) struct WakeBatch {
    counts: Box<[u32]>,
    /// One bit per session with completed I/Os, so that it's cheap to deliver an almost empty
    /// batch.
    words: Box<[u64]>,
}

impl WakeBatch {
    /// An empty batch for session numbers below `sessions`.
    pub(crate) fn new(sessions: u32) -> Self {
        let words = (sessions as usize).div_ceil(64);
        Self { counts: vec![0; sessions as usize].into(), words: vec![0; words].into() }
    }

    /// Counts one completed I/O of `session`.
    pub(crate) fn add(&mut self, session: u32) {
        self.counts[session as usize] += 1;
        self.words[session as usize / 64] |= 1 << (session % 64);
    }

    /// Wakes the sessions of the batch, and empties it.
    pub(crate) fn deliver(&mut self, sessions: &SessionTable) {
        for (at, bits) in self.words.iter_mut().enumerate() {
            for session in numbers(at, std::mem::take(bits)) {
                let count = std::mem::take(&mut self.counts[session as usize]);
                sessions.slot(session).event().completed(count);
            }
        }
    }
}
