//! The report on the prewarm and sum runs, as text and as JSON. It has one row per run, with a bar
//! that shows the rate.
//!
//! Bars are scaled separately for each kind of run. Cached runs are much faster than cold runs, so
//! with a common scale the bars of the cold runs would be too short to compare.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::{IoRow, PageKind};
use trunkline_engine::job::IoSummary;
use trunkline_engine::pool::{RelationResidency, Tally};
use trunkline_engine::read_stream::StreamStats;
use trunkline_engine::settings::Settings;
use trunkline_sample::accounts::{Accounts, accounts_sum};

use super::handles::handles;
use super::io_config::{BAR_WIDTH, IoConfig, NotRun, seconds};
use crate::io_stats::{io_json, residency_json, streams_json};
use crate::output::{Table, bar, human_bytes, object, rate};

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

/// A row of the table.
#[derive(Debug)]
pub(super) struct ScanRow {
    pub(super) config: IoConfig,
    pub(super) kind: RunKind,
    pub(super) workers: u32,
    pub(super) outcome: Result<Box<ScanRun>, NotRun>,
}

/// All runs.
#[derive(Debug)]
pub(super) struct ScanReports {
    /// Number of buffers in the pool; `pages` shows which kind of memory pages the pool is mapped
    /// with.
    pub(super) buffers: u32,
    pub(super) pages: PageKind,
    pub(super) rows: Vec<ScanRow>,
    /// Invalid pages and wrong sums.
    pub(super) errors: Vec<String>,
    /// The handles in the middle of a run.
    pub(super) snapshot: Vec<IoRow>,
}

impl ScanReports {
    /// Keeps the snapshot that has the most handles in use, because it shows best how many I/Os are
    /// in flight.
    pub(super) fn offer_snapshot(&mut self, snapshot: Vec<IoRow>) {
        let in_use = |rows: &[IoRow]| rows.iter().filter(|row| row.operation.is_some()).count();
        if in_use(&snapshot) >= in_use(&self.snapshot) {
            self.snapshot = snapshot;
        }
    }

    fn runs(&self) -> impl Iterator<Item = (RunKind, &ScanRun)> {
        self.rows.iter().filter_map(|row| Some((row.kind, row.outcome.as_deref().ok()?)))
    }

    /// The rows in the order of the table: by configuration, kind and workers.
    fn sorted(&self) -> Vec<&ScanRow> {
        let mut rows: Vec<&ScanRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| {
            (row.config.requested as usize, row.config.direct, row.kind, row.workers)
        });
        rows
    }

    pub(super) fn text(&self, table: &Accounts, settings: &Settings) -> String {
        format!(
            "{} rows; buffer pool {} ({}); reads up to {}, {} in flight per scan, {} for prewarm\n\n\
             {}{}{}",
            table.rows(),
            human_bytes(u64::from(self.buffers) * 8192),
            self.pages.name(),
            human_bytes(u64::from(settings.io_combine_limit()) * 8192),
            settings.effective_io_concurrency(),
            settings.maintenance_io_concurrency(),
            self.table(),
            self.legend(table),
            handles(&self.snapshot, &table.path),
        )
    }

    fn table(&self) -> String {
        let fastest = |kind: RunKind| {
            let rates = self.runs().filter(|(of, _)| *of == kind).map(|(_, run)| run.rate());
            rates.fold(0.0, f64::max)
        };
        let mut table = Table::new(&HEADINGS);
        let mut previous = None;
        for row in self.sorted() {
            let mut cells = row.config.cells(&mut previous);
            let start = [row.kind.name().to_owned(), row.workers.to_string()];
            match &row.outcome {
                Ok(run) => {
                    cells.extend(start);
                    cells.extend(numbers(run, fastest(row.kind)));
                }
                Err(skipped @ NotRun::Skipped) => {
                    cells.extend(start);
                    cells.extend([String::new(), skipped.cell()]);
                }
                Err(no_direct @ NotRun::NoDirect(_)) => cells.push(no_direct.cell()),
            }
            table.row(cells);
        }
        table.render()
    }

    fn legend(&self, table: &Accounts) -> String {
        let expected = accounts_sum(table.scale);
        let sums: Vec<i64> = self.runs().filter_map(|(_, run)| run.sum).collect();
        let correct = sums.iter().filter(|sum| **sum == expected).count();
        let is_skipped = |row: &&ScanRow| matches!(row.outcome, Err(NotRun::Skipped));
        let skipped = self.rows.iter().filter(is_skipped).count();
        let mut text = format!(
            "\nworkers: in addition to the leader. hits: pages found in the pool. size: average \
             blocks per read.\nprefetch, max: pages pinned ahead. cached: part of the table in the \
             pool or the system's cache at the start.\nCPU: processor time of all threads. Bars \
             compare runs of one kind.\n\
             {correct} of {} sums of abalance are correct ({expected}).\n",
            sums.len(),
        );
        let fits = u64::from(self.buffers) * 8192 >= table.bytes();
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

    pub(super) fn json(&self, table: &Accounts, settings: &Settings) -> impl Serialize {
        object! {
            schema: 2,
            command: "demo",
            directory: table.path.display().to_string(),
            scale: table.scale,
            rows: table.rows(),
            bytes: table.bytes(),
            sum: accounts_sum(table.scale),
            right: self.errors.is_empty(),
            wrong: &self.errors,
            shared_buffers: self.buffers,
            effective_io_concurrency: settings.effective_io_concurrency(),
            maintenance_io_concurrency: settings.maintenance_io_concurrency(),
            io_combine_limit_blocks: settings.io_combine_limit(),
            pool_pages: self.pages.name(),
            runs: self.sorted().into_iter().map(ScanRow::json).collect::<Vec<_>>(),
        }
    }
}

/// The column headings of the table. `numbers` returns the cells from the fifth column on.
const HEADINGS: [&str; 16] = [
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
];

/// The cells of a run, from its time on.
fn numbers(run: &ScanRun, fastest: f64) -> [String; 12] {
    let before = run.before;
    let cached = before.pool + before.cache - before.both;
    let percent = 100.0 * cached as f64 / before.blocks.max(1) as f64;
    [
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

impl ScanRow {
    fn json(&self) -> impl Serialize {
        object! {
            #[serde(flatten)]
            config: self.config.json(),
            run: self.kind.name(),
            workers: self.workers,
            #[serde(flatten)]
            unavailable: self.outcome.as_ref().err().map(NotRun::json),
            #[serde(flatten)]
            numbers: self.outcome.as_ref().ok().map(|run| run.json()),
        }
    }
}

impl ScanRun {
    fn json(&self) -> impl Serialize {
        object! {
            seconds: self.seconds,
            bytes: self.bytes,
            bytes_per_second: self.rate(),
            cpu_seconds: self.cpu_seconds,
            sum: self.sum,
            before: residency_json(self.before),
            shared_hit_blocks: self.counts.hits,
            shared_read_blocks: self.counts.read_blocks,
            evictions: self.counts.evictions,
            reuses: self.counts.reuses,
            joins: self.counts.joins,
            streams: streams_json(&self.streams),
            io: io_json(&self.io),
        }
    }
}
