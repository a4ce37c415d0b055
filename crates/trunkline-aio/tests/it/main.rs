//! Tests of the public interface on real files, with every method.
//!
//! The I/O methods' contract is tested in `trunkline-sim`, both on real files and on the simulated
//! disk.

#![expect(clippy::expect_used, reason = "tests")]

mod allocations;
mod frames;
mod memory;

use frames::{Frames, read_frames, write_frames};
use std::io::Write;
use trunkline_aio::{Aio, Builder, Class, MethodKind, OpenOptions, Operation, Slots, Status};

const METHODS: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];
const BLOCK: usize = 8192;

/// Starts an instance that passes every I/O to `method`, with all of the sessions' shortcuts turned
/// off. Fails if the method is unavailable, because a test that silently used a fallback would
/// prove nothing.
fn start(method: MethodKind) -> Aio {
    let aio = Builder::new()
        .method(method)
        .try_cached_below(0)
        .inline_write_max(0)
        .start()
        .expect("starts");
    assert_eq!(aio.method_status().used, method, "{:?}", aio.method_status());
    aio
}

/// Blocks, each filled with its number.
fn numbered(blocks: usize) -> Vec<u8> {
    (0..blocks).flat_map(|block| [block as u8; BLOCK]).collect()
}

/// Creates a file with the given number of blocks, and fills each block with its own number. We
/// sync the file, so that direct reads will find the data.
fn sample(blocks: usize) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().tempfile_in(".").expect("temporary file");
    file.write_all(&numbered(blocks)).expect("writes");
    file.flush().expect("flushes");
    file.as_file().sync_all().expect("syncs");
    file
}

#[test]
fn many_reads_arrive_in_the_right_memory() {
    let sample = sample(64);
    for method in METHODS {
        for direct in [false, true] {
            let aio = start(method);
            let options = OpenOptions { direct, ..OpenOptions::default() };
            let file = aio.open(sample.path(), options).expect("opens");
            let mut session = aio.session().expect("a session");
            let mut slots = Slots::new(16);
            let mut seen = 0;
            for round in 0..4_usize {
                {
                    let mut batch = session.batch();
                    for slot in 0..16 {
                        let memory = slots.memory(slot).expect("idle");
                        if memory.is_empty() {
                            memory.push(aio.region().lease(1).expect("a frame"));
                        }
                        let offset = ((round * 16 + slot) * BLOCK) as u64;
                        batch
                            .acquire(Class::Maintenance)
                            .expect("a handle")
                            .read(&file, offset, BLOCK as u32, &mut slots, slot)
                            .expect("defined");
                    }
                }
                while slots.pending() > 0 {
                    let (slot, outcome) = session.wait_any(&mut slots).expect("waits");
                    assert_eq!(outcome.status, Status::Ok);
                    let memory = slots.memory(slot).expect("idle");
                    let wanted = (round * 16 + slot) as u8;
                    assert!(memory[0].iter().all(|&b| b == wanted), "{method} slot {slot}");
                    seen += 1;
                }
            }
            assert_eq!(seen, 64);
            assert_eq!(aio.handles_in_use(), 0);
            let counters = aio.counters().operation(Operation::Readv);
            assert_eq!((counters.count, counters.bytes), (64, 64 * BLOCK as u64));
        }
    }
}

#[test]
fn the_caller_may_try_the_page_cache_for_a_large_read() {
    const LENGTH: usize = 16 * BLOCK;
    let sample = sample(16);
    // Whether the builder turns trying off, whether the read asks for it, and whether it is tried.
    let cases = [(false, false, 0), (false, true, 1), (true, true, 0)];
    for method in [MethodKind::Worker, MethodKind::IoUring] {
        for (off, try_cached, expected) in cases {
            let builder = Builder::new().method(method);
            let builder = if off { builder.try_cached_below(0) } else { builder };
            let aio = builder.start().expect("starts");
            let file = aio.open(sample.path(), OpenOptions::default()).expect("opens");
            let mut session = aio.session().expect("a session");
            let mut slots = Slots::new(1);
            let lease = aio.region().lease(16).expect("frames");
            slots.memory(0).expect("idle").push(lease);
            let io = session.acquire(Class::Maintenance).expect("a handle");
            let io = if try_cached { io.try_cached() } else { io };
            io.read(&file, 0, LENGTH as u32, &mut slots, 0).expect("defined");
            let outcome = session.wait(&mut slots, 0).expect("waits");
            assert_eq!((outcome.status, outcome.count), (Status::Ok, LENGTH as u32));
            assert!(slots.memory(0).expect("idle")[0].iter().eq(&numbered(16)), "{method}");
            let cached = aio.counters().cached;
            assert_eq!(cached, expected, "{method}, off: {off}, asked: {try_cached}");
        }
    }
}

