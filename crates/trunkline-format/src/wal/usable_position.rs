//! **Usable byte positions**: WAL positions that don't count page headers (`XLogBytePosToRecPtr`).
//!
//! ```text
//!   LSN        0    40                 8192 8216               16384
//!              ├────┼──────────────────┼────┼───────────────────┼────┤
//!              │ ▒▒ │ records          │ ▒▒ │ records           │ ▒▒ │
//!   usable          0               8152                    16320
//! ```
//! An inserter reserves a place with one addition to a usable position, whatever page
//! boundaries its record crosses. A usable position at a page boundary has two LSNs: a record ends at the boundary, and
//! the next one begins after the page header.
//!
//! Mirrors `XLogBytePosToRecPtr`, `XLogBytePosToEndRecPtr` and `XLogRecPtrToBytePos`.

use crate::ids::Lsn;

use super::page_header::{LOG_PAGE_SIZE, LONG_HEADER_SIZE, SHORT_HEADER_SIZE};
use super::segment_name::SegmentSize;

const PAGE: u64 = LOG_PAGE_SIZE as u64;
const SHORT: u64 = SHORT_HEADER_SIZE as u64;
const LONG: u64 = LONG_HEADER_SIZE as u64;

/// Converts between usable positions and LSNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsablePositions {
    segment: u64,
}

impl UsablePositions {
    /// The converter for a WAL with this segment size.
    pub fn new(segment: SegmentSize) -> Self {
        Self { segment: u64::from(segment.bytes()) }
    }

    /// Usable bytes of a segment.
    fn per_segment(self) -> u64 {
        self.segment / PAGE * (PAGE - SHORT) - (LONG - SHORT)
    }

    /// The LSN at which a record begins whose first byte is at this position.
    pub fn start(self, position: u64) -> Lsn {
        let (segment, page, offset, header) = self.parts(position);
        Lsn(segment + page * PAGE + header + offset)
    }

    /// The LSN at which a record ends whose last byte is before this position: the page boundary if it fills
    /// the page.
    pub fn end(self, position: u64) -> Lsn {
        let (segment, page, offset, header) = self.parts(position);
        Lsn(segment + page * PAGE + if offset == 0 { 0 } else { header + offset })
    }

    /// The position of an LSN. An LSN inside a page header has that of the first byte after it.
    pub fn position(self, lsn: Lsn) -> u64 {
        let (segment, offset) = (lsn.0 / self.segment, lsn.0 % self.segment);
        let (page, offset) = (offset / PAGE, offset % PAGE);
        let before = if page == 0 { 0 } else { page * (PAGE - SHORT) - (LONG - SHORT) };
        let header = if page == 0 { LONG } else { SHORT };
        segment * self.per_segment() + before + offset.saturating_sub(header)
    }

    /// The start of the segment, the page in it, the offset after the page header, and the header's size.
    fn parts(self, position: u64) -> (u64, u64, u64, u64) {
        let segment = position / self.per_segment() * self.segment;
        let rest = position % self.per_segment();
        match rest.checked_sub(PAGE - LONG) {
            None => (segment, 0, rest, LONG),
            Some(rest) => (segment, 1 + rest / (PAGE - SHORT), rest % (PAGE - SHORT), SHORT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_of_two_segments_is_at_its_place() {
        let positions = UsablePositions::new(SegmentSize::new(1 << 20).expect("valid"));
        let mut position = 0;
        for page in 0..256_u64 {
            let lsn = page * PAGE;
            let header = if page % 128 == 0 { LONG } else { SHORT };
            // A boundary belongs to the record that ends there, the end of the header to the next one.
            assert_eq!(positions.end(position), Lsn(lsn), "page {page}");
            assert_eq!(positions.position(Lsn(lsn)), position, "page {page}");
            assert_eq!(positions.position(Lsn(lsn + 8)), position, "page {page}");
            for offset in header..PAGE {
                let here = Lsn(lsn + offset);
                assert_eq!(positions.start(position), here);
                assert_eq!(positions.position(here), position);
                if offset > header {
                    assert_eq!(positions.end(position), here);
                }
                position += 1;
            }
        }
        assert_eq!(position, 2 * positions.per_segment());
    }
}
