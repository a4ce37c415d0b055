//! `trunkline calibrate`: measures a device and prints settings for `postgresql.conf`.
//!
//! ```text
//!   calibrate -D DIR                                the file system of a data directory
//!   calibrate -D DIR --scratch OTHER                that of OTHER
//!   calibrate -D DIR --for 18 --conf io.conf        only the lines for PostgreSQL 18
//!   … --save run.json --csv run.csv --html run.html reports
//! ```
//! The work itself is in the crate `trunkline-measure`. This module finds a place for the scratch
//! files ([`scratch`]), starts the calibration, and prints its outcome.

mod arguments;
mod monitor;
mod output;
mod scratch;

use trunkline_aio::facade::Arc;
use trunkline_measure::{
    Calibrated, Calibration, CalibrationPlan, ClusterFacts, Origin, refuse_cluster,
};

pub(crate) use self::arguments::CalibrateArgs;
use self::arguments::Format;
use self::monitor::CalibrationMonitor;
use self::scratch::ScratchPlace;
use crate::bench::command_line;
use crate::doctor::{direct_caution, pinned_pages};
use crate::exit::{Exit, Failure, message};
use crate::help_text;
use crate::interrupt::Interrupt;
use crate::options::{Context, Global};
use crate::output::{human_bytes, print, print_json};
use crate::report_files::ReportFiles;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &CalibrateArgs) -> Result<Exit, Failure> {
    let global = context.global;
    if let Some(name) = context.given.first() {
        let text = format!("parameter \"{name}\" has no effect on this command");
        return Err(Failure::usage(text).with_hint("calibrate measures what settings should be"));
    }
    let directory = global.require_pgdata()?;
    // Find out now what would make the measured minutes useless at the end.
    for (_, path) in args.reports() {
        refuse_cluster(path)?;
    }
    let interrupt = Interrupt::install()?;
    let files = args.reports().map(|(format, path)| (format, path.to_owned()));
    let files = ReportFiles::create(files)?;
    let (subject, chosen, size) = (directory.clone(), args.scratch.clone(), args.size);
    // A file system may hang.
    let place = interrupt.wait_for("find a place", move || {
        ScratchPlace::find(&subject, chosen.as_deref(), size)
    })??;
    place.notes.iter().for_each(|text| message("warning", text));
    let (path, seconds) = (place.directory.display(), args.time);
    let text = format!("measuring \"{path}\" with up to {}, {seconds} s", human_bytes(place.bytes));
    message("info", text);
    let monitor = Arc::new(CalibrationMonitor::new(interrupt.clone(), global));
    let caution = direct_caution(&place.directory);
    if let Some(caution) = &caution {
        message("warning", format_args!("reads may be served from memory: {caution}"));
    }
    let plan = CalibrationPlan {
        direct_caution: caution,
        directory: place.directory,
        bytes: place.bytes,
        time: std::time::Duration::from_secs(args.time.into()),
        cluster: ClusterFacts {
            has_own_log: place.has_own_log,
            pinned_pages: pinned_pages(directory, &interrupt)?,
        },
    };
    let (scratch, watcher) = (place.files, Arc::clone(&monitor));
    let calibration =
        interrupt.wait_for("start", move || Calibration::new(scratch, plan, watcher as _))??;
    if let Some(problem) = calibration.direct_problem() {
        let text = format!("no direct I/O ({problem}); reads may be served from the page cache");
        message("warning", text);
    }
    interrupt.cancel_on_request(calibration.canceller());
    let origin = Origin {
        command_line: command_line(std::env::args_os()),
        program: help_text::VERSION.to_owned(),
        slow_disk: None,
    };
    // The calibration comes back, too: dropping it waits for I/Os in flight, which may take longer than
    // we wait for the report after Ctrl-C.
    let measured = interrupt.wait_for("calibrate", move || {
        let mut calibration = calibration;
        (calibration.run(origin), calibration)
    });
    monitor.clear();
    let (report, _in_flight) = measured?;
    let report = report?;
    finish(global, args, files, &report)?;
    if report.complete {
        return Ok(Exit::Good);
    }
    if !interrupt.requested() {
        message(
            "warning",
            "some I/O failed; only a part was measured, and the confidence is lower",
        );
        return Ok(Exit::CannotRun);
    }
    message("warning", "interrupted; only a part was measured, and the confidence is lower");
    Ok(interrupt.exit())
}

/// Writes the report's files and prints it. The files come first, because printing fails if the
/// reader of our output has ended.
fn finish(
    global: &Global,
    args: &CalibrateArgs,
    files: ReportFiles<Format>,
    report: &Calibrated,
) -> Result<(), Failure> {
    for text in &report.found.skipped {
        message("note", format_args!("not measured: {text}"));
    }
    let lines = args.target().and_then(|target| {
        report.settings.iter().find(|lines| lines.target == target).map(|lines| lines.text())
    });
    let written = files.write(|format| match format {
        Format::Conf => Ok(lines.clone().unwrap_or_default()),
        Format::Json => report.to_json().map_err(Failure::cannot_run),
        Format::Csv => Ok(report.to_csv()?),
        Format::Html => Ok(report.to_html()?),
    });
    match (global.json, &lines) {
        (true, _) => print_json(report)?,
        (false, Some(lines)) => print(lines)?,
        (false, None) => print(&output::text(report))?,
    }
    written
}
