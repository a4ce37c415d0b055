//! **Forming index tuples**: the entries of a B-tree leaf, and the separators that a split makes.
//!
//! ```text
//!   last on the left   (5, 'abc', 'x')         the first column that differs ends the separator:
//!   first on the right (5, 'abd', 'k')    ──▶  (5, 'abd')      as the high key of the left page,
//!                                              (5, 'abd') → 9  as the downlink to the right page
//!
//!   if no key column differs:  (5, 'abc', 'x'), and the heap TID of the last entry on the left
//! ```
//! [`TupleBuilder`](crate::TupleBuilder) makes the columns of an entry, because they have the same layout in tables and
//! indexes. [`crate::btree`] decodes what is formed here. Mirrors `index_form_tuple` in PostgreSQL's
//! `access/common/indextuple.c` and `_bt_truncate` in `access/nbtree/nbtutils.c`.

use crate::btree::{
    ALTERNATIVE, Entry, Fault, HAS_NULLS, HAS_ROW, INDEX_SIZE_MASK, KeyLayout, MAX_INDEX_KEYS,
};
use crate::ids::{BlockNo, Tid};
use crate::little_endian::put;
use crate::page_builder::NewTuple;

/// The longest entry of a leaf in bytes (`BTMaxItemSize`): three must fit on a page, each as a separator with a row.
pub const ENTRY_MAX: usize = 2704;

/// In `t_info`: some column that is not null has variable length (`INDEX_VAR_MASK`).
const HAS_VAR_WIDTH: u16 = 0x4000;

/// Size of the header, and of the row at the end of a separator, in bytes.
const UNIT: usize = 8;

const BITMAP: usize = MAX_INDEX_KEYS / 8;

/// Why an entry can't be formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IndexTupleError {
    /// An index has at most 32 columns.
    #[error("{columns} index columns found, at most {MAX_INDEX_KEYS} expected")]
    Columns {
        /// The number of columns.
        columns: u16,
    },
    /// The entry is too long for a B-tree.
    #[error("index row size {size} exceeds btree version 4 maximum {ENTRY_MAX}")]
    TooLong {
        /// Its size in bytes.
        size: usize,
    },
}

/// The parts of a tuple behind its header.
struct Columns<'a> {
    /// Empty if no column is null.
    nulls: &'a [u8],
    has_var_width: bool,
    data: &'a [u8],
}

impl Columns<'_> {
    /// A tuple with these columns, and `extra` bytes of zeros at its end. `size` is the size of all.
    fn form(&self, extra: usize) -> Vec<u8> {
        let mut bytes = vec![0; UNIT];
        let mut info = if self.has_var_width { HAS_VAR_WIDTH } else { 0 };
        if !self.nulls.is_empty() {
            info |= HAS_NULLS;
            bytes.extend_from_slice(self.nulls);
            bytes.resize(2 * UNIT, 0);
        }
        bytes.extend_from_slice(self.data);
        bytes.resize(bytes.len().next_multiple_of(UNIT) + extra, 0);
        // Only a tuple that is refused, or was made from a damaged one, is longer than the mask.
        info |= bytes.len() as u16 & INDEX_SIZE_MASK;
        put(&mut bytes, 6, info.to_le_bytes());
        bytes
    }
}

/// The leaf entry of a row.
///
/// # Errors
/// [`IndexTupleError`].
pub fn leaf_entry(columns: &NewTuple<'_>, row: Tid) -> Result<Vec<u8>, IndexTupleError> {
    if usize::from(columns.natts) > MAX_INDEX_KEYS {
        return Err(IndexTupleError::Columns { columns: columns.natts });
    }
    let NewTuple { nulls, var_width: has_var_width, data, .. } = *columns;
    let mut bytes = Columns { nulls, has_var_width, data }.form(0);
    if bytes.len() > ENTRY_MAX {
        return Err(IndexTupleError::TooLong { size: bytes.len() });
    }
    put(&mut bytes, 0, row.to_bytes());
    Ok(bytes)
}

