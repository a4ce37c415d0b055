//! Reads a table's visible rows with a sequential scan.
//!
//! `cargo run -p trunkline-engine --example read_rows [DATADIR DATABASE TABLE]`

mod own_table;

use std::error::Error;

use trunkline_engine::Engine;
use trunkline_engine::heap::HeapScan;
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::BlockRange;
use trunkline_engine::settings::Settings;
use trunkline_format::Align;
use trunkline_format::deform::{Attribute, Deformer};

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::open(&Settings::default())?;
    let mut session = engine.session()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [directory, database, table] = &arguments[..] {
        let table = engine.cluster(directory)?.database(database)?.relation(table)?;
        let attributes: Vec<_> = table.columns().iter().map(|column| column.attribute).collect();
        return print(table.scan(&session)?, &mut session, &attributes);
    }
    let (table, _directory) = own_table::create(&engine, 8)?;
    let int4 = Attribute { len: 4, align: Align::Int };
    print(engine.scan(&session, &table)?, &mut session, &[int4, int4])
}

/// Prints the TID of each visible row and the raw bytes of its columns. The scan returns one page
/// at a time and holds a share lock on it, so that `row.tuple` can refer to the page's bytes.
/// Dropping the page releases the lock.
fn print(
    mut scan: HeapScan<BlockRange>,
    session: &mut Backend,
    attributes: &[Attribute],
) -> Result<(), Box<dyn Error>> {
    while let Some(page) = scan.next_page(session)? {
        for row in page.rows() {
            let row = row?;
            let mut columns = Deformer::of(&row.tuple);
            print!("{}", row.tid);
            for attribute in attributes {
                match columns.next(*attribute)?.value() {
                    Some(bytes) => print!("\t{bytes:02x?}"),
                    None => print!("\tnull"),
                }
            }
            println!();
        }
    }
    Ok(())
}
