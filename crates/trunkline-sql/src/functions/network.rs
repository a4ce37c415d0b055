//! Parts of network addresses: `host`, `family`, `masklen`.
//!
//! For example, `host('10.1.2.3/8')` is `10.1.2.3`. How addresses compare is in the keys of
//! [`crate::values`].

use super::call::Kernel;
use super::printing::Printer;
use super::rows::{each_row, unary};
use crate::error::{SqlError, SqlState};

/// The kernels of this module.
pub(super) const PARTS: &[(&str, Kernel)] = &[
    ("network_host", |call| {
        let mut texts = Printer::new(call, 0)?;
        each_row(call.rows, |row| Ok(texts.text(row)?.map(without_mask)))
    }),
    // Unlike the output, with a mask of all bits.
    ("network_show", |call| {
        let mut texts = Printer::new(call, 0)?;
        let lengths = super::rows::Reader::<&[u8]>::new(call, 0)?;
        each_row(call.rows, |row| {
            let (Some(text), Some(value)) = (texts.text(row)?, lengths.get(row)) else {
                return Ok(None);
            };
            Ok(Some(format!("{}/{}", without_mask(text), parts(value)?.1)))
        })
    }),
    ("network_family", |call| unary(call, |value: &[u8]| Ok(parts(value)?.0))),
    ("network_masklen", |call| unary(call, |value: &[u8]| Ok(i32::from(parts(value)?.1)))),
];

fn without_mask(mut text: String) -> String {
    text.truncate(text.find('/').unwrap_or(text.len()));
    text
}

/// The family, 4 or 6, and the bits of the mask.
fn parts(value: &[u8]) -> Result<(i32, u8), SqlError> {
    match value {
        [2, bits, ..] => Ok((4, *bits)),
        [3, bits, ..] => Ok((6, *bits)),
        _ => Err(SqlError::new(SqlState::DATA_CORRUPTED, "inet: neither IPv4 nor IPv6")),
    }
}
