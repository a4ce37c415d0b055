//! The table of checkpoints, for people and for programs: a row for each, with a bar for the rate.
//! Bars compare checkpoints of the same pages only: those of neighbours are many times as fast.

use serde::Serialize;
use trunkline_engine::checkpoint::CheckpointReport;
use trunkline_format::BlockNo;

use super::config::{BAR_WIDTH, Config, JsonConfig, no_direct, not_on, seconds};
use crate::output::{Table, bar, human_bytes, rate};

/// Which pages were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The first half, in a row.
    Sequential,
    /// Every second one, in no order.
    Random,
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            What::Sequential => "sequential",
            What::Random => "random",
        }
    }

    /// Which of so many blocks: half of them.
    pub(super) fn pages(self, blocks: BlockNo) -> Vec<BlockNo> {
        let half = blocks / 2;
        match self {
            What::Sequential => (0..half).collect(),
            What::Random => {
                // A step that has no divisor in common with the number of places comes by each of
                // them once, far from the one before.
                let step = coprime(half, (f64::from(half) * 0.618) as u32);
                let place = |at: u32| (u64::from(at) * u64::from(step) % u64::from(half)) as u32;
                (0..half).map(|at| place(at) * 2).collect()
            }
        }
    }
}

/// The first number from `from` on that has no divisor in common with `number`.
fn coprime(number: u32, from: u32) -> u32 {
    let divisor = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (from.max(1)..).find(|&step| divisor(number, step) == 1).unwrap_or(1)
}

/// One checkpoint.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) what: What,
    pub(super) cpu_seconds: f64,
    pub(super) report: CheckpointReport,
}

impl Row {
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

/// What became of one.
#[derive(Debug)]
pub(super) enum Outcome {
    Ran(Box<Row>),
    /// The file system has no direct I/O; its name.
    NoDirect(String),
}

/// All of them.
#[derive(Debug)]
pub(super) struct Writes {
    blocks: BlockNo,
    rows: Vec<(Config, Outcome)>,
    wrong: Vec<String>,
}

impl Writes {
    /// Of a copy of so many blocks.
    pub(super) fn new(blocks: BlockNo) -> Writes {
        Writes { blocks, rows: Vec::new(), wrong: Vec::new() }
    }

    pub(super) fn add(&mut self, config: Config, outcome: Outcome) {
        self.rows.push((config, outcome));
    }

    /// How many there are.
    pub(super) fn runs(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Something was not as it must be.
    pub(super) fn note_wrong(&mut self, text: String) {
        self.wrong.push(text);
    }

    pub(super) fn wrong(&self) -> &[String] {
        &self.wrong
    }

    fn ran(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter_map(|(_, outcome)| match outcome {
            Outcome::Ran(row) => Some(&**row),
            Outcome::NoDirect(_) => None,
        })
    }

    pub(super) fn text(&self) -> String {
        let size = human_bytes(u64::from(self.blocks / 2) * 8192);
        format!(
            "\nCheckpoints of {size} of changed pages, in a copy of {} blocks of the table:\n\n{}\n\
             size: blocks of a write. sync: how much of the time the files took to be synced at the \
             end.\nEvery page was read again after each checkpoint: {} of {} had each page as it was \
             written.\n",
            self.blocks,
            self.table(),
            self.ran().count().saturating_sub(self.wrong.len()),
            self.ran().count(),
        )
    }

    fn table(&self) -> String {
        let fastest = |what: What| {
            self.ran().filter(|row| row.what == what).map(Row::rate).fold(0.0, f64::max)
        };
        let mut table = Table::new(&[
            "io_method",
            "way",
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
                Outcome::Ran(row) => {
                    let CheckpointReport { writes, total_time, sync_time, .. } = row.report;
                    cells.extend([
                        row.what.name().to_owned(),
                        seconds(total_time.as_secs_f64()),
                        rate(row.rate()),
                        bar(row.rate() / fastest(row.what).max(1.0), BAR_WIDTH),
                        seconds(row.cpu_seconds),
                        writes.writes.to_string(),
                        format!("{:.1}", row.write_size()),
                        format!("{:.1}", row.in_flight()),
                        writes.waits.to_string(),
                        seconds(sync_time.as_secs_f64()),
                    ]);
                }
                Outcome::NoDirect(file_system) => cells.push(not_on(file_system)),
            }
            table.row(cells);
        }
        table.render()
    }

    pub(super) fn json(&self) -> JsonWrites {
        JsonWrites {
            blocks: self.blocks,
            right: self.wrong.is_empty(),
            wrong: self.wrong.clone(),
            checkpoints: self.rows.iter().map(JsonRow::new).collect(),
        }
    }
}

/// For programs.
#[derive(Serialize)]
pub(super) struct JsonWrites {
    blocks: u32,
    right: bool,
    wrong: Vec<String>,
    checkpoints: Vec<JsonRow>,
}

#[derive(Serialize)]
struct JsonRow {
    #[serde(flatten)]
    config: JsonConfig,
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
    fn new((config, outcome): &(Config, Outcome)) -> JsonRow {
        let (unavailable, numbers) = match outcome {
            Outcome::Ran(row) => (None, Some(JsonNumbers::new(row))),
            Outcome::NoDirect(file_system) => (Some(no_direct(file_system)), None),
        };
        JsonRow { config: JsonConfig::new(*config), unavailable, numbers }
    }
}

impl JsonNumbers {
    fn new(row: &Row) -> JsonNumbers {
        let report = &row.report;
        JsonNumbers {
            pages: row.what.name(),
            seconds: report.total_time.as_secs_f64(),
            write_seconds: report.write_time.as_secs_f64(),
            sync_seconds: report.sync_time.as_secs_f64(),
            cpu_seconds: row.cpu_seconds,
            bytes: report.writes.bytes(),
            bytes_per_second: row.rate(),
            writes: report.writes.writes,
            write_size: row.write_size(),
            in_flight: row.in_flight(),
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
    fn half_of_the_pages_each_once() {
        for blocks in [2, 3, 8, 1640, 65_536] {
            for (what, step) in [(What::Sequential, 1), (What::Random, 2)] {
                let mut pages = what.pages(blocks);
                pages.sort_unstable();
                let expected: Vec<BlockNo> = (0..blocks / 2).map(|at| at * step).collect();
                assert_eq!(pages, expected, "{blocks}");
            }
        }
    }
}
