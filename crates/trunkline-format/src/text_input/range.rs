//! Ranges and multiranges: `[1,5)`, `(,b]`, `empty`, `{[1,2),[3,4)}`.
//!
//! Ranges of integers and dates are stored in one form, with the lower bound included and the upper
//! one not: `[1,4]` becomes `[1,5)`. A multirange is sorted, and ranges that overlap or touch are
//! merged.
//!
//! Mirrors PostgreSQL's `utils/adt/rangetypes.c` and `utils/adt/multirangetypes.c`.

use super::c_text::{first, skip_space};
use super::composite::part;
use super::date_time::{DATE_END, FIRST_DATE};
use super::error::InputError;
use super::order;
use crate::deform::Attribute;
use crate::ids::Oid;
use crate::little_endian::read_at;
use crate::stored_parts::PartWriter;
use crate::text_output::Type;
use crate::text_output::parts::{
    EMPTY, LOWER_INCLUSIVE, LOWER_INFINITE, UPPER_INCLUSIVE, UPPER_INFINITE,
};
use std::cmp::Ordering;

/// One in this number of a multirange's items has an offset instead of a length.
const STRIDE: usize = 4;
/// Marks an item with an offset.
const IS_OFFSET: u32 = 0x8000_0000;

/// A bound: its value in storage form, `None` if it is infinite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) inclusive: bool,
}

/// The lower and upper bound; `None` if the range is empty.
pub(crate) type RangeValue = Option<(Bound, Bound)>;

/// What the functions below need to know of a range type.
pub(crate) struct RangeRules<'a> {
    /// The range type's OID.
    pub(crate) oid: Oid,
    /// The layout of the subtype.
    pub(crate) attribute: Attribute,
    /// The subtype.
    pub(crate) subtype: &'a Type,
}

