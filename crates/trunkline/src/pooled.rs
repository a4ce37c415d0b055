//! What commands with a buffer pool share: its size, its memory, and its counts in PostgreSQL's words:
//! streams as `EXPLAIN (ANALYZE, IO)` shows them, the pool as `pg_stat_io` does.
//!
//! ```text
//!   Prefetch: avg=262.63 max=271 capacity=272
//!   I/O: count=10247 waits=1 size=16.00 in-progress=15.87
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::mem::ManuallyDrop;

use serde::Serialize;
use trunkline_aio::Aio;
use trunkline_engine::Engine;
use trunkline_engine::pool::{
    BackendType, IoKey, IoObject, ReadWarning, RelationResidency, Strategy, Tally,
};
use trunkline_engine::read_stream::StreamStats;
use trunkline_engine::settings::Settings;
use trunkline_format::BLOCK_SIZE;

use crate::exit::{Failure, message};
use crate::instance;
use crate::output::{Table, human_bytes};

/// Memory for pages that are read beside the pool, those of the commit log: a frame for each session,
/// as many as run at a time.
const BESIDE_BYTES: usize = 64 * BLOCK_SIZE;

/// Options of commands with a pool.
#[derive(Debug, clap::Args)]
pub(crate) struct PoolArgs {
    /// Size of the buffer pool, in blocks or with a unit, 16 blocks and up [default: 128MB; of
    /// copy: 32MB; of demo: enough for its table, if memory allows].
    #[arg(long, value_name = "SIZE", help_heading = "I/O")]
    pub(crate) shared_buffers: Option<String>,
}

/// Starts I/O with memory for a pool of so many buffers, and for `other` bytes before there is one.
///
/// # Errors
/// There is not that much memory.
pub(crate) fn start(
    settings: &Settings,
    buffers: u32,
    other: usize,
) -> Result<ManuallyDrop<Aio>, Failure> {
    let bytes = u64::from(buffers) * BLOCK_SIZE as u64;
    // Every page of it is touched at once: what is not there would be taken from other programs.
    if let Some(available) = memory_available()
        && bytes > available
    {
        let (wanted, available) = (human_bytes(bytes), human_bytes(available));
        let text = format!(
            "could not map shared memory: shared_buffers wants {wanted}, {available} are available"
        );
        return Err(Failure::cannot_run(text).with_hint("reduce shared_buffers"));
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    instance::start_with(settings, bytes.saturating_add(BESIDE_BYTES).max(other))
}

/// Starts an engine with a pool of `buffers` pages. Its I/O is not waited for when the command ends:
/// see [`start`].
pub(crate) fn open(settings: &Settings, buffers: u32) -> Result<Engine, Failure> {
    let aio = start(settings, buffers, 0)?;
    engine(&aio, settings, buffers)
}

/// An engine on an I/O instance that [`start`] has started.
pub(crate) fn engine(aio: &Aio, settings: &Settings, buffers: u32) -> Result<Engine, Failure> {
    Ok(Engine::builder(settings).io(aio).buffers(buffers).open()?)
}

/// Bytes that can be had without taking them from other programs, as far as the system says.
pub(crate) fn memory_available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Says what was let pass.
pub(crate) fn report_warnings(warnings: &[ReadWarning], lost: u64) {
    for warning in warnings {
        message("warning", warning);
    }
    if lost > 0 {
        message("warning", format_args!("… and {lost} more such pages"));
    }
}

/// The two lines of `EXPLAIN (ANALYZE, IO)`.
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

/// Rows as `pg_stat_io` has them, relations taken together.
pub(crate) fn stat_io(counts: &[(IoKey, Tally)]) -> Vec<StatIo> {
    let mut rows: BTreeMap<(BackendType, IoObject, Strategy), Tally> = BTreeMap::new();
    for (key, tally) in counts {
        rows.entry((key.backend, key.object, key.context)).or_default().add(tally);
    }
    rows.into_iter().map(StatIo::new).collect()
}

/// The rows as a table.
pub(crate) fn stat_io_table(counts: &[(IoKey, Tally)]) -> String {
    let mut table = Table::new(&[
        "backend_type",
        "object",
        "context",
        ">reads",
        ">read_bytes",
        ">read_time",
        ">hits",
        ">evictions",
        ">reuses",
    ]);
    for row in stat_io(counts) {
        table.row(vec![
            row.backend_type.to_owned(),
            row.object.to_owned(),
            row.context.to_owned(),
            row.reads.to_string(),
            row.read_bytes.to_string(),
            format!("{:.1} ms", row.read_time),
            row.hits.to_string(),
            row.evictions.to_string(),
            row.reuses.to_string(),
        ]);
    }
    table.render()
}

/// A row of `pg_stat_io`. Times are in milliseconds, as there.
#[derive(Debug, Serialize)]
pub(crate) struct StatIo {
    backend_type: &'static str,
    object: &'static str,
    context: &'static str,
    reads: u64,
    read_bytes: u64,
    /// How long somebody waited.
    read_time: f64,
    hits: u64,
    evictions: u64,
    reuses: u64,
    /// Of the hits, pages that somebody else was reading.
    joins: u64,
    waits: u64,
    /// How long the storage had the reads, summed.
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

/// What streams did, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct JsonStreams {
    pages: u64,
    prefetch_avg: f64,
    prefetch_max: u32,
    prefetch_capacity: u32,
    io_count: u64,
    io_waits: u64,
    io_size: f64,
    io_in_progress: f64,
    advised: u64,
}

impl JsonStreams {
    pub(crate) fn new(streams: &StreamStats) -> JsonStreams {
        JsonStreams {
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
}

/// Where blocks are, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct JsonResidency {
    blocks: u64,
    pool: u64,
    cache: u64,
    both: u64,
}

impl JsonResidency {
    pub(crate) fn new(residency: RelationResidency) -> JsonResidency {
        let RelationResidency { blocks, pool, cache, both } = residency;
        JsonResidency { blocks, pool, cache, both }
    }
}
