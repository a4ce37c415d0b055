//! `trunkline inspect wal`: prints the records of the write-ahead log, as `pg_waldump` does.
//!
//! ```text
//!   -D DIR or FILE… ─▶ LogFiles ─▶ LogReader ─▶ Filter ─▶ lines, JSON or statistics
//!                       │                         │
//!                       timelines, gaps           names from the catalogs, if they can be read
//! ```
//! We read the log with plain file reads, so a server may be running. The format of the lines is that
//! of `pg_waldump`. The descriptions of Gin, Gist, SPGist, BRIN, Hash and CommitTs records, and of a few
//! rarer kinds, differ: we don't decode those, and print the lengths of their data. Relations have names
//! if the catalogs can be opened, for which the log of a cluster that was not shut down is replayed
//! first. A name is that of the relation which has the file at the end of the log.
//!
//! Which end of a log is a finding: see [`crate::log_reading`].

mod filter;
mod line;
mod lsn;
mod names;
mod statistics;

use std::ffi::OsString;
use std::path::PathBuf;

use trunkline_engine::log_files::{LogFiles, LogFilesError};
use trunkline_format::Lsn;
use trunkline_format::wal::{LogEvent, LogReader, ResourceManager};

use crate::exit::{Exit, Failure};
use crate::log_reading::{ClusterLog, TornEnd, note_overwritten, of_cluster, read};
use crate::number::number;
use crate::options::{Context, DatabaseArgs};
use crate::replay_options::ARCHIVE;
use filter::Filter;
pub(super) use line::{PageMark, Printer};
use lsn::parse_lsn;
pub(super) use names::Names;
use statistics::{Grouping, Statistics};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct WalArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Segment files that follow each other, or a directory that contains them [default: those of
    /// --wal, and then pg_wal in the data directory].
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,

    /// Start with the first record at or after this position [default: the first record].
    #[arg(long, value_name = "LSN", value_parser = parse_lsn)]
    from: Option<Lsn>,

    /// Stop before the first record at or after this position [default: the end of the log].
    #[arg(long, value_name = "LSN", value_parser = parse_lsn)]
    to: Option<Lsn>,

    /// Timeline to follow; older ones only where its history says so [default: that of the control
    /// file, or else the newest].
    #[arg(long, value_name = "TIMELINE", value_parser = number(1..=u32::MAX))]
    timeline: Option<u32>,

    /// Print only records that change a block of this relation: a name, or file numbers such as
    /// 5/16384 or 1663/5/16384.
    #[arg(long, value_name = "RELATION")]
    relation: Option<OsString>,

    /// Print only records of this transaction.
    #[arg(long, value_name = "XID", value_parser = number(0..=u32::MAX))]
    xid: Option<u32>,

    /// Print only records of this resource manager, such as Heap or Btree. May be repeated.
    #[arg(long, value_name = "NAME", value_parser = parse_manager)]
    rmgr: Vec<ResourceManager>,

    /// Print only the number and size of records, by resource manager or by operation.
    #[arg(long, value_enum, value_name = "BY", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "rmgr")]
    stats: Option<Grouping>,
}

fn parse_manager(name: &str) -> Result<ResourceManager, String> {
    ResourceManager::find(name).ok_or_else(|| {
        let names: Vec<String> = ResourceManager::all().map(|known| known.to_string()).collect();
        format!("expected one of {}, or custom128 to custom255", names.join(", "))
    })
}

pub(super) fn run(context: &Context<'_>, args: &WalArgs) -> Result<Exit, Failure> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && to < from
    {
        return Err(Failure::usage(format_args!("--to {to} is before --from {from}")));
    }
    let ClusterLog { files: segments, torn } = open_log(context, args)?;
    let (relation, dir) = match &args.relation {
        Some(relation) => {
            let (locator, dir) = names::locate(context, &args.database, relation)?;
            (Some(locator), dir)
        }
        None => (None, None),
    };
    // A log that lies elsewhere has numbers of its own, so its relations get names only if the data
    // directory was named with the log. Statistics show no relations.
    let mut names = match args.files.is_empty() && args.stats.is_none() {
        true => Names::open(context, dir)?,
        false => Names::unknown(),
    };
    let filter = Filter { relation, xid: args.xid, managers: args.rmgr.clone() };
    let from = segments.start(args.from)?;
    let mut reader = LogReader::new(segments.identity(), from);
    let mut output = match args.stats {
        Some(grouping) => Output::Statistics(Statistics::new(grouping)),
        None => Output::Records(Printer::new(context.global.json)),
    };
    let stop = read(&mut reader, &segments, args.to, &mut |event| match event {
        LogEvent::Record(record) if filter.matches(&record) => match &mut output {
            Output::Records(printer) => printer.print(&record, &mut names, None),
            Output::Statistics(statistics) => {
                statistics.count(&record);
                Ok(())
            }
        },
        LogEvent::Overwritten { record, page } => {
            note_overwritten(record, page);
            Ok(())
        }
        LogEvent::Record(_) | LogEvent::End(_) => Ok(()),
    })?;
    match output {
        Output::Records(printer) => printer.finish()?,
        Output::Statistics(statistics) => {
            statistics.print(context.global, from, reader.position())?;
        }
    }
    stop.verdict(args.to, &segments, &torn)
}

/// The log of the data directory, or the files that were named.
fn open_log(context: &Context<'_>, args: &WalArgs) -> Result<ClusterLog, Failure> {
    let archives = context.global.replay.archives();
    if args.files.is_empty() {
        return of_cluster(context.global.require_pgdata()?, archives, args.timeline);
    }
    if !archives.is_empty() {
        let text = format!("{ARCHIVE} can't be used with FILE or DIR, which are all that is read");
        return Err(Failure::usage(text));
    }
    let files = LogFiles::of_paths(&args.files, args.timeline).map_err(|error| match error {
        LogFilesError::Directory { .. } => {
            Failure::usage(error).with_hint("name one directory, or segment files")
        }
        error => error.into(),
    })?;
    Ok(ClusterLog { files, torn: TornEnd::Nowhere })
}

enum Output {
    Records(Printer),
    Statistics(Statistics),
}
