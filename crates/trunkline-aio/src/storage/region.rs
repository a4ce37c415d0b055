//! The page region: I/O memory, allocated once at start.
//!
//! The region is a single anonymous mapping, divided into 8 KiB frames. It uses huge pages if they
//! are available, is aligned for direct I/O, and is registered with the rings as a whole. A
//! [`Lease`] gives its owner exclusive use of a run of contiguous frames. An I/O in flight keeps
//! its lease in the issuer's slot, so that the frames can't be reused while the kernel may still
//! write to them.
//!
//! A buffer pool keeps its leases and shares the frames under its own locking rules. It passes
//! frame numbers, rather than leases, to its I/O (`Io::read_frames`). In return, the pool must
//! guarantee that the frames stay leased, and that no thread accesses them in a way that conflicts
//! with the I/O.
//!
//! PostgreSQL's counterpart is its shared memory segment, which is also allocated just once and
//! uses huge pages if possible (`huge_pages = try`).

use crate::facade::Mutex;
use crate::limits::FRAME_SIZE;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

const HUGE_PAGE: usize = 2 << 20;

/// The kind of memory pages backing a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Reserved huge pages (`vm.nr_hugepages`).
    Huge,
    /// Ordinary pages, for which we've requested transparent huge pages.
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
        let (base, mapped, kind) = map_pages(frames * FRAME_SIZE)?;
        Ok(Self(Arc::new(Inner {
            base,
            bytes: mapped,
            frames: count,
            kind,
            free: Mutex::new(FreeRuns::new(count)),
        })))
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

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: base and bytes describe the mapping as mmap returned it. There are no leases
        // left, because every lease holds an Arc.
        let unmapped = unsafe { munmap(self.base.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}

/// Maps and populates memory, using the best kind of pages available. Returns address, length and
/// kind.
fn map_pages(bytes: usize) -> std::io::Result<(*mut u8, usize, PageKind)> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    if bytes >= HUGE_PAGE {
        let rounded = bytes.next_multiple_of(HUGE_PAGE);
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let huge = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                rounded,
                protection,
                MapFlags::PRIVATE | MapFlags::HUGETLB,
            )
        };
        if let Ok(base) = huge {
            return Ok((base.cast(), rounded, PageKind::Huge));
        }
    }
    let large = bytes >= HUGE_PAGE;
    let (base, mapped) = map_aligned(bytes, if large { HUGE_PAGE } else { 4096 })?;
    // SAFETY: the range was just mapped; the advice changes no content.
    let advised = unsafe { madvise(base.cast(), mapped, Advice::LinuxHugepage) };
    // Populate the mapping now, so that no page fault or allocation can happen during an I/O, and
    // so that registering the region pins huge pages. Direct reads of 128 KiB are then more than
    // twice as fast (decision 0001). Before Linux 5.14, this call fails and the pages are allocated
    // on first use.
    // SAFETY: populating the pages doesn't change their contents, which are zero.
    let _ = unsafe { madvise(base.cast(), mapped, Advice::LinuxPopulateWrite) };
    let kind = if advised.is_ok() && large { PageKind::Transparent } else { PageKind::Small };
    Ok((base, mapped, kind))
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

    /// Address and length for the kernel. Valid for as long as the lease exists.
    pub(crate) fn raw(&mut self) -> (*mut u8, usize) {
        (self.as_ptr(), self.frames as usize * FRAME_SIZE)
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
}
