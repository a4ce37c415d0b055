//! Into the operating system's page cache: how much of the files was there before and after.
//!
//! Reading and advice have one report. After advice the system goes on reading, so that what was
//! cached "after" is what had arrived by then.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Aio, Residency};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::{End, JobError};
use trunkline_engine::prewarm::{self, PrewarmReport, Target, prewarm};
use trunkline_engine::settings::Settings;

use super::report_failures;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::instance;
use crate::output::{human_bytes, print, print_json, rate};
use crate::verify::JsonIo;
use crate::watch::{self, Watch};

/// Mode `read`.
pub(super) fn read(
    global: &Global,
    settings: &Settings,
    dir: &DataDir,
    targets: &[Target],
    otherwise: Exit,
) -> Result<Exit, Failure> {
    let options = ReadOptions::of(settings);
    run(global, settings, dir, otherwise, "read", |aio, watch| {
        prewarm(aio, dir, targets, options, watch)
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
    run(global, settings, dir, otherwise, "prefetch", |aio, watch| {
        prewarm::prefetch(aio, dir, targets, watch)
    })
}

fn run(
    global: &Global,
    settings: &Settings,
    dir: &DataDir,
    otherwise: Exit,
    mode: &'static str,
    job: impl FnOnce(&Aio, Arc<Watch>) -> Result<PrewarmReport, JobError>,
) -> Result<Exit, Failure> {
    let aio = instance::start(settings)?;
    let said = aio.method_status().fallbacks.len();
    let watch = Arc::new(Watch::new(watch::interrupt()?, global));
    let outcome = job(&aio, Arc::clone(&watch));
    watch.clear();
    instance::report_fallbacks(&aio.method_status().fallbacks[said..]);
    let report = outcome?;
    report_failures(&report.failures, dir.path());
    let method = aio.method_status().used.name();
    if global.json {
        print_json(&Json::new(&report, mode, method))?;
    } else {
        print(&text(&report, mode, method))?;
    }
    let exit = if report.failures.total == 0 { otherwise } else { Exit::Findings };
    Ok(watch.ended(report.end, exit))
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
    let done = if mode == "read" { "Blocks read" } else { "Blocks advised" };
    let mut text = String::new();
    let lines = [
        ("Files", report.files.to_string()),
        (done, report.blocks.to_string()),
        ("Cached before", cached(report.before)),
        ("Cached after", cached(report.after)),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "{:16}{value}", format!("{name}:"));
    }
    let _ = write!(
        text,
        "{} in {:.2} s, {}",
        human_bytes(report.bytes()),
        report.elapsed.as_secs_f64(),
        rate(report.bytes_per_second()),
    );
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
        text.push_str("; the system goes on reading");
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
