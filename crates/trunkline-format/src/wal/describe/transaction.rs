//! Transaction records: commit, abort and prepare, and what standbys need of a transaction that is
//! still running.

use crate::control::PgVersion;
use crate::ids::Fork;
use crate::wal::fields::Fields;
use crate::wal::invalidation::Invalidation;
use crate::wal::locator::RelFileLocator;
use crate::wal::record::Record;
use crate::wal::transaction_end::{
    DroppedStatistics, OriginPosition, Outcome, PreparedTransaction, TransactionEnd,
};

use super::text::Text;
use super::time::Timestamp;

pub(super) fn describe(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    match record.header().operation() & 0x70 {
        0x00 | 0x20 | 0x30 | 0x40 => end(record, version, text)?,
        0x10 => prepared(record, version, text)?,
        0x50 => {
            let (top, count) = (fields.u32()?, fields.count()?);
            let subxids = fields.list(count, Fields::u32)?;
            text.part(format_args!("xtop {top}: subxacts:"));
            text.words(subxids);
        }
        0x60 => {
            let count = fields.count()?;
            invalidations(text, &Invalidation::list(&mut fields, count)?, None);
        }
        _ => {}
    }
    Some(())
}

fn end(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let end = TransactionEnd::parse(record, version)?;
    if end.was_prepared {
        text.write(format_args!("{}: ", end.xid));
    }
    text.write(format_args!("{}", Timestamp(end.time)));
    relations(text, "rels", &end.dropped);
    subxids(text, &end.subxids);
    let is_commit = end.outcome == Outcome::Committed;
    if is_commit {
        statistics(text, "", &end.statistics);
        let is_init_file = end.flags & TransactionEnd::RELCACHE_FILE != 0;
        let (database, tablespace) = end.database.unwrap_or_default();
        let database = is_init_file.then_some((database.0, tablespace.0));
        invalidations(text, &end.invalidations, database);
        if end.flags & TransactionEnd::APPLY_FEEDBACK != 0 {
            text.push("; apply_feedback");
        }
        if end.flags & TransactionEnd::FORCE_SYNC != 0 {
            text.push("; sync");
        }
    }
    if let Some(position) = end.origin {
        origin(text, record, position);
    }
    if !is_commit {
        statistics(text, "", &end.statistics);
    }
    Some(())
}

fn prepared(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let prepared = PreparedTransaction::parse(record, version)?;
    let gid = String::from_utf8_lossy(&prepared.gid);
    text.write(format_args!("gid {gid}: {}", Timestamp(prepared.time)));
    relations(text, "rels(commit)", &prepared.dropped_on_commit);
    relations(text, "rels(abort)", &prepared.dropped_on_abort);
    statistics(text, "commit ", &prepared.statistics_on_commit);
    statistics(text, "abort ", &prepared.statistics_on_abort);
    subxids(text, &prepared.subxids);
    let database = (prepared.database.0, 0);
    let database = prepared.invalidates_relcache_file.then_some(database);
    invalidations(text, &prepared.invalidations, database);
    if record.origin().is_some() {
        origin(text, record, prepared.origin);
    }
    Some(())
}

fn relations(text: &mut Text<'_>, label: &str, relations: &[RelFileLocator]) {
    if relations.is_empty() {
        return;
    }
    text.write(format_args!("; {label}:"));
    for relation in relations {
        text.push(" ");
        text.relation(*relation, Fork::Main);
    }
}

fn subxids(text: &mut Text<'_>, subxids: &[u32]) {
    if !subxids.is_empty() {
        text.push("; subxacts:");
        text.words(subxids);
    }
}

fn statistics(text: &mut Text<'_>, label: &str, dropped: &[DroppedStatistics]) {
    if !dropped.is_empty() {
        text.write(format_args!("; {label}dropped stats:"));
        let items = dropped.iter();
        text.words(items.map(|item| format!("{}/{}/{}", item.kind, item.database, item.object)));
    }
}

fn origin(text: &mut Text<'_>, record: &Record<'_>, position: OriginPosition) {
    let (node, time) = (record.origin().unwrap_or(0), Timestamp(position.time));
    text.write(format_args!("; origin: node {node}, lsn {}, at {time}", position.lsn));
}

/// The messages that follow in a record, and the database whose cache file becomes stale.
pub(super) fn stored_invalidations(fields: &mut Fields<'_>, text: &mut Text<'_>) -> Option<()> {
    let database = (fields.u32()?, fields.u32()?);
    let is_init_file = fields.u8()? != 0;
    fields.align(4);
    let count = fields.count()?;
    let messages = Invalidation::list(fields, count)?;
    invalidations(text, &messages, is_init_file.then_some(database));
    Some(())
}

/// The messages, and the database whose cache file of relation descriptors becomes stale.
fn invalidations(text: &mut Text<'_>, messages: &[Invalidation], init_file: Option<(u32, u32)>) {
    if messages.is_empty() {
        return;
    }
    if let Some((database, tablespace)) = init_file {
        let of = format_args!("dbid {database} tsid {tablespace}");
        text.write(format_args!("; relcache init file inval {of}"));
    }
    text.push("; inval msgs:");
    text.words(messages);
}
