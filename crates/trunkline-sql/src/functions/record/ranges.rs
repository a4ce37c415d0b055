//! Functions and operators of ranges. How two ranges relate is decided by their cuts, which are in
//! [`super::cuts`].

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use trunkline_format::text_input::write_range;
use trunkline_format::text_output::{RangeBounds, Type, range_bounds};

use super::cuts::{Cut, Pair, Range, Ranges, difference, intersection, missing, union};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Argument, Call, Kernel};
use crate::functions::printing::damaged;
use crate::functions::rows::{Output, Reader, each_row};
use crate::values::{Carrier, ColumnBuilder, PayloadReader};

/// The kernels of this module.
pub(in crate::functions) const RANGES: &[(&str, Kernel)] = &[
    ("range_constructor2", |call| made(call, false)),
    ("range_constructor3", |call| made(call, true)),
    ("range_lower", |call| bound(call, |range| range.lower)),
    ("range_upper", |call| bound(call, |range| range.upper)),
    ("range_empty", |call| property(call, |range| range.is_none())),
    ("range_lower_inc", |call| {
        property(call, |range| is_inclusive(range, |it| Some(it.lower.as_ref()?.1)))
    }),
    ("range_upper_inc", |call| {
        property(call, |range| is_inclusive(range, |it| Some(it.upper.as_ref()?.1)))
    }),
    ("range_lower_inf", |call| property(call, |range| range.is_some_and(|it| it.lower.is_none()))),
    ("range_upper_inf", |call| property(call, |range| range.is_some_and(|it| it.upper.is_none()))),
    ("range_eq", |call| compared(call, false, |order| order.is_eq())),
    ("range_ne", |call| compared(call, false, |order| order.is_ne())),
    ("range_lt", |call| compared(call, true, |order| order.is_lt())),
    ("range_le", |call| compared(call, true, |order| order.is_le())),
    ("range_gt", |call| compared(call, true, |order| order.is_gt())),
    ("range_ge", |call| compared(call, true, |order| order.is_ge())),
    ("range_cmp", |call| compared(call, true, |order| order as i32)),
    ("range_contains", |call| related(call, contains)),
    ("range_contained_by", |call| related(call, |a, b| contains(b, a))),
    ("range_overlaps", |call| between(call, |a, b| a.0 < b.1 && b.0 < a.1)),
    ("range_adjacent", |call| between(call, |a, b| a.1 == b.0 || b.1 == a.0)),
    ("range_before", |call| between(call, |a, b| a.1 <= b.0)),
    ("range_after", |call| between(call, |a, b| a.0 >= b.1)),
    ("range_overleft", |call| between(call, |a, b| a.1 <= b.1)),
    ("range_overright", |call| between(call, |a, b| a.0 >= b.0)),
    ("range_contains_elem", |call| has(call, 0, 1)),
    ("elem_contained_by_range", |call| has(call, 1, 0)),
    ("range_union", |call| combined(call, |a, b| union(a, b, true))),
    ("range_merge", |call| combined(call, |a, b| union(a, b, false))),
    ("range_intersect", |call| combined(call, |a, b| Ok(intersection(a, b)))),
    ("range_minus", |call| combined(call, difference)),
];

/// The carrier of an argument's values.
pub(super) fn values<'a>(
    call: &'a Call<'_>,
    number: usize,
    ty: &Type,
) -> Result<(&'a Argument, PayloadReader<'a>), SqlError> {
    let argument = call.arguments.get(number).ok_or_else(missing)?;
    Ok((argument, PayloadReader::new(Carrier::of(ty), argument.array())?))
}

/// A range of two bounds, and with `flagged`, which of them are included. A null bound is infinite.
fn made(call: &Call<'_>, flagged: bool) -> Result<ArrayRef, SqlError> {
    let ranges = Ranges::new(call.settings, call.result_type, true)?;
    let (lower, mut lowers) = values(call, 0, ranges.bounds.subtype())?;
    let (upper, mut uppers) = values(call, 1, ranges.bounds.subtype())?;
    let flags = if flagged { Some(Reader::<&str>::new(call, 2)?) } else { None };
    each_row(call.rows, |row| {
        let (low, high) = match &flags {
            None => (true, false),
            Some(flags) => inclusive(flags.get(row))?,
        };
        let bound = |value: Option<&[u8]>, inclusive| Some((value?.to_vec(), inclusive));
        let bounds = RangeBounds {
            lower: bound(lowers.get(lower.row(row)), low),
            upper: bound(uppers.get(upper.row(row)), high),
        };
        let mut out = Vec::new();
        write_range(&ranges.bounds, Some(bounds), &mut out)?;
        Ok(Some(out))
    })
}

