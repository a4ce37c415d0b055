//! Keeps up to 32 random reads of a temporary file in flight. Submits reads and collects their
//! results in batches.

use std::error::Error;
use trunkline_aio::facade::random::{self, Rng};
use trunkline_aio::{Builder, Class, OpenOptions, Slots, Status};

const BLOCK: usize = 8192;
const BLOCKS: u64 = 256;
const READS: usize = 1000;
const WINDOW: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    // Block n is filled with the byte n.
    let sample = tempfile::NamedTempFile::new()?;
    let bytes: Vec<u8> = (0..BLOCKS).flat_map(|number| [number as u8; BLOCK]).collect();
    std::fs::write(sample.path(), bytes)?;

    let aio = Builder::new().start()?;
    let file = aio.open(sample.path(), OpenOptions::default())?;
    let mut session = aio.session()?;
    let mut slots = Slots::new(WINDOW);
    for slot in 0..WINDOW {
        let lease = aio.region().lease(1).ok_or("the region is full")?;
        slots.memory(slot).ok_or("the slot is busy")?.push(lease);
    }

    let mut rng = Rng::new(random::seed());
    let mut wanted = [0; WINDOW];
    let (mut issued, mut done) = (0, 0);
    while done < READS {
        // Refill every free slot. The reads are submitted together when the batch is dropped.
        let mut batch = session.batch();
        while issued < READS
            && let Some(slot) = slots.free_slot()
        {
            wanted[slot] = rng.below(BLOCKS);
            let offset = wanted[slot] * BLOCK as u64;
            batch.acquire(Class::LookAhead)?.read(&file, offset, BLOCK as u32, &mut slots, slot)?;
            issued += 1;
        }
        drop(batch);

        // Sleep until half the window has completed, then collect those results and refill the
        // slots.
        session.wait_some(&slots, WINDOW / 2)?;
        while let Some(slot) = slots.first_done() {
            let outcome = slots.take(slot).ok_or("the slot is done")?;
            assert_eq!(outcome.status, Status::Ok, "{}", slots.describe(outcome));
            let memory = slots.memory(slot).ok_or("the slot is busy")?;
            let number = wanted[slot];
            assert!(memory[0].iter().all(|&byte| byte == number as u8), "block {number}");
            done += 1;
        }
    }
    let counters = aio.counters();
    println!("{done} reads, {} from the page cache", counters.cached);
    Ok(())
}
