//! Asks the CPU to load memory into its cache before we need it.
//!
//! A program that follows pointers through a large pool waits for the memory at every step, about
//! 100 ns each time. The CPU can load many cache lines at the same time, but only if it knows their
//! addresses early enough.

#![expect(unsafe_code, reason = "the prefetch instruction takes a raw pointer")]

/// Starts to load the cache line at `place` into the CPU's cache, and returns at once. This is a hint:
/// it reads nothing, and it never faults, not even if there is no memory at the address. On other
/// architectures than x86-64 it does nothing.
#[inline]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction doesn't access memory as far as the program can see, and it doesn't
        // fault whatever the address is (Intel 64 and IA-32 Architectures Software Developer's Manual,
        // volume 2, PREFETCHh). Every x86-64 CPU has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn any_address_is_allowed() {
        prefetch(&7_u64);
        prefetch(std::ptr::null::<u8>());
        prefetch(std::ptr::without_provenance::<u8>(usize::MAX));
    }
}
