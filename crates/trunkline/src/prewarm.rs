//! `trunkline prewarm`: relation files into the operating system's page cache, and how much of them
//! was there before and after.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use trunkline_aio::Residency;
use trunkline_aio::sync::Arc;
use trunkline_engine::prewarm::{PrewarmReport, prewarm, select};
use trunkline_engine::scan::{End, ReadOptions};
use trunkline_engine::settings::Settings;

use crate::cli::Global;
use crate::exit::{Exit, Failure, message};
use crate::output::{human_bytes, print, print_json, rate};
use crate::verify::{JsonIo, relative};
use crate::watch::{self, Watch};
use crate::{instance, verify};

/// Where the pages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Into the operating system's cache, by reading.
    Read,
}

/// Runs the command.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    Mode::Read: Mode,
    names: &[PathBuf],
) -> Result<Exit, Failure> {
    if settings.io_direct_data() {
        return Err(Failure::usage("direct reads leave nothing in the cache that prewarm fills")
            .with_hint("leave io_direct empty"));
    }
    let dir = verify::open(global)?;
    let chosen = select(&dir, names).map_err(|error| {
        Failure::usage(error).with_hint("name a file such as base/5/16384, relative to -D")
    })?;
    for problem in &chosen.problems {
        message(
            "warning",
            format_args!("{}: {}", relative(&problem.path, dir.path()), problem.kind),
        );
    }
    let trouble = chosen.problems.iter().any(|problem| problem.kind.is_finding());
    let aio = instance::start(settings)?;
    let said = aio.method_status().fallbacks.len();
    let watch = Arc::new(Watch::new(watch::interrupt()?, global));
    let observer = Arc::clone(&watch) as _;
    let outcome = prewarm(&aio, &dir, chosen.files, ReadOptions::of(settings), observer);
    watch.clear();
    instance::report_fallbacks(&aio.method_status().fallbacks[said..]);
    let report = outcome?;
    for (path, text) in &report.failures {
        message("warning", format_args!("{}: {text}", relative(path, dir.path())));
    }
    let method = aio.method_status().used.name();
    if global.json {
        print_json(&Json::new(&report, method))?;
    } else {
        print(&text(&report, method))?;
    }
    let good = report.failures.is_empty() && !trouble;
    Ok(watch::ended(report.end, if good { Exit::Good } else { Exit::Findings }))
}

fn text(report: &PrewarmReport, method: &str) -> String {
    let cached = |part: Residency| {
        format!(
            "{} of {} ({:.1} %)",
            human_bytes(part.cached),
            human_bytes(part.total),
            100.0 * part.fraction()
        )
    };
    let mut text = String::new();
    let lines = [
        ("Files", report.files.to_string()),
        ("Blocks read", report.blocks.to_string()),
        ("Cached before", cached(report.before)),
        ("Cached after", cached(report.after)),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "{:15}{value}", format!("{name}:"));
    }
    let _ = writeln!(
        text,
        "{} in {:.2} s, {}, {method}; {} reads, {:.1} in flight, {} waits for {:.2} s",
        human_bytes(report.bytes()),
        report.elapsed.as_secs_f64(),
        rate(report.bytes_per_second()),
        report.io.reads,
        report.io.in_flight,
        report.io.waits,
        report.io.wait_time.as_secs_f64(),
    );
    text
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
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
    fn new(report: &PrewarmReport, method: &'static str) -> Json {
        Json {
            schema: 1,
            command: "prewarm",
            complete: report.end == End::Complete,
            files: report.files,
            blocks: report.blocks,
            failures: report.failures.len() as u64,
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
