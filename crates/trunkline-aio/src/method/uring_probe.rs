//! Finds out what io_uring can do for this process, by trying it.
//!
//! Version numbers say little about io_uring: distributions backport features, and containers
//! forbid system calls that the kernel has. So each feature is tried on a ring of its own: the
//! set-up flags, the registrations, and one read. Only the opcodes are asked for
//! (`IORING_REGISTER_PROBE`), because trying them would need files to change.
//!
//! ```text
//!   set up ── read ── opcodes ── set-up flags ── registrations
//!      │errno    │errno   │supported    │errno          │errno
//!      └─────────┴────────┴─────────────┴───────────────┴──▶ UringProbe
//! ```
//! The kernel gives back the locked memory of a closed ring a little later. With a small limit, the
//! next ring may therefore fail although only one is open at a time; the caller decides how long we
//! try again.
//!
//! [`open_rings`] opens as many rings as a PostgreSQL server does, which has one for each possible
//! process. This is how we find out whether the limits of this process are enough for a server.

use crate::limits::FRAME_SIZE;
use crate::storage::region::Region;
use io_uring::{Builder, IoUring, Parameters, cqueue, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Entries of the rings that only try a feature.
const ENTRIES: u32 = 8;

/// How much we read to find out whether reading works.
const READ_BYTES: u32 = 4096;

/// Size of the ring's head with its indexes (`struct io_rings`), on which the completion queue
/// follows.
const RING_HEAD: u64 = 320;

/// A trial of a call, opcode or feature: its name, and the errno if it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringTrial {
    /// The kernel's name for it.
    pub name: &'static str,
    /// The errno; `None` if it worked.
    pub errno: Option<i32>,
}

/// The results of all trials, each part empty if an earlier one failed in a way that rules it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UringProbe {
    /// Setting up a ring.
    pub setup: UringTrial,
    /// Reading a file through it.
    pub read: Option<UringTrial>,
    /// What the kernel says about itself (`IORING_FEAT_*`).
    pub features: Vec<UringTrial>,
    /// Set-up flags (`IORING_SETUP_*`).
    pub flags: Vec<UringTrial>,
    /// Opcodes (`IORING_OP_*`).
    pub opcodes: Vec<UringTrial>,
    /// Registrations (`IORING_REGISTER_*`).
    pub registrations: Vec<UringTrial>,
}

impl UringProbe {
    /// Tries everything. The ring reads the first bytes of `file`. If memory is short (`ENOMEM`), we
    /// call `wait`, which waits a moment and returns whether we should try again.
    pub fn run(file: &File, wait: &mut dyn FnMut() -> bool) -> Self {
        let ring = retry(wait, || IoUring::new(ENTRIES));
        let setup = trial("io_uring_setup", ring.as_ref().map(|_| ()));
        let mut probe = Self {
            setup,
            read: None,
            features: Vec::new(),
            flags: Vec::new(),
            opcodes: Vec::new(),
            registrations: Vec::new(),
        };
        let Ok(mut ring) = ring else { return probe };
        probe.features = features(ring.params());
        probe.read = Some(trial("IORING_OP_READ", read(&mut ring, file).as_ref().map(|_| ())));
        probe.opcodes = opcodes(&ring);
        // Its memory counts, too.
        drop(ring);
        probe.flags = flags(wait);
        probe.registrations = registrations(wait);
        probe
    }

    /// The most locked memory that a trial needs at a time: a ring, and a registered frame.
    pub fn bytes() -> u64 {
        ring_bytes(ENTRIES) + (FRAME_SIZE as u64).next_multiple_of(page_bytes())
    }
}

/// Makes an attempt, again as long as memory is short and `wait` returns true.
fn retry<T>(
    wait: &mut dyn FnMut() -> bool,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && wait() => {}
            result => return result,
        }
    }
}

