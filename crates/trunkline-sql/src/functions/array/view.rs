//! Reads a stored array.
//!
//! ```text
//!   i32 number of dimensions   i32 offset of the data, or 0 without nulls   u32 element type
//!   i32 size of each dimension   i32 lower bound of each   null bitmap, if any   elements
//! ```
//!
//! Offsets include the varlena header, which the payload doesn't have. An array without elements has
//! no dimensions. For example, `'[0:1]={7,NULL}'::int4[]` has one dimension of size 2 with the lower
//! bound 0. Mirrors `ArrayType` of PostgreSQL's `utils/array.h`.

use std::borrow::Cow;

use trunkline_format::Oid;
use trunkline_format::deform::Attribute;
use trunkline_format::text_output::TypeCatalog;
use trunkline_format::varlena::{Varlena, stored_length};

use crate::error::{SqlError, SqlState};

/// `MAXDIM`: the most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 6;
/// `MaxArraySize`: the most elements of an array.
pub const ELEMENTS_MAX: usize = 134_217_727;

/// The size of the varlena header that offsets include.
const HEADER: usize = 4;

/// A dimension of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// The number of elements along it.
    pub size: usize,
    /// The first subscript.
    pub lower: i32,
}

impl Dimension {
    /// The last subscript.
    pub fn upper(self) -> i32 {
        // An array whose subscripts don't fit into 32 bits is refused when it is read.
        self.lower.wrapping_add(self.size as i32).wrapping_sub(1)
    }
}

/// An array whose header has been checked.
#[derive(Debug, Clone)]
pub struct ArrayView<'a> {
    element: Oid,
    dimensions: Vec<Dimension>,
    /// A bit for each element, 1 if it is not null; empty if none is null.
    present: &'a [u8],
    data: &'a [u8],
    count: usize,
}

fn damaged(what: &str) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("array: {what}"))
}

impl<'a> ArrayView<'a> {
    /// Reads the header of a stored array, given without its varlena header.
    ///
    /// # Errors
    /// The header contradicts itself or the size of the value.
    pub fn parse(payload: &'a [u8]) -> Result<Self, SqlError> {
        let word = |at: usize| -> Result<i32, SqlError> {
            let bytes = payload.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map(|bytes| i32::from_le_bytes(*bytes)).ok_or_else(|| damaged("too short"))
        };
        let rank = usize::try_from(word(0)?).ok().filter(|&rank| rank <= DIMENSIONS_MAX);
        let rank = rank.ok_or_else(|| damaged("an impossible number of dimensions"))?;
        let offset = usize::try_from(word(4)?).map_err(|_| damaged("a negative offset"))?;
        let element = Oid(word(8)?.cast_unsigned());
        let (mut dimensions, mut count) = (Vec::with_capacity(rank), usize::from(rank > 0));
        for at in 0..rank {
            let size =
                usize::try_from(word(12 + at * 4)?).map_err(|_| damaged("a negative size"))?;
            let lower = word(12 + (rank + at) * 4)?;
            let upper = lower.checked_add(size as i32);
            upper.ok_or_else(|| damaged("subscripts beyond 32 bits"))?;
            dimensions.push(Dimension { size, lower });
            count = count.saturating_mul(size);
        }
        // An element takes at least a bit or a byte, which bounds what a damaged header can ask for.
        if count > ELEMENTS_MAX || count > payload.len().saturating_mul(8) {
            return Err(damaged("more elements than bytes"));
        }
        let bitmap = 12 + rank * 8;
        let (present, start) = match offset.checked_sub(HEADER) {
            None => (Some([].as_slice()), (bitmap + HEADER).next_multiple_of(8) - HEADER),
            Some(start) => (payload.get(bitmap..bitmap + count.div_ceil(8)), start),
        };
        let present = present.ok_or_else(|| damaged("a null bitmap beyond its end"))?;
        let data = payload.get(start..);
        let data = match count {
            0 => &[],
            _ => data.ok_or_else(|| damaged("elements beyond its end"))?,
        };
        Ok(Self { element, dimensions, present, data, count })
    }

    /// The type of the elements.
    pub fn element(&self) -> Oid {
        self.element
    }

    /// The dimensions, from the outermost; none if there are no elements.
    pub fn dimensions(&self) -> &[Dimension] {
        if self.count == 0 { &[] } else { &self.dimensions }
    }

    /// The number of elements in all dimensions.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether any element is null.
    pub fn has_nulls(&self) -> bool {
        !self.present.is_empty() && !(0..self.count).all(|at| self.is_present(at))
    }

    fn is_present(&self, at: usize) -> bool {
        self.present.is_empty()
            || self.present.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }

    /// The elements in storage order, which is that of the last subscript, then the one before it.
    /// Each is given as stored without a varlena header, or as `None` if it is null. `attribute` are
    /// the element type's length and alignment.
    ///
    /// # Errors
    /// An element doesn't fit into the value.
    pub fn elements(&self, attribute: Attribute) -> Result<Vec<Option<Cow<'a, [u8]>>>, SqlError> {
        let (mut elements, mut at) = (Vec::with_capacity(self.count), 0_usize);
        for number in 0..self.count {
            if !self.is_present(number) {
                elements.push(None);
                continue;
            }
            // The data begins at a multiple of 8.
            at = attribute.align.up(at);
            let rest = self.data.get(at..).ok_or_else(|| damaged("an element beyond its end"))?;
            let (value, length) = element(rest, attribute.len)?;
            elements.push(Some(value));
            at = at.saturating_add(length);
        }
        Ok(elements)
    }
}

/// The value at the start of `rest`, and the number of bytes that it takes.
fn element(rest: &[u8], length: i16) -> Result<(Cow<'_, [u8]>, usize), SqlError> {
    let beyond = || damaged("an element beyond its end");
    match length {
        -1 => {
            let length = stored_length(rest).map_err(|error| damaged(&error.to_string()))?;
            let stored = rest.get(..length).ok_or_else(beyond)?;
            let value = Varlena::parse(stored).map_err(|error| damaged(&error.to_string()))?;
            if let Varlena::Plain(payload) = value {
                return Ok((Cow::Borrowed(payload), length));
            }
            let mut room = Vec::new();
            value.payload(&mut room).map_err(|error| damaged(&error.to_string()))?;
            Ok((Cow::Owned(room), length))
        }
        -2 => {
            let length = rest.iter().position(|&byte| byte == 0).ok_or_else(beyond)?;
            Ok((Cow::Borrowed(rest.get(..length).unwrap_or_default()), length + 1))
        }
        length => {
            let length = usize::try_from(length).map_err(|_| damaged("a negative length"))?;
            Ok((Cow::Borrowed(rest.get(..length).ok_or_else(beyond)?), length))
        }
    }
}

/// The length and alignment of a type's values.
///
/// # Errors
/// The catalog has no such type.
pub fn attribute_of(oid: Oid, catalog: &dyn TypeCatalog) -> Result<Attribute, SqlError> {
    let row = catalog.type_row(oid);
    let row = row.ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type with OID {oid} does not exist"))
    })?;
    Ok(Attribute { len: row.len, align: row.align })
}
