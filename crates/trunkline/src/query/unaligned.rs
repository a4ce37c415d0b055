//! Rows as `psql -A` prints them: values between bars, without any padding.

use super::cells::{Cells, Part, Table};

/// Appends a block: one line for each row.
pub(super) fn write(table: &Table, cells: &Cells, part: Part, out: &mut Vec<u8>) {
    if part.first && !table.tuples_only {
        out.extend_from_slice(&table.names.join(&b'|'));
        out.push(b'\n');
    }
    let columns = table.names.len();
    for (at, cell) in cells.iter().enumerate() {
        out.extend_from_slice(cell);
        out.push(if (at + 1) % columns == 0 { b'\n' } else { b'|' });
    }
    if part.last && !table.tuples_only {
        out.extend_from_slice(table.footer(cells).as_bytes());
        out.push(b'\n');
    }
}

/// Appends a block: one line for each column, and an empty line between rows.
pub(super) fn write_expanded(table: &Table, cells: &Cells, part: Part, out: &mut Vec<u8>) {
    let columns = table.names.len();
    for (at, cell) in cells.iter().enumerate() {
        let name = table.names.get(at % columns).map_or(&b""[..], |name| name);
        if at % columns == 0 && (at > 0 || !part.first) {
            out.push(b'\n');
        }
        out.extend_from_slice(name);
        out.push(b'|');
        out.extend_from_slice(cell);
        out.push(b'\n');
    }
}