/// The separator between the last entry of a leaf and the first one of its right sibling: the shortest prefix of the
/// right key that is above the left one.
///
/// # Errors
/// An entry is damaged, or their order is unknown.
pub fn separator(
    layout: &KeyLayout,
    left: &Entry<'_>,
    right: &Entry<'_>,
) -> Result<Vec<u8>, Fault> {
    let keys = layout.keys();
    let equal = layout.equal_columns(left, right)?;
    let row = left.last_row().filter(|_| equal == keys.len());
    let kept = keys.get(..equal + 1).unwrap_or(keys);
    let (nulls, data) = right.stored();
    let mut attributes = right.attributes(kept);
    let (mut bitmap, mut has_nulls, mut has_var_width) = ([0; BITMAP], false, false);
    for (at, column) in kept.iter().enumerate() {
        match attributes.next().transpose()?.flatten() {
            Some(_) => {
                has_var_width |= column.attribute.len < 0;
                bitmap[at / 8] |= 1 << (at % 8);
            }
            None => has_nulls = !nulls.is_empty(),
        }
    }
    let columns = Columns {
        nulls: if has_nulls { &bitmap } else { &[] },
        has_var_width,
        data: data.get(..attributes.offset()).unwrap_or_default(),
    };
    let mut bytes = columns.form(if row.is_some() { UNIT } else { 0 });
    let has_row = if row.is_some() { HAS_ROW } else { 0 };
    set_link(&mut bytes, Tid { block: 0, item: kept.len() as u16 | has_row });
    if let Some(row) = row {
        let at = bytes.len() - Tid::SIZE;
        put(&mut bytes, at, row.to_bytes());
    }
    Ok(bytes)
}

/// The downlink to a page: the high key of its left sibling, and its block.
pub fn downlink(high_key: &[u8], child: BlockNo) -> Vec<u8> {
    let mut bytes = high_key.to_vec();
    let [high, low] = [(child >> 16) as u16, child as u16].map(u16::to_le_bytes);
    put(&mut bytes, 0, high);
    put(&mut bytes, 2, low);
    bytes
}

/// The first downlink of a page, whose key is minus infinity.
pub fn first_downlink(child: BlockNo) -> [u8; UNIT] {
    let mut bytes = [0; UNIT];
    put(&mut bytes, 6, (UNIT as u16).to_le_bytes());
    set_link(&mut bytes, Tid { block: child, item: 0 });
    bytes
}

