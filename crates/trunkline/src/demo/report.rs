//! The table, for people and for programs: a row for each method and each place that bytes may come
//! from, with a bar for the rate, and below it a few handles as `pg_aios` shows them.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::{IoRow, MethodKind, PageKind};
use trunkline_engine::sample::Sample;
use trunkline_engine::scan::{IoSummary, ReadOptions};
use trunkline_engine::settings::{IoMethod, Settings};

use crate::output::{Table, bar, human_bytes, rate};
use crate::verify::JsonIo;

/// Characters of the longest bar.
const BAR_WIDTH: usize = 20;

/// Handles of the snapshot that are shown.
const HANDLES_SHOWN: usize = 6;

/// Where the bytes of a run come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Cold,
    Cached,
    Direct,
}

impl Way {
    pub(super) const ALL: [Way; 3] = [Way::Cold, Way::Cached, Way::Direct];

    fn name(self) -> &'static str {
        match self {
            Way::Cold => "cold",
            Way::Cached => "cached",
            Way::Direct => "direct",
        }
    }
}

/// The numbers of one run.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) cpu_seconds: f64,
    pub(super) cached_before: f64,
    pub(super) findings: u64,
    pub(super) io: IoSummary,
}

impl Row {
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }
}

/// What became of one run.
#[derive(Debug)]
pub(super) enum Outcome {
    Ran(Row),
    /// The file system has no direct I/O; its name.
    NoDirect(String),
}

/// All runs.
#[derive(Debug)]
pub(super) struct Demo {
    directory: String,
    files: usize,
    bytes: u64,
    options: ReadOptions,
    pages: PageKind,
    runs: Vec<(IoMethod, MethodKind, Way, Outcome)>,
    look: Vec<IoRow>,
}

impl Demo {
    pub(super) fn new(sample: &Sample, settings: &Settings, pages: PageKind) -> Demo {
        Demo {
            directory: sample.path.display().to_string(),
            files: sample.files.len(),
            bytes: sample.bytes(),
            options: ReadOptions::of(settings),
            pages,
            runs: Vec::new(),
            look: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, asked: IoMethod, used: MethodKind, way: Way, outcome: Outcome) {
        self.runs.push((asked, used, way, outcome));
    }

    /// Keeps a look at the handles; of several, the one that shows most.
    pub(super) fn keep_look(&mut self, look: Vec<IoRow>) {
        let shown = |look: &[IoRow]| look.iter().filter(|row| row.operation.is_some()).count();
        if shown(&look) >= shown(&self.look) {
            self.look = look;
        }
    }

    /// Whether every page was found to be good.
    pub(super) fn is_clean(&self) -> bool {
        self.ran().all(|row| row.findings == 0)
    }

    fn ran(&self) -> impl Iterator<Item = &Row> {
        self.runs.iter().filter_map(|(_, _, _, outcome)| match outcome {
            Outcome::Ran(row) => Some(row),
            Outcome::NoDirect(_) => None,
        })
    }

    pub(super) fn text(&self) -> String {
        let ReadOptions { depth, combine_blocks, .. } = self.options;
        let mut text = format!(
            "{} files, {}; up to {depth} reads of {} in flight; pages of the window: {}\n\n",
            self.files,
            human_bytes(self.bytes),
            human_bytes(u64::from(combine_blocks) * 8192),
            self.pages.name(),
        );
        text.push_str(&self.table());
        text.push_str(&self.legend());
        text.push_str(&self.handles());
        text
    }

    fn table(&self) -> String {
        let fastest = self.ran().map(Row::rate).fold(0.0, f64::max);
        let mut table = Table::new(&[
            "io_method",
            "from",
            ">time",
            ">rate",
            "",
            ">reads",
            ">average",
            ">in flight",
            ">waits",
            ">CPU",
            ">cached",
        ]);
        for (asked, used, way, outcome) in &self.runs {
            let method = if asked.name() == used.name() {
                asked.name().to_owned()
            } else {
                format!("{asked} ({used})")
            };
            let mut cells = vec![method, way.name().to_owned()];
            match outcome {
                Outcome::Ran(row) => cells.extend(numbers(row, fastest)),
                Outcome::NoDirect(file_system) => {
                    cells.push(String::new());
                    cells.push(format!("not on {file_system}"));
                }
            }
            table.row(cells);
        }
        table.render()
    }

    fn legend(&self) -> String {
        let findings: u64 = self.ran().map(|row| row.findings).sum();
        let pages: u64 = self.ran().map(|row| row.bytes / 8192).sum();
        format!(
            "\ncold: dropped from the page cache before; direct: past it; cached: how much of the \
             sample was in it\nat the start. CPU: seconds, all threads. {pages} pages checked, \
             {findings} bad.\n"
        )
    }

    fn handles(&self) -> String {
        let shown: Vec<&IoRow> = self.look.iter().filter(|row| row.operation.is_some()).collect();
        if shown.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&[
            ">pid",
            ">io_id",
            ">io_generation",
            "state",
            "operation",
            ">off",
            ">length",
            "f_sync",
            "f_buffered",
            "target_desc",
        ]);
        let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
        let flag = |flag: bool| if flag { "t" } else { "f" }.to_owned();
        for row in shown.iter().take(HANDLES_SHOWN) {
            table.row(vec![
                row.pid.to_string(),
                row.io_id.to_string(),
                row.io_generation.to_string(),
                row.state.to_owned(),
                row.operation.unwrap_or_default().to_owned(),
                number(row.off),
                number(row.length.map(u64::from)),
                flag(row.f_sync),
                flag(row.f_buffered),
                self.short(row.target_desc.as_deref().unwrap_or_default()),
            ]);
        }
        let mut text = format!(
            "\n{} handles in the middle of a run by {}, as pg_aios shows them:\n\n{}",
            shown.len(),
            shown.iter().find_map(|row| row.method).unwrap_or("a method"),
            table.render()
        );
        if let Some(more) = shown.len().checked_sub(HANDLES_SHOWN).filter(|&more| more > 0) {
            let _ = writeln!(text, "… and {more} more");
        }
        text
    }

