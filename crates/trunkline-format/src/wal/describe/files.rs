//! Records about files: relations, relation maps, databases, tablespaces, the commit log. And those
//! of sequences, which only name one.
//!
//! Mirrors PostgreSQL's `catalog/storage_xlog.h`, `commands/dbcommands_xlog.h` and
//! `commands/tablespace.h`.

use crate::control::PgVersion;
use crate::ids::Fork;
use crate::wal::fields::Fields;
use crate::wal::record::Record;

use super::text::Text;

pub(super) fn storage(record: &Record<'_>, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    if record.header().operation() == 0x10 {
        let (relation, fork) = (fields.relation()?, fields.count()?);
        text.relation(relation, *Fork::ALL.get(fork)?);
    } else {
        let (blocks, relation, flags) = (fields.u32()?, fields.relation()?, fields.i32()?);
        text.relation(relation, Fork::Main);
        text.write(format_args!(" to {blocks} blocks flags {flags}"));
    }
    Some(())
}

/// The number of a page of the commit log or of multixacts: 64 bits since 17.
pub(super) fn page_number(fields: &mut Fields<'_>, version: PgVersion) -> Option<i64> {
    if version >= PgVersion::V17 { fields.i64() } else { fields.i32().map(i64::from) }
}

pub(super) fn commit_log(
    record: &Record<'_>,
    version: PgVersion,
    text: &mut Text<'_>,
) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    let page = page_number(&mut fields, version)?;
    text.part(format_args!("page {page}"));
    if record.header().operation() == 0x10 {
        text.write(format_args!("; oldestXact {}", fields.u32()?));
    }
    Some(())
}

pub(super) fn database(record: &Record<'_>, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    match record.header().operation() {
        0x00 => {
            let (database, tablespace) = (fields.u32()?, fields.u32()?);
            let (from_database, from_tablespace) = (fields.u32()?, fields.u32()?);
            let from = format!("{from_tablespace}/{from_database}");
            text.part(format_args!("copy dir {from} to {tablespace}/{database}"));
        }
        0x10 => {
            let (database, tablespace) = (fields.u32()?, fields.u32()?);
            text.part(format_args!("create dir {tablespace}/{database}"));
        }
        _ => {
            let (database, count) = (fields.u32()?, fields.count()?);
            text.push("dir");
            text.words(
                fields.list(count, Fields::u32)?.iter().map(|of| format!("{of}/{database}")),
            );
        }
    }
    Some(())
}

pub(super) fn tablespace(record: &Record<'_>, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    text.part(format_args!("{}", fields.u32()?));
    if record.header().operation() == 0x00 {
        let path = String::from_utf8_lossy(fields.c_text()?).into_owned();
        text.write(format_args!(" \"{path}\""));
    }
    Some(())
}

pub(super) fn relation_map(record: &Record<'_>, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    let (database, tablespace, size) = (fields.u32()?, fields.u32()?, fields.i32()?);
    text.part(format_args!("database {database} tablespace {tablespace} size {size}"));
    Some(())
}

pub(super) fn sequence(record: &Record<'_>, text: &mut Text<'_>) -> Option<()> {
    let relation = Fields::of(record.main_data()).relation()?;
    text.part(format_args!("rel {relation}"));
    Some(())
}
