//! `trunkline bench`: measures a table with every I/O method, repeatedly, and reports statistics.
//!
//! ```text
//!   bench -D DIR -d bench --table public.accounts     a table of a stopped cluster, read-only
//!   bench --scratch DIR                               a generated table, and workloads that write
//!   bench --scratch DIR --slow-disk gp3               the same on a simulated disk
//!   bench --scratch DIR --postgres BINDIR             the same work on a server, in turn with ours
//!   … --postgres-settings lines.conf                  its defaults, and the lines of a file, in turn
//!   … --save run.json --csv run.csv --html run.html   reports; a later run: --against run.json
//! ```
//! The work itself is in the crate `trunkline-measure`. This module turns options into a plan, and
//! starts the engine with room for the largest case. `demo` is the command for a first look; `bench`
//! takes minutes, because it repeats each case until its interval is narrow.
//!
//! Nothing is written into a cluster. The scratch directory is removed at the end, after
//! Ctrl-C too, and the next run removes one that a killed run has left.

mod arguments;
mod monitor;
mod output;
mod postgres;
mod report_files;
mod slow_disk;

use std::ffi::OsString;
use std::path::Path;

use trunkline_aio::Aio;
use trunkline_aio::facade::Arc;
use trunkline_engine::Engine;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::Observer;
use trunkline_engine::prewarm::{Choice, View, select};
use trunkline_engine::settings::Settings;
use trunkline_format::{BLOCK_SIZE, Fork};
use trunkline_measure::{
    Bench, MeasureError, Origin, Plan, Report, Scratch, ScratchTable, ServerError, Table, Workload,
    refuse_cluster, stop_leftovers,
};
use trunkline_sample::accounts::{self, Accounts};
use trunkline_sample::room;

pub(crate) use self::arguments::BenchArgs;
use self::arguments::no_table;
use self::monitor::BenchMonitor;
use self::report_files::ReportFiles;
use self::slow_disk::MountedDisk;
use crate::copy::outputs::is_inside_cluster;
use crate::data_dir;
use crate::exit::{Exit, Failure, message};
use crate::help_text;
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::monitor::JobMonitor;
use crate::named_files::FileSelection;
use crate::options::{Context, Global};
use crate::output::{human_bytes, print, print_json};

