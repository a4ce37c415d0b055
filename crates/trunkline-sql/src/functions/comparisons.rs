//! Comparisons of values that are not text, such as `int4eq`, `float48lt` and `numeric_cmp`.
//!
//! Every type has an order, from which its operators and its B-tree support function follow:
//! `int4lt(a, b)` is whether `btint4cmp(a, b)` is below 0. Types for which PostgreSQL defines no order
//! have only `=` and `<>`.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_format::btree::Order;

use super::call::{Call, Kernel};
use super::rows::{Input, binary};
use crate::error::{SqlError, SqlState};

/// A comparison operator, by PostgreSQL's order. Like a B-tree support function, `order` returns a
/// number below 0, 0, or above 0, which some types' functions show to users.
fn compare<'a, A: Input<'a>, B: Input<'a>>(
    call: &'a Call<'_>,
    order: impl Fn(A, B) -> Result<i32, SqlError>,
    test: impl Fn(Ordering) -> bool,
) -> Result<ArrayRef, SqlError> {
    binary(call, |a: A, b: B| Ok(test(order(a, b)?.cmp(&0))))
}

/// The larger or the smaller of two values of one type; the second one if they are equal.
fn extreme<'a, A: Input<'a> + Copy + super::rows::Output>(
    call: &'a Call<'_>,
    order: impl Fn(A, A) -> Result<i32, SqlError>,
    wanted: Ordering,
) -> Result<ArrayRef, SqlError> {
    binary(call, |a: A, b: A| Ok(if order(a, b)?.cmp(&0) == wanted { a } else { b }))
}

/// The seven functions of an order: `=`, `<>`, `<`, `<=`, `>`, `>=` and the support function; then, if
/// both types are the same, the larger and the smaller one.
macro_rules! orders {
    ($($left:ty, $right:ty, $order:expr =>
        $eq:literal $ne:literal $lt:literal $le:literal $gt:literal $ge:literal $cmp:literal
        $($larger:literal $smaller:literal)?;)*) => {
        &[$(
            ($eq, |call| compare::<$left, $right>(call, $order, Ordering::is_eq)),
            ($ne, |call| compare::<$left, $right>(call, $order, Ordering::is_ne)),
            ($lt, |call| compare::<$left, $right>(call, $order, Ordering::is_lt)),
            ($le, |call| compare::<$left, $right>(call, $order, Ordering::is_le)),
            ($gt, |call| compare::<$left, $right>(call, $order, Ordering::is_gt)),
            ($ge, |call| compare::<$left, $right>(call, $order, Ordering::is_ge)),
            ($cmp, |call| binary::<$left, $right, i32>(call, $order)),
            $(
                ($larger, |call| extreme::<$left>(call, $order, Ordering::Greater)),
                ($smaller, |call| extreme::<$left>(call, $order, Ordering::Less)),
            )?
        )*]
    };
}

/// The order of a type whose carrier sorts as PostgreSQL does.
fn natural<T: Ord>(a: T, b: T) -> Result<i32, SqlError> {
    Ok(a.cmp(&b) as i32)
}

/// The order of `int2`, whose support function subtracts.
fn difference(a: i16, b: i16) -> Result<i32, SqlError> {
    Ok(i32::from(a) - i32::from(b))
}

/// The order of two integers of different sizes.
fn integers<A: Into<i64>, B: Into<i64>>(a: A, b: B) -> Result<i32, SqlError> {
    natural(a.into(), b.into())
}

/// The order of floating-point numbers, in which NaN equals itself and is above all numbers.
pub(super) fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn floats<A: Into<f64>, B: Into<f64>>(a: A, b: B) -> Result<i32, SqlError> {
    Ok(float_order(a.into(), b.into()) as i32)
}

fn too_short() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a value is too short for its type")
}

/// The order of payloads that an index compares as well.
fn stored(order: Order, a: &[u8], b: &[u8]) -> Result<i32, SqlError> {
    order.compare(a, b).map(|order| order as i32).ok_or_else(too_short)
}

