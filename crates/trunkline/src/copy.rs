//! `trunkline copy`: prints rows of a stopped cluster as `COPY ... TO STDOUT` does.
//!
//! ```text
//!   copy -D DIR -d DB s1.t                    all visible rows in physical order
//!   copy -D DIR -d DB s1.t --ctid --columns id,name --format csv --delimiter ';' --null NULL
//!   copy -D DIR -d DB s1.t --rows all         every row version and its state
//!   copy -D DIR -d DB s1.t --rows dead --no-state   deleted rows, to load them again
//!   copy -D DIR -d DB --all -o OUT            every table into a file; can be resumed
//!   copy -D DIR -d DB -t 's1.*' -o OUT        tables that match, also several names or -n s1
//! ```
//! Beside several tables, we write `load.sql`, which loads them into a server.
//!
//! The output is the same as that of `COPY table`, so a server can load it again. With ctid or state,
//! it's the same as that of `COPY (SELECT ctid, * ...)`, which also includes stored generated
//! columns.
//!
//! If the named table is partitioned, we copy its partitions. As in `COPY table`, the rows of other
//! child tables are not those of their parent. By default, the copy stops at the first row that
//! can't be read, with an error that gives the row's location. With `--keep-going`, we skip
//! unreadable rows and report them at the end, so that the user can rescue data from a damaged
//! cluster.
//!
//! The order of the steps in [`run`] matters: we check all names, columns and settings before we
//! print the first row. That way, a mistake on the command line never leaves partial output behind.

mod args;
mod columns;
mod failures;
mod load;
pub(crate) mod outputs;
mod partial_file;
mod pattern;
mod plan;
mod report;
mod selection;
mod text_args;
mod text_settings;

use std::fs;
use std::path::Path;

use trunkline_aio::facade::thread;
use trunkline_engine::catalog::OnDamage;
use trunkline_engine::copy::{CopyOptions, Extras, LineFormat, Plan, TextSettings, copy};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::heap::RowFilter;
use trunkline_engine::job::End;
use trunkline_engine::settings::Settings;

use crate::catalog_session::warn_of_damage;
use crate::data_dir;
use crate::exit::{Exit, Failure, message};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::io_stats;
use crate::monitor::run_job;
use crate::options::Context;
use crate::output::{self, print_report};
pub(crate) use args::CopyArgs;
use args::RowsArg;
use failures::{blame_damage, catalog_failure, copy_failure};
use plan::CopyPlan;
use report::{CopyOutput, report_findings, report_missing_values, warn_of_incomplete_files};
use text_settings::TextSettingSources;

