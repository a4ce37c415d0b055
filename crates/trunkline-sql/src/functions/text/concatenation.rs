//! Concatenation: `||`, `concat`, `concat_ws`.
//!
//! `||` of a null is null, but `concat` skips nulls: `concat('a', null, 'b')` is `ab`.

use arrow_array::ArrayRef;

use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::{Printer, into_text};
use crate::functions::rows::{Reader, binary, each_row};

/// The kernels of this module.
pub(in crate::functions) const CONCATENATION: &[(&str, Kernel)] = &[
    ("textcat", |call| binary(call, |a: &str, b: &str| Ok([a, b].concat()))),
    ("byteacat", |call| binary(call, |a: &[u8], b: &[u8]| Ok([a, b].concat()))),
    ("text_concat", concat),
    ("text_concat_ws", concat_with_separator),
];

fn printers<'a>(call: &'a Call<'_>, first: usize) -> Result<Vec<Printer<'a>>, SqlError> {
    (first..call.arguments.len()).map(|number| Printer::new(call, number)).collect()
}

fn concat(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let mut printers = printers(call, 0)?;
    each_row(call.rows, |row| {
        let mut out = Vec::new();
        for printer in &mut printers {
            printer.append(row, &mut out)?;
        }
        into_text(out).map(Some)
    })
}

fn concat_with_separator(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let separator = Reader::<&str>::new(call, 0)?;
    let mut printers = printers(call, 1)?;
    each_row(call.rows, |row| {
        let Some(separator) = separator.get(row) else { return Ok(None) };
        let (mut out, mut is_first) = (Vec::new(), true);
        for printer in &mut printers {
            let start = out.len();
            if !is_first {
                out.extend_from_slice(separator.as_bytes());
            }
            if printer.append(row, &mut out)? {
                is_first = false;
            } else {
                out.truncate(start);
            }
        }
        into_text(out).map(Some)
    })
}
