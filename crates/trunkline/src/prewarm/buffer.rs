//! Mode `buffer`: loads blocks into a buffer pool and shows how much fits, and how fast.
//!
//! The counters have the same names as in `EXPLAIN (ANALYZE, IO)` and `pg_stat_io`, so they can be
//! compared with a server's counters. The pool goes away when the command ends; this mode is for
//! measuring and for checking every page, not for speeding up a later server start.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::End;
use trunkline_engine::pool::RelationResidency;
use trunkline_engine::prewarm::{BufferOptions, BufferReport, Target, into_pool};
use trunkline_engine::settings::Settings;

use super::failures;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::io_stats::{self, JsonIo, JsonResidency, JsonStreams, StatIo};
use crate::monitor::JobMonitor;
use crate::options::Global;
use crate::output::{cache_mode, fields, human_bytes, print, print_json, throughput};

/// Runs the job; `otherwise` is the exit code if nothing goes wrong.
pub(super) fn run(
    global: &Global,
    settings: &Settings,
    dir: &DataDir,
    targets: Vec<Target>,
    otherwise: Exit,
) -> Result<Exit, Failure> {
    let buffers = settings.shared_buffers();
    let io = IoInstance::for_pool(settings, buffers, 0)?;
    let engine = io.engine(settings, buffers)?;
    let cluster = engine.cluster_of(dir.clone());
    let monitor = Arc::new(JobMonitor::new(Interrupt::install()?, global));
    let observer = Arc::clone(&monitor) as _;
    let options = BufferOptions::of(settings);
    let outcome =
        into_pool(engine.pool(), cluster.storage(), Some(dir), targets, options, observer);
    monitor.clear();
    io.report_fallbacks();
    let report = outcome?;
    failures::report(&report.failures, dir.path());
    io_stats::report_warnings(&report.warnings, report.warnings_lost);
    let direct = settings.io_direct_data();
    let output = BufferOutput { report: &report, method: io.method_name(), direct, buffers };
    if global.json {
        print_json(&output.json())?
    } else {
        print(&output.text())?
    }
    let exit = if report.failures.total == 0 { otherwise } else { Exit::Findings };
    Ok(monitor.exit(report.end, exit))
}

/// A report, and the I/O and the pool that were used.
struct BufferOutput<'r> {
    report: &'r BufferReport,
    method: &'static str,
    direct: bool,
    buffers: u32,
}

impl BufferOutput<'_> {
    fn text(&self) -> String {
        let report = self.report;
        let part = |of: fn(&RelationResidency) -> u64| {
            let before = of(&report.before);
            let Some(after) = &report.after else { return format!("unknown, before {before}") };
            let percent = 100.0 * of(after) as f64 / after.blocks.max(1) as f64;
            format!("{} blocks of {} ({percent:.1} %), before {before}", of(after), after.blocks)
        };
        let size = human_bytes(u64::from(self.buffers) * 8192);
        let lines = [
            ("Relation forks", report.relations.to_string()),
            ("Blocks prewarmed", report.blocks.to_string()),
            ("Shared buffers", format!("{} ({size})", self.buffers)),
            ("In the pool", part(|found| found.pool)),
            ("In the cache", part(|found| found.cache)),
            ("In both", part(|found| found.both)),
        ];
        let mut text = fields(18, &lines);
        let _ = writeln!(
            text,
            "{}, {} {}",
            throughput(report.bytes(), report.elapsed.as_secs_f64()),
            self.method,
            cache_mode(self.direct),
        );
        text.push_str(&io_stats::stream_lines(&report.streams));
        if !report.counts.is_empty() {
            let _ = write!(text, "\n{}", io_stats::stat_io_table(&report.counts));
        }
        text
    }

    fn json(&self) -> impl Serialize + use<> {
        let report = self.report;
        Json {
            schema: 2,
            command: "prewarm",
            mode: "buffer",
            complete: report.end == End::Complete,
            relation_forks: report.relations,
            blocks: report.blocks,
            failures: report.failures.total,
            warnings: report.warnings.len() as u64 + report.warnings_lost,
            shared_buffers: self.buffers,
            before: JsonResidency::new(report.before),
            after: report.after.map(JsonResidency::new),
            bytes: report.bytes(),
            seconds: report.elapsed.as_secs_f64(),
            bytes_per_second: report.bytes_per_second(),
            io_method: self.method,
            io_direct: self.direct,
            streams: JsonStreams::new(&report.streams),
            stat_io: io_stats::stat_io(&report.counts),
            io: JsonIo::new(&report.io),
        }
    }
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
    mode: &'static str,
    complete: bool,
    relation_forks: u64,
    blocks: u64,
    failures: u64,
    warnings: u64,
    shared_buffers: u32,
    before: JsonResidency,
    after: Option<JsonResidency>,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    io_method: &'static str,
    io_direct: bool,
    streams: JsonStreams,
    stat_io: Vec<StatIo>,
    io: JsonIo,
}
