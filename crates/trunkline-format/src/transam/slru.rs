//! **SLRUs**: the files of the commit log and of multixacts, and positions in them.
//!
//! Each file contains 32 pages of 8 kB, without any page headers or checksums. VACUUM removes the
//! files before the one with the oldest id that a row may still have. After a clean shutdown, every
//! page from there to the newest id exists as a whole, because the server adds the page, filled
//! with zeros, before it assigns the first id on it.
//!
//! Mirrors PostgreSQL's `access/transam/slru.c`.

use crate::ids::BLOCK_SIZE;

/// `SLRU_PAGES_PER_SEGMENT`: pages in a full segment file.
pub const SEGMENT_PAGES: u64 = 32;

/// Bytes in a full segment file: 256 KiB.
pub const SEGMENT_BYTES: u64 = SEGMENT_PAGES * BLOCK_SIZE as u64;

/// A position in an SLRU. It consists of a page number, which is counted across all segment files,
/// and a byte offset within that page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlruPosition {
    /// The page number, counted from 0 across all segment files.
    pub page: u64,
    /// The byte offset within the page, below 8192.
    pub byte: usize,
}

impl SlruPosition {
    /// The segment file's number.
    pub fn segment(self) -> u64 {
        self.page / SEGMENT_PAGES
    }

    /// The byte offset within the segment file.
    pub fn offset(self) -> u64 {
        self.page % SEGMENT_PAGES * BLOCK_SIZE as u64 + self.byte as u64
    }
}
