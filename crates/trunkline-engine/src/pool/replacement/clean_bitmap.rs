//! Clean-buffer bitmap: one bit per buffer that may be clean.
//!
//! The clock sweep skips dirty buffers. If nearly all pages in the pool are dirty, it might have to
//! visit every descriptor to find a single victim, or to find out that there is no victim at all.
//! The bitmap lets us check 64 buffers with a single load.
//!
//! ```text
//!   a page was written, or discarded   ──▶ set its bit
//!   a search finds a set bit, but dirty ──▶ clear the bit, and test the page again
//! ```
//!
//! Code that dirties a page doesn't update the bitmap, so changing a page costs nothing extra. This
//! means that if a bit is clear, the page must be dirty, but if a bit is set, that's only a hint
//! and must be rechecked. We must make sure that the search doesn't clear the bit of a page that is
//! just becoming clean. A thread that cleans a page first changes the state word and then sets the
//! bit. The search first clears the bit and then checks the state word again. So either the search
//! sees that the page is clean, or the thread sets the bit after the search has cleared it.
//!
//! Without this second check, the bit of a clean page could remain clear until the page's next
//! write. A session searching for a victim would not find the page, and might wait even though
//! there is a victim.

use std::ops::ControlFlow;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};

/// One bit per buffer, set if the buffer may be clean.
#[derive(Debug)]
pub(crate) struct CleanBitmap {
    bits: Box<[AtomicU64]>,
}

impl CleanBitmap {
    /// A bitmap of buffers that are all clean.
    pub(crate) fn new(buffers: u32) -> Self {
        let words = buffers.div_ceil(64);
        let bits = |word: u32| match buffers - word * 64 {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
        Self { bits: (0..words).map(|word| AtomicU64::new(bits(word))).collect() }
    }

    /// Sets the bit of a buffer that has become clean. The caller must have changed the state word
    /// before.
    pub(crate) fn set(&self, buffer: u32) {
        // Set the bit even if it seems to be set already, because another thread may be about to
        // clear it.
        self.bits[buffer as usize / 64].fetch_or(1 << (buffer % 64), Ordering::SeqCst);
    }

    /// Visits every clean buffer, starting with the bitmap word that contains `first`, until
    /// `visit` returns `Break`. Returns true in that case. A buffer whose state changes during the
    /// call may or may not be visited.
    pub(crate) fn visit(
        &self,
        first: u32,
        is_dirty: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> bool {
        let words = self.bits.len();
        let first = first as usize / 64;
        (first..words).chain(0..first).any(|word| {
            let mut left = self.bits[word].load(Ordering::SeqCst);
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let buffer = word as u32 * 64 + bit;
                if is_dirty(buffer) && !self.clear_dirty(buffer, &is_dirty) {
                    continue;
                }
                if visit(buffer).is_break() {
                    return true;
                }
            }
            false
        })
    }

    /// Clears the bit of a dirty buffer. If the buffer has become clean in the meantime, sets the
    /// bit again and returns true.
    fn clear_dirty(&self, buffer: u32, is_dirty: impl Fn(u32) -> bool) -> bool {
        self.bits[buffer as usize / 64].fetch_and(!(1 << (buffer % 64)), Ordering::SeqCst);
        let clean = !is_dirty(buffer);
        if clean {
            self.set(buffer);
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn visited(bitmap: &CleanBitmap, from: u32, dirty: &BTreeSet<u32>) -> Vec<u32> {
        let mut all = Vec::new();
        let ended = bitmap.visit(
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
    fn every_buffer_is_clean_at_start() {
        for buffers in [1, 63, 64, 65, 130] {
            let bitmap = CleanBitmap::new(buffers);
            assert_eq!(visited(&bitmap, 0, &BTreeSet::new()), (0..buffers).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_dirty_buffer_is_tested_once() {
        let bitmap = CleanBitmap::new(200);
        let dirty: BTreeSet<u32> = (0..200).filter(|buffer| buffer % 50 != 7).collect();
        assert_eq!(visited(&bitmap, 130, &dirty), [157, 7, 57, 107], "from the word of 130 on");
        assert_eq!(bitmap.bits[1].load(Ordering::SeqCst), 1 << (107 - 64));
        // A clean buffer stays hidden until its bit is set.
        assert_eq!(visited(&bitmap, 0, &BTreeSet::new()), [7, 57, 107, 157]);
        bitmap.set(8);
        assert_eq!(visited(&bitmap, 0, &BTreeSet::new()), [7, 8, 57, 107, 157]);
    }

    #[test]
    fn a_visit_can_end_the_search() {
        let bitmap = CleanBitmap::new(100);
        let mut visited = Vec::new();
        let ended = bitmap.visit(
            0,
            |_| false,
            |buffer| {
                visited.push(buffer);
                if buffer == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert!(ended && visited == [0, 1, 2]);
    }
}
