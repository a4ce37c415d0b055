//! The order of the types that ranges are made of, for values in storage form.
//!
//! For example, two `int4` are compared as numbers, and two `interval` by the time that they span,
//! with 30 days in a month. Types whose order depends on a collation, or on a catalog, are not here.

use super::date_parts::DAY_US;
use crate::btree::numeric_order;
use crate::little_endian::{Number, read_at};
use crate::text_output::{Base, Type};
use std::cmp::Ordering;

fn numbers<T: Number + Ord>(left: &[u8], right: &[u8]) -> Option<Ordering> {
    Some(T::first_of(left)?.cmp(&T::first_of(right)?))
}

/// NaN is greater than all other numbers, and equal to itself.
fn floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The time that an interval spans, in microseconds.
fn span(value: &[u8]) -> Option<i128> {
    let micros = read_at::<i64>(value, 0)?;
    let days = i64::from(read_at::<i32>(value, 8)?) + i64::from(read_at::<i32>(value, 12)?) * 30;
    Some(i128::from(micros) + i128::from(days) * i128::from(DAY_US))
}

/// The time in UTC, and then the zone.
fn zoned(value: &[u8]) -> Option<(i64, i32)> {
    let west = read_at::<i32>(value, 8)?;
    Some((read_at::<i64>(value, 0)?.checked_add(i64::from(west) * 1_000_000)?, west))
}

/// Compares two values. `None` if their order isn't known, or if they are damaged.
pub(crate) fn compare(ty: &Type, left: &[u8], right: &[u8]) -> Option<Ordering> {
    let Type::Base(base) = ty else { return None };
    match base {
        Base::Int2 => numbers::<i16>(left, right),
        Base::Int4 | Base::Date => numbers::<i32>(left, right),
        Base::Int8 | Base::Money | Base::Time | Base::Timestamp | Base::Timestamptz => {
            numbers::<i64>(left, right)
        }
        Base::U32("oid") => numbers::<u32>(left, right),
        Base::U64(_) | Base::Lsn => numbers::<u64>(left, right),
        Base::Bool | Base::Char => numbers::<u8>(left, right),
        Base::Float4 => {
            let number = |value| read_at::<f32>(value, 0).map(f64::from);
            Some(floats(number(left)?, number(right)?))
        }
        Base::Float8 => Some(floats(read_at(left, 0)?, read_at(right, 0)?)),
        Base::Numeric => numeric_order(left, right),
        Base::Interval => Some(span(left)?.cmp(&span(right)?)),
        Base::Timetz => Some(zoned(left)?.cmp(&zoned(right)?)),
        Base::Uuid | Base::Bytea | Base::Macaddr | Base::Macaddr8 => Some(left.cmp(right)),
        _ => None,
    }
}
