//! Free handles: a lock-free stack of indexes, and admission by class.
//!
//! The stack is last in, first out, so that a handle is reused while its memory is warm. Admission
//! decides before the stack is touched: one counter of handles in use, and for each class a bound
//! below the total, so that the log always finds a handle and a read that somebody waits for finds
//! one when look-ahead and write-back have taken all they may. Once admitted, the stack cannot be
//! empty: handles go back to it before the counter goes down.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub(crate) struct FreeList {
    // Tag in the high half against ABA, index + 1 in the low half, 0 for empty.
    head: AtomicU64,
    next: Box<[AtomicU32]>,
    in_use: AtomicU32,
}

impl FreeList {
    /// All of `count` handles free; index 0 is handed out first.
    pub(crate) fn new(count: u32) -> Self {
        let next: Box<[AtomicU32]> =
            (0..count).map(|i| AtomicU32::new(if i + 1 < count { i + 2 } else { 0 })).collect();
        Self { head: AtomicU64::new(u64::from(count != 0)), next, in_use: AtomicU32::new(0) }
    }

    /// Takes a handle if fewer than `limit` are in use.
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

    /// Gives a handle back.
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
        let used = self.in_use.fetch_sub(1, Ordering::SeqCst);
        assert!(used > 0, "a handle was given back twice");
    }

    /// Handles in use at this moment.
    pub(crate) fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::SeqCst)
    }

    fn pop(&self) -> u32 {
        let mut head = self.head.load(Ordering::SeqCst);
        loop {
            let top = head as u32;
            assert!(top != 0, "admitted, but the free list is empty");
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
    fn the_limit_of_a_class_holds_and_the_reserve_stays() {
        let list = FreeList::new(4);
        let taken: Vec<u32> = std::iter::from_fn(|| list.take(3)).collect();
        assert_eq!(taken, [0, 1, 2]);
        assert_eq!(list.take(4), Some(3), "the reserve is for the class with the higher limit");
        assert_eq!(list.take(4), None);
        list.give(1);
        assert_eq!(list.take(3), None, "three are still in use");
        assert_eq!(list.take(4), Some(1), "the last one given is the first one taken");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Arc;

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
