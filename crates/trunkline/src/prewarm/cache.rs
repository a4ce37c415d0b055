//! Modes `read` and `prefetch`: load files into the operating system's page cache, and show how
//! much of them was cached before and after.
//!
//! With `prefetch` the kernel is still reading when the command ends, so "Cached after" only counts
//! the pages that have arrived so far. Neither mode checks pages: nothing looks at their contents.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Aio, Residency};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::{End, JobError};
use trunkline_engine::prewarm::{self, PrewarmReport, Target, prewarm};
use trunkline_engine::settings::Settings;

use super::failures;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::io_stats::JsonIo;
use crate::monitor::JobMonitor;
use crate::options::Global;
use crate::output::{fields, human_bytes, print, print_json, throughput};

/// Mode `read`.
pub(super) fn read(
    global: &Global,
    settings: &Settings,
    dir: &DataDir,
    targets: &[Target],
    otherwise: Exit,
) -> Result<Exit, Failure> {
    let options = ReadOptions::of(settings);
    run(global, settings, dir, otherwise, "read", |aio, monitor| {
        prewarm(aio, dir, targets, options, monitor)
    })
}

/// Mode `prefetch`.
pub(super) fn prefetch(
    global: &Global,
    settings: &Settings,
    dir: &DataDir,
    targets: Vec<Target>,
    otherwise: Exit,
) -> Result<Exit, Failure> {
    run(global, settings, dir, otherwise, "prefetch", |aio, monitor| {
        prewarm::prefetch(aio, dir, targets, monitor)
    })
}

fn run(
    global: &Global,
    settings: &Settings,
    dir: &DataDir,
    otherwise: Exit,
    mode: &'static str,
    job: impl FnOnce(&Aio, Arc<JobMonitor>) -> Result<PrewarmReport, JobError>,
) -> Result<Exit, Failure> {
    let io = IoInstance::for_files(settings)?;
    let monitor = Arc::new(JobMonitor::new(Interrupt::install()?, global));
    let outcome = job(io.aio(), Arc::clone(&monitor));
    monitor.clear();
    io.report_fallbacks();
    let report = outcome?;
    failures::report(&report.failures, dir.path());
    let method = io.method_name();
    if global.json {
        print_json(&Json::new(&report, mode, method))?;
    } else {
        print(&text(&report, mode, method))?;
    }
    let exit = if report.failures.total == 0 { otherwise } else { Exit::Findings };
    Ok(monitor.exit(report.end, exit))
}

fn text(report: &PrewarmReport, mode: &str, method: &str) -> String {
    let cached = |part: Residency| {
        format!(
            "{} of {} ({:.1} %)",
            human_bytes(part.cached),
            human_bytes(part.total),
            100.0 * part.fraction()
        )
    };
    let done = if mode == "read" { "Blocks read" } else { "Blocks requested" };
    let lines = [
        ("Files", report.files.to_string()),
        (done, report.blocks.to_string()),
        ("Cached before", cached(report.before)),
        ("Cached after", cached(report.after)),
    ];
    let width = if mode == "read" { 16 } else { 18 };
    let mut text = fields(width, &lines);
    text.push_str(&throughput(report.bytes(), report.elapsed.as_secs_f64()));
    if mode == "read" {
        let _ = write!(
            text,
            ", {method}; {} reads, {:.1} in flight, {} waits for {:.2} s",
            report.io.reads,
            report.io.in_flight,
            report.io.waits,
            report.io.wait_time.as_secs_f64(),
        );
    } else {
        text.push_str("; the kernel continues reading in the background");
    }
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
    mode: &'static str,
    complete: bool,
    files: u64,
    blocks: u64,
    failures: u64,
    bytes_total: u64,
    bytes_cached_before: u64,
    bytes_cached_after: u64,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    io_method: &'static str,
    io: JsonIo,
}

impl Json {
    fn new(report: &PrewarmReport, mode: &'static str, method: &'static str) -> Json {
        Json {
            schema: 2,
            command: "prewarm",
            mode,
            complete: report.end == End::Complete,
            files: report.files,
            blocks: report.blocks,
            failures: report.failures.total,
            bytes_total: report.before.total,
            bytes_cached_before: report.before.cached,
            bytes_cached_after: report.after.cached,
            bytes: report.bytes(),
            seconds: report.elapsed.as_secs_f64(),
            bytes_per_second: report.bytes_per_second(),
            io_method: method,
            io: JsonIo::new(&report.io),
        }
    }
}
