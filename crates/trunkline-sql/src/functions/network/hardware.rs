//! `macaddr` and `macaddr8`: bits, `trunc`, and casts between them.
//!
//! For example, `trunc('08:00:2b:01:02:03')` keeps the manufacturer: `08:00:2b:00:00:00`.

use arrow_array::ArrayRef;

use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{binary, unary};

/// The kernels of this module.
pub(in crate::functions) const HARDWARE: &[(&str, Kernel)] = &[
    ("macaddr_not", |call| each::<6>(call, |_, byte| !byte)),
    ("macaddr_and", |call| pairs::<6>(call, |a, b| a & b)),
    ("macaddr_or", |call| pairs::<6>(call, |a, b| a | b)),
    ("macaddr_trunc", |call| each::<6>(call, |place, byte| if place < 3 { byte } else { 0 })),
    ("macaddr8_not", |call| each::<8>(call, |_, byte| !byte)),
    ("macaddr8_and", |call| pairs::<8>(call, |a, b| a & b)),
    ("macaddr8_or", |call| pairs::<8>(call, |a, b| a | b)),
    ("macaddr8_trunc", |call| each::<8>(call, |place, byte| if place < 3 { byte } else { 0 })),
    ("macaddr8_set7bit", |call| {
        each::<8>(call, |place, byte| if place == 0 { byte | 2 } else { byte })
    }),
    ("macaddrtomacaddr8", |call| {
        unary(call, |[a, b, c, d, e, f]: [u8; 6]| Ok([a, b, c, 0xFF, 0xFE, d, e, f]))
    }),
    ("macaddr8tomacaddr", |call| {
        unary(call, |address: [u8; 8]| match address {
            [a, b, c, 0xFF, 0xFE, d, e, f] => Ok([a, b, c, d, e, f]),
            _ => {
                let message = "macaddr8 data out of range to convert to macaddr";
                let hint = "Only addresses that have FF and FE as values in the 4th and 5th bytes \
                            from the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be \
                            converted from macaddr8 to macaddr.";
                let error = SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message);
                Err(error.with_hint(hint))
            }
        })
    }),
];

fn each<const N: usize>(
    call: &Call<'_>,
    change: fn(usize, u8) -> u8,
) -> Result<ArrayRef, SqlError> {
    unary(call, |mut address: [u8; N]| {
        address.iter_mut().enumerate().for_each(|(place, byte)| *byte = change(place, *byte));
        Ok(address)
    })
}

fn pairs<const N: usize>(call: &Call<'_>, merge: fn(u8, u8) -> u8) -> Result<ArrayRef, SqlError> {
    binary(call, |mut address: [u8; N], other: [u8; N]| {
        address.iter_mut().zip(other).for_each(|(byte, other)| *byte = merge(*byte, other));
        Ok(address)
    })
}
