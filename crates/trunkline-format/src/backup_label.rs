//! `backup_label` and `tablespace_map`: what a base backup says about itself.
//!
//! ```text
//!   START WAL LOCATION: 0/2000028 (file 000000010000000000000002)
//!   CHECKPOINT LOCATION: 0/2000080
//!   BACKUP METHOD: streamed
//!   BACKUP FROM: primary
//!   START TIMELINE: 1
//! ```
//! Files of a backup are copied one after the other while the server goes on writing, the control
//! file among them. So the label, and not the control file, says where replay begins. Without it, a
//! server would begin at a later checkpoint and never notice which changes are missing.
//!
//! Mirrors `read_backup_label` and `read_tablespace_map` in PostgreSQL's
//! `access/transam/xlogrecovery.c`.

use thiserror::Error;

use crate::ids::{Lsn, Oid};
use crate::wal::SegmentName;

/// The name of the label, in the data directory.
pub const BACKUP_LABEL_NAME: &str = "backup_label";

/// The name of the list of tablespaces, in the data directory.
pub const TABLESPACE_MAP_NAME: &str = "tablespace_map";

/// What a `backup_label` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupLabel {
    /// Where replay begins.
    pub redo: Lsn,
    /// The position of the backup's checkpoint record.
    pub checkpoint: Lsn,
    /// The timeline of the backup's start.
    pub timeline: u32,
    /// `BACKUP METHOD: streamed`: the log has a record of the backup's end. Otherwise the label was
    /// written by `pg_rewind`.
    pub is_streamed: bool,
    /// `BACKUP FROM: standby`.
    pub is_of_standby: bool,
    /// `INCREMENTAL FROM LSN`: the files contain only what changed since then.
    pub incremental_from: Option<Lsn>,
}

/// The reason why a `backup_label` or `tablespace_map` can't be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BackupLabelError {
    /// A line that must be there is missing.
    #[error("there is no line \"{expected}\"")]
    Missing {
        /// How the line begins.
        expected: &'static str,
    },
    /// A line has an invalid value.
    #[error("line {line:?} is invalid")]
    Line {
        /// The line, shortened.
        line: String,
    },
    /// Two lines name different timelines.
    #[error("the timeline is {found}, but the segment file is of timeline {expected}")]
    Timeline {
        /// That of the line `START TIMELINE`.
        found: u32,
        /// That of the file name.
        expected: u32,
    },
}

const START: &str = "START WAL LOCATION: ";
const CHECKPOINT: &str = "CHECKPOINT LOCATION: ";

impl BackupLabel {
    /// Parses a label.
    ///
    /// # Errors
    ///
    /// [`BackupLabelError`]. Lines that we don't know are skipped, as a server does.
    pub fn parse(bytes: &[u8]) -> Result<Self, BackupLabelError> {
        let text = String::from_utf8_lossy(bytes);
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let invalid = |name: &str, value: &str| invalid(&format!("{name}{value}"));
        let start = value(START).ok_or(BackupLabelError::Missing { expected: START })?;
        let (redo, timeline) = parse_start(start).ok_or_else(|| invalid(START, start))?;
        let checkpoint =
            value(CHECKPOINT).ok_or(BackupLabelError::Missing { expected: CHECKPOINT })?;
        let checkpoint =
            Lsn::parse(checkpoint.trim_end()).ok_or_else(|| invalid(CHECKPOINT, checkpoint))?;
        if let Some(found) = value("START TIMELINE: ") {
            let found = found.trim_end().parse().map_err(|_| invalid("START TIMELINE: ", found))?;
            if found != timeline {
                return Err(BackupLabelError::Timeline { found, expected: timeline });
            }
        }
        let incremental_from = match value("INCREMENTAL FROM LSN: ") {
            Some(from) => {
                let lsn = Lsn::parse(from.trim_end());
                Some(lsn.ok_or_else(|| invalid("INCREMENTAL FROM LSN: ", from))?)
            }
            None => None,
        };
        let is = |name: &str, expected: &str| value(name).is_some_and(|it| it.trim() == expected);
        Ok(Self {
            redo,
            checkpoint,
            timeline,
            is_streamed: is("BACKUP METHOD: ", "streamed"),
            is_of_standby: is("BACKUP FROM: ", "standby"),
            incremental_from,
        })
    }
}

/// Parses `0/2000028 (file 000000010000000000000002)`.
fn parse_start(text: &str) -> Option<(Lsn, u32)> {
    let (redo, file) = text.trim_end().split_once(" (file ")?;
    let file = SegmentName::parse(file.strip_suffix(')')?)?;
    Some((Lsn::parse(redo)?, file.timeline()))
}

