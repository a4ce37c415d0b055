//! The memory of a bare loop: one mapping, in huge pages if the kernel provides them, touched before use.
//!
//! Buffers in ordinary pages would slow the reference down: a direct read of 128 KiB into them is 32 segments for the
//! device instead of one (decision 0001).

use std::io;

const HUGE_PAGE: usize = 2 << 20;

/// What can be registered with a ring as one: 1 GiB.
pub(super) const PIECE: usize = 1 << 30;

/// A mapping, cut into buffers of one length.
#[derive(Debug)]
pub(crate) struct Memory {
    mapping: *mut u8,
    mapped: usize,
    base: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner; nothing in it belongs to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps `bytes`, rounded up to huge pages.
    pub(crate) fn map(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(HUGE_PAGE);
        let mapped = bytes + HUGE_PAGE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = start.cast::<u8>();
        let base =
            mapping.wrapping_add(mapping.addr().next_multiple_of(HUGE_PAGE) - mapping.addr());
        // SAFETY: the range lies inside the mapping; the advice changes no content.
        unsafe { libc::madvise(base.cast(), bytes, libc::MADV_HUGEPAGE) };
        let mut memory = Self { mapping, mapped, base, bytes };
        memory.all().fill(1);
        Ok(memory)
    }

    /// Where buffer `index` of `length` bytes begins; it must lie inside.
    pub(crate) fn buffer(&mut self, index: usize, length: usize) -> *mut u8 {
        assert!((index + 1) * length <= self.bytes, "buffer {index} of {length} bytes");
        self.base.wrapping_add(index * length)
    }

    /// All of it.
    pub(crate) fn all(&mut self) -> &mut [u8] {
        // SAFETY: base and bytes lie inside our own mapping, which is initialised (zero), and
        // &mut self excludes every other reference; rings read into it only inside their own run.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.bytes) }
    }

    /// For registration with a ring: pieces of [`PIECE`] bytes, the last one of what is left.
    pub(crate) fn iovecs(&self) -> Vec<libc::iovec> {
        let piece = |at: usize| libc::iovec {
            iov_base: self.base.wrapping_add(at).cast(),
            iov_len: PIECE.min(self.bytes - at),
        };
        (0..self.bytes).step_by(PIECE).map(piece).collect()
    }

    /// The offset of the next `length` contiguous bytes of a loop that walks through all of the memory again and again.
    /// Advances `at`.
    pub(crate) fn next(&self, at: &mut usize, length: usize) -> usize {
        if *at / PIECE != (*at + length - 1) / PIECE {
            *at = at.next_multiple_of(PIECE);
        }
        if *at + length > self.bytes {
            *at = 0;
        }
        let start = *at;
        *at += length;
        start
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it outlives self.
        unsafe { libc::munmap(self.mapping.cast(), self.mapped) };
    }
}
