//! **Heap tuples**: the tuple header, and visibility by hint bits.
//!
//! ```text
//!   0    4    8       12          18         20        22   23          hoff       length
//!   ├────┼────┼───────┼───────────┼──────────┼─────────┼────┼────────────┼──────────┤
//!   │xmin│xmax│command│ block,item│infomask2 │infomask │hoff│nulls, pad  │attributes│
//!   └────┴────┴───────┴───────────┴──────────┴─────────┴────┴────────────┴──────────┘
//! ```
//!
//! We only ever determine visibility in clusters that were shut down cleanly, so no transaction can
//! still be in progress. When a server first looks up a transaction that has ended, it sets a hint
//! bit in the tuple, so that later readers don't need to look in the commit log again. If a tuple's
//! hint bits haven't been set yet, we return [`Visible::InDoubt`], and [`crate::transam`] must look
//! up its transactions in the commit log.
//!
//! Mirrors `HeapTupleHeaderData` of PostgreSQL's `access/htup_details.h`.

use crate::ids::{PageBytes, Tid};
use crate::page::{FLAG_ALL_VISIBLE, LinePointerFlags, PageHeader, line_pointers};

/// `SizeofHeapTupleHeader`: size of the header in bytes, without the null bitmap.
pub const TUPLE_HEADER_SIZE: u16 = 23;
/// The smallest tuple in bytes: a header without data, MAXALIGNed.
pub const MIN_TUPLE_SIZE: u16 = 24;
/// `MaxHeapAttributeNumber`: the maximum number of columns in a table.
pub const MAX_HEAP_ATTRIBUTES: u16 = 1600;

/// In `t_infomask`: the tuple has a null bitmap.
pub const HAS_NULL: u16 = 0x0001;
/// In `t_infomask`: at least one attribute has variable length.
pub const HAS_VAR_WIDTH: u16 = 0x0002;
/// `HEAP_XMAX_KEYSHR_LOCK` in `t_infomask`: xmax is a lock on the key.
pub const XMAX_KEY_SHARE_LOCK: u16 = 0x0010;
/// In `t_infomask`: the command number stands for two (`HEAP_COMBOCID`). It means nothing after the
/// transaction has ended.
pub const COMBO_COMMAND: u16 = 0x0020;
/// In `t_infomask`: xmax is an exclusive lock; combined with [`XMAX_KEY_SHARE_LOCK`], a
/// share lock.
pub const XMAX_EXCLUSIVE_LOCK: u16 = 0x0040;
/// In `t_infomask`: xmax only locked the row.
pub const XMAX_LOCK_ONLY: u16 = 0x0080;
/// In `t_infomask`: xmin is known to be committed.
pub const XMIN_COMMITTED: u16 = 0x0100;
/// In `t_infomask`: xmin is known to be aborted.
pub const XMIN_INVALID: u16 = 0x0200;
/// If both of these bits are set in `t_infomask`, the tuple is frozen, which means that its
/// insertion is visible to every snapshot. Before PostgreSQL 9.4, a tuple was frozen by replacing
/// its xmin with [`FROZEN_XID`] instead.
pub const XMIN_FROZEN: u16 = XMIN_COMMITTED | XMIN_INVALID;
/// In `t_infomask`: xmax is known to be committed.
pub const XMAX_COMMITTED: u16 = 0x0400;
/// In `t_infomask`: the tuple was never deleted or locked, or the transaction that did so aborted.
pub const XMAX_INVALID: u16 = 0x0800;
/// In `t_infomask`: xmax is a multixact, which represents several transactions.
pub const XMAX_IS_MULTI: u16 = 0x1000;
/// `HEAP_XMAX_BITS`: everything about xmax in `t_infomask`.
pub const XMAX_BITS: u16 = XMAX_COMMITTED
    | XMAX_INVALID
    | XMAX_IS_MULTI
    | XMAX_EXCLUSIVE_LOCK
    | XMAX_KEY_SHARE_LOCK
    | XMAX_LOCK_ONLY;
