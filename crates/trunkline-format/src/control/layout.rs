//! Field offsets of `ControlFileData`, by control version.
//!
//! The server writes the C struct exactly as it is in memory. A new member therefore moves
//! everything after it, unless it fits into padding. PostgreSQL 17 put the checkpoint's `wal_level`
//! into padding. PostgreSQL 18 added `default_char_signedness` before the nonce, so only the nonce
//! and the CRC moved. PostgreSQL 19 widened the checkpoint by 8 bytes and added
//! `slru_pages_per_segment` and the initial checksum version.
//!
//! The fields up to and including the control version never move, so we can always read it first.

use super::{Checkpoint, ClusterState, ControlError, ControlFile, PgVersion};
use crate::ids::{Lsn, Oid};
use crate::little_endian::{array, i64_at, u8_at, u32_at, u64_at};

/// Byte offsets of the fields that moved. All other fields have fixed offsets, or fixed distances
/// from one of these fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    logical_decoding: Option<usize>,
    next_xid: usize,
    wide_multi_offset: bool,
    oldest_xid: usize,
    /// `checkPointCopy.time`. All fields from here to `relseg_size` moved together.
    checkpoint_time: usize,
    slru_pages: Option<usize>,
    wal_block_size: usize,
    initial_checksum: Option<usize>,
    data_checksum: usize,
    char_signed: Option<usize>,
    nonce: usize,
    crc: usize,
}

