//! I/O handles that were in flight in the middle of a run. The columns are those of the view
//! `pg_aios`.

use std::fmt::Write as _;
use std::path::Path;

use trunkline_aio::IoRow;

use crate::output::{Column, table};

/// Maximum number of handles that are shown.
const HANDLES_SHOWN_MAX: usize = 6;

/// Returns a table of all handles that have an operation, or an empty string if there are none.
/// Idle handles are not listed, and neither are handles that have been acquired but not yet
/// defined. To keep the lines short, we strip `directory` from the file names.
pub(super) fn handles(snapshot: &[IoRow], directory: &Path) -> String {
    let directory = format!("{}/", directory.display());
    let mut shown: Vec<IoRow> = snapshot.to_vec();
    shown.retain(|row| row.operation.is_some());
    if shown.is_empty() {
        return String::new();
    }
    for target in shown.iter_mut().filter_map(|row| row.target_desc.as_mut()) {
        *target = target.replace(&directory, "");
    }
    let mut text = format!(
        "\n{} I/O handles in the middle of a run with {}, as in pg_aios:\n\n{}",
        shown.len(),
        shown.iter().find_map(|row| row.method).unwrap_or("a method"),
        table(shown.iter().take(HANDLES_SHOWN_MAX), &COLUMNS)
    );
    if let Some(more) = shown.len().checked_sub(HANDLES_SHOWN_MAX).filter(|&more| more > 0) {
        let _ = writeln!(text, "… and {more} more");
    }
    text
}

/// The columns of `pg_aios` that are useful for reads of a single relation.
const COLUMNS: [Column<IoRow>; 10] = [
    (">pid", |row| row.pid.to_string()),
    (">io_id", |row| row.io_id.to_string()),
    (">io_generation", |row| row.io_generation.to_string()),
    ("state", |row| row.state.to_owned()),
    ("operation", |row| row.operation.unwrap_or_default().to_owned()),
    (">off", |row| row.off.map(|off| off.to_string()).unwrap_or_default()),
    (">length", |row| row.length.map(|length| length.to_string()).unwrap_or_default()),
    ("f_sync", |row| flag(row.f_sync)),
    ("f_buffered", |row| flag(row.f_buffered)),
    ("target_desc", |row| row.target_desc.clone().unwrap_or_default()),
];

/// A boolean as psql shows it.
fn flag(flag: bool) -> String {
    if flag { "t" } else { "f" }.to_owned()
}
