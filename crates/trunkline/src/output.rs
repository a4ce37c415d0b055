//! Standard output: text with tables, bars and sizes, or JSON.
//!
//! If the reader closes the pipe early, the command ends without a message (see
//! [`Failure::output`]), but other errors such as a full disk are reported. Rust ignores SIGPIPE at
//! startup, so a closed pipe shows up as a write error and doesn't kill the process.
//!
//! We print a report only when it is complete. Otherwise, an error in the middle of a report could
//! leave us with truncated JSON.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

use serde::Serialize;

use crate::escape::escape_control_characters;
use crate::exit::Failure;
use crate::options::Global;

/// Creates a JSON object with the given fields in the given order. The order is part of our output
/// format, and `serde_json::json!` would sort the fields by name.
///
/// Each use defines its own struct with one type parameter per field, so that a report needs to
/// list its fields only once. If fields may be absent, put them into a nested object that is stored
/// as an `Option` and inlined with `#[serde(flatten)]`.
macro_rules! object {
    ($($(#[$attribute:meta])* $name:ident: $value:expr),* $(,)?) => {{
        #[expect(non_camel_case_types, reason = "the type of a field has the name of the field")]
        let object = {
            #[derive(serde::Serialize)]
            struct Object<$($name),*> {
                $($(#[$attribute])* $name: $name),*
            }
            Object { $($name: $value),* }
        };
        object
    }};
}
pub(crate) use object;

/// Prints a report: `json` if the options request JSON, or otherwise `text`.
pub(crate) fn print_report(
    global: &Global,
    json: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if global.json { print_json(json) } else { print(&text()) }
}

/// Prints rows that have no report around them: as a table, or one JSON object per line.
pub(crate) fn print_rows<T: Serialize>(
    global: &Global,
    rows: &[T],
    columns: &[Column<T>],
) -> Result<(), Failure> {
    match global.json {
        true => write(&rows.iter().map(json_line).collect::<Result<String, _>>()?),
        false => print(&table(rows, columns)),
    }
}

/// Writes text with control characters escaped, except line feeds and tabs.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(&escape_control_characters(text, &['\n', '\t']))
}

/// Whether the program was probably started with standard output closed.
///
/// If standard output is closed, Rust's runtime opens `/dev/null` in its place for both reading and
/// writing. A shell that redirects output to `/dev/null` opens it only for writing, so we can
/// usually distinguish the two cases. We may still be wrong if another program starts this one with
/// `/dev/null` opened for both.
pub(crate) fn is_closed() -> bool {
    let stdout = io::stdout();
    let null = fs::metadata("/dev/null").map(|null| null.rdev());
    let is_null = fstat(&stdout).is_ok_and(|found| {
        let is_device = FileType::from_raw_mode(found.st_mode).is_char_device();
        is_device && null.is_ok_and(|null| null == found.st_rdev)
    });
    is_null && fcntl_getfl(&stdout).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|e| Failure::output(&e))
}

/// Writes one JSON value and a line feed.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    write(&json_line(value)?)
}

fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let mut line = serde_json::to_string(value).map_err(Failure::cannot_run)?;
    line.push('\n');
    Ok(line)
}

/// Formats `Name:  value` lines, with the values aligned at column `width`.
pub(crate) fn fields(width: usize, lines: &[(&str, &dyn Display)]) -> String {
    lines.iter().map(|(name, value)| format!("{:width$}{value}\n", format!("{name}:"))).collect()
}

/// Formats `name  value` lines without colons, as `inspect` shows them.
pub(crate) fn properties(width: usize, lines: &[(&str, &dyn Display)]) -> String {
    lines.iter().map(|(name, value)| format!("{name:<width$}{value}\n")).collect()
}

/// A column of a table with rows of type `T`. The first part is the heading, as in [`Table`], and
/// the second part returns the column's cell for a row.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// A table with a row for each of `rows`, as text.
pub(crate) fn table<'t, T: 't>(
    rows: impl IntoIterator<Item = &'t T>,
    columns: &[Column<T>],
) -> String {
    let headings: Vec<&str> = columns.iter().map(|&(heading, _)| heading).collect();
    let mut table = Table::new(&headings);
    for row in rows {
        table.row(columns.iter().map(|(_, cell)| cell(row)).collect());
    }
    table.render()
}

