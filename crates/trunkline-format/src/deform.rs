//! A row's bytes as values: alignment, null bitmap, columns that a table got later.
//!
//! ```text
//!   columns   int2 7 │ text null │ text "ab" │ int8 9 │ a column added later
//!   bitmap      1         0           1          1
//!   data      07 00            07 61 62   …   09 00 00 00 00 00 00 00
//!             0                2          5   8                      16
//! ```
//!
//! A column is walked over although it was dropped: old rows still hold it. A row tells how many
//! columns it holds; those that the table has beyond are [`Column::Missing`], and are null unless
//! the catalog keeps a value for rows from before they were added ([`missing_value`]). Alignment
//! counts from where the data begins. Padding is zero and a value's first byte never is, which is
//! how an unaligned value is told from padding.
//!
//! The same walk reads index tuples and composite values, whose data is laid out alike.

mod error;
mod missing_value;

use crate::align::Align;
use crate::heap_tuple::HeapTuple;
use crate::varlena;

pub use error::{ColumnError, ColumnProblem};
pub use missing_value::missing_value;

/// What the layout of a column depends on: `attlen` and `attalign`, of `pg_attribute` and not of the
/// type, so that dropped columns have them too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attribute {
    /// Bytes of a value; -1: of variable length, with a header; -2: up to a NUL. Others do not occur
    /// in sound catalogs, and are an error when a value is wanted.
    pub len: i16,
    /// What a value is aligned to.
    pub align: Align,
}

/// One column of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column<'a> {
    /// The datum as it is stored: so many bytes as the type has; with its header if of variable
    /// length (see [`crate::varlena`]); without the NUL if up to one.
    Value(&'a [u8]),
    /// Null.
    Null,
    /// The row was written before the column was added.
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

/// A place in a row, before some column.
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
    /// Empty: nothing is null.
    nulls: &'a [u8],
    natts: u16,
    /// The column that is next, from 0.
    column: u16,
    offset: usize,
}

impl<'a> Deformer<'a> {
    /// Over `natts` columns that are laid out in `data`; bit `i` of `nulls`, the lowest first, is 1
    /// if column `i` is there, and an empty bitmap means that all are.
    pub fn new(natts: u16, nulls: &'a [u8], data: &'a [u8]) -> Self {
        Self { data, nulls, natts, column: 0, offset: 0 }
    }

    /// Over the columns of a tuple.
    pub fn of(tuple: &HeapTuple<'a>) -> Self {
        Self::new(tuple.natts(), tuple.nulls(), tuple.data())
    }

    /// The next column, which is laid out as `attribute` says.
    ///
    /// # Errors
    ///
    /// [`ColumnError`]: the value does not fit into the row. Where the next one is cannot be known
    /// then, and every further call gives an error or a value from wrong bytes.
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

    /// A value with a header, and where it ends.
    #[inline]
    fn variable(&self, align: Align) -> Result<(&'a [u8], usize), ColumnProblem> {
        // What is not zero is no padding: a header of one byte, or an aligned one.
        let start = match self.data.get(self.offset) {
            Some(0) => align.up(self.offset),
            Some(_) => self.offset,
            None => return Err(ColumnProblem::PastEnd),
        };
        let rest = self.data.get(start..).ok_or(ColumnProblem::PastEnd)?;
        let length = varlena::stored_length(rest)?;
        Ok((rest.get(..length).ok_or(ColumnProblem::PastEnd)?, start + length))
    }

    /// A value up to its NUL, and where the NUL ends.
    fn text(&self) -> Result<(&'a [u8], usize), ColumnProblem> {
        let rest = self.data.get(self.offset..).ok_or(ColumnProblem::PastEnd)?;
        let length = rest.iter().position(|&byte| byte == 0).ok_or(ColumnProblem::PastEnd)?;
        Ok((rest.get(..length).unwrap_or_default(), self.offset + length + 1))
    }

    /// Bytes of the data that the columns so far have used, padding before them included.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// All columns of a tuple, in order; as many as there are `attributes`, up to the first that is not
/// sound.
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
