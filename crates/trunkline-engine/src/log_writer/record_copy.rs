//! Copies a record into the ring, with the headers of the pages that it begins.
//!
//! ```text
//!   page n                          page n + 1
//!   │▒▒│ … │ record, first part    │▒▒│ rest │ next record …
//!                                    └ "continues a record, n bytes remain", by this record's inserter
//! ```
//! The header of a page is written by the inserter of the record that has its first byte.

use trunkline_format::wal::{
    LOG_PAGE_SIZE, LONG_HEADER_SIZE, LogPageHeader, LongHeader, UsablePositions,
};
use trunkline_format::{Lsn, PgVersion};

use super::reservation::Reserved;
use super::ring::Ring;

/// What all pages of the log have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageIdentity {
    pub(super) version: PgVersion,
    pub(super) timeline: u32,
    pub(super) file: LongHeader,
}

impl PageIdentity {
    /// Stores the header of the page at `page`. If the page begins with the rest of a record, that has
    /// `remaining` bytes. Returns where the header ends.
    fn put_header(&self, ring: &Ring, page: Lsn, remaining: Option<u32>) -> Lsn {
        let header = LogPageHeader::new(self.version, self.timeline, self.file, page, remaining);
        let mut bytes = [0; LONG_HEADER_SIZE];
        header.write(&mut bytes);
        ring.put(page, &bytes[..header.size()]);
        Lsn(page.0 + header.size() as u64)
    }

    /// Stores a record at its reserved place.
    pub(super) fn put_record(
        &self,
        ring: &Ring,
        positions: &UsablePositions,
        reserved: &Reserved,
        record: &[u8],
    ) {
        let mut place = positions.start(reserved.start);
        let boundary = positions.end(reserved.start);
        if boundary != place {
            // The record before it has filled its page.
            self.put_header(ring, boundary, None);
        }
        let mut rest = record;
        loop {
            let room = LOG_PAGE_SIZE - place.0 as usize % LOG_PAGE_SIZE;
            let (part, later) = rest.split_at(room.min(rest.len()));
            ring.put(place, part);
            if later.is_empty() {
                return;
            }
            let page = Lsn(place.0 + part.len() as u64);
            place = self.put_header(ring, page, Some(later.len() as u32));
            rest = later;
        }
    }
}
