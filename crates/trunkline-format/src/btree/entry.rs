//! **Index tuples**: the key, and the heap tid, posting list or child page that it points to.
//!
//! ```text
//!   0          6      8
//!   ├─ tid ────┼ info ┼ [null bitmap, pad to 16] ── key ── [rows of a list, or a row] ─┤ size
//!
//!   info: bits 0–12 size │ 0x2000 tid means something else │ 0x8000 has nulls
//!   tid then:  block = where the list starts, item = 0x2000 | rows       (leaf)
//!              block = the child,             item = columns | 0x1000 if a row follows the key
//! ```

use super::fault::Fault;
use super::key::KeyColumn;
use crate::deform::Deformer;
use crate::ids::{BlockNo, Tid};
use crate::little_endian::read_at;

/// `INDEX_MAX_KEYS`: the maximum number of columns in an index.
pub const MAX_INDEX_KEYS: usize = 32;

/// In `t_info`: the size of the tuple (`INDEX_SIZE_MASK`).
pub(crate) const SIZE: u16 = 0x1FFF;
/// In `t_info`: `t_tid` is not that of a row (`INDEX_ALT_TID_MASK`).
pub(crate) const ALTERNATIVE: u16 = 0x2000;
/// In `t_info`: there is a null bitmap.
pub(crate) const HAS_NULLS: u16 = 0x8000;
/// In the line pointer number of such a `t_tid`: the tuple is a posting list.
pub(crate) const IS_POSTING: u16 = 0x2000;
/// In the line pointer number of such a `t_tid`: a row follows the key of a separator (`BT_PIVOT_HEAP_TID_ATTR`).
pub(crate) const HAS_ROW: u16 = 0x1000;
/// In the line pointer number of such a `t_tid`: the number of columns or, in a posting list, of rows.
pub(crate) const COUNT: u16 = 0x0FFF;

/// Size of the index tuple header (`IndexTupleData`) in bytes.
const HEADER: usize = 8;
/// Number of bytes that a pivot tuple needs for its heap TID, if it has one.
const ROW_ROOM: usize = 8;

/// The kind of tuple that an entry must be, given its position in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A leaf tuple, which points at heap tuples.
    Leaf,
    /// A separator or a high key.
    Pivot,
    /// The first separator on a page, which has no key.
    First,
}

/// What an entry points at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// A single heap tuple.
    Row(Tid),
    /// Several heap tuples with the same key: a posting list.
    Rows(Tids<'a>),
    /// A child page. In a high key, the downlink is meaningless.
    Child {
        /// The child page's block number.
        block: BlockNo,
        /// If several pivot tuples have the same key, the heap TID that distinguishes this one from
        /// the others (since PostgreSQL 12). `None` counts as minus infinity.
        row: Option<Tid>,
    },
}

/// A posting list's TIDs, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tids<'a>(&'a [[u8; Tid::SIZE]]);

impl Tids<'_> {
    /// The number of TIDs.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether the posting list is empty.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for Tids<'a> {
    type Item = Tid;
    type IntoIter = std::iter::Map<std::slice::Iter<'a, [u8; 6]>, fn(&[u8; 6]) -> Tid>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|bytes| Tid::from_bytes(*bytes))
    }
}

