//! `trunkline bench`: measures a table with every I/O method, repeatedly, and reports statistics.
//!
//! ```text
//!   bench -D DIR -d bench --table public.accounts     a table of a stopped cluster, read-only
//!   bench --scratch DIR                               a generated table, and workloads that write
//!   … --save run.json --csv run.csv --html run.html   reports; a later run: --against run.json
//! ```
//! The work itself is in the crate `trunkline-measure`. This module turns options into a plan, and
//! starts the engine with room for the largest case. `demo` is the command for a first look; `bench`
//! takes minutes, because it repeats each case until its interval is narrow.
//!
//! Nothing is written into a data directory. The scratch directory is removed at the end, after
//! Ctrl-C too, and the next run removes one that a killed run has left.

mod arguments;
mod monitor;
mod output;

use std::ffi::OsString;
use std::path::Path;

use trunkline_aio::Aio;
use trunkline_aio::facade::Arc;
use trunkline_engine::Engine;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::Observer;
use trunkline_engine::prewarm::{Choice, select};
use trunkline_engine::settings::Settings;
use trunkline_format::{BLOCK_SIZE, Fork};
use trunkline_measure::{
    Bench, MeasureError, Origin, Plan, Report, Scratch, ScratchTable, Table, refuse_cluster,
    to_csv, to_html, write_report,
};
use trunkline_sample::accounts::{self, Accounts};
use trunkline_sample::room;

pub(crate) use self::arguments::BenchArgs;
use self::arguments::no_table;
use self::monitor::BenchMonitor;
use crate::data_dir;
use crate::exit::{Exit, Failure, message};
use crate::help_text;
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::monitor::JobMonitor;
use crate::named_files::FileSelection;
use crate::options::{Context, Global};
use crate::output::{human_bytes, print, print_json};

/// Sessions beside the measuring ones: workers of `verify` and `prewarm`, and the look at a page.
const SESSIONS_BESIDE: usize = 64;
/// A table's device counts once for the windows of `verify`, with one to spare.
const MOUNTS: usize = 2;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &BenchArgs) -> Result<Exit, Failure> {
    let Context { global, settings, buffers, .. } = context;
    let plan = args.plan(context)?;
    // Find out now what would make the measured minutes useless at the end.
    for path in args.reports() {
        refuse_cluster(path)?;
    }
    let stored = args.against.as_deref().map(Report::load).transpose()?;
    let settings = with_room(settings, &plan)?;
    let buffers = buffers.unwrap_or_else(|| settings.shared_buffers());
    let dir = args.table.as_ref().map(|_| data_dir::open(global)).transpose()?;
    let interrupt = Interrupt::install()?;
    let scratch = args.scratch.as_deref().map(Scratch::open).transpose()?;
    let windows = ReadOptions {
        direct: false,
        depth: settings.effective_io_concurrency(),
        combine_blocks: settings.io_max_combine_limit(),
    };
    let beside =
        windows.region_bytes(MOUNTS) / BLOCK_SIZE + plan.sessions.iter().max().unwrap_or(&1);
    let beside = u32::try_from(beside).unwrap_or(u32::MAX);
    let io = IoInstance::for_pool(&settings, buffers.saturating_add(beside), 0)?;
    let engine = io.engine(&settings, buffers)?;
    let scratch_table = match &scratch {
        Some(scratch) => Some(create(io.aio(), scratch, args.scale, global, &interrupt)?),
        None => None,
    };
    let table = match (&dir, &scratch_table) {
        (Some(dir), _) => table_of_cluster(&engine, dir, context, args)?,
        (None, Some(scratch)) => Table::of_scratch(&engine, &scratch.accounts),
        (None, None) => return Err(no_table()),
    };
    let monitor = Arc::new(BenchMonitor::new(interrupt.clone(), global));
    let mut bench =
        Bench::new(&engine, table, scratch_table, plan, args.rule(), Arc::clone(&monitor) as _)?;
    for canceller in bench.cancellers() {
        interrupt.cancel_on_request(canceller);
    }
    let origin = Origin {
        command_line: command_line(std::env::args_os()),
        program: help_text::VERSION.to_owned(),
    };
    // In a thread of its own, because a system call on a file system that hangs can't be cancelled.
    let measured = interrupt.wait_for("bench", move || bench.run(origin));
    monitor.clear();
    // Removes the scratch directory.
    drop(scratch);
    let mut report = measured??;
    let doubts = stored.as_ref().map(|stored| report.compare(stored)).unwrap_or_default();
    finish(global, args, &report, &doubts)?;
    if interrupt.requested() {
        message("warning", "interrupted; only some cases were measured");
        return Ok(interrupt.exit());
    }
    if report.measurements.is_empty() {
        return Err(Failure::cannot_run("nothing could be measured"));
    }
    Ok(Exit::Good)
}

