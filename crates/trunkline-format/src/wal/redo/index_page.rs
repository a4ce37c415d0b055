//! **Index pages** as B-tree records see them: the special space, and the size of an item.

use crate::btree::{INDEX_SIZE_MASK, LEAF, SPECIAL};
use crate::ids::BlockNo;
use crate::little_endian::read_at;

use super::page_editor::PageEditor;

/// Flags of a page that only matter here.
pub(super) const HAS_GARBAGE: u16 = 0x0040;
pub(super) const HAS_FULL_XID: u16 = 0x0100;

/// The special space of a page.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Opaque {
    pub(super) left: BlockNo,
    pub(super) right: BlockNo,
    pub(super) level: u32,
    pub(super) flags: u16,
    pub(super) cycle: u16,
}

impl Opaque {
    pub(super) fn of(page: &PageEditor<'_>) -> Self {
        let at = usize::from(SPECIAL);
        let word = |at| read_at::<u32>(page.page(), at).unwrap_or_default();
        let half = |at| read_at::<u16>(page.page(), at).unwrap_or_default();
        Self {
            left: word(at),
            right: word(at + 4),
            level: word(at + 8),
            flags: half(at + 12),
            cycle: half(at + 14),
        }
    }

    pub(super) fn write(self, page: &mut PageEditor<'_>) {
        let at = usize::from(SPECIAL);
        for (place, word) in (at..).step_by(4).zip([self.left, self.right, self.level]) {
            page.put(place, &word.to_le_bytes());
        }
        page.put(at + 12, &self.flags.to_le_bytes());
        page.put(at + 14, &self.cycle.to_le_bytes());
    }

    /// Empties a page, and gives it this special space.
    pub(super) fn restart(self, page: &mut PageEditor<'_>) {
        page.clear();
        self.write(page);
    }

    pub(super) fn is_rightmost(self) -> bool {
        self.right == 0
    }
}

/// The flag of pages on the lowest level.
pub(super) fn leaf_flag(level: u32) -> u16 {
    if level == 0 { LEAF } else { 0 }
}

/// Offset of `t_info` in an index tuple.
pub(super) const INFO: usize = 6;

/// The size that an index tuple says it has.
pub(super) fn item_size(bytes: &[u8]) -> usize {
    usize::from(read_at::<u16>(bytes, INFO).unwrap_or_default() & INDEX_SIZE_MASK)
}
