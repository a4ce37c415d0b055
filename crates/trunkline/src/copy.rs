//! `trunkline copy`: rows of a stopped cluster as `COPY … TO STDOUT` prints them.
//!
//! ```text
//!   copy -D DIR -d DB s1.t                    all visible rows in physical order
//!   copy -D DIR -d DB s1.t --ctid --columns id,name --format csv
//!   copy -D DIR -d DB s1.t --rows all         every row version, and what became of it
//!   copy -D DIR -d DB --all -o OUT            every table into a file, goes on where it was ended
//! ```
//! What is printed is what `COPY table` prints, so that it can be loaded again; with `--ctid` or
//! `--rows all` it is what `COPY (SELECT ctid, * …)` prints, computed columns included.
//!
//! A partitioned table is its partitions, and a parent has its children's rows too, unless `--only`
//! says otherwise. A row that cannot be read ends the copy with its place; with `--keep-going` it is
//! left out and named at the end.

mod columns;
mod config;
mod files;
mod report;
mod text;
mod zone;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use trunkline_aio::sync::{Arc, thread};
use trunkline_engine::catalog::{CatalogError, Database, OnDamage, RelationInfo, quoted};
use trunkline_engine::copy::{
    CopyError, CopyOptions, CopyTask, Extras, Format, Outputs, Plan, PlanError, copy,
};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::heap::RowFilter;
use trunkline_engine::pool::Backend;
use trunkline_engine::settings::Settings;
use trunkline_format::catalog::{Persistence, RelationKind};

use crate::cli::Global;
use crate::cluster::{self, DatabaseArgs};
use crate::exit::{Exit, Failure, message};
use crate::instance;
use crate::output::{self, print, print_json};
use crate::pooled;
use crate::verify;
use crate::watch::{self, Watch};
use columns::{column_name, columns, encoded, names_of, printable};
use files::{Directory, DirectoryError, Files, Stdout};
use report::{Shown, report_findings, report_gone};
pub(crate) use text::is_value_setting;
use text::{FormatArg, Sources, TextArgs};

/// Buffers unless somebody asks for more: 32 MiB. Each page is read once, and it takes longer to get
/// memory from the system than to read a small table.
const BUFFERS: u32 = 4096;

/// What helps against damage.
const KEEP_GOING: &str = "--keep-going leaves out what is damaged and goes on";

/// What helps where one of several partitions or children cannot be read.
const OTHERS: &str =
    "--keep-going leaves it out and copies the others; each can be named alone too";

/// Which row versions are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RowsArg {
    /// Those that a query sees.
    Visible,
    /// All that are there, with xmin, xmax and their state.
    All,
}

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The table, materialized view or catalog: SCHEMA.TABLE, or DATABASE.SCHEMA.TABLE.
    #[arg(value_name = "TABLE", required_unless_present = "all", conflicts_with = "all")]
    table: Option<OsString>,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Every table of the database but for the system's, each into a file of the directory that -o
    /// names. Files that are there already are not made again.
    #[arg(long, requires = "output", conflicts_with = "columns")]
    all: bool,

    /// The file to write instead of standard output, or the directory of --all. A pipe or a device is
    /// written to as it is.
    #[arg(short = 'o', long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Puts each row's place first, as (block,line pointer).
    #[arg(long)]
    ctid: bool,

    /// The columns to print, in this order [default: all but the generated ones, as COPY of a table;
    /// with --ctid or --rows all those that are stored too, as COPY (SELECT ctid, * …)].
    #[arg(long, value_name = "NAME,…")]
    columns: Vec<OsString>,

    /// How rows become bytes.
    #[arg(long, value_enum, default_value = "text")]
    format: FormatArg,

    /// Prints the names of the columns first.
    #[arg(long)]
    header: bool,

    /// Leaves out the rows of partitions and children.
    #[arg(long, conflicts_with = "all")]
    only: bool,

    /// Which row versions: visible ones, or all of them with xmin, xmax and state. A value of one that
    /// is not live may be gone already, from TOAST for example: it is printed as a null, as \N in
    /// text, and how many there are is said at the end.
    #[arg(long, value_enum, default_value = "visible")]
    rows: RowsArg,

    /// Leaves out what is damaged and says so at the end.
    #[arg(long)]
    keep_going: bool,

    /// Tables that --all copies at once [default: as many as there are processors].
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,

    #[command(flatten)]
    text: TextArgs,
}

