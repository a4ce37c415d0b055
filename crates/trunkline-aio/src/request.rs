//! What a method needs to know to carry out one I/O, and the kernel's way to do it inline.
//!
//! A [`Request`] is a view of a submitted handle: descriptor, offset and pieces of memory. It
//! knows nothing of pages or relations. [`Execute`] is the seam where a simulated disk takes the
//! place of the operating system.

use crate::limits::IOVECS_MAX;
use rustix::fs::Advice;
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::os::fd::{BorrowedFd, RawFd};

/// What to do with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Read into memory, scattered.
    Readv = 0,
    /// Write from memory, gathered.
    Writev = 1,
    /// Make data and metadata durable.
    Fsync = 2,
    /// Make data durable, and the metadata needed to read it.
    Fdatasync = 3,
    /// Have the system begin to write back what it has cached of a range: nothing is durable by it.
    BeginWriteback = 4,
}

/// All operations.
pub const OPERATIONS: [Operation; 5] = [
    Operation::Readv,
    Operation::Writev,
    Operation::Fsync,
    Operation::Fdatasync,
    Operation::BeginWriteback,
];

impl Operation {
    /// The text of `pg_aios.operation`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Readv => "readv",
            Operation::Writev => "writev",
            Operation::Fsync => "fsync",
            Operation::Fdatasync => "fdatasync",
            Operation::BeginWriteback => "sync_file_range",
        }
    }

    /// Whether it moves bytes between the file and memory, and its result is their number.
    pub(crate) fn transfers(self) -> bool {
        matches!(self, Operation::Readv | Operation::Writev)
    }

    pub(crate) fn from_number(number: u8) -> Self {
        OPERATIONS.get(usize::from(number)).copied().unwrap_or(Operation::Readv)
    }
}

/// One piece of memory of an I/O, laid out as the kernel's `struct iovec`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct IoVec {
    pub(crate) start: *mut u8,
    pub(crate) length: usize,
}

const _: () = assert!(size_of::<IoVec>() == size_of::<libc::iovec>());

/// A submitted I/O as its executor sees it. Whoever holds it holds the right to the memory: to fill
/// it, if it is a read, to look at it, if it is a write.
#[derive(Debug)]
pub struct Request<'a> {
    /// What to do.
    pub operation: Operation,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes in all pieces, or of the range to write back; 0 for the syncs.
    pub length: u32,
    /// Identity of the file.
    pub file_id: u64,
    /// Whether the file bypasses the page cache.
    pub direct: bool,
    /// See [`crate::File::is_taken_at_once`].
    pub(crate) taken_at_once: bool,
    /// Whether an I/O that begins write-back also waits for its end, and learns of its errors.
    pub awaits: bool,
    pub(crate) fd: RawFd,
    pub(crate) iovecs: &'a mut [IoVec],
}

impl Request<'_> {
    /// The flags of sync_file_range(2).
    pub(crate) fn write_back_flags(&self) -> u32 {
        let waiting = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        libc::SYNC_FILE_RANGE_WRITE | if self.awaits { waiting } else { 0 }
    }

    /// The memory that a read fills, piece by piece.
    ///
    /// # Panics
    /// If it is not a read: others may be looking at what is being written.
    pub fn targets(&mut self) -> impl Iterator<Item = &mut [u8]> {
        assert_eq!(self.operation, Operation::Readv, "only a read has memory to fill");
        self.iovecs.iter_mut().map(|piece| {
            // SAFETY: the pieces are frames of the page region that this read has to itself until
            // it completes: leases owned by the issuer's slot, which never overlap, or frames of
            // which the issuer promised so (Io::read_frames). &mut self keeps anybody else from
            // calling this.
            unsafe { std::slice::from_raw_parts_mut(piece.start, piece.length) }
        })
    }

    /// The memory that a write takes from, piece by piece.
    ///
    /// # Panics
    /// If it is not a write.
    pub fn sources(&self) -> impl Iterator<Item = &[u8]> {
        assert_eq!(self.operation, Operation::Writev, "only a write has memory to take from");
        self.iovecs.iter().map(|piece| {
            // SAFETY: the pieces are frames of the page region that nobody changes until this write
            // completes: leases owned by the issuer's slot, or frames of which the issuer promised
            // so (Io::write_frames).
            unsafe { std::slice::from_raw_parts(piece.start, piece.length) }
        })
    }
}

/// Carries out one I/O in the calling thread: the seam under `sync`, `worker` and every inline
/// execution.
pub trait Executor: Send + Sync {
    /// Does it, blocking. Bytes transferred, or minus errno; no retries.
    fn execute(&self, request: &mut Request<'_>) -> i32;

    /// Does a read if that needs no waiting, because the data is in memory: the whole length, or
    /// `None`, in which case nothing is to be counted on in the memory.
    fn execute_cached(&self, _request: &mut Request<'_>) -> Option<i32> {
        None
    }

    /// Tells the storage that the range will be read soon, without waiting for it.
    fn advise(&self, file: &crate::File, offset: u64, length: u64) -> bool;
}

/// The operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel;

impl Executor for Kernel {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        let offset = request.offset as libc::off_t;
        let fd = request.fd;
        let iovecs = request.iovecs.as_ptr().cast::<libc::iovec>();
        let count = request.iovecs.len().min(IOVECS_MAX) as libc::c_int;
        // SAFETY: the descriptor is kept open by the file that the handle owns; the iovecs and the
        // memory behind them is this I/O's to fill or to look at until it completes (see
        // Request::targets and Request::sources). A
        // single piece goes through the plain call, which spares the kernel the import of a list.
        let result = unsafe {
            match (request.operation, &request.iovecs[..]) {
                (Operation::Readv, [one]) => libc::pread(fd, one.start.cast(), one.length, offset),
                (Operation::Writev, [one]) => {
                    libc::pwrite(fd, one.start.cast(), one.length, offset)
                }
                (Operation::Readv, _) => libc::preadv(fd, iovecs, count, offset),
                (Operation::Writev, _) => libc::pwritev(fd, iovecs, count, offset),
                (Operation::Fsync, _) => libc::fsync(fd) as isize,
                (Operation::Fdatasync, _) => libc::fdatasync(fd) as isize,
                (Operation::BeginWriteback, _) => {
                    let length = libc::off_t::from(request.length);
                    let flags = request.write_back_flags();
                    libc::sync_file_range(fd, offset, length, flags) as isize
                }
            }
        };
        if result < 0 { -last_errno() } else { result as i32 }
    }

    fn execute_cached(&self, request: &mut Request<'_>) -> Option<i32> {
        let iovecs = request.iovecs.as_ptr().cast::<libc::iovec>();
        let count = request.iovecs.len().min(IOVECS_MAX) as libc::c_int;
        let offset = request.offset as libc::off_t;
        // SAFETY: as in execute.
        let result = unsafe { libc::preadv2(request.fd, iovecs, count, offset, libc::RWF_NOWAIT) };
        i32::try_from(result).ok().filter(|&read| read == request.length as i32)
    }

    fn advise(&self, file: &crate::File, offset: u64, length: u64) -> bool {
        let (Some(fd), Some(length)) = (file.descriptor(), NonZeroU64::new(length)) else {
            return false;
        };
        fadvise(fd, offset, length)
    }
}

fn fadvise(fd: BorrowedFd<'_>, offset: u64, length: NonZeroU64) -> bool {
    loop {
        match rustix::fs::fadvise(fd, offset, Some(length), Advice::WillNeed) {
            Err(Errno::INTR) => {}
            result => return result.is_ok(),
        }
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
