//! `attmissingval`: the value of a column in rows from before it was added.
//!
//! `ADD COLUMN … DEFAULT` does not rewrite the table since PostgreSQL 11. It stores the default as an
//! array of one element, so that one catalog column can hold values of any type:
//!
//! ```text
//!   dimensions 1 │ no bitmap 0 │ element type │ length 1 │ lower bound 1 │ the element
//!   0              4             8              12         16              20
//! ```
//! The array's varlena header of four bytes comes before that, and counts for alignment.

use super::{Attribute, Column, Deformer};
use crate::little_endian::u32_at;
use crate::varlena::HEADER;

/// The offset of the element in the array's payload.
const ELEMENT: usize = 20;

/// The datum in `array`, the payload of an `attmissingval`, in the form of [`Column::Value`]. `None`
/// unless it is an array of one element that is not null.
pub fn missing_value(array: &[u8], attribute: Attribute) -> Option<&[u8]> {
    let word = |at| u32_at(array, at);
    // The data offset is 0 in an array without nulls.
    if (word(0)?, word(4)?, word(12)?) != (1, 0, 1) {
        return None;
    }
    // After the varlena header the element is at a multiple of 8, so any alignment is satisfied.
    const _: () = assert!((ELEMENT + HEADER).is_multiple_of(8));
    Deformer::new(1, &[], array.get(ELEMENT..)?).next(attribute).ok().and_then(Column::value)
}
