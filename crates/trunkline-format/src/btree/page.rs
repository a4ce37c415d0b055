//! The B-tree metapage (`BTMetaPageData`) and the special space of all other pages
//! (`BTPageOpaqueData`).
//!
//! ```text
//!   last 16 bytes:  left u32 │ right u32 │ level u32 │ flags u16 │ cycle id u16
//! ```
//! A deleted page keeps its sibling links, because a concurrent scan may have read a link to the
//! page before it was deleted, and must be able to move right from there. For the same reason,
//! VACUUM must not recycle the page while there is still a snapshot that is old enough to belong to
//! such a scan.
//!
//! VACUUM uses the cycle ID to detect that a page was split while VACUUM was scanning the index. In
//! that case, some of the page's tuples may have moved to a block that the scan has already passed.
//! Mirrors `access/nbtree.h`.

use super::entry::{Entry, Role};
use super::fault::Fault;
use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes, Tid};
use crate::little_endian::{put, read_at};
use crate::page::{HEADER_SIZE, LINE_POINTER_SIZE, LinePointerFlags, PageHeader, line_pointer};

/// Maximum tree height that we accept. No real index is that tall, so a search that descends
/// further must be following a cycle of damaged downlinks.
pub const MAX_LEVELS: u32 = 32;

/// Offset of the special space in bytes.
pub const SPECIAL: u16 = BLOCK_SIZE as u16 - 16;

pub(crate) const LEAF: u16 = 0x0001;
pub(crate) const ROOT: u16 = 0x0002;
pub(crate) const DELETED: u16 = 0x0004;
pub(crate) const META: u16 = 0x0008;
pub(crate) const HALF_DEAD: u16 = 0x0010;
pub(crate) const INCOMPLETE_SPLIT: u16 = 0x0080;
const FLAGS_KNOWN: u16 = 0x01FF;

/// `BTREE_MAGIC`: the first word of the metapage.
pub(crate) const MAGIC: u32 = 0x0005_3162;

/// Where a search goes on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Move to the right sibling.
    Right(BlockNo),
    /// The first entry that is not below the key, or one past the last entry.
    Item(u16),
}

/// The metapage, block 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// `btm_version`: this has been 4 since PostgreSQL 12. If an index was created by an older
    /// release and then upgraded with `pg_upgrade`, it is still 2 or 3 until the index is
    /// reindexed.
    pub version: u32,
    /// The root's block number; 0 if the index has no root yet.
    pub root: BlockNo,
    /// The root's level.
    pub level: u32,
    /// Block number of the fast root, which is the lowest page that is alone on its level. Searches
    /// start there rather than at the true root. A B-tree never gets shorter, so after most of its
    /// tuples have been deleted, there can be several single-page levels above the fast root. 0 if
    /// the index has no root yet.
    pub fast_root: BlockNo,
    /// The fast root's level.
    pub fast_level: u32,
    /// `btm_last_cleanup_num_delpages`: the number of deleted pages that could not be recycled when `VACUUM` last
    /// counted them. Indexes of version 2 don't have it.
    pub deleted_pages: u32,
    /// `btm_allequalimage`: true if equal keys always have identical bytes, so that deduplication
    /// is safe. It is false for types such as `numeric`, where 1.0 and 1.00 are equal but are
    /// displayed differently.
    pub all_equal_image: bool,
}

