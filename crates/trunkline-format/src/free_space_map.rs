//! **Free space map** (FSM): each heap block's approximate free space, as a tree of maxima.
//!
//! ```text
//!   a page:   header 24 │ next slot i32 │ 4095 inner nodes │ 4069 leaves, a byte each
//!             a node is the maximum of the two below it; a leaf counts units of 32 bytes
//!   the fork: a root, whose leaves are pages, whose leaves are pages, whose leaves are blocks
//!             in depth-first order: 0 root, 1 its first child, 2 the first child of that, 3 …
//! ```
//!
//! The map is only a hint that helps to find a page with enough room for a new tuple. Changes to it
//! are not WAL-logged, so it may be out of date and we must not rely on it. Mirrors `freespace.c`
//! and `fsm_internals.h`.

use crate::ids::{BLOCK_SIZE, BlockNo, PageBytes};
use crate::page::HEADER_SIZE;

/// `SlotsPerFSMPage`: the number of blocks, or lower-level FSM pages, that one page covers.
pub const SLOTS_PER_PAGE: u32 =
    BLOCK_SIZE as u32 - HEADER_SIZE as u32 - NEXT_SLOT_SIZE - INNER_NODES;

/// `FSM_CAT_STEP`: the unit in bytes in which a leaf stores free space.
pub const STRIDE: u16 = 32;

const NEXT_SLOT_SIZE: u32 = 4;
const INNER_NODES: u32 = BLOCK_SIZE as u32 / 2 - 1;
const NODES: usize = HEADER_SIZE as usize + NEXT_SLOT_SIZE as usize;

const _: () = assert!(SLOTS_PER_PAGE == 4069);

/// Where the map stores the free space of `block`: the FSM block and the slot in it.
///
/// ```
/// use trunkline_format::free_space_map::place;
/// assert_eq!(place(0), (2, 0));
/// assert_eq!(place(4069), (3, 0));
/// ```
pub fn place(block: BlockNo) -> (BlockNo, u32) {
    // The block number of this bottom-level page is the number of FSM pages before it. These are
    // the root page, all earlier bottom-level pages, and one middle-level page for every 4069
    // bottom-level pages.
    let page = block / SLOTS_PER_PAGE;
    (page + page / SLOTS_PER_PAGE + 2, block % SLOTS_PER_PAGE)
}

/// Returns the free space recorded in slot `slot` of `page`, in bytes, rounded down to a multiple
/// of [`STRIDE`]. Returns `None` if there is no such slot.
pub fn free_bytes(page: &PageBytes, slot: u32) -> Option<u16> {
    let slot = Some(slot).filter(|slot| *slot < SLOTS_PER_PAGE)?;
    let byte = page.get(NODES + (INNER_NODES + slot) as usize)?;
    Some(u16::from(*byte) * STRIDE)
}

/// The largest free space of all slots in bytes, which the page's root node records.
pub fn most_free_bytes(page: &PageBytes) -> u16 {
    u16::from(page[NODES]) * STRIDE
}

/// Returns true if the value of every inner node on `page` is the maximum of its two children. If
/// not, a server will repair the page the next time it searches it.
pub fn is_consistent(page: &PageBytes) -> bool {
    let nodes = &page[NODES..];
    let node = |index: usize| nodes.get(index).copied().unwrap_or(0);
    (0..INNER_NODES as usize).all(|at| node(at) == node(2 * at + 1).max(node(2 * at + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::XorShift;

    #[test]
    fn places_are_those_of_the_server() {
        // The same computation as `fsm_logical_to_physical`.
        let by_server = |block: u32| {
            let (leaf, slots) = (block / 4069, 4069);
            (leaf + 1) + (leaf / slots + 1) + (leaf / (slots * slots) + 1) - 1
        };
        let blocks = [0, 1, 4068, 4069, 16_556_760, 16_556_761, 16_560_830, BlockNo::MAX];
        for block in blocks {
            assert_eq!(place(block), (by_server(block), block % 4069), "{block}");
        }
    }

    #[test]
    fn a_tree_is_what_its_leaves_say() {
        let mut page = [0; BLOCK_SIZE];
        assert!(is_consistent(&page));
        page[28 + 4095 + 7] = 255;
        assert_eq!(free_bytes(&page, 7), Some(8160));
        assert_eq!(free_bytes(&page, 4069), None);
        assert!(!is_consistent(&page));
        let mut node = 4095 + 7;
        while node > 0 {
            node = (node - 1) / 2;
            page[28 + node] = 255;
        }
        assert!(is_consistent(&page));
        assert_eq!(most_free_bytes(&page), 8160);
    }

    #[test]
    fn any_bytes_are_a_map() {
        let mut random = XorShift(7);
        let mut page = [0; BLOCK_SIZE];
        for _ in 0..100 {
            random.fill(&mut page);
            assert!(!is_consistent(&page));
            for slot in 0..4100 {
                assert_eq!(free_bytes(&page, slot).is_some(), slot < 4069);
            }
        }
    }
}
