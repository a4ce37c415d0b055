//! The `read` and `prefetch` modes: load files into the operating system's page cache, and show how
//! much of them was cached before and after.
//!
//! With `prefetch`, the kernel is still reading when the command ends, so "Cached after" includes
//! only the pages that have been read so far. Neither of these modes looks at the contents of
//! pages, so they can't verify checksums.

use std::fmt::{Display, Write as _};

use serde::Serialize;
use trunkline_aio::Residency;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::End;
use trunkline_engine::prewarm::{PrewarmReport, Target, prefetch, prewarm};

use super::failures::report_failures;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::io_stats;
use crate::monitor::run_job;
use crate::options::Context;
use crate::output::{fields, human_bytes, object, print_report, throughput};

/// Loads the files and prints the report. The mode is `read` if `reads` is set, and `prefetch`
/// otherwise. Returns `otherwise` if nothing goes wrong.
pub(super) fn run(
    context: &Context<'_>,
    dir: &DataDir,
    reads: bool,
    targets: Vec<Target>,
    otherwise: Exit,
) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    let io = IoInstance::for_files(settings)?;
    let interrupt = Interrupt::install()?;
    let report = run_job(global, &interrupt, &io, |observer| match reads {
        true => prewarm(io.aio(), dir, &targets, ReadOptions::of(settings), observer),
        false => prefetch(io.aio(), dir, targets, observer),
    })?;
    let exit = report_failures(&report.failures, dir, otherwise);
    let method = io.method_name();
    print_report(global, &json(&report, reads, method), || text(&report, reads, method))?;
    Ok(interrupt.exit_after(report.end, exit))
}

fn text(report: &PrewarmReport, reads: bool, method: &str) -> String {
    let cached = |part: Residency| {
        format!(
            "{} of {} ({:.1} %)",
            human_bytes(part.cached),
            human_bytes(part.total),
            100.0 * part.fraction()
        )
    };
    let (done, width) = if reads { ("Blocks read", 16) } else { ("Blocks requested", 18) };
    let lines: [(&str, &dyn Display); _] = [
        ("Files", &report.files),
        (done, &report.blocks),
        ("Cached before", &cached(report.before)),
        ("Cached after", &cached(report.after)),
    ];
    let mut text = fields(width, &lines);
    text.push_str(&throughput(report.bytes(), report.elapsed.as_secs_f64()));
    if reads {
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

fn json(report: &PrewarmReport, reads: bool, method: &str) -> impl Serialize {
    object! {
        schema: 2,
        command: "prewarm",
        mode: if reads { "read" } else { "prefetch" },
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
        io: io_stats::io_json(&report.io),
    }
}
