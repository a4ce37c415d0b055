//! The free list of handles: a lock-free stack of handle indexes (a Treiber stack) with an
//! admission limit.
//!
//! Because this is a stack, the handle that was freed last is reused first, while its memory is
//! still in the CPU cache. In PostgreSQL, each backend has its own list of idle handles. Here all
//! sessions share a single list, so a busy session can use handles that other sessions don't need.
//!
//! Before taking a handle from the stack, a caller compares the number of handles in use with its
//! limit. Each class has a different limit, so that some handles are always reserved for the more
//! important classes.
//!
//! **Invariant.** When a handle is freed, we push it onto the stack before we decrement the
//! counter. So if the counter admits a caller, there is at least one handle on the stack, and `pop`
//! can't fail.

use crate::facade::atomic::{AtomicU32, AtomicU64, Ordering};

/// Indexes of free handles.
#[derive(Debug)]
pub(crate) struct FreeList {
    /// The top of the stack. The low half contains the index plus one, or 0 if the list is empty.
    /// The high half is a counter that every change increments. If another thread pops an index and
    /// pushes it again (the ABA problem), the counter is different, so our compare-exchange fails.
    head: AtomicU64,
    /// For each handle, the index of the next handle in the stack, plus one. This is meaningful
    /// only while the handle is free.
    next: Box<[AtomicU32]>,
    /// Handles taken but not yet returned.
    in_use: AtomicU32,
}

impl FreeList {
    /// Creates a list of `count` free handles; index 0 is taken first.
    pub(crate) fn new(count: u32) -> Self {
        let next: Box<[AtomicU32]> =
            (0..count).map(|i| AtomicU32::new(if i + 1 < count { i + 2 } else { 0 })).collect();
        Self { head: AtomicU64::new(u64::from(count != 0)), next, in_use: AtomicU32::new(0) }
    }

    /// Takes a handle, unless `limit` or more are in use.
    pub(crate) fn take(&self, limit: u32) -> Option<u32> {
        let mut used = self.in_use.load(Ordering::SeqCst);
        loop {
            if used >= limit {
                return None;
            }
            match self.in_use.compare_exchange(used, used + 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => used = now,
            }
        }
        Some(self.pop())
    }

    /// Puts a handle back on the free list. The caller must own it and must not use it afterwards.
    pub(crate) fn give(&self, index: u32) {
        let mut head = self.head.load(Ordering::SeqCst);
        loop {
            self.next[index as usize].store(head as u32, Ordering::SeqCst);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(index + 1);
            match self.head.compare_exchange(head, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        // Decrement only now; see the invariant in the module documentation.
        let used = self.in_use.fetch_sub(1, Ordering::SeqCst);
        assert!(used > 0, "a handle was given back twice");
    }

    /// Number of handles in use now.
    pub(crate) fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::SeqCst)
    }

    /// Removes the top of the stack. The counter has already admitted the caller, so the stack
    /// isn't empty.
    fn pop(&self) -> u32 {
        let mut head = self.head.load(Ordering::SeqCst);
        loop {
            let top = head as u32;
            assert!(top != 0, "admitted, but the free list is empty");
            // Another thread may take this handle before our compare-exchange, so `next` may be
            // stale. If that happens, the tag is different and the compare-exchange fails.
            let next = self.next[top as usize - 1].load(Ordering::SeqCst);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(next);
            match self.head.compare_exchange(head, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return top - 1,
                Err(now) => head = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lower_limit_leaves_a_reserve() {
        let list = FreeList::new(4);
        let taken: Vec<u32> = std::iter::from_fn(|| list.take(3)).collect();
        assert_eq!(taken, [0, 1, 2]);
        assert_eq!(list.take(4), Some(3), "the reserve is for the higher limit");
        assert_eq!(list.take(4), None);
        list.give(1);
        assert_eq!(list.take(3), None, "three are still in use");
        assert_eq!(list.take(4), Some(1), "the last one given is the first one taken");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::facade::Arc;

    #[test]
    fn loom_no_handle_has_two_owners() {
        loom::model(|| {
            let list = Arc::new(FreeList::new(2));
            let owners = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let (list2, owners2) = (Arc::clone(&list), Arc::clone(&owners));
            let thread = loom::thread::spawn(move || once(&list2, &owners2));
            once(&list, &owners);
            drop(thread.join());
            assert_eq!(list.in_use(), 0);
        });
    }

    fn once(list: &FreeList, owners: &[AtomicU32; 2]) {
        if let Some(index) = list.take(2) {
            let owner = &owners[index as usize];
            assert_eq!(owner.fetch_add(1, Ordering::SeqCst), 0);
            owner.fetch_sub(1, Ordering::SeqCst);
            list.give(index);
        }
    }
}
