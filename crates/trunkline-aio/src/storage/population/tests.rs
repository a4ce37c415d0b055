//! Tests of the population with real memory and real threads.

#![expect(clippy::disallowed_methods, reason = "tests")]

use super::*;
use crate::facade::FutexWait;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A mapping for a population, which is unmapped with it.
struct Mapped {
    base: *mut u8,
    population: Population,
}

// SAFETY: plain memory, as in `Region`.
unsafe impl Sync for Mapped {}

const UNITS: usize = 20;

impl Mapped {
    fn new(protection: ProtFlags, free_huge_pages: fn() -> u64) -> Self {
        let (bytes, flags) = ((UNITS + 1) * UNIT, MapFlags::PRIVATE);
        // SAFETY: a fresh mapping aliases nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let start: *mut u8 = start.expect("maps").cast();
        let base = start.wrapping_add(start.addr().next_multiple_of(UNIT) - start.addr());
        // SAFETY: inside the mapping.
        unsafe { madvise(base.cast(), UNITS * UNIT, Advice::LinuxHugepage) }.expect("advises");
        Self { base: start, population: Population::new(base, UNITS * UNIT, free_huge_pages) }
    }

    fn population(&self) -> &Population {
        &self.population
    }

    /// The numbers of the units that are populated.
    fn populated(&self) -> Vec<usize> {
        let is_done = |number: &usize| {
            self.population.units[*number].load(Ordering::SeqCst) & unit::DONE != 0
        };
        (0..UNITS).filter(is_done).collect()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, and nothing uses it any more.
        unsafe { munmap(self.base.cast(), (UNITS + 1) * UNIT) }.expect("unmaps");
    }
}

const WRITABLE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

#[test]
fn each_unit_is_populated_once() {
    let mapped = &Mapped::new(WRITABLE, free_huge_pages);
    let population = mapped.population();
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| mapped.population().run());
        let sessions = [0, 1, 7].map(|first| {
            threads.spawn(move || {
                let population = mapped.population();
                for unit in (first..UNITS).chain(0..first) {
                    population.need(unit * UNIT, 1);
                    let done = population.units[unit].load(Ordering::SeqCst) & unit::DONE;
                    assert_ne!(done, 0, "unit {unit} is populated when it is used");
                }
            })
        });
        for session in sessions {
            session.join().expect("a session");
        }
        population.stop();
        thread.join().expect("the thread");
    });
    assert_eq!(population.populated_units() as usize, UNITS);
    assert_eq!(population.complete_slices() as usize, population.slices.len());
    assert!((0..population.slices.len()).all(|slice| population.is_complete(slice)));
}

/// Longer than any machine takes. Without it, a test would hang if a wake-up is missing.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn every_session_that_waits_for_a_unit_wakes() {
    const SESSIONS: usize = 4;
    let mapped = &Mapped::new(WRITABLE, free_huge_pages);
    let population = mapped.population();
    assert!(population.claim(0, unit::CLAIMED));
    let (threads, woken) = ([0; SESSIONS].map(|_| AtomicU32::new(0)), Futex::new(0));
    std::thread::scope(|scope| {
        for thread in &threads {
            let woken = &woken;
            scope.spawn(move || {
                thread.store(own_number(), Ordering::SeqCst);
                mapped.population().await_unit(0);
                woken.signal();
            });
        }
        threads.iter().for_each(until_asleep);
        population.populate(0);
        let found = until(&woken, || woken.epoch() as usize == SESSIONS);
        (0..SESSIONS).for_each(|_| population.finished.signal());
        assert!(found, "all sessions return");
    });
}

#[test]
fn a_session_that_waits_populates_another_unit() {
    let mapped = &Mapped::new(WRITABLE, free_huge_pages);
    let population = mapped.population();
    assert!(population.claim(0, unit::CLAIMED) && population.claim(1, unit::CLAIMED));
    let thread = &AtomicU32::new(0);
    let populated = std::thread::scope(|threads| {
        threads.spawn(|| {
            thread.store(own_number(), Ordering::SeqCst);
            mapped.population().need(0, 1);
        });
        until_asleep(thread);
        let populated = mapped.populated();
        population.populate(0);
        populated
    });
    assert_eq!(populated, [2]);
}

