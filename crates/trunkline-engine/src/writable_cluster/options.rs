//! How a cluster is opened for writing.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_format::BLOCK_SIZE;

use crate::log_writer::{FlushLimit, WalSyncMethod};
use crate::replay::REPLAY_MEMORY_MIN;
use crate::settings::Settings;

/// How a cluster is opened for writing.
#[derive(Debug, Clone)]
pub struct WritableClusterOptions {
    /// Settings of the engine: `shared_buffers`, `io_method` and its limits, `max_sessions`, and `io_direct` for relations.
    pub settings: Settings,
    /// The number of [`WriteSession`](super::WriteSession)s that can exist at once.
    pub sessions: usize,
    /// `wal_buffers` in bytes, at least 128 kB ([`LogWriterOptions::buffers`](crate::log_writer::LogWriterOptions::buffers)).
    pub wal_buffers: u32,
    /// `wal_sync_method`.
    pub wal_sync_method: WalSyncMethod,
    /// Whether the WAL is written with direct I/O. PostgreSQL's `debug_io_direct` calls this `wal`.
    pub wal_direct: bool,
    /// Whether new segments of the WAL are filled with direct I/O. PostgreSQL's `debug_io_direct` calls this `wal_init`.
    pub wal_init_direct: bool,
    /// `min_wal_size` in bytes: up to this size, checkpoints recycle old segments instead of removing them.
    pub min_wal_size: u64,
    /// `wal_keep_size` in bytes: so much of the WAL stays in `pg_wal`, for a standby or an archive.
    pub wal_keep_size: u64,
    /// The maximum number of concurrent flushes of the WAL.
    pub flushes: FlushLimit,
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// Whether full-page images are compressed with lz4.
    pub wal_compression: bool,
    /// Whether each record has images with which a server checks what redo made (`wal_consistency_checking`).
    pub wal_consistency_checking: bool,
    /// `wal_writer_delay`: the interval at which asynchronous commits are flushed.
    pub wal_writer_delay: Duration,
    /// The number of threads that recover pages.
    pub recovery_threads: u32,
    /// How much memory the list of pages to recover may take, in bytes.
    pub recovery_memory: u64,
    /// The folder for what exceeds it, outside of the data directory.
    pub scratch: PathBuf,
}

impl WritableClusterOptions {
    /// PostgreSQL's defaults, with a quarter of the pool's size for the memory of a recovery.
    pub fn new(settings: Settings, scratch: PathBuf) -> Self {
        let pool = u64::from(settings.shared_buffers()) * BLOCK_SIZE as u64;
        let recovery_memory = (pool / 4).max(REPLAY_MEMORY_MIN);
        Self {
            settings,
            sessions: 64,
            wal_buffers: 4 << 20,
            wal_sync_method: WalSyncMethod::Fdatasync,
            wal_direct: false,
            wal_init_direct: false,
            min_wal_size: 80 << 20,
            wal_keep_size: 0,
            flushes: FlushLimit::default(),
            full_page_writes: true,
            wal_compression: false,
            wal_consistency_checking: false,
            wal_writer_delay: Duration::from_millis(200),
            recovery_threads: 2,
            recovery_memory,
            scratch,
        }
    }
}
