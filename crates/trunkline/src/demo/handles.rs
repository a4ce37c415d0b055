//! I/O handles that were in flight in the middle of a run, with the columns of the view `pg_aios`.

use std::fmt::Write as _;

use trunkline_aio::IoRow;

use crate::output::Table;

/// Maximum number of handles that are shown.
const HANDLES_SHOWN_MAX: usize = 6;

/// A table of all handles that have an operation, or an empty text if there are none. Idle handles,
/// and handles that have been acquired but not yet defined, aren't listed. We strip `directory`
/// from file names to keep the lines short.
pub(super) fn handles(snapshot: &[IoRow], directory: &str) -> String {
    let directory = format!("{directory}/");
    let shown: Vec<&IoRow> = snapshot.iter().filter(|row| row.operation.is_some()).collect();
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
    for row in shown.iter().take(HANDLES_SHOWN_MAX) {
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
        "\n{} I/O handles in the middle of a run with {}, as in pg_aios:\n\n{}",
        shown.len(),
        shown.iter().find_map(|row| row.method).unwrap_or("a method"),
        table.render()
    );
    if let Some(more) = shown.len().checked_sub(HANDLES_SHOWN_MAX).filter(|&more| more > 0) {
        let _ = writeln!(text, "… and {more} more");
    }
    text
}
