//! One io_uring, used by one thread.
//!
//! Features are probed one by one at start: the set-up flags down a ladder, the vectored fixed
//! opcodes, the registration of the page region. Everything a running I/O needs in memory (iovecs,
//! frames, the file) is owned by its handle; the ring only carries the handle's index.

use super::Submitted;
use super::uring::{NO_FEATURES, UringFeatures, UringSettings};
use crate::core::Core;
use crate::fallback::{Fallback, Feature};
use crate::request::{IoVec, Operation, Request};
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

/// The kernel takes registered buffers of at most 1 GiB.
const PIECE: usize = 1 << 30;

/// Bounds of the submission entries; the upper one is the kernel's.
const ENTRIES_MIN: u32 = 8;
const ENTRIES_MAX: u32 = 32768;

/// Kernel threads of a ring for I/O that cannot be started without waiting; the default of four
/// per CPU would let a few reads of a mount that hangs stop all others.
const KERNEL_THREADS_MAX: u32 = 256;

/// User data of the read that watches the eventfd.
const WATCH: u64 = u64::MAX;

pub(super) struct Ring {
    ring: IoUring,
    features: UringFeatures,
    force_async_bytes: u32,
    base: usize,
    /// What was pushed and not yet taken by the kernel, oldest first; `None` is the watch.
    pushed: VecDeque<Option<u32>>,
    /// I/Os pushed or accepted, the watch not counted.
    in_flight: usize,
    watching: bool,
    /// Entries that were taken back lie in the queue: nothing may be submitted any more.
    given_up: bool,
    counter: Box<u64>,
}

/// A ring and what it came with.
pub(super) struct Setup {
    pub(super) ring: Ring,
    pub(super) features: UringFeatures,
    pub(super) note: Option<Fallback>,
}

impl Ring {
    /// Makes a ring for the calling thread and registers the page region with it.
    pub(super) fn open(core: &Core, settings: UringSettings) -> Result<Setup, i32> {
        let (ring, entries) = build(settings.entries)?;
        let mut features = UringFeatures { entries, ..NO_FEATURES };
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
        // Older kernels keep their default.
        let _ = ring.submitter().register_iowq_max_workers(&mut [KERNEL_THREADS_MAX, 0]);
        features.vectored_fixed = probe.is_supported(opcode::ReadvFixed::CODE)
            && probe.is_supported(opcode::WritevFixed::CODE);
        let mut note = None;
        let fixed = [opcode::ReadFixed::CODE, opcode::WriteFixed::CODE];
        if settings.register && fixed.into_iter().all(|code| probe.is_supported(code)) {
            match register(&ring, core) {
                Ok(()) => features.registered = true,
                Err(errno) => note = Some(Fallback::recognise(Feature::Registration, errno)),
            }
        }
        let ring = Self {
            ring,
            features,
            force_async_bytes: settings.force_async_bytes,
            base: core.region.span().0.addr(),
            pushed: VecDeque::with_capacity(entries as usize),
            in_flight: 0,
            watching: false,
            given_up: false,
            counter: Box::new(0),
        };
        Ok(Setup { ring, features, note })
    }

    /// Places for I/Os: the completion queue has twice the entries, and the watch takes one.
    fn places(&self) -> usize {
        self.features.entries as usize * 2 - 2
    }

    /// The most places that one of several mounts may hold. Below the number of kernel threads that
    /// `open` allows, so that a mount that hangs in them leaves some for the others too.
    pub(super) fn share(&self) -> usize {
        (self.places().min(KERNEL_THREADS_MAX as usize) * 3 / 4).max(1)
    }

