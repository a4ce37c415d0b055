//! **Segment files**: the log is cut into files of equal size, 16 MB by default.
//!
//! ```text
//!   00000003 0000000A 000000C5       timeline 3, segment 10 · 256 + 197 of 16 MB: A/C5000000
//!   timeline  high     low
//! ```
//! The name counts segments, not bytes: the last part counts the segments within 4 GB, so it stays
//! below 256 if segments have 16 MB. A name therefore means a place in the log only together with
//! the segment size, which is in the control file and in the header of each segment.
//!
//! Mirrors `XLogFileName` in PostgreSQL's `access/xlog_internal.h`.

use std::fmt;

use crate::ids::Lsn;

/// The size of a log segment file: a power of two from 1 MB to 1 GB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentSize(u32);

impl SegmentSize {
    /// `None` if no server would accept this size.
    pub fn new(bytes: u32) -> Option<Self> {
        let is_valid = bytes.is_power_of_two() && (1 << 20..=1 << 30).contains(&bytes);
        is_valid.then_some(Self(bytes))
    }

    /// The size in bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }

    /// The number of the segment that contains this place.
    pub fn segment_of(self, place: Lsn) -> u64 {
        place.0 / u64::from(self.0)
    }

    /// The offset of a place in its segment.
    pub fn offset(self, place: Lsn) -> u32 {
        place.0 as u32 & (self.0 - 1)
    }

    /// Where a segment begins. Segments past the last possible one begin at the largest position.
    pub fn start_of(self, segment: u64) -> Lsn {
        Lsn(segment.saturating_mul(u64::from(self.0)))
    }

    /// Number of segments in 4 GB.
    fn in_4_gb(self) -> u64 {
        (1 << 32) / u64::from(self.0)
    }
}

/// The name of a segment file.
///
/// ```
/// # use trunkline_format::{Lsn, wal::{SegmentName, SegmentSize}};
/// let size = SegmentSize::new(16 << 20).unwrap();
/// let name = SegmentName::parse("000000030000000A000000C5").unwrap();
/// assert_eq!(name.timeline(), 3);
/// assert_eq!(name.start(size), Some(Lsn(0xA_C500_0000)));
/// assert_eq!(SegmentName::of(3, size.segment_of(Lsn(0xA_C512_3456)), size), name);
/// assert_eq!(name.to_string(), "000000030000000A000000C5");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentName {
    timeline: u32,
    high: u32,
    low: u32,
}

impl SegmentName {
    /// Length of a name in characters.
    pub const LENGTH: usize = 24;

    /// The name of a segment on a timeline.
    pub fn of(timeline: u32, segment: u64, size: SegmentSize) -> Self {
        let (high, low) = (segment / size.in_4_gb(), segment % size.in_4_gb());
        Self { timeline, high: high as u32, low: low as u32 }
    }

    /// Parses a name. `None` for anything else that can be in `pg_wal`, such as a history file.
    pub fn parse(name: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
        if name.len() != Self::LENGTH || !name.bytes().all(is_digit) {
            return None;
        }
        let part = |at: usize| u32::from_str_radix(name.get(at..at + 8)?, 16).ok();
        Some(Self { timeline: part(0)?, high: part(8)?, low: part(16)? })
    }

    /// The timeline.
    pub fn timeline(self) -> u32 {
        self.timeline
    }

    /// The segment's number. `None` if segments of this size never have such a name.
    pub fn number(self, size: SegmentSize) -> Option<u64> {
        let low = u64::from(self.low);
        (low < size.in_4_gb()).then(|| u64::from(self.high) * size.in_4_gb() + low)
    }

    /// Where the segment begins. `None` if segments of this size never have such a name.
    pub fn start(self, size: SegmentSize) -> Option<Lsn> {
        self.number(size).map(|number| size.start_of(number))
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}{:08X}{:08X}", self.timeline, self.high, self.low)
    }
}