/// In `t_infomask`: the tuple was moved to another place by `VACUUM FULL` in a release before 9.0.
/// Such tuples can still exist in clusters that were upgraded with `pg_upgrade`.
pub const MOVED_OFF: u16 = 0x4000;
/// In `t_infomask`: the tuple was moved here by the `VACUUM FULL` of a release before 9.0.
pub const MOVED_IN: u16 = 0x8000;
/// `HEAP_KEYS_UPDATED` in `t_infomask2`: the tuple was deleted, or its key updated; or it is locked as for that.
pub const KEYS_UPDATED: u16 = 0x2000;
/// In `t_infomask2`: HOT-updated. The next version is on the same page and has no index entries.
pub const HOT_UPDATED: u16 = 0x4000;
/// In `t_infomask2`: this is a heap-only tuple. It has no index entries of its own, and can only be
/// reached through its HOT chain: from the previous tuple or, after pruning, from a redirect.
pub const HEAP_ONLY: u16 = 0x8000;
/// In `t_infomask2`: the number of attributes.
pub const NATTS: u16 = 0x07FF;

/// `BootstrapTransactionId`: initdb's transaction, which always counts as committed.
pub const BOOTSTRAP_XID: u32 = 1;
/// `FrozenTransactionId`: the xmin of tuples frozen by a server before 9.4.
pub const FROZEN_XID: u32 = 2;

/// `HEAP_XMAX_IS_LOCKED_ONLY`: xmax has locked the tuple, but not changed it.
#[inline]
pub fn is_only_locked(infomask: u16) -> bool {
    // XMAX_LOCK_ONLY was added in 9.3. Before that, an xmax with XMAX_EXCL_LOCK set was just a lock,
    // unless it was a multixact.
    let old_lock = infomask & (XMAX_IS_MULTI | XMAX_KEY_SHARE_LOCK | XMAX_EXCLUSIVE_LOCK);
    infomask & XMAX_LOCK_ONLY != 0 || old_lock == XMAX_EXCLUSIVE_LOCK
}

/// A tuple's visibility as determined by its hint bits alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Visible {
    /// Visible: inserted and not deleted.
    Yes,
    /// Not visible: the insertion aborted, or the tuple was deleted.
    No,
    /// Hint bits are missing, so the commit log or a multixact must be consulted.
    InDoubt,
}

impl Visible {
    /// Determines visibility from `t_infomask`, xmin and xmax, on a page not marked all-visible.
    #[inline]
    pub fn by_hints(infomask: u16, xmin: u32, xmax: u32) -> Self {
        // Test the most common case first: inserted, committed, never updated.
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
        if infomask & XMAX_INVALID != 0 || is_only_locked(infomask) {
            return Self::Yes;
        }
        if infomask & XMAX_IS_MULTI != 0 {
            return Self::InDoubt;
        }
        if infomask & XMAX_COMMITTED != 0 {
            return Self::No;
        }
        // InvalidTransactionId.
        if xmax == 0 { Self::Yes } else { Self::InDoubt }
    }
}

/// A tuple header that is not valid, or an item that is not entirely within its page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("tuple {item}: does not fit into its item or page")]
pub struct CorruptTuple {
    /// The line pointer number, from 1. [`crate::check_page`] reports what is wrong with the item.
    pub item: u16,
}

/// A tuple on its page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapTuple<'a> {
    item: u16,
    header: &'a [u8; MIN_TUPLE_SIZE as usize],
    nulls: &'a [u8],
    data: &'a [u8],
}

impl<'a> HeapTuple<'a> {
    /// Parses the tuple header at the start of `bytes`, which must be all of item `item`.
    ///
    /// # Errors
    ///
    /// [`CorruptTuple`] if the item is too short to contain a tuple header, or if `t_hoff` is
    /// invalid: it must be a multiple of 8, and must be between the end of the header and the end
    /// of the item.
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