const V1300: Layout = Layout {
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

const V1800: Layout = Layout { char_signed: Some(256), nonce: 257, crc: 292, ..V1300 };

const V1905: Layout = Layout {
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
    /// Selects the layout for the control version in `bytes`. We can't verify the CRC yet, because
    /// its offset depends on the layout. If the version is known only after swapping its bytes, the
    /// file comes from a big-endian machine; `pg_controldata` warns in the same case.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, ControlError> {
        let too_short = ControlError::TooShort { found: bytes.len(), expected: 16 };
        let control = u32_at(bytes, 8).ok_or(too_short)?;
        let catalog = u32_at(bytes, 12).ok_or(too_short)?;
        Self::of_version(control).ok_or(match Self::of_version(control.swap_bytes()) {
            Some(_) => ControlError::BigEndian,
            None => ControlError::UnknownVersion { control, catalog },
        })
    }

    fn of_version(control: u32) -> Option<Self> {
        match control {
            // 17 put the checkpoint's wal_level into padding, so no field moved.
            1300 | 1700 => Some(V1300),
            1800 => Some(V1800),
            1905 => Some(V1905),
            _ => None,
        }
    }

    /// Number of bytes up to and including the CRC.
    pub(super) fn size(&self) -> usize {
        self.crc + 4
    }

    /// The stored CRC and the computed CRC, a CRC-32C of all bytes before the CRC field. It doesn't
    /// cover the zero padding up to 8192 bytes.
    pub(super) fn crc(&self, bytes: &[u8]) -> Option<(u32, u32)> {
        Some((u32_at(bytes, self.crc)?, crc32c::crc32c(bytes.get(..self.crc)?)))
    }

    /// The release with the control and catalog versions in the file.
    pub(super) fn version(&self, bytes: &[u8]) -> Result<PgVersion, ControlError> {
        let too_short = ControlError::TooShort { found: bytes.len(), expected: self.size() };
        let control = u32_at(bytes, 8).ok_or(too_short)?;
        let catalog = u32_at(bytes, 12).ok_or(too_short)?;
        PgVersion::find(control, catalog).ok_or(ControlError::UnknownVersion { control, catalog })
    }

    /// The bits of `floatFormat`.
    pub(super) fn float_format(&self, bytes: &[u8]) -> Option<u64> {
        u64_at(bytes, self.checkpoint_time + 104)
    }

    /// Decodes every field. `None` if the file is too short.
    pub(super) fn read(&self, bytes: &[u8], version: PgVersion) -> Option<ControlFile> {
        let byte = |at| u8_at(bytes, at);
        let flag = |at| byte(at).map(|byte| byte != 0);
        let word = |at| u32_at(bytes, at);
        let lsn = |at| u64_at(bytes, at).map(Lsn);
        let time = self.checkpoint_time;
        Some(ControlFile {
            version,
            system_identifier: u64_at(bytes, 0)?,
            state: ClusterState::from_bits(word(16)?),
            time: i64_at(bytes, 24)?,
            checkpoint: self.read_checkpoint(bytes)?,
            unlogged_lsn: lsn(time + 24)?,
            min_recovery_point: lsn(time + 32)?,
            min_recovery_timeline: word(time + 40)?,
            backup_start: lsn(time + 48)?,
            backup_end: lsn(time + 56)?,
            backup_end_required: flag(time + 64)?,
            wal_level: word(time + 68)?,
            wal_log_hints: flag(time + 72)?,
            max_connections: word(time + 76)?,
            max_worker_processes: word(time + 80)?,
            max_wal_senders: word(time + 84)?,
            max_prepared_xacts: word(time + 88)?,
            max_locks_per_xact: word(time + 92)?,
            track_commit_timestamp: flag(time + 96)?,
            max_align: word(time + 100)?,
            block_size: word(time + 112)?,
            segment_blocks: word(time + 116)?,
            slru_pages_per_segment: optional(self.slru_pages, word)?,
            wal_block_size: word(self.wal_block_size)?,
            wal_segment_size: word(self.wal_block_size + 4)?,
            name_length: word(self.wal_block_size + 8)?,
            index_columns: word(self.wal_block_size + 12)?,
            toast_chunk: word(self.wal_block_size + 16)?,
            large_object_block: word(self.wal_block_size + 20)?,
            float8_by_value: flag(self.wal_block_size + 24)?,
            initial_data_checksum_version: optional(self.initial_checksum, word)?,
            data_checksum_version: word(self.data_checksum)?,
            char_signed: optional(self.char_signed, flag)?,
            mock_nonce: array(bytes, self.nonce)?,
        })
    }

    fn read_checkpoint(&self, bytes: &[u8]) -> Option<Checkpoint> {
        let flag = |at| u8_at(bytes, at).map(|byte| byte != 0);
        let word = |at| u32_at(bytes, at);
        let multi_offset = self.next_xid + 16;
        let time = self.checkpoint_time;
        Some(Checkpoint {
            location: Lsn(u64_at(bytes, 32)?),
            redo: Lsn(u64_at(bytes, 40)?),
            timeline: word(48)?,
            previous_timeline: word(52)?,
            full_page_writes: flag(56)?,
            logical_decoding: optional(self.logical_decoding, flag)?,
            next_xid: u64_at(bytes, self.next_xid)?,
            next_oid: Oid(word(self.next_xid + 8)?),
            next_multi: word(self.next_xid + 12)?,
            next_multi_offset: if self.wide_multi_offset {
                u64_at(bytes, multi_offset)?
            } else {
                u64::from(word(multi_offset)?)
            },
            oldest_xid: word(self.oldest_xid)?,
            oldest_xid_db: Oid(word(self.oldest_xid + 4)?),
            oldest_multi: word(self.oldest_xid + 8)?,
            oldest_multi_db: Oid(word(self.oldest_xid + 12)?),
            time: i64_at(bytes, time)?,
            oldest_commit_ts_xid: word(time + 8)?,
            newest_commit_ts_xid: word(time + 12)?,
            oldest_active_xid: word(time + 16)?,
        })
    }
}

/// Reads a field that only some layouts have. The outer `None` means that the file is too short.
fn optional<T>(at: Option<usize>, read: impl Fn(usize) -> Option<T>) -> Option<Option<T>> {
    match at {
        None => Some(None),
        Some(at) => read(at).map(Some),
    }
}
