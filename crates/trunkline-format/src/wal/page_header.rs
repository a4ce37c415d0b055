//! **Log page header** (`XLogPageHeaderData`): the log is a sequence of 8 kB pages, each with a
//! header of 24 bytes, or of 40 bytes if the page is the first one of a segment file.
//!
//! ```text
//!   0       2      4          8            16          20       24             32        36      40
//!   ├───────┼──────┼──────────┼────────────┼───────────┼────────┼──────────────┼─────────┼───────┤
//!   │ magic │ info │ timeline │ address    │ remaining │ padding│ system id    │ segment │ block │
//!   └───────┴──────┴──────────┴────────────┴───────────┴────────┴──────────────┴─────────┴───────┘
//!   ╰──────────────────── every page ───────────────────────────╯╰─ first page of a file: sizes ─╯
//! ```
//! The magic is the only thing in the log that names a major version, so it decides how everything
//! else is decoded. The address is the page's own position in the log. A segment file that the
//! server has recycled still contains the pages of its former life, and their address gives them
//! away: this is how nearly every crashed log ends.
//!
//! `remaining` counts the bytes of a record that began on an earlier page and are still to come, on
//! this page and on those that follow it.
//!
//! Mirrors PostgreSQL's `access/xlog_internal.h`.

use thiserror::Error;

use crate::control::PgVersion;
use crate::ids::Lsn;
use crate::little_endian::{put, read_at};

use super::segment_name::SegmentSize;

/// `XLOG_BLCKSZ`: the size of a log page in bytes. [`crate::control`] rejects other sizes.
pub const LOG_PAGE_SIZE: usize = 8192;

/// `SizeOfXLogShortPHD`.
pub const SHORT_HEADER_SIZE: usize = 24;

/// `SizeOfXLogLongPHD`.
pub const LONG_HEADER_SIZE: usize = 40;

/// `XLP_FIRST_IS_CONTRECORD`: the page begins with the rest of a record.
const FIRST_IS_CONTINUATION: u16 = 0x1;

/// `XLP_LONG_HEADER`.
const LONG_HEADER: u16 = 0x2;

/// What the headers of all pages of one log have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogIdentity {
    /// The size of segment files.
    pub segment_size: SegmentSize,
    /// The cluster's system identifier. `None` accepts any.
    pub system_identifier: Option<u64>,
}

/// A log page header that belongs to the expected place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPageHeader {
    /// The major version, from the magic.
    pub version: PgVersion,
    /// The timeline on which the page was written.
    pub timeline: u32,
    /// The page's position in the log.
    pub address: Lsn,
    /// Bytes of a record that are still to come; 0 unless the page begins with a continuation.
    pub remaining: u32,
    /// Whether the page begins with the rest of a record.
    pub is_continuation: bool,
    /// Whether the record that should continue here was cut off by a crash. The server went on
    /// writing on this page.
    pub is_overwritten: bool,
    /// Only in the first page of a segment file.
    pub long: Option<LongHeader>,
}

/// The additional fields in the header of a segment file's first page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongHeader {
    /// The cluster's system identifier.
    pub system_identifier: u64,
    /// The size of the segment file in bytes.
    pub segment_size: u32,
    /// The size of a log page in bytes.
    pub block_size: u32,
}

