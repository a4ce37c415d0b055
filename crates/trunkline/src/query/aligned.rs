//! Rows as psql prints them: aligned columns between bars.
//!
//! ```text
//!  id |  name
//! ----+--------
//!   1 | first +
//!     | second
//! (1 row)
//! ```
//! A `+` at the end of a line says that the cell goes on in the next line.

use super::cells::{Cells, Part, Table};
use super::screen::{Line, fill, lines};

/// Appends a block.
pub(super) fn write(table: &Table, cells: &Cells, part: Part, out: &mut Vec<u8>) {
    let names: Vec<Vec<Line>> = table.names.iter().map(|name| lines(name)).collect();
    let columns = names.len();
    let mut widths: Vec<usize> = names.iter().map(|name| width(name)).collect();
    let cells: (Vec<Vec<Line>>, &Cells) = (cells.iter().map(lines).collect(), cells);
    let (texts, cells) = cells;
    for row in texts.chunks_exact(columns.max(1)) {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    if part.first && !table.tuples_only {
        write_names(&names, &widths, out);
        write_rule(&widths, out);
    }
    for row in texts.chunks_exact(columns.max(1)) {
        write_row(row, &widths, &table.right, out);
    }
    if part.last {
        if !table.tuples_only {
            out.extend_from_slice(table.footer(cells).as_bytes());
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}

fn width(lines: &[Line]) -> usize {
    lines.iter().map(|line| line.width).max().unwrap_or_default()
}

/// The names, centred.
fn write_names(names: &[Vec<Line>], widths: &[usize], out: &mut Vec<u8>) {
    let height = names.iter().map(Vec::len).max().unwrap_or_default();
    for number in 0..height {
        for (at, (name, &width)) in names.iter().zip(widths).enumerate() {
            if at > 0 {
                out.push(b'|');
            }
            out.push(b' ');
            match name.get(number) {
                Some(line) => {
                    let blanks = width - line.width;
                    fill(b' ', blanks / 2, out);
                    out.extend_from_slice(&line.bytes);
                    fill(b' ', blanks.div_ceil(2), out);
                }
                None => fill(b' ', width, out),
            }
            out.push(if number + 1 < name.len() { b'+' } else { b' ' });
        }
        out.push(b'\n');
    }
}

fn write_rule(widths: &[usize], out: &mut Vec<u8>) {
    out.push(b'-');
    for (at, &width) in widths.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b"-+-");
        }
        fill(b'-', width, out);
    }
    out.extend_from_slice(b"-\n");
}

fn write_row(row: &[Vec<Line>], widths: &[usize], right: &[bool], out: &mut Vec<u8>) {
    let height = row.iter().map(Vec::len).max().unwrap_or_default();
    let last = row.len().saturating_sub(1);
    for number in 0..height {
        for (at, (cell, &width)) in row.iter().zip(widths).enumerate() {
            if at > 0 {
                out.push(b'|');
            }
            out.push(b' ');
            let continues = number + 1 < cell.len();
            let is_padded = at < last || continues;
            match cell.get(number) {
                Some(line) if right.get(at) == Some(&true) => {
                    fill(b' ', width - line.width, out);
                    out.extend_from_slice(&line.bytes);
                }
                Some(line) => {
                    out.extend_from_slice(&line.bytes);
                    if is_padded {
                        fill(b' ', width - line.width, out);
                    }
                }
                None if is_padded => fill(b' ', width, out),
                None => {}
            }
            if continues {
                out.push(b'+');
            } else if at < last {
                out.push(b' ');
            }
        }
        out.push(b'\n');
    }
}
