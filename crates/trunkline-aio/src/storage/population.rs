//! Population: gives a large region its memory while it is already in use.
//!
//! The kernel allocates and zeroes a page when it is first touched. For a pool of gigabytes that
//! takes seconds, so a start must not wait for it. But pages that are first touched inside an I/O
//! are as slow, and small. So a region is populated in units of one huge page, just before they are
//! used:
//!
//! - A session that is about to use memory first populates the units that have none.
//! - A thread populates the next few units ahead of the sessions, because a fresh pool uses its
//!   buffers in order. Some of these units are marked; the first session that uses a marked unit
//!   asks the thread to continue. Memory that is never used is never populated, except for these
//!   units.
//!
//! ```text
//!   units   ■■■■■■■■■■■■■■■■■■M■■■M■■□□□□□□□□□□□□□□□□□      ■ populated  □ not yet  M marked
//!           used so far ──▶│ └ ahead
//! ```
//!
//! If a session needs a unit that another thread is populating, it populates a following unit, and
//! then waits. Without the wait, it would touch the memory itself, and the kernel would zero two
//! huge pages where it needs only one. A session waits even while it is polled or has staged I/O, as
//! it would in a page fault. This can't deadlock, because the thread that populates the unit doesn't
//! wait for anything. The wait takes less than a millisecond, or a few milliseconds if a hypervisor
//! has to provide the memory.
//!
//! **Memory ordering** does not matter for the use of the memory: populating changes the page
//! tables, not the contents, and the kernel allocates what is still missing. It matters only for
//! the registration with rings, which would populate a slice that is incomplete. So the count of a
//! slice's units is released when a unit is populated, and acquired before the registration.
//!
//! **Huge pages** make large direct reads more than twice as fast (decision 0001), but only pages
//! that are at hand are worth asking for:
//!
//! - If no huge page is free, a fault in memory with `MADV_HUGEPAGE` may first compact memory. So we
//!   look how many are free, and withdraw the advice from slices for which there are not enough.
//! - Hypervisors take back free memory in huge pages, and need milliseconds to provide one again.
//!   Small pages come from the free memory that was not taken back, as long as there is some. So if a
//!   unit was slow, the next slice tries the other kind of page.
//!
//! **Failures.** A unit that cannot be populated (`ENOMEM`) is left to page faults, and its slice is
//! never registered.

use crate::clock;
use crate::facade::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use crate::facade::{Futex, Mutex};
use rustix::mm::{Advice, madvise};
use std::fs;
use std::ops::Range;
use std::time::Duration;

/// Size of a huge page on x86-64, and with pages of 4 kB on ARM.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// The memory that is populated at a time.
const UNIT: usize = HUGE_PAGE;

/// How many units are populated ahead of their use: 16 MiB.
const AHEAD: usize = 8;

/// One of this many units is marked if it is populated ahead, so that the thread isn't woken for
/// each unit.
const MARK_EVERY: usize = AHEAD / 2;

/// The smallest slice, see [`Population::slice_bytes`].
const SLICE_MIN: usize = 16 << 20;

/// The kernel registers at most 1 GiB as one buffer.
const SLICE_MAX: usize = 1 << 30;

/// The desired number of slices of a large region. The kernel registers at most 16,384 buffers, and
/// has at most 65,530 mappings in a process.
const SLICES: usize = 4096;

/// The block size of the kernel's page allocator that is a huge page: 2^9 pages of 4 kB.
const HUGE_ORDER: usize = 9;

/// Free huge pages that we leave to others. Below the kernel's watermarks, free memory is there but
/// may not be used, so a fault would start reclaim.
const LEFT_FREE: u64 = 64;

/// A unit that takes more CPU time than this was not at hand. It takes 0.15 ms as a huge page, 0.7 ms
/// in small pages, and 4 ms if a hypervisor has to provide 512 pages of 4 kB (decision 0012).
const SLOW: Duration = Duration::from_millis(2);

/// Bits of a unit's state.
mod unit {
    /// A thread populates the unit, or has done so.
    pub(super) const CLAIMED: u8 = 1;
    /// The unit is populated, or has been left to page faults.
    pub(super) const DONE: u8 = 2;
    /// The first session that uses the unit asks the thread to populate more.
    pub(super) const MARKED: u8 = 4;
}

/// No request, as a value of [`Population::request`]. Others are a unit's number plus one.
const NO_REQUEST: u32 = 0;