#[test]
fn written_bytes_are_there_after_fdatasync() {
    for method in METHODS {
        for direct in [false, true] {
            let sample = sample(4);
            let aio = start(method);
            let options = OpenOptions { direct, write: true, ..OpenOptions::default() };
            let file = aio.open(sample.path(), options).expect("opens");
            let mut session = aio.session().expect("a session");
            let mut slots = Slots::new(1);
            let memory = slots.memory(0).expect("idle");
            for piece in 0..3_u8 {
                let mut lease = aio.region().lease(1).expect("a frame");
                lease.fill(100 + piece);
                memory.push(lease);
            }
            let io = session.acquire(Class::Checkpoint).expect("a handle");
            io.write(&file, BLOCK as u64, 3 * BLOCK as u32, &mut slots, 0).expect("defined");
            let outcome = session.wait(&mut slots, 0).expect("waits");
            assert_eq!((outcome.status, outcome.count), (Status::Ok, 3 * BLOCK as u32));
            let io = session.acquire(Class::Checkpoint).expect("a handle");
            io.fdatasync(&file, &mut slots, 0);
            assert_eq!(session.wait(&mut slots, 0).expect("waits").status, Status::Ok);
            let io = session.acquire(Class::Checkpoint).expect("a handle");
            io.fsync(&file, &mut slots, 0);
            assert_eq!(session.wait(&mut slots, 0).expect("waits").status, Status::Ok);
            let bytes = std::fs::read(sample.path()).expect("reads");
            for (block, wanted) in [0_u8, 100, 101, 102].iter().enumerate() {
                let found = &bytes[block * BLOCK..(block + 1) * BLOCK];
                assert!(found.iter().all(|b| b == wanted), "{method} direct {direct} {block}");
            }
        }
    }
}

#[test]
fn wait_some_returns_when_enough_are_done() {
    let sample = sample(64);
    for method in METHODS {
        let aio = start(method);
        let file = aio.open(sample.path(), OpenOptions::default()).expect("opens");
        let mut session = aio.session().expect("a session");
        let mut slots = Slots::new(16);
        for slot in 0..16 {
            let lease = aio.region().lease(1).expect("a frame");
            slots.memory(slot).expect("idle").push(lease);
        }
        // Try every count, including one larger than the number of pending I/Os.
        for count in 0..=17_usize {
            let mut batch = session.batch();
            for slot in 0..16 {
                let io = batch.acquire(Class::Maintenance).expect("a handle");
                let offset = (slot * BLOCK) as u64;
                io.read(&file, offset, BLOCK as u32, &mut slots, slot).expect("defined");
            }
            drop(batch);
            while slots.pending() > 0 {
                let wanted = count.min(slots.pending());
                session.wait_some(&slots, count).expect("waits");
                assert!(slots.done_count() >= wanted, "{method}: {count}");
                session.wait_any(&mut slots).expect("waits");
            }
        }
    }
}

/// Buffered and direct, one piece and several, with and without registered memory.
#[test]
fn frames_by_number_carry_reads_and_writes() {
    for method in METHODS {
        for direct in [false, true] {
            let sample = sample(16);
            let aio = start(method);
            let options = OpenOptions { direct, write: true, ..OpenOptions::default() };
            let file = aio.open(sample.path(), options).expect("opens");
            let mut session = aio.session().expect("a session");
            let mut slots = Slots::new(1);
            let frames = Frames::new(&aio, 8, 0xEE);
            for order in [&[0, 1, 2, 3, 4, 5, 6, 7][..], &[7, 6, 2, 3, 4, 0][..]] {
                let numbers = frames.numbers(order);
                let io = session.acquire(Class::Foreground).expect("a handle");
                let offset = 3 * BLOCK as u64;
                read_frames(io, &file, offset, &numbers, &mut slots, 0).expect("defined");
                let outcome = session.wait(&mut slots, 0).expect("waits");
                assert_eq!(outcome.count as usize, order.len() * BLOCK, "{method}");
                for (at, page) in frames.bytes(order).chunks(BLOCK).enumerate() {
                    assert!(page.iter().all(|&b| b == 3 + at as u8), "{method} {direct} {at}");
                }
                // Back to front.
                let numbers: Vec<u32> = numbers.into_iter().rev().collect();
                let io = session.acquire(Class::Eviction).expect("a handle");
                write_frames(io, &file, 0, &numbers, &mut slots, 0).expect("defined");
                let outcome = session.wait(&mut slots, 0).expect("waits");
                assert_eq!(outcome.status, Status::Ok, "{method}");
                let bytes = std::fs::read(sample.path()).expect("reads");
                for (at, page) in bytes.chunks(BLOCK).take(order.len()).enumerate() {
                    let wanted = 3 + (order.len() - 1 - at) as u8;
                    assert!(page.iter().all(|&b| b == wanted), "{method} {direct} {at}");
                }
                std::fs::write(sample.path(), numbered(16)).expect("restores");
            }
        }
    }
}
