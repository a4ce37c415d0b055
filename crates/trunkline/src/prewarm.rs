//! `trunkline prewarm`: relations nearer to who wants them, in `pg_prewarm`'s three ways.
//!
//! ```text
//!   prewarm -D DIR 5/16384                        the main fork of a relation into a buffer pool
//!   prewarm -D DIR 5/16384 --fork vm              its visibility map
//!   prewarm -D DIR 5/16384 --first 0 --last 99    its first hundred blocks
//!   prewarm -D DIR -d bench public.accounts       a table by its name
//!   prewarm -D DIR base/5/16384.1 --mode read     a file into the operating system's cache
//!   prewarm -D DIR --mode prefetch                everything there too, some time soon
//! ```
//! What is wrong with a file or a block goes to standard error by name, the rest goes on, and the
//! exit code says that there was something.

mod buffer;
mod cache;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use trunkline_engine::datadir::{DataDir, Problem, ProblemKind};
use trunkline_engine::prewarm::{Choice, Failures, Selection, select};
use trunkline_engine::settings::Settings;
use trunkline_format::Fork;

use crate::cli::Global;
use crate::cluster::{DatabaseArgs, Named};
use crate::exit::{Exit, Failure, message};
use crate::verify::{self, relative};

/// Where the pages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Into a buffer pool, each page checked; the pool ends with the command.
    Buffer,
    /// Into the operating system's cache, by reading, unchecked.
    Read,
    /// Into its cache too, but only asked for: the system reads when it likes.
    Prefetch,
}

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct PrewarmArgs {
    /// Relations such as 5/16384 (database, file number) or 1663/5/16384 (with the tablespace), and
    /// files such as base/5/16384.1, relative to the data directory or inside it; everything if none
    /// is named.
    ///
    /// With -d names are those of SQL: schema.table, in capitals only within double quotes; without,
    /// database.schema.table is one too. A partitioned table is its partitions.
    #[arg(value_name = "RELATION|FILE")]
    names: Vec<PathBuf>,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Where the pages go.
    #[arg(long, value_enum, default_value = "buffer")]
    mode: Mode,

    /// The relations' fork: main, fsm, vm or init [default: main; every fork if no relation is
    /// named].
    #[arg(long, value_parser = parse_fork)]
    fork: Option<Fork>,

    /// The first block of each relation [default: 0].
    #[arg(long, value_name = "BLOCK", allow_negative_numbers = true)]
    first: Option<i64>,

    /// The last block of each relation [default: its last].
    #[arg(long, value_name = "BLOCK", allow_negative_numbers = true)]
    last: Option<i64>,
}

/// PostgreSQL's names of forks.
fn parse_fork(text: &str) -> Result<Fork, &'static str> {
    let found = Fork::ALL.into_iter().find(|fork| fork.to_string() == text);
    found.ok_or("invalid fork name; valid fork names are main, fsm, vm and init")
}

/// Runs the command.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    args: &PrewarmArgs,
) -> Result<Exit, Failure> {
    if settings.io_direct_data() {
        let text = match args.mode {
            Mode::Buffer => None,
            Mode::Read => Some("direct reads leave nothing in the cache that mode \"read\" fills"),
            Mode::Prefetch => Some("prefetch is not supported with direct I/O"),
        };
        if let Some(text) = text {
            return Err(Failure::usage(text).with_hint("leave io_direct empty"));
        }
    }
    let dir = verify::open(global)?;
    let mut choice =
        Choice { fork: args.fork, first: args.first, last: args.last, ..Choice::default() };
    let chosen = match Named::of(&dir, settings, &args.database, &args.names)? {
        // A choice of no names is one of everything.
        Named::These(names) if names.is_empty() => Selection::default(),
        named => {
            match named {
                Named::Everything => {}
                Named::Database(database) => choice.database = Some(database),
                Named::These(names) => choice.names = names,
            }
            select(&dir, &choice)?
        }
    };
    report_problems(&chosen.problems, &dir);
    let trouble = chosen.problems.iter().any(|problem| problem.kind.is_finding());
    let otherwise = if trouble { Exit::Findings } else { Exit::Good };
    match args.mode {
        Mode::Buffer => buffer::run(global, settings, &dir, chosen.targets, otherwise),
        Mode::Read => cache::read(global, settings, &dir, &chosen.targets, otherwise),
        Mode::Prefetch => cache::prefetch(global, settings, &dir, chosen.targets, otherwise),
    }
}

fn report_problems(problems: &[Problem], dir: &DataDir) {
    for problem in problems {
        let path = relative(&problem.path, dir.path());
        message("warning", format_args!("{path}: {}", problem.kind));
        if let ProblemKind::Dangling { target } = &problem.kind {
            message("hint", verify::elsewhere(target));
        }
    }
}

/// Says what could not be had.
fn report_failures(failures: &Failures, root: &Path) {
    for (path, text) in &failures.listed {
        message("warning", format_args!("{}: {text}", relative(path, root)));
    }
    let omitted = failures.total - failures.listed.len() as u64;
    if omitted > 0 {
        message("warning", format_args!("… and {omitted} more"));
    }
}
