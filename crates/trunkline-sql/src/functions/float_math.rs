//! Mathematical functions of `float8`: roots, powers, logarithms, trigonometry.
//!
//! The values are those of the C library, as PostgreSQL's are. Arguments outside of a function's domain
//! are errors: `dsqrt(-1)` is 2201F.

use arrow_array::ArrayRef;

use super::call::{Call, Kernel};
use super::degrees::{self, RADIANS_PER_DEGREE};
use super::floats::{divide, multiply, overflow, underflow};
use super::integers::out_of_range;
use super::rows::{Reader, binary, each_row, unary};
use crate::error::{SqlError, SqlState};

/// A function without errors.
fn plain(call: &Call<'_>, compute: fn(f64) -> f64) -> Result<ArrayRef, SqlError> {
    unary(call, |a: f64| Ok(compute(a)))
}

pub(super) const MATH: &[(&str, Kernel)] = &[
    ("dround", |call| plain(call, f64::round_ties_even)),
    ("dceil", |call| plain(call, f64::ceil)),
    ("dfloor", |call| plain(call, f64::floor)),
    ("dtrunc", |call| plain(call, f64::trunc)),
    ("dsign", |call| plain(call, sign)),
    ("dcbrt", |call| plain(call, f64::cbrt)),
    ("dsqrt", |call| unary(call, square_root)),
    ("dexp", |call| unary(call, exponential)),
    ("dlog1", |call| unary(call, |a: f64| logarithm(a, f64::ln))),
    ("dlog10", |call| unary(call, |a: f64| logarithm(a, f64::log10))),
    ("dpow", |call| binary(call, power)),
    ("width_bucket_float8", width_bucket),
];

/// `dsign`; of NaN, it is 0.
fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

fn power_error(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message)
}

/// `dsqrt`.
///
/// # Errors
/// The argument is negative.
pub(super) fn square_root(value: f64) -> Result<f64, SqlError> {
    if value < 0.0 {
        return Err(power_error("cannot take square root of a negative number"));
    }
    Ok(value.sqrt())
}

fn exponential(value: f64) -> Result<f64, SqlError> {
    let result = value.exp();
    match value.is_infinite() {
        false if result.is_infinite() => Err(overflow()),
        false if result == 0.0 => Err(underflow()),
        _ => Ok(result),
    }
}

fn logarithm(value: f64, compute: fn(f64) -> f64) -> Result<f64, SqlError> {
    let error = |of: &str| {
        let message = format!("cannot take logarithm of {of}");
        Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOG, message))
    };
    if value == 0.0 {
        return error("zero");
    }
    if value < 0.0 {
        return error("a negative number");
    }
    Ok(compute(value))
}

