//! `global/pg_control`: what a cluster is, how it was compiled, and whether it was shut down.
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
//! The file changes with nearly every release, and everything else depends on it. It is therefore
//! checked strictly: the control version selects a layout, the CRC must match, the catalog version
//! must be known, and the compile-time choices must be those that this crate supports. An unknown
//! version is refused, not guessed.
//!
//! Mirrors `ControlFileData` and `CheckPoint` of PostgreSQL's `catalog/pg_control.h`.

mod error;
mod layout;
mod print;

use crate::ids::{BLOCK_SIZE, Lsn, Oid, SEGMENT_BLOCKS};
pub use error::ControlError;
use layout::Layout;
use std::fmt;

/// `PG_CONTROL_FILE_SIZE`. Only the first 312 bytes or fewer are used. The rest is zero, so that an
/// older server reads a newer file without a short read and can report its version.
pub const CONTROL_FILE_SIZE: usize = 8192;

/// `FLOATFORMAT_VALUE`. Its bytes differ if doubles are not IEEE 754, or have another byte order.
const FLOAT_FORMAT: f64 = 1_234_567.0;
/// What data is aligned to, at most, on 64-bit machines.
const MAX_ALIGN: u32 = 8;

/// A major release whose files we read.
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
    /// All of them, oldest first.
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

    /// The version of the control file's layout.
    pub fn control_version(self) -> u32 {
        match self {
            Self::V15 | Self::V16 => 1300,
            Self::V17 => 1700,
            Self::V18 => 1800,
            Self::V19 => 1905,
        }
    }

    /// The version of the system catalogs; release candidates and betas have others.
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

/// `PostgreSQL 18` and so on.
impl fmt::Display for PgVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.major())
    }
}

/// What the cluster was last known to do. Only after [`Self::ShutDown`] are its files whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClusterState {
    /// Being started (0).
    StartingUp,
    /// Stopped cleanly (1).
    ShutDown,
    /// A standby that was stopped (2). Its files are flushed only up to the last restartpoint and
    /// still need WAL replay.
    ShutDownInRecovery,
    /// Writing its last checkpoint (3).
    ShuttingDown,
    /// Replaying WAL after a crash (4).
    InCrashRecovery,
    /// Replaying WAL from an archive or a primary (5).
    InArchiveRecovery,
    /// Running, crashed, or copied while running (6). The file cannot distinguish these, because
    /// only a clean shutdown changes the state again.
    InProduction,
    /// A number without a meaning.
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

/// As `pg_controldata` words it.
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

/// The latest checkpoint: from here, recovery would begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Where the checkpoint's record is.
    pub location: Lsn,
    /// Where replay starts.
    pub redo: Lsn,
    /// The timeline.
    pub timeline: u32,
    /// The timeline before, if the checkpoint began a new one; else the same.
    pub previous_timeline: u32,
    /// `full_page_writes`: whether WAL has a full-page image of each page that is first changed
    /// after a checkpoint.
    pub full_page_writes: bool,
    /// From 19: whether logical decoding was on.
    pub logical_decoding: Option<bool>,
    /// The next transaction: epoch in the upper half, xid in the lower.
    pub next_xid: u64,
    /// The next OID.
    pub next_oid: Oid,
    /// The next multixact.
    pub next_multi: u32,
    /// The next multixact member: 32 bits to 18, 64 from 19.
    pub next_multi_offset: u64,
    /// The oldest xid that a row may hold.
    pub oldest_xid: u32,
    /// The database it is in.
    pub oldest_xid_db: Oid,
    /// The oldest multixact that a row may hold.
    pub oldest_multi: u32,
    /// The database it is in.
    pub oldest_multi_db: Oid,
    /// When, in seconds since 1970.
    pub time: i64,
    /// The oldest xid with a commit timestamp, or 0.
    pub oldest_commit_ts_xid: u32,
    /// The newest xid with a commit timestamp, or 0.
    pub newest_commit_ts_xid: u32,
    /// The oldest transaction still running; 0 if not recorded.
    pub oldest_active_xid: u32,
}

/// A control file that was read, verified and found to be of a cluster we can work with.
///
/// Block, segment and log segment sizes are checked, see [`ControlError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlFile {
    /// The release.
    pub version: PgVersion,
    /// The number a cluster is given when it is made.
    pub system_identifier: u64,
    /// What the cluster was last known to do.
    pub state: ClusterState,
    /// When this file was written, in seconds since 1970.
    pub time: i64,
    /// The latest checkpoint.
    pub checkpoint: Checkpoint,
    /// The fake LSN counter of unlogged relations. GiST detects concurrent page splits by LSN, and
    /// an unlogged index has no real ones.
    pub unlogged_lsn: Lsn,
    /// How far a standby must replay to be consistent; 0 if none need.
    pub min_recovery_point: Lsn,
    /// Its timeline.
    pub min_recovery_timeline: u32,
    /// Where the base backup that is being recovered began; 0 if none is.
    pub backup_start: Lsn,
    /// Where it ended, if it was taken from a standby.
    pub backup_end: Lsn,
    /// Whether replay must reach the record that ends the backup.
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
    /// Bytes that data is aligned to, at most: 8.
    pub max_align: u32,
    /// Bytes of a block: 8192.
    pub block_size: u32,
    /// Blocks of a segment: 131072.
    pub segment_blocks: u32,
    /// From 19: pages in a segment file of an SLRU.
    pub slru_pages_per_segment: Option<u32>,
    /// Bytes of a log page.
    pub wal_block_size: u32,
    /// Bytes of a log segment: a power of two from 1 MiB to 1 GiB.
    pub wal_segment_size: u32,
    /// Bytes of a name, with its final zero: 64.
    pub name_length: u32,
    /// The most columns of an index: 32.
    pub index_columns: u32,
    /// The most bytes of a chunk in a TOAST table: 1996.
    pub toast_chunk: u32,
    /// Bytes of a large object in one row: 2048.
    pub large_object_block: u32,
    /// Whether doubles are passed by value.
    pub float8_by_value: bool,
    /// From 19: `data_checksum_version` when the cluster was made.
    pub initial_data_checksum_version: Option<u32>,
    /// 0 if pages carry no checksums, 1 if they do; others have no meaning yet.
    pub data_checksum_version: u32,
    /// From 18: whether C's `char` was signed where the cluster was made.
    pub char_signed: Option<bool>,
    /// Random bytes from which SCRAM derives a fake salt for unknown roles, so that a client cannot
    /// find out which roles exist.
    pub mock_nonce: [u8; 32],
}

impl ControlFile {
    /// Reads the bytes of `global/pg_control`: all 8192, or at least the first 312.
    ///
    /// # Errors
    ///
    /// See [`ControlError`]; the first that applies, in the order in the module's header.
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

    /// Whether pages carry checksums that can be verified.
    pub fn checksums(&self) -> bool {
        self.data_checksum_version == 1
    }

    /// Whether the cluster was stopped cleanly, so that its files alone are whole. That holds if
    /// there is no `backup_label` beside it, and no server has been started since.
    pub fn is_clean(&self) -> bool {
        self.state == ClusterState::ShutDown
    }
}

#[cfg(test)]
mod tests;
