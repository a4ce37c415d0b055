//! **Options of a run**, and the words and sizes that several rows share.

use crate::bare::{Access, Files};
use crate::data::{Data, SEGMENT};
use crate::failure::Result;
use crate::report::Names;
use clap::Args;
use std::path::PathBuf;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::BUFFERS_MIN;
use trunkline_engine::settings::Settings;
use trunkline_format::BLOCK_SIZE;

/// The block size, as the length of a read.
pub(super) const BLOCK: u32 = BLOCK_SIZE as u32;
/// PostgreSQL's default `io_combine_limit` in bytes.
pub(super) const COMBINED: u32 = 128 * 1024;
/// PostgreSQL's default `effective_io_concurrency`.
pub(super) const CONCURRENCY: usize = 16;
/// All I/O methods, in the order of the reports.
pub(super) const METHODS: [MethodKind; 3] =
    [MethodKind::IoUring, MethodKind::Worker, MethodKind::Sync];

/// Command-line options that apply to all rows.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Folder for the data, which takes about --size and stays for the next run.
    #[arg(long, default_value = "target/bench")]
    pub(crate) dir: PathBuf,

    /// Folder on a slow device, for `lag` and `pool-lag`.
    #[arg(long)]
    pub(crate) lag_dir: Option<PathBuf>,

    /// Parent control group for `pool-memory`; the default is the root of cgroup version 2.
    #[arg(long)]
    pub(crate) group: Option<PathBuf>,

    /// Size of the data: a number of bytes, or of kB, MB or GB (powers of 1024).
    #[arg(long = "size", value_name = "SIZE", default_value = "2GB", value_parser = parse_size)]
    pub(crate) bytes: u64,

    /// Amount of data that `checkpoint` and `checkpoint-spread` make dirty. The table is twice as
    /// large, and the pool has room for the dirty data.
    #[arg(long = "bytes", value_name = "BYTES", default_value = "3GB", value_parser = parse_size)]
    pub(crate) dirty: u64,

    /// Pairs of each comparison.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..1000))]
    pub(crate) pairs: u64,

    /// Measure only lines with this text in setting and variant, for example `direct, depth 16,
    /// io_uring`.
    #[arg(long, default_value = "")]
    pub(crate) only: String,

    /// A PostgreSQL setting for the rows that write. Refused if no chosen row reads it. May be
    /// repeated.
    ///
    /// checkpoint: checkpoint_flush_after, io_max_combine_limit; checkpoint-spread: also
    /// checkpoint_timeout and checkpoint_completion_target; bgwriter, bgwriter-paced: bgwriter_*
    /// and io_max_combine_limit; extend: file_extend_method and backend_flush_after.
    #[arg(short = 'c', value_name = "NAME=VALUE")]
    pub(crate) assignments: Vec<String>,

    /// The settings that the assignments result in.
    #[arg(skip)]
    pub(crate) settings: Settings,

    /// Keep the table of the rows that write for the next run that needs one of its size.
    #[arg(long)]
    pub(crate) keep: bool,

    /// Let the baselines of `checkpoint` write the same few buffers from the CPU cache again and
    /// again, instead of using as much memory as they write.
    #[arg(long)]
    pub(crate) hot_reference: bool,
}

impl RunOptions {
    /// Did the user select this line with `--only`?
    pub(super) fn wants(&self, names: &Names) -> bool {
        format!("{}, {}", names.setting, names.contender).contains(&self.only)
    }
}

#[cfg(test)]
impl RunOptions {
    /// Small sizes for tests, with the data in `dir`.
    pub(super) fn small(dir: &std::path::Path) -> Self {
        RunOptions {
            dir: dir.into(),
            lag_dir: Some(dir.into()),
            group: None,
            bytes: 4 << 20,
            dirty: 4 << 20,
            pairs: 2,
            only: String::new(),
            assignments: Vec::new(),
            settings: Settings::default(),
            keep: false,
            hot_reference: false,
        }
    }
}

fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        other => return Err(format!("unit {other}: B, kB, MB or GB")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text} is not a size"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is too large"))
}

/// Buffered or direct, and how often writeback is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flush {
    pub(super) direct: bool,
    /// Blocks between two writeback requests; 0 disables writeback.
    pub(super) after: u32,
    /// Does `after` differ from the user's setting? If so, the line's name shows it.
    pub(super) varied: bool,
}

impl Flush {
    /// The three variants are buffered with the user's setting, buffered without writeback, and
    /// direct. Since direct I/O bypasses the page cache, there is nothing to write back.
    pub(super) fn each(after: u32) -> Vec<Self> {
        let as_set = Self { direct: false, after, varied: false };
        let never = Self { after: 0, varied: true, ..as_set };
        let direct = Self { direct: true, ..as_set };
        if after == 0 { vec![as_set, direct] } else { vec![as_set, never, direct] }
    }

    /// Every variant with every I/O method.
    pub(super) fn with_methods(after: u32) -> impl Iterator<Item = (Self, MethodKind)> {
        let with = |flush| METHODS.into_iter().map(move |method| (flush, method));
        Self::each(after).into_iter().flat_map(with)
    }

    /// Names the variant, followed by `rest`, as in the report's setting column.
    pub(super) fn setting(self, rest: &str) -> String {
        let mut words = vec![way(self.direct)];
        words.extend(self.varied.then_some("flush_after 0"));
        words.extend((!rest.is_empty()).then_some(rest));
        words.join(", ")
    }
}

/// The I/O methods that can keep several reads in flight. With direct I/O, this excludes `sync`,
/// because it relies on the kernel's read-ahead.
pub(super) fn methods(direct: bool) -> impl Iterator<Item = MethodKind> {
    METHODS.into_iter().filter(move |&method| !direct || method != MethodKind::Sync)
}

/// Direct and buffered, each combined with the I/O methods that support it.
pub(super) fn each_way() -> impl Iterator<Item = (bool, MethodKind)> {
    let with_methods = |direct| methods(direct).map(move |method| (direct, method));
    [true, false].into_iter().flat_map(with_methods)
}

/// `direct` or `buffered`, as the reports print it.
pub(super) fn way(direct: bool) -> &'static str {
    if direct { "direct" } else { "buffered" }
}

/// Pool size for `1/part` of `bytes`, but not below a small minimum.
pub(super) fn buffers(bytes: u64, part: u64) -> u32 {
    (bytes / part / BLOCK_SIZE as u64).max(u64::from(BUFFERS_MIN) * 8) as u32
}

/// The data's segments for a bare loop that reads.
pub(super) fn files(data: &Data, direct: bool) -> Result<Files> {
    Ok(Files::open(&data.paths, SEGMENT, Access::Read, direct)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_back_past_the_page_cache() {
        let settings = |after| Flush::each(after).into_iter().map(|flush| flush.setting("x"));
        assert!(settings(32).eq(["buffered, x", "buffered, flush_after 0, x", "direct, x"]));
        assert!(settings(0).eq(["buffered, x", "direct, x"]));
    }
}
