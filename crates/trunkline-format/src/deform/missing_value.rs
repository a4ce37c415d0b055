//! The value that rows have for a column that was added after them.
//!
//! The catalog keeps it as an array of one element (`pg_attribute.attmissingval`), so that a column
//! of any type can have one:
//!
//! ```text
//!   dimensions 1 │ no bitmap 0 │ element type │ length 1 │ lower bound 1 │ the element
//!   0              4             8              12         16              20
//! ```
//! The array's own header of four bytes stands before that, and alignment counts it.

use super::{Attribute, Column, Deformer};
use crate::little_endian::u32_at;
use crate::varlena::HEADER;

/// Where the element begins, from the start of the array's payload.
const ELEMENT: usize = 20;

/// The stored datum in `array`, which is the payload of an `attmissingval`, for a column laid out as
/// `attribute` says; in the same form as [`Column::Value`] has it. `None` if it is anything but an
/// array of one element that is not null.
pub fn missing_value(array: &[u8], attribute: Attribute) -> Option<&[u8]> {
    let word = |at| u32_at(array, at);
    // The offset of the data is 0 where there is no null bitmap.
    if (word(0)?, word(4)?, word(12)?) != (1, 0, 1) {
        return None;
    }
    // With the header before it the element is at a multiple of 8, whatever its alignment.
    const _: () = assert!((ELEMENT + HEADER).is_multiple_of(8));
    Deformer::new(1, &[], array.get(ELEMENT..)?).next(attribute).ok().and_then(Column::value)
}
