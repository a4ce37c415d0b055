//! Large zeroed arrays that get their memory page by page, when an element is first used.
//!
//! A pool of 6 GiB has 48 MiB of buffer descriptors. Writing them at the start takes longer than
//! the rest of it, even though all of them are zero. A boxed slice can use memory that the kernel
//! has zeroed, but not for types with the alignment of a cache line.
//!
//! This module is not part of a loom build: loom's atomics are not plain memory.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;
use zerocopy::FromZeros;

/// A fixed number of elements that start as zero bytes, such as atomics.
#[derive(Debug)]
pub struct ZeroedSlice<T> {
    start: NonNull<T>,
    count: usize,
}

// SAFETY: it owns its elements, like a boxed slice.
unsafe impl<T: Send> Send for ZeroedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ZeroedSlice<T> {}

impl<T: FromZeros> ZeroedSlice<T> {
    /// `count` zero elements.
    pub fn new(count: usize) -> Self {
        const { assert!(!std::mem::needs_drop::<T>(), "elements are not dropped") };
        const { assert!(align_of::<T>() <= 4096, "mappings are aligned to pages") };
        let bytes = Self::bytes(count);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases
        // nothing.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        match mapped.ok().and_then(|start| NonNull::new(start.cast())) {
            Some(start) => Self { start, count },
            // As a `Vec` does.
            None => handle_alloc_error(Layout::new::<T>()),
        }
    }
}

impl<T> ZeroedSlice<T> {
    /// The length of the mapping, which can't be empty.
    fn bytes(count: usize) -> usize {
        count.saturating_mul(size_of::<T>()).max(1)
    }
}

impl<T> Deref for ZeroedSlice<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has room for the elements, is aligned, and zero bytes are a valid
        // T.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl<T> Drop for ZeroedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, and no reference to it is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), Self::bytes(self.count)) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facade::atomic::{AtomicU64, Ordering};

    #[test]
    fn elements_are_zero_and_keep_their_values() {
        let slice = ZeroedSlice::<AtomicU64>::new(3000);
        assert!(slice.iter().all(|element| element.load(Ordering::Relaxed) == 0));
        (0..).zip(slice.iter()).for_each(|(at, element)| element.store(at, Ordering::Relaxed));
        assert_eq!(slice[2999].load(Ordering::Relaxed), 2999);
        assert!(ZeroedSlice::<AtomicU64>::new(0).is_empty());
    }
}
