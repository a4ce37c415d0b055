//! Functions and operators of multiranges, and those between a multirange and a range.
//!
//! A range is treated as a multirange of at most one range. For example, `'{[1,3),[5,9)}' @> 5` is true,
//! and `'{[1,3)}' + '{[3,4)}'` is `{[1,4)}`.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef, BinaryViewArray};
use std::sync::Arc;

use super::cuts::{Cut, Pair, Ranges, intersection};
use super::ranges::values;
use crate::error::{SqlError, SqlState};
use crate::functions::array::{ArrayView, attribute_of};
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::damaged;
use crate::functions::rows::{Output, Reader, each_row};
use crate::functions::set_rows::{NoRows, SetFunction, SetRows};
use crate::values::{Carrier, ColumnBuilder};

/// The kernels of this module.
pub(in crate::functions) const MULTIRANGES: &[(&str, Kernel)] = &[
    ("multirange_constructor0", |call| {
        let empty = Ranges::new(call.settings, call.result_type, true)?.store_all(Vec::new())?;
        each_row(call.rows, |_| Ok(Some(empty.as_slice())))
    }),
    ("multirange_constructor1", of_range),
    ("multirange_constructor2", of_array),
    ("multirange_lower", |call| bound(call, true)),
    ("multirange_upper", |call| bound(call, false)),
    ("multirange_empty", |call| property(call, <[Pair]>::is_empty)),
    ("multirange_lower_inc", |call| {
        property(call, |ranges| ranges.first().is_some_and(|it| it.0.infinity == 0 && !it.0.after))
    }),
    ("multirange_upper_inc", |call| {
        property(call, |ranges| ranges.last().is_some_and(|it| it.1.infinity == 0 && it.1.after))
    }),
    ("multirange_lower_inf", |call| {
        property(call, |ranges| ranges.first().is_some_and(|it| it.0.infinity != 0))
    }),
    ("multirange_upper_inf", |call| {
        property(call, |ranges| ranges.last().is_some_and(|it| it.1.infinity != 0))
    }),
    ("range_merge_from_multirange", |call| {
        let mut ranges = Ranges::of(call, 0, true)?;
        let payloads = Reader::<&[u8]>::new(call, 0)?;
        each_row(call.rows, |row| {
            let Some(payload) = payloads.get(row) else { return Ok(None) };
            let found = ranges.read_all(payload)?;
            let ends = found.first().zip(found.last());
            let merged = ends.map(|(first, last)| (first.0.clone(), last.1.clone()));
            ranges.store(merged).map(Some)
        })
    }),
    ("multirange_eq", |call| compared(call, false, |order| order.is_eq())),
    ("multirange_ne", |call| compared(call, false, |order| order.is_ne())),
    ("multirange_lt", |call| compared(call, true, |order| order.is_lt())),
    ("multirange_le", |call| compared(call, true, |order| order.is_le())),
    ("multirange_gt", |call| compared(call, true, |order| order.is_gt())),
    ("multirange_ge", |call| compared(call, true, |order| order.is_ge())),
    ("multirange_cmp", |call| compared(call, true, |order| order as i32)),
    ("multirange_contains_multirange", |call| related(call, contains)),
    ("multirange_contains_range", |call| related(call, contains)),
    ("range_contains_multirange", |call| related(call, contains)),
    ("multirange_contained_by_multirange", |call| related(call, |a, b| contains(b, a))),
    ("multirange_contained_by_range", |call| related(call, |a, b| contains(b, a))),
    ("range_contained_by_multirange", |call| related(call, |a, b| contains(b, a))),
    ("multirange_overlaps_multirange", |call| related(call, overlaps)),
    ("multirange_overlaps_range", |call| related(call, overlaps)),
    ("range_overlaps_multirange", |call| related(call, overlaps)),
    ("multirange_before_multirange", |call| spans(call, |a, b| a.1 <= b.0)),
    ("multirange_before_range", |call| spans(call, |a, b| a.1 <= b.0)),
    ("range_before_multirange", |call| spans(call, |a, b| a.1 <= b.0)),
    ("multirange_after_multirange", |call| spans(call, |a, b| a.0 >= b.1)),
    ("multirange_after_range", |call| spans(call, |a, b| a.0 >= b.1)),
    ("range_after_multirange", |call| spans(call, |a, b| a.0 >= b.1)),
    ("multirange_overleft_multirange", |call| spans(call, |a, b| a.1 <= b.1)),
    ("multirange_overleft_range", |call| spans(call, |a, b| a.1 <= b.1)),
    ("range_overleft_multirange", |call| spans(call, |a, b| a.1 <= b.1)),
    ("multirange_overright_multirange", |call| spans(call, |a, b| a.0 >= b.0)),
    ("multirange_overright_range", |call| spans(call, |a, b| a.0 >= b.0)),
    ("range_overright_multirange", |call| spans(call, |a, b| a.0 >= b.0)),
    ("multirange_adjacent_multirange", |call| spans(call, |a, b| a.1 == b.0 || b.1 == a.0)),
    ("multirange_adjacent_range", |call| spans(call, |a, b| a.1 == b.0 || b.1 == a.0)),
    ("range_adjacent_multirange", |call| spans(call, |a, b| a.1 == b.0 || b.1 == a.0)),
    ("multirange_contains_elem", |call| has(call, 0, 1)),
    ("elem_contained_by_multirange", |call| has(call, 1, 0)),
    ("multirange_union", |call| combined(call, |a, b| a.iter().chain(b).cloned().collect())),
    ("multirange_intersect", |call| combined(call, intersected)),
    ("multirange_minus", |call| combined(call, without)),
];

