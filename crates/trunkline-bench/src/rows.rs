//! The rows of the table of targets that need neither a pool nor SQL.
//! Each row is a file; a row makes comparisons, a comparison becomes a line of its report.

mod lag;
mod random;
mod round_trip;
mod sequential;
mod verify;

use crate::Result;
use crate::bare::{Files, Look};
use crate::data::{Data, SEGMENT};
use crate::pairs::{Pairs, Run};
use crate::report::{Line, Report, Target};
use std::path::Path;
use trunkline_aio::MethodKind;

/// Blocks of PostgreSQL's default `io_combine_limit`, in bytes.
const COMBINED: u32 = 128 * 1024;
/// PostgreSQL's default `effective_io_concurrency`.
const CONCURRENCY: usize = 16;
const METHODS: [MethodKind; 3] = [MethodKind::IoUring, MethodKind::Worker, MethodKind::Sync];

/// What every row needs.
pub(crate) struct Bench<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) lag_dir: Option<&'a Path>,
    pub(crate) bytes: u64,
    pub(crate) pairs: usize,
    /// Only lines whose setting and variant, with a comma between, contain this.
    pub(crate) only: &'a str,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Row {
    /// Cold sequential reads of 128 KiB.
    Sequential,
    /// Cold random reads of 8 KiB at depth 1, 16 and 64.
    Random,
    /// Random reads on a slow device that serves many at once.
    Lag,
    /// Cached reads of 8 KiB through workers, against the price of a hop.
    RoundTrip,
    /// Verifying checksums, cold and cached.
    Verify,
    /// All of them.
    All,
}

impl Row {
    /// The rows in order, `All` left out.
    pub(crate) const EACH: [Row; 5] =
        [Row::Sequential, Row::Random, Row::Lag, Row::RoundTrip, Row::Verify];

    /// Measures it.
    pub(crate) fn run(self, bench: &Bench<'_>) -> Result<Report> {
        match self {
            Row::Sequential => sequential::run(bench),
            Row::Random => random::run(bench),
            Row::Lag => lag::run(bench),
            Row::RoundTrip => round_trip::run(bench),
            Row::Verify => verify::run(bench),
            Row::All => Err("a row is one of the five".into()),
        }
    }
}

impl Bench<'_> {
    /// Whether the user asked for this line.
    fn wants(&self, setting: &str, contender: &str) -> bool {
        format!("{setting}, {contender}").contains(self.only)
    }

    fn data(&self) -> Result<Data> {
        Data::prepare(self.dir, self.bytes)
    }
}

/// How the files are opened.
fn way(direct: bool) -> &'static str {
    if direct { "direct" } else { "buffered" }
}

fn files(data: &Data, direct: bool) -> Result<Files> {
    Ok(Files::open(&data.paths, SEGMENT, direct)?)
}

/// For references that only read.
const BLIND: &Look<'_> = &|_, _| {};

/// Names of one comparison.
struct Names {
    setting: String,
    contender: String,
    reference: String,
}

/// Cold pairs over the data.
fn cold<W>(
    bench: &Bench<'_>,
    data: &Data,
    names: Names,
    target: Target,
    next: impl FnMut(u64) -> W,
    reference: Run<'_, W>,
    contender: Run<'_, W>,
) -> Result<Line> {
    let mut evict = || data.evict();
    let pairs = Pairs::run(bench.pairs, next, &mut evict, reference, contender)?;
    Ok(Line::new(names.setting, names.contender, names.reference, &pairs, target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_runs_on_a_small_file() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let lag_dir = Some(dir.path());
        let bench = Bench { dir: dir.path(), lag_dir, bytes: 4 << 20, pairs: 2, only: "" };
        for row in Row::EACH {
            let report = row.run(&bench).expect("runs");
            assert!(!report.lines.is_empty(), "{row:?} has lines");
            let json = report.json();
            for line in json["lines"].as_array().expect("lines") {
                let ratio = line["rate_ratio"]["median"].as_f64();
                assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{row:?}: {line}");
            }
        }
    }
}
