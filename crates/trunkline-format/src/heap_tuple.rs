//! Tuples of a table as they lie in a page: the header's fields, and whether the row is visible.
//!
//! ```text
//!   0    4    8       12          18         20        22   23          hoff       length
//!   ├────┼────┼───────┼───────────┼──────────┼─────────┼────┼────────────┼──────────┤
//!   │xmin│xmax│command│ block,item│infomask2 │infomask │hoff│nulls, pad  │attributes│
//!   └────┴────┴───────┴───────────┴──────────┴─────────┴────┴────────────┴──────────┘
//! ```
//!
//! Visibility is judged as of the moment the cluster was shut down, when no transaction runs, and
//! by hint bits alone: the server leaves them behind when it first learns a transaction's fate, and
//! only once that is settled. What has none is [`Visible::InDoubt`]: the commit log knows.
//!
//! Mirrors `HeapTupleHeaderData` of PostgreSQL's `access/htup_details.h`.

use crate::ids::{PageBytes, Tid};
use crate::page::{FLAG_ALL_VISIBLE, LinePointerFlags, PageHeader, line_pointers};

/// Bytes of a tuple's header without its null bitmap.
pub const TUPLE_HEADER_SIZE: u16 = 23;
/// The least bytes of a tuple: its header, padded to the next multiple of 8.
pub const MIN_TUPLE_SIZE: u16 = 24;
/// As many columns as a table can have.
pub const MAX_HEAP_ATTRIBUTES: u16 = 1600;

/// In `t_infomask`: the tuple has a null bitmap.
pub const HAS_NULL: u16 = 0x0001;
/// In `t_infomask`: a variable-length attribute is among them.
pub const HAS_VAR_WIDTH: u16 = 0x0002;
/// In `t_infomask`: xmax is an exclusive lock, if nothing says otherwise.
pub const XMAX_EXCLUSIVE_LOCK: u16 = 0x0040;
/// In `t_infomask`: xmax locked the row and did not change it.
pub const XMAX_LOCK_ONLY: u16 = 0x0080;
/// In `t_infomask`: xmin is known to be committed.
pub const XMIN_COMMITTED: u16 = 0x0100;
/// In `t_infomask`: xmin is known to be aborted.
pub const XMIN_INVALID: u16 = 0x0200;
/// In `t_infomask`, both bits: committed so long ago that everyone sees it.
pub const XMIN_FROZEN: u16 = XMIN_COMMITTED | XMIN_INVALID;
/// In `t_infomask`: xmax is known to be committed.
pub const XMAX_COMMITTED: u16 = 0x0400;
/// In `t_infomask`: nobody deleted or locked the tuple.
pub const XMAX_INVALID: u16 = 0x0800;
/// In `t_infomask`: xmax is a multixact: several transactions.
pub const XMAX_IS_MULTI: u16 = 0x1000;
/// In `t_infomask`: a `VACUUM FULL` before 9.0 took the tuple away from here.
pub const MOVED_OFF: u16 = 0x4000;
/// In `t_infomask`: a `VACUUM FULL` before 9.0 brought the tuple here.
pub const MOVED_IN: u16 = 0x8000;
/// In `t_infomask2`: the next version is in the same page, and no index knows it.
pub const HOT_UPDATED: u16 = 0x4000;
/// In `t_infomask2`: no index knows the tuple; the version before it leads here.
pub const HEAP_ONLY: u16 = 0x8000;
/// In `t_infomask2`: the number of attributes.
pub const NATTS: u16 = 0x07FF;

/// The transaction that made the first catalogs: committed, whatever the commit log says.
pub const BOOTSTRAP_XID: u32 = 1;
/// The transaction that rows frozen by servers before 9.4 claim to be of.
pub const FROZEN_XID: u32 = 2;

/// Whether a row is there, as far as its page alone can tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Visible {
    /// Inserted, and not deleted.
    Yes,
    /// Never committed, or deleted.
    No,
    /// The commit log, or the multixacts, must be asked.
    InDoubt,
}

impl Visible {
    /// What `t_infomask` and the two transactions say, on a page that is not marked all-visible.
    #[inline]
    pub fn by_hints(infomask: u16, xmin: u32, xmax: u32) -> Self {
        // By far the most rows of a table at rest: inserted, never touched again.
        if infomask & (XMIN_COMMITTED | XMAX_INVALID) == XMIN_COMMITTED | XMAX_INVALID {
            return Self::Yes;
        }
        let frozen = infomask & XMIN_FROZEN == XMIN_FROZEN || xmin == FROZEN_XID;
        if !frozen {
            if infomask & XMIN_INVALID != 0 {
                return Self::No;
            }
            if infomask & XMIN_COMMITTED == 0 && xmin != BOOTSTRAP_XID {
                return Self::InDoubt;
            }
        }
        // The second form of a mere lock is from before 9.3: exclusive, and no multixact.
        let old_lock = infomask & (XMAX_IS_MULTI | 0x0010 | XMAX_EXCLUSIVE_LOCK);
        if infomask & (XMAX_INVALID | XMAX_LOCK_ONLY) != 0 || old_lock == XMAX_EXCLUSIVE_LOCK {
            return Self::Yes;
        }
        if infomask & XMAX_IS_MULTI != 0 {
            return Self::InDoubt;
        }
        if infomask & XMAX_COMMITTED != 0 {
            return Self::No;
        }
        // Transaction 0 is none.
        if xmax == 0 { Self::Yes } else { Self::InDoubt }
    }
}

