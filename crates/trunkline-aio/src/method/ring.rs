//! A ring: one io_uring instance, used by one thread.
//!
//! When we open a ring, we check one by one which features the kernel supports: the set-up flags,
//! the vectored opcodes for registered memory, and whether the page region can be registered. Parts
//! of the region that get their memory later are then registered later, too (`registration`). The
//! ring itself stores only handle indexes. All memory that a running I/O needs (iovecs, frames, the
//! file) is owned by its handle, so it's safe to drop a ring even if the kernel is still using that
//! memory.
//!
//! **Overflow.** We never put more I/Os into the ring than fit into the completion queue, so the
//! completion queue can't overflow. All other I/O has to wait in the driver's lanes.
//!
//! **Kernel threads.** The kernel executes I/O that can't be started without blocking in threads of
//! its own (io-wq). By default it has only four per CPU, so just a few reads from a mount that
//! hangs would be enough to block all other I/O. We allow one thread for each place in the ring, so
//! that the lanes only have to divide the places. Kernels before 5.15 don't support that. We also
//! don't know whether a cgroup limits the number of threads (`pids.max`). In both cases, a mount
//! that hangs can still block other I/O that needs a kernel thread. There is a third exception: the
//! kernel assigns the writes of its threads to 64 queues by inode, and executes one write of each
//! queue at a time. A write that hangs therefore blocks the writes to other mounts that are in the
//! same queue. This can't affect the log's writes, because the worker pool executes them
//! (`method/uring.rs`).
//!
//! **Failure.** We use `pushed` to keep track of the entries that the kernel hasn't taken yet. If
//! the ring fails, we can take back these I/Os and execute them elsewhere. However, the kernel may
//! still write to memory on behalf of I/Os it has already taken, so the driver must wait for those.

use crate::completion::in_flight::{InFlight, Submitted};
use crate::completion::lanes::Places;
use crate::limits::LANES_MAX;
use crate::method::fallback::{Fallback, Feature};
use crate::method::registration::Registration;
use crate::storage::operation::Operation;
use crate::storage::region::Region;
use crate::storage::request::Request;
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bounds on the number of submission entries; the upper one is the kernel's.
const ENTRIES_MIN: u32 = 8;
const ENTRIES_MAX: u32 = 32768;

/// Number of places in the smallest ring.
const PLACES_MIN: usize = ENTRIES_MIN as usize * 2 - 2;

/// Maximum number of places in a ring. If a mount hangs, each place can take up a kernel thread.
const PLACES_MAX: usize = 1024;

/// User data of the eventfd read. It cannot collide with a handle index.
const WATCH: u64 = u64::MAX;

