//! **Deforming**: a tuple's bytes to datums, as `heap_deform_tuple` does.
//!
//! ```text
//!   columns   int2 7 │ text null │ text "ab" │ int8 9 │ a column added later
//!   bitmap      1         0           1          1
//!   data      07 00            07 61 62   …   09 00 00 00 00 00 00 00
//!             0                2          5   8                      16
//! ```
//!
//! - A dropped column keeps its attribute number: `DROP COLUMN` rewrites no tuples, and old ones
//!   still hold its value.
//! - The tuple header holds the number of columns. Columns that were added to the table later are
//!   [`Column::Missing`]. They are null, unless `ADD COLUMN … DEFAULT` left a value in the catalog
//!   for such rows ([`missing_value`], since PostgreSQL 11).
//! - Alignment is relative to the start of the data, which is itself aligned to 8.
//! - A value with a one-byte varlena header is not aligned. Padding is zero and the first byte of a
//!   varlena never is, so the next byte says whether padding follows.
//!
//! Index tuples and composite values have the same layout, and are deformed by the same code.
//! Mirrors PostgreSQL's `access/tupmacs.h` and `access/common/heaptuple.c`.

mod error;
mod missing_value;

use crate::align::Align;
use crate::heap_tuple::HeapTuple;
use crate::varlena;

pub use error::{ColumnError, ColumnProblem};
pub use missing_value::missing_value;

/// `attlen` and `attalign` of a column: all that its layout depends on. They come from
/// `pg_attribute` and not from the type, because a dropped column no longer has a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// Bytes of a value; -1 with a varlena header, -2 for a C string. Other negative lengths, which
    /// only a damaged catalog has, are an error.
    pub len: i16,
    /// The alignment of a value.
    pub align: Align,
}

/// One column of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column<'a> {
    /// The datum as it is stored: with its varlena header, if it has one (see [`crate::varlena`]),
    /// and without the NUL of a C string.
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

/// Walks over the columns of a tuple, one at a time.
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
    /// The next column, from 0.
    column: u16,
    offset: usize,
}

impl<'a> Deformer<'a> {
    /// Over `natts` columns in `data`. Bit `i` of `nulls`, lowest first, is 1 if column `i` is not
    /// null. An empty bitmap means that no column is null.
    pub fn new(natts: u16, nulls: &'a [u8], data: &'a [u8]) -> Self {
        Self { data, nulls, natts, column: 0, offset: 0 }
    }

    /// Over the columns of a tuple.
    pub fn of(tuple: &HeapTuple<'a>) -> Self {
        Self::new(tuple.natts(), tuple.nulls(), tuple.data())
    }

    /// The next column, with the layout `attribute`.
    ///
    /// # Errors
    ///
    /// [`ColumnError`]: the value does not fit into the tuple. The start of the next column is then
    /// unknown, so further calls return errors or values from the wrong bytes.
    #[inline]
    pub fn next(&mut self, attribute: Attribute) -> Result<Column<'a>, ColumnError> {
        let column = self.column;
        if column >= self.natts {
            return Ok(Column::Missing);
        }
        self.column += 1;
        if let Some(byte) = self.nulls.get(usize::from(column / 8))
            && byte & 1 << (column % 8) == 0
        {
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

    /// A value with a varlena header, and the offset of its end.
    #[inline]
    fn variable(&self, align: Align) -> Result<(&'a [u8], usize), ColumnProblem> {
        // As `att_align_pointer`: a byte that is not zero is a header, either a short one or one
        // that happens to be aligned. A zero byte is padding before an aligned four-byte header.
        let start = match self.data.get(self.offset) {
            Some(0) => align.up(self.offset),
            Some(_) => self.offset,
            None => return Err(ColumnProblem::PastEnd),
        };
        let rest = self.data.get(start..).ok_or(ColumnProblem::PastEnd)?;
        let length = varlena::stored_length(rest)?;
        Ok((rest.get(..length).ok_or(ColumnProblem::PastEnd)?, start + length))
    }

    /// A C string, and the offset after its NUL.
    fn text(&self) -> Result<(&'a [u8], usize), ColumnProblem> {
        let rest = self.data.get(self.offset..).ok_or(ColumnProblem::PastEnd)?;
        let length = rest.iter().position(|&byte| byte == 0).ok_or(ColumnProblem::PastEnd)?;
        Ok((rest.get(..length).unwrap_or_default(), self.offset + length + 1))
    }

    /// Bytes that the columns so far have used, with the padding before them.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// The columns of a tuple, one for each of `attributes`, up to the first damaged one.
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

#[cfg(test)]
mod tests;
