//! Requests: one I/O as the storage sees it, that is, a descriptor, an offset and pieces of memory.
//!
//! A [`Request`] is a view of a submitted handle. It borrows the I/O's token, so it can't be used
//! after the I/O has completed.

use crate::storage::operation::Operation;
use std::os::fd::RawFd;

/// One piece of an I/O's memory, laid out as the kernel's `struct iovec`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct IoVec {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

const _: () = assert!(size_of::<IoVec>() == size_of::<libc::iovec>());

/// The iovecs of one handle, allocated at start and reused for every I/O.
#[derive(Debug)]
pub(crate) struct IoVecs {
    pieces: Box<[IoVec]>,
    used: usize,
}

impl IoVecs {
    pub(crate) fn new(capacity: usize) -> Self {
        let empty = IoVec { start: std::ptr::null_mut(), length: 0 };
        Self { pieces: vec![empty; capacity].into_boxed_slice(), used: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Adds a piece. Returns false if all iovecs are in use.
    pub(crate) fn push(&mut self, start: *mut u8, length: usize) -> bool {
        let Some(piece) = self.pieces.get_mut(self.used) else { return false };
        *piece = IoVec { start, length };
        self.used += 1;
        true
    }

    /// Extends the last piece, which must exist.
    pub(crate) fn extend_last(&mut self, bytes: usize) {
        self.pieces[self.used - 1].length += bytes;
    }

    pub(crate) fn used(&mut self) -> &mut [IoVec] {
        &mut self.pieces[..self.used]
    }
}

/// A submitted I/O, as seen by the code that executes it. That code may access the I/O's memory,
/// either to fill it (for a read) or to read from it (for a write).
#[derive(Debug)]
pub struct Request<'a> {
    /// The operation.
    pub operation: Operation,
    /// Byte offset in the file.
    pub offset: u64,
    /// Total length of all pieces in bytes, or the length of the range to write back; 0 for fsync
    /// and fdatasync.
    pub length: u32,
    /// The file's id.
    pub file_id: u64,
    /// Whether the file bypasses the page cache.
    pub direct: bool,
    /// Whether the file system accepts I/O without waiting for the storage
    /// ([`crate::File::is_local`]).
    pub(crate) local: bool,
    /// For [`Operation::BeginWriteback`]: whether the I/O also waits for the writeback to finish,
    /// and so reports its errors.
    pub awaits: bool,
    /// For [`Operation::Writev`]: whether the data must be durable when the write completes. An
    /// executor or method that can't guarantee this must fail the write.
    pub durable: bool,
    pub(crate) fd: RawFd,
    pub(crate) iovecs: &'a mut [IoVec],
}

impl Request<'_> {
    /// The flags of sync_file_range(2).
    pub(crate) fn writeback_flags(&self) -> u32 {
        let waiting = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        libc::SYNC_FILE_RANGE_WRITE | if self.awaits { waiting } else { 0 }
    }

    /// The flags of pwritev2(2).
    pub(crate) fn write_flags(&self) -> i32 {
        if self.durable { libc::RWF_DSYNC } else { 0 }
    }

    /// The memory to be filled by a read, piece by piece.
    ///
    /// # Panics
    /// If the operation is not a read: other sessions may be reading a write's memory.
    pub fn targets(&mut self) -> impl Iterator<Item = &mut [u8]> {
        assert_eq!(self.operation, Operation::Readv, "only a read has memory to fill");
        self.iovecs.iter_mut().map(|piece| {
            // SAFETY: the pieces are frames of the page region, and nothing but this read may
            // access them until it completes. They are either leases in the issuer's slot, which
            // never overlap, or frames for which the issuer has promised this (see
            // Io::read_frames). Since we borrow self mutably, this function can't be called again
            // while the slices are in use.
            unsafe { std::slice::from_raw_parts_mut(piece.start, piece.length) }
        })
    }

    /// The memory to be written, piece by piece.
    ///
    /// # Panics
    /// If the operation is not a write.
    pub fn sources(&self) -> impl Iterator<Item = &[u8]> {
        assert_eq!(self.operation, Operation::Writev, "only a write has memory to take from");
        self.iovecs.iter().map(|piece| {
            // SAFETY: the pieces are frames of the page region, and nothing changes them until this
            // write completes. They are either leases in the issuer's slot, or frames for which the
            // issuer has promised this (see Io::write_frames).
            unsafe { std::slice::from_raw_parts(piece.start, piece.length) }
        })
    }
}
