//! What a checkpoint did, in numbers and as PostgreSQL's line in the log.
//! Times are of the clock, bytes and pages are those that reached the system.

use crate::write_stream::WriteStats;
use std::fmt;
use std::time::Duration;

/// Why a checkpoint was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    /// The time had come (`checkpoint_timeout`).
    Timed,
    /// Somebody asked for it: at once, as fast as it can be.
    #[default]
    Requested,
    /// The end.
    Shutdown,
}

impl Cause {
    /// PostgreSQL's words.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Timed => "time",
            Cause::Requested => "fast force wait",
            Cause::Shutdown => "shutdown fast",
        }
    }
}

/// One checkpoint that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Why.
    pub cause: Cause,
    /// Pages written by it.
    pub buffers: u64,
    /// Buffers of the pool.
    pub pool_buffers: u64,
    /// How they were written.
    pub writes: WriteStats,
    /// Marking and writing.
    pub write_time: Duration,
    /// Syncing.
    pub sync_time: Duration,
    /// All of it.
    pub total_time: Duration,
    /// Segments synced.
    pub files: u64,
    /// The longest sync.
    pub longest_sync: Duration,
    /// The average one.
    pub average_sync: Duration,
}

/// PostgreSQL 19's line, as far as there is something to say.
impl fmt::Display for CheckpointReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = 100.0 * self.buffers as f64 / self.pool_buffers.max(1) as f64;
        write!(
            f,
            "checkpoint complete ({}): wrote {} buffers ({part:.1}%); write={:.3} s, sync={:.3} s, \
             total={:.3} s; sync files={}, longest={:.3} s, average={:.3} s",
            self.cause.name(),
            self.buffers,
            self.write_time.as_secs_f64(),
            self.sync_time.as_secs_f64(),
            self.total_time.as_secs_f64(),
            self.files,
            self.longest_sync.as_secs_f64(),
            self.average_sync.as_secs_f64(),
        )
    }
}
