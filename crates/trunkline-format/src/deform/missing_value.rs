//! `attmissingval`: a column's value in rows written before the column was added.
//!
//! Since PostgreSQL 11, `ADD COLUMN … DEFAULT` doesn't rewrite the table. It stores the default in
//! `pg_attribute` as a one-element array, so that one catalog column can hold values of any type:
//!
//! ```text
//!   dimensions 1 │ no bitmap 0 │ element type │ length 1 │ lower bound 1 │ the element
//!   0              4             8              12         16              20
//! ```
//! The array's four-byte varlena header precedes these fields, and alignment is relative to it.

use super::{Attribute, Column, Deformer};
use crate::little_endian::u32_at;
use crate::varlena::HEADER;

/// The offset of the element in the array's payload.
const ELEMENT: usize = 20;

/// Extracts the datum from `array`, the payload of an `attmissingval`, in the form of
/// [`Column::Value`]. `None` unless it is a one-element array and the element isn't null.
pub fn missing_value(array: &[u8], attribute: Attribute) -> Option<&[u8]> {
    let word = |at| u32_at(array, at);
    // In an array without nulls, the data offset is 0.
    if (word(0)?, word(4)?, word(12)?) != (1, 0, 1) {
        return None;
    }
    // Including the varlena header, the element is at offset 24. That is a multiple of 8 and
    // therefore satisfies every alignment.
    const _: () = assert!((ELEMENT + HEADER).is_multiple_of(8));
    Deformer::new(1, &[], array.get(ELEMENT..)?).next(attribute).ok().and_then(Column::value)
}