/// Default size of the pool in blocks: 32 MiB. A larger pool wouldn't help, because a copy reads each page
/// only once. In fact, it would hurt, because mapping a large pool takes longer than reading a
/// small table.
pub(crate) const BUFFERS: u32 = 4096;

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &CopyArgs) -> Result<Exit, Failure> {
    let Context { global, settings, text_settings, buffers, .. } = context;
    if global.json && args.output().is_none() {
        let text = "--json requires --output with a file: rows are printed as by COPY, not as JSON";
        let hint = "with -o FILE, the rows go to a file, and the report is printed as JSON";
        return Err(Failure::usage(text).with_hint(hint));
    }
    args.check()?;
    let format = args.line_format().map_err(Failure::usage)?;
    let dir = data_dir::open(context)?;
    if let Some(path) = args.output()
        && outputs::is_inside_cluster(path, &dir)
    {
        let text = format!("\"{}\" is inside the data directory or a tablespace", path.display());
        return Err(Failure::usage(text).with_hint("choose a place outside the cluster"));
    }
    let (io, engine) = IoInstance::with_engine(settings, buffers.unwrap_or(BUFFERS))?;
    let cluster = engine.cluster_of(dir.clone());
    let interrupt = Interrupt::install()?;
    let mut backend = engine.session()?;
    let on_damage = if args.keep_going { OnDamage::Rescue } else { OnDamage::Fail };
    let catalog_failure = |error| catalog_failure(error, &dir);
    let catalog = cluster.read_catalog(&mut backend, on_damage).map_err(catalog_failure)?;
    let database = catalog.database(&mut backend, &args.database.of(&args.tables)?);
    warn_of_damage(catalog.faults(), None);
    let blame = |error| blame_damage(catalog_failure(error), catalog.faults());
    let database = database.map_err(blame)?;
    warn_of_damage(database.faults(), Some(&database));
    let (text, place) = ((&args.text, text_settings, args.writes_script()), (&dir, &interrupt));
    let sources = TextSettingSources::read(text, place, &database, &mut backend)?;
    let plan = CopyPlan::new(args, &database, &mut backend);
    let mut plan = plan.map_err(|failure| blame_damage(failure, database.faults()))?;
    drop(backend);
    let major = dir.control().version.major();
    let text = sources.resolve(major, &plan.plans(), &database)?;
    let catalog_is_complete = catalog.faults().is_empty() && database.faults().is_empty();
    mention_unknown(&mut plan, &dir, catalog_is_complete);
    let partial_files = warn_of_partial_files(&plan.plans());
    let inputs_are_complete =
        catalog_is_complete && sources.is_complete && partial_files.is_empty();
    partial_files.into_iter().for_each(|text| plan.leave_out(text));
    let (_lock, present) = match args.output() {
        Some(directory) if args.copies_many() => {
            let contents = plan::manifest(args, &dir, &database, &sources);
            let (lock, present) =
                plan.open_directory(directory, &contents, args.writes_script())?;
            (Some(lock), present)
        }
        Some(file) => {
            note_replacement(file);
            (None, 0)
        }
        None => (None, 0),
    };
    if args.output().is_none() && output::is_closed() {
        message("warning", "standard output is closed or discarded; the rows are lost");
    }
    if args.writes_script() && format.has_ambiguous_null() {
        message("warning", "load.sql will load values that equal the null string as nulls");
        message("hint", "use the csv format, or a null string such as \\N that no value can equal");
    }
    let options = options(args, format, settings, text);
    let (left_out, same_names) = (plan.left_out, plan.same_names);
    let paths = plan.paths().to_vec();
    let (tasks, outputs, loads) = plan.into_tasks();
    let report = run_job(global, &interrupt, &io, |observer| {
        let options = options.clone();
        let copied = copy(engine.pool(), &dir, &database, tasks, outputs, options, observer);
        copied.map_err(|error| copy_failure(error, args, &dir))
    })?;
    report_findings(&report);
    report_missing_values(&report);
    let incomplete = warn_of_incomplete_files(&report, &paths);
    io_stats::report_warnings(&report.warnings, report.warnings_lost);
    // After an interrupt, some of the files don't exist.
    let has_script = args.writes_script() && report.end == End::Complete;
    if let Some(directory) = args.output().filter(|_| has_script) {
        loads.write(directory, &database, &options, &report, &interrupt)?;
    }
    let nothing_missing = inputs_are_complete && left_out.is_empty() && report.findings_total == 0;
    let (method, direct) = (io.method_name(), settings.io_direct_data());
    let output = CopyOutput {
        report: &report,
        dir: &dir,
        method,
        direct,
        present,
        incomplete,
        left_out,
        may_lack_tables: args.copies_many() && !catalog_is_complete,
        script: has_script.then_some(load::SCRIPT),
        nothing_missing,
    };
    if args.output().is_some() {
        print_report(global, &output.json(), || output.text())?;
    }
    let is_good = nothing_missing && !same_names;
    let exit = if is_good { Exit::Good } else { Exit::Findings };
    Ok(interrupt.exit_after(report.end, exit))
}

/// Mentions in the script what may be missing in the copies without any of them being incomplete.
fn mention_unknown(plan: &mut CopyPlan, dir: &DataDir, catalog_is_complete: bool) {
    if !catalog_is_complete {
        let text = "tables or columns that damaged rows or pages of the catalogs describe";
        plan.leave_out(text.to_owned());
    }
    if !dir.is_clean() {
        let text = "the newest changes: the cluster was not shut down cleanly; pages may be torn";
        plan.remark(text.to_owned());
    }
}

/// Says that a file of this name will be replaced. A pipe or device is only written to.
fn note_replacement(path: &Path) {
    if fs::metadata(path).is_ok_and(|found| found.is_file()) {
        let path = path.display();
        message("note", format_args!("\"{path}\" exists; a complete copy replaces it"));
    }
}

/// Warns about files that end with an incomplete page, and returns the warnings. PostgreSQL ignores
/// an incomplete page at the end of a file.
fn warn_of_partial_files(plans: &[&Plan]) -> Vec<String> {
    let partial = plans.iter().flat_map(|plan| plan.partial_files());
    let texts = partial.map(|(path, bytes)| {
        let path = path.display();
        format!("\"{path}\" has {bytes} bytes: the last page is incomplete, rows may be missing")
    });
    let texts: Vec<String> = texts.collect();
    texts.iter().for_each(|text| message("warning", text));
    texts
}

fn options(
    args: &CopyArgs,
    format: LineFormat,
    settings: &Settings,
    text: TextSettings,
) -> CopyOptions {
    let threads = || u32::try_from(thread::available_parallelism()).unwrap_or(1);
    CopyOptions {
        format,
        header: args.header,
        extras: Extras { ctid: args.ctid, state: args.shows_state() },
        rows: match args.rows {
            RowsArg::Visible => RowFilter::Visible,
            RowsArg::Dead => RowFilter::Dead,
            RowsArg::All => RowFilter::All,
        },
        keep_going: args.keep_going,
        threads: if args.copies_many() { args.jobs.unwrap_or_else(threads) } else { 1 },
        ..CopyOptions::of(settings, text)
    }
}
