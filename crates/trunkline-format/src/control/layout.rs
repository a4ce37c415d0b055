//! Field offsets of `ControlFileData`, by control version.
//!
//! The server writes the C struct exactly as it is in memory. When a release adds a field, all
//! later fields therefore move, unless the new field fits into existing padding. In PostgreSQL 17,
//! the checkpoint's `wal_level` was added in a place that used to be padding, so nothing moved.
//! PostgreSQL 18 added `default_char_signedness` just before the nonce, so only the nonce and the
//! CRC moved. In PostgreSQL 19, the checkpoint struct grew by 8 bytes, and `slru_pages_per_segment`
//! and the initial checksum version were added.
//!
//! The control version and the fields before it never move, so we can always read the control
//! version first.

use super::error::ControlError;
use super::version::PgVersion;
use crate::little_endian::{read_at, words};

/// Byte offsets of the fields that are not in the same place in all versions. Every other field has
/// either a fixed offset, or a fixed distance from one of these fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// `checkPointCopy.wal_level`.
    pub(super) wal_level: Option<usize>,
    pub(super) logical_decoding: Option<usize>,
    pub(super) next_xid: usize,
    pub(super) wide_multi_offset: bool,
    pub(super) oldest_xid: usize,
    /// `checkPointCopy.time`. All fields from here to `relseg_size` moved together.
    pub(super) checkpoint_time: usize,
    pub(super) slru_pages: Option<usize>,
    pub(super) wal_block_size: usize,
    pub(super) initial_checksum: Option<usize>,
    pub(super) data_checksum: usize,
    pub(super) char_signed: Option<usize>,
    pub(super) nonce: usize,
    pub(super) crc: usize,
}

const V1300: Layout = Layout {
    wal_level: None,
    logical_decoding: None,
    next_xid: 64,
    wide_multi_offset: false,
    oldest_xid: 84,
    checkpoint_time: 104,
    slru_pages: None,
    wal_block_size: 224,
    initial_checksum: None,
    data_checksum: 252,
    char_signed: None,
    nonce: 256,
    crc: 288,
};

const V1700: Layout = Layout { wal_level: Some(60), ..V1300 };

const V1800: Layout = Layout { char_signed: Some(256), nonce: 257, crc: 292, ..V1700 };

const V1905: Layout = Layout {
    wal_level: Some(60),
    logical_decoding: Some(64),
    next_xid: 72,
    wide_multi_offset: true,
    oldest_xid: 96,
    checkpoint_time: 112,
    slru_pages: Some(232),
    wal_block_size: 236,
    initial_checksum: Some(264),
    data_checksum: 268,
    char_signed: Some(272),
    nonce: 273,
    crc: 308,
};

impl Layout {
    /// Selects the layout that matches the control version in `bytes`. We can't verify the CRC
    /// until we have done this, because the offset of the CRC depends on the layout. If the version
    /// makes sense only after swapping its bytes, the file comes from a big-endian machine.
    /// `pg_controldata` prints a warning in that case.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, ControlError> {
        let too_short = ControlError::TooShort { found: bytes.len(), expected: 16 };
        let [control, catalog] = words(bytes, 8).ok_or(too_short)?;
        Self::of_version(control).ok_or(match Self::of_version(control.swap_bytes()) {
            Some(_) => ControlError::BigEndian,
            None => ControlError::UnknownVersion { control, catalog },
        })
    }

    /// The layout of a control version.
    pub(super) fn of_version(control: u32) -> Option<Self> {
        let release = PgVersion::ALL.into_iter().find(|it| it.control_version() == control);
        release.map(Self::of_release)
    }

    /// The layout of a release.
    pub(super) fn of_release(version: PgVersion) -> Self {
        match version {
            PgVersion::V15 | PgVersion::V16 => V1300,
            PgVersion::V17 => V1700,
            PgVersion::V18 => V1800,
            PgVersion::V19 => V1905,
        }
    }

    /// Number of bytes up to and including the CRC.
    pub(super) fn size(&self) -> usize {
        self.crc + 4
    }

    /// Returns the CRC stored in the file and the CRC that we compute ourselves. Both are CRC-32Cs
    /// of the bytes that precede the CRC field, so they don't cover the zeros that pad the file to
    /// 8192 bytes.
    pub(super) fn crc(&self, bytes: &[u8]) -> Option<(u32, u32)> {
        Some((read_at::<u32>(bytes, self.crc)?, crc32c::crc32c(bytes.get(..self.crc)?)))
    }

    /// The release with the control and catalog versions in the file.
    pub(super) fn version(&self, bytes: &[u8]) -> Result<PgVersion, ControlError> {
        let too_short = ControlError::TooShort { found: bytes.len(), expected: self.size() };
        let [control, catalog] = words(bytes, 8).ok_or(too_short)?;
        PgVersion::find(control, catalog).ok_or(ControlError::UnknownVersion { control, catalog })
    }

    /// The bits of `floatFormat`.
    pub(super) fn float_format(&self, bytes: &[u8]) -> Option<u64> {
        read_at::<u64>(bytes, self.checkpoint_time + 104)
    }
}
