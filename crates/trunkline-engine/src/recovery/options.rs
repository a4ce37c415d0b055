//! Options of a recovery, how far it has come, and what it has done.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_format::{ControlFile, Lsn};

use crate::replay::REPLAY_MEMORY_MIN;
use crate::settings::Settings;

/// Options of a recovery.
#[derive(Debug, Clone)]
pub struct RecoveryOptions {
    /// The number of threads that build and write pages. 0 counts as 1. Each takes two sessions and 512 kB of the page
    /// region.
    pub threads: u32,
    /// How much memory the list of changed pages may take, in bytes. The pages that threads build take half as much, but at
    /// least 32 MB and at most 128 MB for each thread.
    pub memory: u64,
    /// The folder for what exceeds it, outside of the data directory.
    pub scratch: PathBuf,
    /// How the log is read ahead. `None`: by the kernel.
    pub io: Option<Settings>,
}

impl RecoveryOptions {
    /// Two threads, 64 MB of memory, and the kernel's read-ahead.
    pub fn new(scratch: PathBuf) -> Self {
        Self { threads: 2, memory: REPLAY_MEMORY_MIN, scratch, io: None }
    }
}

/// How far recovery has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Parts of files that have been written.
    pub done: usize,
    /// All parts. Progress is reported only after the WAL has been read.
    pub total: usize,
}

/// What recovery has done.
#[derive(Debug, Clone)]
pub struct RecoveryReport {
    /// Where redo started.
    pub start: Lsn,
    /// The end of the log that was recovered.
    pub end: Lsn,
    /// Why it ended there.
    pub reason: String,
    /// The number of records.
    pub records: u64,
    /// The number of pages that were written.
    pub pages: u64,
    /// The number of files that were removed.
    pub removed: u64,
    /// How long the log was read.
    pub scan_time: Duration,
    /// How long all of it took.
    pub total_time: Duration,
}

/// A cluster that is as after a shutdown.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// Its control file, whose state is "shut down".
    pub control: ControlFile,
    /// The end of its log.
    pub wal_end: Lsn,
    /// What recovery has done. `None` if the cluster had been shut down.
    pub report: Option<RecoveryReport>,
}
