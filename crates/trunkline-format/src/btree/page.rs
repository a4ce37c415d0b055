//! The B-tree metapage (`BTMetaPageData`) and the special space of all other pages
//! (`BTPageOpaqueData`).
//!
//! ```text
//!   last 16 bytes:  left u32 │ right u32 │ level u32 │ flags u16 │ cycle id u16
//! ```
//! A deleted page keeps its sibling links. A concurrent scan may hold a stale link to it, and must
//! be able to move right from there. For the same reason VACUUM does not recycle the page until no
//! snapshot is old enough to hold such a link.
//!
//! The cycle ID lets VACUUM recognise a page that was split during its scan, with part of its
//! tuples moved to a block that the scan had already passed. Mirrors `access/nbtree.h`.

use super::entry::{Entry, Role};
use super::fault::Fault;
use super::{MAX_LEVELS, check};
use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes};
use crate::little_endian::{u8_at, u16_at, u32_at};
use crate::page::{HEADER_SIZE, LINE_POINTER_SIZE, LinePointerFlags, PageHeader, line_pointer};

/// The start of the special space.
const SPECIAL: u16 = BLOCK_SIZE as u16 - 16;

const LEAF: u16 = 0x0001;
const ROOT: u16 = 0x0002;
const DELETED: u16 = 0x0004;
const META: u16 = 0x0008;
const HALF_DEAD: u16 = 0x0010;
const INCOMPLETE_SPLIT: u16 = 0x0080;
const FLAGS_KNOWN: u16 = 0x01FF;

/// The metapage, block 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// `btm_version`: 4 since PostgreSQL 12. Indexes that `pg_upgrade` carried over from older
    /// versions keep 2 or 3 until they are reindexed.
    pub version: u32,
    /// The root; 0 if there is none yet.
    pub root: BlockNo,
    /// Its level.
    pub level: u32,
    /// The fast root: the lowest page that is the only one of its level. Searches start here. After
    /// mass deletion the levels above it have one page each, because a tree never loses levels. 0
    /// if there is no root.
    pub fast_root: BlockNo,
    /// Its level.
    pub fast_level: u32,
    /// `btm_allequalimage`: equal keys always have the same bytes, so deduplication is safe. It is
    /// false for types such as `numeric`, in which 1.0 and 1.00 are equal but print differently.
    pub all_equal_image: bool,
}

impl Meta {
    /// Reads block 0 of an index.
    ///
    /// # Errors
    /// It is not a metapage of a known version, or its levels are impossible.
    pub fn parse(page: &PageBytes) -> Result<Self, Fault> {
        let word = |at| u32_at(page, at).unwrap_or_default();
        if word(24) != 0x0005_3162 {
            return Err(Fault::Magic { found: word(24) });
        }
        let meta = Self {
            version: word(28),
            root: word(32),
            level: word(36),
            fast_root: word(40),
            fast_level: word(44),
            // Version 2 ends before this field, and predates deduplication.
            all_equal_image: word(28) > 2 && u8_at(page, 64) == Some(1),
        };
        if !(2..=4).contains(&meta.version) {
            return Err(Fault::Version { found: meta.version });
        }
        let level = meta.level.max(meta.fast_level);
        if level >= MAX_LEVELS {
            return Err(Fault::Levels { found: level });
        }
        Ok(meta)
    }

    /// Whether the heap TID is the last key column (`heapkeyspace`, version 4). Equal keys are then
    /// in TID order, and pivot tuples are truncated and marked as such.
    pub fn orders_rows(self) -> bool {
        self.version >= 4
    }
}

/// A page of a B-tree, other than its metapage.
#[derive(Clone, Copy, Debug)]
pub struct BtreePage<'a> {
    page: &'a PageBytes,
    left: BlockNo,
    right: BlockNo,
    level: u32,
    flags: u16,
    count: u16,
}

impl<'a> BtreePage<'a> {
    /// Parses the special space of `page`. Its items are not looked at yet.
    ///
    /// # Errors
    /// It is not a B-tree page, or its fields contradict each other.
    pub fn parse(page: &'a PageBytes) -> Result<Self, Fault> {
        let header = PageHeader::parse(page);
        if header.special != SPECIAL {
            return Err(Fault::Special { found: header.special });
        }
        let at = usize::from(SPECIAL);
        let word = |more| u32_at(page, at + more).unwrap_or_default();
        let flags = u16_at(page, at + 12).unwrap_or_default();
        let mut parsed =
            Self { page, left: word(0), right: word(4), level: word(8), flags, count: 0 };
        if flags & !FLAGS_KNOWN != 0 || flags & META != 0 {
            return Err(Fault::Flags { found: flags });
        }
        // A deleted page has no items. Before PostgreSQL 14 the level field of a deleted page held
        // the xid that decides when the page can be recycled, so it cannot be checked.
        if parsed.is_deleted() {
            return Ok(parsed);
        }
        if (flags & LEAF != 0) != (parsed.level == 0) || parsed.level >= MAX_LEVELS {
            return Err(Fault::LeafLevel { found: parsed.level });
        }
        parsed.count = header.line_pointer_count();
        if HEADER_SIZE + parsed.count.saturating_mul(LINE_POINTER_SIZE) > SPECIAL {
            return Err(Fault::LinePointers { count: parsed.count });
        }
        Ok(parsed)
    }

