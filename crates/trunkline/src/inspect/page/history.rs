//! `inspect page --history`: the records of the log that are about one page.
//!
//! ```text
//!   replayed ─▶ its log, from where replay starts to where it ends   ╮
//!   else ─────▶ pg_wal and --wal, from the oldest segment on         ├─▶ effects ─▶ lines
//! ```
//! A record belongs to the history if replay applies it to the page, or if it creates, cuts off or removes
//! the page's file. The lines are those of `inspect wal`, and those of the records that rebuild the page
//! are marked: all from the last image or initialisation on, or if there is none, those that replay
//! applies to the page of the file.
//!
//! Without a replay, the log is read twice, since the first mark depends on what follows.

use std::collections::BTreeSet;

use trunkline_engine::datadir::read_control_file;
use trunkline_engine::log_files::LogFiles;
use trunkline_engine::replay::{PageEffect, Replay, page_effects};
use trunkline_format::Lsn;
use trunkline_format::wal::{LogEvent, LogReader, LogRecord};

use super::super::wal::{Names, PageMark, Printer};
use super::address::PageAddress;
use super::place::Place;
use super::source;
use crate::data_dir;
use crate::exit::{Exit, Failure, message};
use crate::log_reading::{Stop, TornEnd, note_overwritten, read};
use crate::options::Context;

/// The part of the log that is read.
struct Log<'p> {
    files: &'p LogFiles,
    from: Lsn,
    /// The end of the replay. `None` without one: then the log is read to its end.
    to: Option<Lsn>,
}

/// Which records rebuild the page.
enum Chain {
    /// These.
    Listed { places: BTreeSet<Lsn>, requires_base: bool },
    /// Those that change the page, from this one on.
    From(Lsn),
    /// The log has neither an image nor an initialisation, and nothing is replayed.
    Unknown,
}

/// What was printed.
#[derive(Debug, Default)]
struct Counts {
    records: u64,
    marked: u64,
    /// Whether a record can't be decoded.
    is_undecoded: bool,
}

pub(super) fn run(
    context: &Context<'_>,
    place: Option<Place>,
    mut address: PageAddress,
) -> Result<Exit, Failure> {
    let Some(place) = place else {
        let path = address.path.display();
        let text = format!("\"{path}\" is not a relation file of a data directory");
        return Err(Failure::usage(text).with_hint("--history needs its log: use -D DIR"));
    };
    let mut place = place.of_origin(context)?;
    let mut failure = place.failure.take();
    let replay = place.dir.as_ref().and_then(|dir| dir.replay());
    let found;
    let log = match replay {
        Some(replay) => {
            let report = replay.report();
            Log { files: replay.log_files(), from: report.start, to: Some(report.end) }
        }
        None => {
            // A log that can't be replayed has a gap, or something else that is wrong behind this place.
            let opened = find_log(context, &place, failure.is_some());
            found = opened.map_err(|error| failure.take().unwrap_or(error))?;
            Log { files: &found.1, from: found.0, to: None }
        }
    };
    let chain = match replay {
        Some(replay) => {
            let records = replay.records(&place.key, address.block).map_err(Failure::cannot_run)?;
            let requires_base = records.requires_base;
            Chain::Listed { places: records.places.into_iter().collect(), requires_base }
        }
        None => log.find_chain(&place, &address)?,
    };
    let (counts, stop) = print(context, &log, &place, &address, &chain)?;
    let fork = if place.key.1 == address.fork { "" } else { "the _init fork of " };
    let page = format!("block {} of {fork}\"{}\"", address.block, address.path.display());
    if counts.records == 0 {
        // Then the block may be a wrong one.
        source::read(context, Some(&place), &mut address)?;
    }
    let records = match counts.records {
        0 => "no record".to_owned(),
        1 => "1 record".to_owned(),
        count => format!("{count} records"),
    };
    let meaning = chain.meaning(&counts, context.global.json);
    message("note", format_args!("{records} of {page} from {} on{meaning}", log.from));
    let exit = match stop {
        // The replay has judged the end of the log.
        None => Exit::Good,
        Some(stop) => {
            let control = read_control_file(&place.root.join("global/pg_control"))?;
            stop.verdict(None, log.files, &TornEnd::of_cluster(&place.root, &control))?
        }
    };
    failure.map_or(Ok(exit), Err)
}