impl Meta {
    /// Reads block 0 of an index.
    ///
    /// # Errors
    /// Block 0 is not a metapage of a known version, or its levels are impossible.
    pub fn parse(page: &PageBytes) -> Result<Self, Fault> {
        let word = |at| read_at::<u32>(page, at).unwrap_or_default();
        if word(24) != MAGIC {
            return Err(Fault::Magic { found: word(24) });
        }
        let meta = Self {
            version: word(28),
            root: word(32),
            level: word(36),
            fast_root: word(40),
            fast_level: word(44),
            deleted_pages: if word(28) > 2 { word(48) } else { 0 },
            // Version 2 predates deduplication, and its metapage ends before this field.
            all_equal_image: word(28) > 2 && read_at::<u8>(page, 64) == Some(1),
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

    /// Returns true if the index treats the heap TID as its last key column (`heapkeyspace`,
    /// version 4). In such an index, tuples with equal keys are in TID order, and pivot tuples are
    /// marked if they have been truncated.
    pub fn orders_rows(self) -> bool {
        self.version >= 4
    }

    /// The metapage of an empty index of version 4.
    pub fn of_empty(all_equal_image: bool) -> Self {
        let (root, level, fast_root, fast_level, deleted_pages) = (0, 0, 0, 0, 0);
        Self { version: 4, root, level, fast_root, fast_level, deleted_pages, all_equal_image }
    }

    /// The metapage as WAL records contain it (`xl_btree_metadata`).
    pub fn to_record(self) -> [u8; 28] {
        let Self { version, root, level, fast_root, fast_level, deleted_pages, .. } = self;
        let mut bytes = [0; 28];
        let words = [version, root, level, fast_root, fast_level, deleted_pages];
        for (at, word) in (0..).step_by(4).zip(words) {
            put(&mut bytes, at, word.to_le_bytes());
        }
        put(&mut bytes, 24, [u8::from(self.all_equal_image)]);
        bytes
    }
}

/// A B-tree page other than the metapage.
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
    /// Parses the special space of `page`, but not its items.
    ///
    /// # Errors
    /// `page` is not a B-tree page, or its fields contradict each other.
    pub fn parse(page: &'a PageBytes) -> Result<Self, Fault> {
        let header = PageHeader::parse(page);
        if header.special != SPECIAL {
            return Err(Fault::Special { found: header.special });
        }
        let at = usize::from(SPECIAL);
        let word = |more| read_at::<u32>(page, at + more).unwrap_or_default();
        let flags = read_at::<u16>(page, at + 12).unwrap_or_default();
        let mut parsed =
            Self { page, left: word(0), right: word(4), level: word(8), flags, count: 0 };
        if flags & !FLAGS_KNOWN != 0 || flags & META != 0 {
            return Err(Fault::Flags { found: flags });
        }
        // A deleted page has no items. We cannot check its level, because before PostgreSQL 14 that
        // field was reused to store the XID that determines when the page can be recycled.
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

    /// The left sibling, or `None` if there isn't one. This is stored as 0 (`P_NONE`) on disk,
    /// which is OK because block 0 is always the metapage.
    pub fn left(&self) -> Option<BlockNo> {
        Some(self.left).filter(|&block| block != 0)
    }

    /// The right sibling; `None` on a level's rightmost page.
    pub fn right(&self) -> Option<BlockNo> {
        Some(self.right).filter(|&block| block != 0)
    }

    /// The page's level; 0 for leaves.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// All flags, as stored.
    pub fn flags(&self) -> u16 {
        self.flags
    }

    /// Whether this is a leaf page, whose entries point at heap tuples.
    pub fn is_leaf(&self) -> bool {
        self.flags & LEAF != 0
    }

    /// Whether this page is the root.
    pub fn is_root(&self) -> bool {
        self.flags & ROOT != 0
    }

    /// Whether the page is deleted, in which case only its sibling links are meaningful.
    pub fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    /// `BTP_HALF_DEAD`: VACUUM has begun to delete the page. The page is empty and its downlink has
    /// been removed, but its siblings still link to it. If VACUUM was interrupted at this point,
    /// the next VACUUM will finish the deletion.
    pub fn is_half_dead(&self) -> bool {
        self.flags & HALF_DEAD != 0
    }

    /// `P_IGNORE`: scans skip the page, because it is deleted or half-dead.
    pub fn is_ignored(&self) -> bool {
        self.flags & (DELETED | HALF_DEAD) != 0
    }

    /// `BTP_INCOMPLETE_SPLIT`: the page was split, but its right sibling has no downlink yet. This
    /// can happen if the server crashed during the split. Searches can still reach the sibling by
    /// moving right, and the next insertion that passes through here will complete the split.
    pub fn is_split_incomplete(&self) -> bool {
        self.flags & INCOMPLETE_SPLIT != 0
    }

    /// The number of line pointers, including the high key.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// `P_FIRSTDATAKEY`: the line pointer number of the first entry. This is usually 2, because
    /// item 1 is the high key. On the rightmost page of a level it is 1, because that page has no
    /// upper bound and therefore no high key.
    pub fn first(&self) -> u16 {
        if self.right == 0 { 1 } else { 2 }
    }

    /// The high key, which is the page's upper bound; `None` on a level's rightmost page.
    ///
    /// # Errors
    /// The high key is missing or damaged.
    pub fn high_key(&self) -> Result<Option<Entry<'a>>, Fault> {
        if self.right == 0 || self.is_deleted() {
            return Ok(None);
        }
        if self.count == 0 {
            return Err(Fault::NoHighKey);
        }
        self.parse_item(1, Role::Pivot).map(Some)
    }

    /// The entry at a line pointer between [`Self::first`] and [`Self::count`].
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn entry(&self, item: u16) -> Result<Entry<'a>, Fault> {
        let role = match self.is_leaf() {
            true => Role::Leaf,
            false if item <= self.first() => Role::First,
            false => Role::Pivot,
        };
        self.parse_item(item, role)
    }