fn invalid(line: &str) -> BackupLabelError {
    BackupLabelError::Line { line: line.chars().take(200).collect() }
}

/// Parses a `tablespace_map`: the OIDs of tablespaces and their directories. A backslash makes the
/// character behind it, such as a line break, part of the directory's name.
///
/// # Errors
///
/// [`BackupLabelError::Line`].
pub fn parse_tablespace_map(bytes: &[u8]) -> Result<Vec<(Oid, Vec<u8>)>, BackupLabelError> {
    let (mut found, mut line, mut is_escaped) = (Vec::new(), Vec::new(), false);
    for &byte in bytes.iter().chain(b"\n") {
        match byte {
            b'\\' if !is_escaped => is_escaped = true,
            b'\n' | b'\r' if !is_escaped => {
                if !line.is_empty() {
                    found.push(tablespace(&line)?);
                }
                line.clear();
            }
            byte => {
                line.push(byte);
                is_escaped = false;
            }
        }
    }
    Ok(found)
}

fn tablespace(line: &[u8]) -> Result<(Oid, Vec<u8>), BackupLabelError> {
    let space = line.iter().position(|&byte| byte == b' ');
    let parts = space.map(|space| (&line[..space], line.get(space + 1..).unwrap_or_default()));
    let parsed = parts.and_then(|(oid, path)| {
        let oid = std::str::from_utf8(oid).ok()?.parse().ok()?;
        (!path.is_empty()).then(|| (Oid(oid), path.to_vec()))
    });
    parsed.ok_or_else(|| invalid(&String::from_utf8_lossy(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `pg_basebackup` of 17 has written it.
    const LABEL: &str = "START WAL LOCATION: 1/2000028 (file 000000030000000100000002)\n\
        CHECKPOINT LOCATION: 1/2000080\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
        START TIME: 2026-11-29 18:00:00 UTC\nLABEL: pg_basebackup base backup\n\
        START TIMELINE: 3\n";

    #[test]
    fn a_label_says_where_replay_begins() {
        let expected = BackupLabel {
            redo: Lsn(0x1_0200_0028),
            checkpoint: Lsn(0x1_0200_0080),
            timeline: 3,
            is_streamed: true,
            is_of_standby: false,
            incremental_from: None,
        };
        let parse = |text: &str| BackupLabel::parse(text.as_bytes());
        assert_eq!(parse(LABEL), Ok(expected));
        let standby = LABEL.replace("primary", "standby").replace("streamed", "pg_rewind");
        let other = BackupLabel { is_streamed: false, is_of_standby: true, ..expected };
        assert_eq!(parse(&standby), Ok(other));
        let incremental = format!("{LABEL}INCREMENTAL FROM LSN: 0/1000028\n");
        let from = Some(Lsn(0x0100_0028));
        assert_eq!(parse(&incremental).map(|label| label.incremental_from), Ok(from));
    }

    #[test]
    fn what_a_label_must_say_is_checked() {
        for (from, to, expected) in [
            ("START WAL", "START", "there is no line \"START WAL LOCATION: \""),
            ("CHECKPOINT", "X", "there is no line \"CHECKPOINT LOCATION: \""),
            (
                "TIMELINE: 3",
                "TIMELINE: 4",
                "the timeline is 4, but the segment file is of timeline 3",
            ),
            ("TIMELINE: 3", "TIMELINE: x", "line \"START TIMELINE: x\" is invalid"),
            ("0080", "0080x", "line \"CHECKPOINT LOCATION: 1/2000080x\" is invalid"),
            (
                "2000028 (file",
                "2000028 (x",
                "line \"START WAL LOCATION: 1/2000028 (x 000000030000000100000002)\" is invalid",
            ),
        ] {
            let found = BackupLabel::parse(LABEL.replace(from, to).as_bytes());
            assert_eq!(found.expect_err(expected).to_string(), expected);
        }
    }

    #[test]
    fn paths_of_tablespaces_may_have_any_character() {
        let map = b"16385 /mnt/a b\r\n16386 /mnt/line\\\nbreak\\\\\n";
        let expected = [(16385, "/mnt/a b"), (16386, "/mnt/line\nbreak\\")];
        let expected = expected.map(|(oid, path)| (Oid(oid), path.as_bytes().to_vec()));
        assert_eq!(parse_tablespace_map(map), Ok(expected.to_vec()));
        for map in ["x /a", "16385", "16385 ", "-1 /a"] {
            assert!(parse_tablespace_map(map.as_bytes()).is_err(), "{map}");
        }
    }
}