/// An index tuple on its page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    pub(super) item: u16,
    pub(super) dead: bool,
    pub(super) size: u16,
    target: Target<'a>,
    /// The number of key columns, or `None` if the entry has all of the index's columns.
    columns: Option<u16>,
    /// The null bitmap, or an empty slice if no column is null. If there is a bitmap, it always has
    /// room for the maximum number of columns.
    nulls: &'a [u8],
    data: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(super) fn parse(item: u16, bytes: &'a [u8], role: Role) -> Result<Self, Fault> {
        let fault = Fault::Item { item };
        let tid = Tid::from_bytes(read_at(bytes, 0).ok_or(fault)?);
        let info = read_at::<u16>(bytes, 6).ok_or(fault)?;
        let size = info & SIZE;
        let length = bytes.len() as u16;
        // In version 2 indexes, the first pivot tuple on a page still has its old tuple length,
        // even though its key has been removed.
        if size != length && role != Role::First {
            return Err(Fault::Size { item, found: size, expected: length });
        }
        let alternative = info & ALTERNATIVE != 0;
        let (mut end, mut columns, target);
        match (role, alternative) {
            (Role::Leaf, false) => {
                (end, columns) = (bytes.len(), None);
                target = Target::Row(tid);
            }
            (Role::Leaf, true) => {
                if tid.item & IS_POSTING == 0 {
                    return Err(Fault::Kind { item });
                }
                (end, columns) = (tid.block as usize, None);
                target = Target::Rows(posting(item, bytes, tid)?);
            }
            (Role::Pivot | Role::First, alternative) => {
                if alternative && tid.item & IS_POSTING != 0 {
                    return Err(Fault::Kind { item });
                }
                (end, columns) = (bytes.len(), alternative.then_some(tid.item & COUNT));
                let mut row = None;
                if alternative && tid.item & HAS_ROW != 0 {
                    end = end.checked_sub(ROW_ROOM).filter(|end| *end >= HEADER).ok_or(fault)?;
                    row = read_at(bytes, bytes.len() - Tid::SIZE).map(Tid::from_bytes);
                }
                target = Target::Child { block: tid.block, row };
            }
        }
        if role == Role::First {
            (end, columns) = (HEADER, Some(0));
        }
        let (nulls, start) = match info & HAS_NULLS != 0 && columns != Some(0) {
            true => (bytes.get(HEADER..HEADER + MAX_INDEX_KEYS / 8).ok_or(fault)?, 2 * HEADER),
            false => (&bytes[..0], HEADER),
        };
        let data = bytes.get(start..end).ok_or(fault)?;
        Ok(Self { item, dead: false, size: length, target, columns, nulls, data })
    }

    /// Returns the last heap TID of a leaf tuple. It parses as little as possible, because
    /// verification calls it for every entry of every B-tree.
    pub(super) fn last_row_of_leaf(item: u16, bytes: &[u8]) -> Option<Tid> {
        let info = read_at::<u16>(bytes, 6)?;
        if info & ALTERNATIVE == 0 {
            return read_at(bytes, 0).map(Tid::from_bytes);
        }
        Entry::parse(item, bytes, Role::Leaf).ok()?.last_row()
    }

    /// Parses a separator or high key from bytes copied out of item `item` of its page.
    ///
    /// # Errors
    /// The tuple is damaged.
    pub fn of_separator(item: u16, bytes: &'a [u8]) -> Result<Self, Fault> {
        Self::parse(item, bytes, Role::Pivot)
    }

    /// Parses a leaf tuple from bytes copied out of item `item` of its page.
    ///
    /// # Errors
    /// The tuple is damaged.
    pub fn of_leaf(item: u16, bytes: &'a [u8]) -> Result<Self, Fault> {
        Self::parse(item, bytes, Role::Leaf)
    }

    /// The null bitmap, which is empty if no column is null, and the columns.
    pub(crate) fn stored(&self) -> (&'a [u8], &'a [u8]) {
        (self.nulls, self.data)
    }

    /// The entry's line pointer number, from 1.
    pub fn item(&self) -> u16 {
        self.item
    }

    /// Whether the entry is marked `LP_DEAD`, which means that a scan has found all of its heap
    /// tuples to be dead to every transaction.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// The tuple's size in bytes.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// What the entry points at.
    pub fn target(&self) -> Target<'a> {
        self.target
    }

    /// The block number of the child page, if this is a pivot tuple.
    pub fn child(&self) -> Option<BlockNo> {
        match self.target {
            Target::Child { block, .. } => Some(block),
            Target::Row(_) | Target::Rows(_) => None,
        }
    }

    /// The first heap TID of a leaf tuple, or the heap TID of a pivot tuple if it has one.
    pub fn first_row(&self) -> Option<Tid> {
        match self.target {
            Target::Row(tid) => Some(tid),
            Target::Rows(tids) => tids.into_iter().next(),
            Target::Child { row, .. } => row,
        }
    }

    /// The last heap TID of a leaf tuple, or the heap TID of a pivot tuple if it has one.
    pub fn last_row(&self) -> Option<Tid> {
        match self.target {
            Target::Rows(tids) => tids.0.last().map(|bytes| Tid::from_bytes(*bytes)),
            _ => self.first_row(),
        }
    }

    /// The heap TIDs that the entry points to, in order.
    pub fn rows(&self) -> impl Iterator<Item = Tid> + use<'a> {
        let (one, list) = match self.target {
            Target::Row(tid) => (Some(tid), Tids(&[])),
            Target::Rows(tids) => (None, tids),
            Target::Child { .. } => (None, Tids(&[])),
        };
        one.into_iter().chain(list)
    }

    /// The number of columns that are stored in this entry. `columns` is the number of columns of
    /// the index.
    pub fn columns(&self, columns: usize) -> usize {
        self.columns.map_or(columns, usize::from)
    }

    /// The columns that are stored in this entry. `layout` must contain all of the index's columns.
    pub fn attributes<'l>(&self, layout: &'l [KeyColumn]) -> Attributes<'a, 'l> {
        let present = self.columns(layout.len()).min(layout.len());
        let walk = Deformer::new(present as u16, self.nulls, self.data);
        Attributes { item: self.item, walk, columns: layout[..present].iter() }
    }
}

/// Parses the posting list, which follows the key. The tuple's own TID field contains the list's
/// offset and length.
fn posting(item: u16, bytes: &[u8], tid: Tid) -> Result<Tids<'_>, Fault> {
    let rows = tid.item & COUNT;
    let fault = Fault::Posting {
        item,
        start: tid.block,
        rows,
        size: bytes.len().min(usize::from(SIZE)) as u16,
    };
    let start = tid.block as usize;
    // The part before the list is a copy of a complete tuple with a single TID, so its length is
    // MAXALIGNed.
    if rows < 2 || !start.is_multiple_of(8) || start < HEADER {
        return Err(fault);
    }
    let list = bytes.get(start..).ok_or(fault)?;
    let list = list.get(..usize::from(rows) * Tid::SIZE).ok_or(fault)?;
    Ok(Tids(list.as_chunks().0))
}

/// The stored values of an entry's columns. They include the varlena headers, if there are any.
/// `None` is a null value.
#[derive(Debug, Clone)]
pub struct Attributes<'a, 'l> {
    item: u16,
    walk: Deformer<'a>,
    columns: std::slice::Iter<'l, KeyColumn>,
}

impl Attributes<'_, '_> {
    /// Where the last column that was returned ends, in bytes from the start of the columns.
    pub(crate) fn offset(&self) -> usize {
        self.walk.offset()
    }
}

impl<'a> Iterator for Attributes<'a, '_> {
    type Item = Result<Option<&'a [u8]>, Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let column = self.columns.next()?;
        let item = self.item;
        match self.walk.next(column.attribute) {
            Ok(column) => Some(Ok(column.value())),
            Err(error) => {
                self.columns = [].iter();
                Some(Err(Fault::Overrun { item, column: error.column }))
            }
        }
    }
}
