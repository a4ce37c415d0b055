//! `money`: an amount in hundredths, as in the locales C and en_US.

use super::call::Kernel;
use super::floats::{divide, multiply};
use super::integers::out_of_range;
use super::rows::{binary, unary};
use crate::error::SqlError;
use crate::numeric::{Numeric, division_by_zero};

/// Hundredths in a unit of the currency.
const UNIT: i64 = 100;

fn checked(amount: Option<i64>) -> Result<i64, SqlError> {
    amount.ok_or_else(|| out_of_range("money"))
}

fn times<T: Into<i64>>(amount: i64, factor: T) -> Result<i64, SqlError> {
    checked(amount.checked_mul(factor.into()))
}

fn over<T: Into<i64>>(amount: i64, divisor: T) -> Result<i64, SqlError> {
    let divisor = divisor.into();
    if divisor == 0 { Err(division_by_zero()) } else { checked(amount.checked_div(divisor)) }
}

/// The nearest amount, half to even.
fn nearest(amount: f64) -> Result<i64, SqlError> {
    super::floats::to_i64(amount).map_err(|_| out_of_range("money"))
}

fn times_float<T: Into<f64>>(amount: i64, factor: T) -> Result<i64, SqlError> {
    nearest(multiply(amount as f64, factor.into())?)
}

fn over_float<T: Into<f64>>(amount: i64, divisor: T) -> Result<i64, SqlError> {
    nearest(divide(amount as f64, divisor.into())?)
}

pub(super) const OPERATORS: &[(&str, Kernel)] = &[
    ("cash_pl", |call| binary(call, |a: i64, b: i64| checked(a.checked_add(b)))),
    ("cash_mi", |call| binary(call, |a: i64, b: i64| checked(a.checked_sub(b)))),
    ("cash_mul_int2", |call| binary(call, times::<i16>)),
    ("cash_mul_int4", |call| binary(call, times::<i32>)),
    ("cash_mul_int8", |call| binary(call, times::<i64>)),
    ("cash_mul_flt4", |call| binary(call, times_float::<f32>)),
    ("cash_mul_flt8", |call| binary(call, times_float::<f64>)),
    ("int2_mul_cash", |call| binary(call, |a: i16, b: i64| times(b, a))),
    ("int4_mul_cash", |call| binary(call, |a: i32, b: i64| times(b, a))),
    ("int8_mul_cash", |call| binary(call, |a: i64, b: i64| times(b, a))),
    ("flt4_mul_cash", |call| binary(call, |a: f32, b: i64| times_float(b, a))),
    ("flt8_mul_cash", |call| binary(call, |a: f64, b: i64| times_float(b, a))),
    ("cash_div_int2", |call| binary(call, over::<i16>)),
    ("cash_div_int4", |call| binary(call, over::<i32>)),
    ("cash_div_int8", |call| binary(call, over::<i64>)),
    ("cash_div_flt4", |call| binary(call, over_float::<f32>)),
    ("cash_div_flt8", |call| binary(call, over_float::<f64>)),
    ("cash_div_cash", |call| {
        binary(call, |a: i64, b: i64| match b {
            0 => Err(division_by_zero()),
            _ => Ok(a as f64 / b as f64),
        })
    }),
];

pub(super) const CASTS: &[(&str, Kernel)] = &[
    ("int4_cash", |call| {
        unary(call, |a: i32| i64::from(a).checked_mul(UNIT).ok_or_else(|| out_of_range("bigint")))
    }),
    ("int8_cash", |call| {
        unary(call, |a: i64| a.checked_mul(UNIT).ok_or_else(|| out_of_range("bigint")))
    }),
    ("numeric_cash", |call| {
        unary(call, |a: &[u8]| Numeric::decode(a)?.multiply(&Numeric::from(UNIT)).to_i64())
    }),
    ("cash_numeric", |call| {
        // The product has two decimals; a quotient might have fewer.
        unary(call, |a: i64| Numeric::from(a).multiply(&Numeric::from(0.01_f64)).to_payload())
    }),
];