/// Prints the report and writes its files.
fn finish(
    global: &Global,
    args: &BenchArgs,
    report: &Report,
    doubts: &[String],
) -> Result<(), Failure> {
    output::report_skipped(report);
    doubts.iter().for_each(|text| message("warning", text));
    match global.json {
        true => print_json(report)?,
        false => print(&output::text(report))?,
    }
    if let Some(path) = &args.save {
        write_report(path, &report.to_json().map_err(Failure::cannot_run)?)?;
    }
    if let Some(path) = &args.csv {
        write_report(path, &to_csv(report)?)?;
    }
    if let Some(path) = &args.html {
        write_report(path, &to_html(report)?)?;
    }
    Ok(())
}

/// Settings of an engine in which every case of the plan is possible.
fn with_room(settings: &Settings, plan: &Plan) -> Result<Settings, Failure> {
    let mut settings = settings.clone();
    let largest = |values: &[u32]| values.iter().copied().max().unwrap_or(1).to_string();
    settings.set("effective_io_concurrency", &largest(&plan.concurrencies))?;
    settings.set("io_max_combine_limit", &largest(&plan.combines))?;
    let sessions = plan.sessions.iter().copied().max().unwrap_or(1) + SESSIONS_BESIDE;
    if (settings.max_sessions() as usize) < sessions {
        settings.set("max_sessions", &sessions.to_string())?;
    }
    Ok(settings)
}

/// The table that `--table` names.
fn table_of_cluster(
    engine: &Engine,
    dir: &trunkline_engine::datadir::DataDir,
    context: &Context<'_>,
    args: &BenchArgs,
) -> Result<Table, Failure> {
    let names = args.table.as_slice();
    let chosen = FileSelection::resolve(dir, &context.settings, &args.database, names, None)?;
    let FileSelection::Listed(chosen) = chosen else {
        return Err(Failure::usage("the table must be a single relation"));
    };
    let selection = select(dir, &Choice { names: chosen, ..Choice::default() })?;
    let targets = selection.targets.into_iter().filter(|target| target.fork == Fork::Main);
    let targets: Vec<_> = targets.collect();
    let [target] = &targets[..] else {
        let text = format!("the table must be a single relation, found {}", targets.len());
        return Err(Failure::usage(text));
    };
    if target.blocks() == 0 {
        return Err(Failure::usage("the table is empty"));
    }
    let name = args.table.as_deref().unwrap_or(Path::new("")).display().to_string();
    Ok(Table::of_cluster(engine, dir, target.clone(), name)?)
}

/// Generates the scratch table.
fn create(
    aio: &Aio,
    scratch: &Scratch,
    scale: u32,
    global: &Global,
    interrupt: &Interrupt,
) -> Result<ScratchTable, Failure> {
    let place = scratch.join("table");
    let (needed, free) = (accounts::bytes(scale), room(&place).unwrap_or(u64::MAX));
    if free < needed {
        let text = format!(
            "not enough disk space for the scratch table: {} needed, and at most half of the free \
             space, {}, is used",
            human_bytes(needed),
            human_bytes(free)
        );
        return Err(Failure::cannot_run(text).with_hint("use a smaller --scale"));
    }
    let monitor = Arc::new(JobMonitor::new(interrupt.clone(), global));
    monitor.begins(1, needed);
    let (aio, observer, path) = (aio.clone(), Arc::clone(&monitor), place.clone());
    let created = interrupt.wait_for("create table", move || {
        let mut progress = |written: u64| {
            observer.progressed(written);
            !observer.cancelled()
        };
        accounts::create(&aio, &path, scale, &mut progress)
    });
    monitor.clear();
    let accounts: Accounts = created?.map_err(|error| match interrupt.requested() {
        true => interrupt.failure(),
        false => Failure::cannot_run(format_args!("\"{}\": {error}", place.display())),
    })?;
    Ok(ScratchTable { accounts, durable: scratch.join("durable") })
}

/// The command line as a shell would take it.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let quoted = words.enumerate().map(|(at, word)| {
        let word = word.to_string_lossy();
        // The program is shown by its name: its directory differs between machines.
        let name = Path::new(&*word).file_name().map(|name| name.to_string_lossy().into_owned());
        let word = if at == 0 { name.unwrap_or_default() } else { word.into_owned() };
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || "_-./=,:+@%".contains(letter);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Failure {
        match error {
            MeasureError::Read(error) => error.into(),
            MeasureError::Storage(error) => {
                trunkline_engine::pool::ReadError::Storage(error).into()
            }
            MeasureError::Job(error) => error.into(),
            MeasureError::DataDir(error) => error.into(),
            MeasureError::InsideCluster { .. } | MeasureError::Stored { .. } => {
                Failure::usage(&error)
            }
            error => Failure::cannot_run(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let words = ["/usr/bin/trunkline", "bench", "--table", "a b", "it's", "", "--scan=index"];
        let line = command_line(words.into_iter().map(OsString::from));
        assert_eq!(line, r"trunkline bench --table 'a b' 'it'\''s' '' --scan=index");
    }
}
