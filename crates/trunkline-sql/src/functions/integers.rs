//! Integers: arithmetic, bits and casts.
//!
//! Arithmetic is checked: `int4pl(2147483647, 1)` is an error, 22003. If the operands have different
//! sizes, as for `int24pl`, the result has the larger one.

use arrow_array::ArrayRef;

use super::call::{Call, Kernel};
use super::rows::{Input, Output, Reader, binary, each_row, unary};
use crate::error::{SqlError, SqlState};
use crate::numeric::division_by_zero;

/// 22003, with PostgreSQL's name of the type.
pub(super) fn out_of_range(name: &str) -> SqlError {
    let message = format!("{name} out of range");
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// An integer type.
pub(super) trait Integer:
    for<'a> Input<'a> + Output + Copy + Into<i64> + TryFrom<i128> + PartialEq
{
    /// PostgreSQL's name of the type.
    const NAME: &'static str;

    /// The value, if the type can hold it.
    ///
    /// # Errors
    /// 22003.
    fn checked(value: i128) -> Result<Self, SqlError> {
        Self::try_from(value).map_err(|_| out_of_range(Self::NAME))
    }
}

impl Integer for i16 {
    const NAME: &'static str = "smallint";
}

impl Integer for i32 {
    const NAME: &'static str = "integer";
}

impl Integer for i64 {
    const NAME: &'static str = "bigint";
}

/// Computes a result exactly, and checks that it fits.
fn exact<A: Integer, B: Integer, R: Integer>(
    call: &Call<'_>,
    compute: impl Fn(i128, i128) -> i128,
) -> Result<ArrayRef, SqlError> {
    binary(call, |a: A, b: B| R::checked(compute(a.into().into(), b.into().into())))
}

/// `in_range(value, current, offset, subtract, less)`: for window frames, whether a value is at most,
/// or at least, the current one plus or minus the offset.
fn within<T: Integer>(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let (value, current) = (Reader::<T>::new(call, 0)?, Reader::<T>::new(call, 1)?);
    let offset = Reader::<i64>::new(call, 2)?;
    let (subtract, less) = (Reader::<bool>::new(call, 3)?, Reader::<bool>::new(call, 4)?);
    each_row(call.rows, |row| {
        let numbers = || Some((value.get(row)?, current.get(row)?, offset.get(row)?));
        let (Some((value, current, offset)), Some(subtract), Some(less)) =
            (numbers(), subtract.get(row), less.get(row))
        else {
            return Ok(None);
        };
        if offset < 0 {
            let message = "invalid preceding or following size in window function";
            let code = SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE;
            return Err(SqlError::new(code, message));
        }
        let (value, current): (i64, i64) = (value.into(), current.into());
        let offset = if subtract { -i128::from(offset) } else { offset.into() };
        let bound = i128::from(current) + offset;
        Ok(Some(if less { i128::from(value) <= bound } else { i128::from(value) >= bound }))
    })
}

/// `in_range` of all types, with offsets of type int8.
pub(super) const WINDOW: &[(&str, Kernel)] = &[
    ("in_range_int2_int8", within::<i16>),
    ("in_range_int4_int8", within::<i32>),
    ("in_range_int8_int8", within::<i64>),
];

fn divide<A: Integer, B: Integer, R: Integer>(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    binary(call, |a: A, b: B| {
        let (dividend, divisor): (i64, i64) = (a.into(), b.into());
        let quotient = i128::from(dividend).checked_div(divisor.into());
        R::checked(quotient.ok_or_else(division_by_zero)?)
    })
}

/// The remainder has the dividend's sign. Unlike the quotient, that of the least value and -1 fits.
fn remainder<T: Integer>(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    binary(call, |a: T, b: T| {
        let (dividend, divisor): (i64, i64) = (a.into(), b.into());
        let rest = i128::from(dividend).checked_rem(divisor.into());
        T::checked(rest.ok_or_else(division_by_zero)?)
    })
}

fn change<T: Integer>(
    call: &Call<'_>,
    compute: impl Fn(i128) -> i128,
) -> Result<ArrayRef, SqlError> {
    unary(call, |a: T| T::checked(compute(a.into().into())))
}

/// Arithmetic on operands of types A and B with a result of type R.
macro_rules! arithmetic {
    ($($left:ty, $right:ty, $result:ty =>
        $plus:literal $minus:literal $times:literal $divide:literal;)*
     ; $($type:ty =>
        $modulo:literal $negate:literal $plus_sign:literal $abs:literal;)*) => {
        &[
            $(
                ($plus, |call| exact::<$left, $right, $result>(call, |a, b| a + b)),
                ($minus, |call| exact::<$left, $right, $result>(call, |a, b| a - b)),
                ($times, |call| exact::<$left, $right, $result>(call, |a, b| a * b)),
                ($divide, |call| divide::<$left, $right, $result>(call)),
            )*
            $(
                ($modulo, |call| remainder::<$type>(call)),
                ($negate, |call| change::<$type>(call, |a| -a)),
                ($plus_sign, |call| change::<$type>(call, |a| a)),
                ($abs, |call| change::<$type>(call, i128::abs)),
            )*
            ("int4inc", |call| change::<i32>(call, |a| a + 1)),
            ("int8inc", |call| change::<i64>(call, |a| a + 1)),
            ("int8dec", |call| change::<i64>(call, |a| a - 1)),
        ]
    };
}

pub(super) const ARITHMETIC: &[(&str, Kernel)] = arithmetic! {
    i16, i16, i16 => "int2pl" "int2mi" "int2mul" "int2div";
    i32, i32, i32 => "int4pl" "int4mi" "int4mul" "int4div";
    i64, i64, i64 => "int8pl" "int8mi" "int8mul" "int8div";
    i16, i32, i32 => "int24pl" "int24mi" "int24mul" "int24div";
    i32, i16, i32 => "int42pl" "int42mi" "int42mul" "int42div";
    i16, i64, i64 => "int28pl" "int28mi" "int28mul" "int28div";
    i64, i16, i64 => "int82pl" "int82mi" "int82mul" "int82div";
    i32, i64, i64 => "int48pl" "int48mi" "int48mul" "int48div";
    i64, i32, i64 => "int84pl" "int84mi" "int84mul" "int84div";
    ;
    i16 => "int2mod" "int2um" "int2up" "int2abs";
    i32 => "int4mod" "int4um" "int4up" "int4abs";
    i64 => "int8mod" "int8um" "int8up" "int8abs";
};

// Shifts use only the lower bits of the distance, as the processors do that PostgreSQL runs on.
macro_rules! bits {
    ($($type:ty, $wide:ty => $and:literal $or:literal $xor:literal $not:literal
        $left:literal $right:literal;)*) => {
        &[$(
            ($and, |call| binary(call, |a: $type, b: $type| Ok(a & b))),
            ($or, |call| binary(call, |a: $type, b: $type| Ok(a | b))),
            ($xor, |call| binary(call, |a: $type, b: $type| Ok(a ^ b))),
            ($not, |call| unary(call, |a: $type| Ok(!a))),
            ($left, |call| binary(call, |a: $type, distance: i32| {
                Ok(<$wide>::from(a).wrapping_shl(distance as u32) as $type)
            })),
            ($right, |call| binary(call, |a: $type, distance: i32| {
                Ok(<$wide>::from(a).wrapping_shr(distance as u32) as $type)
            })),
        )*]
    };
}

pub(super) const BITS: &[(&str, Kernel)] = bits! {
    i16, i32 => "int2and" "int2or" "int2xor" "int2not" "int2shl" "int2shr";
    i32, i32 => "int4and" "int4or" "int4xor" "int4not" "int4shl" "int4shr";
    i64, i64 => "int8and" "int8or" "int8xor" "int8not" "int8shl" "int8shr";
};

pub(super) const DIVISORS: &[(&str, Kernel)] = &[
    ("int4gcd", |call| exact::<i32, i32, i32>(call, gcd)),
    ("int8gcd", |call| exact::<i64, i64, i64>(call, gcd)),
    ("int4lcm", |call| exact::<i32, i32, i32>(call, lcm)),
    ("int8lcm", |call| exact::<i64, i64, i64>(call, lcm)),
];

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(a: i128, b: i128) -> i128 {
    if a == 0 || b == 0 { 0 } else { (a / gcd(a, b) * b).abs() }
}

fn cast<A: Integer, R: Integer>(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    unary(call, |a: A| R::checked(a.into().into()))
}

pub(super) const CASTS: &[(&str, Kernel)] = &[
    ("i2toi4", |call| cast::<i16, i32>(call)),
    ("int28", |call| cast::<i16, i64>(call)),
    ("i4toi2", |call| cast::<i32, i16>(call)),
    ("int48", |call| cast::<i32, i64>(call)),
    ("int82", |call| cast::<i64, i16>(call)),
    ("int84", |call| cast::<i64, i32>(call)),
    ("i8tooid", |call| unary(call, |a: i64| u32::try_from(a).map_err(|_| out_of_range("OID")))),
    ("oidtoi8", |call| unary(call, |a: u32| Ok(i64::from(a)))),
    ("xid8toxid", |call| unary(call, |a: u64| Ok(a as u32))),
    ("bool_int4", |call| unary(call, |a: bool| Ok(i32::from(a)))),
    ("int4_bool", |call| unary(call, |a: i32| Ok(a != 0))),
];
