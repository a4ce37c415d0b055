//! An atomic bitmap: a set of small numbers any thread may change without a lock.
//!
//! We use it for the handles that are ready for a helper, the sessions that joined an I/O, and the
//! slots that have completed. A queue would work too, but stale entries could overflow it. A bitmap
//! can't overflow, and setting a bit twice is harmless. PostgreSQL's `Bitmapset` is similar but
//! private to a backend.
//!
//! Each bit is changed atomically, but the set as a whole is not. A scan visits one word after
//! another, so it may miss a bit that is set behind it but see one that is set ahead of it. Callers
//! must therefore either treat the set as a hint and recheck, or set the bit before they signal.

use crate::sync::atomic::{AtomicU64, Ordering};

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

    /// Adds a number. All of this thread's earlier writes are visible to the thread that removes
    /// the number.
    pub(crate) fn insert(&self, number: u32) {
        self.words[number as usize / 64].fetch_or(1 << (number % 64), Ordering::SeqCst);
    }

    /// Removes a number. Of several concurrent callers, exactly one gets true.
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

    /// Removes and returns a number. The search begins at the word that contains `start` and wraps
    /// around.
    pub(crate) fn pop(&self, start: u32) -> Option<u32> {
        let count = self.words.len();
        let first = start as usize / 64 % count.max(1);
        for i in 0..count {
            let at = (first + i) % count;
            let mut bits = self.words[at].load(Ordering::SeqCst);
            while bits != 0 {
                let number = at as u32 * 64 + bits.trailing_zeros();
                if self.remove(number) {
                    return Some(number);
                }
                bits &= bits - 1;
            }
        }
        None
    }

    /// Removes all numbers and calls `f` for each.
    pub(crate) fn drain(&self, mut f: impl FnMut(u32)) {
        for (at, word) in self.words.iter().enumerate() {
            // Do a plain load first. The set is almost always empty, and a swap would take the
            // cache line exclusively.
            if word.load(Ordering::SeqCst) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                f(at as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// Calls `f` for each number currently in the set, without removing it.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32)) {
        for (at, word) in self.words.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                f(at as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// How many numbers the set contains. The count is only approximate under concurrent changes.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.load(Ordering::SeqCst).count_ones() as usize).sum()
    }

    /// The lowest number in the set for which `wanted` is true. The bit is not removed.
    pub(crate) fn find(&self, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        self.words.iter().enumerate().find_map(|(at, word)| {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                let number = at as u32 * 64 + bits.trailing_zeros();
                if wanted(number) {
                    return Some(number);
                }
                bits &= bits - 1;
            }
            None
        })
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
        let mut all = Vec::new();
        set.for_each(|number| all.push(number));
        assert_eq!(all, [3, 70, 199]);
        assert_eq!(set.find(|_| true), Some(3));
        assert_eq!(set.find(|number| number > 3), Some(70));
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
    use crate::sync::Arc;

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
