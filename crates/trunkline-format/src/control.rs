//! `global/pg_control`: the cluster's identity, its compile-time options, and its shutdown state.
//!
//! ```text
//!   0          8         12        16      24              288, 292 or 308
//!   ├──────────┼─────────┼─────────┼───────┼───────── … ────────┼─────┤   zeros to 8192
//!   │ system id│ control │ catalog │ state │ checkpoint, sizes  │ crc │
//!   └──────────┴─────────┴─────────┴───────┴────────────────────┴─────┘
//!                  │          └ names the release of the server
//!                  └ says where everything else is
//! ```
//!
//! The layout of this file changes in nearly every major release, and we need its contents before
//! we can read any other file. We therefore check it strictly. We first use the control version to
//! select the layout. Then the CRC must match, the catalog version must be one that we know, and
//! the compile-time options must be ones that this crate supports. If we don't know the version, we
//! reject the file rather than guess its layout.
//!
//! Mirrors `ControlFileData` and `CheckPoint` of PostgreSQL's `catalog/pg_control.h`.

mod encode;
mod error;
mod layout;
mod print;
mod state;
mod version;

use crate::ids::{BLOCK_SIZE, Lsn, Oid, SEGMENT_BLOCKS};
use crate::little_endian::read_at;
pub use error::ControlError;
use error::FLOAT_FORMAT;
use layout::Layout;
pub use state::ClusterState;
pub use version::PgVersion;

/// `PG_CONTROL_FILE_SIZE`. At most the first 312 bytes are used, and the rest of the file is filled
/// with zeros. The file has the same size in all versions, so that a server that tries to read the
/// file of a newer version reports a version mismatch, rather than an unexpected end of file.
pub const CONTROL_FILE_SIZE: usize = 8192;

/// `MAXIMUM_ALIGNOF` on 64-bit machines.
const MAX_ALIGN: u32 = 8;

/// The latest checkpoint, which recovery would start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// LSN of the checkpoint record.
    pub location: Lsn,
    /// The REDO LSN, where replay starts.
    pub redo: Lsn,
    /// `ThisTimeLineID`.
    pub timeline: u32,
    /// `PrevTimeLineID`. It differs from `timeline` only if the checkpoint started a new timeline.
    pub previous_timeline: u32,
    /// `full_page_writes`: whether the first change to a page after a checkpoint logs a full-page
    /// image.
    pub full_page_writes: bool,
    /// From 17: `wal_level` at the time: 0 minimal, 1 replica, 2 logical.
    pub wal_level: Option<u32>,
    /// From 19: whether logical decoding was enabled.
    pub logical_decoding: Option<bool>,
    /// The next transaction ID, with the epoch in the upper 32 bits.
    pub next_xid: u64,
    /// The next OID.
    pub next_oid: Oid,
    /// The next multixact.
    pub next_multi: u32,
    /// The next multixact member offset: 32 bits up to 18, 64 bits from 19.
    pub next_multi_offset: u64,
    /// The oldest xid that any row may still contain.
    pub oldest_xid: u32,
    /// The database with this oldest xid.
    pub oldest_xid_db: Oid,
    /// The oldest multixact that any row may still contain.
    pub oldest_multi: u32,
    /// The database with this oldest multixact.
    pub oldest_multi_db: Oid,
    /// Checkpoint time in seconds since 1970.
    pub time: i64,
    /// The oldest xid with a commit timestamp, or 0.
    pub oldest_commit_ts_xid: u32,
    /// The newest xid with a commit timestamp, or 0.
    pub newest_commit_ts_xid: u32,
    /// The oldest xid still running at the time; 0 if not recorded.
    pub oldest_active_xid: u32,
}

impl Checkpoint {
    /// Where the control file has its copy of the checkpoint record.
    const COPY: usize = 40;

    /// Decodes the main data of a checkpoint record, of which the control file contains a copy.
    /// `None` if it is too short. The record doesn't contain its own location, so that is 0.
    pub fn of_record(main_data: &[u8], version: PgVersion) -> Option<Self> {
        let layout = Layout::of_version(version.control_version())?;
        // Nothing behind the last field is read: 84 bytes, or 92 in 19, without padding.
        let mut bytes = [0; Self::COPY + 92];
        let size = layout.checkpoint_time + 20 - Self::COPY;
        let copy = bytes.get_mut(Self::COPY..Self::COPY + size)?;
        copy.copy_from_slice(main_data.get(..size)?);
        Self::read(&bytes, &layout)
    }

