//! What goes to standard output: tables, bars, sizes for people; JSON for programs.
//!
//! A command composes its text and hands it over whole or line by line. A reader that goes away
//! early ends the command quietly (see [`crate::exit`]); a full disk is reported.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

use serde::Serialize;

use crate::exit::Failure;

/// Writes text as it is, but for what a terminal would obey.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(&harmless(text, &['\n', '\t']))
}

/// Whether standard output is what the library opens where a program is started with none: `/dev/null`
/// for reading too, which a shell's `>` does not ask for. Others that start programs may.
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

/// Text without control characters, but for those in `kept`: `\n`, `\t`, `\u{1b}` stand in their place.
/// Names may have any.
pub(crate) fn harmless<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let is_harmful = |char: char| char.is_control() && !kept.contains(&char);
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match is_harmful(char) {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

/// Writes one JSON object and a line feed.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(value).map_err(Failure::cannot_run)?;
    text.push('\n');
    write(&text)
}

/// Columns that line up: the text ones to the left, those whose heading starts with `>` to the
/// right.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Table {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, each cell on one line; cells that are missing at its end stay empty.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        for cell in &mut cells {
            if let Cow::Owned(shown) = harmless(cell, &[]) {
                *cell = shown;
            }
        }
        self.rows.push(cells);
    }

    /// The table as text, each line with a line feed and without blanks at its end.
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

/// A horizontal bar, `fraction` of `width` characters long, drawn in eighths of a character.
pub(crate) fn bar(fraction: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Bytes with a binary unit and three digits that count: `8.00 KiB`, `1.36 GiB`.
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

/// Bytes per second as people compare them: `5.31 GB/s`, decimal.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    if bytes_per_second < 1e9 {
        format!("{:.0} MB/s", bytes_per_second / 1e6)
    } else {
        format!("{:.2} GB/s", bytes_per_second / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_lines_up() {
        let mut table = Table::new(&["name", ">count", "note"]);
        table.row(vec!["é".into(), "1".into(), "x".into()]);
        table.row(vec!["longer".into(), "1000".into()]);
        assert_eq!(table.render(), "name    count  note\né           1  x\nlonger   1000\n");
    }

    #[test]
    fn nothing_that_a_terminal_would_obey() {
        let mut table = Table::new(&["name", "note"]);
        table.row(vec!["new\nline".into(), "\u{1b}[31mred\u{9b}".into()]);
        assert_eq!(table.render(), "name       note\nnew\\nline  \\u{1b}[31mred\\u{9b}\n");
        assert_eq!(harmless("a\n\tb\r", &['\n', '\t']), "a\n\tb\\r");
        assert!(matches!(harmless("ä b", &[]), Cow::Borrowed("ä b")));
    }

    #[test]
    fn bars() {
        for (fraction, expected) in
            [(0.0, ""), (1.0, "████"), (2.0, "████"), (0.5, "██"), (0.28125, "█▏"), (-1.0, "")]
        {
            assert_eq!(bar(fraction, 4), expected, "{fraction}");
        }
        assert_eq!(bar(f64::NAN, 4), "");
    }

    #[test]
    fn sizes() {
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
}
