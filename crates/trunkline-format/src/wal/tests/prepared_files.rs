//! Files of prepared transactions, made from the prepare records of two logs of real servers.

use super::servers::{START, log_of};
use crate::control::PgVersion;
use crate::ids::Oid;
use crate::wal::prepared_file::PreparedFileError;
use crate::wal::test_log::megabyte;
use crate::wal::{Effect, LogChunk, LogEvent, LogIdentity, LogReader, PreparedTransaction};

/// The prepared transactions of a log, each with the file that a checkpoint would have made.
fn prepared(version: PgVersion) -> Vec<(PreparedTransaction, Vec<u8>)> {
    let bytes = log_of(version);
    let log = LogIdentity { segment_size: megabyte(), system_identifier: None };
    let mut reader = LogReader::new(log, START);
    let chunk = LogChunk { start: START, bytes: &bytes };
    let mut found = Vec::new();
    while let Some(LogEvent::Record(record)) = reader.next(&chunk) {
        if let Ok(Some(Effect::Prepare(one))) = Effect::of(&record.record, record.version) {
            let mut file = record.record.main_data().to_vec();
            file.extend(crc32c::crc32c(&file).to_le_bytes());
            found.push((*one, file));
        }
    }
    found
}

#[test]
fn a_file_has_the_data_of_the_record() {
    for version in [PgVersion::V18, PgVersion::V19] {
        let all = prepared(version);
        assert_eq!(all.len(), 2);
        for (expected, file) in all {
            assert_eq!((expected.owner, expected.database), (Oid(10), Oid(5)));
            assert_eq!(PreparedTransaction::parse_file(&file, version), Ok(expected));
        }
    }
}

#[test]
fn a_damaged_file_is_refused() {
    use PreparedFileError::*;
    let parse = |bytes: &[u8]| PreparedTransaction::parse_file(bytes, PgVersion::V18);
    let (_, file) = prepared(PgVersion::V18).swap_remove(0);
    let size = file.len();
    for at in 0..size {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        let error = parse(&damaged).expect_err("damaged");
        match at {
            0..4 => assert!(matches!(error, Magic { .. }), "{at}: {error}"),
            4..8 => assert!(matches!(error, Size { found, .. } if found == size), "{at}: {error}"),
            _ => assert!(matches!(error, Crc { .. }), "{at}: {error}"),
        }
    }
    for length in 0..size {
        assert!(parse(&file[..length]).is_err(), "{length}");
    }
    // The checksum is right, but a list is too long.
    let mut long = file[..size - 4].to_vec();
    long[28..32].copy_from_slice(&1_000_000_i32.to_le_bytes());
    long.extend(crc32c::crc32c(&long).to_le_bytes());
    assert_eq!(parse(&long), Err(Lists));
}

#[test]
fn names_are_longer_since_17() {
    let xid = PreparedTransaction::xid_of_file;
    assert_eq!(xid("000002F1", PgVersion::V16), Some(0x2F1));
    assert_eq!(xid("00000003000002F1", PgVersion::V17), Some(0x3_0000_02F1));
    for (name, version) in [
        ("000002F1", PgVersion::V17),
        ("00000003000002F1", PgVersion::V16),
        ("000002f1", PgVersion::V16),
        ("+00002F1", PgVersion::V16),
        ("", PgVersion::V16),
    ] {
        assert_eq!(xid(name, version), None, "{name}");
    }
}