/// The reason why bytes are not the log page that belongs at their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum LogPageError {
    /// There are fewer bytes than a header has.
    #[error("page has {found} bytes, expected at least {expected}")]
    Short {
        /// The number of bytes.
        found: usize,
        /// The size of the header.
        expected: usize,
    },
    /// The page consists of zeros as far as the header goes: the server never wrote it.
    #[error("page is empty")]
    Empty,
    /// The magic is not of a version that we know.
    #[error("page magic is 0x{found:04X}, expected 0xD110, 0xD113, 0xD116, 0xD118 or 0xD122")]
    Magic {
        /// The first two bytes.
        found: u16,
    },
    /// The magic is of another version than that of the pages before it.
    #[error("page is of {found}, but the log is of {expected}")]
    Version {
        /// The version of this page.
        found: PgVersion,
        /// The version of earlier pages.
        expected: PgVersion,
    },
    /// Unknown bits are set.
    #[error("page info is 0x{found:04X}, which has unknown bits")]
    Info {
        /// The field.
        found: u16,
    },
    /// The page has another address. Nearly always, this is what a recycled segment file has kept
    /// of its former contents.
    #[error("page has the address {found}, expected {expected}")]
    Address {
        /// The address in the header.
        found: Lsn,
        /// The address of this place.
        expected: Lsn,
    },
    /// The first page of a segment file has a short header, or another page has a long one.
    #[error("page has a {} header", if *.is_long { "long" } else { "short" })]
    Kind {
        /// Whether the header is a long one.
        is_long: bool,
    },
    /// The page belongs to another cluster.
    #[error("page is of the system {found}, expected {expected}")]
    System {
        /// The identifier in the header.
        found: u64,
        /// The cluster's identifier.
        expected: u64,
    },
    /// The segment size differs from the cluster's.
    #[error("page is of a segment of {found} bytes, expected {expected}")]
    SegmentSize {
        /// The size in the header.
        found: u32,
        /// The cluster's segment size.
        expected: u32,
    },
    /// The log was written by a server with another page size.
    #[error("log pages have {found} bytes, expected 8192")]
    BlockSize {
        /// The size in the header.
        found: u32,
    },
    /// The timeline is older than that of an earlier page.
    #[error("page is of timeline {found}, but an earlier page is of timeline {expected}")]
    Timeline {
        /// The timeline of this page.
        found: u32,
        /// The newest timeline of earlier pages.
        expected: u32,
    },
}

/// The magic of each version's log pages (`XLOG_PAGE_MAGIC`).
const MAGICS: [(u16, PgVersion); 5] = [
    (0xD110, PgVersion::V15),
    (0xD113, PgVersion::V16),
    (0xD116, PgVersion::V17),
    (0xD118, PgVersion::V18),
    (0xD122, PgVersion::V19),
];

/// `XLP_FIRST_IS_OVERWRITE_CONTRECORD`. In 15 to 18, 0x4 is an unused flag
/// (`XLP_BKP_REMOVABLE`), which 19 removed.
fn overwritten_bit(version: PgVersion) -> u16 {
    if version >= PgVersion::V19 { 0x4 } else { 0x8 }
}

fn known_bits(version: PgVersion) -> u16 {
    if version >= PgVersion::V19 { 0x7 } else { 0xF }
}

impl LogPageHeader {
    /// Decodes the header at the start of a page, without regard to the place where the page was
    /// found.
    ///
    /// # Errors
    ///
    /// [`LogPageError`] if the magic, the flags or the sizes are invalid.
    pub fn parse(page: &[u8]) -> Result<Self, LogPageError> {
        let short = LogPageError::Short { found: page.len(), expected: SHORT_HEADER_SIZE };
        let fields = page.get(..SHORT_HEADER_SIZE).ok_or(short)?;
        if fields.iter().all(|&byte| byte == 0) {
            return Err(LogPageError::Empty);
        }
        let magic: u16 = read_at(fields, 0).ok_or(short)?;
        let version = MAGICS.into_iter().find(|(of_version, _)| *of_version == magic);
        let (_, version) = version.ok_or(LogPageError::Magic { found: magic })?;
        let info: u16 = read_at(fields, 2).ok_or(short)?;
        if info & !known_bits(version) != 0 {
            return Err(LogPageError::Info { found: info });
        }
        let is_continuation = info & FIRST_IS_CONTINUATION != 0;
        Ok(Self {
            version,
            timeline: read_at(fields, 4).ok_or(short)?,
            address: Lsn(read_at(fields, 8).ok_or(short)?),
            remaining: read_at(fields, 16).ok_or(short)?,
            is_continuation,
            is_overwritten: info & overwritten_bit(version) != 0,
            long: if info & LONG_HEADER != 0 { Some(LongHeader::parse(page)?) } else { None },
        })
    }

