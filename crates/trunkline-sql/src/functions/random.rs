//! Functions whose results differ each time: `random()`, `gen_random_uuid()`, `clock_timestamp()`.
//!
//! Each batch of rows has its own generator, which the operating system seeds. There is no `setseed()`.

use trunkline_aio::clock;
use trunkline_aio::facade::random::{Rng, seed};

use super::call::{Call, Kernel};
use super::rows::{Reader, each_row};
use crate::error::{SqlError, SqlState};

/// The kernels of this module.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("drandom", |call| {
        let mut numbers = Rng::new(seed());
        each_row(call.rows, |_| Ok(Some(fraction(&mut numbers))))
    }),
    ("int4random", |call| {
        between(call, |low: i32, high: i32, numbers| {
            i64::from(low) + below(numbers, (i64::from(high) - i64::from(low)) as u64) as i64
        })
    }),
    ("int8random", |call| {
        between(call, |low: i64, high: i64, numbers| {
            low.wrapping_add(below(numbers, high.wrapping_sub(low) as u64) as i64)
        })
    }),
    ("gen_random_uuid", |call| {
        let mut numbers = Rng::new(seed());
        each_row(call.rows, |_| {
            let mut uuid = (u128::from(numbers.next_u64()) << 64 | u128::from(numbers.next_u64()))
                .to_be_bytes();
            // Version 4, and the variant of RFC 9562.
            uuid[6] = uuid[6] & 0x0F | 0x40;
            uuid[8] = uuid[8] & 0x3F | 0x80;
            Ok(Some(uuid))
        })
    }),
    ("clock_timestamp", |call| {
        each_row(call.rows, |_| Ok(Some(clock::unix_micros().saturating_sub(EPOCH_US))))
    }),
    ("dpi", |call| each_row(call.rows, |_| Ok(Some(std::f64::consts::PI)))),
];

/// The start of 2000 in microseconds since 1970.
const EPOCH_US: i64 = 946_684_800_000_000;

/// A number from 0 up to, but not including, 1.
fn fraction(numbers: &mut Rng) -> f64 {
    // As many bits as a float has.
    (numbers.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number from 0 to `last`, each with the same probability.
fn below(numbers: &mut Rng, last: u64) -> u64 {
    let Some(count) = last.checked_add(1) else { return numbers.next_u64() };
    // Numbers of the incomplete interval at the end would make some results more frequent.
    let limit = u64::MAX - u64::MAX % count;
    loop {
        let number = numbers.next_u64();
        if number < limit {
            return number % count;
        }
    }
}

/// A random number between two numbers of the same type, both included.
fn between<'a, T>(
    call: &'a Call<'_>,
    compute: impl Fn(T, T, &mut Rng) -> i64,
) -> Result<arrow_array::ArrayRef, SqlError>
where
    T: super::rows::Input<'a> + super::rows::Output + PartialOrd + Copy + TryFrom<i64>,
{
    let (lows, highs) = (Reader::<T>::new(call, 0)?, Reader::<T>::new(call, 1)?);
    let mut numbers = Rng::new(seed());
    each_row(call.rows, |row| {
        let (Some(low), Some(high)) = (lows.get(row), highs.get(row)) else { return Ok(None) };
        if low > high {
            let message = "lower bound must be less than or equal to upper bound";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        // The number is between two of the type.
        Ok(T::try_from(compute(low, high, &mut numbers)).ok())
    })
}
