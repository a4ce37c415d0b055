//! Any bytes may be in a record, and on a page.

use super::damage::mutations;
use super::redo_images::LOGS;
use crate::ids::{BLOCK_SIZE, Lsn, PageBytes};
use crate::test_data::XorShift;
use crate::wal::Record;
use crate::wal::redo::{Change, Redone, derived_pages, first_difference, redo, redo_derived};
use crate::wal::resource_manager::{ResourceManager, number};
use crate::wal::test_log::record_bytes;

/// Some records of each log with the page before and after, as bytes.
struct Sample {
    version: crate::control::PgVersion,
    record: Vec<u8>,
    pages: Vec<PageBytes>,
}

fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for log in &LOGS {
        let mut count = 0;
        log.read(|found| {
            count += 1;
            let is_rare = found.record.header().manager != number::BTREE || count % 7 == 0;
            if !is_rare || found.record.blocks().is_empty() {
                return;
            }
            let image = |block: &crate::wal::BlockRef<'_>| {
                let mut page = [0; BLOCK_SIZE];
                block.image?.restore(&mut page).ok()?;
                Some(page)
            };
            let pages: Vec<_> = found.record.blocks().iter().filter_map(image).collect();
            // Without the images, which are most of a record.
            let record = record_bytes(&found.record);
            samples.push(Sample { version: found.version, record, pages });
        });
    }
    samples
}

/// Flips bits and overwrites words, mostly where headers and line pointers are.
fn damage(bytes: &mut [u8], random: &mut XorShift) {
    for _ in 0..random.below(4) {
        let near = if random.below(2) == 0 { bytes.len().min(64) } else { bytes.len() };
        let at = random.below(near);
        match random.below(3) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
            _ => {
                let word = [0, 0xFFFF, random.next() as u16][random.below(3)].to_le_bytes();
                bytes[at..].iter_mut().zip(word).for_each(|(byte, new)| *byte = new);
            }
        }
    }
}

#[test]
fn damaged_records_and_pages_are_refused_without_a_panic() {
    let (samples, mut random) = (samples(), XorShift(0x2ED0));
    let (mut applied, mut refused) = (0, 0);
    let rounds = mutations(30_000);
    for _ in 0..rounds {
        let sample = &samples[random.below(samples.len())];
        let mut bytes = sample.record.clone();
        damage(&mut bytes[24..], &mut random);
        // Another version, and another operation, must do no harm either.
        let info = bytes[16];
        bytes[16] = [info, info, info, random.next() as u8][random.below(4)];
        let Ok(record) = Record::parse(&bytes) else { continue };
        let mut page = match random.below(8) {
            0 => {
                let mut page = [0; BLOCK_SIZE];
                random.fill(&mut page);
                page
            }
            1 => [0; BLOCK_SIZE],
            _ => match sample.pages.get(random.below(sample.pages.len().max(1))) {
                Some(page) => *page,
                None => continue,
            },
        };
        damage(&mut page, &mut random);
        let version = match random.below(8) {
            0 => LOGS[random.below(LOGS.len())].version,
            _ => sample.version,
        };
        let hints_are_logged = random.below(2) == 0;
        let change = Change { record: &record, end: Lsn(u64::MAX), version, hints_are_logged };
        for derived in derived_pages(&record, version) {
            redo_derived(&mut page.clone(), &change, derived.block);
        }
        for block in record.blocks() {
            let mut page = page;
            match redo(&mut page, &change, block.id) {
                Ok(Redone::Applied | Redone::Initialised) => applied += 1,
                Ok(_) => {}
                Err(_) => refused += 1,
            }
            let manager = ResourceManager(record.header().manager);
            first_difference(&page, &page, manager, block.fork, block.block);
        }
    }
    assert!(applied > rounds / 20 && refused > rounds / 20, "{applied}, {refused}");
}
