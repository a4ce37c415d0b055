//! Creates the smallest cluster that a PostgreSQL 18 server can start on (`initdb` without catalogs).
//!
//! ```text
//!   directories, mode 0700
//!   pg_xact, pg_multixact    one page of zeros each: no transaction has run
//!   pg_wal                   one segment; its only record is a shutdown checkpoint
//!   PG_VERSION, *.conf
//!   global/pg_control        "shut down", at that checkpoint
//!   trunkline.cluster        last, when all else is durable: trunkline created this directory
//! ```
//! It has no catalogs. A server reads none while it starts, recovers and stops, so it can check our WAL and pages. It
//! can't run queries, and the first line of `postgresql.conf` says so.
//!
//! ```text
//!   options         what it is made with, and configuration files
//!   first_segment   the first record;  files: durable files that only their owner may read
//! ```
//! [`LogWriter::open`](crate::log_writer::LogWriter::open) refuses a directory without the marker file, so WAL is never
//! written into a cluster that PostgreSQL created.

mod error;
mod files;
mod first_segment;
mod options;

use std::fs;
use std::io;
use std::path::Path;

use trunkline_format::{ClusterState, ControlFile, Lsn, PgVersion};

pub use error::NewClusterError;
use files::NewFiles;
pub use options::NewClusterOptions;

/// The file that marks a cluster that the engine may write to.
pub const MARKER: &str = "trunkline.cluster";

/// Directories, each below those that come before it.
const DIRECTORIES: [&str; 24] = [
    "base",
    "global",
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_logical",
    "pg_logical/mappings",
    "pg_logical/snapshots",
    "pg_multixact",
    "pg_multixact/members",
    "pg_multixact/offsets",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
    "pg_wal",
    "pg_wal/archive_status",
    "pg_wal/summaries",
    "pg_xact",
    "base/1",
];

/// A cluster that was created.
#[derive(Debug, Clone, Copy)]
pub struct NewCluster {
    /// Its control file.
    pub control: ControlFile,
    /// The end of its WAL.
    pub wal_end: Lsn,
}

/// Creates a cluster in `root`, which doesn't exist or is empty. If that fails, removes what it has created.
///
/// # Errors
/// [`NewClusterError`].
pub fn create(root: &Path, options: &NewClusterOptions) -> Result<NewCluster, NewClusterError> {
    check_empty(root)?;
    let mut files = NewFiles::new(root);
    let created = fill(&mut files, options);
    if created.is_err() {
        files.remove();
    }
    created
}

/// Checks that there is nothing in the directory, if it exists.
fn check_empty(root: &Path) -> Result<(), NewClusterError> {
    let io =
        |source| NewClusterError::Io { operation: "open directory", path: root.into(), source };
    match fs::read_dir(root) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(Ok(_)) => Err(NewClusterError::NotEmpty { path: root.into() }),
            Some(Err(source)) => Err(io(source)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(io(source)),
    }
}

fn fill(
    files: &mut NewFiles<'_>,
    options: &NewClusterOptions,
) -> Result<NewCluster, NewClusterError> {
    let control = control_file(options);
    files.directory("")?;
    for directory in DIRECTORIES {
        files.directory(directory)?;
    }
    for status in ["pg_xact/0000", "pg_multixact/offsets/0000", "pg_multixact/members/0000"] {
        files.file(status, &[0; trunkline_format::BLOCK_SIZE])?;
    }
    let segment = first_segment::build(&control, options.wal_segment_size)?;
    files.file(&format!("pg_wal/{}", segment.name), &segment.bytes)?;
    files.file("PG_VERSION", format!("{}\n", control.version.major()).as_bytes())?;
    files.file("postgresql.conf", options::POSTGRESQL_CONF.as_bytes())?;
    files.file("pg_hba.conf", options::PG_HBA_CONF.as_bytes())?;
    files.file("pg_ident.conf", b"")?;
    files.file("global/pg_control", &control.encode()[..])?;
    for directory in DIRECTORIES {
        files.sync_directory(directory)?;
    }
    files.sync_directory("")?;
    let marker = b"trunkline created this directory. Without this file, it only reads.\n";
    files.file(MARKER, marker)?;
    files.sync_directory("")?;
    files.sync_parent()?;
    Ok(NewCluster { control, wal_end: segment.end })
}

/// The control file of a cluster that was shut down at its first record.
fn control_file(options: &NewClusterOptions) -> ControlFile {
    // The first segment is left out, so that no position of a record is 0 (`BootStrapXLOG`).
    let redo = Lsn(u64::from(options.wal_segment_size.bytes()) + first_segment::HEADER);
    ControlFile {
        version: PgVersion::V18,
        system_identifier: options.system_identifier,
        state: ClusterState::ShutDown,
        time: options.time,
        checkpoint: first_segment::checkpoint(redo, options.time),
        unlogged_lsn: Lsn(1000),
        min_recovery_point: Lsn(0),
        min_recovery_timeline: 0,
        backup_start: Lsn(0),
        backup_end: Lsn(0),
        backup_end_required: false,
        wal_level: 0,
        wal_log_hints: false,
        max_connections: 100,
        max_worker_processes: 8,
        max_wal_senders: 0,
        max_prepared_xacts: 0,
        max_locks_per_xact: 64,
        track_commit_timestamp: false,
        max_align: 8,
        block_size: trunkline_format::BLOCK_SIZE as u32,
        segment_blocks: trunkline_format::SEGMENT_BLOCKS,
        slru_pages_per_segment: None,
        wal_block_size: trunkline_format::wal::LOG_PAGE_SIZE as u32,
        wal_segment_size: options.wal_segment_size.bytes(),
        name_length: 64,
        index_columns: 32,
        toast_chunk: 1996,
        large_object_block: 2048,
        float8_by_value: true,
        initial_data_checksum_version: None,
        data_checksum_version: options.checksums.into(),
        char_signed: Some(true),
        mock_nonce: options.nonce,
    }
}
