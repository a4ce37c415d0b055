//! Compares bitmaps with sets of rows.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % end
    }
}

type Set = BTreeSet<(BlockNo, u16)>;

fn random_rows(random: &mut Random, blocks: u32) -> Set {
    let count = random.below(3000);
    (0..count).map(|_| (random.below(blocks), 1 + random.below(291) as u16)).collect()
}

fn bitmap(rows: &Set, bytes: usize) -> TidBitmap {
    let mut bitmap = TidBitmap::new(bytes);
    for &(block, item) in rows {
        assert!(bitmap.add(Tid { block, item }, false));
    }
    bitmap
}

/// Bytes of the two hash tables, control bytes included. A table has 8/7 as many buckets as it has room
/// for, and their number is a power of two.
fn bytes_of(bitmap: &TidBitmap) -> usize {
    let buckets =
        |capacity: usize| if capacity == 0 { 0 } else { (capacity * 8 / 7).next_power_of_two() };
    let chunk = size_of::<(BlockNo, [u64; CHUNK_WORDS])>() + 1;
    buckets(bitmap.exact.capacity()) * BUCKET_BYTES + buckets(bitmap.lossy.capacity()) * chunk
}

/// Checks that a bitmap has all the rows of a set. Exact pages that need no check must have no others.
fn check(bitmap: TidBitmap, rows: &Set, most: usize) -> (u64, u64) {
    let counts = bitmap.pages();
    let entries = bitmap.exact.len() + bitmap.lossy.len();
    assert!(entries <= most, "{entries} of {most}");
    let mut expected: BTreeMap<BlockNo, Vec<u16>> = BTreeMap::new();
    rows.iter().for_each(|(block, item)| expected.entry(*block).or_default().push(*item));
    let mut before = None;
    let mut seen = (0, 0);
    for page in bitmap.into_pages() {
        assert!(before.replace(page.block).is_none_or(|before| before < page.block));
        let items = expected.remove(&page.block).unwrap_or_default();
        match page.rows {
            BitmapRows::Exact(found) if !page.recheck => {
                assert_eq!(found.collect::<Vec<_>>(), items, "block {}", page.block);
                seen.0 += 1;
            }
            BitmapRows::Exact(found) => {
                let found: Vec<u16> = found.collect();
                assert!(items.iter().all(|item| found.contains(item)));
                seen.0 += 1;
            }
            BitmapRows::Lossy => {
                assert!(page.recheck);
                seen.1 += 1;
            }
        }
    }
    assert!(expected.is_empty(), "{expected:?}");
    assert_eq!(seen, counts);
    counts
}

#[test]
fn a_bitmap_is_a_set_of_rows() {
    let mut random = Random(0xB17);
    let (mut exact, mut lossy) = (0, 0);
    for round in 0..24 {
        let blocks = [20, 2000, 100_000][round % 3];
        let (one, other) = (random_rows(&mut random, blocks), random_rows(&mut random, blocks));
        let bytes = [1 << 22, 40_000, 6000][random.below(3) as usize];
        // If everything is lossy, twice as many entries as there are chunks.
        let chunks = blocks.div_ceil(CHUNK_BLOCKS) as usize;
        let most = (bytes / ENTRY_BYTES).max(ENTRIES_MIN).max(2 * chunks);
        let (a, b) = (bitmap(&one, bytes), bitmap(&other, 1 << (10 + random.below(12))));
        let mut union = a.clone();
        union.unite(&b);
        let mut both = a.clone();
        both.intersect(&b);
        for (bitmap, rows) in [
            (union, one.union(&other).copied().collect()),
            (both, one.intersection(&other).copied().collect()),
            (a, one),
        ] {
            let counts = check(bitmap, &rows, most);
            (exact, lossy) = (exact + counts.0, lossy + counts.1);
        }
    }
    assert!(exact > 1000 && lossy > 1000, "{exact} {lossy}");
}

#[test]
fn a_bitmap_within_its_limit_is_exact() {
    let mut bitmap = TidBitmap::new(1 << 20);
    for block in 0..(1 << 20) / ENTRY_BYTES as u32 {
        assert!(bitmap.add(Tid { block, item: 291 }, false));
    }
    assert_eq!(bitmap.pages().1, 0);
    assert!(bitmap.add(Tid { block: 1 << 20, item: 1 }, false));
    let (exact, lossy) = bitmap.pages();
    assert!(exact > 4000 && lossy > 4000, "{exact} {lossy}");
    assert!(!bitmap.add(Tid { block: 0, item: 292 }, false));
    assert!(!bitmap.add(Tid { block: 0, item: 0 }, false));
}

#[test]
fn the_tables_stay_within_the_limit() {
    for limit in [1 << 18, 1 << 20] {
        // Dense blocks share chunks, and those of the other kind don't.
        for step in [1, 3, 37] {
            let mut bitmap = TidBitmap::new(limit);
            let mut most = 0;
            for at in 0..60_000 {
                assert!(bitmap.add(Tid { block: at * step, item: 1 }, false));
                most = most.max(bytes_of(&bitmap));
            }
            let chunks = (60_000 * step / CHUNK_BLOCKS) as usize;
            if chunks < limit / ENTRY_BYTES / 2 {
                assert!(most <= limit, "{limit} {step}: {most}");
            }
            assert!(most > limit / 4, "{limit} {step}: {most}");
        }
    }
}

#[test]
fn a_union_with_a_lossy_bitmap_stays_within_the_limit() {
    let mut lossy = TidBitmap::new(0);
    for chunk in 0..3000 {
        for block in 0..2 {
            assert!(lossy.add(Tid { block: chunk * CHUNK_BLOCKS + block, item: 1 }, false));
        }
    }
    lossy.exact.clear();
    let chunks = lossy.lossy.len();
    let mut bitmap = TidBitmap::new(4000 * ENTRY_BYTES);
    for block in 0..3900 {
        assert!(bitmap.add(Tid { block: 10_000_000 + block, item: 1 }, false));
    }
    assert_eq!(bitmap.pages(), (3900, 0));
    bitmap.unite(&lossy);
    let entries = bitmap.exact.len() + bitmap.lossy.len();
    assert!(chunks > 100 && bitmap.lossy.len() >= chunks, "{chunks}");
    assert!(entries <= 4000, "{entries}");
}

/// The scan of a bitmap goes through lossy and exact pages in the order of their blocks.
#[test]
fn lossy_and_exact_pages_take_turns() {
    let mut bitmap = TidBitmap::new(1 << 20);
    for block in [5, 255, 256, 300, 1000] {
        assert!(bitmap.add(Tid { block, item: 291 }, block == 300));
    }
    for block in [0, 6, 254, 257, 511, 512, 999, 1001, u32::MAX - 1] {
        bitmap.make_lossy(block);
    }
    let pages = bitmap.into_pages();
    let pages: Vec<_> =
        pages.map(|page| (page.block, page.rows == BitmapRows::Lossy, page.recheck)).collect();
    let lossy = |block| (block, true, true);
    let exact = |block| (block, false, block == 300);
    let expected = [
        lossy(0),
        exact(5),
        lossy(6),
        lossy(254),
        exact(255),
        exact(256),
        lossy(257),
        exact(300),
        lossy(511),
        lossy(512),
        lossy(999),
        exact(1000),
        lossy(1001),
        lossy(u32::MAX - 1),
    ];
    assert_eq!(pages, expected);
}