impl RangeRules<'_> {
    fn compare(&self, left: &[u8], right: &[u8]) -> Result<Ordering, InputError> {
        let message = || {
            format!(
                "comparing bounds of the range type with OID {} is not supported by trunkline",
                self.oid
            )
        };
        order::compare(self.subtype, left, right).ok_or_else(|| InputError::unsupported(message()))
    }

    /// Compares two lower bounds, or two upper bounds.
    fn compare_bounds(
        &self,
        left: &Bound,
        right: &Bound,
        upper: bool,
    ) -> Result<Ordering, InputError> {
        let infinity = if upper { Ordering::Greater } else { Ordering::Less };
        match (&left.value, &right.value) {
            (None, None) => Ok(Ordering::Equal),
            (None, Some(_)) => Ok(infinity),
            (Some(_), None) => Ok(infinity.reverse()),
            (Some(one), Some(other)) => {
                let inclusive = left.inclusive.cmp(&right.inclusive);
                let inclusive = if upper { inclusive } else { inclusive.reverse() };
                Ok(self.compare(one, other)?.then(inclusive))
            }
        }
    }

    /// Brings a range into the form that is stored (`make_range`).
    pub(crate) fn normalize(
        &self,
        mut lower: Bound,
        mut upper: Bound,
    ) -> Result<RangeValue, InputError> {
        for bound in [&mut lower, &mut upper] {
            bound.inclusive &= bound.value.is_some();
        }
        if self.is_empty(&lower, &upper)? {
            return Ok(None);
        }
        if let Some(next) = successor(self.oid) {
            if let Some(value) = lower.value.as_ref().filter(|_| !lower.inclusive)
                && let Some(value) = next(value)?
            {
                lower = Bound { value: Some(value), inclusive: true };
            }
            if let Some(value) = upper.value.as_ref().filter(|_| upper.inclusive)
                && let Some(value) = next(value)?
            {
                upper = Bound { value: Some(value), inclusive: false };
            }
            if self.is_empty(&lower, &upper)? {
                return Ok(None);
            }
        }
        Ok(Some((lower, upper)))
    }

    fn is_empty(&self, lower: &Bound, upper: &Bound) -> Result<bool, InputError> {
        let (Some(one), Some(other)) = (&lower.value, &upper.value) else { return Ok(false) };
        match self.compare(one, other)? {
            Ordering::Less => Ok(false),
            Ordering::Equal => Ok(!(lower.inclusive && upper.inclusive)),
            Ordering::Greater => {
                let message = "range lower bound must be less than or equal to range upper bound";
                Err(InputError::new("22000", message))
            }
        }
    }

    /// Appends the payload of a range.
    pub(crate) fn store(&self, range: &RangeValue, out: &mut Vec<u8>) {
        let mut writer = PartWriter::new(out);
        writer.word(self.oid.0);
        let Some((lower, upper)) = range else { return writer.bytes(&[EMPTY]) };
        let mut flags = 0;
        let sides =
            [(lower, LOWER_INCLUSIVE, LOWER_INFINITE), (upper, UPPER_INCLUSIVE, UPPER_INFINITE)];
        for (bound, inclusive, infinite) in sides {
            match &bound.value {
                Some(value) => writer.part(self.attribute, true, value),
                None => flags |= infinite,
            }
            flags |= if bound.inclusive { inclusive } else { 0 };
        }
        writer.bytes(&[flags]);
    }

    /// Sorts ranges, and merges those that overlap or touch (`multirange_canonicalize`). Of equal bounds
    /// that look different, such as 1.0 and 1.00, the last one is kept.
    pub(crate) fn merge(&self, ranges: Vec<RangeValue>) -> Result<Vec<RangeValue>, InputError> {
        let mut failure = None;
        let mut bounds: Vec<(Bound, Bound)> = ranges.into_iter().flatten().collect();
        bounds.sort_by(|one, other| {
            let lower = self.compare_bounds(&one.0, &other.0, false);
            let order = lower.and_then(|lower| match lower {
                Ordering::Equal => self.compare_bounds(&one.1, &other.1, true),
                order => Ok(order),
            });
            order.unwrap_or_else(|error| {
                failure = Some(error);
                Ordering::Equal
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let mut merged: Vec<(Bound, Bound)> = Vec::new();
        for (lower, upper) in bounds {
            let Some(last) = merged.last_mut() else {
                merged.push((lower, upper));
                continue;
            };
            if !self.reaches(&last.1, &lower)? {
                merged.push((lower, upper));
                continue;
            }
            if self.compare_bounds(&last.0, &lower, false)? == Ordering::Equal {
                last.0 = lower;
            }
            if self.compare_bounds(&last.1, &upper, true)? != Ordering::Greater {
                last.1 = upper;
            }
        }
        Ok(merged.into_iter().map(Some).collect())
    }

    /// Whether a range that ends at `upper` overlaps or touches one that begins at `lower`.
    fn reaches(&self, upper: &Bound, lower: &Bound) -> Result<bool, InputError> {
        let (Some(end), Some(start)) = (&upper.value, &lower.value) else { return Ok(true) };
        Ok(match self.compare(end, start)? {
            Ordering::Less => false,
            Ordering::Equal => upper.inclusive || lower.inclusive,
            Ordering::Greater => true,
        })
    }

    /// Appends the payload of a multirange, whose ranges must be merged.
    pub(crate) fn store_multirange(&self, oid: Oid, ranges: &[RangeValue], out: &mut Vec<u8>) {
        let (mut items, mut flags, mut data) = (Vec::new(), Vec::new(), Vec::new());
        let align = self.attribute.align;
        let mut previous = 0;
        for (at, range) in ranges.iter().enumerate() {
            if at > 0 {
                let offset = data.len();
                items.push(match at.is_multiple_of(STRIDE) {
                    true => offset as u32 | IS_OFFSET,
                    false => (offset - previous) as u32,
                });
                previous = offset;
            }
            let mut payload = Vec::new();
            self.store(range, &mut payload);
            // The bounds, without the type's OID before them.
            flags.extend(payload.pop());
            data.extend_from_slice(payload.get(4..).unwrap_or_default());
            data.resize(align.up(data.len()), 0);
        }
        let mut writer = PartWriter::new(out);
        writer.word(oid.0);
        writer.word(ranges.len() as u32);
        items.into_iter().for_each(|item| writer.word(item));
        writer.bytes(&flags);
        writer.align(align);
        writer.bytes(&data);
    }
}

/// The next value of a subtype, in storage form; `None` if the value has none.
type Successor = fn(&[u8]) -> Result<Option<Vec<u8>>, InputError>;

/// How a range type with discrete values finds the next one (its canonical function).
fn successor(range: Oid) -> Option<Successor> {
    match range.0 {
        3904 => Some(|value| {
            let next = read_at::<i32>(value, 0).and_then(|value| value.checked_add(1));
            let next = next.ok_or_else(|| InputError::new("22003", "integer out of range"))?;
            Ok(Some(next.to_le_bytes().to_vec()))
        }),
        3926 => Some(|value| {
            let next = read_at::<i64>(value, 0).and_then(|value| value.checked_add(1));
            let next = next.ok_or_else(|| InputError::new("22003", "bigint out of range"))?;
            Ok(Some(next.to_le_bytes().to_vec()))
        }),
        3912 => Some(|value| match read_at::<i32>(value, 0) {
            None | Some(i32::MIN | i32::MAX) => Ok(None),
            Some(day) => {
                let next = i64::from(day) + 1;
                if !(FIRST_DATE..DATE_END).contains(&next) {
                    return Err(InputError::new("22008", "date out of range"));
                }
                Ok(Some((next as i32).to_le_bytes().to_vec()))
            }
        }),
        _ => None,
    }
}

/// The texts of a range's bounds.
pub(super) struct RangeText {
    /// `None` if the bound is infinite.
    pub(super) bounds: [Option<String>; 2],
    pub(super) inclusive: [bool; 2],
}

/// Splits the text of a range; `None` if it is empty.
pub(super) fn split(text: &str) -> Result<Option<RangeText>, InputError> {
    let malformed = |detail: &str| {
        let message = format!("malformed range literal: \"{text}\"");
        Err(InputError::new("22P02", message).with_detail(detail))
    };
    let mut rest = skip_space(text);
    if rest.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("empty")) {
        return match skip_space(rest.get(5..).unwrap_or_default()).is_empty() {
            true => Ok(None),
            false => malformed("Junk after \"empty\" key word."),
        };
    }
    let lower_inclusive = first(rest) == b'[';
    match rest.strip_prefix(['[', '(']) {
        Some(after) => rest = after,
        None => return malformed("Missing left parenthesis or bracket."),
    }
    let mut bounds = [None, None];
    for (at, bound) in bounds.iter_mut().enumerate() {
        if at > 0 {
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => return malformed("Missing comma after lower bound."),
            }
        }
        if matches!(first(rest), b',' | b')' | b']') {
            continue;
        }
        let Some((value, after)) = part(rest, |c| matches!(c, ',' | ')' | ']')) else {
            return malformed("Unexpected end of input.");
        };
        (*bound, rest) = (Some(value), after);
    }
    let upper_inclusive = first(rest) == b']';
    match rest.strip_prefix([']', ')']) {
        Some(after) if skip_space(after).is_empty() => {}
        Some(_) => return malformed("Junk after right parenthesis or bracket."),
        None => return malformed("Too many commas."),
    }
    Ok(Some(RangeText { bounds, inclusive: [lower_inclusive, upper_inclusive] }))
}

/// Splits the text of a multirange into the texts of its ranges.
pub(super) fn split_multirange(text: &str) -> Result<Vec<&str>, InputError> {
    let malformed = |detail: &str| {
        let message = format!("malformed multirange literal: \"{text}\"");
        Err(InputError::new("22P02", message).with_detail(detail))
    };
    let Some(mut rest) = skip_space(text).strip_prefix('{') else {
        return malformed("Missing left brace.");
    };
    let mut ranges = Vec::new();
    rest = skip_space(rest);
    while first(rest) != b'}' || !ranges.is_empty() {
        rest = skip_space(rest);
        let length = match first(rest) {
            0 => return malformed("Unexpected end of input."),
            b'[' | b'(' => match range_length(rest) {
                Some(length) => length,
                None => return malformed("Unexpected end of input."),
            },
            _ if rest.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("empty")) => 5,
            _ => return malformed("Expected range start."),
        };
        let (range, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        ranges.push(range);
        rest = skip_space(after);
        match first(rest) {
            b',' => rest = rest.get(1..).unwrap_or_default(),
            b'}' => break,
            0 => return malformed("Unexpected end of input."),
            _ => return malformed("Expected comma or end of multirange."),
        }
    }
    match skip_space(rest.get(1..).unwrap_or_default()).is_empty() {
        true => Ok(ranges),
        false => malformed("Junk after closing right brace."),
    }
}

/// The length of a range at the start of a text, which ends with the first bracket outside of quotes.
fn range_length(text: &str) -> Option<usize> {
    let (_, rest) = part(text.get(1..)?, |c| matches!(c, ')' | ']'))?;
    Some(text.len() - rest.len() + 1)
}