/// What there is to do, and how it ended that could not be planned.
struct Chosen {
    tasks: Vec<CopyTask>,
    outputs: Arc<dyn Outputs>,
    /// Tables that are there already.
    present: usize,
    exit: Exit,
    /// Of the directory that the outputs are in, to the end.
    lock: Option<Directory>,
}

/// Runs the command.
///
/// `values` are settings of values that are given by their names; `pool` is its size in buffers, if
/// somebody asked for one.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    values: &BTreeMap<String, String>,
    args: &CopyArgs,
    pool: Option<u32>,
) -> Result<Exit, Failure> {
    let dir = verify::open(global)?;
    if let Some(path) = &args.output
        && files::is_inside_cluster(path, &dir)
    {
        let text =
            format!("\"{}\" is inside of the data directory or a tablespace", path.display());
        return Err(Failure::usage(text).with_hint("nothing is ever written there"));
    }
    let buffers = pool.unwrap_or(BUFFERS);
    let engine = pooled::open(settings, buffers)?;
    let cluster = engine.cluster_of(dir.clone());
    let aio = engine.aio();
    let said = aio.method_status().fallbacks.len();
    let interrupt = watch::interrupt()?;
    let mut backend = engine.session()?;
    let on_damage = if args.keep_going { OnDamage::Collect } else { OnDamage::Fail };
    let damaged = |error| damaged(error, &dir);
    let catalog = cluster.read_catalog(&mut backend, on_damage).map_err(damaged)?;
    let database = catalog.database(&mut backend, &args.database.of(&args.table)?);
    let database = database.map_err(damaged)?;
    cluster::warn_of(catalog.faults(), None);
    cluster::warn_of(database.faults(), Some(&database));
    let sources = Sources::read((&args.text, values), &dir, &database, &mut backend)?;
    let chosen = choose(args, &dir, &database, &sources, &mut backend)?;
    drop(backend);
    let plans: Vec<&Plan> = chosen.tasks.iter().flat_map(|task| &task.plans).collect();
    let partial = warn_of_partial(&plans);
    if args.output.is_none() && output::is_closed() {
        message("warning", "standard output is closed, or nobody keeps it: the rows are lost");
    }
    let major = dir.control().version.major();
    let text = sources.settings(major, &plans, &database)?;
    let options = options(args, settings, text);
    let watch = Arc::new(Watch::new(interrupt, global));
    let Chosen { tasks, outputs, present, exit, lock: _lock } = chosen;
    let observer = Arc::clone(&watch) as _;
    let outcome = copy(engine.pool(), &database, tasks, outputs, options, observer);
    watch.clear();
    instance::report_fallbacks(&aio.method_status().fallbacks[said..]);
    let report = outcome.map_err(|error| failure(error, args, &dir))?;
    dir.recheck()?;
    report_findings(&report);
    report_gone(&report);
    pooled::report_warnings(&report.warnings, report.warnings_lost);
    let method = aio.method_status().used.name();
    let shown = Shown { report: &report, method, direct: settings.io_direct_data(), present };
    if args.output.is_some() && global.json {
        print_json(&shown.json())?;
    } else if args.output.is_some() {
        print(&shown.text())?;
    }
    let known = catalog.faults().is_empty() && database.faults().is_empty();
    let whole = known && sources.whole && partial == 0;
    let exit = if report.findings_total == 0 && whole { exit } else { Exit::Findings };
    Ok(watch.ended(report.end, exit))
}

/// Says which files end within a page, and how many do: a server passes over that page.
fn warn_of_partial(plans: &[&Plan]) -> usize {
    let found: Vec<_> = plans.iter().flat_map(|plan| plan.partial_files()).collect();
    for (path, bytes) in &found {
        let path = path.display();
        let text = "its last page was cut off, and rows may be missing";
        message("warning", format_args!("\"{path}\" has {bytes} bytes: {text}"));
    }
    found.len()
}

