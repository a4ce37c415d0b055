//! Ranges as pairs of cuts.
//!
//! A bound is a cut between values: before its value or after it. `[1,5)` is what is between the cut
//! before 1 and the cut before 5, and `(1,5]` what is between those after them. So two ranges overlap if
//! each begins before the other one ends, whatever kinds of bounds they have. A multirange is a list of
//! such pairs, sorted and with gaps between them.

use std::cmp::Ordering;
use std::sync::Arc;

use trunkline_format::Oid;
use trunkline_format::text_input::{write_multirange, write_range};
use trunkline_format::text_output::{Bounds, RangeBounds, Type, multirange_bounds, range_bounds};

use super::key::ValueKeys;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, CallSettings};
use crate::functions::printing::{damaged, resolve};

/// A cut between values. Its order is that of its place.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// -1 and 1 if it is infinite, else 0.
    pub(super) infinity: i8,
    /// The key of the value.
    pub(super) key: Vec<u8>,
    /// Whether it is after the value, not before it.
    pub(super) after: bool,
    pub(super) value: Vec<u8>,
}

impl Cut {
    fn infinite(infinity: i8) -> Self {
        Self { infinity, key: Vec::new(), after: false, value: Vec::new() }
    }
}

impl PartialEq for Cut {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cut {}

impl PartialOrd for Cut {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cut {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |cut: &Self| cut.infinity;
        let order = place(self).cmp(&place(other));
        order.then_with(|| self.key.cmp(&other.key)).then_with(|| self.after.cmp(&other.after))
    }
}

/// A range that is not empty.
pub(super) type Pair = (Cut, Cut);

/// A range: `None` if it is empty.
pub(super) type Range = Option<Pair>;

/// Reads and writes ranges or multiranges of one type.
pub(super) struct Ranges<'a> {
    pub(super) bounds: Arc<Bounds>,
    /// The multirange type; `None` for a range type.
    multirange: Option<Oid>,
    keys: ValueKeys<'a>,
}

impl<'a> Ranges<'a> {
    /// Those of a range type or a multirange type. If `order` is false, they are only compared for
    /// equality.
    pub(super) fn new(settings: &'a CallSettings, oid: Oid, order: bool) -> Result<Self, SqlError> {
        let keys = ValueKeys::new(settings, order);
        match resolve(oid, settings)? {
            Type::Range(bounds) => Ok(Self { bounds, multirange: None, keys }),
            Type::Multirange(oid, bounds) => Ok(Self { bounds, multirange: Some(oid), keys }),
            _ => Err(SqlError::internal(format!("type {oid} is not a range type"))),
        }
    }

    /// Those of argument `number`.
    pub(super) fn of(call: &Call<'a>, number: usize, order: bool) -> Result<Self, SqlError> {
        let oid = call.argument_types.get(number).copied();
        Self::new(call.settings, oid.ok_or_else(missing)?, order)
    }

    pub(super) fn cut(&mut self, value: Vec<u8>, after: bool) -> Result<Cut, SqlError> {
        let mut key = Vec::new();
        self.keys.append(self.bounds.subtype(), &value, Oid(0), &mut key)?;
        Ok(Cut { infinity: 0, key, after, value })
    }

    pub(super) fn read(&mut self, payload: &[u8]) -> Result<Range, SqlError> {
        let found = range_bounds(payload, &self.bounds).map_err(damaged)?;
        found.map(|found| self.pair(found)).transpose()
    }

    /// The ranges of a multirange in order, or a range that is not empty.
    pub(super) fn read_all(&mut self, payload: &[u8]) -> Result<Vec<Pair>, SqlError> {
        let Some(oid) = self.multirange else {
            return Ok(self.read(payload)?.into_iter().collect());
        };
        let found = multirange_bounds(payload, oid, &self.bounds).map_err(damaged)?;
        found.into_iter().map(|found| self.pair(found)).collect()
    }

    fn pair(&mut self, RangeBounds { lower, upper }: RangeBounds) -> Result<Pair, SqlError> {
        let lower = match lower {
            Some((value, inclusive)) => self.cut(value, !inclusive)?,
            None => Cut::infinite(-1),
        };
        let upper = match upper {
            Some((value, inclusive)) => self.cut(value, inclusive)?,
            None => Cut::infinite(1),
        };
        Ok((lower, upper))
    }

    /// The stored form of a range.
    pub(super) fn store(&self, range: Range) -> Result<Vec<u8>, SqlError> {
        let mut out = Vec::new();
        write_range(&self.bounds, range.map(bounds_of), &mut out)?;
        Ok(out)
    }

    /// The stored form of a multirange.
    pub(super) fn store_all(&self, ranges: Vec<Pair>) -> Result<Vec<u8>, SqlError> {
        let oid = self.multirange.ok_or_else(|| SqlError::internal("not a multirange type"))?;
        let mut out = Vec::new();
        write_multirange(oid, &self.bounds, ranges.into_iter().map(bounds_of), &mut out)?;
        Ok(out)
    }
}

impl Ranges<'_> {
    /// The stored form of ranges in the type that these are of: a multirange, or a range if there is
    /// at most one.
    pub(super) fn store_as_is(&self, mut ranges: Vec<Pair>) -> Result<Vec<u8>, SqlError> {
        match self.multirange {
            Some(_) => self.store_all(ranges),
            None => self.store(ranges.pop()),
        }
    }
}

fn bounds_of((lower, upper): Pair) -> RangeBounds {
    RangeBounds {
        lower: (lower.infinity == 0).then_some((lower.value, !lower.after)),
        upper: (upper.infinity == 0).then_some((upper.value, upper.after)),
    }
}

/// The error for an argument that doesn't exist.
pub(super) fn missing() -> SqlError {
    SqlError::internal("an argument is missing")
}

/// What either of two ranges covers. If `strict`, there must be nothing between them. Of equal bounds
/// that look different, such as 1.0 and 1.00, the right one is taken, as the server does.
pub(super) fn union(left: Range, right: Range, strict: bool) -> Result<Range, SqlError> {
    let (Some(left), Some(right)) = (left.clone(), right.clone()) else {
        return Ok(left.or(right));
    };
    if strict && (left.1 < right.0 || right.1 < left.0) {
        let message = "result of range union would not be contiguous";
        return Err(SqlError::new(SqlState::DATA_EXCEPTION, message));
    }
    // `min` returns the first of equal values, and `max` the last.
    Ok(Some((right.0.min(left.0), left.1.max(right.1))))
}

/// What both ranges cover, which may be nothing. Of equal bounds, the left one is taken.
pub(super) fn intersection(left: Range, right: Range) -> Range {
    let (left, right) = (left?, right?);
    let (lower, upper) = (right.0.max(left.0), left.1.min(right.1));
    (lower < upper).then_some((lower, upper))
}

/// The left range without the right one, which must be at one of its ends.
pub(super) fn difference(left: Range, right: Range) -> Result<Range, SqlError> {
    let (Some(left), Some(right)) = (left.clone(), right) else { return Ok(left) };
    if left.1 <= right.0 || right.1 <= left.0 {
        return Ok(Some(left));
    }
    match (left.0 < right.0, left.1 > right.1) {
        (true, true) => {
            let message = "result of range difference would not be contiguous";
            Err(SqlError::new(SqlState::DATA_EXCEPTION, message))
        }
        (true, false) => Ok(Some((left.0, right.0))),
        (false, true) => Ok(Some((right.1, left.1))),
        (false, false) => Ok(None),
    }
}
