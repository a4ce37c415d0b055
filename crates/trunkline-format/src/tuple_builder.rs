//! **Forming tuples**: builds a tuple's bytes from its values, like `heap_form_tuple`.
//!
//! We align each value as required by its type, relative to the start of the tuple's data. A null
//! takes up no space, and its bit in the null bitmap is 0. A text of up to 126 bytes gets a
//! one-byte varlena header and is not aligned. A longer text gets a four-byte header and is aligned
//! to 4 bytes.
//!
//! ```text
//!   int2 7 │ null │ text "ab" │ int8 9         bitmap: 1101
//!   07 00         │ 07 61 62  │ (3) │ 09 00 …
//!   0               2           5     8     16
//! ```
//!
//! We never compress a value or move it to a TOAST table. A server would have done that to a long
//! value, but it can read the value just as well if it is stored inline.

use crate::heap_tuple::MAX_HEAP_ATTRIBUTES;
use crate::page_builder::NewTuple;

/// The longest text with a one-byte header: 127 bytes with its header.
const SHORT_VARLENA_MAX: usize = 126;

/// Size of the largest null bitmap, in bytes.
const BITMAP: usize = (MAX_HEAP_ATTRIBUTES as usize).div_ceil(8);

/// The values of one tuple, in column order.
///
/// ```
/// use trunkline_format::{HeapPageBuilder, TupleBuilder};
/// let mut page = HeapPageBuilder::new(0);
/// let mut row = TupleBuilder::new();
/// row.int4(1).text("one").null().float8(1.0);
/// assert_eq!(page.push(&row.tuple())?, 1);
/// # Ok::<(), trunkline_format::page_builder::PushError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TupleBuilder {
    data: Vec<u8>,
    present: [u8; BITMAP],
    natts: u16,
    has_null: bool,
    var_width: bool,
    xmin: Option<u32>,
}

impl Default for TupleBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl TupleBuilder {
    /// Creates a tuple without columns.
    pub fn new() -> Self {
        Self {
            data: Vec::new(),
            present: [0; BITMAP],
            natts: 0,
            has_null: false,
            var_width: false,
            xmin: None,
        }
    }

    /// Removes all values but keeps the allocated memory for the next tuple.
    pub fn clear(&mut self) -> &mut Self {
        let mut data = std::mem::take(&mut self.data);
        data.clear();
        *self = Self { data, ..Self::new() };
        self
    }

    /// Sets the inserting transaction, but not its hint bits, so a reader must look in the commit
    /// log to find out whether the tuple is visible. If this is not called, the tuple is frozen.
    pub fn xmin(&mut self, xmin: u32) -> &mut Self {
        self.xmin = Some(xmin);
        self
    }

    /// Adds an `int2`.
    pub fn int2(&mut self, value: i16) -> &mut Self {
        self.fixed(2, &value.to_le_bytes())
    }

    /// Adds an `int4`. `oid`, `date` and `float4` have the same layout.
    pub fn int4(&mut self, value: i32) -> &mut Self {
        self.fixed(4, &value.to_le_bytes())
    }

    /// Adds an `int8`. `timestamp` has the same layout.
    pub fn int8(&mut self, value: i64) -> &mut Self {
        self.fixed(8, &value.to_le_bytes())
    }

    /// Adds a `float8`.
    pub fn float8(&mut self, value: f64) -> &mut Self {
        self.fixed(8, &value.to_le_bytes())
    }

