//! Writes rows of `pgbench_accounts` as pages: `write_accounts <file> <rows>`.
//!
//! This can be used to check by hand that a server accepts the pages we build. First stop the
//! server, replace the file of a real table with this one, and remove the table's `_fsm` and `_vm`
//! files. Then start the server again and reindex the table.

use std::error::Error;
use std::fs;
use std::mem::replace;
use trunkline_format::HeapPageBuilder;
use trunkline_sample::push_account;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(rows)) = (args.next(), args.next()) else {
        return Err("usage: write_accounts <file> <rows>".into());
    };
    let rows: i32 = rows.parse()?;
    let mut bytes = Vec::new();
    let mut block = 0;
    let mut page = HeapPageBuilder::new(block);
    for aid in 1..=rows {
        let bid = (aid - 1) / 100_000 + 1;
        if push_account(&mut page, aid, bid, aid % 1000).is_err() {
            block += 1;
            let full = replace(&mut page, HeapPageBuilder::new(block));
            bytes.extend_from_slice(&full.finish(true));
            push_account(&mut page, aid, bid, aid % 1000)?;
        }
    }
    bytes.extend_from_slice(&page.finish(true));
    fs::write(path, bytes)?;
    Ok(())
}