/// Which bounds `[)` and its like include.
fn inclusive(flags: Option<&str>) -> Result<(bool, bool), SqlError> {
    match flags {
        Some("[]") => Ok((true, true)),
        Some("[)") => Ok((true, false)),
        Some("(]") => Ok((false, true)),
        Some("()") => Ok((false, false)),
        Some(_) => {
            let error = SqlError::new(SqlState::SYNTAX_ERROR, "invalid range bound flags");
            Err(error.with_hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."))
        }
        None => {
            let message = "range constructor flags argument must not be null";
            Err(SqlError::new(SqlState::DATA_EXCEPTION, message))
        }
    }
}

/// `lower` and `upper`: null if the range is empty or the bound infinite.
fn bound(
    call: &Call<'_>,
    side: fn(RangeBounds) -> Option<(Vec<u8>, bool)>,
) -> Result<ArrayRef, SqlError> {
    let ranges = Ranges::of(call, 0, false)?;
    let payloads = Reader::<&[u8]>::new(call, 0)?;
    let mut column = ColumnBuilder::new(Carrier::of(ranges.bounds.subtype()), call.rows);
    for row in 0..call.rows {
        let found = match payloads.get(row) {
            Some(payload) => range_bounds(payload, &ranges.bounds).map_err(damaged)?,
            None => None,
        };
        match found.and_then(side) {
            Some((value, _)) => column.append(&value).map_err(damaged)?,
            None => column.append_null(),
        }
    }
    Ok(column.finish())
}

fn property(
    call: &Call<'_>,
    test: impl Fn(Option<&RangeBounds>) -> bool,
) -> Result<ArrayRef, SqlError> {
    let ranges = Ranges::of(call, 0, false)?;
    let payloads = Reader::<&[u8]>::new(call, 0)?;
    each_row(call.rows, |row| {
        let Some(payload) = payloads.get(row) else { return Ok(None) };
        let found = range_bounds(payload, &ranges.bounds).map_err(damaged)?;
        Ok(Some(test(found.as_ref())))
    })
}

fn is_inclusive(range: Option<&RangeBounds>, side: fn(&RangeBounds) -> Option<bool>) -> bool {
    range.and_then(side).unwrap_or(false)
}

/// Calls a function of two ranges.
fn pairs<R: Output>(
    call: &Call<'_>,
    order: bool,
    compute: impl Fn(Range, Range, &Ranges<'_>) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut ranges = Ranges::of(call, 0, order)?;
    let (lefts, rights) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&[u8]>::new(call, 1)?);
    each_row(call.rows, |row| {
        let (Some(left), Some(right)) = (lefts.get(row), rights.get(row)) else { return Ok(None) };
        let (left, right) = (ranges.read(left)?, ranges.read(right)?);
        compute(left, right, &ranges).map(Some)
    })
}

/// An empty range is less than any other one.
fn compared<R: Output>(
    call: &Call<'_>,
    order: bool,
    result: fn(Ordering) -> R,
) -> Result<ArrayRef, SqlError> {
    pairs(call, order, |left, right, _| Ok(result(left.cmp(&right))))
}

fn related(call: &Call<'_>, test: fn(&Range, &Range) -> bool) -> Result<ArrayRef, SqlError> {
    pairs(call, true, |left, right, _| Ok(test(&left, &right)))
}

/// A relation in which empty ranges never are.
fn between(call: &Call<'_>, test: fn(&Pair, &Pair) -> bool) -> Result<ArrayRef, SqlError> {
    pairs(call, true, |left, right, _| match (left, right) {
        (Some(left), Some(right)) => Ok(test(&left, &right)),
        _ => Ok(false),
    })
}

fn contains(outer: &Range, inner: &Range) -> bool {
    match (outer, inner) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(outer), Some(inner)) => outer.0 <= inner.0 && inner.1 <= outer.1,
    }
}

/// Whether a range has a value: the numbers of the two arguments.
fn has(call: &Call<'_>, range: usize, element: usize) -> Result<ArrayRef, SqlError> {
    let mut ranges = Ranges::of(call, range, true)?;
    let payloads = Reader::<&[u8]>::new(call, range)?;
    let bounds = std::sync::Arc::clone(&ranges.bounds);
    let (argument, mut elements) = values(call, element, bounds.subtype())?;
    each_row(call.rows, |row| {
        let Some(payload) = payloads.get(row) else { return Ok(None) };
        let Some(value) = elements.get(argument.row(row)) else { return Ok(None) };
        let Some((lower, upper)) = ranges.read(payload)? else { return Ok(Some(false)) };
        let before = ranges.cut(value.to_vec(), false)?;
        let after = Cut { after: true, ..before.clone() };
        Ok(Some(lower <= before && after <= upper))
    })
}

fn combined(
    call: &Call<'_>,
    combine: fn(Range, Range) -> Result<Range, SqlError>,
) -> Result<ArrayRef, SqlError> {
    pairs(call, true, |left, right, ranges| ranges.store(combine(left, right)?))
}
