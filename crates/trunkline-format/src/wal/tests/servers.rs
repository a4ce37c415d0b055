//! Two logs of real servers (`testdata/wal.sql`), each line compared with that of `pg_waldump`.

use crate::control::PgVersion;
use crate::ids::{Fork, Lsn};
use crate::wal::test_log::{megabyte, unpacked};
use crate::wal::{
    LogChunk, LogEvent, LogIdentity, LogReader, LogRecord, ResourceManager, describe,
};

/// Managers whose fields we decode.
const DECODED: [&str; 13] = [
    "XLOG",
    "Transaction",
    "Storage",
    "CLOG",
    "Database",
    "Tablespace",
    "MultiXact",
    "RelMap",
    "Standby",
    "Heap2",
    "Heap",
    "Btree",
    "Sequence",
];

/// Where both logs begin.
pub(super) const START: Lsn = Lsn(0x0090_0000);

pub(super) fn log_of(version: PgVersion) -> Vec<u8> {
    unpacked(match version {
        PgVersion::V18 => include_bytes!("../../../testdata/wal-18.log.zst"),
        _ => include_bytes!("../../../testdata/wal-19.log.zst"),
    })
}

/// A record as `pg_waldump` prints it.
fn line(found: &LogRecord<'_>) -> String {
    let header = found.record.header();
    let description = describe(&found.record, found.version, &mut ());
    let mut line = format!(
        "rmgr: {:<11} len (rec/tot): {:6}/{:6}, tx: {:10}, lsn: {}, prev {}, desc: {} {}",
        ResourceManager(header.manager),
        header.length as usize - found.record.image_bytes(),
        header.length,
        header.xid,
        found.start,
        header.previous,
        description.operation,
        description.text
    );
    for block in found.record.blocks() {
        line += &format!(", blkref #{}: rel {}", block.id, block.relation);
        if block.fork != Fork::Main {
            line += &format!(" fork {}", block.fork);
        }
        line += &format!(" blk {}", block.block);
        line += match block.image {
            Some(image) if image.applies() => " FPW",
            Some(_) => " FPW for WAL verification",
            None => "",
        };
    }
    line
}

/// The parts in which we differ on purpose: leading commas, spaces at an end, zeros in positions
/// before 19.
fn comparable(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split_ascii_whitespace().filter(|word| *word != ",") {
        let bare = word.trim_end_matches([',', ';']);
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        match bare.split_once('/') {
            Some((high, low)) if is_hex(high) && is_hex(low) => {
                words.push(format!("{high}/{}", low.trim_start_matches('0')));
            }
            _ => words.push(bare.to_owned()),
        }
    }
    words.join(" ")
}

fn check(version: PgVersion, dump: &[u8], expected_records: usize) {
    let (bytes, dump) = (log_of(version), unpacked(dump));
    let dump = String::from_utf8(dump).expect("text");
    let log = LogIdentity { segment_size: megabyte(), system_identifier: None };
    let mut reader = LogReader::new(log, START);
    let chunk = LogChunk { start: START, bytes: &bytes };
    let mut lines = dump.lines();
    let (mut count, mut images) = (0, [0; 4]);
    loop {
        let event = reader.next(&chunk).expect("the log is there");
        let found = match event {
            LogEvent::Record(found) => found,
            LogEvent::End(end) => {
                assert_eq!(end.reason.to_string(), "nothing has been written here");
                break;
            }
            overwritten => panic!("{overwritten:?}"),
        };
        count += 1;
        assert_eq!(found.version, version);
        let (ours, theirs) = (line(&found), lines.next().expect("a line"));
        let manager = ResourceManager(found.record.header().manager).to_string();
        if DECODED.contains(&&*manager) {
            assert_eq!(comparable(&ours), comparable(theirs));
        } else {
            // Their fields are not ours.
            let head = |line: &str| {
                let (head, tail) = line.split_once("desc: ").expect("a description");
                let operation = tail.split([' ', ',']).next().expect("a word").to_owned();
                let blocks = tail.split_once("blkref").map_or("", |(_, blocks)| blocks).to_owned();
                comparable(&format!("{head}{operation} {blocks}"))
            };
            assert_eq!(head(&ours), head(theirs));
        }
        for block in found.record.blocks() {
            let Some(image) = block.image else { continue };
            let mut page = [1; 8192];
            image.restore(&mut page).expect("sound");
            let hole = usize::from(image.hole_offset())..;
            let hole = &page[hole][..usize::from(image.hole_length())];
            assert!(hole.iter().all(|byte| *byte == 0), "{ours}");
            images[image.compression().map_or(0, |compression| 1 + compression as usize)] += 1;
        }
    }
    assert_eq!((lines.next(), count), (None, expected_records));
    assert!(images[0] > 50 && images.iter().all(|count| *count > 0), "{images:?}");
}

#[test]
fn records_of_18_are_those_of_its_pg_waldump() {
    check(PgVersion::V18, include_bytes!("../../../testdata/wal-18.dump.zst"), 5052);
}

#[test]
fn records_of_19_are_those_of_its_pg_waldump() {
    check(PgVersion::V19, include_bytes!("../../../testdata/wal-19.dump.zst"), 5040);
}
