//! Small functions that the views of the information schema need.

use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// The longest name in bytes: `NAMEDATALEN` without the zero at the end.
const NAME_MAX: usize = 63;

/// The kernels of this module.
pub(in crate::functions) const INFORMATION: &[(&str, Kernel)] = &[
    ("pg_encoding_max_length_sql", |call| {
        let encodings = Reader::<i32>::new(call, 0)?;
        each_row(call.rows, |row| Ok(encodings.get(row).and_then(character_max)))
    }),
    ("nameconcatoid", name_and_oid),
];

/// The most bytes that a character of an encoding has, by the encoding's number.
fn character_max(encoding: i32) -> Option<i32> {
    match encoding {
        // SQL_ASCII, and those of ISO 8859, Windows and KOI8.
        0 | 8..=34 => Some(1),
        // SJIS, BIG5, GBK, UHC, SHIFT_JIS_2004.
        35..=38 | 41 => Some(2),
        // EUC_JP, EUC_CN, EUC_KR, EUC_JIS_2004, JOHAB.
        1..=3 | 5 | 40 => Some(3),
        // EUC_TW, UTF8, MULE_INTERNAL, GB18030.
        4 | 6 | 7 | 39 => Some(4),
        _ => None,
    }
}

/// A name with a number, cut off so that the number fits.
fn name_and_oid(call: &Call<'_>) -> Result<arrow_array::ArrayRef, SqlError> {
    let names = Reader::<&str>::new(call, 0)?;
    let oids = Reader::<u32>::new(call, 1)?;
    each_row(call.rows, |row| {
        let (Some(name), Some(oid)) = (names.get(row), oids.get(row)) else { return Ok(None) };
        let suffix = format!("_{oid}");
        let length = name.floor_char_boundary(NAME_MAX - suffix.len());
        Ok(Some(format!("{}{suffix}", name.get(..length).unwrap_or_default())))
    })
}