/// Makes a tuple a separator. The line pointer number of `link` counts its columns.
fn set_link(bytes: &mut [u8], link: Tid) {
    put(bytes, 0, link.to_bytes());
    if let Some(high) = bytes.get_mut(7) {
        *high |= (ALTERNATIVE >> 8) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Align;
    use crate::TupleBuilder;
    use crate::btree::{KeyColumn, Order, Target};
    use crate::deform::Attribute;
    use crate::test_data::from_hex;

    fn layout(keys: usize) -> KeyLayout {
        let column = |len, order| KeyColumn {
            attribute: Attribute { len, align: Align::Int },
            order,
            descending: false,
            nulls_first: false,
        };
        let columns =
            vec![column(4, Order::Int4), column(-1, Order::Bytes), column(4, Order::Int4)];
        KeyLayout::new(columns, keys)
    }

    fn row(item: u16) -> Tid {
        Tid { block: 0x0001_0002, item }
    }

    type Values<'a> = (Option<i32>, Option<&'a str>, Option<i32>);

    fn entry((first, second, third): Values<'_>, item: u16) -> Vec<u8> {
        let mut builder = TupleBuilder::new();
        let numbers = |builder: &mut TupleBuilder, value: Option<i32>| {
            match value {
                Some(value) => builder.int4(value),
                None => builder.null(),
            };
        };
        numbers(&mut builder, first);
        match second {
            Some(text) => builder.text(text),
            None => builder.null(),
        };
        numbers(&mut builder, third);
        leaf_entry(&builder.tuple(), row(item)).expect("short enough")
    }

    /// These bytes are those of a server of version 18, except for the blocks.
    #[test]
    fn entries_and_downlinks() {
        let mut key = TupleBuilder::new();
        let number = leaf_entry(&key.int4(-5).tuple(), Tid { block: 68, item: 18 });
        assert_eq!(number, Ok(from_hex("0000 4400 1200 1000 fbffffff 00000000")));
        key.clear();
        let null = leaf_entry(&key.null().tuple(), Tid { block: 68, item: 17 });
        assert_eq!(null, Ok(from_hex("0000 4400 1100 1080 00000000 00000000")));
        assert_eq!(first_downlink(1).to_vec(), from_hex("0000 0100 0000 0820"));
        let high = from_hex("0000 0000 0100 1020 6e010000 00000000");
        assert_eq!(downlink(&high, 0x0003_0002)[..8], from_hex("0300 0200 0100 1020"));
        let text = entry((Some(1), Some("ab"), None), 3);
        let expected = "0100 0200 0300 18c0 03000000 00000000 01000000 07616200";
        assert_eq!(text, from_hex(expected));
    }

    #[test]
    fn what_is_refused() {
        let mut long = TupleBuilder::new();
        assert!(leaf_entry(&long.text("x".repeat(ENTRY_MAX - 12)).tuple(), row(1)).is_ok());
        long.clear();
        let refused = leaf_entry(&long.text("x".repeat(ENTRY_MAX - 11)).tuple(), row(1));
        assert_eq!(refused, Err(IndexTupleError::TooLong { size: ENTRY_MAX + 8 }));
        long.clear();
        (0..33).for_each(|_| {
            long.bool(true);
        });
        assert_eq!(
            leaf_entry(&long.tuple(), row(1)),
            Err(IndexTupleError::Columns { columns: 33 })
        );
    }

    #[track_caller]
    fn check(keys: usize, left: Values<'_>, right: Values<'_>, expected: (usize, bool, usize)) {
        let layout = layout(keys);
        let (left, right) = (entry(left, 7), entry(right, 8));
        let parsed = |bytes| Entry::of_leaf(1, bytes).expect("sound");
        let (left, right) = (parsed(&left), parsed(&right));
        let bytes = separator(&layout, &left, &right).expect("sound");
        let made = Entry::of_separator(1, &bytes).expect("sound");
        let has_row = made.first_row() == Some(row(7));
        assert_eq!((made.columns(0), has_row, bytes.len()), expected);
        assert!(matches!(made.target(), Target::Child { .. }));
        let order = |one: &Entry<'_>, other: &Entry<'_>| {
            layout.compare_entries(one, other, true).expect("known")
        };
        assert!(order(&left, &made).is_le() && order(&made, &right).is_lt());
    }

    #[test]
    fn separators_are_as_short_as_they_can_be() {
        let (ab, long) = (Some("ab"), "x".repeat(200));
        check(3, (Some(1), ab, Some(1)), (Some(2), ab, Some(0)), (1, false, 16));
        check(3, (Some(1), ab, Some(1)), (Some(1), Some("b"), None), (2, false, 16));
        check(3, (Some(1), ab, Some(1)), (Some(1), ab, Some(2)), (3, false, 24));
        check(3, (Some(1), ab, Some(1)), (Some(1), ab, None), (3, false, 24));
        check(3, (Some(1), ab, Some(1)), (Some(1), ab, Some(1)), (3, true, 32));
        check(3, (Some(1), ab, None), (Some(1), None, None), (2, false, 24));
        check(3, (None, None, None), (None, None, None), (3, true, 24));
        check(3, (Some(1), None, None), (None, Some(&long), None), (1, false, 16));
        // INCLUDE columns are never part of a separator.
        check(1, (Some(1), ab, Some(1)), (Some(2), Some(&long), Some(1)), (1, false, 16));
        check(1, (Some(1), ab, Some(1)), (Some(1), Some(&long), Some(1)), (1, true, 24));
    }
}
