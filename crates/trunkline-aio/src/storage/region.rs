//! The page region: I/O memory, allocated once at start.
//!
//! The region is a single anonymous mapping, divided into 8 KiB frames. It uses huge pages if they
//! are available, is aligned for direct I/O, and is registered with the rings. A [`Lease`] gives its
//! owner exclusive use of a run of contiguous frames. An I/O in flight keeps its lease in the
//! issuer's slot, so that the frames can't be reused while the kernel may still write to them.
//!
//! We populate a small region when we map it. To populate gigabytes may take many seconds, and a
//! start must not wait for that, so a large region is populated while it is in use, ahead of the
//! I/O (`population`). It is registered with the rings slice by slice, after each slice has been
//! populated.
//!
//! A child process does not inherit the region (`MADV_DONTFORK`). Otherwise a fork would make all
//! pages copy-on-write, and an I/O in flight could write to a page that only the child still has.
//!
//! A buffer pool keeps its leases and shares the frames under its own locking rules. It passes
//! frame numbers, rather than leases, to its I/O (`Io::read_frames`). In return, the pool must
//! guarantee that the frames stay leased, and that no thread accesses them in a way that conflicts
//! with the I/O.
//!
//! PostgreSQL's counterpart is its shared memory segment, which is also mapped just once and uses
//! huge pages if possible (`huge_pages = try`). Its memory is allocated when a page is first
//! touched.

use super::population::{HUGE_PAGE, Population, free_huge_pages};
use crate::facade::{Mutex, thread};
use crate::limits::FRAME_SIZE;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A region of up to this size is populated when it is mapped. That takes a few milliseconds, or
/// tens of them if a hypervisor has to provide the memory. The regions of simulated runs are this
/// small, so their schedule doesn't depend on the memory.
const POPULATED_WHEN_MAPPED: usize = 16 << 20;

/// The kind of memory pages backing a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Reserved huge pages (`vm.nr_hugepages`).
    Huge,
    /// Ordinary pages, of which some may be transparent huge pages.
    Transparent,
    /// Ordinary pages.
    Small,
}

impl PageKind {
    /// The name for messages.
    pub fn name(self) -> &'static str {
        match self {
            PageKind::Huge => "huge",
            PageKind::Transparent => "transparent huge",
            PageKind::Small => "4 kB",
        }
    }
}

/// A mapping, divided into frames. Clones share it. It is unmapped once the last clone and the last
/// lease are dropped.
#[derive(Debug, Clone)]
pub struct Region(Arc<Inner>);

struct Inner {
    /// Start of the mapping. All frames are contiguous, starting here.
    base: *mut u8,
    /// Length of the mapping, which may exceed the frames because it was rounded up to huge pages.
    bytes: usize,
    frames: u32,
    kind: PageKind,
    /// Locked only while leasing or freeing frames.
    free: Mutex<FreeRuns>,
    population: Population,
}

// SAFETY: the mapping is plain memory that lives as long as Inner. It is accessed only through
// leases, and the allocator, which runs under the lock, never leases the same frame to two owners.
unsafe impl Send for Inner {}
// SAFETY: as above; Inner itself hands out no reference to the memory.
unsafe impl Sync for Inner {}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("bytes", &self.bytes).field("kind", &self.kind).finish()
    }
}

impl Region {
    /// Maps at least `bytes`, rounded up to whole frames.
    ///
    /// # Errors
    /// The system does not have that much address space or memory.
    pub fn map(bytes: usize) -> std::io::Result<Self> {
        let frames = bytes.div_ceil(FRAME_SIZE).max(1);
        let count = u32::try_from(frames).map_err(|_| std::io::ErrorKind::InvalidInput)?;
        let (base, bytes, kind) = map_pages(frames * FRAME_SIZE)?;
        // Reserved huge pages don't need compaction.
        let free = if kind == PageKind::Huge { || u64::MAX } else { free_huge_pages };
        let population = Population::new(base, bytes, free);
        if bytes <= POPULATED_WHEN_MAPPED {
            population.need(0, bytes);
        }
        let free = Mutex::new(FreeRuns::new(count));
        Ok(Self(Arc::new(Inner { base, bytes, frames: count, kind, free, population })))
    }

