//! Changes a page in the buffer pool and makes the change durable with a checkpoint.
//!
//! `cargo run -p trunkline-engine --example checkpoint`

mod own_table;

use std::error::Error;
use std::fs;

use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_format::{BLOCK_SIZE, CheckOptions, Fork, Verdict, check_page};

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::open(&Settings::default())?;
    let (table, _directory) = own_table::create(&engine, 8)?;
    let mut session = engine.session()?;

    // Read and pin the page, then lock its contents exclusively. As in PostgreSQL, we must mark the
    // page dirty while we are holding the lock. We do that before we change the page.
    let pin = session.read(&table, 3)?;
    let mut page = session.write_lock(pin.page())?;
    page.mark_dirty();
    page[BLOCK_SIZE - 4..].copy_from_slice(b"done");
    drop(page);

    // A checkpoint writes every dirty page of the pool and then syncs the files.
    let report = engine.checkpoint(&mut session)?;
    println!("{} page written, {} file synced", report.buffers, report.files);

    // Read the file without the engine. It must contain the change, and the page's checksum must be
    // valid.
    let bytes = fs::read(table.path(0))?;
    let (pages, _) = bytes.as_chunks::<BLOCK_SIZE>();
    let options = CheckOptions { checksums: true, fork: Fork::Main };
    assert_eq!(check_page(&pages[3], 3, &options), Verdict::Good);
    assert!(pages[3].ends_with(b"done"));
    Ok(())
}
