//! Prints a control file in the format of its release's `pg_controldata`.
//!
//! We print exactly the same labels as `pg_controldata`, so that its output can be compared with
//! ours using diff. The format depends on the release: PostgreSQL 18 and 19 added some lines, and
//! 19 also pads LSNs with zeros. There is one difference: we always print times in UTC, whereas
//! `pg_controldata` uses the machine's time zone and language.

use super::{ControlFile, PgVersion};
use crate::calendar::civil;
use crate::ids::Lsn;

impl ControlFile {
    /// The label (without its colon) and value of every line, in the order `pg_controldata` prints
    /// them.
    ///
    /// `pg_controldata` pads the label and colon to 38 characters.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = self.identity();
        fields.extend(self.checkpoint_fields());
        fields.extend(self.recovery_fields());
        fields.extend(self.settings());
        fields.extend(self.sizes());
        fields
    }

    fn identity(&self) -> Vec<(&'static str, String)> {
        vec![
            ("pg_control version number", self.version.control_version().to_string()),
            ("Catalog version number", self.version.catalog_version().to_string()),
            ("Database system identifier", self.system_identifier.to_string()),
            ("Database cluster state", self.state.to_string()),
            ("pg_control last modified", utc(self.time)),
        ]
    }

    fn checkpoint_fields(&self) -> Vec<(&'static str, String)> {
        let checkpoint = &self.checkpoint;
        let mut fields = vec![
            ("Latest checkpoint location", self.lsn(checkpoint.location)),
            ("Latest checkpoint's REDO location", self.lsn(checkpoint.redo)),
            ("Latest checkpoint's REDO WAL file", self.redo_file_name()),
            ("Latest checkpoint's TimeLineID", checkpoint.timeline.to_string()),
            ("Latest checkpoint's PrevTimeLineID", checkpoint.previous_timeline.to_string()),
            ("Latest checkpoint's full_page_writes", on(checkpoint.full_page_writes)),
        ];
        if let Some(decoding) = checkpoint.logical_decoding {
            fields.push(("Latest checkpoint's logical decoding", on(decoding)));
        }
        let next_xid = format!("{}:{}", checkpoint.next_xid >> 32, checkpoint.next_xid as u32);
        fields.extend([
            ("Latest checkpoint's NextXID", next_xid),
            ("Latest checkpoint's NextOID", checkpoint.next_oid.to_string()),
            ("Latest checkpoint's NextMultiXactId", checkpoint.next_multi.to_string()),
            ("Latest checkpoint's NextMultiOffset", checkpoint.next_multi_offset.to_string()),
            ("Latest checkpoint's oldestXID", checkpoint.oldest_xid.to_string()),
            ("Latest checkpoint's oldestXID's DB", checkpoint.oldest_xid_db.to_string()),
            ("Latest checkpoint's oldestActiveXID", checkpoint.oldest_active_xid.to_string()),
            ("Latest checkpoint's oldestMultiXid", checkpoint.oldest_multi.to_string()),
            ("Latest checkpoint's oldestMulti's DB", checkpoint.oldest_multi_db.to_string()),
            ("Latest checkpoint's oldestCommitTsXid", checkpoint.oldest_commit_ts_xid.to_string()),
            ("Latest checkpoint's newestCommitTsXid", checkpoint.newest_commit_ts_xid.to_string()),
            ("Time of latest checkpoint", utc(checkpoint.time)),
        ]);
        fields
    }

    fn recovery_fields(&self) -> Vec<(&'static str, String)> {
        let required = if self.backup_end_required { "yes" } else { "no" };
        vec![
            ("Fake LSN counter for unlogged rels", self.lsn(self.unlogged_lsn)),
            ("Minimum recovery ending location", self.lsn(self.min_recovery_point)),
            ("Min recovery ending loc's timeline", self.min_recovery_timeline.to_string()),
            ("Backup start location", self.lsn(self.backup_start)),
            ("Backup end location", self.lsn(self.backup_end)),
            ("End-of-backup record required", required.to_string()),
        ]
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let wal_level = match self.wal_level {
            0 => "minimal",
            1 => "replica",
            2 => "logical",
            _ => "unrecognized \"wal_level\"",
        };
        vec![
            ("wal_level setting", wal_level.to_string()),
            ("wal_log_hints setting", on(self.wal_log_hints)),
            ("max_connections setting", self.max_connections.to_string()),
            ("max_worker_processes setting", self.max_worker_processes.to_string()),
            ("max_wal_senders setting", self.max_wal_senders.to_string()),
            ("max_prepared_xacts setting", self.max_prepared_xacts.to_string()),
            ("max_locks_per_xact setting", self.max_locks_per_xact.to_string()),
            ("track_commit_timestamp setting", on(self.track_commit_timestamp)),
        ]
    }

    fn sizes(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("Maximum data alignment", self.max_align.to_string()),
            ("Database block size", self.block_size.to_string()),
            ("Blocks per segment of large relation", self.segment_blocks.to_string()),
        ];
        if let Some(pages) = self.slru_pages_per_segment {
            fields.push(("Pages per SLRU segment", pages.to_string()));
        }
        let float8 = if self.float8_by_value { "by value" } else { "by reference" };
        fields.extend([
            ("WAL block size", self.wal_block_size.to_string()),
            ("Bytes per WAL segment", self.wal_segment_size.to_string()),
            ("Maximum length of identifiers", self.name_length.to_string()),
            ("Maximum columns in an index", self.index_columns.to_string()),
            ("Maximum size of a TOAST chunk", self.toast_chunk.to_string()),
            ("Size of a large-object chunk", self.large_object_block.to_string()),
            // The file doesn't record this. Since PostgreSQL 10 it is always 64-bit integers.
            ("Date/time type storage", "64-bit integers".to_string()),
            ("Float8 argument passing", float8.to_string()),
            ("Data page checksum version", self.data_checksum_version.to_string()),
        ]);
        if let Some(signed) = self.char_signed {
            let signed = if signed { "signed" } else { "unsigned" };
            fields.push(("Default char data signedness", signed.to_string()));
        }
        let nonce = self.mock_nonce.iter().map(|byte| format!("{byte:02x}")).collect();
        fields.push(("Mock authentication nonce", nonce));
        fields
    }

    /// The WAL file that recovery would start with: 24 hexadecimal digits.
    pub fn redo_file_name(&self) -> String {
        let size = u64::from(self.wal_segment_size.max(1));
        let segment = self.checkpoint.redo.0 / size;
        let in_each_id = (1_u64 << 32) / size;
        let (id, rest) = (segment / in_each_id, segment % in_each_id);
        format!("{:08X}{id:08X}{rest:08X}", self.checkpoint.timeline)
    }

    fn lsn(&self, lsn: Lsn) -> String {
        if self.version >= PgVersion::V19 {
            lsn.to_string()
        } else {
            format!("{:X}/{:X}", lsn.high(), lsn.low())
        }
    }
}