    /// Adds a `bool`.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.fixed(1, &[u8::from(value)])
    }

    /// Adds a `text`, `varchar` or `bytea` with the shortest possible header.
    pub fn text(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        let value = value.as_ref();
        if value.len() > SHORT_VARLENA_MAX {
            return self.text_unpacked(value);
        }
        self.var_width = true;
        // The lowest bit marks a one-byte header. The length includes the header.
        self.fixed(1, &[(value.len() as u8 + 1) << 1 | 1]).extend(value)
    }

    /// Adds a `text` that has a four-byte header even if it is short, as in a column with
    /// `STORAGE PLAIN`.
    pub fn text_unpacked(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        let value = value.as_ref();
        self.var_width = true;
        // The length field has 30 bits. This is enough, because a value that doesn't fit into it
        // would not fit on any page.
        let length = (value.len() as u32).wrapping_add(4) << 2;
        self.fixed(4, &length.to_le_bytes()).extend(value)
    }

    /// Adds a `char(width)`. `value` is padded with blanks to `width` characters. If it is longer
    /// than that, it is not truncated.
    pub fn bpchar(&mut self, value: &str, width: usize) -> &mut Self {
        self.text(format!("{value:width$}"))
    }

    /// Adds a null.
    pub fn null(&mut self) -> &mut Self {
        self.natts = self.natts.saturating_add(1);
        self.has_null = true;
        self
    }

    /// The finished tuple, ready for [`crate::HeapPageBuilder::push`].
    pub fn tuple(&self) -> NewTuple<'_> {
        let bitmap = self.present.get(..usize::from(self.natts.div_ceil(8)));
        NewTuple {
            natts: self.natts,
            nulls: if self.has_null { bitmap.unwrap_or_default() } else { &[] },
            var_width: self.var_width,
            xmin: self.xmin,
            data: &self.data,
        }
    }

    /// Adds an attribute that starts with `bytes`, aligned to `align`.
    fn fixed(&mut self, align: usize, bytes: &[u8]) -> &mut Self {
        // There is no bit in the bitmap for attributes beyond the limit. This is OK, because the
        // page builder will reject such a tuple.
        if let Some(byte) = self.present.get_mut(usize::from(self.natts / 8)) {
            *byte |= 1 << (self.natts % 8);
        }
        self.natts = self.natts.saturating_add(1);
        self.data.resize(self.data.len().next_multiple_of(align), 0);
        self.extend(bytes)
    }

    fn extend(&mut self, bytes: &[u8]) -> &mut Self {
        self.data.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_builder::{HeapPageBuilder, PushError};

    #[track_caller]
    fn check(row: &TupleBuilder, data: &[u8], nulls: &[u8]) {
        let tuple = row.tuple();
        assert_eq!((tuple.data, tuple.nulls), (data, nulls));
    }

    #[test]
    fn alignment_and_nulls() {
        let mut row = TupleBuilder::new();
        check(
            row.int2(7).null().text("ab").int8(9),
            b"\x07\0\x07ab\0\0\0\x09\0\0\0\0\0\0\0",
            &[0b1101],
        );
        row.clear();
        check(
            row.bool(true).int4(-1).bool(false).int2(2),
            b"\x01\0\0\0\xff\xff\xff\xff\0\0\x02\0",
            &[],
        );
        assert!(!row.tuple().var_width);
        row.clear();
        check(row.float8(1.0).text_unpacked("x"), b"\0\0\0\0\0\0\xf0\x3f\x14\0\0\0x", &[]);
        row.clear();
        check(row.bool(true).text_unpacked(""), b"\x01\0\0\0\x10\0\0\0", &[]);
        row.clear();
        check(row.null(), b"", &[0]);
        (0..8).for_each(|_| {
            row.bool(true);
        });
        check(&row, &[1; 8], &[0b1111_1110, 1]);
    }

    #[test]
    fn text_headers() {
        let mut row = TupleBuilder::new();
        assert_eq!(row.text([b'a'; 126]).tuple().data[..2], [0xFF, b'a']);
        row.clear();
        assert_eq!(
            row.bool(true).text([b'a'; 127]).tuple().data[..9],
            [1, 0, 0, 0, 0x0C, 2, 0, 0, b'a']
        );
        row.clear();
        check(row.bpchar("é", 3), "\u{b}é  ".as_bytes(), &[]);
    }

    #[test]
    fn too_many() {
        let mut row = TupleBuilder::new();
        (0..1600).for_each(|_| {
            row.null();
        });
        let mut page = HeapPageBuilder::new(0);
        assert_eq!(page.push(&row.tuple()), Ok(1));
        assert_eq!(page.push(&row.bool(true).tuple()), Err(PushError::TooManyAttributes));
        (0..70_000).for_each(|_| {
            row.bool(true);
        });
        assert_eq!(page.push(&row.tuple()), Err(PushError::TooManyAttributes));
        row.clear();
        assert_eq!(page.push(&row.text([0; 70_000]).tuple()), Err(PushError::Full));
    }
}
