//! Hand-made heap pages: rows with arbitrary transaction ids, hint bits and damage.

use trunkline_aio::facade::random::Rng;
use trunkline_format::page::line_pointer;
use trunkline_format::{BLOCK_SIZE, HeapPageBuilder, PageBytes, TupleBuilder, page_checksum};

/// A row with one `int4` column.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crafted {
    pub(crate) xmin: u32,
    pub(crate) xmax: u32,
    pub(crate) infomask: u16,
    pub(crate) value: i32,
}

/// A page with the given rows.
pub(crate) fn page_of(block: u32, rows: &[Crafted]) -> PageBytes {
    let mut builder = HeapPageBuilder::new(block);
    let mut row = TupleBuilder::new();
    for crafted in rows {
        row.clear();
        builder.push(&row.int4(crafted.value).tuple()).expect("room");
    }
    let mut page = builder.finish(false);
    for (item, crafted) in (1..).zip(rows) {
        let at = usize::from(line_pointer(&page, item).expect("an item").offset);
        page[at..at + 4].copy_from_slice(&crafted.xmin.to_le_bytes());
        page[at + 4..at + 8].copy_from_slice(&crafted.xmax.to_le_bytes());
        page[at + 20..at + 22].copy_from_slice(&crafted.infomask.to_le_bytes());
    }
    seal(&mut page, block);
    page
}

/// Recomputes the page's checksum.
pub(crate) fn seal(page: &mut PageBytes, block: u32) {
    let checksum = page_checksum(page, block);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
}

/// Flips `count` random bits of a page and recomputes its checksum. If `anywhere` is false, we only
/// flip bits in the items and the special space. We never flip bits in the page header, because
/// then the pool would reject the page before it reaches the code under test.
pub(crate) fn flip(page: &mut PageBytes, block: u32, count: u64, anywhere: bool, random: &mut Rng) {
    for _ in 0..count {
        let upper = usize::from(u16::from_le_bytes([page[14], page[15]])).clamp(24, BLOCK_SIZE - 1);
        let first = if anywhere { 24 } else { upper };
        let at = first + random.below((BLOCK_SIZE - first) as u64) as usize;
        page[at] ^= 1 << random.below(8);
    }
    seal(page, block);
}
