//! The table of prewarm and sum runs, as text and JSON: a row per run, with a bar for the rate.
//!
//! Bars are scaled separately for each kind of run. Otherwise the cached runs would make all cold
//! runs' bars too short to compare.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::{IoRow, PageKind};
use trunkline_engine::job::IoSummary;
use trunkline_engine::pool::{RelationResidency, Tally};
use trunkline_engine::read_stream::StreamStats;
use trunkline_engine::settings::Settings;
use trunkline_sample::accounts::Accounts;

use super::handles::handles;
use super::io_config::{
    BAR_WIDTH, IoConfig, JsonIoConfig, no_direct_cell, no_direct_json, seconds,
};
use crate::io_stats::{JsonIo, JsonResidency, JsonStreams};
use crate::output::{Table, bar, human_bytes, rate};

/// The kind of a run, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunKind {
    Prewarm,
    SumCold,
    SumCached,
}

impl RunKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            RunKind::Prewarm => "prewarm cold",
            RunKind::SumCold => "sum cold",
            RunKind::SumCached => "sum cached",
        }
    }
}

/// The numbers of one run.
#[derive(Debug)]
pub(super) struct ScanRun {
    pub(super) kind: RunKind,
    pub(super) workers: u32,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) cpu_seconds: f64,
    pub(super) before: RelationResidency,
    pub(super) streams: StreamStats,
    pub(super) counts: Tally,
    pub(super) io: IoSummary,
    /// The result of a sum.
    pub(super) sum: Option<i64>,
}

