//! Builds a stored array. See [`super::ArrayView`] for the layout.
//!
//! ```
//! use trunkline_format::{Align, Oid, deform::Attribute};
//! use trunkline_sql::functions::{ArrayBuilder, ArrayView};
//! let int4 = Attribute { len: 4, align: Align::Int };
//! let mut builder = ArrayBuilder::new(Oid(23), int4);
//! builder.push(Some(&7_i32.to_le_bytes()))?;
//! builder.push(None)?;
//! let payload = builder.finish_list()?;
//! assert_eq!(ArrayView::parse(&payload)?.len(), 2);
//! # Ok::<(), trunkline_sql::SqlError>(())
//! ```

use trunkline_format::Oid;
use trunkline_format::deform::Attribute;

use super::view::{DIMENSIONS_MAX, Dimension, ELEMENTS_MAX};
use crate::error::{SqlError, SqlState};

/// The size of the varlena header that offsets include.
const HEADER: usize = 4;
/// `MaxAllocSize`: the most bytes that a value may have, with its header.
const VALUE_MAX: usize = 0x3FFF_FFFF;

/// An array under construction.
#[derive(Debug, Clone)]
pub struct ArrayBuilder {
    element: Oid,
    attribute: Attribute,
    data: Vec<u8>,
    present: Vec<bool>,
    has_nulls: bool,
}

fn too_large() -> SqlError {
    let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

impl ArrayBuilder {
    /// An empty array of elements of the given type.
    pub fn new(element: Oid, attribute: Attribute) -> Self {
        let (data, present) = (Vec::new(), Vec::new());
        Self { element, attribute, data, present, has_nulls: false }
    }

    /// Appends an element: as stored, without a varlena header, or null.
    ///
    /// # Errors
    /// The array is too large.
    pub fn push(&mut self, value: Option<&[u8]>) -> Result<(), SqlError> {
        self.present.push(value.is_some());
        self.has_nulls |= value.is_none();
        let Some(value) = value else { return Ok(()) };
        let size = self.data.len().saturating_add(value.len() + 2 * HEADER);
        if size > VALUE_MAX || self.present.len() > ELEMENTS_MAX {
            return Err(too_large());
        }
        self.data.resize(self.attribute.align.up(self.data.len()), 0);
        if self.attribute.len == -1 {
            let word = ((value.len() + HEADER) as u32) << 2;
            self.data.extend_from_slice(&word.to_le_bytes());
        }
        self.data.extend_from_slice(value);
        if self.attribute.len == -2 {
            self.data.push(0);
        }
        Ok(())
    }

    /// The number of elements so far.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// Whether there is no element yet.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// The memory used, in bytes.
    pub fn size(&self) -> usize {
        self.data.capacity() + self.present.capacity()
    }

    /// The array with one dimension, whose first subscript is 1.
    ///
    /// # Errors
    /// As for [`ArrayBuilder::finish`].
    pub fn finish_list(self) -> Result<Vec<u8>, SqlError> {
        let size = self.present.len();
        self.finish(&[Dimension { size, lower: 1 }])
    }

    /// The array with these dimensions, without a varlena header.
    ///
    /// # Errors
    /// The subscripts don't fit into 32 bits, or the dimensions don't have that many elements, which
    /// is a bug in the caller.
    pub fn finish(self, dimensions: &[Dimension]) -> Result<Vec<u8>, SqlError> {
        let count = self.present.len();
        let dimensions = if count == 0 { &[] } else { dimensions };
        let expected = dimensions.iter().map(|dimension| dimension.size).product::<usize>();
        if count > 0 && (expected != count || dimensions.len() > DIMENSIONS_MAX) {
            return Err(SqlError::internal("dimensions of another number of elements"));
        }
        let rank = dimensions.len();
        let bitmap = if self.has_nulls { count.div_ceil(8) } else { 0 };
        let start = (HEADER + 12 + rank * 8 + bitmap).next_multiple_of(8);
        let offset = if self.has_nulls { start as u32 } else { 0 };
        let mut payload = Vec::with_capacity(start + self.data.len());
        payload.extend_from_slice(&(rank as u32).to_le_bytes());
        payload.extend_from_slice(&offset.to_le_bytes());
        payload.extend_from_slice(&self.element.0.to_le_bytes());
        if count == 0 {
            return Ok(payload);
        }
        for dimension in dimensions {
            payload.extend_from_slice(&(dimension.size as u32).to_le_bytes());
        }
        for dimension in dimensions {
            dimension.lower.checked_add(dimension.size as i32).ok_or_else(|| {
                let message = "array lower bound is too large: ";
                let message = format!("{message}{}", dimension.lower);
                SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            })?;
            payload.extend_from_slice(&dimension.lower.to_le_bytes());
        }
        if self.has_nulls {
            for bits in self.present.chunks(8) {
                let byte = bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
                payload.push(byte);
            }
        }
        payload.resize(start - HEADER, 0);
        payload.extend_from_slice(&self.data);
        Ok(payload)
    }
}
