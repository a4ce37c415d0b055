//! Every reason for which a log ends.

use super::reading::{MAGIC, Outcome, identity, read};
use crate::ids::Lsn;
use crate::wal::resource_manager::number::HEAP;
use crate::wal::test_log::{LogWriter, RecordBytes};
use crate::wal::{EndReason, LogChunk, LogEvent, LogPageError, LogReader, record_crc};

/// Two records, the second one cut over three pages, and where each begins.
fn log() -> (LogWriter, usize, usize) {
    let mut log = LogWriter::new(MAGIC, Lsn(0x0100_0000));
    let first = log.write(&RecordBytes::plain(HEAP, 0, b"first"));
    let second = log.write(&RecordBytes::plain(HEAP, 0, &[7; 20_000]));
    log.end_page();
    let offset = |place: Lsn| (place.0 - log.start.0) as usize;
    let (first, second) = (offset(first), offset(second));
    (log, first, second)
}

/// Damages the log and returns the reason for its end, and the number of records before it.
fn end(damage: impl FnOnce(&mut LogWriter, usize, usize)) -> (usize, String) {
    let (mut log, first, second) = log();
    damage(&mut log, first, second);
    let mut seen = read(&log, log.start, 1);
    let Some(Outcome::End(reason)) = seen.pop() else { panic!("no end") };
    (seen.len(), reason)
}

fn put(log: &mut LogWriter, at: usize, bytes: &[u8]) {
    log.bytes[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Sets a new CRC for the first record.
fn seal_first(log: &mut LogWriter, first: usize) {
    let length = 24 + 5 + 5;
    let crc = record_crc(&log.bytes[first..first + length]);
    put(log, first + 20, &crc.to_le_bytes());
}

#[test]
fn ends_of_records_have_reasons() {
    let check = |(records, reason): (usize, String), expected: &str| {
        assert!(reason.starts_with(expected), "{reason}, expected {expected}");
        records
    };
    let length = |length: u32| end(|log, first, _| put(log, first, &length.to_le_bytes()));
    assert_eq!(check(length(0), "nothing has been written here"), 0);
    assert_eq!(check(length(23), "record has a length of 23 bytes"), 0);
    assert_eq!(check(length(u32::MAX), "record has a length of 4294967295 bytes"), 0);
    // A length that fits would make it another record.
    assert_eq!(check(length(33), "record has the CRC 0x"), 0);
    let manager = end(|log, first, _| put(log, first + 17, &[22]));
    assert_eq!(check(manager, "record is of resource manager 22, which"), 0);
    let previous = end(|log, _, second| put(log, second + 8, &[0xFF; 8]));
    let expected = "record follows one at FFFFFFFF/FFFFFFFF, expected 0/01000028";
    assert_eq!(check(previous, expected), 1);
    let data = end(|log, first, _| put(log, first + 30, b"x"));
    assert_eq!(check(data, "record has the CRC 0x"), 0);
    let in_second = end(|log, _, second| put(log, second + 9000, b"x"));
    assert_eq!(check(in_second, "record has the CRC 0x"), 1);
    // A record with a good CRC whose main data is longer than itself.
    let contradiction = end(|log, first, _| {
        put(log, first + 25, &[200]);
        seal_first(log, first);
    });
    assert_eq!(check(contradiction, "headers and data of the record do not add up"), 0);
    // A custom manager is valid.
    let custom = end(|log, first, second| {
        put(log, first + 17, &[128]);
        seal_first(log, first);
        put(log, second, &[0; 4]);
    });
    assert_eq!(check(custom, "nothing has been written here"), 1);
}

#[test]
fn ends_of_pages_have_reasons() {
    const PAGE: usize = 8192;
    let second_page = |at: usize, bytes: &'static [u8]| {
        let (records, reason) = end(|log, _, _| put(log, PAGE + at, bytes));
        assert_eq!(records, 1, "{reason}");
        reason
    };
    assert_eq!(
        second_page(0, &[0x18, 0xD2]),
        "page magic is 0xD218, expected 0xD110, 0xD113, \
                                               0xD116, 0xD118 or 0xD122"
    );
    let other = "page is of PostgreSQL 16, but the log is of PostgreSQL 18";
    assert_eq!(second_page(0, &[0x13, 0xD1]), other);
    assert_eq!(second_page(2, &[0x11, 0]), "page info is 0x0011, which has unknown bits");
    assert_eq!(second_page(2, &[0x00, 0]), "page does not continue the record");
    assert_eq!(second_page(2, &[0x03, 0]), "log pages have 117901063 bytes, expected 8192");
    assert_eq!(second_page(4, &[0]), "page is of timeline 0, but an earlier page is of timeline 1");
    let address = "page has the address 0/010020FF, expected 0/01002000";
    assert_eq!(second_page(8, &[0xFF]), address);
    let reason = second_page(16, &[0]);
    assert!(reason.starts_with("page continues a record with "), "{reason}");
    let (records, reason) = end(|log, _, _| log.bytes[PAGE..2 * PAGE].fill(0));
    assert_eq!((records, &*reason), (1, "page is empty"));
    let first_page = |at: usize, bytes: &'static [u8]| {
        let (records, reason) = end(|log, _, _| put(log, at, bytes));
        assert_eq!(records, 0, "{reason}");
        reason
    };
    assert_eq!(first_page(2, &[0, 0]), "page has a short header");
    let system = "page is of the system 1311768467463790320, expected 1311768467463790320";
    assert!(first_page(24, &[1]).starts_with(&system[..24]));
    let size = "page is of a segment of 2097152 bytes, expected 1048576";
    assert_eq!(first_page(32, &[0, 0, 0x20]), size);
    assert_eq!(first_page(36, &[0, 0x40]), "log pages have 16384 bytes, expected 8192");
}

