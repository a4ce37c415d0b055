//! Damages the rows, tuple headers and visibility maps in a copy of a real cluster, and checks that
//! verification reports the right problem.

use std::fs;
use std::path::PathBuf;

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_engine::job::Unobserved;
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{ContentOptions, Only, verify_contents};
use trunkline_format::page::{LinePointer, LinePointerFlags};
use trunkline_format::{BLOCK_SIZE, Fork, PageBytes, page_checksum};

use crate::damaged_copy::{
    ACCOUNTS, ACCOUNTS_MAP, Case, Copy, double, item, normal, run, set_pointer, word,
};
use crate::fixtures::fixtures;
use crate::jobs::engine;

/// Cases with damaged rows. Each of them consists of a relation, the findings we expect, and a
/// function that damages the relation's pages.
const ROWS: &[Case] = &[
    (ACCOUNTS, &["block 3: line pointer 5: column \"filler\": "], |pages| {
        item(&mut pages[3], 5)[24 + 12] = 0xFF;
    }),
    (ACCOUNTS, &["block 6: line pointer 1: row has 9 columns, at most 4 expected"], |pages| {
        word(item(&mut pages[6], 1), 18, |_| 9);
    }),
    (ACCOUNTS, &["block 8: not a page of a table"], |pages| {
        word(&mut pages[8][..], 16, |_| 8184);
        pages[8][8190..].fill(0xFF);
    }),
    (("fixture", "pg_catalog.pg_constraint", Fork::Main), &["neither true nor false"], |pages| {
        let first = normal(&pages[0])[0];
        let tuple = item(&mut pages[0], first);
        tuple[usize::from(tuple[22]) + 73] = 7;
    }),
    (
        ("fixture", "s1.toast (toast)", Fork::Main),
        &["fixture.s1.toast: block 0: line pointer ", "in TOAST: TOAST value ", " is missing"],
        |pages| {
            for page in pages.iter_mut() {
                page[10] &= !4;
                for number in normal(page) {
                    word(item(page, number), 20, |mask| mask & !0x0300 | 0x0200);
                }
            }
        },
    ),
    (
        ("fixture", "s1.toast (toast)", Fork::Main),
        &["in TOAST: TOAST value ", "has 1995 bytes, expected 1996"],
        |pages| {
            for page in pages.iter_mut() {
                for number in normal(page) {
                    double(item(page, number), 32, |header| {
                        if header == 2000 << 2 { 1999 << 2 } else { header }
                    });
                }
            }
        },
    ),
    (
        ACCOUNTS,
        &["block 5: line pointer 3: heap-only tuple is not part of any HOT chain"],
        |pages| {
            word(item(&mut pages[5], 3), 18, |mask| mask | 0x8000);
        },
    ),
];

const BT: (&str, &str, Fork) = ("fixture", "s1.bt", Fork::Main);

/// Tuple headers with impossible ids. The hint bits are set, so these ids aren't looked up in the
/// commit log.
const HEADERS: &[Case] = &[
    (BT, &["block 1: line pointer 2: xmin 3000000000 is out of range: the oldest "], |pages| {
        double(item(&mut pages[1], 2), 0, |_| 3_000_000_000);
    }),
    (BT, &["block 1: line pointer 3: xmin 1000000 is out of range"], |pages| {
        double(item(&mut pages[1], 3), 0, |_| 1_000_000);
    }),
    (BT, &["block 1: line pointer 4: xmin 5 is out of range"], |pages| {
        double(item(&mut pages[1], 4), 0, |_| 5);
    }),
    (BT, &["block 1: line pointer 5: xmax 999999 is out of range"], |pages| {
        let tuple = item(&mut pages[1], 5);
        double(tuple, 4, |_| 999_999);
        // Turn xmax into a mere lock. The row is then live, because a lock doesn't delete it.
        word(tuple, 20, |mask| mask & !0x0800 | 0x0080 | 0x0010);
    }),
    (BT, &["block 1: line pointer 6: xmax 7 is out of range"], |pages| {
        let tuple = item(&mut pages[1], 6);
        double(tuple, 4, |_| 7);
        word(tuple, 20, |mask| mask & !0x0800 | 0x0080 | 0x0010);
    }),
    (BT, &["block 1: line pointer 7: multixact 777777 is out of range"], |pages| {
        let tuple = item(&mut pages[1], 7);
        double(tuple, 4, |_| 777_777);
        word(tuple, 20, |mask| mask & !0x0800 | 0x1000 | 0x0080 | 0x0010);
    }),
    (BT, &["block 1: line pointer 8: row was never updated, but its ctid points to"], |pages| {
        word(item(&mut pages[1], 8), 14, |_| 7);
        word(item(&mut pages[1], 8), 16, |_| 9);
    }),
];