    /// Leases `frames` contiguous frames, or returns `None` if no run of free frames is long
    /// enough.
    ///
    /// # Panics
    /// If `frames` is 0.
    pub fn lease(&self, frames: u32) -> Option<Lease> {
        assert!(frames > 0, "a lease has at least one frame");
        let first = self.0.free.lock().take(frames)?;
        Some(Lease { region: Arc::clone(&self.0), first, frames })
    }

    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.0.frames
    }

    /// Number of frames not currently leased.
    pub fn free_frames(&self) -> u32 {
        self.0.free.lock().free
    }

    /// The kind of memory pages that back the region.
    pub fn page_kind(&self) -> PageKind {
        self.0.kind
    }

    /// Returns the start and the length of the mapping, for registering it with a ring. The length
    /// excludes the part that was added by rounding up to huge pages.
    pub(crate) fn span(&self) -> (*mut u8, usize) {
        (self.0.base, self.0.frames as usize * FRAME_SIZE)
    }

    /// How the region gets its memory.
    pub(crate) fn population(&self) -> &Population {
        &self.0.population
    }

    /// How much of the region has memory by now, in bytes, rounded up to huge pages. The rest gets
    /// its memory when it is first used.
    pub fn populated_bytes(&self) -> u64 {
        u64::from(self.0.population.populated_units()) * HUGE_PAGE as u64
    }

    /// Address of a frame; `None` if the region has no such frame.
    pub(crate) fn frame_start(&self, frame: u32) -> Option<*mut u8> {
        // SAFETY: below the region's frames, so the address is inside the mapping.
        (frame < self.0.frames).then(|| unsafe { self.0.base.add(frame as usize * FRAME_SIZE) })
    }

    /// Whether a lease belongs to this region.
    pub(crate) fn owns(&self, lease: &Lease) -> bool {
        Arc::ptr_eq(&self.0, &lease.region)
    }
}

/// The thread that populates a large region ahead of its use. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Populator {
    region: Region,
    thread: Option<thread::JoinHandle>,
}

impl Populator {
    /// Starts the thread, unless the region is populated already. If the thread can't be started,
    /// sessions populate all of the memory themselves.
    pub(crate) fn start(region: &Region) -> Self {
        let theirs = region.clone();
        let body = move || theirs.population().run();
        let large = region.0.bytes > POPULATED_WHEN_MAPPED;
        let thread = large.then(|| thread::spawn_internal("aio memory", body).ok()).flatten();
        Self { region: region.clone(), thread }
    }
}

impl Drop for Populator {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.region.population().stop();
            // If the thread panicked, it has already printed the message.
            let _ = thread.join();
        }
    }
}

