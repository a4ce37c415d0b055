//! The clock sweep: which page goes when another one comes.
//!
//! One hand goes round all buffers. It takes what nobody has pinned or used since its last visits
//! and makes what was used a little less so (`BufferWord::tick`). A caller that wants several
//! buffers moves the hand past as many at once and looks at those alone, so that what it gets are
//! neighbours as far as possible: a combined read into neighbouring frames is one piece of memory,
//! which direct I/O rewards with 1.7 times the rate (decision record 0001).

use super::state::{BufferWord, Tick};
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};

/// Buffers that cannot be had, one after the other, after which the hand rests: each is a cache line or more
/// to look at, one of the map of clean pages tells of 512.
const PATIENCE: u32 = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Buffers passed since the start.
    hand: AtomicU64,
    buffers: u32,
}

impl Clock {
    /// Over buffers 0 to `buffers` - 1.
    pub(crate) fn new(buffers: u32) -> Self {
        Self { hand: AtomicU64::new(0), buffers }
    }

    /// Complete rounds, and the buffer that is next.
    pub(crate) fn position(&self) -> (u64, u32) {
        let hand = self.hand.load(Ordering::Relaxed);
        (hand / u64::from(self.buffers), (hand % u64::from(self.buffers)) as u32)
    }

    /// Takes up to `want` buffers, each pinned once, and offers them to `take`, which says whether
    /// it could use them. Returns how many are still wanted: some only if the hand has passed by
    /// [`PATIENCE`] buffers, or all there are, without finding one that can be had now or after a
    /// later visit.
    pub(crate) fn sweep<'a>(
        &self,
        want: u32,
        word: impl Fn(u32) -> &'a BufferWord,
        mut take: impl FnMut(u32) -> bool,
    ) -> u32 {
        let mut left = want;
        // Every buffer that could not be had counts, whatever the reason: a pool with nothing but
        // pinned buffers must end the search.
        let mut in_vain = 0;
        while left > 0 && in_vain < self.buffers.min(PATIENCE) {
            let run = left.min(self.buffers);
            let first = self.hand.fetch_add(u64::from(run), Ordering::Relaxed);
            for at in first..first + u64::from(run) {
                let buffer = (at % u64::from(self.buffers)) as u32;
                match word(buffer).tick() {
                    Tick::Taken if take(buffer) => {
                        left -= 1;
                        in_vain = 0;
                    }
                    Tick::Decremented => in_vain = 0,
                    Tick::Taken | Tick::Unusable => in_vain += 1,
                }
            }
        }
        left
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words(count: u32) -> Vec<BufferWord> {
        (0..count).map(|_| BufferWord::new()).collect()
    }

    fn sweep(clock: &Clock, words: &[BufferWord], want: u32) -> Vec<u32> {
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
    fn an_empty_pool_gives_neighbours() {
        let (clock, words) = (Clock::new(64), words(64));
        assert_eq!(sweep(&clock, &words, 16), (0..16).collect::<Vec<_>>());
        assert_eq!(sweep(&clock, &words, 16), (16..32).collect::<Vec<_>>());
    }

    #[test]
    fn a_pool_of_pinned_pages_ends_the_search() {
        let (clock, words) = (Clock::new(16), words(16));
        assert_eq!(sweep(&clock, &words, 100).len(), 16);
        assert_eq!(sweep(&clock, &words, 1), []);
        words[5].unpin();
        assert_eq!(sweep(&clock, &words, 2), [5], "the one that can be had");
    }

    #[test]
    fn what_was_used_stays_longer() {
        let (clock, words) = (Clock::new(4), words(4));
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

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use trunkline_aio::sync::Arc;

    /// Two hands on one clock never give the same buffer to both.
    #[test]
    fn loom_nobody_gets_what_another_got() {
        loom::model(|| {
            let shared = Arc::new((Clock::new(2), [BufferWord::new(), BufferWord::new()]));
            let theirs = Arc::clone(&shared);
            let other = loom::thread::spawn(move || {
                let mut taken = 0_u32;
                let (clock, words) = &*theirs;
                clock.sweep(
                    1,
                    |buffer| &words[buffer as usize],
                    |buffer| {
                        taken |= 1 << buffer;
                        true
                    },
                );
                taken
            });
            let mut taken = 0_u32;
            let (clock, words) = &*shared;
            clock.sweep(
                1,
                |buffer| &words[buffer as usize],
                |buffer| {
                    taken |= 1 << buffer;
                    true
                },
            );
            let other = other.join().unwrap_or(0);
            assert_eq!(taken & other, 0);
            assert_eq!((taken | other).count_ones(), 2, "there is one for each");
        });
    }
}
