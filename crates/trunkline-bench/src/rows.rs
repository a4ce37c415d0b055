//! **Benchmark rows**: reads through handles, reads through the pool, and writes.
//!
//! A row consists of comparisons, and each comparison becomes one line of the row's report. The
//! rows that only read are declared as data in `reads.rs`; every other row has its own file.

mod bgwriter;
mod checkpoint;
mod checkpoint_reads;
mod checkpoint_spread;
mod checkpoint_table;
mod comparison;
mod extend;
mod load;
mod pool_memory;
mod pool_page;
mod pool_reread;
mod pool_scans;
mod readers;
mod reads;
mod verify;

pub(crate) use pool_memory::one_scan;

use crate::Result;
use crate::bare::{Files, Look};
use crate::data::{Data, SEGMENT};
use crate::pooled::Pooled;
use crate::report::Report;
use crate::work::Work;
use std::path::Path;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::BUFFERS_MIN;
use trunkline_engine::settings::Settings;
use trunkline_format::BLOCK_SIZE;

/// PostgreSQL's default `io_combine_limit` in bytes.
const COMBINED: u32 = 128 * 1024;
/// PostgreSQL's default `effective_io_concurrency`.
const CONCURRENCY: usize = 16;
const METHODS: [MethodKind; 3] = [MethodKind::IoUring, MethodKind::Worker, MethodKind::Sync];

/// Command-line options that apply to all rows.
pub(crate) struct RunOptions<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) lag_dir: Option<&'a Path>,
    /// Parent of the control groups that we create.
    pub(crate) group: Option<&'a Path>,
    pub(crate) bytes: u64,
    /// Bytes dirtied before each checkpoint of the `checkpoint` rows.
    pub(crate) dirty: u64,
    pub(crate) pairs: usize,
    /// Run only lines whose `setting, variant` contains this text.
    pub(crate) only: &'a str,
    /// PostgreSQL settings for the rows that write.
    pub(crate) settings: &'a Settings,
    /// Keep the table of the rows that write after the run?
    pub(crate) keep: bool,
    /// Do baselines write from a few buffers that stay in the CPU cache?
    pub(crate) hot_reference: bool,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Row {
    /// Cold sequential reads of 128 KiB.
    Sequential,
    /// Cold random reads of 8 KiB at depth 1, 16 and 64.
    Random,
    /// Random reads on a slow device that serves many reads concurrently.
    Lag,
    /// Cached reads of 8 KiB through workers, against the price of a hop.
    RoundTrip,
    /// Verifying checksums, cold and cached.
    Verify,
    /// A cold table in the file's order, through the pool.
    PoolSequential,
    /// Cold random blocks at depth 1, 16 and 64, through the pool.
    PoolRandom,
    /// Random blocks of a slow device that serves many reads concurrently, through the pool.
    PoolLag,
    /// A table in the page cache through a pool of a sixteenth of it, against our own `sync`.
    PoolCached,
    /// Cached blocks through the pool and workers, against the price of a hop.
    PoolRoundTrip,
    /// Blocks that are requested again while their read is in flight.
    PoolReread,
    /// Two sessions that scan one table concurrently.
    PoolScans,
    /// Nanoseconds per page for a hit, a miss and an eviction.
    PoolPage,
    /// A table larger than the memory that the process may have.
    PoolMemory,
    /// Checkpoints of many dirty pages, and their cost for concurrent readers.
    Checkpoint,
    /// The cost of timed checkpoints for concurrent readers; a pair takes about two `checkpoint_timeout`.
    CheckpointSpread,
    /// Sessions that must evict dirty pages, with and without a background writer.
    Bgwriter,
    /// The same, but each session performs only a hundred operations a second.
    BgwriterPaced,
    /// Relation extension.
    Extend,
    /// All of them.
    All,
}