impl ScanRun {
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub(super) enum ScanOutcome {
    Ran(Box<ScanRun>),
    /// A cold sum that was skipped because it would have taken too long.
    Skipped {
        workers: u32,
    },
    /// The file system doesn't support direct I/O. The value is the file system's type.
    NoDirect(String),
}

impl ScanOutcome {
    fn kind_and_workers(&self) -> (RunKind, u32) {
        match self {
            ScanOutcome::Ran(run) => (run.kind, run.workers),
            ScanOutcome::Skipped { workers } => (RunKind::SumCold, *workers),
            ScanOutcome::NoDirect(_) => (RunKind::Prewarm, 0),
        }
    }
}

/// All runs.
#[derive(Debug)]
pub(super) struct ScanReports {
    directory: String,
    scale: u32,
    rows: u64,
    bytes: u64,
    expected: i64,
    buffers: u32,
    concurrency: [u32; 2],
    combine_blocks: u32,
    pages: PageKind,
    runs: Vec<(IoConfig, ScanOutcome)>,
    errors: Vec<String>,
    /// The handles in the middle of a run.
    snapshot: Vec<IoRow>,
}

impl ScanReports {
    pub(super) fn new(
        table: &Accounts,
        settings: &Settings,
        buffers: u32,
        expected: i64,
        pages: PageKind,
    ) -> ScanReports {
        ScanReports {
            directory: table.path.display().to_string(),
            scale: table.scale,
            rows: table.rows(),
            bytes: table.bytes(),
            expected,
            buffers,
            concurrency: [
                settings.effective_io_concurrency(),
                settings.maintenance_io_concurrency(),
            ],
            combine_blocks: settings.io_combine_limit(),
            pages,
            runs: Vec::new(),
            errors: Vec::new(),
            snapshot: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, config: IoConfig, outcome: ScanOutcome) {
        self.runs.push((config, outcome));
    }

    /// Records an invalid page or a wrong sum.
    pub(super) fn add_error(&mut self, text: String) {
        self.errors.push(text);
    }

    pub(super) fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Keeps the snapshot with the most handles in use, which best shows how many I/Os are in
    /// flight.
    pub(super) fn offer_snapshot(&mut self, snapshot: Vec<IoRow>) {
        let in_use = |rows: &[IoRow]| rows.iter().filter(|row| row.operation.is_some()).count();
        if in_use(&snapshot) >= in_use(&self.snapshot) {
            self.snapshot = snapshot;
        }
    }

    fn runs(&self) -> impl Iterator<Item = &ScanRun> {
        self.runs.iter().filter_map(|(_, outcome)| match outcome {
            ScanOutcome::Ran(run) => Some(&**run),
            ScanOutcome::Skipped { .. } | ScanOutcome::NoDirect(_) => None,
        })
    }

    /// The runs in the order of the table: by configuration, kind and workers.
    fn sorted(&self) -> Vec<&(IoConfig, ScanOutcome)> {
        let mut runs: Vec<&(IoConfig, ScanOutcome)> = self.runs.iter().collect();
        runs.sort_by_key(|(config, outcome)| {
            (config.requested as usize, config.direct, outcome.kind_and_workers())
        });
        runs
    }

    pub(super) fn text(&self) -> String {
        let [concurrency, maintenance] = self.concurrency;
        let pool = human_bytes(u64::from(self.buffers) * 8192);
        let combine = human_bytes(u64::from(self.combine_blocks) * 8192);
        let mut text = format!(
            "{} rows; buffer pool {pool} ({}); reads up to {combine}, {concurrency} in flight per \
             scan, {maintenance} for prewarm\n\n",
            self.rows,
            self.pages.name(),
        );
        text.push_str(&self.table());
        text.push_str(&self.legend());
        text.push_str(&handles(&self.snapshot, &self.directory));
        text
    }

    fn table(&self) -> String {
        let fastest = |kind: RunKind| {
            self.runs().filter(|run| run.kind == kind).map(ScanRun::rate).fold(0.0, f64::max)
        };
        let mut table = Table::new(&[
            "io_method",
            "mode",
            "run",
            ">workers",
            ">time",
            ">rate",
            "",
            ">CPU",
            ">hits",
            ">reads",
            ">size",
            ">prefetch",
            ">max",
            ">in flight",
            ">waits",
            ">cached",
        ]);
        let mut previous = None;
        for (config, outcome) in self.sorted() {
            let mut cells = config.cells(&mut previous);
            match outcome {
                ScanOutcome::Ran(run) => cells.extend(numbers(run, fastest(run.kind))),
                ScanOutcome::Skipped { workers } => {
                    cells.extend([RunKind::SumCold.name().to_owned(), workers.to_string()]);
                    cells.extend([String::new(), "skipped".to_owned()]);
                }
                ScanOutcome::NoDirect(file_system) => cells.push(no_direct_cell(file_system)),
            }
            table.row(cells);
        }
        table.render()
    }

    fn legend(&self) -> String {
        let sums = self.runs().filter(|run| run.sum.is_some()).count();
        let correct = self.runs().filter(|run| run.sum == Some(self.expected)).count();
        let is_skipped = |outcome: &ScanOutcome| matches!(outcome, ScanOutcome::Skipped { .. });
        let skipped = self.runs.iter().filter(|(_, outcome)| is_skipped(outcome)).count();
        let mut text = format!(
            "\nworkers: in addition to the leader. hits: pages found in the pool. size: average \
             blocks per read.\nprefetch, max: pages pinned ahead. cached: part of the table in the \
             pool or the system's cache at the start.\nCPU: processor time of all threads. Bars \
             compare runs of one kind.\n\
             {correct} of {sums} sums of abalance are correct ({}).\n",
            self.expected
        );
        let fits = u64::from(self.buffers) * 8192 >= self.bytes;
        if !fits {
            text.push_str(
                "The pool is smaller than the table, so there are no cached runs with direct I/O.\n",
            );
        }
        if skipped > 0 {
            let _ = writeln!(text, "{skipped} cold sums were skipped to save time; use --full.");
        }
        text
    }

    pub(super) fn json(&self) -> impl Serialize + use<> {
        Json {
            schema: 2,
            command: "demo",
            directory: self.directory.clone(),
            scale: self.scale,
            rows: self.rows,
            bytes: self.bytes,
            sum: self.expected,
            right: self.errors.is_empty(),
            wrong: self.errors.clone(),
            shared_buffers: self.buffers,
            effective_io_concurrency: self.concurrency[0],
            maintenance_io_concurrency: self.concurrency[1],
            io_combine_limit_blocks: self.combine_blocks,
            pool_pages: self.pages.name(),
            runs: self.sorted().into_iter().map(JsonRun::new).collect(),
        }
    }
}

/// The cells of a run after those of its configuration.
fn numbers(run: &ScanRun, fastest: f64) -> Vec<String> {
    let before = run.before;
    let cached = before.pool + before.cache - before.both;
    let percent = 100.0 * cached as f64 / before.blocks.max(1) as f64;
    vec![
        run.kind.name().to_owned(),
        run.workers.to_string(),
        seconds(run.seconds),
        rate(run.rate()),
        bar(run.rate() / fastest.max(1.0), BAR_WIDTH),
        seconds(run.cpu_seconds),
        run.counts.hits.to_string(),
        run.streams.ios.to_string(),
        format!("{:.1}", run.streams.io_size_mean()),
        format!("{:.1}", run.streams.distance_mean()),
        run.streams.distance_max.to_string(),
        format!("{:.1}", run.streams.in_flight_mean()),
        run.streams.waits.to_string(),
        format!("{percent:.0} %"),
    ]
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
    directory: String,
    scale: u32,
    rows: u64,
    bytes: u64,
    sum: i64,
    right: bool,
    wrong: Vec<String>,
    shared_buffers: u32,
    effective_io_concurrency: u32,
    maintenance_io_concurrency: u32,
    io_combine_limit_blocks: u32,
    pool_pages: &'static str,
    runs: Vec<JsonRun>,
}

#[derive(Serialize)]
struct JsonRun {
    #[serde(flatten)]
    config: JsonIoConfig,
    run: &'static str,
    workers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
    #[serde(flatten)]
    numbers: Option<JsonNumbers>,
}

impl JsonRun {
    fn new((config, outcome): &(IoConfig, ScanOutcome)) -> JsonRun {
        let (kind, workers) = outcome.kind_and_workers();
        let (unavailable, numbers) = match outcome {
            ScanOutcome::Ran(run) => (None, Some(JsonNumbers::new(run))),
            ScanOutcome::Skipped { .. } => (Some("skipped to save time".to_owned()), None),
            ScanOutcome::NoDirect(file_system) => (Some(no_direct_json(file_system)), None),
        };
        JsonRun { config: config.json(), run: kind.name(), workers, unavailable, numbers }
    }
}

#[derive(Serialize)]
struct JsonNumbers {
    seconds: f64,
    bytes: u64,
    bytes_per_second: f64,
    cpu_seconds: f64,
    sum: Option<i64>,
    before: JsonResidency,
    shared_hit_blocks: u64,
    shared_read_blocks: u64,
    evictions: u64,
    reuses: u64,
    joins: u64,
    streams: JsonStreams,
    io: JsonIo,
}

impl JsonNumbers {
    fn new(run: &ScanRun) -> JsonNumbers {
        JsonNumbers {
            seconds: run.seconds,
            bytes: run.bytes,
            bytes_per_second: run.rate(),
            cpu_seconds: run.cpu_seconds,
            sum: run.sum,
            before: JsonResidency::new(run.before),
            shared_hit_blocks: run.counts.hits,
            shared_read_blocks: run.counts.read_blocks,
            evictions: run.counts.evictions,
            reuses: run.counts.reuses,
            joins: run.counts.joins,
            streams: JsonStreams::new(&run.streams),
            io: JsonIo::new(&run.io),
        }
    }
}
