//! The metapage, and what every other page of a B-tree says of itself.
//!
//! ```text
//!   last 16 bytes:  left u32 │ right u32 │ level u32 │ flags u16 │ cycle id u16
//! ```
//! A page that is being deleted keeps its links, so a walk along right links steps over it.

use super::entry::{Entry, Role};
use super::fault::Fault;
use super::{MAX_LEVELS, check};
use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes};
use crate::little_endian::{u8_at, u16_at, u32_at};
use crate::page::{HEADER_SIZE, LINE_POINTER_SIZE, LinePointerFlags, PageHeader, line_pointer};

/// Where the special space starts.
const SPECIAL: u16 = BLOCK_SIZE as u16 - 16;

const LEAF: u16 = 0x0001;
const ROOT: u16 = 0x0002;
const DELETED: u16 = 0x0004;
const META: u16 = 0x0008;
const HALF_DEAD: u16 = 0x0010;
const INCOMPLETE_SPLIT: u16 = 0x0080;
const FLAGS_KNOWN: u16 = 0x01FF;

/// What block 0 says of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// 4 since PostgreSQL 12; 2 and 3 in indexes that were only upgraded since.
    pub version: u32,
    /// The root; 0 if there is none yet.
    pub root: BlockNo,
    /// Its level.
    pub level: u32,
    /// The lowest page that is alone on its level: searches start here. 0 if there is no root.
    pub fast_root: BlockNo,
    /// Its level.
    pub fast_level: u32,
    /// Whether equal keys are always the same bytes.
    pub all_equal_image: bool,
}

impl Meta {
    /// Reads block 0 of an index.
    ///
    /// # Errors
    /// It is no metapage of a version that is known, or its levels cannot be.
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
            // Version 2 ends before it, and has no index that it would be true of.
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

    /// Whether equal keys are in the order of their rows, and separators are cut and marked.
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
    /// Reads what `page` says of itself. Nothing in it is followed yet.
    ///
    /// # Errors
    /// It is no page of a B-tree, or contradicts itself.
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
        // A deleted page has no items, and in its level's place older servers kept something else.
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

    /// The left neighbour.
    pub fn left(&self) -> Option<BlockNo> {
        Some(self.left).filter(|&block| block != 0)
    }

    /// The right neighbour.
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

    /// Whether its entries point at rows.
    pub fn is_leaf(&self) -> bool {
        self.flags & LEAF != 0
    }

    /// Whether it is the root of the tree.
    pub fn is_root(&self) -> bool {
        self.flags & ROOT != 0
    }

    /// Whether it is deleted; only its links mean something.
    pub fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    /// Whether it is empty and about to be deleted.
    pub fn is_half_dead(&self) -> bool {
        self.flags & HALF_DEAD != 0
    }

    /// Whether a walk steps over it: it is deleted, or about to be.
    pub fn is_ignored(&self) -> bool {
        self.flags & (DELETED | HALF_DEAD) != 0
    }

    /// Whether its right neighbour is not in the level above yet.
    pub fn is_split_incomplete(&self) -> bool {
        self.flags & INCOMPLETE_SPLIT != 0
    }

    /// Line pointers, the high key's included.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The line pointer of the first entry: 1, or 2 where the first is the high key.
    pub fn first(&self) -> u16 {
        if self.right == 0 { 1 } else { 2 }
    }

    /// The page's upper bound; `None` on the rightmost of its level.
    ///
    /// # Errors
    /// It is not there, or cannot be taken apart.
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
    /// It cannot be taken apart.
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

    /// Checks everything that does not depend on the index's columns: each entry's kind, length,
    /// list of rows. `orders_rows` is [`Meta::orders_rows`].
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, orders_rows: bool) -> Result<(), Fault> {
        check::check(self, orders_rows)
    }
}