fn options(
    args: &CopyArgs,
    settings: &Settings,
    text: trunkline_engine::copy::TextSettings,
) -> CopyOptions {
    let all = args.rows == RowsArg::All;
    let threads = || u32::try_from(thread::available_parallelism()).unwrap_or(1);
    CopyOptions {
        format: match args.format {
            FormatArg::Text => Format::Text,
            FormatArg::Csv => Format::Csv,
        },
        header: args.header,
        extras: Extras { ctid: args.ctid, state: all },
        rows: if all { RowFilter::All } else { RowFilter::Visible },
        keep_going: args.keep_going,
        threads: if args.all { args.jobs.unwrap_or_else(threads) } else { 1 },
        ..CopyOptions::of(settings, text)
    }
}

/// The tables to copy, and where to.
fn choose(
    args: &CopyArgs,
    dir: &DataDir,
    database: &Database,
    sources: &Sources<'_>,
    backend: &mut Backend,
) -> Result<Chosen, Failure> {
    if let Some(directory) = args.output.as_deref().filter(|_| args.all) {
        return choose_all(args, directory, dir, database, sources, backend);
    }
    let name = args.table.as_deref().map(files::bytes).unwrap_or_default();
    let relation = database.resolve(name);
    let relation = relation.map_err(|error| encoded(error.into(), name, database))?;
    let mut wanted = Vec::new();
    for text in &args.columns {
        for name in names_of(files::bytes(text)) {
            wanted.push(column_name(name)?);
        }
    }
    let names = columns(args, database, relation, &wanted).map_err(|error| {
        let other = wanted.iter().find(|name| !name.is_ascii());
        encoded(refused(error), other.map_or(&[], |name| name), database)
    })?;
    let tables = match args.only {
        true => vec![relation],
        false => database.leaves(relation),
    };
    let (mut plans, mut exit) = (Vec::new(), Exit::Good);
    // A partitioned table has no rows of its own.
    for table in tables.into_iter().filter(|table| !table.is_partitioned()) {
        if table.persistence == Persistence::Temporary && relation.persistence != table.persistence
        {
            let name = database.qualified_name(table);
            let text = "was another session's temporary table, which no query of the parent sees";
            message("note", format_args!("{name} {text}; it is left out"));
            continue;
        }
        match Plan::new(database, backend, table, &names.shown) {
            Ok(plan) => plans.push(plan),
            // The others have rows.
            Err(PlanError::Catalog(error @ CatalogError::NotReadable { .. }))
                if table.oid != relation.oid =>
            {
                if !args.keep_going {
                    return Err(Failure::from(error).with_hint(OTHERS));
                }
                message("warning", format_args!("{error}; its rows are left out"));
                exit = Exit::Findings;
            }
            Err(error) => return Err(refused(error)),
        }
    }
    let outputs: Arc<dyn Outputs> = match &args.output {
        Some(path) => Arc::new(Files(vec![path.clone()])),
        None => Arc::new(Stdout),
    };
    Ok(Chosen { tasks: vec![CopyTask { plans }], outputs, present: 0, exit, lock: None })
}

