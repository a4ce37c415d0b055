//! Self-identifying pages: valid heap pages with one row, built from relation, block and version.
//!
//! The contents of such a page depend on its relation, block and version. A case can therefore
//! detect a page that is in the wrong buffer, at the wrong block, or out of date. The page header
//! contains the LSN of the last change and a checksum, as on a server with data checksums enabled.

use trunkline_format::page::is_new;
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapPageBuilder, Lsn, PageBytes, page_checksum};
use trunkline_sample::push_account;

/// Offset of the first byte that depends only on relation, block and version. The bytes before it
/// are the LSN (8 bytes) and the checksum (2 bytes).
const CONTENT: usize = 10;

/// Builds the page for a version of a block, with `lsn` in its header.
pub fn page(number: u32, block: BlockNo, version: u32, lsn: u64) -> PageBytes {
    let mut builder = HeapPageBuilder::new(block);
    push_account(&mut builder, block as i32, version as i32, number as i32).expect("room");
    builder.lsn(Lsn(lsn));
    builder.finish(true)
}

/// A relation's first blocks, all at version 0 with LSN 0.
pub fn pages(number: u32, blocks: u32) -> Vec<u8> {
    (0..blocks).flat_map(|block| page(number, block, 0, 0)).collect()
}

/// Returns true if a page contains the given version of a block. We don't compare the LSN and the
/// checksum, because the test doesn't know what they should be.
pub fn is_version(found: &[u8], number: u32, block: BlockNo, version: u32) -> bool {
    found[CONTENT..] == page(number, block, version, 0)[CONTENT..]
}

/// Whether a page's checksum is valid. A new page (all zeros) has no checksum and counts as valid.
pub fn is_sound(found: &[u8], block: BlockNo) -> bool {
    let Some(page) = found.first_chunk::<BLOCK_SIZE>() else { return false };
    is_new(page) || u16::from_le_bytes([page[8], page[9]]) == page_checksum(page, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_differs_from_its_neighbours_and_older_versions() {
        let found = page(3, 7, 2, 0x1_0000_0002);
        assert!(is_sound(&found, 7) && is_version(&found, 3, 7, 2));
        assert!(!is_sound(&found, 8), "the checksum depends on the block number");
        assert!(!is_version(&found, 3, 8, 2) && !is_version(&found, 3, 7, 1));
        assert!(!is_version(&found, 4, 7, 2));
        assert!(is_sound(&[0; BLOCK_SIZE], 7) && !is_sound(&found[1..], 7));
        assert_eq!(pages(3, 8)[7 * BLOCK_SIZE..], page(3, 7, 0, 0));
    }
}
