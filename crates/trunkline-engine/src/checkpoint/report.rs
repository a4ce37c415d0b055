//! What a checkpoint did, in numbers and as PostgreSQL's line in the log.
//! Times are of the clock, bytes and pages are those that reached the system.

use super::CheckpointError;
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
    /// The longest sync, as the storage had it.
    pub longest_sync: Duration,
    /// The average one.
    pub average_sync: Duration,
}

/// PostgreSQL 19's line up to the times of syncing, so that what reads servers' logs reads it too. What
/// follows there is about the log, of which there is none yet; nor are there pages of other caches.
impl fmt::Display for CheckpointReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = 100.0 * self.buffers as f64 / self.pool_buffers.max(1) as f64;
        write!(
            f,
            "checkpoint complete: {}: wrote {} buffers ({part:.1}%), wrote 0 SLRU buffers; \
             0 WAL file(s) added, 0 removed, 0 recycled; write={:.3} s, sync={:.3} s, \
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

/// What is told of a checkpoint (`log_checkpoints`). As text it is PostgreSQL's line.
#[derive(Debug, Clone, Copy)]
pub enum CheckpointEvent<'a> {
    /// It begins.
    Starting(Cause),
    /// It has come to its end.
    Complete(&'a CheckpointReport),
    /// It has not.
    Failed(&'a CheckpointError),
}

impl fmt::Display for CheckpointEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting(cause) => write!(f, "checkpoint starting: {}", cause.name()),
            Self::Complete(report) => report.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format is that of the strings in a server's binary.
    #[test]
    fn lines_are_postgresqls() {
        let report = CheckpointReport {
            cause: Cause::Timed,
            buffers: 1234,
            pool_buffers: 16_384,
            writes: WriteStats::default(),
            write_time: Duration::from_micros(269_934_567),
            sync_time: Duration::from_millis(17),
            total_time: Duration::from_millis(269_990),
            files: 3,
            longest_sync: Duration::from_millis(9),
            average_sync: Duration::from_millis(6),
        };
        assert_eq!(
            CheckpointEvent::Complete(&report).to_string(),
            "checkpoint complete: time: wrote 1234 buffers (7.5%), wrote 0 SLRU buffers; \
             0 WAL file(s) added, 0 removed, 0 recycled; write=269.935 s, sync=0.017 s, \
             total=269.990 s; sync files=3, longest=0.009 s, average=0.006 s"
        );
        let starting = CheckpointEvent::Starting(Cause::Requested);
        assert_eq!(starting.to_string(), "checkpoint starting: fast force wait");
    }
}
