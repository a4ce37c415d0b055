//! Floating-point numbers: arithmetic and casts.
//!
//! PostgreSQL doesn't turn numbers into infinity or 0 silently: `float8mul(1e200, 1e200)` is an error,
//! 22003. Infinite operands are allowed.

use arrow_array::ArrayRef;

use super::call::{Call, Kernel};
use super::integers::out_of_range;
use super::rows::{Input, Output, binary, unary};
use crate::error::{SqlError, SqlState};
use crate::numeric::division_by_zero;

/// 22003: the result is infinite although the arguments are not.
pub(super) fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// 22003: the result is 0 although it should not be.
pub(super) fn underflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// A floating-point type. Results are computed in its own precision.
pub(super) trait Float: for<'a> Input<'a> + Output + Copy + Into<f64> {
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    fn negate(self) -> Self;
    fn absolute(self) -> Self;
}

macro_rules! float {
    ($type:ty) => {
        impl Float for $type {
            fn add(self, other: Self) -> Self {
                self + other
            }

            fn subtract(self, other: Self) -> Self {
                self - other
            }

            fn multiply(self, other: Self) -> Self {
                self * other
            }

            fn divide(self, other: Self) -> Self {
                self / other
            }

            fn negate(self) -> Self {
                -self
            }

            fn absolute(self) -> Self {
                self.abs()
            }
        }
    };
}

float!(f32);
float!(f64);

fn is_infinite(value: impl Into<f64>) -> bool {
    value.into().is_infinite()
}

fn is_zero(value: impl Into<f64>) -> bool {
    value.into() == 0.0
}

/// `float8_pl`.
///
/// # Errors
/// The sum is too large.
pub(super) fn add<T: Float>(a: T, b: T) -> Result<T, SqlError> {
    let sum = a.add(b);
    let overflows = is_infinite(sum) && !is_infinite(a) && !is_infinite(b);
    if overflows { Err(overflow()) } else { Ok(sum) }
}

/// `float8_mi`.
///
/// # Errors
/// The difference is too large.
pub(super) fn subtract<T: Float>(a: T, b: T) -> Result<T, SqlError> {
    let difference = a.subtract(b);
    let overflows = is_infinite(difference) && !is_infinite(a) && !is_infinite(b);
    if overflows { Err(overflow()) } else { Ok(difference) }
}

/// `float8_mul`.
///
/// # Errors
/// The product is too large, or too small.
pub(super) fn multiply<T: Float>(a: T, b: T) -> Result<T, SqlError> {
    let product = a.multiply(b);
    if is_infinite(product) && !is_infinite(a) && !is_infinite(b) {
        return Err(overflow());
    }
    if is_zero(product) && !is_zero(a) && !is_zero(b) {
        return Err(underflow());
    }
    Ok(product)
}

/// `float8_div`.
///
/// # Errors
/// The divisor is 0, or the quotient is too large or too small.
pub(super) fn divide<T: Float>(a: T, b: T) -> Result<T, SqlError> {
    if is_zero(b) && !a.into().is_nan() {
        return Err(division_by_zero());
    }
    let quotient = a.divide(b);
    if is_infinite(quotient) && !is_infinite(a) {
        return Err(overflow());
    }
    if is_zero(quotient) && !is_zero(a) && !is_infinite(b) {
        return Err(underflow());
    }
    Ok(quotient)
}

/// Computes with two numbers of type A and B, both converted to R.
fn both<A: Float + Into<R>, B: Float + Into<R>, R: Float>(
    call: &Call<'_>,
    compute: fn(R, R) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |a: A, b: B| compute(a.into(), b.into()))
}

macro_rules! arithmetic {
    ($($left:ty, $right:ty, $result:ty =>
        $plus:literal $minus:literal $times:literal $divide:literal;)*
     ; $($type:ty => $negate:literal $plus_sign:literal $abs:literal;)*) => {
        &[
            $(
                ($plus, |call| both::<$left, $right, $result>(call, add)),
                ($minus, |call| both::<$left, $right, $result>(call, subtract)),
                ($times, |call| both::<$left, $right, $result>(call, multiply)),
                ($divide, |call| both::<$left, $right, $result>(call, divide)),
            )*
            $(
                ($negate, |call| unary(call, |a: $type| Ok(a.negate()))),
                ($plus_sign, |call| unary(call, |a: $type| Ok(a))),
                ($abs, |call| unary(call, |a: $type| Ok(a.absolute()))),
            )*
        ]
    };
}

pub(super) const ARITHMETIC: &[(&str, Kernel)] = arithmetic! {
    f32, f32, f32 => "float4pl" "float4mi" "float4mul" "float4div";
    f64, f64, f64 => "float8pl" "float8mi" "float8mul" "float8div";
    f32, f64, f64 => "float48pl" "float48mi" "float48mul" "float48div";
    f64, f32, f64 => "float84pl" "float84mi" "float84mul" "float84div";
    ;
    f32 => "float4um" "float4up" "float4abs";
    f64 => "float8um" "float8up" "float8abs";
};

/// The nearest integer, half to even, if it is in `-limit..limit`. A limit is a power of 2, so it is
/// exact.
fn nearest(value: f64, limit: f64, name: &str) -> Result<i64, SqlError> {
    let rounded = value.round_ties_even();
    let fits = rounded >= -limit && rounded < limit;
    if fits { Ok(rounded as i64) } else { Err(out_of_range(name)) }
}

/// `dtoi2`.
fn to_i16<T: Into<f64>>(value: T) -> Result<i16, SqlError> {
    nearest(value.into(), 32_768.0, "smallint").map(|value| value as i16)
}

/// `dtoi4`.
fn to_i32<T: Into<f64>>(value: T) -> Result<i32, SqlError> {
    nearest(value.into(), 2_147_483_648.0, "integer").map(|value| value as i32)
}

/// `dtoi8`.
///
/// # Errors
/// The number is too large.
pub(super) fn to_i64<T: Into<f64>>(value: T) -> Result<i64, SqlError> {
    nearest(value.into(), 9_223_372_036_854_775_808.0, "bigint")
}

/// `dtof`.
fn to_f32(value: f64) -> Result<f32, SqlError> {
    let result = value as f32;
    if result.is_infinite() && !value.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 && value != 0.0 {
        return Err(underflow());
    }
    Ok(result)
}

pub(super) const CASTS: &[(&str, Kernel)] = &[
    ("ftod", |call| unary(call, |a: f32| Ok(f64::from(a)))),
    ("dtof", |call| unary(call, to_f32)),
    ("ftoi2", |call| unary(call, to_i16::<f32>)),
    ("ftoi4", |call| unary(call, to_i32::<f32>)),
    ("ftoi8", |call| unary(call, to_i64::<f32>)),
    ("dtoi2", |call| unary(call, to_i16::<f64>)),
    ("dtoi4", |call| unary(call, to_i32::<f64>)),
    ("dtoi8", |call| unary(call, to_i64::<f64>)),
    ("i2tof", |call| unary(call, |a: i16| Ok(f32::from(a)))),
    ("i2tod", |call| unary(call, |a: i16| Ok(f64::from(a)))),
    ("i4tof", |call| unary(call, |a: i32| Ok(a as f32))),
    ("i4tod", |call| unary(call, |a: i32| Ok(f64::from(a)))),
    ("i8tof", |call| unary(call, |a: i64| Ok(a as f32))),
    ("i8tod", |call| unary(call, |a: i64| Ok(a as f64))),
];
