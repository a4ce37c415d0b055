//! Commits whose record is in the WAL, and whose status is not in the commit log yet (`DELAY_CHKPT_START`).
//!
//! A checkpoint must not write the commit log while a commit whose record is before the redo point is still missing
//! there: redo would not see that record. So it waits for those commits. Later ones don't wait for the checkpoint.
//!
//! ```text
//!   enter: even │ even │ ── the checkpoint's redo point ── │ odd │ odd
//!               ╰──────┴── it waits until these have left
//! ```

use trunkline_aio::facade::{Futex, Mutex};

/// The commits in progress.
#[derive(Debug)]
pub(super) struct CommitGate {
    state: Mutex<State>,
    /// Signalled when the last commit of a side has left.
    empty: Futex,
}

#[derive(Debug, Default)]
struct State {
    /// Which side commits enter.
    side: usize,
    inside: [u64; 2],
    /// A thread has panicked in a commit, whose status may be missing in the commit log for ever.
    has_panicked: bool,
}

/// A commit in progress. Ends when it is dropped.
#[derive(Debug)]
pub(super) struct InCommit<'g> {
    gate: &'g CommitGate,
    side: usize,
}

impl CommitGate {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), empty: Futex::new(0) }
    }

    /// A commit begins. Its record is not inserted yet.
    pub(super) fn enter(&self) -> InCommit<'_> {
        let mut state = self.state.lock();
        let side = state.side;
        state.inside[side] += 1;
        InCommit { gate: self, side }
    }

    /// Waits for all commits that have begun. Only one thread may do so at a time. Returns false if one of them, or an
    /// earlier one, has panicked: no checkpoint may follow.
    pub(super) fn wait_for_earlier(&self) -> bool {
        let side = {
            let mut state = self.state.lock();
            state.side = 1 - state.side;
            1 - state.side
        };
        loop {
            let epoch = self.empty.epoch();
            let state = self.state.lock();
            if state.inside[side] == 0 {
                return !state.has_panicked;
            }
            drop(state);
            self.empty.wait(epoch, None);
        }
    }
}

impl Drop for InCommit<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.has_panicked |= std::thread::panicking();
        state.inside[self.side] -= 1;
        if state.inside[self.side] == 0 {
            drop(state);
            self.gate.empty.signal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
    use trunkline_aio::facade::{Arc, thread};

    #[test]
    fn a_checkpoint_waits_for_earlier_commits_only() {
        let gate = Arc::new(CommitGate::new());
        let ended = Arc::new(AtomicBool::new(false));
        let earlier = gate.enter();
        let (theirs, has_ended) = (Arc::clone(&gate), Arc::clone(&ended));
        let waiter = thread::spawn("checkpoint", move || {
            assert!(theirs.wait_for_earlier());
            assert!(has_ended.load(Ordering::SeqCst), "an earlier commit was still in progress");
        });
        while gate.state.lock().side == 0 {
            thread::yield_now();
        }
        // This one doesn't end before the checkpoint has waited.
        let later = gate.enter();
        ended.store(true, Ordering::SeqCst);
        drop(earlier);
        waiter.expect("started").join().expect("no panic");
        drop(later);
        assert!(gate.wait_for_earlier());
    }

    #[test]
    fn no_checkpoint_follows_a_commit_that_has_panicked() {
        let gate = Arc::new(CommitGate::new());
        let theirs = Arc::clone(&gate);
        let body = move || {
            let _commit = theirs.enter();
            panic!("in a commit");
        };
        assert!(thread::spawn("commit", body).expect("started").join().is_err());
        assert!(!gate.wait_for_earlier());
        assert!(!gate.wait_for_earlier());
    }
}