fn numerics(a: &[u8], b: &[u8]) -> Result<i32, SqlError> {
    stored(Order::Numeric, a, b)
}

/// The order of `inet` and `cidr`. The number is the difference of the families, of the first byte of
/// the network that differs, of the lengths of the prefixes, or of the first byte of the address.
fn networks(a: &[u8], b: &[u8]) -> Result<i32, SqlError> {
    let order = stored(Order::Network, a, b)?;
    let ([family, prefix, address @ ..], [other_family, other_prefix, other @ ..]) = (a, b) else {
        return Err(too_short());
    };
    let less = |a: &u8, b: &u8| i32::from(*a) - i32::from(*b);
    if family != other_family {
        return Ok(less(family, other_family));
    }
    let common = *prefix.min(other_prefix);
    let whole = usize::from(common / 8);
    let differs = |(a, b): &(&u8, &u8)| a != b;
    let bytes = || address.iter().zip(other);
    if let Some((a, b)) = bytes().take(whole).find(differs) {
        return Ok(less(a, b));
    }
    // Bits of the last, partial byte are compared one by one.
    let mask = !(0xFF_u8 >> (common % 8));
    if bytes().nth(whole).is_some_and(|(a, b)| (a ^ b) & mask != 0) {
        return Ok(order);
    }
    if prefix != other_prefix {
        return Ok(less(prefix, other_prefix));
    }
    Ok(bytes().find(differs).map_or(order, |(a, b)| less(a, b)))
}

/// The order of `bit` and `varbit`: the first byte that differs, as in `memcmp`, then the length.
fn bits(a: &[u8], b: &[u8]) -> Result<i32, SqlError> {
    let order = stored(Order::Bits, a, b)?;
    let bytes = a.iter().skip(4).zip(b.iter().skip(4));
    let mut differences = bytes.map(|(a, b)| i32::from(*a) - i32::from(*b));
    Ok(differences.find(|difference| *difference != 0).unwrap_or(order))
}

/// The order of `oidvector`: the difference of the lengths, then the elements.
fn oid_vectors(a: &[u8], b: &[u8]) -> Result<i32, SqlError> {
    let order = stored(Order::OidVector, a, b)?;
    let length = |payload: &[u8]| payload.len().saturating_sub(20) as i32 / 4;
    let difference = length(a) - length(b);
    Ok(if difference == 0 { order } else { difference })
}

pub(super) const INTEGERS: &[(&str, Kernel)] = orders! {
    i16, i16, difference =>
        "int2eq" "int2ne" "int2lt" "int2le" "int2gt" "int2ge" "btint2cmp" "int2larger" "int2smaller";
    i32, i32, natural =>
        "int4eq" "int4ne" "int4lt" "int4le" "int4gt" "int4ge" "btint4cmp" "int4larger" "int4smaller";
    i64, i64, natural =>
        "int8eq" "int8ne" "int8lt" "int8le" "int8gt" "int8ge" "btint8cmp" "int8larger" "int8smaller";
    i16, i32, integers =>
        "int24eq" "int24ne" "int24lt" "int24le" "int24gt" "int24ge" "btint24cmp";
    i32, i16, integers =>
        "int42eq" "int42ne" "int42lt" "int42le" "int42gt" "int42ge" "btint42cmp";
    i16, i64, integers =>
        "int28eq" "int28ne" "int28lt" "int28le" "int28gt" "int28ge" "btint28cmp";
    i64, i16, integers =>
        "int82eq" "int82ne" "int82lt" "int82le" "int82gt" "int82ge" "btint82cmp";
    i32, i64, integers =>
        "int48eq" "int48ne" "int48lt" "int48le" "int48gt" "int48ge" "btint48cmp";
    i64, i32, integers =>
        "int84eq" "int84ne" "int84lt" "int84le" "int84gt" "int84ge" "btint84cmp";
    u32, u32, natural =>
        "oideq" "oidne" "oidlt" "oidle" "oidgt" "oidge" "btoidcmp" "oidlarger" "oidsmaller";
    u64, u64, natural =>
        "xid8eq" "xid8ne" "xid8lt" "xid8le" "xid8gt" "xid8ge" "xid8cmp" "xid8_larger" "xid8_smaller";
    i64, i64, natural =>
        "cash_eq" "cash_ne" "cash_lt" "cash_le" "cash_gt" "cash_ge" "cash_cmp"
        "cashlarger" "cashsmaller";
};

