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

use super::MAX_INDEX_KEYS;
use super::fault::Fault;
use super::key::KeyColumn;
use crate::deform::Deformer;
use crate::ids::{BlockNo, Tid};
use crate::little_endian::{array, u16_at};

const SIZE: u16 = 0x1FFF;
const ALTERNATIVE: u16 = 0x2000;
const HAS_NULLS: u16 = 0x8000;
const IS_POSTING: u16 = 0x2000;
const HAS_ROW: u16 = 0x1000;
const COUNT: u16 = 0x0FFF;

/// Bytes of an entry without a key.
const HEADER: usize = 8;
/// Bytes that a separator reserves for a row.
const ROW_ROOM: usize = 8;

/// What an entry must be, by its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// For rows.
    Leaf,
    /// A separator or a high key.
    Pivot,
    /// The first separator of a page, which has no key.
    First,
}

/// Where an entry leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// To one row.
    Row(Tid),
    /// To several with the same key.
    Rows(Tids<'a>),
    /// To a page; nowhere if it is a high key.
    Child {
        /// The page.
        block: BlockNo,
        /// The tid that separates it from others with the same key (since PostgreSQL 12); `None`
        /// counts as minus infinity.
        row: Option<Tid>,
    },
}

/// The rows of an entry, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tids<'a>(&'a [[u8; Tid::SIZE]]);

impl Tids<'_> {
    /// How many.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
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

/// An entry in its page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    pub(super) item: u16,
    pub(super) dead: bool,
    pub(super) size: u16,
    target: Target<'a>,
    /// Columns in the key; `None`: all that the index has.
    columns: Option<u16>,
    /// Of all columns, however many there are; empty if none is null.
    nulls: &'a [u8],
    data: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(super) fn parse(item: u16, bytes: &'a [u8], role: Role) -> Result<Self, Fault> {
        let fault = Fault::Item { item };
        let tid = Tid::from_bytes(array(bytes, 0).ok_or(fault)?);
        let info = u16_at(bytes, 6).ok_or(fault)?;
        let size = info & SIZE;
        let length = bytes.len() as u16;
        // In version 2 the first pivot tuple of a page keeps the length that it had with its key.
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
                    row = array(bytes, bytes.len() - Tid::SIZE).map(Tid::from_bytes);
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

    /// A separator or a high key, of bytes that were taken from item `item` of its page.
    ///
    /// # Errors
    /// It cannot be taken apart.
    pub fn of_separator(item: u16, bytes: &'a [u8]) -> Result<Self, Fault> {
        Self::parse(item, bytes, Role::Pivot)
    }

    /// The 1-based number of its line pointer.
    pub fn item(&self) -> u16 {
        self.item
    }

    /// `LP_DEAD`: whether a scan found its tuples dead to all transactions.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Bytes of the entry.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Where it leads.
    pub fn target(&self) -> Target<'a> {
        self.target
    }

    /// The page that it leads to, if it is a separator.
    pub fn child(&self) -> Option<BlockNo> {
        match self.target {
            Target::Child { block, .. } => Some(block),
            Target::Row(_) | Target::Rows(_) => None,
        }
    }

    /// The first of the rows that it leads to; of a separator the row that it is cut at.
    pub fn first_row(&self) -> Option<Tid> {
        match self.target {
            Target::Row(tid) => Some(tid),
            Target::Rows(tids) => tids.into_iter().next(),
            Target::Child { row, .. } => row,
        }
    }

    /// The last of the rows that it leads to; of a separator the row that it is cut at.
    pub fn last_row(&self) -> Option<Tid> {
        match self.target {
            Target::Rows(tids) => tids.0.last().map(|bytes| Tid::from_bytes(*bytes)),
            _ => self.first_row(),
        }
    }

    /// The rows that it leads to, in order.
    pub fn rows(&self) -> impl Iterator<Item = Tid> + use<'a> {
        let (one, list) = match self.target {
            Target::Row(tid) => (Some(tid), Tids(&[])),
            Target::Rows(tids) => (None, tids),
            Target::Child { .. } => (None, Tids(&[])),
        };
        one.into_iter().chain(list)
    }

    /// How many columns it has, of an index with `columns`.
    pub fn columns(&self, columns: usize) -> usize {
        self.columns.map_or(columns, usize::from)
    }

    /// Its columns as they are stored. `layout` has all columns of the index.
    pub fn attributes<'l>(&self, layout: &'l [KeyColumn]) -> Attributes<'a, 'l> {
        let present = self.columns(layout.len()).min(layout.len());
        let walk = Deformer::new(present as u16, self.nulls, self.data);
        Attributes { item: self.item, walk, columns: layout[..present].iter() }
    }
}

/// The posting list after the key. The entry's own TID field holds its offset and its length.
fn posting(item: u16, bytes: &[u8], tid: Tid) -> Result<Tids<'_>, Fault> {
    let rows = tid.item & COUNT;
    let fault = Fault::Posting {
        item,
        start: tid.block,
        rows,
        size: bytes.len().min(usize::from(SIZE)) as u16,
    };
    let start = tid.block as usize;
    // The key part is MAXALIGNed, because it is a copy of a complete tuple with a single TID.
    if rows < 2 || !start.is_multiple_of(8) || start < HEADER {
        return Err(fault);
    }
    let list = bytes.get(start..).ok_or(fault)?;
    let list = list.get(..usize::from(rows) * Tid::SIZE).ok_or(fault)?;
    Ok(Tids(list.as_chunks().0))
}

/// The stored values of an entry's columns, each with its header if it has one; `None` is NULL.
#[derive(Debug, Clone)]
pub struct Attributes<'a, 'l> {
    item: u16,
    walk: Deformer<'a>,
    columns: std::slice::Iter<'l, KeyColumn>,
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
