//! Pages that know what they are: sound heap pages of one row, made from the relation, the block and
//! the version that they stand for.
//!
//! A page in the wrong place, or of the wrong time, is therefore noticed wherever it is found. Where
//! it stands in the log is written into its header as a server does it, with the checksum over all.

use trunkline_format::page::is_new;
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapPageBuilder, Lsn, PageBytes, page_checksum};
use trunkline_sample::push_account;

/// Where a page begins to depend on its version alone: behind its position in the log and its
/// checksum.
const SUBSTANCE: usize = 10;

/// What a version of a block of a relation holds, with the position of its last change in the log.
pub fn page(number: u32, block: BlockNo, version: u32, lsn: u64) -> PageBytes {
    let mut builder = HeapPageBuilder::new(block);
    push_account(&mut builder, block as i32, version as i32, number as i32).expect("room");
    builder.lsn(Lsn(lsn));
    builder.finish(true)
}

/// The first blocks of a relation, each in version 0.
pub fn pages(number: u32, blocks: u32) -> Vec<u8> {
    (0..blocks).flat_map(|block| page(number, block, 0, 0)).collect()
}

/// Whether a page is a version of a block, whatever its position in the log and its checksum.
pub fn is_version(found: &[u8], number: u32, block: BlockNo, version: u32) -> bool {
    found[SUBSTANCE..] == page(number, block, version, 0)[SUBSTANCE..]
}

/// Whether a page's checksum is right, or it is new.
pub fn is_sound(found: &[u8], block: BlockNo) -> bool {
    let Some(page) = found.first_chunk::<BLOCK_SIZE>() else { return false };
    is_new(page) || u16::from_le_bytes([page[8], page[9]]) == page_checksum(page, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_from_its_neighbours_and_its_past() {
        let found = page(3, 7, 2, 0x1_0000_0002);
        assert!(is_sound(&found, 7) && is_version(&found, 3, 7, 2));
        assert!(!is_sound(&found, 8), "the checksum is of its block");
        assert!(!is_version(&found, 3, 8, 2) && !is_version(&found, 3, 7, 1));
        assert!(!is_version(&found, 4, 7, 2));
        assert!(is_sound(&[0; BLOCK_SIZE], 7) && !is_sound(&found[1..], 7));
        assert_eq!(pages(3, 8)[7 * BLOCK_SIZE..], page(3, 7, 0, 0));
    }
}