const MAPS: &[Case] = &[
    (ACCOUNTS, &["block 2: all-visible in the visibility map, but not in the page"], |pages| {
        pages[2][10] &= !4;
    }),
    (ACCOUNTS, &["block 2: line pointer 4: row is dead, but the page is marked"], |pages| {
        let tuple = item(&mut pages[2], 4);
        word(tuple, 20, |mask| mask & !0x0800 | 0x0400);
        double(tuple, 4, |_| 700);
    }),
    (ACCOUNTS, &["block 4: line pointer 9: line pointer is dead, but the page"], |pages| {
        let dead = LinePointer { offset: 0, flags: LinePointerFlags::Dead, length: 0 };
        set_pointer(&mut pages[4], 9, dead);
    }),
    (
        ACCOUNTS_MAP,
        &["block 0: all-visible in the visibility map, but the table has 3279 blocks"],
        |pages| pages[0][24 + 30_000 / 4] |= 1,
    ),
    (ACCOUNTS_MAP, &["block 7: all-frozen in the visibility map, but not all-visible"], |pages| {
        pages[0][24 + 7 / 4] &= !(1 << 6);
        pages[0][24 + 7 / 4] |= 1 << 7;
    }),
    (
        ("fixture", "s1.mvcc", Fork::Vm),
        &[
            "block 0: all-visible in the visibility map, but not in the page",
            "row is aborted, but the page is marked all-visible",
            "row is dead, but the page is marked all-visible",
        ],
        |pages| {
            let mut page = [0; BLOCK_SIZE];
            for (at, number) in [(12, 24_u16), (14, 8192), (16, 8192), (18, 0x2004)] {
                page[at..at + 2].copy_from_slice(&number.to_le_bytes());
            }
            page[24] = 1;
            *pages = vec![page];
        },
    ),
    (ACCOUNTS, &["block 11: line pointer 7: row is not frozen"], |pages| {
        word(item(&mut pages[11], 7), 20, |mask| mask & !0x0200);
    }),
];

#[test]
fn damaged_rows_and_values_are_found() {
    run(ROWS);
}

#[test]
fn impossible_ids_in_headers_are_found() {
    run(HEADERS);
}

/// If a row of `pg_class` is damaged, we must report that and still check all other tables.
#[test]
fn a_damaged_catalog_row_is_reported() {
    let Some((_, data)) = fixtures().into_iter().rfind(|(major, _)| *major <= 18) else { return };
    let copy = Copy::of(&data);
    let (path, only) = copy.find("fixture", "pg_catalog.pg_class", Fork::Main);
    let everything = Only { relation: None, ..only };
    let before = fs::read(&path).expect("read");
    let mut bytes = before.clone();
    let pages: &mut [PageBytes] = bytes.as_chunks_mut().0;
    let mut place = None;
    for (block, page) in (0_u32..).zip(pages) {
        for number in normal(page) {
            let tuple = item(page, number);
            let start = usize::from(tuple[22]);
            // Find the row by its relation name, then damage the relation kind, which is stored a
            // good deal later in the row.
            if tuple[start + 4..].starts_with(b"hot\0") {
                let kind = (start + 68..tuple.len() - 1).find(|&at| &tuple[at..at + 2] == b"pr");
                tuple[kind.expect("persistence and kind") + 1] = b'?';
                place.get_or_insert((block, number));
            }
        }
        let checksum = page_checksum(page, block);
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
    }
    let (block, number) = place.expect("a row");
    fs::write(&path, &bytes).expect("written");
    let found = copy.verify(everything);
    let text = format!("fixture: block {block}: line pointer {number}: ");
    assert!(found.iter().any(|line| line.starts_with(&text)), "{text} expected, {found:#?}");
    let others: Vec<_> = found.iter().filter(|line| !line.contains("relkind")).collect();
    assert!(others.is_empty(), "{others:#?}");
    fs::write(&path, &before).expect("written");
    assert_eq!(copy.verify(everything), [""; 0], "mended");
}

#[test]
fn wrong_visibility_maps_are_found() {
    run(MAPS);
}

/// With random damage in any file, including the catalogs, verification must still terminate and
/// report the damage.
#[test]
fn random_damage_ends_in_findings() {
    let Some((_, data)) = fixtures().into_iter().rfind(|(major, _)| *major <= 18) else { return };
    let copy = Copy::of(&data);
    let (path, _) = copy.find("fixture", "s1.bt", Fork::Main);
    let directory = path.parent().expect("a directory");
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| fs::metadata(path).expect("metadata").len() >= BLOCK_SIZE as u64)
        .collect();
    files.sort();
    let mut random = Rng::new(0xDA3A6E);
    let mut found = 0;
    for round in 0..12 {
        let mut mended = Vec::new();
        for _ in 0..20 {
            let path = &files[random.below(files.len() as u64) as usize];
            let before = fs::read(path).expect("read");
            let mut bytes = before.clone();
            let pages: &mut [PageBytes] = bytes.as_chunks_mut().0;
            let block = random.below(pages.len() as u64) as usize;
            let Some(page) = pages.get_mut(block) else { continue };
            for _ in 0..=random.below(6) {
                // Choose the offset so that damage to the line pointers is about as likely as
                // damage to all of the tuple data together.
                let within = if random.below(2) == 0 { 200 } else { BLOCK_SIZE as u64 };
                page[24 + random.below(within - 24) as usize] = random.next_u64() as u8;
            }
            let checksum = page_checksum(page, block as u32);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
            fs::write(path, &bytes).expect("written");
            mended.push((path.clone(), before));
        }
        let engine = engine(&copy.aio, 256, false);
        let cluster = engine.cluster(copy.data()).expect("opened");
        let (pool, dir, storage) = (engine.pool(), cluster.dir(), cluster.storage());
        let mut options = ContentOptions::of(&Settings::default(), true, true);
        options.workers = 2;
        let report = verify_contents(pool, dir, storage, &options, Arc::new(Unobserved));
        match report {
            Ok(report) => {
                println!("round {round}: {} findings", report.findings_total);
                found += report.findings_total;
            }
            Err(error) => println!("round {round}: {error}"),
        }
        for (path, before) in mended.into_iter().rev() {
            fs::write(path, before).expect("written");
        }
    }
    assert!(found > 20, "{found}");
}
