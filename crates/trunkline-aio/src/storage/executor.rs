//! Executing one I/O in the calling thread: the interface between this crate and the operating
//! system.
//!
//! Workers, the method `sync` and all inline execution use an [`Executor`]. [`Kernel`] is the real
//! one; the simulator replaces it with a simulated disk. Ring drivers don't use an executor,
//! because they pass their requests to io_uring.
//!
//! An executor only reports raw results. The caller deals with retries, short transfers and
//! completion, so that these are the same with every executor.

use crate::limits::IOVECS_MAX;
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::storage::request::Request;
use rustix::fs::Advice;
use rustix::io::retry_on_intr;
use std::num::NonZeroU64;

/// Executes one I/O in the calling thread.
pub trait Executor: Send + Sync {
    /// Executes the request, blocking if necessary. Returns the number of bytes transferred, or
    /// minus errno. Must not retry.
    fn execute(&self, request: &mut Request<'_>) -> i32;

    /// Executes a read only if its data is in memory, so that it doesn't have to wait. Returns
    /// `Some` if the whole length was read, otherwise `None`. After `None`, the target memory's
    /// contents are undefined, because part of the data may have been copied.
    fn execute_cached(&self, _request: &mut Request<'_>) -> Option<i32> {
        None
    }

    /// Advises the storage that the range will be read soon. Returns whether the call succeeded.
    fn advise(&self, file: &File, offset: u64, length: u64) -> bool;
}

/// The executor that calls the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel;

impl Executor for Kernel {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        let offset = request.offset as libc::off_t;
        let fd = request.fd;
        let iovecs = request.iovecs.as_ptr().cast::<libc::iovec>();
        let count = request.iovecs.len().min(IOVECS_MAX) as libc::c_int;
        // SAFETY: the handle owns the file, which keeps the descriptor open. The iovecs and their
        // memory belong to this I/O until it completes (see `Request::targets` and
        // `Request::sources`). A single piece uses the plain call, so the kernel doesn't have to
        // import an iovec array.
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
                    let flags = request.writeback_flags();
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

    fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        let (Some(fd), Some(length)) = (file.descriptor(), NonZeroU64::new(length)) else {
            return false;
        };
        let advise = || rustix::fs::fadvise(fd, offset, Some(length), Advice::WillNeed);
        retry_on_intr(advise).is_ok()
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