impl Row {
    /// All rows in report order, without `All`.
    pub(crate) const EACH: [Row; 19] = [
        Row::Sequential,
        Row::Random,
        Row::Lag,
        Row::RoundTrip,
        Row::Verify,
        Row::PoolSequential,
        Row::PoolRandom,
        Row::PoolLag,
        Row::PoolCached,
        Row::PoolRoundTrip,
        Row::PoolReread,
        Row::PoolScans,
        Row::PoolPage,
        Row::PoolMemory,
        Row::Checkpoint,
        Row::CheckpointSpread,
        Row::Bgwriter,
        Row::BgwriterPaced,
        Row::Extend,
    ];

    /// The row's name on the command line.
    pub(crate) fn name(&self) -> String {
        let value = clap::ValueEnum::to_possible_value(self);
        value.map_or_else(String::new, |value| value.get_name().into())
    }

    /// Does the row need a directory on a slow device?
    pub(crate) fn needs_lag(self) -> bool {
        matches!(self, Row::Lag | Row::PoolLag)
    }

    /// The PostgreSQL settings that affect this row. They never include the I/O method or the pool
    /// size, because each row chooses those itself.
    pub(crate) fn settings(self) -> &'static [&'static str] {
        match self {
            Row::Checkpoint => &["checkpoint_flush_after", "io_max_combine_limit"],
            Row::CheckpointSpread => &[
                "checkpoint_timeout",
                "checkpoint_completion_target",
                "checkpoint_flush_after",
                "io_max_combine_limit",
            ],
            Row::Bgwriter | Row::BgwriterPaced => &[
                "bgwriter_delay",
                "bgwriter_lru_maxpages",
                "bgwriter_lru_multiplier",
                "bgwriter_flush_after",
                "io_max_combine_limit",
            ],
            Row::Extend => &["file_extend_method", "backend_flush_after"],
            _ => &[],
        }
    }

    /// Runs the row and returns its report.
    pub(crate) fn run(self, bench: &RunOptions<'_>) -> Result<Report> {
        match self {
            Row::Sequential => reads::SEQUENTIAL.run(bench),
            Row::Random => reads::RANDOM.run(bench),
            Row::Lag => reads::LAG.run(bench),
            Row::RoundTrip => reads::ROUND_TRIP.run(bench),
            Row::Verify => verify::run(bench),
            Row::PoolSequential => reads::POOL_SEQUENTIAL.run(bench),
            Row::PoolRandom => reads::POOL_RANDOM.run(bench),
            Row::PoolLag => reads::POOL_LAG.run(bench),
            Row::PoolCached => reads::POOL_CACHED.run(bench),
            Row::PoolRoundTrip => reads::POOL_ROUND_TRIP.run(bench),
            Row::PoolReread => pool_reread::run(bench),
            Row::PoolScans => pool_scans::run(bench),
            Row::PoolPage => pool_page::run(bench),
            Row::PoolMemory => pool_memory::run(bench),
            Row::Checkpoint => checkpoint::run(bench),
            Row::CheckpointSpread => checkpoint_spread::run(bench),
            Row::Bgwriter => bgwriter::run(bench),
            Row::BgwriterPaced => bgwriter::run_paced(bench),
            Row::Extend => extend::run(bench),
            Row::All => Err("all rows are not a row".into()),
        }
    }
}

impl RunOptions<'_> {
    /// Did the user select this line with `--only`?
    fn wants(&self, setting: &str, contender: &str) -> bool {
        format!("{setting}, {contender}").contains(self.only)
    }

    fn data(&self) -> Result<Data> {
        Data::prepare(self.dir, self.bytes)
    }
}

/// Buffered or direct, and how often writeback is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flush {
    direct: bool,
    /// Blocks between two writeback requests; 0 disables writeback.
    after: u32,
    /// Does `after` differ from the user's setting? If so, the line's name shows it.
    varied: bool,
}