impl Inner {
    /// Populates memory that is about to be used.
    fn need(&self, offset: usize, bytes: usize) {
        if self.bytes > POPULATED_WHEN_MAPPED {
            self.population.need(offset, bytes);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: base and bytes describe the mapping as mmap returned it. There are no leases
        // left, because every lease holds an Arc.
        let unmapped = unsafe { munmap(self.base.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}

/// Maps the best kind of pages available, without populating them. Returns address, length and kind.
fn map_pages(bytes: usize) -> std::io::Result<(*mut u8, usize, PageKind)> {
    let large = bytes >= HUGE_PAGE;
    let (base, mapped, kind) = match large.then(|| map_reserved(bytes)).flatten() {
        Some((base, mapped)) => (base, mapped, PageKind::Huge),
        None => {
            let (base, mapped) = map_aligned(bytes, if large { HUGE_PAGE } else { 4096 })?;
            // SAFETY: the range was just mapped; the advice changes no content.
            let advised = unsafe { madvise(base.cast(), mapped, Advice::LinuxHugepage) };
            let transparent = advised.is_ok() && large;
            (base, mapped, if transparent { PageKind::Transparent } else { PageKind::Small })
        }
    };
    // SAFETY: as above. Every kernel that we support knows this advice.
    unsafe { madvise(base.cast(), mapped, Advice::LinuxDontFork) }?;
    Ok((base, mapped, kind))
}

/// Maps reserved huge pages; `None` if there are not enough.
fn map_reserved(bytes: usize) -> Option<(*mut u8, usize)> {
    let bytes = bytes.next_multiple_of(HUGE_PAGE);
    let (protection, flags) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::HUGETLB);
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
    let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
    mapped.ok().map(|base| (base.cast(), bytes))
}

/// Maps whole pages at an address that is a multiple of the given alignment, which must be a power
/// of two. Transparent huge pages need this, but mmap(2) only aligns to 4 KiB. We therefore map
/// more than we need and unmap the excess at both ends.
fn map_aligned(bytes: usize, alignment: usize) -> std::io::Result<(*mut u8, usize)> {
    let wanted = bytes.next_multiple_of(alignment);
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
    let start = unsafe {
        mmap_anonymous(std::ptr::null_mut(), wanted + alignment, protection, MapFlags::PRIVATE)
    }?;
    let before = start.addr().next_multiple_of(alignment) - start.addr();
    let base = start.wrapping_byte_add(before);
    // SAFETY: both ranges are at the ends of the new mapping, and nothing refers to them.
    unsafe {
        if before > 0 {
            munmap(start, before)?;
        }
        if before < alignment {
            munmap(base.wrapping_byte_add(wanted), alignment - before)?;
        }
    }
    Ok((base.cast(), wanted))
}

/// The exclusive right to a run of contiguous frames. Dropping it frees them.
pub struct Lease {
    region: Arc<Inner>,
    first: u32,
    frames: u32,
}

impl Lease {
    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The first frame's number within the region.
    pub fn first_frame(&self) -> u32 {
        self.first
    }

    /// Address of the first frame, for a lease owner that hands out references to single pages.
    ///
    /// At this address, there are [`Lease::frames`] × [`FRAME_SIZE`] initialised bytes, aligned to
    /// 4 KiB, which stay mapped for as long as the lease exists. An owner that creates references
    /// to them must follow Rust's aliasing rules: a mutable reference excludes every other
    /// reference to the same bytes. The lease's own slices count as references too, so the owner
    /// must not dereference the lease. A read by frame numbers ([`crate::Io::read_frames`]) counts
    /// as a mutable reference.
    pub fn as_ptr(&self) -> *mut u8 {
        // SAFETY: first + frames <= the region's frames, so the address is inside the mapping.
        unsafe { self.region.base.add(self.first as usize * FRAME_SIZE) }
    }

    /// Makes sure that a frame has memory, before its first use. In a large region this may take a
    /// few milliseconds. The owner of a lease calls it for frames that it passes to I/O by number or
    /// fills itself. This is only a matter of speed: the kernel allocates memory that is missing.
    ///
    /// # Panics
    /// If the lease has no such frame.
    pub fn populate(&self, frame: u32) {
        assert!(frame < self.frames, "frame {frame} of a lease of {}", self.frames);
        self.region.need((self.first + frame) as usize * FRAME_SIZE, FRAME_SIZE);
    }

    /// Address and length for an I/O, which may use all of the frames. Valid for as long as the
    /// lease exists.
    pub(crate) fn raw(&mut self) -> (*mut u8, usize) {
        let bytes = self.frames as usize * FRAME_SIZE;
        self.region.need(self.first as usize * FRAME_SIZE, bytes);
        (self.as_ptr(), bytes)
    }
}

impl Deref for Lease {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the lease has exclusive access to these frames, and they stay mapped because the
        // lease holds a reference to the region. Anonymous memory is always initialised (to zero).
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.frames as usize * FRAME_SIZE) }
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in deref, and &mut self excludes every other reference.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.frames as usize * FRAME_SIZE) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.region.free.lock().give(self.first, self.frames);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({}+{})", self.first, self.frames)
    }
}

/// We always merge adjacent runs, so every run is as long as it can be. A lease therefore succeeds
/// whenever there are enough contiguous free frames.
#[derive(Debug)]
struct FreeRuns {
    /// First frame and length of each run, sorted by first frame and never adjacent.
    runs: Vec<(u32, u32)>,
    free: u32,
}

