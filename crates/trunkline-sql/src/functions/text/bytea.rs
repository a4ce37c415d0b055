//! Bits and bytes of a `bytea`.
//!
//! Bits are numbered from the lowest bit of the first byte: `get_bit('\x0102', 8)` is 0 and
//! `get_bit('\x0102', 9)` is 1.

use arrow_array::ArrayRef;

use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Input, binary, ternary, unary};

/// The kernels of this module.
pub(in crate::functions) const BYTEA: &[(&str, Kernel)] = &[
    ("bytea_bit_count", |call| {
        unary(call, |value: &[u8]| {
            Ok(value.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>())
        })
    }),
    ("byteaGetByte", |call| {
        binary(call, |value: &[u8], number: i32| {
            let at = index(i64::from(number), value.len() as i64)?;
            Ok(value.get(at).map_or(0, |&byte| i32::from(byte)))
        })
    }),
    ("byteaGetBit", |call| {
        binary(call, |value: &[u8], number: i64| {
            let at = index(number, value.len() as i64 * 8)?;
            Ok(value.get(at / 8).map_or(0, |byte| i32::from(byte >> (at % 8) & 1)))
        })
    }),
    ("byteaSetByte", |call| {
        changed(call, |value, number: i32, new| {
            let at = index(i64::from(number), value.len() as i64)?;
            // Only the lower eight bits are stored, as in the server.
            let byte = new.to_le_bytes()[0];
            value.get_mut(at).into_iter().for_each(|place| *place = byte);
            Ok(())
        })
    }),
    ("byteaSetBit", |call| {
        changed(call, |value, number: i64, new| {
            let at = index(number, value.len() as i64 * 8)?;
            if !matches!(new, 0 | 1) {
                let message = "new bit must be 0 or 1";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            let bit = 1 << (at % 8);
            value.get_mut(at / 8).into_iter().for_each(|byte| *byte &= !bit);
            let bit = if new == 1 { bit } else { 0 };
            value.get_mut(at / 8).into_iter().for_each(|byte| *byte |= bit);
            Ok(())
        })
    }),
];

/// Checks that `number` is below `count`.
fn index(number: i64, count: i64) -> Result<usize, SqlError> {
    match usize::try_from(number) {
        Ok(at) if number < count => Ok(at),
        _ => {
            let message = format!("index {number} out of valid range, 0..{}", count - 1);
            Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message))
        }
    }
}

/// Changes a copy of the value.
fn changed<'a, T: Input<'a>>(
    call: &'a Call<'_>,
    change: impl Fn(&mut [u8], T, i32) -> Result<(), SqlError>,
) -> Result<ArrayRef, SqlError> {
    ternary(call, |value: &[u8], number: T, new: i32| {
        let mut value = value.to_vec();
        change(&mut value, number, new)?;
        Ok(value)
    })
}
