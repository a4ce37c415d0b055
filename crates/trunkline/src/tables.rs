//! `trunkline tables`: lists databases or relations, like `\l+` and `\d+` of psql.
//!
//! ```text
//!   tables -D DIR                    databases
//!   tables -D DIR -d bench           relations, without catalogs, indexes and TOAST tables
//!   tables -D DIR -d bench --all     all relations
//!   tables -D DIR -d bench --cached --sort cached    what is in the page cache
//! ```
//! The row counts are the planner's estimates from `pg_class.reltuples`, because we'd have to read
//! every page to count the rows. Sizes are file sizes. As in `pg_table_size`, the size of a table
//! includes all forks, the TOAST table and the TOAST index, but not the table's own indexes. If files
//! are missing or can't be read, the list says so instead of showing a smaller size.
//!
//! `--cached` must not change what it shows. We measure before we read the catalogs, and read them
//! with direct I/O, which leaves nothing in the page cache.

mod databases;
mod listing;
mod relations;
mod sizes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::Database;
use trunkline_engine::datadir::{DataDir, Problem, ProblemKind};
use trunkline_engine::settings::Settings;

use crate::catalog_session::CatalogSession;
use crate::data_dir::{self, relative};
use crate::encoding::{SHARED_CATALOG_ENCODING, shown_name};
use crate::exit::{Exit, Failure, first_warnings, message};
use crate::io_instance::IoInstance;
use crate::options::{Context, DatabaseArgs};
use crate::output::{object, print_report, table};
use databases::{DATABASE_COLUMNS, databases};
use listing::{Listing, SortKey, columns};
use relations::{RELATION_COLUMNS, relations};
use sizes::Sizes;

/// Buffers of the I/O instance that only opens files.
const BUFFERS_MIN: u32 = 16;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct TablesArgs {
    /// Database whose tables to list [default: $PGDATABASE, or else list the databases].
    #[arg(short = 'd', long, value_name = "DATABASE")]
    dbname: Option<OsString>,

    /// List the databases, even if PGDATABASE is set.
    #[arg(short = 'l', long, conflicts_with_all = ["dbname", "all"])]
    list: bool,

    /// Also list catalogs, indexes, TOAST tables and composite types.
    #[arg(long)]
    all: bool,

    /// Order of the list; sizes and numbers of rows from the largest down.
    #[arg(long, value_enum, value_name = "KEY", default_value = "name")]
    sort: SortKey,

    /// Show how much of each relation is in the operating system's page cache. Nothing is loaded
    /// into the cache by this command.
    #[arg(long)]
    cached: bool,
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &TablesArgs) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    let name = args.dbname.clone().map(OsString::into_vec);
    let default = DatabaseArgs::default_name().filter(|_| name.is_none() && !args.list);
    // The JSON report contains the name.
    if let Some(name) = default.as_ref().filter(|_| !global.json) {
        let name = shown_name(name, SHARED_CATALOG_ENCODING);
        message("note", format_args!("PGDATABASE selects the database {name:?}; --list lists all"));
    }
    let name = name.or(default);
    args.check(name.is_some())?;
    let dir = data_dir::open(context)?;
    let mut sizes = Sizes::of(&dir, args.measuring_io(settings)?.as_ref().map(IoInstance::aio))?;
    let (session, database) = args.read_catalogs(&dir, settings, name.as_deref())?;
    sizes.compare_tablespaces(&session.catalog);
    let listing = Listing { sort: args.sort, cached: args.cached };
    let Some(database) = database else {
        let databases = databases(&session.catalog, &sizes, listing);
        dir.recheck()?;
        let json = object! { schema: 1, command: "tables", databases: &databases };
        let columns = columns(&DATABASE_COLUMNS, args.cached);
        print_report(global, &json, || table(&databases, &columns))?;
        let infos = session.catalog.databases().iter();
        let problems = infos.flat_map(|info| sizes.problems_of(info));
        let lines = databases.iter().map(|line| (line.is_damaged(), line.bytes));
        let damage = Damage::of(lines, session.catalog.faults().len());
        return exit(&dir, problems, &damage);
    };
    let relations = relations(&database, &dir, &sizes, args.all, listing);
    dir.recheck()?;
    let name = shown_name(&database.info().name, SHARED_CATALOG_ENCODING);
    let json = object! { schema: 1, command: "tables", database: name, relations: &relations };
    let columns = columns(&RELATION_COLUMNS, args.cached);
    print_report(global, &json, || table(&relations, &columns))?;
    let lines = relations.iter().map(|line| (line.incomplete, line.bytes));
    let damage = Damage::of(lines, session.catalog.faults().len() + database.faults().len());
    exit(&dir, sizes.problems_of(database.info()), &damage)
}