    /// The left sibling. 0 on disk (`P_NONE`) means none, because block 0 is the metapage.
    pub fn left(&self) -> Option<BlockNo> {
        Some(self.left).filter(|&block| block != 0)
    }

    /// The right sibling; `None` on the rightmost page of a level.
    pub fn right(&self) -> Option<BlockNo> {
        Some(self.right).filter(|&block| block != 0)
    }

    /// 0 for leaves.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// All flags, as they are stored.
    pub fn flags(&self) -> u16 {
        self.flags
    }

    /// Whether it is a leaf, with entries that point at heap tuples.
    pub fn is_leaf(&self) -> bool {
        self.flags & LEAF != 0
    }

    /// Whether it is the root of the tree.
    pub fn is_root(&self) -> bool {
        self.flags & ROOT != 0
    }

    /// Whether it is deleted. Only its sibling links are then meaningful.
    pub fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    /// Whether deletion has begun (`BTP_HALF_DEAD`): the page is empty and its downlink is removed,
    /// but its siblings still link to it. A later VACUUM finishes an interrupted deletion.
    pub fn is_half_dead(&self) -> bool {
        self.flags & HALF_DEAD != 0
    }

    /// `P_IGNORE`: whether a scan steps over it, because it is deleted or half-dead.
    pub fn is_ignored(&self) -> bool {
        self.flags & (DELETED | HALF_DEAD) != 0
    }

    /// `BTP_INCOMPLETE_SPLIT`: the right sibling has no downlink yet. A crash can leave this state.
    /// Searches still reach the sibling by moving right. The next insertion completes the split.
    pub fn is_split_incomplete(&self) -> bool {
        self.flags & INCOMPLETE_SPLIT != 0
    }

    /// The number of line pointers, including the high key.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// `P_FIRSTDATAKEY`: the line pointer of the first entry. It is 2 if item 1 is the high key,
    /// and 1 on a rightmost page, which has none because it has no upper bound.
    pub fn first(&self) -> u16 {
        if self.right == 0 { 1 } else { 2 }
    }

    /// The high key, the upper bound of the page; `None` on the rightmost page of a level.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub fn high_key(&self) -> Result<Option<Entry<'a>>, Fault> {
        if self.right == 0 || self.is_deleted() {
            return Ok(None);
        }
        if self.count == 0 {
            return Err(Fault::NoHighKey);
        }
        self.parse_item(1, Role::Pivot).map(Some)
    }

    /// The entry of a line pointer from [`Self::first`] to [`Self::count`].
    ///
    /// # Errors
    /// It is damaged.
    pub fn entry(&self, item: u16) -> Result<Entry<'a>, Fault> {
        let role = match self.is_leaf() {
            true => Role::Leaf,
            false if item <= self.first() => Role::First,
            false => Role::Pivot,
        };
        self.parse_item(item, role)
    }

    /// The bytes of an item, the high key included; see [`Entry::of_separator`].
    ///
    /// # Errors
    /// The line pointer leads nowhere.
    pub fn item(&self, item: u16) -> Result<&'a [u8], Fault> {
        self.pointed_at(item).map(|(_, bytes)| bytes)
    }

    fn pointed_at(&self, item: u16) -> Result<(bool, &'a [u8]), Fault> {
        let pointer = line_pointer(self.page, item).filter(|_| item <= self.count);
        let pointer = pointer.ok_or(Fault::Item { item })?;
        let dead = match pointer.flags {
            LinePointerFlags::Normal => false,
            LinePointerFlags::Dead => true,
            _ => return Err(Fault::Item { item }),
        };
        Ok((dead, pointer.item(self.page).ok_or(Fault::Item { item })?))
    }

    fn parse_item(&self, item: u16, role: Role) -> Result<Entry<'a>, Fault> {
        let (dead, bytes) = self.pointed_at(item)?;
        let mut entry = Entry::parse(item, bytes, role)?;
        entry.dead = dead;
        Ok(entry)
    }

    /// The entries in order, without the high key.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, Fault>> + 'a {
        let page = *self;
        (page.first()..=page.count).map(move |item| page.entry(item))
    }

    /// Checks everything that does not depend on the index's columns: the kind, length and posting
    /// list of each entry. `orders_rows` is [`Meta::orders_rows`].
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, orders_rows: bool) -> Result<(), Fault> {
        check::check(self, orders_rows)
    }
}