/// The result of a trial.
fn trial(name: &'static str, result: Result<(), &io::Error>) -> UringTrial {
    let errno = result.err().map(errno_of);
    UringTrial { name, errno }
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// A feature that is known to be there or not.
fn known(name: &'static str, supported: bool) -> UringTrial {
    UringTrial { name, errno: (!supported).then_some(libc::EOPNOTSUPP) }
}

fn features(params: &Parameters) -> Vec<UringTrial> {
    vec![
        known("NODROP", params.is_feature_nodrop()),
        known("EXT_ARG", params.is_feature_ext_arg()),
        known("NATIVE_WORKERS", params.is_feature_native_workers()),
    ]
}

/// Reads the first bytes of a file and waits for them.
fn read(ring: &mut IoUring, file: &File) -> io::Result<()> {
    let mut memory = vec![0_u8; READ_BYTES as usize];
    let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), memory.as_mut_ptr(), READ_BYTES);
    // SAFETY: memory and file outlive the request: below, we wait until it has been completed. If
    // that fails, we don't free the memory.
    let pushed = unsafe { ring.submission().push(&entry.build()) };
    pushed.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
    let completed = loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => break Err(error),
            Ok(_) => break Ok(()),
        }
    };
    let result = completed.map(|()| ring.completion().next().map(|entry| entry.result()));
    match result {
        Ok(Some(count)) if count >= 0 => Ok(()),
        Ok(Some(errno)) => Err(io::Error::from_raw_os_error(-errno)),
        unknown => {
            // The kernel may still write to it.
            std::mem::forget(memory);
            Err(unknown.err().unwrap_or_else(|| io::Error::from_raw_os_error(libc::EIO)))
        }
    }
}

type RingBuilder = Builder<squeue::Entry, cqueue::Entry>;

fn flags(wait: &mut dyn FnMut() -> bool) -> Vec<UringTrial> {
    let mut with = |name, set: fn(&mut RingBuilder) -> &mut RingBuilder| {
        let ring: io::Result<IoUring> = retry(wait, || {
            let mut builder: RingBuilder = IoUring::builder();
            set(&mut builder).build(ENTRIES)
        });
        trial(name, ring.as_ref().map(|_| ()))
    };
    vec![
        with("CQSIZE", |builder| builder.setup_cqsize(ENTRIES * 4)),
        with("COOP_TASKRUN", |builder| builder.setup_coop_taskrun()),
        with("SINGLE_ISSUER", |builder| builder.setup_single_issuer()),
        with("DEFER_TASKRUN", |builder| builder.setup_single_issuer().setup_defer_taskrun()),
    ]
}

fn opcodes(ring: &IoUring) -> Vec<UringTrial> {
    let mut probe = io_uring::Probe::new();
    if let Err(error) = ring.submitter().register_probe(&mut probe) {
        return vec![trial("REGISTER_PROBE", Err(&error))];
    }
    [
        ("READ", opcode::Read::CODE),
        ("WRITE", opcode::Write::CODE),
        ("READV", opcode::Readv::CODE),
        ("WRITEV", opcode::Writev::CODE),
        ("FSYNC", opcode::Fsync::CODE),
        ("SYNC_FILE_RANGE", opcode::SyncFileRange::CODE),
        ("READ_FIXED", opcode::ReadFixed::CODE),
        ("WRITE_FIXED", opcode::WriteFixed::CODE),
        ("READV_FIXED", opcode::ReadvFixed::CODE),
        ("WRITEV_FIXED", opcode::WritevFixed::CODE),
    ]
    .map(|(name, code)| known(name, probe.is_supported(code)))
    .into()
}

fn registrations(wait: &mut dyn FnMut() -> bool) -> Vec<UringTrial> {
    let mut on_ring = |name, register: fn(&IoUring) -> io::Result<()>| {
        let result = retry(wait, || IoUring::new(ENTRIES).and_then(|ring| register(&ring)));
        trial(name, result.as_ref().copied())
    };
    vec![
        on_ring("BUFFERS", register_memory),
        on_ring("BUFFERS (sparse)", register_place),
        on_ring("FILES (sparse)", |ring| ring.submitter().register_files_sparse(ENTRIES)),
        on_ring("IOWQ_MAX_WORKERS", |ring| ring.submitter().register_iowq_max_workers(&mut [1, 1])),
    ]
}

