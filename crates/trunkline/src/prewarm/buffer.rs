//! Into a buffer pool: what fits, how fast, and where the blocks are then.
//!
//! Counts stand under the names that PostgreSQL gives them, so that they can be laid beside
//! `EXPLAIN (ANALYZE, IO)` and `pg_stat_io` of a server that has done the same.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::End;
use trunkline_engine::pool::RelationResidency;
use trunkline_engine::prewarm::{BufferOptions, BufferReport, Target, into_pool};
use trunkline_engine::settings::Settings;

use super::report_failures;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::instance;
use crate::output::{human_bytes, print, print_json, rate};
use crate::pooled::{self, JsonResidency, JsonStreams, StatIo};
use crate::verify::JsonIo;
use crate::watch::{self, Watch};

/// Mode `buffer`.
pub(super) fn run(
    global: &Global,
    settings: &Settings,
    dir: &DataDir,
    targets: Vec<Target>,
    otherwise: Exit,
) -> Result<Exit, Failure> {
    let buffers = settings.shared_buffers();
    let engine = pooled::open(settings, buffers)?;
    let cluster = engine.cluster_of(dir.clone());
    let aio = engine.aio();
    let said = aio.method_status().fallbacks.len();
    let watch = Arc::new(Watch::new(watch::interrupt()?, global));
    let observer = Arc::clone(&watch) as _;
    let options = BufferOptions::of(settings);
    let outcome =
        into_pool(engine.pool(), cluster.storage(), Some(dir), targets, options, observer);
    watch.clear();
    instance::report_fallbacks(&aio.method_status().fallbacks[said..]);
    let report = outcome?;
    report_failures(&report.failures, dir.path());
    pooled::report_warnings(&report.warnings, report.warnings_lost);
    let method = aio.method_status().used.name();
    let shown = Shown { report: &report, method, direct: settings.io_direct_data(), buffers };
    if global.json {
        print_json(&shown.json())?
    } else {
        print(&shown.text())?
    }
    let exit = if report.failures.total == 0 { otherwise } else { Exit::Findings };
    Ok(watch.ended(report.end, exit))
}

struct Shown<'r> {
    report: &'r BufferReport,
    method: &'static str,
    direct: bool,
    buffers: u32,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let report = self.report;
        let part = |of: fn(&RelationResidency) -> u64| {
            let before = of(&report.before);
            let Some(after) = &report.after else { return format!("not known, before {before}") };
            let percent = 100.0 * of(after) as f64 / after.blocks.max(1) as f64;
            format!("{} blocks of {} ({percent:.1} %), before {before}", of(after), after.blocks)
        };
        let size = human_bytes(u64::from(self.buffers) * 8192);
        let mut text = String::new();
        let lines = [
            ("Relation forks", report.relations.to_string()),
            ("Blocks prewarmed", report.blocks.to_string()),
            ("Shared buffers", format!("{} ({size})", self.buffers)),
            ("In the pool", part(|found| found.pool)),
            ("In the cache", part(|found| found.cache)),
            ("In both", part(|found| found.both)),
        ];
        for (name, value) in lines {
            let _ = writeln!(text, "{:18}{value}", format!("{name}:"));
        }
        let _ = writeln!(
            text,
            "{} in {:.2} s, {}, {} {}",
            human_bytes(report.bytes()),
            report.elapsed.as_secs_f64(),
            rate(report.bytes_per_second()),
            self.method,
            if self.direct { "direct" } else { "buffered" },
        );
        text.push_str(&pooled::stream_lines(&report.streams));
        if !report.counts.is_empty() {
            let _ = write!(text, "\n{}", pooled::stat_io_table(&report.counts));
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
            stat_io: pooled::stat_io(&report.counts),
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
