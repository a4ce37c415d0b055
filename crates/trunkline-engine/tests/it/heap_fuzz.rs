//! Scans tables that were damaged at random. Every scan must terminate, every error must say where
//! the damage is, and the rows on undamaged pages must be returned unchanged.

use std::fs;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_engine::heap::{HeapError, HeapScan, RowFilter, ScanOptions};
use trunkline_engine::pool::{BackendType, Pool};
use trunkline_engine::storage::{OpenFiles, RelationLocator, Storage};
use trunkline_engine::transactions::Transactions;
use trunkline_format::deform::{Attribute, columns};
use trunkline_format::page::{HEADER_SIZE, LINE_POINTER_SIZE};
use trunkline_format::sequence::Sequence;
use trunkline_format::varlena::Varlena;
use trunkline_format::{Align, Fork, Oid, PageBytes};

use crate::crafted::{Crafted, flip, page_of, seal};
use crate::fake::Fake;
use crate::jobs::instance;

const BLOCKS: u32 = 24;
/// One page in this many is damaged.
const EVERY: u32 = 3;

fn random_page(block: u32, random: &mut Rng) -> PageBytes {
    let mut rows = Vec::new();
    for value in 0..random.below(100) as i32 {
        let xid = |random: &mut Rng| match random.below(20) {
            0 => random.next_u64() as u32,
            _ => random.below(1200) as u32,
        };
        let (xmin, xmax) = (xid(random), xid(random));
        let infomask = match random.below(3) {
            0 => 0x0900,
            1 => 0x0800,
            // Use a random infomask, but clear `HEAP_HASNULL` because the rows don't have a null
            // bitmap.
            _ => random.next_u64() as u16 & !1,
        };
        rows.push(Crafted { xmin, xmax, infomask, value });
    }
    page_of(block, &rows)
}

/// Scans a file. For each page, returns the page's rows and the number of invalid rows, or `None`
/// if the scan rejected the whole page.
fn scan(fake: &Fake, pages: &[PageBytes], rows: RowFilter) -> Vec<Option<(Vec<u16>, usize)>> {
    fake.write("base/5/16384", &pages.concat());
    let (aio, dir) = (instance(MethodKind::Sync), fake.open().expect("opened"));
    let files = OpenFiles::kernel(&aio, 8);
    let storage = Storage::of_datadir(&dir, &files, false);
    let transactions = Arc::new(Transactions::of_datadir(&dir, &storage));
    let pool = Pool::new(&aio, 16).expect("a pool");
    let mut backend = pool.backend(BackendType::Client).expect("a session");
    let locator = RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 16_384 };
    let relation = storage.relation(locator, Fork::Main);
    let options = ScanOptions { rows, ..ScanOptions::default() };
    let scan = HeapScan::of_table(&backend, &relation, &transactions, options);
    let (mut scan, mut found) = (scan.expect("a table"), Vec::new());
    let column = |len, align| Attribute { len, align };
    let attributes = [
        column(4, Align::Int),
        column(-1, Align::Int),
        column(-2, Align::Char),
        column(8, Align::Double),
    ];
    loop {
        match scan.next_page(&mut backend) {
            Ok(None) => break,
            Ok(Some(page)) => {
                assert_eq!(page.block() as usize, found.len());
                let (mut items, mut errors) = (Vec::new(), 0);
                for row in page.rows() {
                    let Ok(row) = row else {
                        errors += 1;
                        continue;
                    };
                    items.push(row.tuple.item());
                    let mut room = Vec::new();
                    for column in columns(&row.tuple, &attributes).flatten() {
                        let value = column.value().map(Varlena::parse);
                        let _ =
                            value.map(|value| value.map(|value| value.payload(&mut room).is_ok()));
                    }
                }
                match page.count_rows() {
                    // On an all-visible page, damage inside of a row isn't counted as an error.
                    Ok(count) => assert_eq!(count, page.len()),
                    Err(_) => assert_ne!(errors, 0),
                }
                let _ = Sequence::parse(page.bytes());
                assert!(items.is_sorted());
                found.push(Some((items, errors)));
            }
            Err(HeapError::Read(error)) if error.block().is_none() => unreachable!("{error}"),
            Err(_) => found.push(None),
        }
    }
    found
}

#[test]
fn random_damage() {
    let seed = 0xF0_22;
    let mut random = Rng::new(seed);
    let fake = Fake::new();
    for name in ["pg_xact", "pg_multixact/offsets", "pg_multixact/members"] {
        fs::create_dir_all(fake.at(name)).expect("made");
        let bytes: Vec<u8> = (0..20_000).map(|_| random.next_u64() as u8).collect();
        fake.write(&format!("{name}/0000"), &bytes);
    }
    // Multixact ids from 1 to 2999, and transaction ids from 3.
    for (at, value) in [(76, 3000), (80, 5000), (84, 3), (92, 1)] {
        fake.control(at, value);
    }
    let (mut errors, mut pages_lost) = (0, 0);
    for round in 0..60 {
        let rows = if round % 2 == 0 { RowFilter::All } else { RowFilter::Visible };
        let pages: Vec<_> = (0..BLOCKS).map(|block| random_page(block, &mut random)).collect();
        let before = scan(&fake, &pages, rows);
        let mut damaged = pages.clone();
        for (block, page) in (0..).zip(&mut damaged).filter(|(block, _)| block % EVERY == 0) {
            let (count, anywhere) = (random.below(40), random.below(2) == 0);
            flip(page, block, count, anywhere, &mut random);
            if random.below(10) == 0 {
                // Make the page claim that it has more line pointers than rows. The line pointer
                // array then overlaps the items, and may even extend to the end of the page.
                let lower = HEADER_SIZE + LINE_POINTER_SIZE * random.below(2042) as u16;
                page[12..14].copy_from_slice(&lower.to_le_bytes());
                page[14..16].copy_from_slice(&8192_u16.to_le_bytes());
                seal(page, block);
            }
        }
        let after = scan(&fake, &damaged, rows);
        assert_eq!((before.len(), after.len()), (BLOCKS as usize, BLOCKS as usize));
        for (block, (before, after)) in (0..).zip(before.iter().zip(&after)) {
            assert!(before.is_some());
            if block % EVERY != 0 {
                assert_eq!(before, after, "seed {seed:#x}, round {round}, block {block}");
            }
            errors += after.as_ref().map_or(0, |(_, errors)| *errors);
            pages_lost += u32::from(after.is_none());
        }
    }
    println!("seed {seed:#x}: {errors} rows and {pages_lost} pages had errors");
    assert!(errors > 0);
}