    /// The tuple's line pointer number, from 1.
    pub fn item(&self) -> u16 {
        self.item
    }

    /// The inserting transaction.
    pub fn xmin(&self) -> u32 {
        self.double(0)
    }

    /// The transaction or multixact that deleted, updated or locked the tuple; see
    /// [`Self::infomask`].
    pub fn xmax(&self) -> u32 {
        self.double(4)
    }

    /// If [`MOVED_OFF`] or [`MOVED_IN`] is set, this is the XID of the `VACUUM FULL` that moved the
    /// tuple. Otherwise, it is the command ID.
    pub fn xvac(&self) -> u32 {
        self.double(8)
    }

    /// `t_ctid`: the TID of the next row version, or the tuple's own TID if it is the latest
    /// version. If the block number is 0xFFFFFFFF, the row was moved to another partition. If the
    /// line pointer number is 0xFFFE, the tuple is a speculative insertion, and the block number is
    /// the insertion's token.
    pub fn next_version(&self) -> Tid {
        let [.., a, b, c, d, e, f, _, _, _, _, _, _] = *self.header;
        Tid::from_bytes([a, b, c, d, e, f])
    }

    /// Whether the next version is a heap-only tuple in the same HOT chain. Unlike the flag alone,
    /// this is false if the update is known to have been rolled back: the link is still there then,
    /// but its line pointer may have been reused for a tuple of another chain.
    pub fn is_hot_updated(&self) -> bool {
        let is_inserted = self.infomask() & (XMIN_COMMITTED | XMIN_INVALID) != XMIN_INVALID;
        let may_be_updated = is_inserted && self.infomask() & XMAX_INVALID == 0;
        self.infomask2() & HOT_UPDATED != 0 && may_be_updated
    }

    /// The multixact that contains the transaction that updated or deleted the tuple. `None` if xmax
    /// isn't a multixact, or if its members have only locked the tuple: such a multixact must not be
    /// looked up, because its members may already have been truncated away.
    pub fn updating_multixact(&self) -> Option<u32> {
        let is_update = self.infomask() & (XMAX_IS_MULTI | XMAX_LOCK_ONLY) == XMAX_IS_MULTI;
        is_update.then(|| self.xmax())
    }

    /// Whether this is a heap-only tuple, which has no index entries.
    pub fn is_heap_only(&self) -> bool {
        self.infomask2() & HEAP_ONLY != 0
    }

    /// `t_infomask`: `HAS_…`, `XMIN_…` and `XMAX_…` bits.
    pub fn infomask(&self) -> u16 {
        self.word(20)
    }

    /// `t_infomask2`: the number of attributes and the HOT bits.
    pub fn infomask2(&self) -> u16 {
        self.word(18)
    }

    /// `natts`: the number of stored attributes, 0 to 2047. Columns added later are not stored.
    pub fn natts(&self) -> u16 {
        self.infomask2() & NATTS
    }

    /// `t_hoff`: the offset of the tuple's data.
    pub fn hoff(&self) -> u8 {
        self.header[22]
    }

    /// Returns the null bitmap, which is empty if no attribute is null. Bit `i`, counting from the
    /// lowest bit of the first byte, is 1 if attribute `i` (counted from 0) is not null.
    pub fn nulls(&self) -> &'a [u8] {
        self.nulls
    }

    /// The non-null attributes. They are aligned relative to the start of this slice.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the tuple's visibility according to its hint bits. If the page is marked
    /// all-visible, a scan doesn't need to call this, because all of the page's tuples are visible.
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

/// `PD_ALL_VISIBLE`: every tuple on the page is visible to all transactions.
pub fn is_all_visible(page: &PageBytes) -> bool {
    PageHeader::parse(page).flags & FLAG_ALL_VISIBLE != 0
}

/// Iterates over all tuples on a heap page in line pointer order, whether they are visible or not.
/// Line pointers that are dead, unused or redirected are skipped. Even if the page is damaged, this
/// returns at most 2042 tuples.
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