    /// The bytes of an item, which may be the high key; see [`Entry::of_separator`].
    ///
    /// # Errors
    /// The line pointer does not point at an item within the page.
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

    /// The entries in line pointer order, without the high key.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, Fault>> + 'a {
        let page = *self;
        (page.first()..=page.count).map(move |item| page.entry(item))
    }

    /// Searches the page. `is_below` says whether an entry, which may be the high key, is below the key that is searched
    /// for. If the high key is, the key is further to the right, because the page was split or deleted since its
    /// downlink was read.
    ///
    /// # Errors
    /// The page's entries are damaged, or `is_below` has failed.
    pub fn search(
        &self,
        mut is_below: impl FnMut(&Entry<'a>) -> Result<bool, Fault>,
    ) -> Result<Place, Fault> {
        if let Some(right) = self.right() {
            if self.is_ignored() {
                return Ok(Place::Right(right));
            }
            if let Some(high) = self.high_key()?
                && is_below(&high)?
            {
                return Ok(Place::Right(right));
            }
        } else if self.is_ignored() {
            return Ok(Place::Item(self.count().saturating_add(1)));
        }
        let first = self.first();
        // Binary search. All entries before `low` are less than the key, and all entries from `end`
        // onwards are greater than or equal to it. The first entry on an inner page is minus
        // infinity, so it is less than any key.
        let (mut low, mut end) = (first, self.count().saturating_add(1));
        if !self.is_leaf() {
            low = first.saturating_add(1);
            if end < low {
                return Err(Fault::NoDownlink);
            }
        }
        while low < end {
            let middle = low + (end - low) / 2;
            if is_below(&self.entry(middle)?)? {
                low = middle + 1;
            } else {
                end = middle;
            }
        }
        Ok(Place::Item(low))
    }

    /// The child of the entry before `item`, on an inner page.
    ///
    /// # Errors
    /// There is no such entry, or it is damaged.
    pub fn child_before(&self, item: u16) -> Result<BlockNo, Fault> {
        let before = item.saturating_sub(1);
        self.entry(before)?.child().ok_or(Fault::Kind { item: before })
    }

    /// Returns the highest heap TID on a leaf page, including entries that are marked dead. We skip
    /// damaged entries. Returns `None` if the page has no entries or isn't a leaf.
    pub fn last_row(&self) -> Option<Tid> {
        if !self.is_leaf() || self.is_ignored() {
            return None;
        }
        let items = self.first()..=self.count;
        let bytes = items.filter_map(|item| Some((item, self.pointed_at(item).ok()?.1)));
        bytes.filter_map(|(item, bytes)| Entry::last_row_of_leaf(item, bytes)).max()
    }

    /// Returns the highest block of the index that the page links to, which may be a sibling or a
    /// child. Returns `None` if the page has neither, or if it is deleted or half-dead.
    pub fn last_link(&self) -> Option<BlockNo> {
        if self.is_ignored() {
            return None;
        }
        // A leaf has no children, and verification calls this for every leaf of every B-tree, so we
        // must not look at its entries.
        let entries = (!self.is_leaf()).then(|| self.entries());
        let children = entries.into_iter().flatten().filter_map(|entry| entry.ok()?.child());
        children.chain(self.left()).chain(self.right()).max()
    }
}
