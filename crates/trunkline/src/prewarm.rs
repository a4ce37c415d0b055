//! `trunkline prewarm`: loads relations into a cache, in the three modes of `pg_prewarm`.
//!
//! ```text
//!   prewarm -D DIR 5/16384                        the main fork of a relation into a buffer pool
//!   prewarm -D DIR 5/16384 --fork vm              its visibility map
//!   prewarm -D DIR 5/16384 --first 0 --last 99    its first hundred blocks
//!   prewarm -D DIR -d bench public.accounts       a table by name
//!   prewarm -D DIR base/5/16384.1 --mode read     a file into the operating system's cache
//!   prewarm -D DIR --mode prefetch                everything, read by the kernel in the background
//! ```
//! If a file or block is damaged or can't be read, we print a warning and go on loading the
//! remaining blocks. The exit code is [`Exit::Findings`] in that case. Pages of a crashed directory that
//! only a server can replay are warnings too, but not findings.

mod buffer;
mod cache;
mod failures;

use std::path::PathBuf;

use clap::ValueEnum;
use trunkline_engine::datadir::{DataDir, Problem, ProblemKind};
use trunkline_engine::prewarm::{Choice, Selection, View, select};
use trunkline_format::Fork;

use crate::data_dir::{self, moved_tablespace_hint, relative};
use crate::exit::{Exit, Failure, message};
use crate::named_files::FileSelection;
use crate::number::number;
use crate::options::{Context, DatabaseArgs, fork};

/// Which cache to load, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Read into a buffer pool and check every page; the pool goes away when the command ends.
    Buffer,
    /// Read into the operating system's cache, without checking pages.
    Read,
    /// Ask the operating system to load the blocks into its cache in the background.
    Prefetch,
}

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct PrewarmArgs {
    /// Relations, such as 5/16384 (database OID and file number) or 1663/5/16384 (with the
    /// tablespace OID), or files, such as base/5/16384.1 [default: everything].
    ///
    /// With -d, names are SQL names such as schema.table, and names with upper case letters must be
    /// quoted. Without -d, database.schema.table is also accepted. If a partitioned table is named,
    /// its partitions are loaded.
    #[arg(value_name = "RELATION|FILE")]
    names: Vec<PathBuf>,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Which cache to load, and how.
    #[arg(long, value_enum, default_value = "buffer")]
    mode: Mode,

    /// Fork to load [default: main, or every fork if no relation is named].
    #[arg(long, value_parser = fork())]
    fork: Option<Fork>,

    /// First block of each relation [default: 0].
    #[arg(long, value_name = "BLOCK", allow_negative_numbers = true,
        value_parser = number(i64::MIN..=i64::MAX))]
    first: Option<i64>,

    /// Last block of each relation [default: the last one].
    #[arg(long, value_name = "BLOCK", allow_negative_numbers = true,
        value_parser = number(i64::MIN..=i64::MAX))]
    last: Option<i64>,
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &PrewarmArgs) -> Result<Exit, Failure> {
    let Context { settings, .. } = context;
    if settings.io_direct_data() {
        let text = match args.mode {
            Mode::Buffer => None,
            Mode::Read => Some("mode \"read\" is not supported with direct I/O"),
            Mode::Prefetch => Some("mode \"prefetch\" is not supported with direct I/O"),
        };
        if let Some(text) = text {
            let hint = "direct I/O bypasses the cache that this mode fills; leave io_direct empty";
            return Err(Failure::usage(text).with_hint(hint));
        }
    }
    let dir = data_dir::open(context)?;
    let view = match args.mode {
        Mode::Buffer => View::EndOfLog,
        Mode::Read | Mode::Prefetch => View::InFiles,
    };
    let Choice { names, database, .. } = Choice::default();
    let mut choice =
        Choice { view, names, database, fork: args.fork, first: args.first, last: args.last };
    let files = FileSelection::resolve(&dir, settings, &args.database, &args.names, args.fork)?;
    let selection = match files {
        // We can't pass an empty list to `select`, because that means everything.
        FileSelection::Listed(names) if names.is_empty() => Selection::default(),
        files => {
            match files {
                FileSelection::Everything => {}
                FileSelection::Database(database) => choice.database = Some(database),
                FileSelection::Listed(names) => choice.names = names,
            }
            select(&dir, &choice)?
        }
    };
    report_problems(&selection.problems, &dir);
    let has_findings = selection.problems.iter().any(|problem| problem.kind.is_finding());
    let exit = if has_findings { Exit::Findings } else { Exit::Good };
    match args.mode {
        Mode::Buffer => buffer::run(context, &dir, selection.targets, exit),
        Mode::Read => cache::run(context, &dir, true, selection.targets, exit),
        Mode::Prefetch => cache::run(context, &dir, false, selection.targets, exit),
    }
}

fn report_problems(problems: &[Problem], dir: &DataDir) {
    for problem in problems {
        let path = relative(&problem.path, dir.path());
        message("warning", format_args!("{path}: {}", problem.kind));
        if let ProblemKind::Dangling { target } = &problem.kind {
            message("hint", moved_tablespace_hint(target));
        }
    }
}
