//! Reads a file with one I/O and checks the bytes it returned.
//!
//! Usage: `read [FILE]`. Without an argument it creates a temporary file and reads that.

use std::error::Error;
use std::path::PathBuf;
use trunkline_aio::{Builder, Class, OpenOptions, Slots, Status};

const LENGTH: u32 = 16 * 8192;

fn main() -> Result<(), Box<dyn Error>> {
    let sample = tempfile::NamedTempFile::new()?;
    let path: PathBuf = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => {
            std::fs::write(sample.path(), vec![7_u8; LENGTH as usize])?;
            sample.path().into()
        }
    };

    let aio = Builder::new().start()?;
    let file = aio.open(&path, OpenOptions::default())?;
    let mut session = aio.session()?;

    // One slot with sixteen frames of memory, which the I/O reads into.
    let mut slots = Slots::new(1);
    let lease = aio.region().lease(LENGTH / 8192).ok_or("the region is full")?;
    slots.memory(0).ok_or("the slot is busy")?.push(lease);

    let io = session.acquire(Class::Foreground)?;
    io.needed_now().read(&file, 0, LENGTH, &mut slots, 0)?;
    let outcome = session.wait(&mut slots, 0)?;
    if outcome.status == Status::Error {
        return Err(slots.describe(outcome).into());
    }

    // If the file is shorter, the outcome is partial and only the first `count` bytes are valid.
    let count = outcome.count as usize;
    let memory = slots.memory(0).ok_or("the slot is busy")?;
    let expected = std::fs::read(&path)?;
    assert_eq!(count, expected.len().min(LENGTH as usize));
    assert!(memory[0][..count] == expected[..count], "other bytes than std::fs::read");
    println!("read {count} bytes by {}", aio.method_status().used);
    Ok(())
}
