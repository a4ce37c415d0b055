//! I/O statistics, under the names that PostgreSQL uses: read streams as in
//! `EXPLAIN (ANALYZE, IO)`, and the buffer pool as in `pg_stat_io`. They can be printed as text or
//! as JSON.
//!
//! ```text
//!   Prefetch: avg=262.63 max=271 capacity=272
//!   I/O: count=10247 waits=1 size=16.00 in-progress=15.87
//! ```

use std::collections::BTreeMap;

use serde::Serialize;
use trunkline_engine::job::IoSummary;
use trunkline_engine::pool::{
    BackendType, IoKey, IoObject, ReadWarning, RelationResidency, Strategy, Tally,
};
use trunkline_engine::read_stream::StreamStats;

use crate::exit::message;
use crate::output::{Column, object, table};

/// Prints a warning for each page that was read despite damage.
pub(crate) fn report_warnings(warnings: &[ReadWarning], lost: u64) {
    for warning in warnings {
        message("warning", warning);
    }
    if lost > 0 {
        message("warning", format_args!("… and {lost} more such pages"));
    }
}

/// Returns the two lines that `EXPLAIN (ANALYZE, IO)` prints for a read stream. Distances are given
/// in blocks. `in-progress` is the average number of I/Os in flight, and `waits` counts how often
/// the consumer had to wait for a read.
pub(crate) fn stream_lines(streams: &StreamStats) -> String {
    format!(
        "Prefetch: avg={:.2} max={} capacity={}\nI/O: count={} waits={} size={:.2} \
         in-progress={:.2}\n",
        streams.distance_mean(),
        streams.distance_max,
        streams.capacity,
        streams.ios,
        streams.waits,
        streams.io_size_mean(),
        streams.in_flight_mean(),
    )
}

/// Returns rows like those of `pg_stat_io`. The engine keeps separate counters for each relation,
/// so we must add them up here.
pub(crate) fn stat_io(counts: &[(IoKey, Tally)]) -> Vec<StatIo> {
    let mut rows: BTreeMap<(BackendType, IoObject, Strategy), Tally> = BTreeMap::new();
    for (key, tally) in counts {
        rows.entry((key.backend, key.object, key.context)).or_default().add(tally);
    }
    rows.into_iter().map(StatIo::new).collect()
}

/// The rows as a table.
pub(crate) fn stat_io_table(rows: &[StatIo]) -> String {
    let columns: [Column<StatIo>; _] = [
        ("backend_type", |row| row.backend_type.to_owned()),
        ("object", |row| row.object.to_owned()),
        ("context", |row| row.context.to_owned()),
        (">reads", |row| row.reads.to_string()),
        (">read_bytes", |row| row.read_bytes.to_string()),
        (">read_time", |row| format!("{:.1} ms", row.read_time)),
        (">hits", |row| row.hits.to_string()),
        (">evictions", |row| row.evictions.to_string()),
        (">reuses", |row| row.reuses.to_string()),
    ];
    table(rows, &columns)
}

/// A row of `pg_stat_io`. Times are in milliseconds, as in that view.
#[derive(Debug, Serialize)]
pub(crate) struct StatIo {
    backend_type: &'static str,
    object: &'static str,
    context: &'static str,
    reads: u64,
    read_bytes: u64,
    /// Time that sessions spent waiting for reads. If read-ahead works well, this is much less than
    /// `device_time`.
    read_time: f64,
    hits: u64,
    evictions: u64,
    reuses: u64,
    /// Number of hits on pages that another session was reading at that moment.
    joins: u64,
    waits: u64,
    /// Device time, summed over all reads. Reads overlap, so the sum may be larger than the elapsed
    /// time.
    device_time: f64,
    checksum_failures: u64,
}

impl StatIo {
    fn new(
        ((backend, object, context), tally): ((BackendType, IoObject, Strategy), Tally),
    ) -> StatIo {
        StatIo {
            backend_type: backend.name(),
            object: object.name(),
            context: context.context(),
            reads: tally.reads,
            read_bytes: tally.read_bytes(),
            read_time: tally.wait_time().as_secs_f64() * 1e3,
            hits: tally.hits,
            evictions: tally.evictions,
            reuses: tally.reuses,
            joins: tally.joins,
            waits: tally.waits,
            device_time: tally.device_time().as_secs_f64() * 1e3,
            checksum_failures: tally.checksum_failures,
        }
    }
}

/// The counts of read streams, as JSON.
pub(crate) fn streams_json(streams: &StreamStats) -> impl Serialize + use<> {
    object! {
        pages: streams.pages,
        prefetch_avg: streams.distance_mean(),
        prefetch_max: streams.distance_max,
        prefetch_capacity: streams.capacity,
        io_count: streams.ios,
        io_waits: streams.waits,
        io_size: streams.io_size_mean(),
        io_in_progress: streams.in_flight_mean(),
        advised: streams.advised,
    }
}

/// Returns the number of blocks in the pool and in the operating system's cache, as JSON.
pub(crate) fn residency_json(residency: RelationResidency) -> impl Serialize {
    let RelationResidency { blocks, pool, cache, both } = residency;
    object! { blocks: blocks, pool: pool, cache: cache, both: both }
}

/// The I/O of a job, as JSON.
pub(crate) fn io_json(io: &IoSummary) -> impl Serialize + use<> {
    object! {
        reads: io.reads,
        bytes: io.bytes,
        cached: io.cached,
        in_flight_mean: io.in_flight,
        waits: io.waits,
        wait_seconds: io.wait_time.as_secs_f64(),
        device_seconds: io.device_time.as_secs_f64(),
        retried: io.retried,
    }
}
