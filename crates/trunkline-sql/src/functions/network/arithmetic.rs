//! Addresses as numbers: `+`, `-`, `~`, `&`, `|`.
//!
//! For example, `'10.0.0.255' + 1` is `10.0.1.0`. The mask of the result is that of the operand, or the
//! longer one of two.

use arrow_array::ArrayRef;

use super::address::Address;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{binary, unary};

/// The kernels of this module.
pub(in crate::functions) const ARITHMETIC: &[(&str, Kernel)] = &[
    ("inetnot", |call| {
        unary(call, |value: &[u8]| Ok(Address::parse(value)?.masked(|byte, _| !byte).store()))
    }),
    ("inetand", |call| merged(call, "AND", |a, b| a & b)),
    ("inetor", |call| merged(call, "OR", |a, b| a | b)),
    ("inetpl", |call| binary(call, |value: &[u8], by: i64| moved(value, i128::from(by)))),
    ("inetmi_int8", |call| {
        // As in the server, the least number is its own negative.
        binary(call, |value: &[u8], by: i64| moved(value, i128::from(by.wrapping_neg())))
    }),
    ("inetmi", |call| {
        binary(call, |left: &[u8], right: &[u8]| {
            let (left, right) = (Address::parse(left)?, Address::parse(right)?);
            if left.family() != right.family() {
                return Err(different("subtract"));
            }
            let (left, right) = (number(&left), number(&right));
            let distance = i64::try_from(left.abs_diff(right)).ok();
            let distance = match left >= right {
                true => distance,
                false if left.abs_diff(right) == 1 << 63 => Some(i64::MIN),
                false => distance.map(|distance| -distance),
            };
            distance.ok_or_else(out_of_range)
        })
    }),
];

fn different(what: &str) -> SqlError {
    let message = format!("cannot {what} inet values of different sizes");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

fn number(address: &Address) -> u128 {
    address.bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

fn moved(value: &[u8], by: i128) -> Result<Vec<u8>, SqlError> {
    let address = Address::parse(value)?;
    let size = address.bytes.len();
    let sum = number(&address).checked_add_signed(by).ok_or_else(out_of_range)?;
    let (high, low) = {
        let bytes = sum.to_be_bytes();
        let split = bytes.len() - size;
        (bytes.get(..split).unwrap_or_default().to_vec(), bytes.get(split..).map(<[u8]>::to_vec))
    };
    if high.iter().any(|&byte| byte != 0) {
        return Err(out_of_range());
    }
    Ok(Address { bytes: low.unwrap_or_default(), ..address }.store())
}

fn merged(call: &Call<'_>, name: &str, merge: fn(u8, u8) -> u8) -> Result<ArrayRef, SqlError> {
    binary(call, |left: &[u8], right: &[u8]| {
        let (left, right) = (Address::parse(left)?, Address::parse(right)?);
        if left.family() != right.family() {
            return Err(different(name));
        }
        let pairs = left.bytes.iter().zip(&right.bytes);
        let bytes = pairs.map(|(&one, &other)| merge(one, other)).collect();
        Ok(Address { bytes, bits: left.bits.max(right.bits), ..left }.store())
    })
}