/// A page that continues a record, where a record should begin.
#[test]
fn a_continuation_needs_a_beginning() {
    let (mut log, _, second) = log();
    // The first record ends with its page.
    let mut short = LogWriter::new(MAGIC, Lsn(0x0100_0000));
    short.write(&RecordBytes::plain(HEAP, 0, &[1; LogWriter::LONG_ROOM - 29]));
    let rest = log.bytes.split_off(8192);
    short.bytes.extend(rest);
    let seen = read(&short, short.start, 1);
    let text = "page begins with the rest of a record, but none was cut at its start";
    assert_eq!(seen.last(), Some(&Outcome::End(text.to_owned())));
    assert!(second > 0 && seen.len() == 2);
}

#[test]
fn only_what_a_crash_leaves_is_usual() {
    let address = LogPageError::Address { found: Lsn(1), expected: Lsn(2) };
    for reason in [
        EndReason::Unwritten,
        EndReason::NotContinued,
        EndReason::Page(LogPageError::Empty),
        EndReason::Page(address),
    ] {
        assert!(reason.is_usual(), "{reason}");
    }
    for reason in [
        EndReason::Crc { found: 1, computed: 2 },
        EndReason::Page(LogPageError::Magic { found: 3 }),
        EndReason::Length { found: 23 },
        EndReason::UnexpectedContinuation,
    ] {
        assert!(!reason.is_usual(), "{reason}");
    }
}

/// A crash may have lost the last part of a record. What the log has after that part doesn't matter.
#[test]
fn a_torn_record_ends_the_log_where_its_last_byte_is() {
    let (mut log, _, second) = log();
    put(&mut log, second + 19_000, b"x");
    let chunk = LogChunk { start: log.start, bytes: &log.bytes };
    let mut reader = LogReader::new(identity(), log.start);
    let end = loop {
        if let LogEvent::End(end) = reader.next(&chunk).expect("the log has an end") {
            break end;
        }
    };
    assert!(matches!(end.reason, EndReason::Crc { .. }), "{}", end.reason);
    assert_eq!(end.record.0 - log.start.0, second as u64);
    assert_eq!(end.place, Lsn(log.start.0 + 2 * 8192));
}
