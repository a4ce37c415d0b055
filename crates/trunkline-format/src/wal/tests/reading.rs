//! Records of every length at every place of a page, read in pieces of any size.

use crate::ids::Lsn;
use crate::test_data::XorShift;
use crate::wal::resource_manager::number::{HEAP, XLOG};
use crate::wal::test_log::{LogWriter, RecordBytes, SYSTEM, megabyte};
use crate::wal::{LOG_PAGE_SIZE, LogChunk, LogEvent, LogIdentity, LogReader};

/// The magic of 18.
pub(super) const MAGIC: u16 = 0xD118;

pub(super) fn identity() -> LogIdentity {
    LogIdentity { segment_size: megabyte(), system_identifier: Some(SYSTEM) }
}

/// What a reader has found, without borrows.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(super) enum Outcome {
    Record { start: Lsn, end: Lsn, main_data: Vec<u8> },
    Overwritten { record: Lsn, page: Lsn },
    End(String),
}

/// Reads the log from `from` on, in chunks of `pages` pages.
pub(super) fn read(log: &LogWriter, from: Lsn, pages: usize) -> Vec<Outcome> {
    read_with(LogReader::new(identity(), from), log, pages)
}

fn read_with(mut reader: LogReader, log: &LogWriter, pages: usize) -> Vec<Outcome> {
    let mut seen = Vec::new();
    loop {
        let start = reader.wanted();
        let offset = (start.0 - log.start.0) as usize;
        let rest = log.bytes.get(offset..).unwrap_or_default();
        let bytes = rest.get(..pages * LOG_PAGE_SIZE).unwrap_or(rest);
        let chunk = LogChunk { start, bytes };
        if !chunk.has_page(start) {
            seen.push(Outcome::End(format!("no page at {start}")));
            return seen;
        }
        while let Some(event) = reader.next(&chunk) {
            seen.push(match event {
                LogEvent::Record(found) => Outcome::Record {
                    start: found.start,
                    end: found.end,
                    main_data: found.record.main_data().to_vec(),
                },
                LogEvent::Overwritten { record, page } => Outcome::Overwritten { record, page },
                LogEvent::End(end) => {
                    seen.push(Outcome::End(end.reason.to_string()));
                    return seen;
                }
            });
        }
    }
}

/// The records that were written from `from` on, and the end.
fn expected(log: &LogWriter, data: &[Vec<u8>], from: Lsn, end: &str) -> Vec<Outcome> {
    let records = log.records.iter().zip(data).filter(|((start, _), _)| *start >= from);
    let records = records.map(|(&(start, end), main_data)| Outcome::Record {
        start,
        end,
        main_data: main_data.clone(),
    });
    records.chain([Outcome::End(end.to_owned())]).collect()
}

/// A log of records with the given lengths of main data, and that data.
fn log_of(lengths: &[usize]) -> (LogWriter, Vec<Vec<u8>>) {
    let mut log = LogWriter::new(MAGIC, Lsn(0x0100_0000));
    let mut rng = XorShift(1);
    let mut all = Vec::new();
    for &length in lengths {
        let mut data = vec![0; length];
        rng.fill(&mut data);
        log.write(&RecordBytes::plain(HEAP, 0, &data));
        all.push(data);
    }
    log.end_page();
    (log, all)
}

/// Header and header of the main data.
const OVERHEAD: usize = 29;

#[test]
fn records_are_read_at_every_place() {
    let mut rng = XorShift(7);
    for round in 0..40 {
        let count = 1 + rng.below(60);
        let lengths: Vec<usize> = (0..count)
            .map(|_| match rng.below(12) {
                0 => rng.below(40_000),
                1 => LogWriter::SHORT_ROOM - OVERHEAD - rng.below(20),
                2 => LogWriter::LONG_ROOM - OVERHEAD - rng.below(20),
                3 => 8192 * (1 + rng.below(3)) - rng.below(60),
                _ => 1 + rng.below(200),
            })
            .collect();
        let (log, data) = log_of(&lengths);
        let end = if log.records.last().expect("one").1.0.is_multiple_of(LOG_PAGE_SIZE as u64) {
            format!("no page at {}", log.at())
        } else {
            "nothing has been written here".to_owned()
        };
        for pages in [1, 2, 5, 1000] {
            let seen = read(&log, log.start, pages);
            assert_eq!(seen, expected(&log, &data, log.start, &end), "round {round}, {pages}");
        }
        // Any start finds the first record behind it.
        for _ in 0..10 {
            let from = Lsn(log.start.0 + rng.below(log.bytes.len()) as u64);
            let seen = read(&log, from, 3);
            assert_eq!(seen, expected(&log, &data, from, &end), "round {round}, from {from}");
        }
        // A record that is known to be there is the first one.
        for &(start, _) in &log.records {
            let seen = read_with(LogReader::at_record(identity(), start), &log, 3);
            assert_eq!(seen, expected(&log, &data, start, &end), "round {round}, at {start}");
        }
    }
}

#[test]
fn a_record_may_be_longer_than_segments() {
    let (log, data) = log_of(&[100, 2_500_000, 100]);
    let end = "nothing has been written here";
    assert_eq!(read(&log, log.start, 16), expected(&log, &data, log.start, end));
    // A start in the middle of the long record skips pages that consist only of its rest.
    let from = Lsn(log.start.0 + 70_000);
    assert_eq!(read(&log, from, 16), expected(&log, &data, from, end));
}

