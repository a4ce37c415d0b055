//! Checkpoint reports: what a checkpoint did, and PostgreSQL's log line for it.

use super::error::CheckpointError;
use crate::write_stream::WriteStats;
use std::fmt;
use std::time::Duration;

/// Why a checkpoint runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    /// `checkpoint_timeout` has elapsed.
    Timed,
    /// A session has requested it, as fast as possible (`CHECKPOINT`).
    #[default]
    Requested,
    /// The engine shuts down.
    Shutdown,
}

impl Cause {
    /// PostgreSQL's text.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Timed => "time",
            Cause::Requested => "fast force wait",
            Cause::Shutdown => "shutdown fast",
        }
    }
}

/// What a checkpoint did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Why it ran.
    pub cause: Cause,
    /// Pages written.
    pub buffers: u64,
    /// Buffers of the pool.
    pub pool_buffers: u64,
    /// Statistics of the writes.
    pub writes: WriteStats,
    /// Time to mark and write the pages.
    pub write_time: Duration,
    /// Time to sync the segments.
    pub sync_time: Duration,
    /// Total time.
    pub total_time: Duration,
    /// Segments synced.
    pub files: u64,
    /// Longest fsync, in device time.
    pub longest_sync: Duration,
    /// Average fsync.
    pub average_sync: Duration,
}

/// Formatted like PostgreSQL 19's log line up to and including the fsync times, so that tools that
/// parse server logs can read it. The rest of PostgreSQL's line is about the write-ahead log, so we
/// leave it out.
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

/// What `log_checkpoints` logs. The text is PostgreSQL's line.
#[derive(Debug, Clone, Copy)]
pub enum CheckpointEvent<'a> {
    /// A checkpoint begins.
    Starting(Cause),
    /// It has succeeded.
    Complete(&'a CheckpointReport),
    /// It has failed.
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

    /// The expected text uses the format strings of a PostgreSQL server.
    #[test]
    fn log_lines_are_those_of_postgresql() {
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