/// Sessions beside the measuring ones: workers of `verify` and `prewarm`, and one session to
/// read a sample page.
const SESSIONS_BESIDE: usize = 64;
/// Handles of an I/O instance, at least.
const HANDLES_MIN: u32 = 1024;
/// Largest value of `io_max_concurrency`.
const QUOTA_MAX: u32 = 1024;
/// A table's device counts once for the windows of `verify`, with one to spare.
const MOUNTS: usize = 2;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &BenchArgs) -> Result<Exit, Failure> {
    let Context { global, settings, buffers, .. } = context;
    let mut plan = args.plan(context)?;
    let stored = args.against.as_deref().map(Report::load).transpose()?;
    let settings = with_room(settings, &plan)?;
    let buffers = buffers.unwrap_or_else(|| settings.shared_buffers());
    let dir = args.table.as_ref().map(|_| data_dir::open(context)).transpose()?;
    check_places(args, dir.as_ref())?;
    limits(&settings, &plan, buffers).iter().for_each(|text| message("note", text));
    let lines = postgres::lines(args)?;
    let interrupt = Interrupt::install()?;
    // Find out now what would make the measured minutes useless at the end.
    let files = ReportFiles::create(args)?;
    // Values are dropped in reverse order: the server ends before its disk is unmounted, and the
    // scratch directory is removed last.
    let scratch = args.scratch.as_deref().map(|path| Scratch::open(path, release)).transpose()?;
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
    let monitor = Arc::new(BenchMonitor::new(interrupt.clone(), global));
    let mut disk = None;
    let mut end_server = None;
    let (tables, scratch_table) = match (&dir, &scratch, &args.postgres) {
        (_, Some(scratch), Some(bin)) => {
            let place = (scratch.path(), &plan, buffers);
            let watching = (&interrupt, Arc::clone(&monitor) as _);
            let prepared = postgres::prepare(args, bin, place, lines, global, watching)?;
            let mut server = prepared.server;
            plan.servers = args.server_methods(server.major(), context);
            if let Some(profile) = &args.slow_disk {
                let mounted = MountedDisk::mount(scratch.path(), profile, &interrupt)?;
                server.set_disk(mounted.path());
                disk = Some(mounted);
            }
            end_server = Some(prepared.end);
            let (table, peer) = postgres::open(&engine, server)?;
            ((table, Some(peer)), None)
        }
        (None, Some(scratch), None) => {
            let (made, mounted) = create(io.aio(), scratch, (args, &plan), global, &interrupt)?;
            disk = mounted;
            let Some(accounts) = &made.accounts else { return Err(no_table()) };
            ((Table::of_scratch(&engine, accounts), None), Some(made))
        }
        (Some(dir), scratch, None) => {
            let made = match scratch {
                Some(scratch) => {
                    Some(create(io.aio(), scratch, (args, &plan), global, &interrupt)?.0)
                }
                None => None,
            };
            ((table_of_cluster(&engine, dir, context, args)?, None), made)
        }
        _ => return Err(no_table()),
    };
    let watcher = Arc::clone(&monitor) as _;
    let mut bench = Bench::new(&engine, tables, scratch_table, (plan, args.rule()), watcher)?;
    for canceller in bench.cancellers() {
        interrupt.cancel_on_request(canceller);
    }
    let origin = Origin {
        command_line: command_line(std::env::args_os()),
        program: help_text::VERSION.to_owned(),
        slow_disk: disk.as_ref().map(MountedDisk::description),
    };
    // In a thread of its own, because a system call on a file system that hangs can't be cancelled.
    // The results are shared, so we have them even if we must give up the thread.
    let results = bench.results(origin);
    let shared = results.clone();
    let measured = interrupt.wait_for("bench", move || bench.run(&shared));
    monitor.clear();
    drop(end_server);
    // A disk can't be unmounted while the engine has files open on it.
    drop(engine);
    drop(disk);
    // Removes the scratch directory.
    drop(scratch);
    let mut report = results.report();
    let stored = stored.as_ref().zip(args.against.as_deref());
    let doubts = stored.map(|(stored, path)| report.compare(stored, path)).unwrap_or_default();
    finish(global, files, &report, &doubts)?;
    if interrupt.requested() {
        message("warning", "interrupted; only some cases were measured");
        return Ok(interrupt.exit());
    }
    measured??;
    if report.measurements.is_empty() {
        return Err(Failure::cannot_run("nothing could be measured"));
    }
    Ok(Exit::Good)
}

/// Fails if something would be written into a cluster: into `dir`, which is measured, or another one.
fn check_places(args: &BenchArgs, dir: Option<&DataDir>) -> Result<(), Failure> {
    for path in args.reports().chain(args.scratch.as_deref()) {
        refuse_cluster(path)?;
        if dir.is_some_and(|dir| is_inside_cluster(path, dir)) {
            let text =
                format!("\"{}\" is inside the data directory or a tablespace", path.display());
            return Err(Failure::usage(text).with_hint("choose a place outside the cluster"));
        }
    }
    Ok(())
}

/// Ends what a killed run has left in its scratch directory: first a server, because it keeps files
/// of a slow disk open.
fn release(scratch: &Path) -> Result<(), MeasureError> {
    stop_leftovers(scratch)?;
    slow_disk::release(scratch)
}

/// Writes the report's files and prints it. The files come first, because printing fails if the
/// reader of our output has ended.
fn finish(
    global: &Global,
    files: ReportFiles,
    report: &Report,
    doubts: &[String],
) -> Result<(), Failure> {
    let written = files.write(report);
    output::report_skipped(report);
    let warnings = report.cache_warnings();
    warnings.iter().chain(doubts).for_each(|text| message("warning", text));
    match global.json {
        true => print_json(report)?,
        false => print(&output::text(report))?,
    }
    written
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
    // An instance has at least 1024 handles, and twice as many as a session may use.
    let needed = handles_needed(plan);
    if settings.io_max_concurrency().is_none() && needed > HANDLES_MIN {
        let quota = needed.div_ceil(2).min(QUOTA_MAX);
        settings.set("io_max_concurrency", &quota.to_string())?;
    }
    Ok(settings)
}

/// Handles that all sessions need to reach the largest concurrency: a read stream has one in eight
/// more than it has reads at the storage, and one for a page that is needed immediately.
fn handles_needed(plan: &Plan) -> u32 {
    let depth = plan.concurrencies.iter().copied().max().unwrap_or(1);
    let sessions = plan.sessions.iter().copied().max().unwrap_or(1);
    (depth + depth / 8 + 1).saturating_mul(u32::try_from(sessions).unwrap_or(u32::MAX))
}