/// How to use io_uring. Decision 0001 has the measurements behind the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringSettings {
    /// Number of ring drivers; each has a thread and a ring.
    pub drivers: usize,
    /// Submission entries per ring, a power of two. We use fewer if memory is short. A ring has
    /// almost twice as many I/Os in flight, but never more than 1024.
    pub entries: u32,
    /// Register the page region with the rings.
    pub register: bool,
    /// Buffered reads of at least this many bytes are executed by kernel threads, so that several
    /// of them can copy data out of the page cache in parallel.
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
    /// The page region is registered, as far as it is populated.
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
    /// Maximum number of I/Os in the ring.
    places: usize,
    /// The registered part of the page region, if registration works.
    registration: Option<Registration>,
    /// The entries that we have pushed but that the kernel hasn't taken yet, oldest first. `None`
    /// stands for the eventfd read. Since the kernel takes entries in order, this queue always
    /// matches the contents of the submission queue.
    pushed: VecDeque<Option<u32>>,
    /// I/Os pushed to the ring but not yet reaped, not counting the eventfd read.
    in_flight: usize,
    /// The eventfd read is in the ring.
    watching: bool,
    /// The ring has failed and we have taken back its entries. Since they are still in the
    /// submission queue, we must never submit anything through this ring again, or the kernel would
    /// execute those entries a second time.
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
        features.vectored_fixed = probe.is_supported(opcode::ReadvFixed::CODE)
            && probe.is_supported(opcode::WritevFixed::CODE);
        let (mut registration, mut note) = (None, None);
        let fixed = [opcode::ReadFixed::CODE, opcode::WriteFixed::CODE];
        if settings.register && fixed.into_iter().all(|code| probe.is_supported(code)) {
            match Registration::open(&ring.submitter(), region) {
                Ok(opened) => registration = Some(opened),
                Err(errno) => note = Some(Fallback::recognise(Feature::Registration, errno)),
            }
        }
        let places = allow_kernel_threads(&ring, places_of(entries));
        features.registered = registration.is_some();
        let ring = Self {
            ring,
            features,
            force_async_bytes: settings.force_async_bytes,
            places,
            registration,
            pushed: VecDeque::with_capacity(entries as usize),
            in_flight: 0,
            watching: false,
            given_up: false,
            counter: Box::new(0),
        };
        Ok(Setup { ring, features, note })
    }

    /// Registers the memory that was populated since the last call. Returns the errno if that
    /// fails; then the ring continues without further registrations.
    pub(crate) fn register_populated(&mut self, region: &Region) -> Option<i32> {
        let registration = self.registration.as_mut()?;
        registration.follow(&self.ring.submitter(), region).err()
    }

    /// Returns how the lanes divide the places. `several` must be true if more than one mount has
    /// I/O.
    pub(crate) fn places(&self, several: bool) -> Places {
        divide(self.places, several)
    }

    /// I/Os in the ring, pushed or accepted.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds an I/O to the submission queue; returns false if there is no room.
    pub(crate) fn push(&mut self, in_flight: &InFlight, io: &mut Submitted) -> bool {
        // Everything in flight, including the eventfd read, must fit into the completion queue.
        if self.in_flight >= self.places {
            return false;
        }
        in_flight.mark_started(io);
        let index = io.index();
        let mut request = in_flight.request(io);
        let mut entry = self.entry(&mut request).user_data(u64::from(index));
        // Let a kernel thread copy the data of a large cached read. Otherwise, this thread would do
        // all such copies itself, one after another, while submitting.
        let copies = !request.direct
            && request.operation == Operation::Readv
            && request.length >= self.force_async_bytes;
        // Submitting I/O to a file system that isn't local may block. If its mount hung, this
        // driver would hang as well, along with all other I/O in the ring.
        if copies || !request.local {
            entry = entry.flags(squeue::Flags::ASYNC);
        }
        // SAFETY: the handle owns the iovecs, the frames and the file, and isn't freed or reused
        // until we have reaped the completion. If the kernel hasn't taken an entry by the time the
        // ring gives up, that entry is never submitted (`wait_only`).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_ok() {
            self.pushed.push_back(Some(index));
            self.in_flight += 1;
        }
        pushed.is_ok()
    }

    /// Builds the submission entry. We use the plain opcode if there is only a single piece of
    /// memory. If the memory is registered, we use the fixed opcode, so that the kernel doesn't
    /// have to pin the pages for each I/O.
    fn entry(&self, request: &mut Request<'_>) -> squeue::Entry {
        let fd = types::Fd(request.fd);
        let offset = request.offset;
        let registered = self.registration.as_ref().and_then(|r| r.buffer_of(request.iovecs));
        // The kernel may read the iovecs after submission, which is why they're part of the handle.
        let list = request.iovecs.as_ptr().cast::<libc::iovec>();
        let count = request.iovecs.len() as u32;
        let flags = request.write_flags();
        match (request.operation, &request.iovecs[..], registered) {
            (Operation::Readv, [one], Some(piece)) => {
                opcode::ReadFixed::new(fd, one.start, one.length as u32, piece)
                    .offset(offset)
                    .build()
            }
            (Operation::Writev, [one], Some(piece)) => {
                opcode::WriteFixed::new(fd, one.start, one.length as u32, piece)
                    .offset(offset)
                    .rw_flags(flags)
                    .build()
            }
            (Operation::Readv, [one], None) => {
                opcode::Read::new(fd, one.start, one.length as u32).offset(offset).build()
            }
            (Operation::Writev, [one], None) => {
                opcode::Write::new(fd, one.start, one.length as u32)
                    .offset(offset)
                    .rw_flags(flags)
                    .build()
            }
            (Operation::Readv, _, Some(piece)) if self.features.vectored_fixed => {
                opcode::ReadvFixed::new(fd, list, count, piece).offset(offset).build()
            }
            (Operation::Writev, _, Some(piece)) if self.features.vectored_fixed => {
                opcode::WritevFixed::new(fd, list, count, piece)
                    .offset(offset)
                    .rw_flags(flags)
                    .build()
            }
            (Operation::Readv, _, _) => opcode::Readv::new(fd, list, count).offset(offset).build(),
            (Operation::Writev, _, _) => {
                opcode::Writev::new(fd, list, count).offset(offset).rw_flags(flags).build()
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

    /// Makes sure that the ring contains a read of the eventfd, which lets sessions wake the driver
    /// while it sleeps in the kernel. Returns false if there is no room for that read at the
    /// moment. In that case, the driver must not go to sleep.
    pub(crate) fn watch(&mut self, wake: &OwnedFd) -> bool {
        if self.watching {
            return true;
        }
        let fd = types::Fd(wake.as_raw_fd());
        let target: *mut u64 = &mut *self.counter;
        let entry = opcode::Read::new(fd, target.cast(), 8).build().user_data(WATCH);
        // SAFETY: the counter is boxed, and is freed only after `close` has seen the read complete.
        // If `close` can't be sure of that, it leaks the counter. The eventfd is closed only after
        // the driver's loop has ended.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        self.watching = pushed.is_ok();
        if self.watching {
            self.pushed.push_back(None);
        }
        self.watching
    }

    /// Submits the entries we have pushed. If `wait` is true, also waits for a completion. Returns
    /// the errno if there is a permanent failure.
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
        // The kernel takes entries in order, so the last `left` entries are the ones it hasn't
        // taken. This is true even if the call failed.
        let taken = self.pushed.len().saturating_sub(left);
        self.pushed.drain(..taken);
        match result {
            Ok(_) => None,
            Err(error) => match errno_of(&error) {
                // This is only a temporary failure: the call was interrupted, memory is short, or
                // we must reap completions first. The caller will reap them and then call us again.
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
            // The ring no longer works, so we have no way of knowing whether the read has ended.
            // The kernel may still write to the read's target, so we leak those eight bytes.
            Box::leak(std::mem::take(&mut self.counter));
        }
    }
}

/// Returns the maximum number of I/Os in a ring. The completion queue is twice as large as the
/// submission queue. We need one of its entries for the eventfd read, and keep another one in
/// reserve.
fn places_of(entries: u32) -> usize {
    (entries as usize * 2 - 2).min(PLACES_MAX)
}

/// Divides a ring's places, of which there must be at least [`PLACES_MIN`]. One place in 32 is the
/// log's reserve, and one for each lane is kept for lanes that don't occupy any. If there is only
/// one mount, it may use almost all of the rest, so that its throughput doesn't suffer: 450 places
/// of 510.
fn divide(places: usize, several: bool) -> Places {
    let log_reserve = (places / 32).max(1);
    let first = places - log_reserve;
    let shared = first - (first / 4).min(LANES_MAX);
    let share = if several { shared * 3 / 4 } else { shared - (shared / 16).max(1) };
    Places { share, shared, first, log_reserve }
}

/// Allows the ring one kernel thread for each of its places. Returns how many places we can use,
/// which is fewer if the process may not have that many threads.
fn allow_kernel_threads(ring: &IoUring, places: usize) -> usize {
    let allow = |limit| {
        let mut limits = [limit, 0];
        let asked = ring.submitter().register_iowq_max_workers(&mut limits);
        asked.map(|()| limits[0] as usize)
    };
    // The first call sets the limit, but the kernel lowers it to RLIMIT_NPROC. The second call
    // returns the limit. Kernels before 5.15 don't support either of them and keep their default.
    match allow(places as u32).and_then(|_| allow(0)) {
        Ok(threads) => places.min(threads.max(PLACES_MIN)),
        Err(_) => places,
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

/// Builds a ring, and enables cooperative task running if the kernel supports it. We don't enable
/// deferred task work (`IORING_SETUP_DEFER_TASKRUN`), because a driver that sleeps in the kernel
/// anyway doesn't gain anything from it, and in our measurements it used more CPU time (decision
/// 0001).
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

fn errno_of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mount_can_have_all_places() {
        let all = divide(510, false);
        assert_eq!(all, Places { share: 450, shared: 479, first: 495, log_reserve: 15 });
        for places in (PLACES_MIN..200).chain([510, 4096, 65534]) {
            for several in [false, true] {
                let Places { share, shared, first, log_reserve } = divide(places, several);
                assert!(1 <= share && share < shared && shared < first, "{places} places");
                assert_eq!(first + log_reserve, places);
                assert!(share + log_reserve < first, "the log hangs too, {places} places");
            }
        }
    }
}
