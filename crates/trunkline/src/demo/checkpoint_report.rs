//! The table of checkpoints, as text and JSON: a row per checkpoint, with a bar for the rate.
//!
//! Bars compare only checkpoints that write the same set of pages, because writing adjacent pages
//! is many times faster than writing scattered ones.

use serde::Serialize;
use trunkline_engine::checkpoint::CheckpointReport;
use trunkline_format::BlockNo;

use super::io_config::{
    BAR_WIDTH, IoConfig, JsonIoConfig, no_direct_cell, no_direct_json, seconds,
};
use crate::output::{Table, bar, human_bytes, rate};

/// Which pages are changed before a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangedPages {
    /// The first half, in order.
    Sequential,
    /// Every second page, in random order.
    Random,
}

impl ChangedPages {
    pub(super) const ALL: [ChangedPages; 2] = [ChangedPages::Sequential, ChangedPages::Random];

    pub(super) fn name(self) -> &'static str {
        match self {
            ChangedPages::Sequential => "sequential",
            ChangedPages::Random => "random",
        }
    }

    /// The pages to change in a relation of `blocks`: half of them.
    pub(super) fn pages(self, blocks: BlockNo) -> Vec<BlockNo> {
        let half = blocks / 2;
        match self {
            ChangedPages::Sequential => (0..half).collect(),
            ChangedPages::Random => {
                // A step coprime to the number of positions visits each position exactly once, and
                // consecutive positions are far apart.
                let step = coprime(half, (f64::from(half) * 0.618) as u32);
                let place = |at: u32| (u64::from(at) * u64::from(step) % u64::from(half)) as u32;
                (0..half).map(|at| place(at) * 2).collect()
            }
        }
    }
}

/// The first number, starting at `from`, that is coprime to `number`.
fn coprime(number: u32, from: u32) -> u32 {
    let greatest_common_divisor = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (from.max(1)..).find(|&step| greatest_common_divisor(number, step) == 1).unwrap_or(1)
}

/// One checkpoint.
#[derive(Debug)]
pub(super) struct CheckpointRun {
    pub(super) changed: ChangedPages,
    pub(super) cpu_seconds: f64,
    pub(super) report: CheckpointReport,
}

impl CheckpointRun {
    fn rate(&self) -> f64 {
        self.report.writes.bytes() as f64 / self.report.total_time.as_secs_f64().max(1e-9)
    }

    fn write_size(&self) -> f64 {
        self.report.writes.blocks as f64 / self.report.writes.writes.max(1) as f64
    }

    fn in_flight(&self) -> f64 {
        self.report.writes.in_flight_sum as f64 / self.report.writes.writes.max(1) as f64
    }
}

/// The outcome of a checkpoint.
#[derive(Debug)]
pub(super) enum CheckpointOutcome {
    Ran(Box<CheckpointRun>),
    /// The file system doesn't support direct I/O. The value is the file system's type.
    NoDirect(String),
}

/// All checkpoints.
#[derive(Debug)]
pub(super) struct CheckpointReports {
    blocks: BlockNo,
    rows: Vec<(IoConfig, CheckpointOutcome)>,
    errors: Vec<String>,
}

impl CheckpointReports {
    /// An empty report on checkpoints of a copy with `blocks`.
    pub(super) fn new(blocks: BlockNo) -> CheckpointReports {
        CheckpointReports { blocks, rows: Vec::new(), errors: Vec::new() }
    }

    pub(super) fn add(&mut self, config: IoConfig, outcome: CheckpointOutcome) {
        self.rows.push((config, outcome));
    }

    /// Number of checkpoints so far.
    pub(super) fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Records that pages were lost or damaged.
    pub(super) fn add_error(&mut self, text: String) {
        self.errors.push(text);
    }

    pub(super) fn errors(&self) -> &[String] {
        &self.errors
    }

    fn runs(&self) -> impl Iterator<Item = &CheckpointRun> {
        self.rows.iter().filter_map(|(_, outcome)| match outcome {
            CheckpointOutcome::Ran(run) => Some(&**run),
            CheckpointOutcome::NoDirect(_) => None,
        })
    }

    pub(super) fn text(&self) -> String {
        let size = human_bytes(u64::from(self.blocks / 2) * 8192);
        let runs = self.runs().count();
        format!(
            "\nCheckpoints that write {size} of changed pages in a copy of {} blocks of the table:\
             \n\n{}\nsize: average blocks per write. sync: part of the time that was spent syncing \
             files.\nAfter each checkpoint every page was read back and compared: {} of {runs} \
             checkpoints were correct.\n",
            self.blocks,
            self.table(),
            runs.saturating_sub(self.errors.len()),
        )
    }

