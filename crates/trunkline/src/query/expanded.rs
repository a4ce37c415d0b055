//! Rows as psql prints them after `\x`: a line for each column.
//!
//! ```text
//! -[ RECORD 1 ]-
//! id   | 1
//! name | first +
//!      | second
//! ```

use super::cells::{Cells, Part, Table};
use super::screen::{Line, fill, lines};

/// Appends a block with aligned names.
pub(super) fn write(table: &Table, cells: &Cells, part: Part, out: &mut Vec<u8>) {
    let names: Vec<Vec<Line>> = table.names.iter().map(|name| lines(name)).collect();
    if part.first && part.last && (cells.rows() == 0 || names.is_empty()) {
        if !table.tuples_only {
            out.extend_from_slice(table.footer(cells).as_bytes());
            out.push(b'\n');
        }
        out.push(b'\n');
        return;
    }
    let texts: Vec<Vec<Line>> = cells.iter().map(lines).collect();
    let of =
        |all: &[Vec<Line>]| all.iter().flatten().map(|line| line.width).max().unwrap_or_default();
    let widths = (of(&names), of(&texts));
    let has_lines = texts.iter().any(|cell| cell.len() > 1);
    for (row, cells) in texts.chunks_exact(names.len().max(1)).enumerate() {
        if !table.tuples_only {
            write_heading(Some(table.printed + row + 1), widths, out);
        } else if row > 0 || !part.first {
            write_heading(None, widths, out);
        }
        for (name, cell) in names.iter().zip(cells) {
            write_column(name, cell, widths, has_lines, out);
        }
    }
    if part.last {
        out.push(b'\n');
    }
}

/// The line above a record. Its number may be longer than the names, and then replaces the corner.
fn write_heading(record: Option<usize>, (names, values): (usize, usize), out: &mut Vec<u8>) {
    let label = record.map(|record| format!("[ RECORD {record} ]")).unwrap_or_default();
    let mut line = vec![b'-'; names + 1];
    line.extend_from_slice(b"+-");
    fill(b'-', values, &mut line);
    let end = 1 + label.len();
    if line.len() < end {
        line.resize(end, b'-');
    }
    if let Some(place) = line.get_mut(1..end) {
        place.copy_from_slice(label.as_bytes());
    }
    out.extend_from_slice(&line);
    out.push(b'\n');
}

fn write_column(
    name: &[Line],
    cell: &[Line],
    (names, values): (usize, usize),
    has_lines: bool,
    out: &mut Vec<u8>,
) {
    for number in 0..name.len().max(cell.len()) {
        match name.get(number) {
            Some(line) => {
                out.extend_from_slice(&line.bytes);
                fill(b' ', names - line.width, out);
                out.push(if number + 1 < name.len() { b'+' } else { b' ' });
            }
            None => fill(b' ', names + 1, out),
        }
        out.push(b'|');
        if let Some(line) = cell.get(number) {
            out.push(b' ');
            out.extend_from_slice(&line.bytes);
            if number + 1 < cell.len() && has_lines {
                fill(b' ', values - line.width, out);
                out.push(b'+');
            }
        }
        out.push(b'\n');
    }
}