/// What keeps the engine from having as many I/Os in flight as the plan asks for.
fn limits(settings: &Settings, plan: &Plan, buffers: u32) -> Vec<String> {
    let mut limits = Vec::new();
    let needed = handles_needed(plan);
    let handles =
        settings.io_max_concurrency().unwrap_or_default().saturating_mul(2).max(HANDLES_MIN);
    if needed > handles {
        limits.push(format!(
            "the largest concurrency of all sessions needs {needed} I/O handles, and there are \
             {handles}; the column \"in flight\" shows how many I/Os there really were"
        ));
    }
    let largest = |values: &[u32]| values.iter().copied().max().unwrap_or(1);
    let blocks = largest(&plan.concurrencies).saturating_mul(largest(&plan.combines));
    // The ring buffer of a sequential scan is at most this part of the pool.
    let ring = buffers / 8;
    let scans = [Workload::Sequential, Workload::Uniform, Workload::Linear10];
    if blocks > ring && scans.iter().any(|workload| plan.workloads.contains(workload)) {
        limits.push(format!(
            "sequential scans use at most an eighth of shared_buffers, {ring} blocks; the largest \
             concurrency needs {blocks}"
        ));
    }
    limits
}

/// The table that `--table` names.
fn table_of_cluster(
    engine: &Engine,
    dir: &DataDir,
    context: &Context<'_>,
    args: &BenchArgs,
) -> Result<Table, Failure> {
    let names = args.table.as_slice();
    let chosen = FileSelection::resolve(dir, &context.settings, &args.database, names, None)?;
    let FileSelection::Listed(chosen) = chosen else {
        return Err(Failure::usage("the table must be a single relation"));
    };
    // The runs drop the table's files from the cache.
    let choice = Choice { view: View::InFiles, names: chosen, ..Choice::default() };
    let selection = select(dir, &choice)?;
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

/// Generates the scratch table, and mounts the slow disk around it if one is asked for.
fn create(
    aio: &Aio,
    scratch: &Scratch,
    (args, plan): (&BenchArgs, &Plan),
    global: &Global,
    interrupt: &Interrupt,
) -> Result<(ScratchTable, Option<MountedDisk>), Failure> {
    // Durable writes have a file of their own.
    let is_read = args.table.is_none() || plan.workloads.contains(&Workload::Checkpoint);
    let generate = |place: &Path| {
        let create = || generate(aio, place, args.scale(), global, interrupt);
        is_read.then(create).transpose()
    };
    let Some(profile) = &args.slow_disk else {
        let accounts = generate(&scratch.join("table"))?;
        return Ok((ScratchTable { accounts, durable: scratch.join("durable") }, None));
    };
    // The table is written at full speed, and then found on the mounted disk.
    let directory = scratch.join(slow_disk::DIRECTORY);
    std::fs::create_dir(&directory)
        .map_err(|source| MeasureError::File { path: directory.clone(), source })?;
    generate(&directory.join("table"))?;
    let disk = MountedDisk::mount(scratch.path(), profile, interrupt)?;
    let accounts = generate(&disk.path().join("table"))?;
    let durable = disk.path().join("durable");
    Ok((ScratchTable { accounts, durable }, Some(disk)))
}

/// Generates the accounts table in a directory, unless it is there.
fn generate(
    aio: &Aio,
    place: &Path,
    scale: u32,
    global: &Global,
    interrupt: &Interrupt,
) -> Result<Accounts, Failure> {
    let (needed, free) = (accounts::bytes(scale), room(place).unwrap_or(u64::MAX));
    if free < needed && !place.exists() {
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
    let (aio, observer, path) = (aio.clone(), Arc::clone(&monitor), place.to_owned());
    let created = interrupt.wait_for("create table", move || {
        let mut progress = |written: u64| {
            observer.progressed(written);
            !observer.cancelled()
        };
        accounts::create(&aio, &path, scale, &mut progress)
    });
    monitor.clear();
    created?.map_err(|error| match interrupt.requested() {
        true => interrupt.failure(),
        false => Failure::cannot_run(format_args!("\"{}\": {error}", place.display())),
    })
}

/// The command line as a shell would take it.
pub(crate) fn command_line(words: impl Iterator<Item = OsString>) -> String {
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
            MeasureError::InsideCluster { .. }
            | MeasureError::Stored { .. }
            | MeasureError::Server(ServerError::Program { .. } | ServerError::Account(_)) => {
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