    /// A target without the directory that all of them are in.
    fn short(&self, target: &str) -> String {
        target.replace(&format!("{}/", self.directory), "")
    }

    pub(super) fn json(&self) -> impl Serialize + use<> {
        let run = |(asked, used, way, outcome): &(IoMethod, MethodKind, Way, Outcome)| JsonRun {
            io_method: asked.name(),
            io_method_used: used.name(),
            from: way.name(),
            unavailable: match outcome {
                Outcome::Ran(_) => None,
                Outcome::NoDirect(file_system) => Some(format!("no direct I/O on {file_system}")),
            },
            numbers: match outcome {
                Outcome::Ran(row) => Some(JsonNumbers::new(row)),
                Outcome::NoDirect(_) => None,
            },
        };
        Json {
            schema: 1,
            command: "demo",
            directory: self.directory.clone(),
            files: self.files,
            bytes: self.bytes,
            effective_io_concurrency: self.options.depth,
            io_combine_limit_blocks: self.options.combine_blocks,
            window_pages: self.pages.name(),
            runs: self.runs.iter().map(run).collect(),
        }
    }
}

fn numbers(row: &Row, fastest: f64) -> Vec<String> {
    let average = row.io.bytes.checked_div(row.io.reads).unwrap_or_default();
    vec![
        format!("{:.2} s", row.seconds),
        rate(row.rate()),
        bar(row.rate() / fastest.max(1.0), BAR_WIDTH),
        row.io.reads.to_string(),
        human_bytes(average),
        format!("{:.1}", row.io.in_flight),
        row.io.waits.to_string(),
        format!("{:.2}", row.cpu_seconds),
        format!("{:.0} %", row.cached_before * 100.0),
    ]
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
    directory: String,
    files: usize,
    bytes: u64,
    effective_io_concurrency: u32,
    io_combine_limit_blocks: u32,
    window_pages: &'static str,
    runs: Vec<JsonRun>,
}

#[derive(Serialize)]
struct JsonRun {
    io_method: &'static str,
    io_method_used: &'static str,
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
    #[serde(flatten)]
    numbers: Option<JsonNumbers>,
}

#[derive(Serialize)]
struct JsonNumbers {
    seconds: f64,
    bytes: u64,
    bytes_per_second: f64,
    cpu_seconds: f64,
    cached_before: f64,
    findings: u64,
    io: JsonIo,
}

impl JsonNumbers {
    fn new(row: &Row) -> JsonNumbers {
        JsonNumbers {
            seconds: row.seconds,
            bytes: row.bytes,
            bytes_per_second: row.rate(),
            cpu_seconds: row.cpu_seconds,
            cached_before: row.cached_before,
            findings: row.findings,
            io: JsonIo::new(&row.io),
        }
    }
}
