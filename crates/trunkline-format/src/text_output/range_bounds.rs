//! The bounds of stored ranges, as functions of ranges need them.
//!
//! For example, `[1,5)` has the lower bound 1, which is included, and the upper bound 5, which isn't.

use super::description::{Bounds, Type};
use super::error::ValueError;
use super::parts::{self, EMPTY, LOWER_INCLUSIVE, LOWER_INFINITE, UPPER_INCLUSIVE, UPPER_INFINITE};
use super::reader::Reader;
use crate::ids::Oid;

/// The bounds of a range that is not empty. Each has its value in storage form and whether it is
/// included; an infinite one is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RangeBounds {
    /// The lower bound.
    pub lower: Option<(Vec<u8>, bool)>,
    /// The upper bound.
    pub upper: Option<(Vec<u8>, bool)>,
}

impl Bounds {
    /// The type of the bounds.
    pub fn subtype(&self) -> &Type {
        &self.bound.ty
    }
}

fn bounds(
    flags: u8,
    reader: &mut Reader<'_>,
    bounds: &Bounds,
) -> Result<Option<RangeBounds>, ValueError> {
    if flags & EMPTY != 0 {
        return Ok(None);
    }
    let mut room = Vec::new();
    let mut bound = |infinite: u8, inclusive: u8| {
        if flags & infinite != 0 {
            return Ok::<_, ValueError>(None);
        }
        let value = reader.part(bounds.bound.attribute, false, &mut room)?.to_vec();
        Ok(Some((value, flags & inclusive != 0)))
    };
    let lower = bound(LOWER_INFINITE, LOWER_INCLUSIVE)?;
    let upper = bound(UPPER_INFINITE, UPPER_INCLUSIVE)?;
    Ok(Some(RangeBounds { lower, upper }))
}

/// The bounds of a stored range; `None` if it is empty.
///
/// # Errors
/// The value is damaged.
pub fn range_bounds(value: &[u8], ty: &Bounds) -> Result<Option<RangeBounds>, ValueError> {
    let (flags, mut reader) = parts::range(value, ty)?;
    bounds(flags, &mut reader, ty)
}

/// The bounds of the ranges of a stored multirange of the type `oid`.
///
/// # Errors
/// The value is damaged.
pub fn multirange_bounds(
    value: &[u8],
    oid: Oid,
    ty: &Bounds,
) -> Result<Vec<RangeBounds>, ValueError> {
    let mut ranges = Vec::new();
    parts::multirange(value, oid, ty, |_, flags, reader| {
        ranges.extend(bounds(flags, reader, ty)?);
        Ok(())
    })?;
    Ok(ranges)
}