impl FreeRuns {
    fn new(frames: u32) -> Self {
        // Reserve enough for the worst fragmentation, so that freeing a lease, which may happen in
        // a completion, never allocates.
        let mut runs = Vec::with_capacity(frames as usize / 2 + 1);
        runs.push((0, frames));
        Self { runs, free: frames }
    }

    /// Takes the first run that is long enough.
    fn take(&mut self, frames: u32) -> Option<u32> {
        let at = self.runs.iter().position(|&(_, length)| length >= frames)?;
        let (first, length) = self.runs[at];
        if length == frames {
            self.runs.remove(at);
        } else {
            self.runs[at] = (first + frames, length - frames);
        }
        self.free -= frames;
        Some(first)
    }

    /// Returns a run, and merges it with adjacent free runs.
    fn give(&mut self, first: u32, frames: u32) {
        let at = self.runs.partition_point(|&(start, _)| start < first);
        let joins_before = at > 0 && self.runs[at - 1].0 + self.runs[at - 1].1 == first;
        let joins_after = at < self.runs.len() && first + frames == self.runs[at].0;
        match (joins_before, joins_after) {
            (true, true) => {
                self.runs[at - 1].1 += frames + self.runs[at].1;
                self.runs.remove(at);
            }
            (true, false) => self.runs[at - 1].1 += frames,
            (false, true) => {
                self.runs[at].0 = first;
                self.runs[at].1 += frames;
            }
            (false, false) => self.runs.insert(at, (first, frames)),
        }
        self.free += frames;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_merge() {
        let region = Region::map(64 * FRAME_SIZE).expect("maps");
        let a = region.lease(16).expect("a");
        let b = region.lease(32).expect("b");
        let c = region.lease(16).expect("c");
        assert!(region.lease(1).is_none(), "every frame is leased");
        drop(a);
        drop(c);
        assert!(region.lease(32).is_none(), "32 are free, but not side by side");
        drop(b);
        assert_eq!(region.lease(64).expect("all").frames(), 64);
    }

    #[test]
    fn a_lease_outlives_its_region() {
        let region = Region::map(FRAME_SIZE).expect("maps");
        let mut lease = region.lease(1).expect("one");
        drop(region);
        lease.fill(7);
        assert!(lease.iter().all(|&b| b == 7));
    }

    #[test]
    fn frames_are_aligned_for_direct_io() {
        let region = Region::map(FRAME_SIZE * 3).expect("maps");
        let mut lease = region.lease(2).expect("two");
        assert_eq!(lease.raw().0.addr() % 4096, 0);
    }

    #[test]
    fn the_thread_ends_with_the_instance() {
        let region = Region::map(POPULATED_WHEN_MAPPED + 1).expect("maps");
        let populator = Populator::start(&region);
        assert_eq!(Arc::strong_count(&region.0), 3, "the thread, its owner and the region");
        drop(populator);
        assert_eq!(Arc::strong_count(&region.0), 1);
        let small = Region::map(POPULATED_WHEN_MAPPED).expect("maps");
        let populator = Populator::start(&small);
        assert!(populator.thread.is_none(), "there is nothing left to populate");
        assert_eq!(small.populated_bytes(), POPULATED_WHEN_MAPPED as u64);
    }

    #[test]
    fn a_child_process_does_not_have_the_region() {
        for bytes in [FRAME_SIZE, POPULATED_WHEN_MAPPED * 2] {
            let region = Region::map(bytes).expect("maps");
            let address = region.0.base;
            // SAFETY: the child calls only functions that are safe after fork, and exits.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let mut resident = 0;
                // SAFETY: mincore writes one byte for one page, or fails if it isn't mapped.
                unsafe {
                    let found = libc::mincore(address.cast(), 4096, &mut resident);
                    libc::_exit(if found == 0 { 1 } else { *libc::__errno_location() });
                }
            }
            assert!(child > 0, "forks");
            let mut status = 0;
            // SAFETY: waits for our own child.
            let ended = unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!((ended, libc::WIFEXITED(status)), (child, true));
            assert_eq!(libc::WEXITSTATUS(status), libc::ENOMEM, "not mapped in the child");
        }
    }
}
