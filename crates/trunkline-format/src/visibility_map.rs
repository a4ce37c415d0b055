//! **Visibility map**: two bits per heap block, in a separate fork.
//!
//! ```text
//!   block 70 000 = 2 × 32 672 + 4656 ─▶ map block 2, byte 24 + 4656/4, bits 0 and 1
//!                                       bit 0: every tuple is visible to all transactions
//!                                       bit 1: and frozen, so that vacuum can skip the block
//! ```
//!
//! If a bit is set, we can be sure that the heap block really is all-visible or all-frozen. For
//! example, an index-only scan doesn't read the heap block if its all-visible bit is set. If a bit
//! is not set, or if the map is too short to contain it, we don't know anything about the heap
//! block. Mirrors `visibilitymap.c`.

use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes};
use crate::page::HEADER_SIZE;

/// `HEAPBLOCKS_PER_PAGE`: the number of heap blocks that one map page covers.
pub const BLOCKS_PER_PAGE: u32 = (BLOCK_SIZE as u32 - HEADER_SIZE as u32) * BLOCKS_PER_BYTE;

const BLOCKS_PER_BYTE: u32 = 4;

const _: () = assert!(BLOCKS_PER_PAGE == 32_672);

/// A heap block's bits in the map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VisibilityBits {
    /// `VISIBILITYMAP_ALL_VISIBLE`: every tuple is visible to all transactions.
    pub all_visible: bool,
    /// `VISIBILITYMAP_ALL_FROZEN`: every tuple is frozen. On a valid page this implies
    /// [`Self::all_visible`].
    pub all_frozen: bool,
}

impl VisibilityBits {
    fn of(bits: u8) -> Self {
        Self { all_visible: bits & 1 != 0, all_frozen: bits & 2 != 0 }
    }

    /// The bits as a map page and WAL records contain them.
    pub fn to_bits(self) -> u8 {
        u8::from(self.all_visible) | u8::from(self.all_frozen) << 1
    }
}

/// The map block that covers heap block `block`.
pub fn map_block(block: BlockNo) -> BlockNo {
    block / BLOCKS_PER_PAGE
}

/// Returns the first heap block that is covered by block `map` of the visibility map, or `None` if
/// that would be greater than the maximum block number.
pub fn first_covered(map: BlockNo) -> Option<BlockNo> {
    map.checked_mul(BLOCKS_PER_PAGE)
}

/// Reads the bits of heap block `block` from `page`, the map block that covers it.
///
/// ```
/// use trunkline_format::{BLOCK_SIZE, visibility_map::bits};
/// let mut map = [0; BLOCK_SIZE];
/// map[24 + 4656 / 4] = 0b01;
/// assert!(bits(&map, 70_000).all_visible && !bits(&map, 70_001).all_visible);
/// ```
pub fn bits(page: &PageBytes, block: BlockNo) -> VisibilityBits {
    let (byte, shift) = bit_place(block);
    VisibilityBits::of(page[byte] >> shift)
}

/// Where the bits of heap block `block` are on their map page: the byte, and the number of the lower
/// bit in it.
pub(crate) fn bit_place(block: BlockNo) -> (usize, u32) {
    let index = block % BLOCKS_PER_PAGE;
    let byte = usize::from(HEADER_SIZE) + (index / BLOCKS_PER_BYTE) as usize;
    (byte, index % BLOCKS_PER_BYTE * 2)
}

/// Iterates over the bits of all heap blocks that are covered by `page`, in block order. `map` is
/// the page's block number in the visibility map. The iterator stops at the maximum block number.
pub fn covered(
    page: &PageBytes,
    map: BlockNo,
) -> impl Iterator<Item = (BlockNo, VisibilityBits)> + '_ {
    let first = first_covered(map).into_iter();
    let blocks = first.flat_map(|first| first..first.saturating_add(BLOCKS_PER_PAGE));
    blocks.map(|block| (block, bits(page, block)))
}

/// Returns the highest heap block that has a set bit in `page`, which is block `map` of the visibility
/// map. Returns `None` if no bit is set.
pub fn last_set(page: &PageBytes, map: BlockNo) -> Option<BlockNo> {
    let bytes = page.get(usize::from(HEADER_SIZE)..)?;
    // The bits near the end of a page are usually set, so this loop is short.
    let at = bytes.iter().rposition(|&byte| byte != 0)?;
    let in_byte = bytes.get(at)?.checked_ilog2()? / 2;
    first_covered(map)?.checked_add(at as u32 * BLOCKS_PER_BYTE + in_byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::XorShift;

    #[test]
    fn every_block_has_bits_of_its_own() {
        for block in [0, 1, 3, 4, 32_671, 32_672, 65_343, 1 << 31, BlockNo::MAX] {
            let mut page = [0; BLOCK_SIZE];
            let index = block % 32_672;
            page[24 + index as usize / 4] = 0b11 << (2 * (index % 4));
            let set: Vec<_> = covered(&page, map_block(block))
                .filter(|(_, bits)| *bits != VisibilityBits::default())
                .collect();
            if block == BlockNo::MAX {
                // The largest u32 is InvalidBlockNumber.
                assert_eq!(set, []);
            } else {
                assert_eq!(set, [(block, VisibilityBits { all_visible: true, all_frozen: true })]);
                assert_eq!(last_set(&page, map_block(block)), Some(block));
            }
            assert!(bits(&page, block).all_frozen);
        }
        assert_eq!(first_covered(BlockNo::MAX), None);
        assert_eq!(covered(&[0xFF; BLOCK_SIZE], BlockNo::MAX).count(), 0);
    }

    #[test]
    fn any_bytes_are_a_map() {
        let mut random = XorShift(0x1234_5678);
        let mut page = [0; BLOCK_SIZE];
        for _ in 0..20 {
            random.fill(&mut page);
            let map = random.below(200_000) as u32;
            let set = covered(&page, map).filter(|(_, bits)| *bits != VisibilityBits::default());
            if map < 131_457 {
                assert_eq!(last_set(&page, map), set.map(|(block, _)| block).last());
            }
            let visible = covered(&page, map).filter(|(_, bits)| bits.all_visible).count();
            let ones: u32 = page[24..].iter().map(|byte| (byte & 0x55).count_ones()).sum();
            assert!(visible == ones as usize || first_covered(map).is_none() || map == 131_457);
        }
    }
}
