//! Streams all pages of a table with read-ahead, keeping many reads in flight.
//!
//! `cargo run -p trunkline-engine --example stream_table`

mod own_table;

use std::error::Error;

use trunkline_engine::Engine;
use trunkline_engine::read_stream::{BlockRange, ReadStream, StreamOptions};
use trunkline_engine::settings::Settings;
use trunkline_format::PageHeader;

fn main() -> Result<(), Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.set("effective_io_concurrency", "64")?;
    settings.set("io_combine_limit", "64kB")?;
    let engine = Engine::open(&settings)?;
    let (table, _directory) = own_table::create(&engine, 1000)?;

    let mut session = engine.session()?;
    let blocks = BlockRange::new(0..table.blocks()?);
    let mut stream = ReadStream::new(&session, &table, blocks, StreamOptions::of(&settings));
    let mut line_pointers = 0;
    while let Some(page) = stream.next(&mut session)? {
        // The stream returns a pinned page. Reads of later pages continue while we look at this
        // one.
        let bytes = session.read_lock(page.pin)?;
        line_pointers += u32::from(PageHeader::parse(&bytes).line_pointer_count());
    }
    assert_eq!(line_pointers, 100_000);

    let stats = stream.stats();
    println!("{line_pointers} line pointers in {} pages, {} reads", stats.pages, stats.ios);
    println!("{:.1} blocks a read, {} waits", stats.io_size_mean(), stats.waits);
    Ok(())
}