/// The functions of this module that give rows.
pub(in crate::functions) const MULTIRANGE_SETS: &[(&str, SetFunction)] =
    &[("multirange_unnest", unnested)];

/// A multirange of one range.
fn of_range(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let made = Ranges::new(call.settings, call.result_type, true)?;
    let mut ranges = Ranges::of(call, 0, true)?;
    let payloads = Reader::<&[u8]>::new(call, 0)?;
    each_row(call.rows, |row| {
        let Some(payload) = payloads.get(row) else { return Ok(None) };
        made.store_all(ranges.read_all(payload)?).map(Some)
    })
}

/// A multirange of an array of ranges.
fn of_array(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let made = Ranges::new(call.settings, call.result_type, true)?;
    let arrays = Reader::<&[u8]>::new(call, 0)?;
    each_row(call.rows, |row| {
        let Some(array) = arrays.get(row) else { return Ok(None) };
        let view = ArrayView::parse(array)?;
        if view.dimensions().len() > 1 {
            let message = "multiranges cannot be constructed from multidimensional arrays";
            return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message));
        }
        let element = view.element();
        let mut ranges = Ranges::new(call.settings, element, true)?;
        let mut found = Vec::with_capacity(view.len());
        for value in view.elements(attribute_of(element, &*call.settings.catalog)?)? {
            let value = value.ok_or_else(|| {
                let message = "multirange values cannot contain null members";
                SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
            })?;
            found.extend(ranges.read(&value)?);
        }
        made.store_all(found).map(Some)
    })
}

/// The first or the last bound: null if there are no ranges or the bound is infinite.
fn bound(call: &Call<'_>, is_lower: bool) -> Result<ArrayRef, SqlError> {
    let mut ranges = Ranges::of(call, 0, false)?;
    let payloads = Reader::<&[u8]>::new(call, 0)?;
    let mut column = ColumnBuilder::new(Carrier::of(ranges.bounds.subtype()), call.rows);
    for row in 0..call.rows {
        let found = match payloads.get(row) {
            Some(payload) => ranges.read_all(payload)?,
            None => Vec::new(),
        };
        let cut = match is_lower {
            true => found.first().map(|range| &range.0),
            false => found.last().map(|range| &range.1),
        };
        match cut.filter(|cut| cut.infinity == 0) {
            Some(cut) => column.append(&cut.value).map_err(damaged)?,
            None => column.append_null(),
        }
    }
    Ok(column.finish())
}

fn property(call: &Call<'_>, test: fn(&[Pair]) -> bool) -> Result<ArrayRef, SqlError> {
    let mut ranges = Ranges::of(call, 0, false)?;
    let payloads = Reader::<&[u8]>::new(call, 0)?;
    each_row(call.rows, |row| {
        let Some(payload) = payloads.get(row) else { return Ok(None) };
        Ok(Some(test(&ranges.read_all(payload)?)))
    })
}

/// Calls a function of two arguments, each a range or a multirange.
fn pairs<R: Output>(
    call: &Call<'_>,
    order: bool,
    compute: impl Fn(&[Pair], &[Pair], &Ranges<'_>) -> Result<R, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let (mut left, mut right) = (Ranges::of(call, 0, order)?, Ranges::of(call, 1, order)?);
    let (lefts, rights) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&[u8]>::new(call, 1)?);
    each_row(call.rows, |row| {
        let (Some(a), Some(b)) = (lefts.get(row), rights.get(row)) else { return Ok(None) };
        let (a, b) = (left.read_all(a)?, right.read_all(b)?);
        compute(&a, &b, &left).map(Some)
    })
}

fn compared<R: Output>(
    call: &Call<'_>,
    order: bool,
    result: fn(Ordering) -> R,
) -> Result<ArrayRef, SqlError> {
    pairs(call, order, |left, right, _| Ok(result(left.cmp(right))))
}

fn related(call: &Call<'_>, test: fn(&[Pair], &[Pair]) -> bool) -> Result<ArrayRef, SqlError> {
    pairs(call, true, |left, right, _| Ok(test(left, right)))
}

