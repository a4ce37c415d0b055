//! Pages that identify themselves: valid heap pages with one row, made from relation, block and
//! version.
//!
//! A page in the wrong buffer or on the wrong block, or an old version of it, is therefore noticed.
//! The header has the LSN of the last change and a checksum, as a server with data checksums writes
//! them.

use super::Cluster;
use trunkline_format::page::is_new;
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapPageBuilder, Lsn, PageBytes, page_checksum};
use trunkline_sample::push_account;

/// The first byte that depends on relation, block and version alone. LSN (8 bytes) and checksum (2
/// bytes) precede it.
const CONTENT: usize = 10;

/// The page of a version of a block, with `lsn` in its header.
pub fn page(number: u32, block: BlockNo, version: u32, lsn: u64) -> PageBytes {
    let mut builder = HeapPageBuilder::new(block);
    push_account(&mut builder, block as i32, version as i32, number as i32).expect("room");
    builder.lsn(Lsn(lsn));
    builder.finish(true)
}

/// The first blocks of a relation, each in version 0 with LSN 0.
pub fn pages(number: u32, blocks: u32) -> Vec<u8> {
    (0..blocks).flat_map(|block| page(number, block, 0, 0)).collect()
}

/// Whether a page is a version of a block. LSN and checksum are not compared, because a test does
/// not know them.
pub fn is_version(found: &[u8], number: u32, block: BlockNo, version: u32) -> bool {
    found[CONTENT..] == page(number, block, version, 0)[CONTENT..]
}

/// Whether the checksum of a page is right, or the page is new (all zeros), which has no checksum.
pub fn is_sound(found: &[u8], block: BlockNo) -> bool {
    let Some(page) = found.first_chunk::<BLOCK_SIZE>() else { return false };
    is_new(page) || u16::from_le_bytes([page[8], page[9]]) == page_checksum(page, block)
}

/// How a page is damaged. Checksum and header are checked separately, and the policies of a read
/// treat them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The checksum is wrong, the header valid.
    Checksum,
    /// The header is invalid, the checksum right.
    Header,
    /// Both.
    Both,
}

impl Cluster {
    /// Damages a block of relation 0 on disk, bypassing the engine.
    pub fn damage(&self, block: BlockNo, damage: Damage) {
        let mut page = page(0, block, 0, 0);
        match damage {
            // A byte in the free space or a row: the header stays valid.
            Damage::Checksum => page[5000] ^= 1,
            // Undefined flag bits.
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