/// Every table that has rows, each by itself, but for those whose files are there.
fn choose_all(
    args: &CopyArgs,
    directory: &Path,
    dir: &DataDir,
    database: &Database,
    sources: &Sources<'_>,
    backend: &mut Backend,
) -> Result<Chosen, Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::cannot_run(format_args!("\"{}\": {error}", path.display()))
    };
    let contents = manifest(args, dir, database, sources);
    let lock = Directory::open(directory, &contents).map_err(|error| {
        let shown = directory.display();
        match error {
            DirectoryError::Io(error) => failed(directory, error),
            DirectoryError::Busy => {
                Failure::cannot_run(format_args!("another copy is writing to \"{shown}\""))
                    .with_hint("wait until it has ended, or use another directory")
            }
            DirectoryError::Other => {
                Failure::usage(format!("\"{shown}\" has copies of something else"))
                    .with_hint("another cluster, database or other options: use another directory")
            }
        }
    })?;
    let extension = match args.format {
        FormatArg::Text => "copy",
        FormatArg::Csv => "csv",
    };
    let (mut tasks, mut paths, mut present, mut exit) = (Vec::new(), Vec::new(), 0, Exit::Good);
    for table in database.relations() {
        let schema = database.schema_name(table);
        let has_rows = matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView);
        let is_system = schema.starts_with(b"pg_") || schema == b"information_schema";
        if table.kind == RelationKind::ForeignTable
            && let Err(error) = database.table_files(table)
        {
            message("note", format_args!("{error}; it is left out"));
        }
        if !has_rows || is_system {
            continue;
        }
        let path = directory.join(files::file_name(&schema, &table.name, table.oid, extension));
        if path.try_exists().map_err(|error| failed(&path, error))? {
            present += 1;
            continue;
        }
        let planned = columns(args, database, table, &[])
            .and_then(|names| Plan::new(database, backend, table, &names.shown));
        match planned {
            Ok(plan) => {
                tasks.push(CopyTask { plans: vec![plan] });
                paths.push(path);
            }
            // It has no rows that anybody lost.
            Err(error @ PlanError::NotPopulated { .. }) => message("note", error),
            // The others can be had.
            Err(error) => {
                let hint = alone(&error, database, table);
                let failure = refused(error);
                hint.into_iter().fold(failure, Failure::with_hint).report();
                exit = Exit::Findings;
            }
        }
    }
    Ok(Chosen { tasks, outputs: Arc::new(Files(paths)), present, exit, lock: Some(lock) })
}

/// How to get at the other columns of a table with one whose type is not known here.
fn alone(error: &PlanError, database: &Database, table: &RelationInfo) -> Option<String> {
    let PlanError::Type { table: name, .. } = error else { return None };
    let names = printable(database, table).into_iter();
    let names: Vec<String> = names.map(|name| quoted(&name)).collect();
    let names = names.join(",").replace('\'', "'\\''");
    let name = name.replace('\'', "'\\''");
    (!names.is_empty())
        .then(|| format!("its other columns can be had alone: copy '{name}' --columns '{names}'"))
}

/// What a directory has copies of. The cluster may have run in between: its checkpoint tells.
fn manifest(args: &CopyArgs, dir: &DataDir, database: &Database, sources: &Sources<'_>) -> String {
    let control = dir.control();
    let database = String::from_utf8_lossy(&database.info().name);
    let CopyArgs { ctid, header, format, rows, .. } = args;
    format!(
        "system identifier {}\ncheckpoint {}\ndatabase {database}\nctid {ctid}, header {header}, \
         format {format:?}, rows {rows:?}\n{}",
        control.system_identifier,
        control.checkpoint.redo,
        sources.shown(),
    )
}

/// Why the catalog cannot be read, and the way round it.
fn damaged(error: CatalogError, dir: &DataDir) -> Failure {
    let is_passed_over = error.is_damage();
    let failure = cluster::unread(error, dir);
    match is_passed_over {
        true => failure.with_hint(KEEP_GOING),
        false => failure,
    }
}

fn refused(error: PlanError) -> Failure {
    let hint = error.hint();
    let failure = match error {
        PlanError::Catalog(error) => return error.into(),
        other => Failure::usage(other),
    };
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

fn failure(error: CopyError, args: &CopyArgs, dir: &DataDir) -> Failure {
    match error {
        CopyError::Output { source, .. } if args.output.is_none() => Failure::output(&source),
        CopyError::Output { .. } => Failure::cannot_run(error),
        CopyError::Job(error) => error.into(),
        CopyError::Finding { ref finding, .. } => match finding.storage() {
            Some(storage) if let Some(target) = dir.dangling_link(storage.path()) => {
                Failure::cannot_run(&error).with_hint(verify::elsewhere(&target))
            }
            // Nothing is known to be damaged.
            Some(storage) if let Some(hint) = storage.hint() => {
                Failure::cannot_run(&error).with_hint(hint)
            }
            _ => Failure::findings(&error).with_hint(KEEP_GOING),
        },
    }
}