/// A tuple whose header leads outside its item, or whose item leads outside the page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CorruptTuple {
    /// The 1-based number of its line pointer. [`crate::check_page`] says what is wrong with it.
    pub item: u16,
}

impl std::fmt::Display for CorruptTuple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tuple {}: does not fit into its item or page", self.item)
    }
}

impl std::error::Error for CorruptTuple {}

/// A tuple in its page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapTuple<'a> {
    item: u16,
    header: &'a [u8; MIN_TUPLE_SIZE as usize],
    nulls: &'a [u8],
    data: &'a [u8],
}

impl<'a> HeapTuple<'a> {
    /// Takes `bytes`, the whole of item `item`, apart.
    ///
    /// # Errors
    ///
    /// [`CorruptTuple`] if they are too few, or if the data would not start at a multiple of 8
    /// between the header's end and the item's.
    #[inline]
    pub fn parse(item: u16, bytes: &'a [u8]) -> Result<Self, CorruptTuple> {
        Self::split(item, bytes).ok_or(CorruptTuple { item })
    }

    #[inline]
    fn split(item: u16, bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk()?;
        let mut tuple = Self { item, header, nulls: &[], data: &[] };
        let mut header_end = usize::from(TUPLE_HEADER_SIZE);
        if tuple.infomask() & HAS_NULL != 0 {
            let end = header_end + usize::from(tuple.natts().div_ceil(8));
            tuple.nulls = bytes.get(header_end..end)?;
            header_end = end;
        }
        let hoff = usize::from(tuple.hoff());
        if hoff < header_end || !hoff.is_multiple_of(8) {
            return None;
        }
        tuple.data = bytes.get(hoff..)?;
        Some(tuple)
    }

    /// The 1-based number of its line pointer.
    pub fn item(&self) -> u16 {
        self.item
    }

    /// The transaction that inserted it.
    pub fn xmin(&self) -> u32 {
        self.double(0)
    }

    /// The transaction, or multixact, that deleted or locked it; see [`Self::infomask`].
    pub fn xmax(&self) -> u32 {
        self.double(4)
    }

    /// The `VACUUM FULL` that moved it, if [`MOVED_OFF`] or [`MOVED_IN`] is set; else the commands
    /// that inserted and deleted it.
    pub fn xvac(&self) -> u32 {
        self.double(8)
    }

    /// Where the row's next version is; its own place if there is none. A block of all ones means
    /// that it went to another partition, or that it is being inserted.
    pub fn next_version(&self) -> Tid {
        let [.., a, b, c, d, e, f, _, _, _, _, _, _] = *self.header;
        Tid::from_bytes([a, b, c, d, e, f])
    }

    /// Whether its next version is in the same page and known to no index.
    pub fn is_hot_updated(&self) -> bool {
        self.infomask2() & HOT_UPDATED != 0
    }

    /// Whether no index knows it, but the version before it.
    pub fn is_heap_only(&self) -> bool {
        self.infomask2() & HEAP_ONLY != 0
    }

    /// `t_infomask`: `HAS_…`, `XMIN_…` and `XMAX_…` bits.
    pub fn infomask(&self) -> u16 {
        self.word(20)
    }

    /// `t_infomask2`: the number of attributes and what became of the row's keys and versions.
    pub fn infomask2(&self) -> u16 {
        self.word(18)
    }

    /// How many attributes it holds: 0 to 2047, those that a table got later not included.
    pub fn natts(&self) -> u16 {
        self.infomask2() & NATTS
    }

    /// `t_hoff`: where its data starts, in bytes from its own start.
    pub fn hoff(&self) -> u8 {
        self.header[22]
    }

    /// The null bitmap, empty if no attribute is null: bit `i` (the lowest first) is 1 if
    /// attribute `i` from 0 is present.
    pub fn nulls(&self) -> &'a [u8] {
        self.nulls
    }

    /// The attributes that are not null; alignment counts from its start.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Whether the row is there; on a page that is marked all-visible every row is, and nobody
    /// need ask.
    #[inline]
    pub fn visible(&self) -> Visible {
        Visible::by_hints(self.infomask(), self.xmin(), self.xmax())
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.header[at], self.header[at + 1]])
    }

    fn double(&self, at: usize) -> u32 {
        u32::from(self.word(at + 2)) << 16 | u32::from(self.word(at))
    }
}

/// Whether `page` says of itself that everyone sees every tuple in it.
pub fn is_all_visible(page: &PageBytes) -> bool {
    PageHeader::parse(page).flags & FLAG_ALL_VISIBLE != 0
}

/// The tuples of `page`, a table's, in the order of their line pointers: of those that are normal,
/// visible or not. Total over any bytes, at most 2042.
///
/// ```
/// use trunkline_format::{HeapPageBuilder, TupleBuilder, heap_rows};
/// let mut page = HeapPageBuilder::new(0);
/// page.push(&TupleBuilder::new().int4(7).tuple())?;
/// for tuple in heap_rows(&page.finish(false)) {
///     assert_eq!(tuple?.data()[..4], 7_i32.to_le_bytes());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn heap_rows(
    page: &PageBytes,
) -> impl Iterator<Item = Result<HeapTuple<'_>, CorruptTuple>> + '_ {
    line_pointers(page)
        .filter(|(_, pointer)| pointer.flags == LinePointerFlags::Normal)
        .map(|(item, pointer)| HeapTuple::parse(item, pointer.item(page).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
