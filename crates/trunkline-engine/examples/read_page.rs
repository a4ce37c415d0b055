//! Reads one page through the buffer pool.
//!
//! `cargo run -p trunkline-engine --example read_page [DATADIR DATABASE TABLE]`

mod own_table;

use std::error::Error;

use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::Relation;
use trunkline_format::PageHeader;

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::open(&Settings::default())?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [directory, database, table] = &arguments[..] {
        let table = engine.cluster(directory)?.database(database)?.relation(table)?;
        return show(&engine, table.files());
    }
    let (table, _directory) = own_table::create(&engine, 8)?;
    show(&engine, &table)
}

fn show(engine: &Engine, table: &Relation) -> Result<(), Box<dyn Error>> {
    let mut session = engine.session()?;
    // The pin keeps the page in its buffer. Its checksum was verified when it was read from disk.
    let pin = session.read(table, 0)?;
    // While the share lock is held, no other session changes the page.
    let page = session.read_lock(pin.page())?;
    let rows = PageHeader::parse(&page).line_pointer_count();
    println!("{}: block 0 has {rows} line pointers", table.path(0).display());
    Ok(())
}
