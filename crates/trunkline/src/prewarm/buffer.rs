//! Mode `buffer`: loads blocks into a buffer pool, and reports how many of them fit and how long it
//! took.
//!
//! The counters have the same names as in `EXPLAIN (ANALYZE, IO)` and `pg_stat_io`, so that they
//! can be compared with a server's. The pool goes away when the command ends, so this mode is
//! useful for measuring and for checking every page, but it doesn't make a server start faster.

use std::fmt::{Display, Write as _};

use serde::Serialize;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::End;
use trunkline_engine::pool::RelationResidency;
use trunkline_engine::prewarm::{BufferOptions, BufferReport, Target, into_pool};

use super::failures::{report_failures, report_unchecked};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::io_stats::{self, StatIo};
use crate::monitor::run_job;
use crate::options::Context;
use crate::output::{cache_mode, fields, human_bytes, object, print_report, throughput};

/// Loads the blocks and prints the report. If nothing goes wrong, the exit code is `otherwise`.
pub(super) fn run(
    context: &Context<'_>,
    dir: &DataDir,
    targets: Vec<Target>,
    otherwise: Exit,
) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    let buffers = settings.shared_buffers();
    let (io, engine) = IoInstance::with_engine(settings, buffers)?;
    let cluster = engine.cluster_of(dir.clone());
    let interrupt = Interrupt::install()?;
    let options = BufferOptions::of(settings);
    let report = run_job(global, &interrupt, &io, |observer| {
        into_pool(engine.pool(), cluster.storage(), Some(dir), targets, options, observer)
    })?;
    report_unchecked(&report.unchecked, dir);
    let exit = report_failures(&report.failures, dir, otherwise);
    io_stats::report_warnings(&report.warnings, report.warnings_lost);
    let output = BufferOutput {
        report: &report,
        stat_io: io_stats::stat_io(&report.counts),
        method: io.method_name(),
        direct: settings.io_direct_data(),
        buffers,
    };
    print_report(global, &output.json(), || output.text())?;
    Ok(interrupt.exit_after(report.end, exit))
}

/// A report, and the I/O and the pool that were used.
struct BufferOutput<'r> {
    report: &'r BufferReport,
    stat_io: Vec<StatIo>,
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
        let lines: [(&str, &dyn Display); _] = [
            ("Relation forks", &report.relations),
            ("Blocks prewarmed", &report.blocks),
            ("Shared buffers", &format!("{} ({size})", self.buffers)),
            ("In the pool", &part(|found| found.pool)),
            ("In the cache", &part(|found| found.cache)),
            ("In both", &part(|found| found.both)),
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
        if !self.stat_io.is_empty() {
            let _ = write!(text, "\n{}", io_stats::stat_io_table(&self.stat_io));
        }
        text
    }

    fn json(&self) -> impl Serialize {
        let report = self.report;
        object! {
            schema: 2,
            command: "prewarm",
            mode: "buffer",
            complete: report.end == End::Complete,
            relation_forks: report.relations,
            blocks: report.blocks,
            failures: report.failures.total,
            pages_without_redo_rule: report.unchecked.pages,
            warnings: report.warnings.len() as u64 + report.warnings_lost,
            shared_buffers: self.buffers,
            before: io_stats::residency_json(report.before),
            after: report.after.map(io_stats::residency_json),
            bytes: report.bytes(),
            seconds: report.elapsed.as_secs_f64(),
            bytes_per_second: report.bytes_per_second(),
            io_method: self.method,
            io_direct: self.direct,
            streams: io_stats::streams_json(&report.streams),
            stat_io: &self.stat_io,
            io: io_stats::io_json(&report.io),
        }
    }
}