pub(super) const FLOATS: &[(&str, Kernel)] = orders! {
    f32, f32, floats =>
        "float4eq" "float4ne" "float4lt" "float4le" "float4gt" "float4ge" "btfloat4cmp"
        "float4larger" "float4smaller";
    f64, f64, floats =>
        "float8eq" "float8ne" "float8lt" "float8le" "float8gt" "float8ge" "btfloat8cmp"
        "float8larger" "float8smaller";
    f32, f64, floats =>
        "float48eq" "float48ne" "float48lt" "float48le" "float48gt" "float48ge" "btfloat48cmp";
    f64, f32, floats =>
        "float84eq" "float84ne" "float84lt" "float84le" "float84gt" "float84ge" "btfloat84cmp";
    &[u8], &[u8], numerics =>
        "numeric_eq" "numeric_ne" "numeric_lt" "numeric_le" "numeric_gt" "numeric_ge" "numeric_cmp"
        "numeric_larger" "numeric_smaller";
};

pub(super) const OTHERS: &[(&str, Kernel)] = orders! {
    bool, bool, natural =>
        "booleq" "boolne" "boollt" "boolle" "boolgt" "boolge" "btboolcmp";
    u64, u64, natural =>
        "tideq" "tidne" "tidlt" "tidle" "tidgt" "tidge" "bttidcmp" "tidlarger" "tidsmaller";
    u64, u64, natural =>
        "pg_lsn_eq" "pg_lsn_ne" "pg_lsn_lt" "pg_lsn_le" "pg_lsn_gt" "pg_lsn_ge" "pg_lsn_cmp"
        "pg_lsn_larger" "pg_lsn_smaller";
    [u8; 6], [u8; 6], natural =>
        "macaddr_eq" "macaddr_ne" "macaddr_lt" "macaddr_le" "macaddr_gt" "macaddr_ge" "macaddr_cmp";
    [u8; 8], [u8; 8], natural =>
        "macaddr8_eq" "macaddr8_ne" "macaddr8_lt" "macaddr8_le" "macaddr8_gt" "macaddr8_ge"
        "macaddr8_cmp";
    &[u8], &[u8], bits =>
        "biteq" "bitne" "bitlt" "bitle" "bitgt" "bitge" "bitcmp";
    &[u8], &[u8], networks =>
        "network_eq" "network_ne" "network_lt" "network_le" "network_gt" "network_ge" "network_cmp"
        "network_larger" "network_smaller";
    &[u8], &[u8], oid_vectors =>
        "oidvectoreq" "oidvectorne" "oidvectorlt" "oidvectorle" "oidvectorgt" "oidvectorge"
        "btoidvectorcmp";
};

/// `pg_type.oid` of `int4`.
const INT4: Oid = Oid(23);

/// Comparisons of types without an order.
pub(super) const EQUALITIES: &[(&str, Kernel)] = &[
    ("xideq", |call| transaction_ids(call, true)),
    ("xidneq", |call| transaction_ids(call, false)),
    ("cideq", |call| binary(call, |a: u32, b: u32| Ok(a == b))),
];

/// `xideq` and `xideqint4` share a function, because both types have 32 bits.
fn transaction_ids(call: &Call<'_>, equal: bool) -> Result<ArrayRef, SqlError> {
    if call.argument_types.get(1) == Some(&INT4) {
        return binary(call, |a: u32, b: i32| Ok((a == b as u32) == equal));
    }
    binary(call, |a: u32, b: u32| Ok((a == b) == equal))
}
