//! A look at the handles in the middle of a run: a few of them, with the columns of the server's view
//! `pg_aios`.
//!
//! It shows what the numbers of a run cannot: what is in flight, how large, and where to.

use std::fmt::Write as _;

use trunkline_aio::IoRow;

use crate::output::Table;

/// Handles that are shown.
const HANDLES_SHOWN: usize = 6;

/// The handles that carry an I/O; nothing if there is none. Files are shown without `directory`, which
/// all of them are in.
pub(super) fn handles(look: &[IoRow], directory: &str) -> String {
    let directory = format!("{directory}/");
    let shown: Vec<&IoRow> = look.iter().filter(|row| row.operation.is_some()).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ">pid",
        ">io_id",
        ">io_generation",
        "state",
        "operation",
        ">off",
        ">length",
        "f_sync",
        "f_buffered",
        "target_desc",
    ]);
    let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
    let flag = |flag: bool| if flag { "t" } else { "f" }.to_owned();
    for row in shown.iter().take(HANDLES_SHOWN) {
        table.row(vec![
            row.pid.to_string(),
            row.io_id.to_string(),
            row.io_generation.to_string(),
            row.state.to_owned(),
            row.operation.unwrap_or_default().to_owned(),
            number(row.off),
            number(row.length.map(u64::from)),
            flag(row.f_sync),
            flag(row.f_buffered),
            row.target_desc.as_deref().unwrap_or_default().replace(&directory, ""),
        ]);
    }
    let mut text = format!(
        "\n{} handles in the middle of a run by {}, as pg_aios shows them:\n\n{}",
        shown.len(),
        shown.iter().find_map(|row| row.method).unwrap_or("a method"),
        table.render()
    );
    if let Some(more) = shown.len().checked_sub(HANDLES_SHOWN).filter(|&more| more > 0) {
        let _ = writeln!(text, "… and {more} more");
    }
    text
}
