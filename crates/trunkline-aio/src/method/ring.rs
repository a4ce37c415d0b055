//! A ring: one io_uring instance, used by one thread.
//!
//! The kernel's features are probed one by one when a ring is opened: the set-up flags, the
//! vectored opcodes for registered memory, and registration of the page region. A ring stores only
//! handle indexes. The handle owns all memory a running I/O needs (iovecs, frames, the file), so
//! dropping the ring never frees memory the kernel still uses.
//!
//! **Overflow.** The number of I/Os in the ring never exceeds the completion queue size, so the
//! completion queue can't overflow. Any further I/O waits in the driver's lanes.
//!
//! **Failure.** `pushed` records which entries the kernel hasn't taken yet. When the ring fails,
//! these I/Os can be taken back and executed elsewhere. I/O the kernel has already taken may still
//! write to memory, so the driver must wait for it.

use crate::completion::in_flight::{InFlight, Submitted};
use crate::method::fallback::{Fallback, Feature};
use crate::storage::operation::Operation;
use crate::storage::region::Region;
use crate::storage::request::{IoVec, Request};
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

/// The kernel accepts registered buffers of at most 1 GiB, so a larger region is registered in
/// pieces.
const PIECE: usize = 1 << 30;

/// Bounds on the number of submission entries; the upper one is the kernel's.
const ENTRIES_MIN: u32 = 8;
const ENTRIES_MAX: u32 = 32768;

/// Maximum number of kernel threads (io-wq) per ring. They execute I/O that can't be started
/// without blocking. With the kernel's default of four per CPU, a few reads from a hung mount
/// would block all other I/O.
const KERNEL_THREADS_MAX: u32 = 256;

/// User data of the eventfd read. It cannot collide with a handle index.
const WATCH: u64 = u64::MAX;

/// How to use io_uring. Decision 0001 has the measurements behind the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringSettings {
    /// Number of ring drivers; each has a thread and a ring.
    pub drivers: usize,
    /// Submission entries per ring, a power of two. We use fewer if memory is short.
    pub entries: u32,
    /// Register the page region with the rings.
    pub register: bool,
    /// Kernel threads execute buffered reads of at least this many bytes, so that copies out of the
    /// page cache run in parallel.
    pub force_async_bytes: u32,
}

impl Default for UringSettings {
    fn default() -> Self {
        Self { drivers: 1, entries: 256, register: true, force_async_bytes: 128 * 1024 }
    }
}

/// Features the running rings use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UringFeatures {
    /// The page region is registered.
    pub registered: bool,
    /// Vectored reads and writes of registered memory.
    pub vectored_fixed: bool,
    /// Number of submission entries.
    pub entries: u32,
}

/// A ring and its driver's bookkeeping.
pub(crate) struct Ring {
    ring: IoUring,
    /// What the kernel supports and what we've registered.
    features: UringFeatures,
    /// See [`UringSettings::force_async_bytes`].
    force_async_bytes: u32,
    /// Address of the registered region.
    base: usize,
    /// Entries pushed but not yet taken by the kernel, oldest first; `None` is the eventfd read.
    /// The kernel takes entries in order, so this queue mirrors the submission queue.
    pushed: VecDeque<Option<u32>>,
    /// I/Os pushed to the ring but not yet reaped, not counting the eventfd read.
    in_flight: usize,
    /// The eventfd read is in the ring.
    watching: bool,
    /// The ring has failed and its entries were taken back. They are still in the submission queue,
    /// so we must not submit anything any more: the kernel would execute them a second time.
    given_up: bool,
    /// The target of the eventfd read. It's boxed because the kernel writes to this address even if
    /// the ring is moved.
    counter: Box<u64>,
}

/// A newly opened ring, and which features it has or lacks.
pub(crate) struct Setup {
    pub(crate) ring: Ring,
    pub(crate) features: UringFeatures,
    pub(crate) note: Option<Fallback>,
}

