//! Segments for tests: pages with valid headers, and nothing that could be a record.

use std::io::Write as _;

use trunkline_format::wal::{LOG_PAGE_SIZE, SegmentName, SegmentSize};

/// The size of a segment in bytes.
pub(super) const SIZE: u32 = 1 << 20;

/// A segment whose pages consist of a header and a repeated byte.
pub(super) fn segment(timeline: u32, number: u64, fill: u8) -> Vec<u8> {
    let mut bytes = vec![fill; SIZE as usize];
    for (page, at) in bytes.chunks_mut(LOG_PAGE_SIZE).zip((number << 20..).step_by(8192)) {
        let info: u16 = if at % u64::from(SIZE) == 0 { 2 } else { 0 };
        page[..24].fill(0);
        page[..2].copy_from_slice(&0xD118_u16.to_le_bytes());
        page[2..4].copy_from_slice(&info.to_le_bytes());
        page[4..8].copy_from_slice(&timeline.to_le_bytes());
        page[8..16].copy_from_slice(&at.to_le_bytes());
        if info == 2 {
            page[24..32].copy_from_slice(&77_u64.to_le_bytes());
            page[32..36].copy_from_slice(&SIZE.to_le_bytes());
            page[36..40].copy_from_slice(&8192_u32.to_le_bytes());
        }
    }
    bytes
}

pub(super) fn name(timeline: u32, number: u64) -> String {
    SegmentName::of(timeline, number, SegmentSize::new(SIZE).expect("valid")).to_string()
}

pub(super) fn packed(bytes: &[u8], suffix: &str) -> Vec<u8> {
    match suffix {
        ".gz" => {
            let level = flate2::Compression::fast();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).expect("packed");
            encoder.finish().expect("packed")
        }
        ".lz4" => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).expect("packed");
            encoder.finish().expect("packed")
        }
        ".zst" => {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(bytes, level)
        }
        _ => bytes.to_vec(),
    }
}
