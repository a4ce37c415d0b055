//! Self-identifying pages: valid heap pages with one row, built from relation, block and version.
//!
//! Their contents let a case detect a page in the wrong buffer or at the wrong block, and an old
//! version of a page. As on a server with data checksums, the page header contains the last
//! change's LSN and a checksum.

use super::Cluster;
use trunkline_format::page::is_new;
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapPageBuilder, Lsn, PageBytes, page_checksum};
use trunkline_sample::push_account;

/// Offset of the first byte that depends only on relation, block and version. The LSN (8 bytes) and
/// the checksum (2 bytes) precede it.
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

/// Whether a page contains a given version of a block. We don't compare LSN and checksum, because a
/// test doesn't know them.
pub fn is_version(found: &[u8], number: u32, block: BlockNo, version: u32) -> bool {
    found[CONTENT..] == page(number, block, version, 0)[CONTENT..]
}

/// Whether a page's checksum is valid. A new page (all zeros) has no checksum and counts as valid.
pub fn is_sound(found: &[u8], block: BlockNo) -> bool {
    let Some(page) = found.first_chunk::<BLOCK_SIZE>() else { return false };
    is_new(page) || u16::from_le_bytes([page[8], page[9]]) == page_checksum(page, block)
}

/// How a page is damaged. Reads check the checksum and the header separately, and their policies
/// treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The checksum doesn't match, but the header is valid.
    Checksum,
    /// The header is invalid, but the checksum matches.
    Header,
    /// Both.
    Both,
}

impl Cluster {
    /// Damages a block of relation 0 on disk, bypassing the engine.
    pub fn damage(&self, block: BlockNo, damage: Damage) {
        let mut page = page(0, block, 0, 0);
        match damage {
            // Byte 5000 is in free space or row data, so the header stays valid.
            Damage::Checksum => page[5000] ^= 1,
            // Set undefined flag bits.
            Damage::Header | Damage::Both => page[11] = 0xFF,
        }
        if damage == Damage::Header {
            let checksum = page_checksum(&page, block);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
        }
        self.put(0, block, &page);
    }

    /// Restores a damaged block of relation 0.
    pub fn repair(&self, block: BlockNo) {
        self.put(0, block, &page(0, block, 0, 0));
    }
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
