//! The table of reads, for people and for programs: a row for each run, with a bar for the rate, and
//! below it a few handles.
//!
//! Rates are compared among runs of one kind: a cached sum would make every cold one look alike.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::{IoRow, PageKind};
use trunkline_engine::job::IoSummary;
use trunkline_engine::pool::{RelationResidency, Tally};
use trunkline_engine::read_stream::StreamStats;
use trunkline_engine::settings::Settings;
use trunkline_sample::accounts::Accounts;

use super::config::{BAR_WIDTH, Config, JsonConfig, no_direct, not_on, seconds};
use super::handles::handles;
use crate::output::{Table, bar, human_bytes, rate};
use crate::pooled::{JsonResidency, JsonStreams};
use crate::verify::JsonIo;

/// What was done. In the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Prewarm,
    SumCold,
    SumCached,
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            What::Prewarm => "prewarm cold",
            What::SumCold => "sum cold",
            What::SumCached => "sum cached",
        }
    }
}

/// The numbers of one run.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) what: What,
    pub(super) workers: u32,
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) cpu_seconds: f64,
    pub(super) before: RelationResidency,
    pub(super) streams: StreamStats,
    pub(super) counts: Tally,
    pub(super) io: IoSummary,
    /// What a sum found.
    pub(super) sum: Option<i64>,
}

impl Row {
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }
}

/// What became of one run.
#[derive(Debug)]
pub(super) enum Outcome {
    Ran(Box<Row>),
    /// A cold sum, for want of time.
    LeftOut {
        workers: u32,
    },
    /// The file system has no direct I/O; its name.
    NoDirect(String),
}

/// All runs.
#[derive(Debug)]
pub(super) struct Demo {
    directory: String,
    scale: u32,
    rows: u64,
    bytes: u64,
    expected: i64,
    buffers: u32,
    concurrency: [u32; 2],
    combine_blocks: u32,
    pages: PageKind,
    runs: Vec<(Config, Outcome)>,
    wrong: Vec<String>,
    look: Vec<IoRow>,
}