impl Ring {
    /// Opens a ring for the calling thread and registers the page region with it.
    pub(crate) fn open(region: &Region, settings: UringSettings) -> Result<Setup, i32> {
        let (ring, entries) = build(settings.entries)?;
        let mut features = UringFeatures { entries, ..UringFeatures::default() };
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(|e| errno_of(&e))?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::Readv::CODE,
            opcode::Writev::CODE,
            opcode::Fsync::CODE,
            opcode::SyncFileRange::CODE,
        ];
        if !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(libc::ENOSYS);
        }
        // Ignore the error: kernels before 5.15 do not support this and keep their default.
        let _ = ring.submitter().register_iowq_max_workers(&mut [KERNEL_THREADS_MAX, 0]);
        features.vectored_fixed = probe.is_supported(opcode::ReadvFixed::CODE)
            && probe.is_supported(opcode::WritevFixed::CODE);
        let mut note = None;
        let fixed = [opcode::ReadFixed::CODE, opcode::WriteFixed::CODE];
        if settings.register && fixed.into_iter().all(|code| probe.is_supported(code)) {
            match register(&ring, region) {
                Ok(()) => features.registered = true,
                Err(errno) => note = Some(Fallback::recognise(Feature::Registration, errno)),
            }
        }
        let ring = Self {
            ring,
            features,
            force_async_bytes: settings.force_async_bytes,
            base: region.span().0.addr(),
            pushed: VecDeque::with_capacity(entries as usize),
            in_flight: 0,
            watching: false,
            given_up: false,
            counter: Box::new(0),
        };
        Ok(Setup { ring, features, note })
    }

    /// How many I/Os the ring may contain. The completion queue has twice as many entries as the
    /// submission queue. One of its entries is for the eventfd read, and one is spare.
    fn places(&self) -> usize {
        self.features.entries as usize * 2 - 2
    }

    /// How many of one mount's I/Os may be in the ring while other mounts have I/O too. This is
    /// below the number of kernel threads, so a hung mount can't occupy all of them.
    pub(crate) fn share(&self) -> usize {
        (self.places().min(KERNEL_THREADS_MAX as usize) * 3 / 4).max(1)
    }

    /// I/Os in the ring, pushed or accepted.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds an I/O to the submission queue; returns false if there is no room.
    pub(crate) fn push(&mut self, in_flight: &InFlight, io: &mut Submitted) -> bool {
        // Everything in flight, including the eventfd read, must fit into the completion queue.
        if self.in_flight >= self.places() {
            return false;
        }
        in_flight.mark_started(io);
        let index = io.index();
        let mut request = in_flight.request(io);
        let mut entry = self.entry(&mut request).user_data(u64::from(index));
        // Let a kernel thread copy large cached reads. Otherwise this thread would copy them during
        // submission, one after another.
        let copies = !request.direct
            && request.operation == Operation::Readv
            && request.length >= self.force_async_bytes;
        // Submitting to a non-local file system may block. If the mount hung, the driver would hang
        // too, and with it all of the ring's other I/O.
        if copies || !request.local {
            entry = entry.flags(squeue::Flags::ASYNC);
        }
        // SAFETY: the handle owns iovecs, frames and file until the completion is reaped, and it is
        // not freed or reused before that. An entry that the kernel has not taken when the ring
        // gives up is never submitted afterwards (`wait_only`).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_ok() {
            self.pushed.push_back(Some(index));
            self.in_flight += 1;
        }
        pushed.is_ok()
    }

    /// Builds the submission entry. A single piece of memory uses the plain opcode. Registered
    /// memory uses the fixed opcode, so the kernel doesn't have to pin the pages for each I/O.
    fn entry(&self, request: &mut Request<'_>) -> squeue::Entry {
        let fd = types::Fd(request.fd);
        let offset = request.offset;
        let registered = self.features.registered.then(|| self.piece(request.iovecs)).flatten();
        // The kernel may read the iovecs after submission, which is why they're part of the handle.
        let list = request.iovecs.as_ptr().cast::<libc::iovec>();
        let count = request.iovecs.len() as u32;
        match (request.operation, &request.iovecs[..], registered) {
            (Operation::Readv, [one], Some(piece)) => {
                opcode::ReadFixed::new(fd, one.start, one.length as u32, piece)
                    .offset(offset)
                    .build()
            }
            (Operation::Writev, [one], Some(piece)) => {
                opcode::WriteFixed::new(fd, one.start, one.length as u32, piece)
                    .offset(offset)
                    .build()
            }
            (Operation::Readv, [one], None) => {
                opcode::Read::new(fd, one.start, one.length as u32).offset(offset).build()
            }
            (Operation::Writev, [one], None) => {
                opcode::Write::new(fd, one.start, one.length as u32).offset(offset).build()
            }
            (Operation::Readv, _, Some(piece)) if self.features.vectored_fixed => {
                opcode::ReadvFixed::new(fd, list, count, piece).offset(offset).build()
            }
            (Operation::Writev, _, Some(piece)) if self.features.vectored_fixed => {
                opcode::WritevFixed::new(fd, list, count, piece).offset(offset).build()
            }
            (Operation::Readv, _, _) => opcode::Readv::new(fd, list, count).offset(offset).build(),
            (Operation::Writev, _, _) => {
                opcode::Writev::new(fd, list, count).offset(offset).build()
            }
            (Operation::Fsync, _, _) => opcode::Fsync::new(fd).build(),
            (Operation::Fdatasync, _, _) => {
                opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build()
            }
            // The kernel executes this in one of its worker threads.
            (Operation::BeginWriteback, _, _) => opcode::SyncFileRange::new(fd, request.length)
                .offset(offset)
                .flags(request.writeback_flags())
                .build(),
        }
    }

    /// The index of the registered buffer that contains all pieces of memory, or `None` if they are
    /// in different buffers. In that case the I/O uses the opcodes for unregistered memory.
    fn piece(&self, iovecs: &[IoVec]) -> Option<u16> {
        let number = |address: usize| (address - self.base) / PIECE;
        let first = number(iovecs.first()?.start.addr());
        let inside = iovecs.iter().all(|v| {
            number(v.start.addr()) == first && number(v.start.addr() + v.length - 1) == first
        });
        inside.then(|| u16::try_from(first).ok()).flatten()
    }

    /// Ensures that a read of the eventfd is in the ring, so that a session can wake a driver
    /// sleeping in the kernel. Returns false if there is currently no room for it, in which case
    /// the driver must not sleep.
    pub(crate) fn watch(&mut self, wake: &OwnedFd) -> bool {
        if self.watching {
            return true;
        }
        let fd = types::Fd(wake.as_raw_fd());
        let target: *mut u64 = &mut *self.counter;
        let entry = opcode::Read::new(fd, target.cast(), 8).build().user_data(WATCH);
        // SAFETY: the counter is boxed and lives until `close` has seen the read complete, or
        // `close` leaks it. The eventfd outlives the driver's loop.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        self.watching = pushed.is_ok();
        if self.watching {
            self.pushed.push_back(None);
        }
        self.watching
    }

    /// Submits the pushed entries, and waits for a completion if `wait`. Returns the errno of a
    /// permanent failure.
    pub(crate) fn enter(&mut self, in_flight: &InFlight, wait: bool) -> Option<i32> {
        assert!(!self.given_up, "a ring that gave up must not submit");
        // Fault injection: lets a test make the ring fail here.
        let probed = in_flight.completions().handles().probe_ring_enter(self.pushed.len());
        if probed.is_some() {
            return probed;
        }
        let result = self.ring.submit_and_wait(usize::from(wait));
        let left = {
            let mut queue = self.ring.submission();
            queue.sync();
            queue.len()
        };
        // The kernel takes entries in order, so the last `left` entries haven't been taken, even if
        // the call failed.
        let taken = self.pushed.len().saturating_sub(left);
        self.pushed.drain(..taken);
        match result {
            Ok(_) => None,
            Err(error) => match errno_of(&error) {
                // A temporary failure: the call was interrupted, memory is short, or completions
                // must be reaped first. The caller reaps and calls us again.
                libc::EINTR | libc::EAGAIN | libc::EBUSY => None,
                errno => Some(errno),
            },
        }
    }

    /// Moves completions out of the ring, as pairs of handle index and raw result. The caller must
    /// pass an empty vector.
    pub(crate) fn reap(&mut self, finished: &mut Vec<(u32, i32)>) {
        let mut queue = self.ring.completion();
        queue.sync();
        for entry in &mut queue {
            if entry.user_data() == WATCH {
                self.watching = false;
                continue;
            }
            finished.push((entry.user_data() as u32, entry.result()));
        }
        drop(queue);
        self.in_flight -= finished.len();
    }

    /// Waits for a completion without submitting, for a ring that has given up.
    pub(crate) fn wait_only(&mut self) -> Option<i32> {
        const GETEVENTS: u32 = 1;
        // SAFETY: no entry is submitted and no argument is passed.
        let result = unsafe { self.ring.submitter().enter::<()>(0, 1, GETEVENTS, None) };
        match result {
            Ok(_) => None,
            Err(error) if errno_of(&error) == libc::EINTR => None,
            Err(error) => Some(errno_of(&error)),
        }
    }

    /// Takes back the I/Os the kernel hasn't accepted, and calls `f` with each handle index.
    pub(crate) fn take_back(&mut self, mut f: impl FnMut(u32)) {
        self.given_up = true;
        for index in self.pushed.drain(..).flatten() {
            self.in_flight -= 1;
            f(index);
        }
    }

    /// Ends the eventfd read before freeing its target. No other I/O may be in flight.
    pub(crate) fn close(mut self, wake: &OwnedFd) {
        if !self.watching {
            return;
        }
        let mut finished = Vec::new();
        while self.watching && !self.given_up {
            // Completes the read, whether it has been submitted or is about to be.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
            if self.ring.submit_and_wait(1).is_err_and(|e| errno_of(&e) != libc::EINTR) {
                break;
            }
            self.reap(&mut finished);
        }
        if self.watching {
            // The ring no longer works, so we can't tell when the read has ended. The kernel may
            // still write to the target, so leak its eight bytes.
            Box::leak(std::mem::take(&mut self.counter));
        }
    }
}

