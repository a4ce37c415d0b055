//! Clock sweep: chooses the victim when a page needs a buffer.
//!
//! One hand goes round all buffers, as in PostgreSQL's `StrategyGetBuffer`. A visit takes a buffer
//! that is unpinned, clean and has usage count 0, and lowers the usage count of any other unpinned
//! buffer (`BufferWord::clock_visit`).
//!
//! A caller that wants several victims advances the hand past that many buffers in one step and
//! visits only those. Its victims are then neighbours wherever possible, and a combined read into
//! neighbouring frames needs a single iovec, which makes direct I/O 1.7 times as fast (decision
//! 0001).
//!
//! Two sessions never visit the same buffer in the same round, because each takes a separate range
//! of positions from the hand. A session may be descheduled between advancing the hand and visiting
//! the buffers. That only delays the ageing of these buffers.

use super::super::descriptor::{BufferWord, ClockVisit};
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};

/// After this many buffers without a victim the sweep gives up, and we search the clean-buffer
/// bitmap instead. A visit costs a cache line; one cache line of the bitmap covers 512 buffers.
const VISITS_WITHOUT_VICTIM_MAX: u32 = 256;

/// The hand of the clock.
#[derive(Debug)]
pub(crate) struct ClockSweep {
    /// Buffers that the hand has passed since the start. The position is never reduced modulo the
    /// pool size: 64 bits do not overflow, so the number of complete rounds needs no second counter
    /// and no lock (PostgreSQL takes `buffer_strategy_lock` when the hand wraps). Relaxed order
    /// suffices, because the hand only assigns positions. Everything that is known about a buffer
    /// comes from its state word.
    hand: AtomicU64,
    buffers: u32,
}

impl ClockSweep {
    /// A clock over buffers 0 to `buffers` - 1.
    pub(crate) fn new(buffers: u32) -> Self {
        Self { hand: AtomicU64::new(0), buffers }
    }

    /// Complete rounds, and the buffer that the hand visits next.
    pub(crate) fn position(&self) -> (u64, u32) {
        let hand = self.hand.load(Ordering::Relaxed);
        (hand / u64::from(self.buffers), (hand % u64::from(self.buffers)) as u32)
    }

    /// Buffers that the hand has passed since the start.
    pub(crate) fn passed(&self) -> u64 {
        self.hand.load(Ordering::Relaxed)
    }

    /// Takes up to `want` victims, each pinned once, and offers each to `take`, which returns true
    /// if it could use the buffer. Returns how many victims are still wanted, which is more than 0
    /// only if the hand has passed [`VISITS_WITHOUT_VICTIM_MAX`] buffers, or all of them, without
    /// finding a victim or an unused page.
    pub(crate) fn sweep<'a>(
        &self,
        want: u32,
        word: impl Fn(u32) -> &'a BufferWord,
        mut take: impl FnMut(u32) -> bool,
    ) -> u32 {
        let mut left = want;
        // Every skipped buffer counts, whatever the reason. Otherwise the sweep of a pool in which
        // all buffers are pinned would never end (docs/postgres-lessons.md#lesson-31).
        let mut in_vain = 0;
        while left > 0 && in_vain < self.buffers.min(VISITS_WITHOUT_VICTIM_MAX) {
            let run = left.min(self.buffers);
            let first = self.hand.fetch_add(u64::from(run), Ordering::Relaxed);
            for at in first..first + u64::from(run) {
                let buffer = (at % u64::from(self.buffers)) as u32;
                match word(buffer).clock_visit() {
                    ClockVisit::Taken if take(buffer) => {
                        left -= 1;
                        in_vain = 0;
                    }
                    ClockVisit::Decremented => in_vain = 0,
                    ClockVisit::Taken | ClockVisit::Skipped => in_vain += 1,
                }
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: u32) -> Vec<BufferWord> {
        (0..count).map(|_| BufferWord::new()).collect()
    }

    fn sweep(clock: &ClockSweep, words: &[BufferWord], want: u32) -> Vec<u32> {
        let mut taken = Vec::new();
        clock.sweep(
            want,
            |buffer| &words[buffer as usize],
            |buffer| {
                taken.push(buffer);
                true
            },
        );
        taken
    }

    #[test]
    fn victims_of_an_empty_pool_are_neighbours() {
        let (clock, words) = (ClockSweep::new(64), words(64));
        assert_eq!(sweep(&clock, &words, 16), (0..16).collect::<Vec<_>>());
        assert_eq!(sweep(&clock, &words, 16), (16..32).collect::<Vec<_>>());
    }

    #[test]
    fn a_pool_of_pinned_pages_ends_the_sweep() {
        let (clock, words) = (ClockSweep::new(16), words(16));
        assert_eq!(sweep(&clock, &words, 100).len(), 16);
        assert_eq!(sweep(&clock, &words, 1), []);
        words[5].unpin();
        assert_eq!(sweep(&clock, &words, 2), [5], "the only unpinned buffer");
    }

    #[test]
    fn a_page_with_a_usage_count_stays_longer() {
        let (clock, words) = (ClockSweep::new(4), words(4));
        sweep(&clock, &words, 4);
        for (buffer, word) in words.iter().enumerate() {
            word.publish();
            word.finish_read(true);
            word.unpin();
            if buffer == 2 {
                word.pin(5);
                word.unpin();
            }
        }
        assert_eq!(sweep(&clock, &words, 3), [0, 1, 3], "2 was used twice");
    }
}