/// Prints the records of the page.
fn print(
    context: &Context<'_>,
    log: &Log<'_>,
    place: &Place,
    address: &PageAddress,
    chain: &Chain,
) -> Result<(Counts, Option<Stop>), Failure> {
    let mut names = match &place.dir {
        Some(dir) => Names::of(dir, &context.settings),
        None => Names::unknown(),
    };
    let mut printer = Printer::new(context.global.json);
    let mut counts = Counts::default();
    let stop = log.each(&mut |event| {
        let record = match event {
            LogEvent::Record(record) => record,
            LogEvent::Overwritten { record, page } => {
                note_overwritten(record, page);
                return Ok(());
            }
            LogEvent::End(_) => return Ok(()),
        };
        let effects = match page_effects(&record, &place.key, address.block) {
            Ok(effects) => effects,
            Err(error) => {
                if !std::mem::replace(&mut counts.is_undecoded, true) {
                    let text = "it may create or remove files, and so may others";
                    let place = record.start;
                    message("warning", format_args!("the record at {place}: {error}; {text}"));
                }
                return Ok(());
            }
        };
        if effects.is_empty() {
            return Ok(());
        }
        let rebuilds = chain.contains(&record, &effects);
        counts.records += 1;
        counts.marked += u64::from(rebuilds);
        printer.print(&record, &mut names, Some(&PageMark { effects: &effects, rebuilds }))
    })?;
    printer.finish()?;
    Ok((counts, stop))
}

/// The log of a directory that isn't replayed: from where a replay would start, or from the oldest segment on.
fn find_log(
    context: &Context<'_>,
    place: &Place,
    from_redo: bool,
) -> Result<(Lsn, LogFiles), Failure> {
    let control = read_control_file(&place.root.join("global/pg_control"))?;
    let options = data_dir::replay_options(context, &place.root)?;
    let log = Replay::find_log(&place.root, &control, &options).map_err(Failure::cannot_run)?;
    let (start, files) = match log {
        Some((redo, files)) => (Some(redo).filter(|_| from_redo), files),
        None => {
            let mut folders = options.wal;
            folders.push(data_dir::resolve_link(&place.root.join("pg_wal")));
            (None, LogFiles::of_folders(&folders, None, Some(&control))?)
        }
    };
    Ok((files.start(start)?, files))
}

impl Log<'_> {
    /// Passes on what is found, and returns why reading has stopped before the end of the replay.
    fn each(
        &self,
        consume: &mut dyn FnMut(LogEvent<'_>) -> Result<(), Failure>,
    ) -> Result<Option<Stop>, Failure> {
        let mut reader = LogReader::new(self.files.identity(), self.from);
        let stop = read(&mut reader, self.files, self.to, consume)?;
        let is_reached = self.to.is_some_and(|to| reader.position() >= to);
        Ok((!is_reached).then_some(stop))
    }

    /// Finds the last record that makes the page from scratch, if the page wasn't cut off after it.
    fn find_chain(&self, place: &Place, address: &PageAddress) -> Result<Chain, Failure> {
        let mut chain = Chain::Unknown;
        self.each(&mut |event| {
            let LogEvent::Record(record) = event else { return Ok(()) };
            for effect in page_effects(&record, &place.key, address.block).unwrap_or_default() {
                if effect.is_from_scratch() {
                    chain = Chain::From(record.start);
                } else if !effect.is_change() {
                    chain = Chain::Unknown;
                }
            }
            Ok(())
        })?;
        Ok(chain)
    }
}

impl Chain {
    fn contains(&self, record: &LogRecord<'_>, effects: &[PageEffect]) -> bool {
        match self {
            Chain::Listed { places, .. } => places.contains(&record.start),
            Chain::From(first) => {
                record.start >= *first && effects.iter().any(|effect| effect.is_change())
            }
            Chain::Unknown => false,
        }
    }

    /// What the marks mean, for a message.
    fn meaning(&self, counts: &Counts, is_json: bool) -> String {
        let mark = if is_json { "with \"rebuilds\"" } else { "marked with *" };
        match self {
            _ if counts.records == 0 => String::new(),
            _ if counts.marked == 0 => "; they do not rebuild it".to_owned(),
            Chain::Listed { requires_base: true, .. } => {
                format!("; those {mark} are applied to the page of the file")
            }
            _ => format!("; those {mark} rebuild it"),
        }
    }
}
