//! Network addresses. Here are their parts: `host`, `family`, `masklen`.
//!
//! For example, `host('10.1.2.3/8')` is `10.1.2.3`. How addresses compare is in the keys of
//! [`crate::values`].

mod address;
mod arithmetic;
mod containment;
mod hardware;
mod masks;

use super::call::Kernel;
use super::printing::Printer;
use super::rows::{each_row, unary};
use address::Address;

pub(super) use arithmetic::ARITHMETIC;
pub(super) use containment::CONTAINMENT;
pub(super) use hardware::HARDWARE;
pub(super) use masks::MASKS;

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
            Ok(Some(format!("{}/{}", without_mask(text), Address::parse(value)?.bits)))
        })
    }),
    ("network_family", |call| unary(call, |value: &[u8]| Ok(Address::parse(value)?.family()))),
    ("network_masklen", |call| {
        unary(call, |value: &[u8]| Ok(i32::from(Address::parse(value)?.bits)))
    }),
];

fn without_mask(mut text: String) -> String {
    text.truncate(text.find('/').unwrap_or(text.len()));
    text
}