/// Builds a ring, with fewer entries if memory is short. The kernel wants a power of two.
fn build(entries: u32) -> Result<(IoUring, u32), i32> {
    let mut entries = entries.clamp(ENTRIES_MIN, ENTRIES_MAX).next_power_of_two();
    loop {
        match build_sized(entries) {
            Ok(ring) => return Ok((ring, entries)),
            Err(libc::ENOMEM) if entries > ENTRIES_MIN => entries = (entries / 4).max(ENTRIES_MIN),
            Err(errno) => return Err(errno),
        }
    }
}

/// Builds a ring, with cooperative task running if the kernel supports it. We don't use deferred
/// task work (`IORING_SETUP_DEFER_TASKRUN`): decision 0001 found that it uses more CPU time without
/// any gain for a driver that sleeps in the kernel anyway.
fn build_sized(entries: u32) -> Result<IoUring, i32> {
    let mut cooperative = IoUring::builder();
    cooperative.setup_coop_taskrun().setup_submit_all();
    for builder in [cooperative, IoUring::builder()] {
        match builder.build(entries) {
            Ok(ring) => return Ok(ring),
            // The kernel doesn't know one of the flags.
            Err(error) if errno_of(&error) == libc::EINVAL => {}
            Err(error) => return Err(errno_of(&error)),
        }
    }
    Err(libc::EINVAL)
}

fn register(ring: &IoUring, region: &Region) -> Result<(), i32> {
    let (base, bytes) = region.span();
    let pieces: Vec<libc::iovec> = (0..bytes)
        .step_by(PIECE)
        .map(|at| libc::iovec {
            iov_base: base.wrapping_add(at).cast(),
            iov_len: PIECE.min(bytes - at),
        })
        .collect();
    // SAFETY: the region stays mapped for as long as `InFlight` exists, and that outlives the
    // drivers.
    unsafe { ring.submitter().register_buffers(&pieces) }.map_err(|error| errno_of(&error))
}

fn errno_of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
