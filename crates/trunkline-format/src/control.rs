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
//! The file's layout changes with nearly every release, and we can't read any other file without
//! it. We therefore check it strictly. The control version selects a layout, the CRC must match,
//! the catalog version must be known, and this crate must support the compile-time options. We
//! reject an unknown version rather than guess its layout.
//!
//! Mirrors `ControlFileData` and `CheckPoint` of PostgreSQL's `catalog/pg_control.h`.

mod error;
mod layout;
mod print;

use crate::ids::{BLOCK_SIZE, Lsn, Oid, SEGMENT_BLOCKS};
pub use error::ControlError;
use layout::Layout;
use std::fmt;

/// `PG_CONTROL_FILE_SIZE`. At most the first 312 bytes are used, and the rest is zero. The file
/// keeps this size in all versions, so that an older server doesn't hit a short read on a newer
/// file and can report the version mismatch.
pub const CONTROL_FILE_SIZE: usize = 8192;

/// `FLOATFORMAT_VALUE`. Its bytes differ on machines that don't use little-endian IEEE 754 doubles.
const FLOAT_FORMAT: f64 = 1_234_567.0;
/// `MAXIMUM_ALIGNOF` on 64-bit machines.
const MAX_ALIGN: u32 = 8;

/// A major release that we support.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PgVersion {
    /// PostgreSQL 15.
    V15,
    /// PostgreSQL 16.
    V16,
    /// PostgreSQL 17.
    V17,
    /// PostgreSQL 18.
    V18,
    /// PostgreSQL 19, as of its first release candidate.
    V19,
}

impl PgVersion {
    /// All supported releases, oldest first.
    pub const ALL: [Self; 5] = [Self::V15, Self::V16, Self::V17, Self::V18, Self::V19];

    /// The major version: 15 to 19.
    pub fn major(self) -> u32 {
        match self {
            Self::V15 => 15,
            Self::V16 => 16,
            Self::V17 => 17,
            Self::V18 => 18,
            Self::V19 => 19,
        }
    }

    /// `PG_CONTROL_VERSION`: the layout version of the control file.
    pub fn control_version(self) -> u32 {
        match self {
            Self::V15 | Self::V16 => 1300,
            Self::V17 => 1700,
            Self::V18 => 1800,
            Self::V19 => 1905,
        }
    }

    /// `CATALOG_VERSION_NO`. Betas and release candidates have different catalog versions.
    pub fn catalog_version(self) -> u32 {
        match self {
            Self::V15 => 202_209_061,
            Self::V16 => 202_307_071,
            Self::V17 => 202_406_281,
            Self::V18 => 202_506_291,
            Self::V19 => 202_610_061,
        }
    }

    fn find(control: u32, catalog: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|version| {
            version.control_version() == control && version.catalog_version() == catalog
        })
    }
}

/// Prints `PostgreSQL 18`, for example.
impl fmt::Display for PgVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.major())
    }
}

/// `DBState`: the cluster's state as of the last control file update. The data files are complete
/// only after [`Self::ShutDown`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClusterState {
    /// Starting up (0).
    StartingUp,
    /// Shut down cleanly (1).
    ShutDown,
    /// A standby that was shut down (2). Its data files are flushed only up to the last
    /// restartpoint, so it still needs WAL replay.
    ShutDownInRecovery,
    /// Writing the shutdown checkpoint (3).
    ShuttingDown,
    /// Replaying WAL after a crash (4).
    InCrashRecovery,
    /// Replaying WAL from an archive or a primary (5).
    InArchiveRecovery,
    /// Running, crashed, or copied while running (6). The file can't distinguish these cases,
    /// because only a clean shutdown updates the state.
    InProduction,
    /// An undefined state number.
    Unrecognized(u32),
}

impl ClusterState {
    fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::StartingUp,
            1 => Self::ShutDown,
            2 => Self::ShutDownInRecovery,
            3 => Self::ShuttingDown,
            4 => Self::InCrashRecovery,
            5 => Self::InArchiveRecovery,
            6 => Self::InProduction,
            other => Self::Unrecognized(other),
        }
    }
}

/// The wording of `pg_controldata`.
impl fmt::Display for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::StartingUp => "starting up",
            Self::ShutDown => "shut down",
            Self::ShutDownInRecovery => "shut down in recovery",
            Self::ShuttingDown => "shutting down",
            Self::InCrashRecovery => "in crash recovery",
            Self::InArchiveRecovery => "in archive recovery",
            Self::InProduction => "in production",
            Self::Unrecognized(_) => "unrecognized status code",
        })
    }
}

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
    /// The fake LSN counter for unlogged relations. GiST detects concurrent page splits by LSN, but
    /// an unlogged index writes no WAL and therefore has no real LSNs.
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
    /// Random bytes from which SCRAM derives a mock salt for nonexistent roles, so that clients
    /// can't find out which roles exist.
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
        let version = layout.version(bytes)?;
        let float_format = layout.float_format(bytes).ok_or(too_short)?;
        if float_format != FLOAT_FORMAT.to_bits() {
            return Err(ControlError::FloatFormat { found: float_format });
        }
        let file = layout.read(bytes, version).ok_or(too_short)?;
        file.check_sizes()?;
        Ok(file)
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

    /// Whether the cluster was shut down cleanly, so that its data files are complete without WAL
    /// replay. This holds only if the data directory has no `backup_label` and no server was
    /// started since.
    pub fn is_clean(&self) -> bool {
        self.state == ClusterState::ShutDown
    }
}

#[cfg(test)]
mod tests;