/// Registers a place for memory.
fn register_place(ring: &IoUring) -> io::Result<()> {
    let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    // SAFETY: the place is empty, so no memory is registered.
    unsafe { ring.submitter().register_buffers(&[empty]) }
}

/// Registers a frame of a page region.
fn register_memory(ring: &IoUring) -> io::Result<()> {
    let region = Region::map(FRAME_SIZE)?;
    let (base, bytes) = region.span();
    let memory = libc::iovec { iov_base: base.cast(), iov_len: bytes };
    // SAFETY: the registration ends before the region is unmapped, which happens when it is
    // dropped. The ring has no request that uses it.
    unsafe { ring.submitter().register_buffers(&[memory]) }?;
    ring.submitter().unregister_buffers()
}

/// Rings that are open at the same time.
#[derive(Debug)]
pub struct OpenRings {
    /// How many could be opened.
    pub opened: u32,
    /// The errno of the next one; `None` if all could be opened.
    pub errno: Option<i32>,
    _rings: Vec<Ring>,
}

/// An open ring, without its contents in debug output.
struct Ring(#[expect(dead_code, reason = "keeps the ring open")] IoUring);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

/// Opens `count` rings of `entries`, and keeps them open until the result is dropped. Stops at the
/// first one that fails.
pub fn open_rings(count: u32, entries: u32) -> OpenRings {
    let (mut rings, mut errno) = (Vec::new(), None);
    while errno.is_none() && rings.len() < count as usize {
        match IoUring::new(entries) {
            Ok(ring) => rings.push(Ring(ring)),
            Err(error) => errno = Some(errno_of(&error)),
        }
    }
    OpenRings { opened: rings.len() as u32, errno, _rings: rings }
}

/// Memory of one ring with `entries` submission entries and twice as many completion entries. The
/// kernel charges it to `RLIMIT_MEMLOCK` before Linux 5.12, and again from 6.14.
pub fn ring_bytes(entries: u32) -> u64 {
    bytes_in_pages(entries, page_bytes())
}

/// Bytes of a page of memory, in which the kernel charges for rings.
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

fn bytes_in_pages(entries: u32, page: u64) -> u64 {
    let entries = u64::from(entries.max(1).next_power_of_two());
    let submission = entries * size_of::<squeue::Entry>() as u64;
    // The array of indexes has four bytes for each submission entry.
    let completion = RING_HEAD + 2 * entries * size_of::<cqueue::Entry>() as u64 + entries * 4;
    submission.next_multiple_of(page) + completion.next_multiple_of(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_ring_is_whole_pages() {
        for (entries, page, pages) in [
            (1, 4096, 2),
            (64, 4096, 2),
            (65, 4096, 4),
            (128, 4096, 4),
            (1024, 4096, 26),
            // As on ppc64 and some kernels of arm64.
            (64, 65536, 2),
            (1024, 65536, 2),
        ] {
            assert_eq!(bytes_in_pages(entries, page), pages * page, "{entries} {page}");
        }
        assert_eq!(ring_bytes(1), 2 * rustix::param::page_size() as u64);
    }

    #[test]
    fn only_a_shortage_of_memory_is_tried_again() {
        for (errno, expected) in [(libc::ENOMEM, 4), (libc::EPERM, 1)] {
            let (mut attempts, mut waits) = (0, 0);
            let mut wait = || {
                waits += 1;
                waits < 4
            };
            let result: io::Result<()> = retry(&mut wait, || {
                attempts += 1;
                Err(io::Error::from_raw_os_error(errno))
            });
            assert_eq!(result.map_err(|error| errno_of(&error)), Err(errno));
            assert_eq!(attempts, expected, "{errno}");
        }
    }

    #[test]
    fn a_ring_that_fails_is_the_last_one() {
        let rings = open_rings(0, 8);
        assert_eq!((rings.opened, rings.errno), (0, None));
        let rings = open_rings(2, 1 << 20);
        assert_eq!(rings.opened, 0);
        assert!(rings.errno.is_some(), "more entries than the kernel allows");
    }
}
