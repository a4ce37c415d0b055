//! **Sequences**: a sequence has one page with a single tuple, which is updated in place without
//! regard to MVCC.
//!
//! ```text
//!   24       28                       8120 …                  8184        8192
//!   ├────────┼──────── hole ────────────┼───────────────────────┼───────────┤
//!   │pointer │                          │ last │ log │ called   │ 0x1717    │
//!   └────────┴──────────────────────────┴───────────────────────┴───────────┘
//! ```
//! To reduce the number of WAL records, a server logs 32 values in advance, so up to 32 values can
//! be lost if it crashes. After a clean shutdown, however, the tuple contains the exact value. The
//! sequence's increment and limits are in `pg_sequence`, not here.
//!
//! Mirrors `FormData_pg_sequence_data` in PostgreSQL's `commands/sequence.h`.

use crate::heap_tuple::HeapTuple;
use crate::ids::PageBytes;
use crate::little_endian::read_at;
use crate::page::{LinePointerFlags, PageHeader, line_pointer};

/// `SEQ_MAGIC`: the first word in a sequence page's special space.
pub(crate) const MAGIC: u32 = 0x1717;

/// The state of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    /// The last value returned, or the start value if none was returned yet.
    pub last_value: i64,
    /// `log_cnt`: the number of values still covered by the last WAL record.
    pub log_count: i64,
    /// Whether `last_value` has been returned.
    pub is_called: bool,
}

/// The reason why a page is not a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    /// The special space does not start with a sequence's magic number.
    #[error("not a sequence: {}", describe_magic(*found))]
    Magic {
        /// The word found there; `None` if the page has no special space.
        found: Option<u32>,
    },
    /// The first line pointer does not point at a tuple.
    #[error("a sequence without a row")]
    Row,
    /// The tuple is too short.
    #[error("a sequence's row of {found} bytes, expected 17")]
    Length {
        /// Size of the tuple's data in bytes. It must be at least 17.
        found: usize,
    },
}

fn describe_magic(found: Option<u32>) -> String {
    match found {
        Some(found) => format!("magic 0x{found:X} found, 0x{MAGIC:X} expected"),
        None => "no special space".to_owned(),
    }
}

impl Sequence {
    /// Parses block 0 of a sequence.
    ///
    /// # Errors
    ///
    /// See [`SequenceError`].
    pub fn parse(page: &PageBytes) -> Result<Self, SequenceError> {
        let found = read_at::<u32>(page, usize::from(PageHeader::parse(page).special));
        if found != Some(MAGIC) {
            return Err(SequenceError::Magic { found });
        }
        let pointer = line_pointer(page, 1).filter(|lp| lp.flags == LinePointerFlags::Normal);
        let item = pointer.and_then(|pointer| pointer.item(page)).ok_or(SequenceError::Row)?;
        let data = HeapTuple::parse(1, item).map_err(|_| SequenceError::Row)?.data();
        Self::read(data).ok_or(SequenceError::Length { found: data.len() })
    }

    fn read(data: &[u8]) -> Option<Self> {
        let (last_value, log_count) = (read_at::<i64>(data, 0)?, read_at::<i64>(data, 8)?);
        Some(Self { last_value, log_count, is_called: read_at::<u8>(data, 16)? != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BLOCK_SIZE;
    use crate::page_builder::HeapPageBuilder;
    use crate::test_data::{XorShift, put};
    use crate::tuple_builder::TupleBuilder;

    /// `create sequence s increment 5 start 100`, called twice.
    fn page() -> PageBytes {
        let mut builder = HeapPageBuilder::new(0);
        let mut row = TupleBuilder::new();
        // Make the tuple longer, so that it ends before the special space.
        row.int8(0).int8(0);
        builder.push(&row.tuple()).expect("room");
        row.clear();
        row.int8(105).int8(31).bool(true);
        builder.push(&row.tuple()).expect("room");
        let mut page = builder.finish(false);
        let second: [u8; 4] = page[28..32].try_into().expect("four bytes");
        put(&mut page, 24, &second);
        put(&mut page, 16, &8184_u16.to_le_bytes());
        put(&mut page, 8184, &MAGIC.to_le_bytes());
        page
    }

    #[test]
    fn the_row() {
        let expected = Sequence { last_value: 105, log_count: 31, is_called: true };
        assert_eq!(Sequence::parse(&page()), Ok(expected));
    }

    #[test]
    fn other_pages() {
        let parse = |at, bytes: &[u8]| {
            let mut page = page();
            put(&mut page, at, bytes);
            Sequence::parse(&page)
        };
        assert_eq!(parse(8184, &[0]), Err(SequenceError::Magic { found: Some(0x1700) }));
        assert_eq!(parse(16, &[0, 32]), Err(SequenceError::Magic { found: None }));
        assert_eq!(parse(24, &[0; 4]), Err(SequenceError::Row));
        assert_eq!(parse(26, &[0, 0]), Err(SequenceError::Row));
        let empty = [0; BLOCK_SIZE];
        assert_eq!(Sequence::parse(&empty), Err(SequenceError::Magic { found: Some(0) }));
    }

    #[test]
    fn any_bytes() {
        let mut random = XorShift(0x5E9);
        for _ in 0..20_000 {
            let mut flipped = page();
            for _ in 0..3 {
                let near = [24, 16, 8184, 8100][random.below(4)] + random.below(8);
                flipped[near] ^= 1 << random.below(8);
            }
            let _ = Sequence::parse(&flipped);
        }
    }
}
