//! Records about the log itself: checkpoints, parameters, restore points.
//!
//! Mirrors PostgreSQL's `access/xlog_internal.h` and `catalog/pg_control.h`.

use crate::control::{Checkpoint, PgVersion};
use crate::wal::fields::Fields;
use crate::wal::record::Record;

use super::text::Text;
use super::time::Timestamp;

pub(super) fn describe(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let mut fields = Fields::of(record.main_data());
    let since_17 = version >= PgVersion::V17;
    match record.header().operation() {
        operation @ (0x00 | 0x10) => {
            checkpoint(record, version, text)?;
            text.push(if operation == 0 { "shutdown" } else { "online" });
        }
        0x30 => text.part(format_args!("{}", fields.u32()?)),
        0x50 => text.part(format_args!("{}", fields.lsn()?)),
        0x60 => {
            let [connections, workers, senders] = [fields.i32()?, fields.i32()?, fields.i32()?];
            let [prepared, locks, level] = [fields.i32()?, fields.i32()?, fields.i32()?];
            let [hints, timestamps] = [fields.u8()? != 0, fields.u8()? != 0].map(on_or_off);
            text.part(format_args!(
                "max_connections={connections} max_worker_processes={workers} \
                 max_wal_senders={senders} max_prepared_xacts={prepared} \
                 max_locks_per_xact={locks} wal_level={} wal_log_hints={hints} \
                 track_commit_timestamp={timestamps}",
                level_name(level)
            ));
        }
        0x70 => {
            let _time = fields.i64()?;
            text.push(&String::from_utf8_lossy(fields.c_text()?));
        }
        0x80 | 0xF0 => text.part(format_args!("{}", fields.u8()? != 0)),
        0x90 => {
            let time = Timestamp(fields.i64()?);
            let (timeline, previous) = (fields.u32()?, fields.u32()?);
            text.part(format_args!("tli {timeline}; prev tli {previous}; time {time}"));
            if since_17 {
                text.write(format_args!("; wal_level {}", level_name(fields.i32()?)));
            }
        }
        0xD0 => {
            let (lsn, time) = (fields.lsn()?, Timestamp(fields.i64()?));
            text.part(format_args!("lsn {lsn}; time {time}"));
        }
        0xE0 => text.part(format_args!("wal_level {}", level_name(fields.i32()?))),
        _ => {}
    }
    Some(())
}

fn checkpoint(record: &Record<'_>, version: PgVersion, text: &mut Text<'_>) -> Option<()> {
    let data = record.main_data();
    let checkpoint = Checkpoint::of_record(data, version)?;
    text.part(format_args!("redo {}; tli {}", checkpoint.redo, checkpoint.timeline));
    text.write(format_args!("; prev tli {}", checkpoint.previous_timeline));
    text.write(format_args!("; fpw {}", checkpoint.full_page_writes));
    if version >= PgVersion::V17 {
        let level = Fields::of(data).skip_to(20).i32()?;
        text.write(format_args!("; wal_level {}", level_name(level)));
    }
    if let Some(is_enabled) = checkpoint.logical_decoding {
        text.write(format_args!("; logical decoding {is_enabled}"));
    }
    let xid = checkpoint.next_xid;
    text.write(format_args!("; xid {}:{}; oid {}", xid >> 32, xid as u32, checkpoint.next_oid));
    let (multi, offset) = (checkpoint.next_multi, checkpoint.next_multi_offset);
    text.write(format_args!("; multi {multi}; offset {offset}"));
    let (oldest, database) = (checkpoint.oldest_xid, checkpoint.oldest_xid_db);
    text.write(format_args!("; oldest xid {oldest} in DB {database}"));
    let (oldest, database) = (checkpoint.oldest_multi, checkpoint.oldest_multi_db);
    text.write(format_args!("; oldest multi {oldest} in DB {database}"));
    let (oldest, newest) = (checkpoint.oldest_commit_ts_xid, checkpoint.newest_commit_ts_xid);
    text.write(format_args!("; oldest/newest commit timestamp xid: {oldest}/{newest}"));
    text.write(format_args!("; oldest running xid {}; ", checkpoint.oldest_active_xid));
    Some(())
}

/// The name of a value of `wal_level`.
fn level_name(level: i32) -> &'static str {
    match level {
        0 => "minimal",
        1 => "replica",
        2 => "logical",
        _ => "?",
    }
}

fn on_or_off(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}