    fn table(&self) -> String {
        let fastest = |changed: ChangedPages| {
            let runs = self.runs().filter(|run| run.changed == changed);
            runs.map(CheckpointRun::rate).fold(0.0, f64::max)
        };
        let mut table = Table::new(&[
            "io_method",
            "mode",
            "pages",
            ">time",
            ">rate",
            "",
            ">CPU",
            ">writes",
            ">size",
            ">in flight",
            ">waits",
            ">sync",
        ]);
        let mut previous = None;
        for (config, outcome) in &self.rows {
            let mut cells = config.cells(&mut previous);
            match outcome {
                CheckpointOutcome::Ran(run) => {
                    let CheckpointReport { writes, total_time, sync_time, .. } = run.report;
                    cells.extend([
                        run.changed.name().to_owned(),
                        seconds(total_time.as_secs_f64()),
                        rate(run.rate()),
                        bar(run.rate() / fastest(run.changed).max(1.0), BAR_WIDTH),
                        seconds(run.cpu_seconds),
                        writes.writes.to_string(),
                        format!("{:.1}", run.write_size()),
                        format!("{:.1}", run.in_flight()),
                        writes.waits.to_string(),
                        seconds(sync_time.as_secs_f64()),
                    ]);
                }
                CheckpointOutcome::NoDirect(file_system) => {
                    cells.push(no_direct_cell(file_system));
                }
            }
            table.row(cells);
        }
        table.render()
    }

    pub(super) fn json(&self) -> JsonCheckpoints {
        JsonCheckpoints {
            blocks: self.blocks,
            right: self.errors.is_empty(),
            wrong: self.errors.clone(),
            checkpoints: self.rows.iter().map(JsonRow::new).collect(),
        }
    }
}

/// The report as JSON.
#[derive(Serialize)]
pub(super) struct JsonCheckpoints {
    blocks: u32,
    right: bool,
    wrong: Vec<String>,
    checkpoints: Vec<JsonRow>,
}

#[derive(Serialize)]
struct JsonRow {
    #[serde(flatten)]
    config: JsonIoConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
    #[serde(flatten)]
    numbers: Option<JsonNumbers>,
}

#[derive(Serialize)]
struct JsonNumbers {
    pages: &'static str,
    seconds: f64,
    write_seconds: f64,
    sync_seconds: f64,
    cpu_seconds: f64,
    bytes: u64,
    bytes_per_second: f64,
    writes: u64,
    write_size: f64,
    in_flight: f64,
    in_flight_max: u32,
    waits: u64,
    files_synced: u64,
}

impl JsonRow {
    fn new((config, outcome): &(IoConfig, CheckpointOutcome)) -> JsonRow {
        let (unavailable, numbers) = match outcome {
            CheckpointOutcome::Ran(run) => (None, Some(JsonNumbers::new(run))),
            CheckpointOutcome::NoDirect(file_system) => (Some(no_direct_json(file_system)), None),
        };
        JsonRow { config: config.json(), unavailable, numbers }
    }
}

impl JsonNumbers {
    fn new(run: &CheckpointRun) -> JsonNumbers {
        let report = &run.report;
        JsonNumbers {
            pages: run.changed.name(),
            seconds: report.total_time.as_secs_f64(),
            write_seconds: report.write_time.as_secs_f64(),
            sync_seconds: report.sync_time.as_secs_f64(),
            cpu_seconds: run.cpu_seconds,
            bytes: report.writes.bytes(),
            bytes_per_second: run.rate(),
            writes: report.writes.writes,
            write_size: run.write_size(),
            in_flight: run.in_flight(),
            in_flight_max: report.writes.in_flight_max,
            waits: report.writes.waits,
            files_synced: report.files,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_pages_are_changed_once_each() {
        for blocks in [2, 3, 8, 1640, 65_536] {
            for (changed, step) in [(ChangedPages::Sequential, 1), (ChangedPages::Random, 2)] {
                let mut pages = changed.pages(blocks);
                pages.sort_unstable();
                let expected: Vec<BlockNo> = (0..blocks / 2).map(|at| at * step).collect();
                assert_eq!(pages, expected, "{blocks}");
            }
        }
    }
}