fn power(base: f64, exponent: f64) -> Result<f64, SqlError> {
    if base == 0.0 && exponent < 0.0 {
        return Err(power_error("zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.floor() != exponent && !exponent.is_nan() {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(power_error(message));
    }
    // For NaN and infinity, the C library follows the same rules as PostgreSQL.
    let result = base.powf(exponent);
    if base.is_finite() && exponent.is_finite() {
        if result.is_infinite() {
            return Err(overflow());
        }
        if result == 0.0 && base != 0.0 {
            return Err(underflow());
        }
    }
    Ok(result)
}

/// 22003: the argument is outside of a function's domain.
fn outside() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// A function of an angle, which must be finite.
fn angle(call: &Call<'_>, compute: fn(f64) -> f64) -> Result<ArrayRef, SqlError> {
    unary(call, |a: f64| if a.is_infinite() { Err(outside()) } else { Ok(compute(a)) })
}

/// A function that is defined from `low` to `high`.
fn within(
    call: &Call<'_>,
    (low, high): (f64, f64),
    compute: fn(f64) -> f64,
) -> Result<ArrayRef, SqlError> {
    unary(call, |a: f64| if a < low || a > high { Err(outside()) } else { Ok(compute(a)) })
}

/// The domain of the inverse sine and its relatives.
const UNIT: (f64, f64) = (-1.0, 1.0);

pub(super) const TRIGONOMETRY: &[(&str, Kernel)] = &[
    ("dsin", |call| angle(call, f64::sin)),
    ("dcos", |call| angle(call, f64::cos)),
    ("dtan", |call| angle(call, f64::tan)),
    ("dcot", |call| angle(call, |a| 1.0 / a.tan())),
    ("dasin", |call| within(call, UNIT, f64::asin)),
    ("dacos", |call| within(call, UNIT, f64::acos)),
    ("datan", |call| plain(call, f64::atan)),
    ("datan2", |call| binary(call, |a: f64, b: f64| Ok(a.atan2(b)))),
    ("dsinh", |call| plain(call, f64::sinh)),
    ("dcosh", |call| plain(call, f64::cosh)),
    ("dtanh", |call| plain(call, f64::tanh)),
    ("dasinh", |call| plain(call, inverse_hyperbolic_sine)),
    ("dacosh", |call| within(call, (1.0, f64::INFINITY), inverse_hyperbolic_cosine)),
    ("datanh", |call| within(call, UNIT, f64::atanh)),
    ("dsind", |call| angle(call, degrees::sine)),
    ("dcosd", |call| angle(call, degrees::cosine)),
    ("dtand", |call| angle(call, degrees::tangent)),
    ("dcotd", |call| angle(call, degrees::cotangent)),
    ("dasind", |call| within(call, UNIT, degrees::inverse_sine)),
    ("dacosd", |call| within(call, UNIT, degrees::inverse_cosine)),
    ("datand", |call| plain(call, |a| degrees::of_angle(a.atan()))),
    ("datan2d", |call| binary(call, |a: f64, b: f64| Ok(degrees::of_angle(a.atan2(b))))),
    ("degrees", |call| unary(call, |a: f64| divide(a, RADIANS_PER_DEGREE))),
    ("radians", |call| unary(call, |a: f64| multiply(a, RADIANS_PER_DEGREE))),
];

/// Above this, the inverse hyperbolic functions are the logarithm of twice their argument, and the
/// formulas of the standard library overflow.
const LARGE: f64 = 1e150;

fn inverse_hyperbolic_sine(x: f64) -> f64 {
    if x.is_finite() && x.abs() > LARGE {
        return (x.abs().ln() + std::f64::consts::LN_2).copysign(x);
    }
    x.asinh()
}

fn inverse_hyperbolic_cosine(x: f64) -> f64 {
    if x > LARGE { x.ln() + std::f64::consts::LN_2 } else { x.acosh() }
}

/// `width_bucket`: the bucket, from 1 to `count`, that a number is in; 0 or `count + 1` beyond them.
fn width_bucket(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let (value, low) = (Reader::<f64>::new(call, 0)?, Reader::<f64>::new(call, 1)?);
    let (high, count) = (Reader::<f64>::new(call, 2)?, Reader::<i32>::new(call, 3)?);
    each_row(call.rows, |row| {
        let bounds = low.get(row).zip(high.get(row));
        let ((Some(value), Some(count)), Some(bounds)) = ((value.get(row), count.get(row)), bounds)
        else {
            return Ok(None);
        };
        bucket(value, bounds, count).map(Some)
    })
}

fn bucket(value: f64, (low, high): (f64, f64), count: i32) -> Result<i32, SqlError> {
    let error = |message: &str| {
        Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, message))
    };
    if count <= 0 {
        return error("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return error("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return error("lower and upper bounds must be finite");
    }
    if low == high {
        return error("lower bound cannot equal upper bound");
    }
    let (before, after) =
        if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    if before {
        return Ok(0);
    }
    if after {
        return count.checked_add(1).ok_or_else(|| out_of_range("integer"));
    }
    // The difference of the bounds may be infinite.
    let part = match (high - low).is_infinite() {
        false => (value - low) / (high - low),
        true => (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0),
    };
    // The quotient may be rounded to 1.
    let bucket = (f64::from(count) * part) as i32;
    Ok(bucket.min(count - 1) + 1)
}
