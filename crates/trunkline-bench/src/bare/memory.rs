//! **Buffers of a bare loop**: a single mapping that is backed by huge pages if the kernel provides
//! them. We fault it in before use.
//!
//! Without huge pages, the baseline would be slower than the contender, because the device would
//! see a direct 128 KiB read as 32 segments instead of one (decision 0001).

use std::io;

const HUGE_PAGE: usize = 2 << 20;

/// Largest buffer that can be registered with a ring: the kernel's limit is 1 GiB per iovec.
pub(super) const PIECE: usize = 1 << 30;

/// A mapping, divided into buffers of equal length.
#[derive(Debug)]
pub(crate) struct Memory {
    mapping: *mut u8,
    mapped: usize,
    base: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with a single owner; nothing in it is tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps the given number of bytes, rounded up to whole huge pages. We map one huge page more
    /// than we need, so that `base` can be aligned to a huge page boundary. We also write to every
    /// page right away, so that no page faults occur during a measurement.
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
        // SAFETY: the range is inside the mapping, and the advice changes no contents.
        unsafe { libc::madvise(base.cast(), bytes, libc::MADV_HUGEPAGE) };
        let mut memory = Self { mapping, mapped, base, bytes };
        memory.all().fill(1);
        Ok(memory)
    }

    /// Address of buffer `index` of `length` bytes. Panics if the buffer would extend past the
    /// end.
    pub(crate) fn buffer(&mut self, index: usize, length: usize) -> *mut u8 {
        assert!((index + 1) * length <= self.bytes, "buffer {index} of {length} bytes");
        self.base.wrapping_add(index * length)
    }

    /// The bytes of buffer `index` of `length` bytes, which no operation in flight may be using.
    /// Panics if the buffer would extend past the end.
    pub(crate) fn filled(&self, index: usize, length: usize) -> &[u8] {
        assert!((index + 1) * length <= self.bytes, "buffer {index} of {length} bytes");
        // SAFETY: the slice is within our own mapping, which is initialised. Its only caller passes
        // the slot of a read that has completed, and the ring fills that slot again only after the
        // caller has given the slice back.
        unsafe { std::slice::from_raw_parts(self.base.wrapping_add(index * length), length) }
    }

    /// The whole mapping as a slice.
    pub(crate) fn all(&mut self) -> &mut [u8] {
        // SAFETY: the slice is within our own mapping, which is initialised, and `&mut self`
        // excludes all other references. A ring reads into this memory only during its own run.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.bytes) }
    }

    /// The mapping as iovecs for registration with a ring: pieces of [`PIECE`] bytes, of which the
    /// last may be shorter.
    pub(crate) fn iovecs(&self) -> Vec<libc::iovec> {
        let piece = |at: usize| libc::iovec {
            iov_base: self.base.wrapping_add(at).cast(),
            iov_len: PIECE.min(self.bytes - at),
        };
        (0..self.bytes).step_by(PIECE).map(piece).collect()
    }

    /// Returns the offset of the next `length` contiguous bytes and advances `at` past them, for a
    /// loop that cycles through the memory. The range never crosses a [`PIECE`] boundary, because a
    /// write with fixed buffers must stay within one registered buffer.
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
        // SAFETY: we own the mapping, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.mapping.cast(), self.mapped) };
    }
}