    fn read(bytes: &[u8], layout: &Layout) -> Option<Self> {
        let flag = |at| read_at::<u8>(bytes, at).map(|byte| byte != 0);
        let word = |at| read_at::<u32>(bytes, at);
        let multi_offset = layout.next_xid + 16;
        let time = layout.checkpoint_time;
        Some(Self {
            location: Lsn(read_at::<u64>(bytes, 32)?),
            redo: Lsn(read_at::<u64>(bytes, 40)?),
            timeline: word(48)?,
            previous_timeline: word(52)?,
            full_page_writes: flag(56)?,
            wal_level: optional(layout.wal_level, word)?,
            logical_decoding: optional(layout.logical_decoding, flag)?,
            next_xid: read_at::<u64>(bytes, layout.next_xid)?,
            next_oid: Oid(word(layout.next_xid + 8)?),
            next_multi: word(layout.next_xid + 12)?,
            next_multi_offset: if layout.wide_multi_offset {
                read_at::<u64>(bytes, multi_offset)?
            } else {
                u64::from(word(multi_offset)?)
            },
            oldest_xid: word(layout.oldest_xid)?,
            oldest_xid_db: Oid(word(layout.oldest_xid + 4)?),
            oldest_multi: word(layout.oldest_xid + 8)?,
            oldest_multi_db: Oid(word(layout.oldest_xid + 12)?),
            time: read_at::<i64>(bytes, time)?,
            oldest_commit_ts_xid: word(time + 8)?,
            newest_commit_ts_xid: word(time + 12)?,
            oldest_active_xid: word(time + 16)?,
        })
    }
}

/// A verified control file of a supported cluster.
///
/// Block, segment and WAL segment sizes have been checked (see [`ControlError`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlFile {
    /// The major release.
    pub version: PgVersion,
    /// The system identifier that initdb generated.
    pub system_identifier: u64,
    /// The last recorded cluster state.
    pub state: ClusterState,
    /// When this file was last written, in seconds since 1970.
    pub time: i64,
    /// The latest checkpoint.
    pub checkpoint: Checkpoint,
    /// Counter for the fake LSNs used in unlogged relations. GiST needs LSNs to detect concurrent
    /// page splits, but changes to an unlogged index don't write any WAL, so there are no real LSNs
    /// that it could use.
    pub unlogged_lsn: Lsn,
    /// `minRecoveryPoint`: the LSN that replay must reach before a standby is consistent, or 0.
    pub min_recovery_point: Lsn,
    /// `minRecoveryPointTLI`.
    pub min_recovery_timeline: u32,
    /// `backupStartPoint`: the start of the base backup being recovered, or 0.
    pub backup_start: Lsn,
    /// `backupEndPoint`: the end of the base backup, if it was taken from a standby.
    pub backup_end: Lsn,
    /// `backupEndRequired`: whether replay must reach the end-of-backup record.
    pub backup_end_required: bool,
    /// `wal_level`: 0 minimal, 1 replica, 2 logical.
    pub wal_level: u32,
    /// `wal_log_hints`.
    pub wal_log_hints: bool,
    /// `max_connections`.
    pub max_connections: u32,
    /// `max_worker_processes`.
    pub max_worker_processes: u32,
    /// `max_wal_senders`.
    pub max_wal_senders: u32,
    /// `max_prepared_transactions`.
    pub max_prepared_xacts: u32,
    /// `max_locks_per_transaction`.
    pub max_locks_per_xact: u32,
    /// `track_commit_timestamp`.
    pub track_commit_timestamp: bool,
    /// `MAXIMUM_ALIGNOF`: 8.
    pub max_align: u32,
    /// `BLCKSZ`: 8192.
    pub block_size: u32,
    /// `RELSEG_SIZE` in blocks: 131072.
    pub segment_blocks: u32,
    /// From 19: `SLRU_PAGES_PER_SEGMENT`.
    pub slru_pages_per_segment: Option<u32>,
    /// `XLOG_BLCKSZ`.
    pub wal_block_size: u32,
    /// WAL segment size in bytes: a power of two from 1 MiB to 1 GiB.
    pub wal_segment_size: u32,
    /// `NAMEDATALEN`: 64, including the terminating NUL.
    pub name_length: u32,
    /// `INDEX_MAX_KEYS`: 32.
    pub index_columns: u32,
    /// `TOAST_MAX_CHUNK_SIZE`: 1996.
    pub toast_chunk: u32,
    /// `LOBLKSIZE`: 2048.
    pub large_object_block: u32,
    /// Whether float8 arguments are passed by value.
    pub float8_by_value: bool,
    /// From 19: `data_checksum_version` when initdb created the cluster.
    pub initial_data_checksum_version: Option<u32>,
    /// `data_checksum_version`: 0 without checksums, 1 with checksums. Other values are undefined.
    pub data_checksum_version: u32,
    /// From 18: whether C's `char` is signed on the platform that ran initdb.
    pub char_signed: Option<bool>,
    /// Random bytes from which the server derives a fake SCRAM salt for roles that don't exist, so
    /// that a client can't find out which roles do exist.
    pub mock_nonce: [u8; 32],
}

