//! Checks that nothing on the I/O path allocates.
//!
//! A global allocator counts the allocations of each thread. The test checks only the thread that
//! issues the I/O and waits for it. Under `sync`, and for reads from the page cache, that thread
//! executes the whole I/O path.

use crate::frames::{Frames, read_frames, write_frames};
use crate::{BLOCK, METHODS, sample, start};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use trunkline_aio::{Class, MethodKind, OpenOptions, Slots, Status};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system allocator, with a per-thread count of allocations.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: we pass on every call unchanged. The count is in a thread-local cell with a constant
// initialiser and no destructor, so incrementing it neither allocates nor fails.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; the pointer came from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise; the pointer came from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[test]
fn io_by_frames_allocates_nothing() {
    let sample = sample(32);
    for method in METHODS {
        let aio = start(method);
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        let file = aio.open(sample.path(), options).expect("opens");
        let mut session = aio.session().expect("a session");
        let mut slots = Slots::new(8);
        let frames = Frames::new(&aio, 32, 0);
        let order: Vec<usize> = (0..32).map(|at| at * 5 % 32).collect();
        let numbers = frames.numbers(&order);
        let mut round = |writes: bool| {
            let mut batch = session.batch();
            for slot in 0..8 {
                let io = batch.acquire(Class::LookAhead).expect("a handle");
                let (some, offset) = (&numbers[slot * 4..slot * 4 + 4], (slot * 4 * BLOCK) as u64);
                let issued = match writes {
                    false => read_frames(io, &file, offset, some, &mut slots, slot),
                    true => write_frames(io, &file, offset, some, &mut slots, slot),
                };
                issued.expect("defined");
            }
            drop(batch);
            while slots.pending() > 0 {
                let (_, outcome) = session.wait_any(&mut slots).expect("waits");
                assert_eq!(outcome.status, Status::Ok);
            }
        };
        // The first rounds start threads and grow buffers that are initially empty.
        for _ in 0..4 {
            round(false);
        }
        let before = ALLOCATIONS.get();
        for _ in 0..50 {
            round(false);
            round(true);
        }
        let allocated = ALLOCATIONS.get() - before;
        assert_eq!(allocated, 0, "{method}");
        let found = frames.bytes(&order);
        for (block, page) in found.chunks(BLOCK).enumerate() {
            assert!(page.iter().all(|&byte| byte == block as u8), "{method} block {block}");
        }
    }
}

/// Checks that the counter itself works.
#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(MethodKind::Sync)));
    drop(std::hint::black_box(vec![0_u8; 100]));
    assert!(ALLOCATIONS.get() - before >= 1);
}
