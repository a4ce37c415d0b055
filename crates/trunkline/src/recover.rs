//! `trunkline recover`: recovers a cluster of our own after a crash.
//!
//! ```text
//!   $ trunkline recover DIR
//!   recovered "DIR" from 0/1A3F0C8 to 0/5180E78 in 0.31 s: 90412 records, 3301 pages; it is shut down now
//! ```
//! Like `init`, it takes the directory as an argument, so that `PGDATA` is never written to by accident. Only clusters
//! that `init` has made are accepted. Programs that open such a cluster recover it by themselves; this is for looking
//! at it, or starting a server on it, without such a program.

use std::path::PathBuf;

use clap::ValueHint;
use trunkline_engine::log_writer::LogWriterError;
use trunkline_engine::recovery::{RecoveryError, RecoveryReport};
use trunkline_engine::writable_cluster::{
    WritableCluster, WritableClusterError, WritableClusterOptions,
};

use crate::data_dir::replay_options;
use crate::exit::{Exit, Failure};
use crate::options::Context;
use crate::output::{object, print_report};
use crate::progress::Progress;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct RecoverArgs {
    /// Directory of a cluster that trunkline init has made.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Number of threads that recover pages.
    #[arg(long, value_name = "THREADS", default_value = "2")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
}

impl From<WritableClusterError> for Failure {
    fn from(error: WritableClusterError) -> Failure {
        match error {
            WritableClusterError::Log(LogWriterError::NotOurs { .. }) => Failure::usage(error)
                .with_hint("a server recovers its own clusters; trunkline reads them without that"),
            WritableClusterError::Recovery(RecoveryError::Page { .. }) => {
                Failure::cannot_run(error)
                    .with_hint("the WAL is kept: fix the cause, then retry recovery")
            }
            error => Failure::cannot_run(error),
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &RecoverArgs) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    let replay = replay_options(context, &args.directory)?;
    let options = WritableClusterOptions {
        recovery_threads: args.threads,
        recovery_memory: replay.memory,
        // Nothing goes through the pool.
        sessions: 1,
        ..WritableClusterOptions::new(settings.clone(), replay.scratch)
    };
    let bar = Progress::of_repetitions(global.shows_progress());
    bar.set_case("recovering".to_owned());
    let recovered = WritableCluster::recover(&args.directory, &options, |progress| {
        bar.set_repetitions(progress.done as u64, progress.total as u64);
    });
    drop(bar);
    let recovered = recovered?;
    let directory = args.directory.display().to_string();
    let report = recovered.as_ref();
    let json = object! {
        directory: &directory,
        recovered: report.is_some(),
        start: report.map(|report| report.start.to_string()),
        end: report.map(|report| report.end.to_string()),
        end_reason: report.map(|report| &report.reason),
        records: report.map(|report| report.records),
        pages: report.map(|report| report.pages),
        removed_files: report.map(|report| report.removed),
        scan_seconds: report.map(|report| report.scan_time.as_secs_f64()),
        seconds: report.map(|report| report.total_time.as_secs_f64()),
    };
    print_report(global, &json, || text(&directory, report))?;
    Ok(Exit::Good)
}

fn text(directory: &str, recovered: Option<&RecoveryReport>) -> String {
    let Some(RecoveryReport { start, end, records, pages, total_time, .. }) = recovered else {
        return format!("\"{directory}\" was shut down, so there is nothing to recover\n");
    };
    let seconds = total_time.as_secs_f64();
    format!(
        "recovered \"{directory}\" from {start} to {end} in {seconds:.2} s: {records} records, \
         {pages} pages; it is shut down now\n"
    )
}