/// A relation between the first and last bounds of both, in which nothing empty ever is.
fn spans(
    call: &Call<'_>,
    test: fn((&Cut, &Cut), (&Cut, &Cut)) -> bool,
) -> Result<ArrayRef, SqlError> {
    pairs(call, true, |left, right, _| {
        let span = |ranges: &'_ [Pair]| Some((ranges.first()?.0.clone(), ranges.last()?.1.clone()));
        Ok(match (span(left), span(right)) {
            (Some(left), Some(right)) => test((&left.0, &left.1), (&right.0, &right.1)),
            _ => false,
        })
    })
}

/// Whether each of the inner ranges is in one of the outer ones.
fn contains(mut outer: &[Pair], inner: &[Pair]) -> bool {
    inner.iter().all(|inner| {
        // What ends before this range also ends before those behind it.
        let before = outer.iter().take_while(|outer| outer.1 < inner.1).count();
        outer = outer.get(before..).unwrap_or_default();
        outer.first().is_some_and(|outer| outer.0 <= inner.0)
    })
}

fn overlaps(left: &[Pair], right: &[Pair]) -> bool {
    neighbours(left, right).any(|(a, b)| a.0 < b.1 && b.0 < a.1)
}

/// Pairs of ranges of two multiranges, among which are all that overlap. Of each pair, the range that
/// ends first is followed by the next one.
fn neighbours<'p>(
    mut left: &'p [Pair],
    mut right: &'p [Pair],
) -> impl Iterator<Item = (&'p Pair, &'p Pair)> {
    std::iter::from_fn(move || {
        let ((a, lefts), (b, rights)) = left.split_first().zip(right.split_first())?;
        if a.1 <= b.1 {
            left = lefts;
        }
        if b.1 <= a.1 {
            right = rights;
        }
        Some((a, b))
    })
}

/// Whether a multirange has a value: the numbers of the two arguments.
fn has(call: &Call<'_>, multirange: usize, element: usize) -> Result<ArrayRef, SqlError> {
    let mut ranges = Ranges::of(call, multirange, true)?;
    let payloads = Reader::<&[u8]>::new(call, multirange)?;
    let bounds = Arc::clone(&ranges.bounds);
    let (argument, mut elements) = values(call, element, bounds.subtype())?;
    each_row(call.rows, |row| {
        let Some(payload) = payloads.get(row) else { return Ok(None) };
        let Some(value) = elements.get(argument.row(row)) else { return Ok(None) };
        let found = ranges.read_all(payload)?;
        let before = ranges.cut(value.to_vec(), false)?;
        let after = Cut { after: true, ..before.clone() };
        Ok(Some(found.iter().any(|(lower, upper)| *lower <= before && after <= *upper)))
    })
}

fn combined(
    call: &Call<'_>,
    combine: fn(&[Pair], &[Pair]) -> Vec<Pair>,
) -> Result<ArrayRef, SqlError> {
    pairs(call, true, |left, right, ranges| ranges.store_all(combine(left, right)))
}

/// What both multiranges cover.
pub(super) fn intersected(left: &[Pair], right: &[Pair]) -> Vec<Pair> {
    let each = neighbours(left, right);
    each.filter_map(|(a, b)| intersection(Some(a.clone()), Some(b.clone()))).collect()
}

/// What the left multirange covers and the right one doesn't.
fn without(left: &[Pair], mut right: &[Pair]) -> Vec<Pair> {
    let mut rest = Vec::with_capacity(left.len());
    for (start, end) in left {
        let (mut start, mut is_covered) = (start, false);
        while let Some(((lower, upper), others)) = right.split_first()
            && lower < end
        {
            if upper > start {
                if start < lower {
                    rest.push((start.clone(), lower.clone()));
                }
                if end <= upper {
                    // It may also cover what comes next.
                    is_covered = true;
                    break;
                }
                start = upper;
            }
            right = others;
        }
        if !is_covered {
            rest.push((start.clone(), end.clone()));
        }
    }
    rest
}

/// `unnest`: a row for each range.
fn unnested(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let Some(payload) = Reader::<&[u8]>::new(call, 0)?.get(row) else {
        return Ok(Box::new(NoRows));
    };
    let mut ranges = Ranges::of(call, 0, false)?;
    let found = ranges.read_all(payload)?.into_iter().map(|range| ranges.store(Some(range)));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(Unnested {
        ranges: found.iter().map(|range| Some(range.as_slice())).collect(),
        at: 0,
    }))
}

/// The ranges of a multirange.
#[derive(Debug)]
struct Unnested {
    ranges: BinaryViewArray,
    at: usize,
}

impl SetRows for Unnested {
    fn next_rows(&mut self, rows_max: usize) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let count = rows_max.min(self.ranges.len().saturating_sub(self.at));
        if count == 0 {
            return Ok(None);
        }
        let part = self.ranges.slice(self.at, count);
        self.at += count;
        Ok(Some(vec![Arc::new(part)]))
    }
}
