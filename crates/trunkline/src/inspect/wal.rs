//! `trunkline inspect wal`: prints the records of the write-ahead log, as `pg_waldump` does.
//!
//! ```text
//!   -D DIR or FILE… ─▶ Segments ─▶ LogReader ─▶ Filter ─▶ lines, JSON or statistics
//!                       │                         │
//!                       timelines, gaps           names from the catalogs, if they can be read
//! ```
//! We read with plain file reads and look at nothing but the log, so a server may be running, and a
//! directory may have crashed. The format of the lines is that of `pg_waldump`, but relations have
//! names if the catalogs can be opened, which needs a cluster that was shut down. A name is that of
//! the relation which has the file now.
//!
//! **The end.** `pg_waldump` reports every end of a log as an error. We look at the reason: a log
//! may end where nothing was written yet, or where a recycled file has kept old pages, but only if
//! no later file continues it and the control file's checkpoint is not behind that place. Anything
//! else is a finding, with segment and position.

mod filter;
mod line;
mod lsn;
mod names;
mod segments;
mod statistics;
mod timelines;

use std::ffi::OsString;
use std::path::PathBuf;

use trunkline_format::Lsn;
use trunkline_format::wal::{LogChunk, LogEnd, LogEvent, LogReader, ResourceManager};

use crate::exit::{Exit, Failure, message};
use crate::number::number;
use crate::options::{Context, DatabaseArgs};
use filter::Filter;
use line::Printer;
use lsn::parse_lsn;
use names::Names;
use segments::Segments;
use statistics::{Grouping, Statistics};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct WalArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Segment files that follow each other, or a directory that contains them [default: pg_wal in
    /// the data directory].
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
    let mut segments = if args.files.is_empty() {
        Segments::of_cluster(context.global.require_pgdata()?, args.timeline)?
    } else {
        Segments::of_paths(&args.files, args.timeline)?
    };
    let mut names = Names::open(context, args.files.is_empty());
    let relation = match &args.relation {
        Some(relation) => Some(names::locate(context, &args.database, relation)?),
        None => None,
    };
    let filter = Filter { relation, xid: args.xid, managers: args.rmgr.clone() };
    let from = segments.start(args.from)?;
    let mut reader = LogReader::new(segments.identity(), from);
    let mut output = match args.stats {
        Some(grouping) => Output::Statistics(Statistics::new(grouping)),
        None => Output::Records(Printer::new(context.global.json)),
    };
    let stop = read(&mut reader, &mut segments, args.to, &mut |event| match event {
        LogEvent::Record(record) if filter.matches(&record) => match &mut output {
            Output::Records(printer) => printer.print(&record, &mut names),
            Output::Statistics(statistics) => {
                statistics.count(&record);
                Ok(())
            }
        },
        LogEvent::Overwritten { record, page } => {
            let text = "was cut off by a crash; the log continues at";
            message("note", format_args!("the record at {record} {text} {page}"));
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
    stop.verdict(args.to, &segments)
}

enum Output {
    Records(Printer),
    Statistics(Statistics),
}

/// Why reading ended.
enum Stop {
    /// A record at or after `--to`.
    Bound,
    /// The log has no next record.
    End(LogEnd),
    /// There is no file for the segment that contains this place. The last record may be cut.
    NoSegment { place: Lsn, cut: Option<Lsn> },
    /// The file ends before this place.
    CutFile { place: Lsn, length: u64 },
}

/// Passes on what the reader finds, up to the end.
fn read(
    reader: &mut LogReader,
    segments: &mut Segments,
    to: Option<Lsn>,
    consume: &mut dyn FnMut(LogEvent<'_>) -> Result<(), Failure>,
) -> Result<Stop, Failure> {
    let mut buffer = Vec::new();
    loop {
        let place = reader.wanted();
        // The end of a segment may be the bound: then the next one may be missing.
        if !reader.is_inside_record() && to.is_some_and(|to| reader.position() >= to) {
            return Ok(Stop::Bound);
        }
        let cut = reader.is_inside_record().then(|| reader.position());
        let Some(length) = segments.read(place, &mut buffer)? else {
            return Ok(Stop::NoSegment { place, cut });
        };
        let chunk = LogChunk { start: place, bytes: &buffer };
        if !chunk.has_page(place) {
            return Ok(Stop::CutFile { place, length });
        }
        while let Some(event) = reader.next(&chunk) {
            match event {
                LogEvent::Record(record) if to.is_some_and(|to| record.start >= to) => {
                    return Ok(Stop::Bound);
                }
                LogEvent::End(end) => return Ok(Stop::End(end)),
                event => consume(event)?,
            }
        }
    }
}

impl Stop {
    /// Whether the log may end like this.
    fn verdict(self, to: Option<Lsn>, segments: &Segments) -> Result<Exit, Failure> {
        let (record, place, reason, is_usual) = match self {
            Stop::Bound => return Ok(Exit::Good),
            Stop::End(end) => (end.record, end.place, end.reason.to_string(), {
                // A log that begins with an invalid page is none.
                end.reason.is_usual() && !segments.is_first_page(end.place)
            }),
            Stop::NoSegment { place, cut } => {
                let name = segments.name(place);
                let reason = format!("there is no segment {name}");
                (cut.unwrap_or(place), place, reason, true)
            }
            Stop::CutFile { place, length } => {
                let expected = segments.identity().segment_size.bytes();
                let reason = format!("the file has {length} bytes, expected {expected}");
                (place, place, reason, false)
            }
        };
        let at = format!("log ends at {record} in segment {}", segments.name(record));
        let page = format!(", on the page at {place} in segment {}", segments.name(place));
        let page = if record == place { "" } else { &*page };
        let text = format!("{at}{page}: {reason}");
        if !is_usual {
            return Err(Failure::findings(text));
        }
        if let Some(later) = segments.continues_after(place) {
            return Err(Failure::findings(format_args!("{text}; but it goes on in \"{later}\"")));
        }
        if let Some(checkpoint) = segments.checkpoint().filter(|checkpoint| record <= *checkpoint) {
            let text = format!("{text}; but the control file has a checkpoint at {checkpoint}");
            return Err(Failure::findings(text));
        }
        if let Some(to) = to {
            return Err(Failure::findings(format_args!("{text}; --to is {to}")));
        }
        message("note", text);
        Ok(Exit::Good)
    }
}
