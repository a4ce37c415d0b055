//! `numeric`: operators, functions and casts, over stored values.

use arrow_array::ArrayRef;

use super::call::{Call, Kernel};
use super::rows::{Output, Reader, binary, each_row, unary};
use crate::error::SqlError;
use crate::numeric::{Numeric, NumericTypmod};

/// A function of one numeric with another result.
fn of_numeric<R: Output>(
    call: &Call<'_>,
    compute: impl Fn(Numeric) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    unary(call, |a: &[u8]| compute(Numeric::decode(a)?))
}

/// A function of one numeric whose result is a numeric.
fn one(
    call: &Call<'_>,
    compute: impl Fn(Numeric) -> Result<Numeric, SqlError>,
) -> Result<ArrayRef, SqlError> {
    of_numeric(call, |a| compute(a)?.to_payload())
}

/// A function of two numerics whose result is a numeric.
fn two(
    call: &Call<'_>,
    compute: impl Fn(&Numeric, &Numeric) -> Result<Numeric, SqlError>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |a: &[u8], b: &[u8]| {
        compute(&Numeric::decode(a)?, &Numeric::decode(b)?)?.to_payload()
    })
}

/// A function of a numeric and an integer whose result is a numeric.
fn with_integer(
    call: &Call<'_>,
    compute: impl Fn(Numeric, i32) -> Result<Numeric, SqlError>,
) -> Result<ArrayRef, SqlError> {
    binary(call, |a: &[u8], b: i32| compute(Numeric::decode(a)?, b)?.to_payload())
}

pub(super) const OPERATORS: &[(&str, Kernel)] = &[
    ("numeric_add", |call| two(call, |a, b| Ok(a.add(b)))),
    ("numeric_sub", |call| two(call, |a, b| Ok(a.subtract(b)))),
    ("numeric_mul", |call| two(call, |a, b| Ok(a.multiply(b)))),
    ("numeric_div", |call| two(call, Numeric::divide)),
    ("numeric_mod", |call| two(call, Numeric::remainder)),
    ("numeric_power", |call| two(call, |a, b| a.power(b, call.settings.major))),
    ("numeric_uminus", |call| one(call, |a| Ok(a.negate()))),
    ("numeric_uplus", |call| one(call, Ok)),
    ("numeric_abs", |call| one(call, |a| Ok(a.absolute()))),
];

pub(super) const FUNCTIONS: &[(&str, Kernel)] = &[
    ("numeric_div_trunc", |call| two(call, Numeric::divide_truncating)),
    ("numeric_gcd", |call| two(call, |a, b| Ok(a.gcd(b)))),
    ("numeric_lcm", |call| two(call, |a, b| Ok(a.lcm(b)))),
    ("numeric_log", |call| two(call, Numeric::logarithm_of)),
    ("numeric_ceil", |call| one(call, |a| Ok(a.ceiling()))),
    ("numeric_floor", |call| one(call, |a| Ok(a.floor()))),
    ("numeric_sign", |call| one(call, |a| Ok(a.sign()))),
    ("numeric_trim_scale", |call| one(call, |a| Ok(a.trim_scale()))),
    ("numeric_sqrt", |call| one(call, |a| a.square_root())),
    ("numeric_exp", |call| one(call, |a| a.exponential())),
    ("numeric_ln", |call| one(call, |a| a.logarithm())),
    ("numeric_inc", |call| one(call, |a| Ok(a.add(&Numeric::from(1_i64))))),
    ("numeric_round", |call| with_integer(call, |a, scale| Ok(a.round(scale)))),
    ("numeric_trunc", |call| with_integer(call, |a, scale| Ok(a.truncate(scale)))),
    ("numeric_scale", |call| of_numeric(call, |a| Ok(a.scale()))),
    ("numeric_min_scale", |call| of_numeric(call, |a| Ok(a.min_scale()))),
    ("numeric_fac", |call| unary(call, |a: i64| Numeric::factorial(a)?.to_payload())),
    ("width_bucket_numeric", width_bucket),
];

/// Functions that are written in SQL in the server's catalogs: `round(x)` is `round(x, 0)`.
pub(super) const SQL_FUNCTIONS: &[(&str, Kernel)] = &[
    ("round(numeric)", |call| one(call, |a| Ok(a.round(0)))),
    ("trunc(numeric)", |call| one(call, |a| Ok(a.truncate(0)))),
    ("log(numeric)", |call| one(call, |a| Numeric::from(10_i64).logarithm_of(&a))),
    ("log10(numeric)", |call| one(call, |a| Numeric::from(10_i64).logarithm_of(&a))),
];

pub(super) const CASTS: &[(&str, Kernel)] = &[
    ("numeric", |call| with_integer(call, to_typmod)),
    ("int2_numeric", |call| unary(call, |a: i16| Numeric::from(i64::from(a)).to_payload())),
    ("int4_numeric", |call| unary(call, |a: i32| Numeric::from(i64::from(a)).to_payload())),
    ("int8_numeric", |call| unary(call, |a: i64| Numeric::from(a).to_payload())),
    ("float4_numeric", |call| unary(call, |a: f32| Numeric::from(a).to_payload())),
    ("float8_numeric", |call| unary(call, |a: f64| Numeric::from(a).to_payload())),
    ("numeric_int2", |call| of_numeric(call, |a| a.to_i16())),
    ("numeric_int4", |call| of_numeric(call, |a| a.to_i32())),
    ("numeric_int8", |call| of_numeric(call, |a| a.to_i64())),
    ("numeric_float4", |call| of_numeric(call, |a| a.to_f32())),
    ("numeric_float8", |call| of_numeric(call, |a| a.to_f64())),
];

/// `numeric(value, typmod)`, which a cast to `numeric(p, s)` calls.
fn to_typmod(value: Numeric, typmod: i32) -> Result<Numeric, SqlError> {
    match NumericTypmod::decode(typmod) {
        Some(typmod) => typmod.apply(value),
        None => Ok(value),
    }
}

fn width_bucket(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let (value, low) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&[u8]>::new(call, 1)?);
    let (high, count) = (Reader::<&[u8]>::new(call, 2)?, Reader::<i32>::new(call, 3)?);
    each_row(call.rows, |row| {
        let bounds = low.get(row).zip(high.get(row));
        let ((Some(value), Some(count)), Some((low, high))) =
            ((value.get(row), count.get(row)), bounds)
        else {
            return Ok(None);
        };
        let (low, high) = (Numeric::decode(low)?, Numeric::decode(high)?);
        Numeric::decode(value)?.width_bucket(&low, &high, count).map(Some)
    })
}
