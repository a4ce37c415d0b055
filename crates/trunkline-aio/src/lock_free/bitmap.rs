//! An atomic bitmap: a set of small numbers any thread may change without a lock.
//!
//! We use it to keep track of the handles that are ready for a helper, the sessions that have
//! joined an I/O, and the slots that have completed. We could use a queue instead, but a queue
//! could overflow if it contained stale entries. A bitmap can't overflow, and setting a bit twice
//! does no harm. PostgreSQL's `Bitmapset` is similar, but is private to one backend.
//!
//! Changing a single bit is atomic, but scanning the whole set is not, because a scan looks at one
//! word after another. While a scan is running, another thread may set a bit in a word that the
//! scan has already visited, so the scan misses that bit. Even so, it may find a bit that is set
//! later, in a word it visits afterwards. Callers must therefore either treat the set as a hint and
//! recheck, or set the bit before they signal the thread that does the scan.

use crate::facade::atomic::{AtomicU64, Ordering};

/// The numbers in word `at` of a bitmap, lowest first.
pub(crate) fn numbers(at: usize, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let number = (bits != 0).then(|| at as u32 * 64 + bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        number
    })
}

/// A set of numbers below a fixed size.
#[derive(Debug)]
pub(crate) struct Bitmap {
    words: Box<[AtomicU64]>,
}

impl Bitmap {
    /// The empty set of numbers below `size`.
    pub(crate) fn new(size: usize) -> Self {
        Self { words: (0..size.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Adds a number. The thread that removes it again is guaranteed to see everything this thread
    /// wrote before adding it.
    pub(crate) fn insert(&self, number: u32) {
        self.words[number as usize / 64].fetch_or(1 << (number % 64), Ordering::SeqCst);
    }

    /// Removes a number. If several threads do this at the same time, exactly one of them gets
    /// true.
    pub(crate) fn remove(&self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        self.words[number as usize / 64].fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    /// Whether the set contains the number now.
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words[number as usize / 64].load(Ordering::SeqCst) & (1 << (number % 64)) != 0
    }

    /// Whether the set is empty now.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| word.load(Ordering::SeqCst) == 0)
    }

    /// Removes and returns a number. We start searching at the word that contains `start`, and wrap
    /// around at the end of the bitmap.
    pub(crate) fn pop(&self, start: u32) -> Option<u32> {
        let count = self.words.len();
        let first = start as usize / 64 % count.max(1);
        (first..first + count).find_map(|at| {
            let at = at % count;
            let bits = self.words[at].load(Ordering::SeqCst);
            numbers(at, bits).find(|&number| self.remove(number))
        })
    }

    /// Removes all numbers and calls `f` for each.
    pub(crate) fn drain(&self, mut f: impl FnMut(u32)) {
        for (at, word) in self.words.iter().enumerate() {
            // Do a plain load first, because the set is almost always empty. A swap would have to
            // acquire exclusive ownership of the cache line even if there is nothing to remove.
            if word.load(Ordering::SeqCst) == 0 {
                continue;
            }
            numbers(at, word.swap(0, Ordering::SeqCst)).for_each(&mut f);
        }
    }

    /// The numbers in the set, lowest first. They are not removed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(at, word)| numbers(at, word.load(Ordering::SeqCst)))
    }

    /// Returns how many numbers the set contains. The result is only approximate if other threads
    /// are changing the set.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.load(Ordering::SeqCst).count_ones() as usize).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn pop_starts_at_the_given_number_and_wraps() {
        let set = Bitmap::new(200);
        for number in [3, 70, 199] {
            set.insert(number);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 70, 199]);
        assert_eq!(set.pop(64), Some(70));
        assert_eq!(set.pop(64), Some(199));
        assert_eq!(set.pop(64), Some(3));
        assert_eq!(set.pop(64), None);
        assert!(set.is_empty());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::facade::Arc;

    #[test]
    fn loom_each_bit_is_popped_once() {
        loom::model(|| {
            let set = Arc::new(Bitmap::new(64));
            set.insert(1);
            set.insert(2);
            let other = Arc::clone(&set);
            let thread = loom::thread::spawn(move || other.pop(0));
            let mine = set.pop(0);
            let theirs = thread.join().unwrap_or(None);
            assert!(mine.is_some() && theirs.is_some() && mine != theirs);
            assert!(set.is_empty());
        });
    }
}