impl Demo {
    pub(super) fn new(
        table: &Accounts,
        settings: &Settings,
        buffers: u32,
        expected: i64,
        pages: PageKind,
    ) -> Demo {
        Demo {
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
            wrong: Vec::new(),
            look: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, config: Config, outcome: Outcome) {
        self.runs.push((config, outcome));
    }

    /// Something was not as it must be.
    pub(super) fn note_wrong(&mut self, text: String) {
        self.wrong.push(text);
    }

    pub(super) fn wrong(&self) -> &[String] {
        &self.wrong
    }

    /// Whether every page was sound and every sum the right one.
    pub(super) fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Keeps a look at the handles; of several, the one that shows most.
    pub(super) fn keep_look(&mut self, look: Vec<IoRow>) {
        let shown = |look: &[IoRow]| look.iter().filter(|row| row.operation.is_some()).count();
        if shown(&look) >= shown(&self.look) {
            self.look = look;
        }
    }

    fn ran(&self) -> impl Iterator<Item = &Row> {
        self.runs.iter().filter_map(|(_, outcome)| match outcome {
            Outcome::Ran(row) => Some(&**row),
            Outcome::LeftOut { .. } | Outcome::NoDirect(_) => None,
        })
    }

    /// The runs in the order of the table: by method and way, then by kind, then by workers.
    fn sorted(&self) -> Vec<&(Config, Outcome)> {
        let mut runs: Vec<&(Config, Outcome)> = self.runs.iter().collect();
        runs.sort_by_key(|(config, outcome)| {
            let place = match outcome {
                Outcome::Ran(row) => (row.what, row.workers),
                Outcome::LeftOut { workers } => (What::SumCold, *workers),
                Outcome::NoDirect(_) => (What::Prewarm, 0),
            };
            (config.asked as usize, config.direct, place)
        });
        runs
    }

    pub(super) fn text(&self) -> String {
        let [concurrency, maintenance] = self.concurrency;
        let pool = human_bytes(u64::from(self.buffers) * 8192);
        let combine = human_bytes(u64::from(self.combine_blocks) * 8192);
        let mut text = format!(
            "{} rows; pool of {pool} ({}); reads of up to {combine}, {concurrency} \
             in flight for each scan, {maintenance} for prewarm\n\n",
            self.rows,
            self.pages.name(),
        );
        text.push_str(&self.table());
        text.push_str(&self.legend());
        text.push_str(&handles(&self.look, &self.directory));
        text
    }

    fn table(&self) -> String {
        let fastest = |what: What| {
            self.ran().filter(|row| row.what == what).map(Row::rate).fold(0.0, f64::max)
        };
        let mut table = Table::new(&[
            "io_method",
            "way",
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
                Outcome::Ran(row) => cells.extend(numbers(row, fastest(row.what))),
                Outcome::LeftOut { workers } => {
                    cells.extend([What::SumCold.name().to_owned(), workers.to_string()]);
                    cells.extend([String::new(), "left out".to_owned()]);
                }
                Outcome::NoDirect(file_system) => {
                    cells.push(not_on(file_system));
                }
            }
            table.row(cells);
        }
        table.render()
    }

    fn legend(&self) -> String {
        let sums = self.ran().filter(|row| row.sum.is_some()).count();
        let right = self.ran().filter(|row| row.sum == Some(self.expected)).count();
        let left_out =
            self.runs.iter().filter(|(_, run)| matches!(run, Outcome::LeftOut { .. })).count();
        let mut text = format!(
            "\nworkers: beside the leader. hits: pages found in the pool. size: blocks of a read. \
             prefetch, max: pages\npinned ahead. cached: how much of the table was in the pool or \
             in the system's cache at the start.\nCPU: of all threads. Bars compare runs of \
             one kind.\n\
             {right} of {sums} sums of abalance are {}, as they must be.\n",
            self.expected
        );
        let fits = u64::from(self.buffers) * 8192 >= self.bytes;
        if !fits {
            text.push_str(
                "The pool is smaller than the table: read directly, nothing of it is cached.\n",
            );
        }
        if left_out > 0 {
            let _ = writeln!(
                text,
                "{left_out} cold sums were left out for want of time; --full runs them too."
            );
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
            right: self.is_right(),
            wrong: self.wrong.clone(),
            shared_buffers: self.buffers,
            effective_io_concurrency: self.concurrency[0],
            maintenance_io_concurrency: self.concurrency[1],
            io_combine_limit_blocks: self.combine_blocks,
            pool_pages: self.pages.name(),
            runs: self.sorted().into_iter().map(JsonRun::new).collect(),
        }
    }
}

fn numbers(row: &Row, fastest: f64) -> Vec<String> {
    let before = row.before;
    let cached = before.pool + before.cache - before.both;
    let percent = 100.0 * cached as f64 / before.blocks.max(1) as f64;
    vec![
        row.what.name().to_owned(),
        row.workers.to_string(),
        seconds(row.seconds),
        rate(row.rate()),
        bar(row.rate() / fastest.max(1.0), BAR_WIDTH),
        seconds(row.cpu_seconds),
        row.counts.hits.to_string(),
        row.streams.ios.to_string(),
        format!("{:.1}", row.streams.io_size_mean()),
        format!("{:.1}", row.streams.distance_mean()),
        row.streams.distance_max.to_string(),
        format!("{:.1}", row.streams.in_flight_mean()),
        row.streams.waits.to_string(),
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
    config: JsonConfig,
    run: &'static str,
    workers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
    #[serde(flatten)]
    numbers: Option<JsonNumbers>,
}

impl JsonRun {
    fn new((config, outcome): &(Config, Outcome)) -> JsonRun {
        let (what, workers, unavailable, numbers) = match outcome {
            Outcome::Ran(row) => (row.what, row.workers, None, Some(JsonNumbers::new(row))),
            Outcome::LeftOut { workers } => {
                (What::SumCold, *workers, Some("left out for want of time".to_owned()), None)
            }
            Outcome::NoDirect(file_system) => {
                (What::Prewarm, 0, Some(no_direct(file_system)), None)
            }
        };
        JsonRun {
            config: JsonConfig::new(*config),
            run: what.name(),
            workers,
            unavailable,
            numbers,
        }
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
    fn new(row: &Row) -> JsonNumbers {
        JsonNumbers {
            seconds: row.seconds,
            bytes: row.bytes,
            bytes_per_second: row.rate(),
            cpu_seconds: row.cpu_seconds,
            sum: row.sum,
            before: JsonResidency::new(row.before),
            shared_hit_blocks: row.counts.hits,
            shared_read_blocks: row.counts.read_blocks,
            evictions: row.counts.evictions,
            reuses: row.counts.reuses,
            joins: row.counts.joins,
            streams: JsonStreams::new(&row.streams),
            io: JsonIo::new(&row.io),
        }
    }
}