impl Flush {
    /// The three variants: buffered with the user's setting, buffered without writeback, and
    /// direct. Direct I/O bypasses the page cache, so it leaves nothing to write back.
    fn each(after: u32) -> Vec<Self> {
        let as_set = Self { direct: false, after, varied: false };
        let never = Self { after: 0, varied: true, ..as_set };
        let direct = Self { direct: true, ..as_set };
        if after == 0 { vec![as_set, direct] } else { vec![as_set, never, direct] }
    }

    /// Names the variant, followed by `rest`, as in the report's setting column.
    fn setting(self, rest: &str) -> String {
        let mut words = vec![way(self.direct)];
        words.extend(self.varied.then_some("flush_after 0"));
        words.extend((!rest.is_empty()).then_some(rest));
        words.join(", ")
    }
}

/// `direct` or `buffered`, as the reports print it.
fn way(direct: bool) -> &'static str {
    if direct { "direct" } else { "buffered" }
}

fn files(data: &Data, direct: bool) -> Result<Files> {
    Ok(Files::open(&data.paths, SEGMENT, direct)?)
}

/// Callback for a baseline that doesn't look at its bytes.
const BLIND: &Look<'_> = &|_, _| {};

/// What the report calls a comparison: setting, contender and baseline.
struct Names {
    setting: String,
    contender: String,
    reference: String,
}

/// Prepares half of a cold pair: empties the pool and evicts the data from the page cache.
fn pool_half(data: &Data, pooled: &Pooled) -> Result<()> {
    pooled.empty()?;
    data.evict()
}

/// A random work list, different for each pair, of at most as many reads as there are blocks.
fn random_list(data: &Data, round: u64, count: usize) -> Work {
    let block = BLOCK_SIZE as u32;
    Work::random(round + 1, count.min(data.blocks() as usize), block, data.bytes)
}

/// Pool size for `1/part` of `bytes`, but not below a small minimum.
fn buffers(bytes: u64, part: u64) -> u32 {
    (bytes / part / BLOCK_SIZE as u64).max(u64::from(BUFFERS_MIN) * 8) as u32
}

/// The checksum setting, as the reports print it.
fn sums(checksums: bool) -> &'static str {
    if checksums { "checksums" } else { "no checksums" }
}

#[cfg(test)]
impl<'a> RunOptions<'a> {
    /// Small sizes for tests, with the data in `dir`.
    fn small(dir: &'a Path, settings: &'a Settings) -> Self {
        let (bytes, dirty) = (4 << 20, 4 << 20);
        let (lag_dir, group, only, keep) = (Some(dir), None, "", false);
        RunOptions {
            dir,
            lag_dir,
            group,
            bytes,
            dirty,
            pairs: 2,
            only,
            settings,
            keep,
            hot_reference: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_engine::settings::specs;

    #[test]
    fn every_row_runs_on_a_small_file() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let settings = &Settings::default();
        let bench = RunOptions::small(dir.path(), settings);
        // `pool-memory` would start this test binary instead of the benchmark. The other two take
        // minutes, and have their own tests.
        let others = [Row::PoolMemory, Row::CheckpointSpread, Row::BgwriterPaced];
        for row in Row::EACH.into_iter().filter(|row| !others.contains(row)) {
            let report = row.run(&bench).expect("runs");
            assert!(report.lines.len() + report.costs.len() > 0, "{row:?} has lines");
            let json = report.json();
            for line in json["lines"].as_array().expect("lines") {
                let ratio = line["rate_ratio"]["median"].as_f64();
                assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{row:?}: {line}");
            }
        }
    }

    #[test]
    fn settings_of_rows_are_settings() {
        for row in Row::EACH {
            for name in row.settings() {
                assert!(specs().iter().any(|spec| spec.name == *name), "{row:?}: {name}");
            }
        }
    }

    #[test]
    fn nothing_is_written_back_past_the_page_cache() {
        let settings = |after| Flush::each(after).into_iter().map(|flush| flush.setting("x"));
        assert!(settings(32).eq(["buffered, x", "buffered, flush_after 0, x", "direct, x"]));
        assert!(settings(0).eq(["buffered, x", "direct, x"]));
    }
}
