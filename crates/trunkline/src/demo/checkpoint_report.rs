//! The checkpoint report, as text and as JSON. It has one row per checkpoint, with a bar that shows
//! the rate.
//!
//! A bar compares a checkpoint only with other checkpoints that write the same set of pages.
//! Comparing different sets would be misleading, because adjacent pages can be written many times
//! faster than scattered ones.

use serde::Serialize;
use trunkline_engine::checkpoint::CheckpointReport;
use trunkline_format::BlockNo;

use super::io_config::{BAR_WIDTH, IoConfig, NotRun, seconds};
use crate::output::{Table, bar, human_bytes, object, rate};

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
                // The step and the number of positions are coprime, so we visit each position
                // exactly once. Consecutive positions are far apart.
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

/// All checkpoints.
#[derive(Debug)]
pub(super) struct CheckpointReports {
    /// Size of the copy.
    pub(super) blocks: BlockNo,
    pub(super) rows: Vec<(IoConfig, Result<Box<CheckpointRun>, NotRun>)>,
    /// Pages that were lost or damaged.
    pub(super) errors: Vec<String>,
}

impl CheckpointReports {
    fn runs(&self) -> impl Iterator<Item = &CheckpointRun> {
        self.rows.iter().filter_map(|(_, outcome)| outcome.as_deref().ok())
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
                Ok(run) => {
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
                Err(not_run) => cells.push(not_run.cell()),
            }
            table.row(cells);
        }
        table.render()
    }

    pub(super) fn json(&self) -> impl Serialize {
        let row = |(config, outcome): &(IoConfig, Result<Box<CheckpointRun>, NotRun>)| {
            object! {
                #[serde(flatten)]
                config: config.json(),
                #[serde(flatten)]
                unavailable: outcome.as_ref().err().map(NotRun::json),
                #[serde(flatten)]
                numbers: outcome.as_ref().ok().map(|run| run.json()),
            }
        };
        object! {
            blocks: self.blocks,
            right: self.errors.is_empty(),
            wrong: &self.errors,
            checkpoints: self.rows.iter().map(row).collect::<Vec<_>>(),
        }
    }
}

impl CheckpointRun {
    fn json(&self) -> impl Serialize + use<> {
        let CheckpointReport { writes, .. } = &self.report;
        object! {
            pages: self.changed.name(),
            seconds: self.report.total_time.as_secs_f64(),
            write_seconds: self.report.write_time.as_secs_f64(),
            sync_seconds: self.report.sync_time.as_secs_f64(),
            cpu_seconds: self.cpu_seconds,
            bytes: writes.bytes(),
            bytes_per_second: self.rate(),
            writes: writes.writes,
            write_size: self.write_size(),
            in_flight: self.in_flight(),
            in_flight_max: writes.in_flight_max,
            waits: writes.waits,
            files_synced: self.report.files,
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