fn own_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Waits until a thread has started and sleeps. These threads only sleep in `await_unit`.
fn until_asleep(thread: &AtomicU32) {
    let is_asleep = || {
        let stat = format!("/proc/self/task/{}/stat", thread.load(Ordering::SeqCst));
        // The state follows the name, which is in parentheses.
        let text = std::fs::read_to_string(stat).unwrap_or_default();
        text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    while !is_asleep() {
        std::thread::yield_now();
    }
}

/// Waits until a condition holds, which the futex announces. Returns false after the time limit.
fn until(futex: &Futex, condition: impl Fn() -> bool) -> bool {
    loop {
        let seen = futex.epoch();
        if condition() {
            return true;
        }
        if futex.wait(seen, Some(LIMIT)) == FutexWait::TimedOut {
            return condition();
        }
    }
}

/// Ends the thread, even if the test fails.
struct Stop<'a>(&'a Population);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[test]
fn the_thread_stays_ahead_of_the_sessions() {
    let mapped = &Mapped::new(WRITABLE, free_huge_pages);
    let population = mapped.population();
    let up_to = |last: usize| {
        let units = Vec::from_iter(0..=last);
        until(&population.finished, || mapped.populated() == units)
    };
    std::thread::scope(|threads| {
        let _stop = Stop(population);
        threads.spawn(|| mapped.population().run());
        population.need(0, 1);
        assert!(up_to(AHEAD), "{:?}", mapped.populated());
        population.need(UNIT, UNIT * (MARK_EVERY - 1));
        assert_eq!(population.request.epoch(), NO_REQUEST, "these have no mark");
        population.need(MARK_EVERY * UNIT, 1);
        assert!(up_to(AHEAD + MARK_EVERY), "{:?}", mapped.populated());
        population.need(MARK_EVERY * UNIT, 1);
        assert_eq!(population.request.epoch(), NO_REQUEST, "a mark counts once");
    });
    assert!(population.is_complete(0) && !population.is_complete(1));
    assert_eq!(population.complete_slices(), 1);
}

#[test]
fn memory_that_cannot_be_populated_is_left_to_faults() {
    let mapped = Mapped::new(ProtFlags::READ, free_huge_pages);
    let population = &mapped.population;
    population.need(0, UNITS * UNIT);
    assert_eq!(mapped.populated().len(), UNITS, "no session waits for it");
    assert_eq!(population.populated_units(), 0);
    assert_eq!(population.complete_slices(), 0, "nothing to register");
}

#[test]
fn no_huge_pages_where_too_few_are_free() {
    for (free, expected) in
        [((|| LEFT_FREE + 7) as fn() -> u64, [false, true]), (|| LEFT_FREE + 8, [false, false])]
    {
        let mapped = Mapped::new(WRITABLE, free);
        let population = &mapped.population;
        population.need(SLICE_MIN - UNIT, UNIT);
        let starts = [SLICE_MIN, 0].map(|offset| population.base.addr() + offset);
        assert_eq!(starts.map(refuses_huge_pages), expected, "only the slice that is used");
    }
}

#[test]
fn a_slow_unit_changes_the_kind_of_page() {
    let slow = SLOW + Duration::from_nanos(1);
    // The choice so far, the kind of a slice, the time of a unit of it, and whether the next slice
    // refuses huge pages.
    for (chosen, huge, time, refused) in [
        (true, true, SLOW, false),
        (true, true, slow, true),
        (false, false, SLOW, true),
        (false, false, slow, false),
        // Too few huge pages were free, which says nothing about the time that they take.
        (true, false, SLOW, false),
    ] {
        let mapped = Mapped::new(WRITABLE, || u64::MAX);
        let population = &mapped.population;
        population.huge.store(chosen, Ordering::Relaxed);
        population.choose_pages(huge, time);
        population.need(0, 1);
        let start = population.base.addr();
        assert_eq!(refuses_huge_pages(start), refused, "{chosen}, {huge}, {time:?}");
        assert!(!refuses_huge_pages(start + SLICE_MIN), "only the slice that is used");
    }
}

/// Whether the memory at an address must not use huge pages.
fn refuses_huge_pages(address: usize) -> bool {
    let smaps = std::fs::read_to_string("/proc/self/smaps").expect("reads");
    let mut found = None;
    let mut inside = false;
    for line in smaps.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some((start, end)) = word.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).expect("an address");
            inside = (number(start)..number(end)).contains(&address);
        } else if inside && word == "VmFlags:" {
            found = Some(rest.split_whitespace().any(|flag| flag == "nh"));
        }
    }
    found.expect("mapped")
}

#[test]
fn free_blocks_of_all_zones_count() {
    let text = "\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone   Normal  53509  25503  42840  24023  10785   5530   2901   1748    751    114    269
";
    assert_eq!(free_in(text), 1 + 3 * 2 + 114 + 269 * 2);
    assert_eq!(free_in("Node 0, zone Normal 7 7 7 7 7 7 7 7 7\n"), 0);
    assert_eq!(free_in(""), 0);
}
