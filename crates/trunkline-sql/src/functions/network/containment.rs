//! Networks within networks: `<<`, `<<=`, `>>`, `>>=`, `&&`.
//!
//! For example, `'10.1.0.0/16' << '10.0.0.0/8'` is true. Addresses of different families contain
//! nothing of each other.

use arrow_array::ArrayRef;

use super::address::Address;
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::binary;

/// The kernels of this module.
pub(in crate::functions) const CONTAINMENT: &[(&str, Kernel)] = &[
    ("network_sub", |call| related(call, |a, b| a.bits > b.bits && a.agrees(b, b.bits))),
    ("network_subeq", |call| related(call, |a, b| a.bits >= b.bits && a.agrees(b, b.bits))),
    ("network_sup", |call| related(call, |a, b| a.bits < b.bits && a.agrees(b, a.bits))),
    ("network_supeq", |call| related(call, |a, b| a.bits <= b.bits && a.agrees(b, a.bits))),
    ("network_overlap", |call| related(call, |a, b| a.agrees(b, a.bits.min(b.bits)))),
];

fn related(call: &Call<'_>, test: fn(&Address, &Address) -> bool) -> Result<ArrayRef, SqlError> {
    binary(call, |left: &[u8], right: &[u8]| {
        let (left, right) = (Address::parse(left)?, Address::parse(right)?);
        Ok(left.family() == right.family() && test(&left, &right))
    })
}
