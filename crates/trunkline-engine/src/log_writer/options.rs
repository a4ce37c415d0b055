//! Where a log continues, and how it is written.

use trunkline_format::wal::SegmentSize;
use trunkline_format::{ControlFile, Lsn};

use super::flush_limit::FlushLimit;
use super::sync_method::WalSyncMethod;

/// Where a log continues, and how it is written.
#[derive(Debug, Clone)]
pub struct LogWriterOptions {
    /// The cluster's system identifier.
    pub system_identifier: u64,
    /// The timeline.
    pub timeline: u32,
    /// The size of segments.
    pub segment_size: SegmentSize,
    /// The end of the last record, a multiple of 8. WAL after it is erased when the log is opened.
    pub end: Lsn,
    /// The start of the last record.
    pub last: Lsn,
    /// The redo point of the latest checkpoint.
    pub redo: Lsn,
    /// `wal_buffers` in bytes: the memory for records that were not written yet. At least 64 kB, at most a segment.
    pub buffers: u32,
    /// The number of [`Inserter`](super::Inserter)s that can exist at once. 0 counts as 1.
    pub inserters: usize,
    /// `wal_sync_method`.
    pub sync_method: WalSyncMethod,
    /// Whether segments are written with direct I/O, past the page cache (`wal` in `io_direct`).
    pub direct: bool,
    /// Whether new segments are filled with direct I/O (`wal_init` in `io_direct`).
    pub direct_init: bool,
    /// `min_wal_size` in bytes: up to this size, a checkpoint recycles old segments instead of removing them. 0: never.
    pub min_wal_size: u64,
    /// `wal_keep_size` in bytes: so much of the WAL stays in `pg_wal` for others to read, even if redo doesn't need it.
    pub wal_keep_size: u64,
    /// The maximum number of concurrent flushes.
    pub flushes: FlushLimit,
    /// `wal_level`: 0 minimal, 1 replica, 2 logical.
    pub wal_level: u32,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// Whether full-page images are compressed with lz4 (`wal_compression`).
    pub compresses: bool,
    /// Whether each record has images with which a server checks what redo made (`wal_consistency_checking`).
    pub checks_redo: bool,
}

impl LogWriterOptions {
    /// The defaults for a cluster that was shut down. `end` is the end of its shutdown checkpoint.
    pub fn after_shutdown(control: &ControlFile, segment_size: SegmentSize, end: Lsn) -> Self {
        Self {
            system_identifier: control.system_identifier,
            timeline: control.checkpoint.timeline,
            segment_size,
            end,
            last: control.checkpoint.location,
            redo: control.checkpoint.redo,
            buffers: 1 << 20,
            inserters: 64,
            sync_method: WalSyncMethod::Fdatasync,
            direct: false,
            direct_init: false,
            min_wal_size: 80 << 20,
            wal_keep_size: 0,
            flushes: FlushLimit::default(),
            wal_level: control.wal_level,
            full_page_writes: true,
            compresses: false,
            checks_redo: false,
        }
    }
}
