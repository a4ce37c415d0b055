//! **Deforming**: decodes a tuple's bytes into datums, like `heap_deform_tuple`.
//!
//! ```text
//!   columns   int2 7 │ text null │ text "ab" │ int8 9 │ a column added later
//!   bitmap      1         0           1          1
//!   data      07 00            07 61 62   …   09 00 00 00 00 00 00 00
//!             0                2          5   8                      16
//! ```
//!
//! - A dropped column keeps its attribute number. `DROP COLUMN` doesn't rewrite the table, so old
//!   tuples still contain a value for the column.
//! - The tuple header says how many columns the tuple contains. If the table has more columns
//!   than that, they were added later, and we return [`Column::Missing`] for them. A missing
//!   column is null, unless it was added with `ADD COLUMN … DEFAULT`. In that case, since
//!   PostgreSQL 11, the value for such rows is stored in the catalog (see [`missing_value`]).
//! - Alignment is relative to the start of the data, which is itself aligned to 8.
//! - A value with a one-byte varlena header is not aligned. Padding bytes are always zero and the
//!   first byte of a varlena never is, so we can tell from the next byte whether it is padding.
//!
//! Index tuples and composite values have the same layout, so this code is also used to deform
//! them. Mirrors PostgreSQL's `access/tupmacs.h` and `access/common/heaptuple.c`.

mod error;

use crate::align::Align;
use crate::heap_tuple::HeapTuple;
use crate::little_endian::words;
use crate::varlena;

pub use error::{ColumnError, ColumnProblem};

/// A column's `attlen` and `attalign`, which are all we need to know about it to find its value in
/// a tuple. We take them from `pg_attribute` rather than from `pg_type`, because a dropped column
/// no longer has a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// The size of a value in bytes, or -1 for a varlena, or -2 for a C string. Any other negative
    /// number is treated as an error. It can only come from a damaged catalog.
    pub len: i16,
    /// The alignment of a value.
    pub align: Align,
}

/// A column of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column<'a> {
    /// The datum, exactly as it is stored in the tuple. It includes the varlena header, if there is
    /// one (see [`crate::varlena`]), but not the terminating NUL of a C string.
    Value(&'a [u8]),
    /// Null.
    Null,
    /// The tuple was written before the column was added.
    Missing,
}

impl<'a> Column<'a> {
    /// The datum, if there is one.
    pub fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Value(value) => Some(value),
            Self::Null | Self::Missing => None,
        }
    }
}

/// Returns true if attribute `at` (counted from 0) is not null according to the null bitmap
/// `nulls`. The lowest bit of each byte comes first. The bitmap is empty if no attribute is null.
#[inline]
pub(crate) fn is_present(nulls: &[u8], at: usize) -> bool {
    nulls.get(at / 8).is_none_or(|byte| byte >> (at % 8) & 1 == 1)
}

/// Iterates over a tuple's columns.
///
/// ```
/// use trunkline_format::deform::{Attribute, Column, Deformer};
/// use trunkline_format::Align;
/// let int2 = Attribute { len: 2, align: Align::Short };
/// let text = Attribute { len: -1, align: Align::Int };
/// let mut walk = Deformer::new(3, &[0b101], b"\x07\0\x07ab");
/// assert_eq!(walk.next(int2)?, Column::Value(b"\x07\0"));
/// assert_eq!(walk.next(text)?, Column::Null);
/// assert_eq!(walk.next(text)?, Column::Value(b"\x07ab"));
/// assert_eq!(walk.next(int2)?, Column::Missing);
/// # Ok::<(), trunkline_format::deform::ColumnError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Deformer<'a> {
    data: &'a [u8],
    /// Empty if no column is null.
    nulls: &'a [u8],
    natts: u16,
    /// Index of the next column, from 0.
    column: u16,
    offset: usize,
}

impl<'a> Deformer<'a> {
    /// Starts to deform the `natts` columns stored in `data`. `nulls` is the null bitmap: bit `i`,
    /// counting from the lowest bit, is 1 if column `i` is not null. If the bitmap is empty, no
    /// column is null.
    pub fn new(natts: u16, nulls: &'a [u8], data: &'a [u8]) -> Self {
        Self { data, nulls, natts, column: 0, offset: 0 }
    }

    /// Deforms a tuple.
    pub fn of(tuple: &HeapTuple<'a>) -> Self {
        Self::new(tuple.natts(), tuple.nulls(), tuple.data())
    }