/// The population of one mapping.
#[derive(Debug)]
pub(crate) struct Population {
    /// Start of the mapping, whose owner owns this too.
    base: *mut u8,
    bytes: usize,
    units: Box<[AtomicU8]>,
    slices: Box<[Slice]>,
    slice_bytes: usize,
    /// Number of slices whose units are all populated.
    complete: AtomicU32,
    /// Returns how many huge pages are free.
    free_huge_pages: fn() -> u64,
    /// The next slice uses huge pages, if enough of them are free.
    huge: AtomicBool,
    /// The unit behind which the thread is asked to populate; the thread sleeps on it.
    request: Futex,
    /// Counts units that became `DONE`; sessions that wait for a unit sleep on it.
    finished: Futex,
    stopping: AtomicBool,
}

/// A part of the region that is advised and registered as a whole.
#[derive(Debug, Default)]
struct Slice {
    /// Number of populated units.
    populated: AtomicU32,
    /// Whether the slice may use huge pages. `None` before its first use.
    huge: Mutex<Option<bool>>,
}

impl Population {
    /// A region of which nothing is populated yet. The owner of the mapping must own this too.
    /// `free_huge_pages` returns how many huge pages are free.
    pub(crate) fn new(base: *mut u8, bytes: usize, free_huge_pages: fn() -> u64) -> Self {
        let slice_bytes = (bytes / SLICES).clamp(SLICE_MIN, SLICE_MAX).next_multiple_of(UNIT);
        Self {
            base,
            bytes,
            units: (0..bytes.div_ceil(UNIT)).map(|_| AtomicU8::new(0)).collect(),
            slices: (0..bytes.div_ceil(slice_bytes)).map(|_| Slice::default()).collect(),
            slice_bytes,
            complete: AtomicU32::new(0),
            free_huge_pages,
            huge: AtomicBool::new(true),
            request: Futex::new(NO_REQUEST),
            finished: Futex::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// The size of a slice; the last one may be shorter.
    pub(crate) fn slice_bytes(&self) -> usize {
        self.slice_bytes
    }

    /// Whether all of a slice is populated.
    pub(crate) fn is_complete(&self, slice: usize) -> bool {
        let populated = self.slices[slice].populated.load(Ordering::Acquire);
        populated as usize == self.units_of(slice).len()
    }

    /// How many slices are complete.
    pub(crate) fn complete_slices(&self) -> u32 {
        self.complete.load(Ordering::Acquire)
    }

    /// How many units are populated.
    pub(crate) fn populated_units(&self) -> u32 {
        self.slices.iter().map(|slice| slice.populated.load(Ordering::Relaxed)).sum()
    }

    /// Populates a range that is about to be used, as far as it isn't yet.
    pub(crate) fn need(&self, offset: usize, bytes: usize) {
        for number in offset / UNIT..(offset + bytes).div_ceil(UNIT) {
            let state = self.units[number].load(Ordering::Relaxed);
            if state & (unit::DONE | unit::MARKED) != unit::DONE {
                self.need_unit(number);
            }
        }
    }

    fn need_unit(&self, number: usize) {
        let state = &self.units[number];
        if self.claim(number, unit::CLAIMED) {
            // Wake the thread first, so that both work at the same time.
            self.request_after(number);
            self.populate(number);
            return;
        }
        if state.fetch_and(!unit::MARKED, Ordering::Relaxed) & unit::MARKED != 0 {
            self.request_after(number);
        }
        if state.load(Ordering::Relaxed) & unit::DONE == 0 {
            if let Some(other) = self.ahead_of(number).find(|&other| self.claim_ahead(other)) {
                self.populate(other);
            }
            self.await_unit(number);
        }
    }

    fn await_unit(&self, number: usize) {
        loop {
            let seen = self.finished.epoch();
            if self.units[number].load(Ordering::SeqCst) & unit::DONE != 0 {
                return;
            }
            self.finished.wait(seen, None);
        }
    }

    /// The units that are populated ahead when a unit is used.
    fn ahead_of(&self, number: usize) -> Range<usize> {
        number + 1..(number + 1 + AHEAD).min(self.units.len())
    }

    /// Claims a unit for the caller, which must then populate it.
    fn claim(&self, number: usize, state: u8) -> bool {
        let claimed =
            self.units[number].compare_exchange(0, state, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok()
    }

    /// Like [`Self::claim`], for a unit that is not needed yet.
    fn claim_ahead(&self, number: usize) -> bool {
        let mark = if number.is_multiple_of(MARK_EVERY) { unit::MARKED } else { 0 };
        self.claim(number, unit::CLAIMED | mark)
    }

    /// Asks the thread to populate the units behind this one. A newer request replaces an older one.
    fn request_after(&self, number: usize) {
        if self.request.word().swap(number as u32 + 1, Ordering::SeqCst) == NO_REQUEST {
            self.request.wake(1);
        }
    }

    /// Populates a unit that the caller has claimed.
    fn populate(&self, number: usize) {
        let slice = number * UNIT / self.slice_bytes;
        let huge = self.advise(slice);
        let started = clock::thread_cpu_time();
        let populated = self.advise_units(number..number + 1, Advice::LinuxPopulateWrite);
        self.choose_pages(huge, clock::thread_cpu_time().since(started));
        if populated {
            let before = self.slices[slice].populated.fetch_add(1, Ordering::AcqRel);
            if before as usize + 1 == self.units_of(slice).len() {
                self.complete.fetch_add(1, Ordering::Release);
            }
        }
        self.units[number].fetch_or(unit::DONE, Ordering::SeqCst);
        self.finished.signal();
    }

    /// Before the first use of a slice, decides whether it may use huge pages, and withdraws the
    /// advice to do so if not. Returns the decision.
    fn advise(&self, slice: usize) -> bool {
        *self.slices[slice].huge.lock().get_or_insert_with(|| {
            let units = self.units_of(slice);
            let free = (self.free_huge_pages)() >= LEFT_FREE + units.len() as u64;
            let huge = free && self.huge.load(Ordering::Relaxed);
            if !huge {
                // It fails if the process has too many mappings. Then a fault may be slow.
                let _ = self.advise_units(units, Advice::LinuxNoHugepage);
            }
            huge
        })
    }

    /// Chooses the kind of page for the next slice, after a unit of the given kind took this much
    /// CPU time.
    fn choose_pages(&self, huge: bool, time: Duration) {
        let (chosen, is_fast) = (self.huge.load(Ordering::Relaxed), time <= SLOW);
        // The slice may have small pages only because too few huge ones were free.
        let next = if huge { is_fast } else { chosen || !is_fast };
        // The atomic is loaded and stored in any case, so that a simulated schedule doesn't depend
        // on the time.
        self.huge.store(next, Ordering::Relaxed);
    }

    /// Calls `madvise` with an advice that doesn't change the contents. Returns whether it succeeds.
    fn advise_units(&self, units: Range<usize>, advice: Advice) -> bool {
        let (start, end) = (units.start * UNIT, (units.end * UNIT).min(self.bytes));
        // SAFETY: the units are inside the mapping, which lives as long as self. Neither populating
        // memory nor advice about huge pages changes the contents.
        unsafe { madvise(self.base.add(start).cast(), end - start, advice) }.is_ok()
    }

    fn units_of(&self, slice: usize) -> Range<usize> {
        let per_slice = self.slice_bytes / UNIT;
        slice * per_slice..((slice + 1) * per_slice).min(self.units.len())
    }

    /// The body of the thread: populates units ahead of their use, until [`Self::stop`].
    pub(crate) fn run(&self) {
        loop {
            let request = self.request.word().swap(NO_REQUEST, Ordering::SeqCst);
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            match request.checked_sub(1) {
                None => drop(self.request.wait(NO_REQUEST, None)),
                Some(needed) => self.populate_ahead(needed as usize),
            }
        }
    }

    fn populate_ahead(&self, needed: usize) {
        for number in self.ahead_of(needed) {
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            if self.claim_ahead(number) {
                self.populate(number);
            }
        }
    }

    /// Makes the thread end, after the unit that it is populating.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Any value but `NO_REQUEST` ends the thread's sleep.
        self.request.word().store(u32::MAX, Ordering::SeqCst);
        self.request.wake(1);
    }
}

/// How many huge pages are free on this machine. Without `/proc/buddyinfo`, which a container may
/// hide, we can't tell, and rely on the time that a unit takes.
pub(crate) fn free_huge_pages() -> u64 {
    fs::read_to_string("/proc/buddyinfo").map_or(u64::MAX, |text| free_in(&text))
}

/// Number of free huge pages according to `/proc/buddyinfo`. A line shows, after the name of the
/// zone, the number of free blocks of each order.
fn free_in(buddyinfo: &str) -> u64 {
    let of_zone = |line: &str| -> u64 {
        let (_, counts) = line.split_once("zone").unwrap_or_default();
        let counts = counts.split_whitespace().skip(1).map(|count| count.parse().unwrap_or(0));
        let blocks = (0..).zip(counts.skip(HUGE_ORDER));
        blocks.map(|(above, blocks): (u32, u64)| blocks << above).sum()
    };
    buddyinfo.lines().map(of_zone).sum()
}

#[cfg(test)]
mod tests;
