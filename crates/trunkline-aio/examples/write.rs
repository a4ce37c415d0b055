//! Writes blocks to a new file, makes them durable, and reads them back.
//!
//! Usage: `write [FILE]`. The file must not exist. Without an argument it uses a temporary file.

use std::error::Error;
use std::path::PathBuf;
use trunkline_aio::{Builder, Class, OpenOptions, Slots, Status};

const BLOCK: usize = 8192;
const BLOCKS: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path: PathBuf =
        std::env::args_os().nth(1).map_or_else(|| folder.path().join("data"), Into::into);
    if path.exists() {
        return Err(format!("{} exists", path.display()).into());
    }

    let aio = Builder::new().start()?;
    let options = OpenOptions { write: true, create: true, ..OpenOptions::default() };
    let file = aio.open(&path, options)?;
    let mut session = aio.session()?;

    // Block n is filled with the byte n.
    let mut lease = aio.region().lease(BLOCKS).ok_or("the region is full")?;
    for (number, block) in lease.chunks_mut(BLOCK).enumerate() {
        block.fill(number as u8);
    }
    let mut slots = Slots::new(1);
    slots.memory(0).ok_or("the slot is busy")?.push(lease);

    let length = BLOCKS * BLOCK as u32;
    session.acquire(Class::Checkpoint)?.write(&file, 0, length, &mut slots, 0)?;
    let written = session.wait(&mut slots, 0)?;
    assert_eq!((written.status, written.count), (Status::Ok, length));

    // Until this completes, a machine crash may lose the data.
    session.acquire(Class::Checkpoint)?.fdatasync(&file, &mut slots, 0);
    assert_eq!(session.wait(&mut slots, 0)?.status, Status::Ok);

    let found = std::fs::read(&path)?;
    assert_eq!(found.len(), length as usize);
    for (number, block) in found.chunks(BLOCK).enumerate() {
        assert!(block.iter().all(|&byte| byte == number as u8), "block {number}");
    }
    println!("wrote {BLOCKS} blocks to {}", path.display());
    Ok(())
}
