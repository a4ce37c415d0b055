//! Executing one I/O in the calling thread: the interface between this crate and the operating
//! system.
//!
//! The workers, the `sync` method, and all code that executes I/O inline use an [`Executor`].
//! Normally this is [`Kernel`]; the simulator replaces it with a simulated disk. Ring drivers don't
//! need an executor, because they submit their I/O to io_uring.
//!
//! All an executor does is report raw results. It's up to the caller to handle retries, short
//! transfers and completion, which ensures that they work in the same way with every executor.

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

    /// Executes a read, but only if the data is already in memory, so that the read doesn't have to
    /// wait. Returns `Some` if the read returned the whole length, and `None` otherwise. After
    /// `None`, the contents of the target memory are undefined, because some of the data may
    /// already have been copied into it.
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
        // SAFETY: the handle owns the file, so the descriptor remains open. The iovecs and the
        // memory they point to belong to this I/O until it completes (see `Request::targets` and
        // `Request::sources`). If there is only a single piece, we use the plain system call, so
        // that the kernel doesn't have to import an iovec array.
        let result = unsafe {
            match (request.operation, &request.iovecs[..]) {
                // No plain call takes flags.
                (Operation::Writev, _) if request.durable => {
                    libc::pwritev2(fd, iovecs, count, offset, request.write_flags())
                }
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