    /// I/Os in the ring, pushed or accepted.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Puts an I/O into the submission queue; false if there is no room.
    pub(super) fn push(&mut self, core: &Core, io: &mut Submitted) -> bool {
        // What is in flight, the watch included, must fit the completion queue.
        if self.in_flight >= self.places() {
            return false;
        }
        core.mark_started(io);
        let index = io.index();
        let mut request = core.request(io);
        let mut entry = self.entry(&mut request).user_data(u64::from(index));
        // A cached read would be copied here, one after the other, by this one thread.
        let copies = !request.direct
            && request.operation == Operation::Readv
            && request.length >= self.force_async_bytes;
        // And where the kernel waits for an answer before it takes the next one, a file system that
        // hangs would stop this thread, and with it every other.
        if copies || !request.taken_at_once {
            entry = entry.flags(squeue::Flags::ASYNC);
        }
        // SAFETY: iovecs, frames and file are owned by the handle until the completion is reaped,
        // and nobody can free or reuse the handle before that; an entry that the kernel has not
        // taken when the ring gives up is never submitted afterwards (`wait_only`).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_ok() {
            self.pushed.push_back(Some(index));
            self.in_flight += 1;
        }
        pushed.is_ok()
    }

    fn entry(&self, request: &mut Request<'_>) -> squeue::Entry {
        let fd = types::Fd(request.fd);
        let offset = request.offset;
        let registered = self.features.registered.then(|| self.piece(request.iovecs)).flatten();
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
            // The kernel has its own threads do it.
            (Operation::BeginWriteback, _, _) => opcode::SyncFileRange::new(fd, request.length)
                .offset(offset)
                .flags(request.write_back_flags())
                .build(),
        }
    }

    /// The registered piece that holds all of the memory, if one does.
    fn piece(&self, iovecs: &[IoVec]) -> Option<u16> {
        let number = |address: usize| (address - self.base) / PIECE;
        let first = number(iovecs.first()?.start.addr());
        let inside = iovecs.iter().all(|v| {
            number(v.start.addr()) == first && number(v.start.addr() + v.length - 1) == first
        });
        inside.then(|| u16::try_from(first).ok()).flatten()
    }

    /// Keeps a read of the eventfd in the ring; false if there is no room for it now.
    pub(super) fn watch(&mut self, wake: &OwnedFd) -> bool {
        if self.watching {
            return true;
        }
        let fd = types::Fd(wake.as_raw_fd());
        let target: *mut u64 = &mut *self.counter;
        let entry = opcode::Read::new(fd, target.cast(), 8).build().user_data(WATCH);
        // SAFETY: the counter is boxed and lives until `close` has seen the read end (or leaks it);
        // the eventfd outlives the driver's loop.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        self.watching = pushed.is_ok();
        if self.watching {
            self.pushed.push_back(None);
        }
        self.watching
    }

    /// Submits what was pushed, and waits for a completion if `wait`. The errno of a failure that
    /// will not pass.
    pub(super) fn enter(&mut self, core: &Core, wait: bool) -> Option<i32> {
        assert!(!self.given_up, "a ring that gave up must not submit");
        if let Some(probe) = &core.probe
            && let Some(errno) = probe.ring_enter(self.pushed.len())
        {
            return Some(errno);
        }
        let result = self.ring.submit_and_wait(usize::from(wait));
        let left = {
            let mut queue = self.ring.submission();
            queue.sync();
            queue.len()
        };
        // The kernel takes entries in order; the last `left` are still ours.
        let taken = self.pushed.len().saturating_sub(left);
        self.pushed.drain(..taken);
        match result {
            Ok(_) => None,
            Err(error) => match errno_of(&error) {
                // Interrupted, out of memory for the moment, or completions must be reaped first.
                libc::EINTR | libc::EAGAIN | libc::EBUSY => None,
                errno => Some(errno),
            },
        }
    }

    /// Collects completions: handle index and raw result.
    pub(super) fn reap(&mut self, finished: &mut Vec<(u32, i32)>) {
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

    /// Waits for a completion without submitting anything, for a ring that has given up.
    pub(super) fn wait_only(&mut self) -> Option<i32> {
        const GETEVENTS: u32 = 1;
        // SAFETY: no entry is submitted and no argument is passed.
        let result = unsafe { self.ring.submitter().enter::<()>(0, 1, GETEVENTS, None) };
        match result {
            Ok(_) => None,
            Err(error) if errno_of(&error) == libc::EINTR => None,
            Err(error) => Some(errno_of(&error)),
        }
    }

    /// Takes back what the kernel has not accepted. From now on the ring must not submit: the
    /// entries are still in its queue.
    pub(super) fn take_back(&mut self, mut f: impl FnMut(u32)) {
        self.given_up = true;
        for index in self.pushed.drain(..).flatten() {
            self.in_flight -= 1;
            f(index);
        }
    }

    /// Ends the read of the eventfd before its target goes away. Nothing else is in flight.
    pub(super) fn close(mut self, wake: &OwnedFd) {
        if !self.watching {
            return;
        }
        let mut finished = Vec::new();
        while self.watching && !self.given_up {
            // Fires the read, whether it has been submitted or is about to be.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
            if self.ring.submit_and_wait(1).is_err_and(|e| errno_of(&e) != libc::EINTR) {
                break;
            }
            self.reap(&mut finished);
        }
        if self.watching {
            // The kernel may still write there: eight bytes are given up for good.
            Box::leak(std::mem::take(&mut self.counter));
        }
    }
}

/// Builds a ring, with fewer entries where memory is short. The kernel wants a power of two.
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

/// Deferred task work (`IORING_SETUP_DEFER_TASKRUN`) is left out: decision record 0001 found no
/// gain for a driver that sleeps in the kernel anyway, and more CPU.
fn build_sized(entries: u32) -> Result<IoUring, i32> {
    let mut cooperative = IoUring::builder();
    cooperative.setup_coop_taskrun().setup_submit_all();
    for builder in [cooperative, IoUring::builder()] {
        match builder.build(entries) {
            Ok(ring) => return Ok(ring),
            // A flag that this kernel does not know.
            Err(error) if errno_of(&error) == libc::EINVAL => {}
            Err(error) => return Err(errno_of(&error)),
        }
    }
    Err(libc::EINVAL)
}

fn register(ring: &IoUring, core: &Core) -> Result<(), i32> {
    let (base, bytes) = core.region.span();
    let pieces: Vec<libc::iovec> = (0..bytes)
        .step_by(PIECE)
        .map(|at| libc::iovec {
            iov_base: base.wrapping_add(at).cast(),
            iov_len: PIECE.min(bytes - at),
        })
        .collect();
    // SAFETY: the region stays mapped as long as the core, which outlives its drivers.
    unsafe { ring.submitter().register_buffers(&pieces) }.map_err(|error| errno_of(&error))
}

fn errno_of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
