//! Images with each compression, and frames that would need too much memory.

use crate::ids::BLOCK_SIZE;
use crate::test_data::XorShift;
use crate::toast_compression::tests::pglz;
use crate::wal::Record;
use crate::wal::resource_manager::number::XLOG;
use crate::wal::test_log::RecordBytes;
use crate::wal::{ImageCompression, RecordError};

const HOLE: u8 = 0x01;
const APPLY: u8 = 0x02;

/// A record with one image.
fn record(stored: &[u8], flags: u8, hole_offset: u16, hole_length: Option<u16>) -> Vec<u8> {
    let mut body = vec![0, 0x10, 0, 0];
    body.extend((stored.len() as u16).to_le_bytes());
    body.extend(hole_offset.to_le_bytes());
    body.push(flags);
    body.extend(hole_length.map(u16::to_le_bytes).unwrap_or_default());
    if hole_length.is_none() {
        body.truncate(9);
    }
    for number in [1663_u32, 5, 16384, 3] {
        body.extend(number.to_le_bytes());
    }
    body.extend(stored);
    RecordBytes { manager: XLOG, info: 0xB0, xid: 0, body }.build(crate::ids::Lsn(0))
}

/// A page with a hole of zeros from 100 to 7000, and its bytes without the hole.
fn page() -> ([u8; BLOCK_SIZE], Vec<u8>) {
    let mut page = [0; BLOCK_SIZE];
    for (index, byte) in page.iter_mut().enumerate() {
        *byte = if (100..7000).contains(&index) { 0 } else { (index / 20) as u8 };
    }
    let without = [&page[..100], &page[7000..]].concat();
    (page, without)
}

/// A frame of one stored block, with the header that the server's encoder writes. Frames with
/// compressed blocks are in the logs of real servers.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut frame = 0xFD2F_B528_u32.to_le_bytes().to_vec();
    frame.push(0x60);
    frame.extend((bytes.len() as u16 - 256).to_le_bytes());
    frame.extend(&((bytes.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    frame.extend(bytes);
    frame
}

fn restore(bytes: &[u8]) -> Result<[u8; BLOCK_SIZE], String> {
    let record = Record::parse(bytes).map_err(|error| error.to_string())?;
    let image = record.block(0).and_then(|block| block.image).expect("an image");
    let mut page = [0xEE; BLOCK_SIZE];
    image.restore(&mut page).map_err(|error| error.to_string())?;
    Ok(page)
}

#[test]
fn pages_are_restored_from_images() {
    let (page, without) = page();
    assert!(restore(&record(&page, APPLY, 0, None)) == Ok(page));
    assert!(restore(&record(&without, HOLE | APPLY, 100, None)) == Ok(page));
    for (bits, whole, holed) in [
        (0x04, pglz(&page), pglz(&without)),
        (0x08, lz4_flex::block::compress(&page), lz4_flex::block::compress(&without)),
        // The frame of a whole page would be longer than a page.
        (0x10, zstd(&without), zstd(&without)),
    ] {
        let is_restored = restore(&record(&whole, bits, 0, None)) == Ok(page);
        assert_eq!(is_restored, bits != 0x10, "{bits}");
        let bytes = record(&holed, bits | HOLE, 100, Some(6900));
        assert!(restore(&bytes) == Ok(page), "{bits}");
        // Another size is an error. pglz fills a space that is too small without noticing, here as
        // in the server.
        for length in [6899, 6901] {
            let wrong = restore(&record(&holed, bits | HOLE, 100, Some(length))).err();
            if (bits, length) != (0x04, 6901) {
                let error = wrong.expect("an error");
                assert!(error.ends_with(&format!("to {} bytes", 8192 - length)), "{error}");
            }
        }
    }
}

#[test]
fn a_frame_can_not_make_us_allocate() {
    // A window of 2^41 bytes; a single segment of 2^62 bytes; a dictionary; no frame.
    for header in [&[0x00, 0xF8][..], &[0xE0, 0, 0, 0, 0, 0, 0, 0, 0x40], &[0x21, 1, 0], &[]] {
        let mut frame = 0xFD2F_B528_u32.to_le_bytes().to_vec();
        frame.extend(header);
        frame.extend([0x03, 0xFF, 0x1F, 0xAA]);
        assert!(restore(&record(&frame, 0x10, 0, None)).is_err(), "{header:X?}");
    }
    // 2,000 blocks that each stand for 8 kB of the same byte: a window of 16 kB, 16 MB in all.
    let mut frame = 0xFD2F_B528_u32.to_le_bytes().to_vec();
    frame.extend([0x00, 0x20]);
    for _ in 0..2000 {
        frame.extend([0x02, 0x00, 0x01, 0xAA]);
    }
    let error = restore(&record(&frame, 0x10, 0, None)).expect_err("too long");
    assert!(error.contains("does not decompress to 8192 bytes"), "{error}");
}

#[test]
fn headers_of_images_are_checked() {
    let (page, without) = page();
    let is_refused = |bytes: Vec<u8>| {
        let error = Record::parse(&bytes).expect_err("refused");
        assert!(matches!(error, RecordError::Image { id: 0, .. }), "{error}");
    };
    // Without a hole: too short; with an offset.
    is_refused(record(&without, APPLY, 0, None));
    is_refused(record(&page, APPLY, 100, None));
    // A hole at the start, of no length, or past the end.
    is_refused(record(&without, HOLE, 0, None));
    is_refused(record(&page, HOLE, 100, None));
    is_refused(record(&without, HOLE, 8000, None));
    is_refused(record(&without, HOLE | 0x04, 100, Some(0)));
    is_refused(record(&without, HOLE | 0x04, 100, Some(8100)));
    // Compressed to a whole page, and by two methods.
    is_refused(record(&page, 0x04, 0, None));
    is_refused(record(&without, 0x0C, 0, None));
}

#[test]
fn random_bytes_are_no_images() {
    let mut rng = XorShift(3);
    let mut restored = 0;
    for _ in 0..3000 {
        let mut stored = vec![0; 1 + rng.below(300)];
        rng.fill(&mut stored);
        if rng.below(2) == 0 {
            stored.splice(0..0, [0x28, 0xB5, 0x2F, 0xFD, 0x60, 0x00, 0x1F]);
        }
        let bits = [0x04, 0x08, 0x10][rng.below(3)];
        restored += usize::from(restore(&record(&stored, bits, 0, None)).is_ok());
    }
    assert!(restored < 10, "{restored}");
    assert_eq!(ImageCompression::Zstd.to_string(), "zstd");
}