    /// Returns the next column, whose layout is `attribute`.
    ///
    /// # Errors
    ///
    /// [`ColumnError`] if the value extends past the end of the tuple. After an error, we no longer
    /// know where the next column starts, so the caller must not use the results of any further
    /// calls.
    #[inline]
    pub fn next(&mut self, attribute: Attribute) -> Result<Column<'a>, ColumnError> {
        let column = self.column;
        if column >= self.natts {
            return Ok(Column::Missing);
        }
        self.column += 1;
        if !is_present(self.nulls, usize::from(column)) {
            return Ok(Column::Null);
        }
        let error = |problem| ColumnError { column: column + 1, offset: self.offset, problem };
        let (value, end) = match attribute.len {
            -1 => self.variable(attribute.align).map_err(error)?,
            -2 => self.text().map_err(error)?,
            len => {
                let length = usize::try_from(len).map_err(|_| error(ColumnProblem::Layout))?;
                let start = attribute.align.up(self.offset);
                let value = self.data.get(start..).and_then(|rest| rest.get(..length));
                (value.ok_or_else(|| error(ColumnProblem::PastEnd))?, start + length)
            }
        };
        self.offset = end;
        Ok(Column::Value(value))
    }

    /// Returns a value with a varlena header, and the offset of the value's end.
    #[inline]
    fn variable(&self, align: Align) -> Result<(&'a [u8], usize), ColumnProblem> {
        // This works like `att_align_pointer`. If the next byte is not zero, it is the first byte
        // of the header, which is either a one-byte header or a four-byte header that is already
        // aligned. If it is zero, it is padding, and an aligned four-byte header follows.
        let start = match self.data.get(self.offset) {
            Some(0) => align.up(self.offset),
            Some(_) => self.offset,
            None => return Err(ColumnProblem::PastEnd),
        };
        let rest = self.data.get(start..).ok_or(ColumnProblem::PastEnd)?;
        let length = varlena::stored_length(rest)?;
        Ok((rest.get(..length).ok_or(ColumnProblem::PastEnd)?, start + length))
    }

    /// Returns a C string, and the offset after its NUL.
    fn text(&self) -> Result<(&'a [u8], usize), ColumnProblem> {
        let rest = self.data.get(self.offset..).ok_or(ColumnProblem::PastEnd)?;
        let length = rest.iter().position(|&byte| byte == 0).ok_or(ColumnProblem::PastEnd)?;
        Ok((rest.get(..length).unwrap_or_default(), self.offset + length + 1))
    }

    /// Offset of the end of the last column returned, in bytes from the start of the data.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// Returns one column for each of `attributes`. If a column is damaged, the iterator ends after it.
pub fn columns<'a, 't>(
    tuple: &HeapTuple<'a>,
    attributes: &'t [Attribute],
) -> impl Iterator<Item = Result<Column<'a>, ColumnError>> + use<'a, 't> {
    let mut walk = Deformer::of(tuple);
    let mut broken = false;
    attributes.iter().map_while(move |&attribute| {
        if broken {
            return None;
        }
        let column = walk.next(attribute);
        broken = column.is_err();
        Some(column)
    })
}

/// The offset of the element in the array's payload.
const ELEMENT: usize = 20;

/// Extracts the datum from `array`, which is the payload of an `attmissingval`, and returns it as a
/// [`Column::Value`]. Returns `None` if `array` is not an array with exactly one element, or if
/// that element is null.
///
/// `ADD COLUMN … DEFAULT` stores the default as a one-element array, so that one catalog column can
/// hold values of any type:
///
/// ```text
///   dimensions 1 │ no bitmap 0 │ element type │ length 1 │ lower bound 1 │ the element
///   0              4             8              12         16              20
/// ```
/// The array's four-byte varlena header precedes these fields, and alignment is relative to it.
pub fn missing_value(array: &[u8], attribute: Attribute) -> Option<&[u8]> {
    // In an array without nulls, the data offset is 0.
    let [1, 0, _, 1] = words(array, 0)? else { return None };
    // If we include the varlena header, the element is at offset 24. This is a multiple of 8, so it
    // is aligned correctly for any type.
    const _: () = assert!((ELEMENT + varlena::HEADER).is_multiple_of(8));
    Deformer::new(1, &[], array.get(ELEMENT..)?).next(attribute).ok().and_then(Column::value)
}

#[cfg(test)]
mod tests;