impl ControlFile {
    /// Parses `global/pg_control`. `bytes` should hold all 8192 bytes, or at least the first 312.
    ///
    /// # Errors
    ///
    /// The first [`ControlError`] that applies, in the order given in the module header.
    pub fn parse(bytes: &[u8]) -> Result<Self, ControlError> {
        let layout = Layout::of(bytes)?;
        let too_short = ControlError::TooShort { found: bytes.len(), expected: layout.size() };
        let (found, expected) = layout.crc(bytes).ok_or(too_short)?;
        if found != expected {
            return Err(ControlError::Crc { found, expected });
        }
        Self::parse_despite_crc(bytes)
    }

    /// Parses a file whose CRC may be wrong, so that its values can at least be shown to a person.
    /// Some of them may be wrong too, so nothing else must rely on them.
    ///
    /// # Errors
    ///
    /// As for [`ControlFile::parse`], except [`ControlError::Crc`].
    pub fn parse_despite_crc(bytes: &[u8]) -> Result<Self, ControlError> {
        let layout = Layout::of(bytes)?;
        let too_short = ControlError::TooShort { found: bytes.len(), expected: layout.size() };
        let version = layout.version(bytes)?;
        let float_format = layout.float_format(bytes).ok_or(too_short)?;
        if float_format != FLOAT_FORMAT.to_bits() {
            return Err(ControlError::FloatFormat { found: float_format });
        }
        let file = Self::read(bytes, &layout, version).ok_or(too_short)?;
        file.check_sizes()?;
        Ok(file)
    }

    /// Decodes every field. `None` if the file is too short.
    fn read(bytes: &[u8], layout: &Layout, version: PgVersion) -> Option<Self> {
        let byte = |at| read_at::<u8>(bytes, at);
        let flag = |at| byte(at).map(|byte| byte != 0);
        let word = |at| read_at::<u32>(bytes, at);
        let lsn = |at| read_at::<u64>(bytes, at).map(Lsn);
        let time = layout.checkpoint_time;
        Some(Self {
            version,
            system_identifier: read_at::<u64>(bytes, 0)?,
            state: ClusterState::from_bits(word(16)?),
            time: read_at::<i64>(bytes, 24)?,
            checkpoint: Checkpoint::read(bytes, layout)?,
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
            slru_pages_per_segment: optional(layout.slru_pages, word)?,
            wal_block_size: word(layout.wal_block_size)?,
            wal_segment_size: word(layout.wal_block_size + 4)?,
            name_length: word(layout.wal_block_size + 8)?,
            index_columns: word(layout.wal_block_size + 12)?,
            toast_chunk: word(layout.wal_block_size + 16)?,
            large_object_block: word(layout.wal_block_size + 20)?,
            float8_by_value: flag(layout.wal_block_size + 24)?,
            initial_data_checksum_version: optional(layout.initial_checksum, word)?,
            data_checksum_version: word(layout.data_checksum)?,
            char_signed: optional(layout.char_signed, flag)?,
            mock_nonce: read_at(bytes, layout.nonce)?,
        })
    }

    fn check_sizes(&self) -> Result<(), ControlError> {
        if self.max_align != MAX_ALIGN {
            return Err(ControlError::MaxAlign { found: self.max_align });
        }
        if self.block_size as usize != BLOCK_SIZE {
            return Err(ControlError::BlockSize { found: self.block_size });
        }
        if self.segment_blocks != SEGMENT_BLOCKS {
            return Err(ControlError::SegmentSize { found: self.segment_blocks });
        }
        let size = self.wal_segment_size;
        if !size.is_power_of_two() || !(1 << 20..=1 << 30).contains(&size) {
            return Err(ControlError::WalSegmentSize { found: size });
        }
        Ok(())
    }

    /// Whether pages have checksums that we can verify.
    pub fn checksums(&self) -> bool {
        self.data_checksum_version == 1
    }

    /// Returns true if the cluster was shut down cleanly, in which case its data files are complete
    /// even without replaying any WAL. Note that the caller must also make sure that there is no
    /// `backup_label` in the data directory and that no server has been started since the file was
    /// read.
    pub fn is_clean(&self) -> bool {
        self.state == ClusterState::ShutDown
    }
}

/// Reads a field that only some layouts have. The outer `None` means that the file is too short.
fn optional<T>(at: Option<usize>, read: impl Fn(usize) -> Option<T>) -> Option<Option<T>> {
    match at {
        None => Some(None),
        Some(at) => read(at).map(Some),
    }
}

#[cfg(test)]
mod tests;
