//! Options of a replay: folders with segments, the recovery target, and the memory limit.

use std::path::PathBuf;

use super::until::Until;
use crate::settings::Settings;

/// The least memory for the list of changed pages, in bytes.
pub const REPLAY_MEMORY_MIN: u64 = 64 << 20;

/// Options of a replay.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// Folders with segments besides `pg_wal`, such as an archive.
    pub wal: Vec<PathBuf>,
    /// The moment at which replay stops.
    pub until: Until,
    /// How much memory the list of changed pages may take, in bytes.
    pub memory: u64,
    /// How many threads scan the log: with one, it also lists the changed pages; with more, another thread does.
    pub threads: u32,
    /// Whether a log that ends too early is read as far as it goes.
    pub allow_incomplete: bool,
    /// Settings of the I/O instance that reads the log ahead: `io_method`, `maintenance_io_concurrency` and
    /// those of its workers. `None`: one read at a time, with the kernel's read-ahead.
    pub io: Option<Settings>,
    /// The folder for the pages that were built, outside of the data directory. The file in it has no
    /// name, so it goes when the process ends.
    pub scratch: PathBuf,
}

impl ReplayOptions {
    /// The defaults: the whole log in `pg_wal`, 64 MB of memory, one thread.
    pub fn new(scratch: PathBuf) -> Self {
        Self {
            wal: Vec::new(),
            until: Until::End,
            memory: REPLAY_MEMORY_MIN,
            threads: 1,
            allow_incomplete: false,
            io: None,
            scratch,
        }
    }
}
