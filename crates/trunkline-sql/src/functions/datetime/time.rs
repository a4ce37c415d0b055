//! `time` and `timetz`: times of a day, the latter with a zone.
//!
//! Times are microseconds from 0 to 24:00:00, inclusive. A timetz has an offset as well, in seconds
//! *west* of UTC. Its values compare by their time in UTC first, and by their zone if that is equal.
//!
//! ```text
//!   '23:00'::time + '2 hours'              =  '01:00'
//!   '12:00+01'::timetz < '12:00+00'::timetz     12:00 in Berlin is earlier than in London
//! ```
//!
//! Mirrors PostgreSQL's `utils/adt/date.c`.

use std::cmp::Ordering;

use arrow_array::FixedSizeBinaryArray;
use arrow_array::builder::FixedSizeBinaryBuilder;
use trunkline_format::calendar::DAY_US;

use super::super::rows::{Input, Output};
use super::error::overflow;
use super::interval::Interval;
use super::timestamp::SECOND_US;
use crate::error::SqlError;

/// A value of the type `timetz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeTz {
    /// Microseconds of the day.
    pub(super) micros: i64,
    /// Seconds west of UTC.
    pub(super) west_s: i32,
}

impl TimeTz {
    fn from_bytes(bytes: [u8; 12]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Self {
            micros: i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            west_s: i32::from_le_bytes([i, j, k, l]),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.micros.to_le_bytes());
        bytes[8..].copy_from_slice(&self.west_s.to_le_bytes());
        bytes
    }

    /// The time in UTC, which may be on the day before or after.
    pub(super) fn utc(self) -> i64 {
        self.micros.wrapping_add(i64::from(self.west_s) * SECOND_US)
    }

    /// The same time in another zone.
    pub(super) fn in_zone(self, west_s: i32) -> Self {
        let micros = self.utc() - i64::from(west_s) * SECOND_US;
        // 24:00 in the same zone becomes 00:00.
        Self { micros: micros.rem_euclid(DAY_US), west_s }
    }
}

impl PartialOrd for TimeTz {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimeTz {
    fn cmp(&self, other: &Self) -> Ordering {
        self.utc().cmp(&other.utc()).then(self.west_s.cmp(&other.west_s))
    }
}

impl<'a> Input<'a> for TimeTz {
    type Array = FixedSizeBinaryArray;

    #[inline]
    fn at(array: &'a FixedSizeBinaryArray, row: usize) -> Self {
        Self::from_bytes(Input::at(array, row))
    }
}

impl Output for TimeTz {
    type Builder = FixedSizeBinaryBuilder;

    fn builder(rows: usize) -> Self::Builder {
        <[u8; 12]>::builder(rows)
    }

    #[inline]
    fn append(self, builder: &mut Self::Builder) {
        self.to_bytes().append(builder);
    }

    #[inline]
    fn append_null(builder: &mut Self::Builder) {
        <[u8; 12]>::append_null(builder);
    }
}

/// Adds the time of an interval, modulo a day. Its days and months don't count.
///
/// # Errors
/// 22008: the interval is infinite.
pub(super) fn time_plus(time: i64, span: Interval, major: u32) -> Result<i64, SqlError> {
    if span.infinity(major).is_some() {
        return Err(overflow("cannot add infinite interval to time"));
    }
    Ok(time.wrapping_add(span.micros).rem_euclid(DAY_US))
}

/// Subtracts the time of an interval, modulo a day.
///
/// # Errors
/// 22008: the interval is infinite.
pub(super) fn time_minus(time: i64, span: Interval, major: u32) -> Result<i64, SqlError> {
    if span.infinity(major).is_some() {
        return Err(overflow("cannot subtract infinite interval from time"));
    }
    Ok(time.wrapping_sub(span.micros).rem_euclid(DAY_US))
}
