//! Mutated records and logs: nothing panics, and a wrong byte is found by the CRC.

use std::env;

use super::reading::identity;
use super::servers::{START, log_of};
use crate::control::PgVersion;
use crate::ids::BLOCK_SIZE;
use crate::test_data::XorShift;
use crate::wal::test_log::megabyte;
use crate::wal::{
    Effect, LogChunk, LogEvent, LogIdentity, LogReader, PreparedTransaction, Record,
    TransactionEnd, describe,
};

/// How many mutations each test makes. `TRUNKLINE_MUTATIONS` asks for more.
pub(super) fn mutations(few: usize) -> usize {
    #[expect(clippy::disallowed_methods, reason = "a test, and this crate has no façade")]
    let asked = env::var("TRUNKLINE_MUTATIONS").ok();
    asked.map_or(few, |text| text.parse().expect("a number"))
}

/// The bytes of all records of a log.
fn records(version: PgVersion) -> Vec<Vec<u8>> {
    let bytes = log_of(version);
    let log = LogIdentity { segment_size: megabyte(), system_identifier: None };
    let mut reader = LogReader::new(log, START);
    let chunk = LogChunk { start: START, bytes: &bytes };
    let mut records = Vec::new();
    while let Some(LogEvent::Record(found)) = reader.next(&chunk) {
        // Records that lie on one page can be copied from the log.
        let length = found.record.header().length as usize;
        let offset = (found.start.0 - START.0) as usize;
        if offset / 8192 == (offset + length - 1) / 8192 {
            records.push(bytes[offset..offset + length].to_vec());
        }
    }
    records
}

/// Decodes everything in a record.
fn exercise(bytes: &[u8], version: PgVersion) -> bool {
    let Ok(record) = Record::parse(bytes) else { return false };
    let description = describe(&record, version, &mut ());
    // A description is bounded by the record.
    assert!(description.text.len() < 500 + 60 * bytes.len(), "{description:?}");
    let _ = TransactionEnd::parse(&record, version);
    let _ = PreparedTransaction::parse(&record, version);
    let _ = Effect::of(&record, version);
    let mut page = [0; BLOCK_SIZE];
    for image in record.blocks().iter().filter_map(|block| block.image) {
        let _ = image.restore(&mut page);
    }
    true
}

/// Changes some bytes, cuts the record, or adds bytes, and corrects the length.
fn mutate(bytes: &mut Vec<u8>, rng: &mut XorShift) {
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(bytes.len());
        match rng.below(8) {
            0 => bytes.truncate(at.max(24)),
            1 => bytes.extend([0, 0xFF, 1, 0x80]),
            2 => bytes[at] ^= 1 << rng.below(8),
            3 => bytes[at] = 0xFF,
            4 => bytes[at] = 0,
            // The headers are where it matters.
            _ => {
                let at = (16 + rng.below(40)).min(bytes.len() - 1);
                bytes[at] = rng.next() as u8;
            }
        }
    }
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
}

#[test]
fn mutated_records_are_decoded_or_refused() {
    let seed = 11;
    let mut rng = XorShift(seed);
    for version in [PgVersion::V18, PgVersion::V19] {
        let records = records(version);
        let (mut accepted, count) = (0, mutations(4000) / 2);
        for _ in 0..count {
            let mut bytes = records[rng.below(records.len())].clone();
            mutate(&mut bytes, &mut rng);
            // Fields mean other things in other versions.
            let version = PgVersion::ALL[rng.below(5)];
            accepted += usize::from(exercise(&bytes, version));
        }
        // Both outcomes are tested.
        assert!(accepted > count / 10 && accepted < count * 9 / 10, "{accepted} of {count}");
    }
}

#[test]
fn random_bytes_are_decoded_or_refused() {
    let mut rng = XorShift(5);
    for _ in 0..mutations(2000) {
        let mut bytes = vec![0; 24 + rng.below(300)];
        rng.fill(&mut bytes);
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        exercise(&bytes, PgVersion::ALL[rng.below(5)]);
        let mut page = vec![0; 8192];
        rng.fill(&mut page);
        page[..2].copy_from_slice(&0xD118_u16.to_le_bytes());
        page[8..16].copy_from_slice(&START.0.to_le_bytes());
        let mut reader = LogReader::new(identity(), START);
        let chunk = LogChunk { start: START, bytes: &page };
        while let Some(LogEvent::Record(_)) = reader.next(&chunk) {}
    }
}

/// A single wrong byte ends the log at the record that contains it, or at its page.
#[test]
fn a_wrong_byte_ends_the_log() {
    let log = LogIdentity { segment_size: megabyte(), system_identifier: None };
    let bytes = log_of(PgVersion::V18);
    let mut rng = XorShift(9);
    let read = |bytes: &[u8]| {
        let mut reader = LogReader::new(log, START);
        let chunk = LogChunk { start: START, bytes };
        let mut count = 0;
        while let Some(LogEvent::Record(_)) = reader.next(&chunk) {
            count += 1;
        }
        (count, reader.position())
    };
    // Only the beginning: reading all of it each time would take long.
    let head = &bytes[..12 * 8192];
    let (all, end) = read(head);
    let written = (end.0 - START.0) as usize;
    let (mut unnoticed, rounds) = (0, mutations(300).min(20_000));
    for _ in 0..rounds {
        let mut damaged = head.to_vec();
        let at = rng.below(written);
        damaged[at] ^= 1 << rng.below(8);
        let (count, position) = read(&damaged);
        if count == all {
            unnoticed += 1;
            continue;
        }
        let place = START.0 + at as u64;
        // A timeline that is too new is noticed on the next page.
        let is_near = position.0 <= place + 8192 && place.saturating_sub(position.0) < 80_000;
        assert!(is_near, "{at}: {position}");
    }
    // Padding between records, and bytes of page headers that have no meaning.
    assert!(unnoticed * 7 < rounds, "{unnoticed} of {rounds}");
}
