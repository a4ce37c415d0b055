//! Records about locks: multixacts, and the locks and running transactions that a standby must
//! know.
//!
//! Mirrors PostgreSQL's `access/multixact.h` and `storage/standbydefs.h`.

use crate::control::PgVersion;
use crate::wal::fields::Fields;
use crate::wal::record::Record;

use super::files::page_number;
use super::text::Text;
use super::transaction;

pub(super) fn multixact(
    record: &Record<'_>,
    version: PgVersion,
    text: &mut Text<'_>,
) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    // Since 19, member offsets have 64 bits.
    let is_wide = version >= PgVersion::V19;
    match record.header().operation() {
        0x00 | 0x10 => text.part(format_args!("{}", page_number(&mut fields, version)?)),
        0x20 => {
            let multi = fields.u32()?;
            if is_wide {
                fields.align(8);
            }
            let first = if is_wide { fields.take()? } else { u64::from(fields.u32()?) };
            let count = fields.count()?;
            let member = |fields: &mut Fields<'_>| Some((fields.u32()?, fields.u32()?));
            let members = fields.list(count, member)?;
            text.part(format_args!("{multi} offset {first} nmembers {count}:"));
            let members = members.iter();
            text.words(members.map(|(xid, status)| format!("{xid} ({})", status_name(*status))));
        }
        _ if is_wide => {
            let (_database, oldest) = (fields.u32()?, fields.u32()?);
            let member: u64 = fields.take()?;
            text.part(format_args!("oldestMulti {oldest}, oldestOffset {member}"));
        }
        _ => {
            let _database = fields.u32()?;
            let [start, end] = [fields.u32()?, fields.u32()?];
            let [first, last] = [fields.u32()?, fields.u32()?];
            text.part(format_args!("offsets [{start}, {end}), members [{first}, {last})"));
        }
    }
    Some(())
}

/// A member's lock, by its number.
fn status_name(status: u32) -> &'static str {
    const NAMES: [&str; 6] = ["keysh", "sh", "fornokeyupd", "forupd", "nokeyupd", "upd"];
    NAMES.get(status as usize).copied().unwrap_or("unk")
}

pub(super) fn standby(record: &Record<'_>, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    match record.header().operation() {
        0x00 => {
            let count = fields.count()?;
            let lock =
                |fields: &mut Fields<'_>| Some((fields.u32()?, fields.u32()?, fields.u32()?));
            let locks = fields.list(count, lock)?;
            let locks = locks
                .iter()
                .map(|(xid, database, relation)| format!("xid {xid} db {database} rel {relation}"));
            text.push(&locks.collect::<Vec<_>>().join(" "));
        }
        0x10 => {
            let (count, sub_count) = (fields.count()?, fields.count()?);
            let is_overflowed = fields.u8()? != 0;
            fields.align(4);
            let (next, oldest, latest) = (fields.u32()?, fields.u32()?, fields.u32()?);
            let xids = fields.list(count, Fields::u32)?;
            let subxids = fields.list(sub_count, Fields::u32)?;
            text.part(format_args!(
                "nextXid {next} latestCompletedXid {latest} oldestRunningXid {oldest}"
            ));
            if count > 0 {
                text.write(format_args!("; {count} xacts:"));
                text.words(xids);
            }
            if is_overflowed {
                text.push("; subxid overflowed");
            }
            if sub_count > 0 {
                text.write(format_args!("; {sub_count} subxacts:"));
                text.words(subxids);
            }
        }
        _ => transaction::stored_invalidations(&mut fields, text)?,
    }
    Some(())
}