#[test]
fn a_place_without_a_record_is_an_end_and_not_the_next_record() {
    let (log, _) = log_of(&[100, 3000, 100]);
    for step in (8..3000).step_by(8) {
        let place = Lsn(log.records[1].0.0 + step);
        if place == log.records[2].0 {
            continue;
        }
        let seen = read_with(LogReader::at_record(identity(), place), &log, 3);
        assert!(matches!(&seen[..], [Outcome::End(_)]), "{place}: {seen:?}");
    }
    // Damage before the record is not looked at.
    let (mut log, data) = log_of(&[100, 3000, 100]);
    log.bytes[60] ^= 1;
    let start = log.records[1].0;
    let seen = read_with(LogReader::at_record(identity(), start), &log, 3);
    assert_eq!(seen, expected(&log, &data, start, "nothing has been written here"));
}

/// A record ends exactly at a page's end: its end is the border, and the next record begins behind
/// the header.
#[test]
fn the_end_of_a_page_is_an_end_of_a_record() {
    let (log, data) = log_of(&[LogWriter::LONG_ROOM - OVERHEAD, 10]);
    assert_eq!(log.records[0].1, Lsn(0x0100_2000));
    assert_eq!(log.records[1].0, Lsn(0x0100_2018));
    let end = "nothing has been written here";
    assert_eq!(read(&log, log.start, 1), expected(&log, &data, log.start, end));
}

#[test]
fn a_switch_leads_to_the_next_segment() {
    let mut log = LogWriter::new(MAGIC, Lsn(0x0100_0000));
    let first = log.write(&RecordBytes::plain(HEAP, 0, b"first"));
    let switch = RecordBytes { manager: XLOG, info: 0x40, xid: 0, body: Vec::new() };
    let second = log.write(&switch);
    log.bytes.resize(1 << 20, 0);
    let third = log.write(&RecordBytes::plain(HEAP, 0, b"third"));
    log.end_page();
    let seen = read(&log, log.start, 4);
    let record = |start, end, data: &[u8]| Outcome::Record { start, end, main_data: data.to_vec() };
    assert_eq!(third, Lsn(0x0110_0028));
    assert_eq!(
        seen,
        [
            record(first, second, b"first"),
            record(second, Lsn(0x0110_0000), b""),
            record(third, Lsn(third.0 + 40), b"third"),
            Outcome::End("nothing has been written here".to_owned()),
        ]
    );
}

/// A crash in the middle of a record, and what the server writes then: by the flag of each version.
#[test]
fn a_cut_record_is_skipped_where_the_page_says_so() {
    for (magic, flag, other) in [(MAGIC, 0x8, 0x4), (0xD110, 0x8, 0x4), (0xD122, 0x4, 0x1)] {
        let log_with = |flag: u16, overwritten: Lsn| {
            let mut log = LogWriter::new(magic, Lsn(0x0100_0000));
            log.write(&RecordBytes::plain(HEAP, 0, b"first"));
            let lost = RecordBytes::plain(HEAP, 0, &[1; 20_000]).build(log.previous);
            let lost = log.write_part(&lost, LogWriter::LONG_ROOM - 40 + LogWriter::SHORT_ROOM);
            log.page(flag, 0);
            let overwritten = if overwritten == Lsn(0) { lost } else { overwritten };
            let mut explanation = overwritten.0.to_le_bytes().to_vec();
            explanation.extend([0; 8]);
            log.write(&RecordBytes::plain(XLOG, 0xD0, &explanation));
            log.write(&RecordBytes::plain(HEAP, 0, b"next"));
            log.end_page();
            (log, lost)
        };
        let (log, lost) = log_with(flag, Lsn(0));
        for pages in [1, 7] {
            let seen = read(&log, log.start, pages);
            assert_eq!(seen.len(), 5, "{magic:X}: {seen:?}");
            let page = Lsn(0x0100_4000);
            assert_eq!(seen[1], Outcome::Overwritten { record: lost, page });
            let is_next = |seen: &Outcome| matches!(seen, Outcome::Record { main_data, .. } if main_data == b"next");
            assert!(is_next(&seen[3]), "{seen:?}");
        }
        // Another flag, or none, means that the log ends.
        let not_continued = Outcome::End("page does not continue the record".to_owned());
        assert_eq!(read(&log_with(0, Lsn(0)).0, log.start, 1)[1], not_continued, "{magic:X}");
        if other == 0x4 {
            assert_eq!(read(&log_with(other, Lsn(0)).0, log.start, 1)[1], not_continued);
        }
        // The explanation names another record.
        let (log, lost) = log_with(flag, Lsn(0x0100_0008));
        let text = format!(
            "record at 0/01000008 is said to have been overwritten, expected the one at {lost}"
        );
        assert_eq!(read(&log, log.start, 1)[2], Outcome::End(text));
    }
}

#[test]
fn the_first_record_follows_one_before_it() {
    // In one piece, and cut at the end of its page.
    for length in [100, 20_000] {
        let start = Lsn(0x0100_0028);
        for (previous, is_before) in
            [(0, true), (start.0 - 1, true), (start.0, false), (u64::MAX, false)]
        {
            let mut log = LogWriter::new(MAGIC, Lsn(0x0100_0000));
            log.previous = Lsn(previous);
            log.write(&RecordBytes::plain(HEAP, 0, &vec![1; length]));
            log.end_page();
            let at_record = read_with(LogReader::at_record(identity(), start), &log, 7);
            for seen in [read(&log, log.start, 1), at_record] {
                if is_before {
                    assert!(matches!(seen[0], Outcome::Record { .. }), "{previous}: {seen:?}");
                    continue;
                }
                let found = Lsn(previous);
                let text = format!(
                    "record at {start} has the previous link {found}, which is not before it"
                );
                assert_eq!(seen, [Outcome::End(text)]);
            }
        }
    }
}
