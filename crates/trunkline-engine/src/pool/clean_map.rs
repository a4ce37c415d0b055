//! Which buffers may have nothing to write, a bit each: where to look when nearly all have.
//!
//! The clock passes by what must be written first. In a pool full of changed pages it would go round all
//! of them for every page that comes in, and whoever asks whether there is a clean one would look at
//! each. The map is looked at instead, 64 buffers at a time.
//!
//! ```text
//!   a page becomes clean, or is discarded ──▶ its bit is set
//!   somebody who looks finds it changed   ──▶ its bit is cleared, and the page looked at again
//! ```
//! So whoever changes a page need not know of the map, and a bit that is not set is that of a page with
//! something to write: a page that became clean between the two looks of whoever clears the bit is seen
//! by the second one, or sets the bit after it was cleared.

use std::ops::ControlFlow;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub(crate) struct CleanMap {
    bits: Box<[AtomicU64]>,
}

impl CleanMap {
    /// Of buffers 0 to `buffers` - 1, which are all clean.
    pub(crate) fn new(buffers: u32) -> Self {
        let words = buffers.div_ceil(64);
        let bits = |word: u32| match buffers - word * 64 {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
        Self { bits: (0..words).map(|word| AtomicU64::new(bits(word))).collect() }
    }

    /// A page has become clean: its word says so already, and somebody has it pinned.
    pub(crate) fn set(&self, buffer: u32) {
        // Also if it seems to be set: somebody may be about to clear it.
        self.bits[buffer as usize / 64].fetch_or(1 << (buffer % 64), Ordering::SeqCst);
    }

    /// Visits every buffer that is clean, about from one on, until a visit ends it; true if one does.
    /// Perhaps some that became clean or were changed meanwhile.
    pub(crate) fn visit(
        &self,
        from: u32,
        is_dirty: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> bool {
        let words = self.bits.len();
        let first = from as usize / 64;
        (first..words).chain(0..first).any(|word| {
            let mut left = self.bits[word].load(Ordering::SeqCst);
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let buffer = word as u32 * 64 + bit;
                if is_dirty(buffer) && !self.clears(buffer, &is_dirty) {
                    continue;
                }
                if visit(buffer).is_break() {
                    return true;
                }
            }
            false
        })
    }

    /// Clears the bit of a page that was changed. True: it has become clean.
    fn clears(&self, buffer: u32, is_dirty: impl Fn(u32) -> bool) -> bool {
        self.bits[buffer as usize / 64].fetch_and(!(1 << (buffer % 64)), Ordering::SeqCst);
        let clean = !is_dirty(buffer);
        if clean {
            self.set(buffer);
        }
        clean
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn visited(map: &CleanMap, from: u32, dirty: &BTreeSet<u32>) -> Vec<u32> {
        let mut all = Vec::new();
        let ended = map.visit(
            from,
            |buffer| dirty.contains(&buffer),
            |buffer| {
                all.push(buffer);
                ControlFlow::Continue(())
            },
        );
        assert!(!ended);
        all
    }

    #[test]
    fn all_are_clean_in_the_beginning() {
        for buffers in [1, 63, 64, 65, 130] {
            let map = CleanMap::new(buffers);
            assert_eq!(visited(&map, 0, &BTreeSet::new()), (0..buffers).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_changed_is_looked_at_once() {
        let map = CleanMap::new(200);
        let dirty: BTreeSet<u32> = (0..200).filter(|buffer| buffer % 50 != 7).collect();
        assert_eq!(visited(&map, 130, &dirty), [157, 7, 57, 107], "from the word of 130 on");
        assert_eq!(map.bits[1].load(Ordering::SeqCst), 1 << (107 - 64));
        // Not known to be clean until somebody says so.
        assert_eq!(visited(&map, 0, &BTreeSet::new()), [7, 57, 107, 157]);
        map.set(8);
        assert_eq!(visited(&map, 0, &BTreeSet::new()), [7, 8, 57, 107, 157]);
    }

    #[test]
    fn a_visit_may_end_it() {
        let map = CleanMap::new(100);
        let mut seen = Vec::new();
        let ended = map.visit(
            0,
            |_| false,
            |buffer| {
                seen.push(buffer);
                if buffer == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert!(ended && seen == [0, 1, 2]);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use trunkline_aio::sync::Arc;
    use trunkline_aio::sync::atomic::AtomicBool;

    /// A page becomes clean while somebody who saw it changed clears its bit: it is found.
    #[test]
    fn loom_a_page_that_becomes_clean_is_found() {
        loom::model(|| {
            let shared = Arc::new((CleanMap::new(1), AtomicBool::new(true)));
            let theirs = Arc::clone(&shared);
            let writer = loom::thread::spawn(move || {
                theirs.1.store(false, Ordering::SeqCst);
                theirs.0.set(0);
            });
            let (map, dirty) = &*shared;
            let found = || {
                let dirty = |_| dirty.load(Ordering::SeqCst);
                map.visit(0, dirty, |_| ControlFlow::Break(()))
            };
            found();
            assert!(writer.join().is_ok());
            assert!(found());
        });
    }
}