    /// Decodes the header of the page at `place` in the log, and checks that it belongs there.
    ///
    /// # Errors
    ///
    /// [`LogPageError`], except [`LogPageError::Timeline`] and [`LogPageError::Version`], which
    /// need the pages before this one.
    pub fn parse_at(page: &[u8], place: Lsn, log: &LogIdentity) -> Result<Self, LogPageError> {
        let header = Self::parse(page)?;
        if header.address != place {
            return Err(LogPageError::Address { found: header.address, expected: place });
        }
        let is_first = log.segment_size.offset(place) == 0;
        let Some(long) = header.long else {
            return if is_first { Err(LogPageError::Kind { is_long: false }) } else { Ok(header) };
        };
        if !is_first {
            return Err(LogPageError::Kind { is_long: true });
        }
        match log.system_identifier {
            Some(expected) if expected != long.system_identifier => {
                return Err(LogPageError::System { found: long.system_identifier, expected });
            }
            _ => {}
        }
        let expected = log.segment_size.bytes();
        if long.segment_size != expected {
            return Err(LogPageError::SegmentSize { found: long.segment_size, expected });
        }
        Ok(header)
    }

    /// The header of a new page at `address`. If the page begins with the rest of a record, that has `remaining` bytes.
    /// `file` says what only the first page of a segment has.
    pub fn new(
        version: PgVersion,
        timeline: u32,
        file: LongHeader,
        address: Lsn,
        remaining: Option<u32>,
    ) -> Self {
        let is_first = address.0.is_multiple_of(u64::from(file.segment_size));
        Self {
            version,
            timeline,
            address,
            remaining: remaining.unwrap_or_default(),
            is_continuation: remaining.is_some(),
            is_overwritten: false,
            long: is_first.then_some(file),
        }
    }

    /// Writes the header to the start of a page. What does not fit is left out.
    pub fn write(&self, page: &mut [u8]) {
        let magic = MAGICS.into_iter().find(|(_, version)| *version == self.version);
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let info = flag(self.is_continuation, FIRST_IS_CONTINUATION)
            | flag(self.long.is_some(), LONG_HEADER)
            | flag(self.is_overwritten, overwritten_bit(self.version));
        put(page, 0, magic.map_or(0, |(magic, _)| magic).to_le_bytes());
        put(page, 2, info.to_le_bytes());
        put(page, 4, self.timeline.to_le_bytes());
        put(page, 8, self.address.0.to_le_bytes());
        put(page, 16, self.remaining.to_le_bytes());
        put(page, 20, [0; 4]);
        if let Some(long) = self.long {
            put(page, 24, long.system_identifier.to_le_bytes());
            put(page, 32, long.segment_size.to_le_bytes());
            put(page, 36, long.block_size.to_le_bytes());
        }
    }

    /// The size of this header in bytes.
    pub fn size(&self) -> usize {
        if self.long.is_some() { LONG_HEADER_SIZE } else { SHORT_HEADER_SIZE }
    }
}

impl LongHeader {
    /// That of a cluster's segments.
    pub fn new(system_identifier: u64, segment_size: SegmentSize) -> Self {
        let block_size = LOG_PAGE_SIZE as u32;
        Self { system_identifier, segment_size: segment_size.bytes(), block_size }
    }

    fn parse(page: &[u8]) -> Result<Self, LogPageError> {
        let short = LogPageError::Short { found: page.len(), expected: LONG_HEADER_SIZE };
        let block_size = read_at(page, 36).ok_or(short)?;
        if block_size as usize != LOG_PAGE_SIZE {
            return Err(LogPageError::BlockSize { found: block_size });
        }
        Ok(Self {
            system_identifier: read_at(page, 24).ok_or(short)?,
            segment_size: read_at(page, 32).ok_or(short)?,
            block_size,
        })
    }
}