fn on(setting: bool) -> String {
    if setting { "on" } else { "off" }.to_string()
}

/// Formats seconds since 1970 in UTC like C's `%c`: `Sat Nov 21 02:41:17 2026`.
fn utc(seconds: i64) -> String {
    /// Days from 1970-01-01 to 2000-01-01, a Saturday.
    const DAYS_TO_2000: i64 = 10_957;
    const WEEKDAYS: [&str; 7] = ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (day, second) = (seconds.div_euclid(86_400) - DAYS_TO_2000, seconds.rem_euclid(86_400));
    let (year, month, day_of_month) = civil(day);
    let weekday = WEEKDAYS.get(day.rem_euclid(7) as usize).unwrap_or(&"???");
    let month = MONTHS.get(month as usize - 1).unwrap_or(&"???");
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday} {month} {day_of_month:2} {hour:02}:{minute:02}:{second:02} {year}")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times() {
        for (seconds, expected) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (-1, "Wed Dec 31 23:59:59 1969"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (951_868_799, "Tue Feb 29 23:59:59 2000"),
            (951_868_800, "Wed Mar  1 00:00:00 2000"),
            (1_795_228_877, "Sat Nov 21 02:41:17 2026"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
        for seconds in [i64::MIN, i64::MAX] {
            assert!(utc(seconds).len() > 20);
        }
    }
}