/// A text table with aligned columns. If a heading starts with `>`, its column is right-aligned.
/// Column widths are counted in characters, not in bytes. We don't take into account that some
/// characters (CJK) are wider than others.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Line feeds in the cells are escaped. If the row has too few cells, the remaining
    /// columns are left empty.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        for cell in &mut cells {
            if let Cow::Owned(shown) = escape_control_characters(cell, &[]) {
                *cell = shown;
            }
        }
        self.rows.push(cells);
    }

    /// Returns the table as text. Each line ends with a line feed and has no trailing spaces.
    pub(crate) fn render(&self) -> String {
        let titles: Vec<String> = self
            .headings
            .iter()
            .map(|heading| heading.trim_start_matches('>').to_owned())
            .collect();
        let width_of = |row: &Vec<String>, column: usize| {
            row.get(column).map_or(0, |cell| cell.chars().count())
        };
        let widths: Vec<usize> = (0..titles.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| width_of(row, column));
                cells.chain([width_of(&titles, column)]).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in [&titles].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for ((cell, heading), width) in row.iter().zip(&self.headings).zip(&widths) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                if heading.starts_with('>') {
                    line.push_str(&padding);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&padding);
                }
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

/// Returns a horizontal bar that is `fraction` times `width` characters long, to the nearest eighth
/// of a character.
pub(crate) fn bar(fraction: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Formats bytes with a binary unit and three significant digits: `8.00 KiB`, `1.36 GiB`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = 0;
    // 999.5 would print as four digits.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Formats bytes as `pg_size_pretty` does: `8192 bytes`, `16 kB`, `1391 MB`.
///
/// PostgreSQL counts in halves of a unit and rounds them up at the end.
pub(crate) fn size_pretty(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    const HALVES_MAX: u64 = 20 * 1024 - 1;
    if bytes < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    let mut halves = bytes >> 9;
    let mut unit = 0;
    while halves >= HALVES_MAX && unit + 1 < UNITS.len() {
        halves >>= 10;
        unit += 1;
    }
    format!("{} {}", halves.div_ceil(2), UNITS[unit])
}

/// Formats a rate with a decimal unit, as device data sheets do: `5.31 GB/s`.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    if bytes_per_second < 1e9 {
        format!("{:.0} MB/s", bytes_per_second / 1e6)
    } else {
        format!("{:.2} GB/s", bytes_per_second / 1e9)
    }
}

/// Formats an amount of data, the time it took, and the rate: `1.25 GiB in 0.50 s, 2.68 GB/s`.
pub(crate) fn throughput(bytes: u64, seconds: f64) -> String {
    let bytes_per_second = bytes as f64 / seconds.max(1e-9);
    format!("{} in {seconds:.2} s, {}", human_bytes(bytes), rate(bytes_per_second))
}

/// Names the two I/O paths: through the operating system's cache, or bypassing it.
pub(crate) fn cache_mode(direct: bool) -> &'static str {
    if direct { "direct" } else { "buffered" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", ">count", "note"]);
        table.row(vec!["é".into(), "1".into(), "x".into()]);
        table.row(vec!["longer".into(), "1000".into()]);
        assert_eq!(table.render(), "name    count  note\né           1  x\nlonger   1000\n");
    }

    #[test]
    fn control_characters_in_cells_are_escaped() {
        let mut table = Table::new(&["name", "note"]);
        table.row(vec!["new\nline".into(), "\u{1b}[31mred\u{9b}".into()]);
        assert_eq!(table.render(), "name       note\nnew\\nline  \\u{1b}[31mred\\u{9b}\n");
    }

    #[test]
    fn bars_are_drawn_in_eighths() {
        for (fraction, expected) in
            [(0.0, ""), (1.0, "████"), (2.0, "████"), (0.5, "██"), (0.28125, "█▏"), (-1.0, "")]
        {
            assert_eq!(bar(fraction, 4), expected, "{fraction}");
        }
        assert_eq!(bar(f64::NAN, 4), "");
    }

    #[test]
    fn sizes_have_three_significant_digits() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (8192, "8.00 KiB"),
            (10_235, "10.0 KiB"),
            (1_048_575, "1.00 MiB"),
            (131_072_000, "125 MiB"),
            (1 << 30, "1.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(human_bytes(bytes), expected, "{bytes}");
        }
    }

    /// The numbers around each limit, as PostgreSQL 15 prints them.
    #[test]
    fn sizes_are_those_of_pg_size_pretty() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (8192, "8192 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (16_384, "16 kB"),
            (1_000_000, "977 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (1_000_000_000, "954 MB"),
            (10_736_893_951, "10239 MB"),
            (10_736_893_952, "10 GB"),
            (10_994_579_406_847, "10239 GB"),
            (10_994_579_406_848, "10 TB"),
            (11_258_449_312_612_351, "10239 TB"),
            (11_258_449_312_612_352, "10 PB"),
            (i64::MAX as u64, "8192 PB"),
        ] {
            assert_eq!(size_pretty(bytes), expected, "{bytes}");
        }
    }
}