/// How much is wrong with what a list shows.
struct Damage {
    /// Lines with something missing or unreadable.
    lines: usize,
    /// Those of them whose main file or directory doesn't exist.
    missing: usize,
    /// Damage in the catalogs.
    faults: usize,
}

impl Damage {
    /// `lines` says of each line whether something is missing, and its size if its main file or
    /// directory exists.
    fn of(lines: impl Iterator<Item = (bool, Option<u64>)>, faults: usize) -> Self {
        let sizes = lines.filter(|(is_damaged, _)| *is_damaged).map(|(_, size)| size);
        let sizes: Vec<Option<u64>> = sizes.collect();
        let missing = sizes.iter().filter(|size| size.is_none()).count();
        Self { lines: sizes.len(), missing, faults }
    }
}

impl TablesArgs {
    fn check(&self, has_database: bool) -> Result<(), Failure> {
        let hint = "use -d DATABASE, or set PGDATABASE";
        if self.all && !has_database {
            return Err(Failure::usage("--all requires a database").with_hint(hint));
        }
        if self.sort == SortKey::Rows && !has_database {
            return Err(Failure::usage("databases have no number of rows").with_hint(hint));
        }
        if self.sort == SortKey::Cached && !self.cached {
            return Err(Failure::usage("--sort cached requires --cached"));
        }
        Ok(())
    }

    /// The I/O instance that opens files to measure what is cached, if that is requested.
    fn measuring_io(&self, settings: &Settings) -> Result<Option<IoInstance>, Failure> {
        if !self.cached {
            return Ok(None);
        }
        let mut own = settings.clone();
        own.set("io_method", "sync")?;
        Ok(Some(IoInstance::for_pool(&own, BUFFERS_MIN, 0)?))
    }

    /// Reads the shared catalogs, and those of a database if it has a name.
    fn read_catalogs(
        &self,
        dir: &DataDir,
        settings: &Settings,
        name: Option<&[u8]>,
    ) -> Result<(CatalogSession, Option<Arc<Database>>), Failure> {
        let read = |settings: &Settings| {
            let mut session = CatalogSession::open(dir, settings)?;
            let database = name.map(|name| session.database(name)).transpose()?;
            Ok((session, database))
        };
        if !self.cached || settings.io_direct_data() {
            return read(settings);
        }
        let mut direct = settings.clone();
        direct.set("io_direct", "data")?;
        read(&direct).or_else(|failure: Failure| {
            if !failure.is_of_direct_io() {
                return Err(failure);
            }
            let catalogs = read(settings)?;
            let text = "the file system does not support direct I/O: the catalogs are now in the \
                        page cache, which is not counted";
            message("note", text);
            Ok(catalogs)
        })
    }
}

/// Warns of the files and directories because of which sizes are unknown. If some of them can't be
/// read, we don't know whether anything is wrong with the data. Otherwise, it counts as a finding if
/// something is missing, or if we had to skip a damaged catalog row.
fn exit<'p>(
    dir: &DataDir,
    problems: impl Iterator<Item = &'p Problem>,
    damage: &Damage,
) -> Result<Exit, Failure> {
    // A problem may concern several databases.
    let problems: BTreeMap<&Path, &ProblemKind> =
        problems.map(|problem| (&*problem.path, &problem.kind)).collect();
    let named =
        |(path, kind): (&&Path, &&ProblemKind)| format!("{}: {kind}", relative(path, dir.path()));
    first_warnings(problems.iter().map(named));
    let denied = problems.values().filter(|kind| kind.is_denied()).count();
    match denied {
        0 if damage.lines + damage.faults > 0 => Ok(Exit::Findings),
        0 => Ok(Exit::Good),
        denied => {
            // A line may be incomplete only because of the files that we lack the permission for.
            let others = problems.len() - denied + damage.missing + damage.faults;
            Err(Failure::denied(denied as u64, others as u64))
        }
    }
}
