//! Index scans of damaged indexes, and of indexes that a crash has left in the middle of a change.

use std::fs;

use trunkline_engine::index_scan::{IndexScan, IndexScanError, IndexScanOptions};
use trunkline_format::btree::{BtreePage, Comparison, Condition, Direction, KeyRanges, Meta};
use trunkline_format::page::{LinePointer, LinePointerFlags};
use trunkline_format::{BLOCK_SIZE, PageBytes, page_checksum};

use crate::damaged_copy::{
    ACCOUNTS, ACCOUNTS_KEY, Copy, double, inside, item, pointer, set_pointer, word,
};
use crate::fixtures::fixtures;
use crate::tables::{Cluster, instance};
use trunkline_aio::MethodKind;

type Change = Box<dyn Fn(&mut Vec<PageBytes>)>;

/// Changes a file of a copy, and restores it afterwards.
fn changed<T>(
    copy: &Copy,
    place: (&str, &str, trunkline_format::Fork),
    change: &Change,
    check: impl FnOnce(&mut Cluster) -> T,
) -> T {
    let (path, _) = copy.find(place.0, place.1, place.2);
    let before = fs::read(&path).expect("read");
    let mut pages: Vec<PageBytes> = before.as_chunks::<BLOCK_SIZE>().0.to_vec();
    change(&mut pages);
    for (block, page) in (0_u32..).zip(&mut pages) {
        if *page != [0; BLOCK_SIZE] {
            let checksum = page_checksum(page, block);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    fs::write(&path, pages.as_flattened()).expect("written");
    let aio = instance(MethodKind::Worker);
    let result = check(&mut Cluster::open(&aio, &copy.data(), false, 256));
    fs::write(&path, before).expect("written");
    result
}

/// Scans pgbench_accounts by its primary key. Returns the keys that were found, and how it ended.
fn scan(
    cluster: &mut Cluster,
    conditions: &[Condition],
    direction: Direction,
) -> (Vec<i32>, Result<(), String>) {
    let database = cluster.database("bench");
    let table = database.resolve(b"pgbench_accounts").expect("a table");
    let row = database.indexes_of(table.oid).first().expect("an index");
    let index = database.btree(row).expect("a B-tree");
    let rows = database.table_files(table).expect("files").rows;
    let sizes = trunkline_engine::btree::ScanSizes {
        index_blocks: index.relation().blocks().expect("a length"),
        table_blocks: rows.blocks().expect("a length"),
    };
    let ranges = KeyRanges::new(index.layout(), conditions, direction);
    let ranges = ranges.expect("usable").expect("not empty");
    let transactions = cluster.transactions();
    let table = trunkline_engine::index_scan::IndexedTable { index, rows, sizes, transactions };
    let backend = &mut cluster.backend;
    let mut scan = IndexScan::new(backend, &table, ranges, IndexScanOptions::default());
    let mut keys = Vec::new();
    let mut next = || -> Result<(), IndexScanError> {
        while let Some(page) = scan.next_page(backend)? {
            for row in page.rows() {
                let data = row?.tuple.data();
                keys.push(i32::from_le_bytes(*data.first_chunk().expect("a key")));
            }
        }
        Ok(())
    };
    let ended = next().map_err(|error| error.to_string());
    drop(scan);
    assert_eq!(cluster.backend.pins(), 0);
    (keys, ended)
}

fn copy() -> Option<Copy> {
    let (_, data) = fixtures().into_iter().rfind(|(major, _)| *major <= 18)?;
    Some(Copy::of(&data))
}

fn leaf_with_neighbours(pages: &[PageBytes]) -> usize {
    inside(pages, 0)
}

#[test]
fn damage_ends_a_scan_with_an_error() {
    let Some(copy) = copy() else { return };
    let cases: Vec<(_, &str, Change)> = vec![
        (
            ACCOUNTS_KEY,
            "link to the neighbour is",
            Box::new(|pages| {
                let leaf = leaf_with_neighbours(pages);
                let left = BtreePage::parse(&pages[leaf]).expect("sound").left().expect("left");
                double(&mut pages[leaf], 8180, |_| left);
                double(&mut pages[leaf], 8176, |left| left + 1);
            }),
        ),
        (
            ACCOUNTS_KEY,
            "not above the entry before it",
            Box::new(|pages| {
                let leaf = leaf_with_neighbours(pages);
                let (five, six) = (pointer(&pages[leaf], 5), pointer(&pages[leaf], 6));
                set_pointer(&mut pages[leaf], 5, six);
                set_pointer(&mut pages[leaf], 6, five);
            }),
        ),
        (
            ACCOUNTS_KEY,
            "but the table has",
            Box::new(|pages| {
                let leaf = leaf_with_neighbours(pages);
                word(item(&mut pages[leaf], 8), 0, |_| 1);
            }),
        ),
        (
            ACCOUNTS_KEY,
            "points at line pointer 0",
            Box::new(|pages| {
                let leaf = leaf_with_neighbours(pages);
                word(item(&mut pages[leaf], 8), 4, |_| 0);
            }),
        ),
        (
            ACCOUNTS_KEY,
            "1000), but the page has 61 line pointers",
            Box::new(|pages| {
                let leaf = leaf_with_neighbours(pages);
                word(item(&mut pages[leaf], 8), 4, |_| 1000);
            }),
        ),
        (
            ACCOUNTS,
            "which is an unused line pointer",
            Box::new(|pages| {
                let unused = LinePointer { offset: 0, flags: LinePointerFlags::Unused, length: 0 };
                set_pointer(&mut pages[5], 3, unused);
            }),
        ),
        (
            ACCOUNTS,
            "which is a heap-only tuple",
            Box::new(|pages| word(item(&mut pages[5], 3), 18, |mask| mask | 0x8000)),
        ),
        (
            ACCOUNTS,
            "but the page has 0 line pointers",
            Box::new(|pages| pages[9] = [0; BLOCK_SIZE]),
        ),
        (
            ACCOUNTS_KEY,
            "level 2 found, 1 expected",
            Box::new(|pages| {
                let root = Meta::parse(&pages[0]).expect("sound").root;
                for number in 1..=2 {
                    let child = item(&mut pages[root as usize], number);
                    child[2..4].copy_from_slice(&(root as u16).to_le_bytes());
                }
            }),
        ),
        (ACCOUNTS_KEY, "metapage magic", Box::new(|pages| double(&mut pages[0], 24, |_| 0))),
        (
            ACCOUNTS_KEY,
            "special space at",
            Box::new(|pages| {
                let leaf = leaf_with_neighbours(pages);
                pages[leaf] = pages[leaf + 1];
                word(&mut pages[leaf], 16, |_| 8184);
            }),
        ),
    ];
    for (place, text, change) in cases {
        for direction in [Direction::Forward, Direction::Backward] {
            let (keys, ended) =
                changed(&copy, place, &change, |cluster| scan(cluster, &[], direction));
            let error = ended.expect_err(text);
            assert!(error.contains(text), "{direction:?}: {error}, {text} expected");
            assert!(error.contains("block "), "{error}");
            assert!(keys.len() < 200_000, "{text}");
        }
    }
}

/// The links between the leaves count, and downlinks only predict where they lead. But a scan that skips
/// leaves relies on downlinks.
#[test]
fn wrong_downlinks_are_followed_only_by_scans_that_skip() {
    let Some(copy) = copy() else { return };
    let change: Change = Box::new(|pages| {
        let parent = inside(pages, 1);
        for number in 3..BtreePage::parse(&pages[parent]).expect("sound").count() {
            let child = item(&mut pages[parent], number);
            child[2..4].copy_from_slice(&(parent as u16).to_le_bytes());
        }
    });
    changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
        let some: Vec<i32> = (1..200_000).step_by(97).collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let (found, ended) = scan(cluster, &[], direction);
            assert_eq!((found.len(), ended), (200_000, Ok(())));
            let (_, ended) = scan(cluster, &keys(&some), direction);
            let error = ended.expect_err("a wrong downlink");
            assert!(error.contains("level 1 found, 0 expected"), "{error}");
        }
    });
}

/// Removes the downlink to a leaf from its parent.
fn remove_downlink(pages: &mut [PageBytes], leaf: u32) {
    let downlink = |page: &PageBytes| {
        let page = BtreePage::parse(page).ok().filter(|page| page.level() == 1)?;
        let found = page.entries().flatten().find(|entry| entry.child() == Some(leaf))?;
        Some((found.item(), page.count()))
    };
    let mut parents = pages.iter_mut().filter_map(|page| Some((downlink(page)?, page)));
    let ((found, count), parent) = parents.next().expect("a downlink");
    for number in found..count {
        let next = pointer(parent, number + 1);
        set_pointer(parent, number, next);
    }
    word(&mut parent[..], 12, |lower| lower - 4);
}

fn keys(numbers: &[i32]) -> Vec<Condition> {
    let values = numbers.iter().map(|key| Some(Box::from(key.to_le_bytes())));
    vec![Condition::AnyOf { column: 0, values: values.collect() }]
}

#[test]
fn a_split_that_was_not_finished_is_walked() {
    let Some(copy) = copy() else { return };
    // The right half has no downlink yet, and the left half says so.
    let change: Change = Box::new(|pages| {
        let leaf = leaf_with_neighbours(pages);
        let right = BtreePage::parse(&pages[leaf]).expect("sound").right().expect("right");
        word(&mut pages[leaf], 8188, |flags| flags | 0x80);
        remove_downlink(pages, right);
    });
    // Keys from all over the index, so that the scan skips leaves, but not the right half.
    let some: Vec<i32> = (1..200_000).step_by(97).collect();
    changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
        for (conditions, expected) in [(vec![], (1..=200_000).collect()), (keys(&some), some)] {
            let (found, ended) = scan(cluster, &conditions, Direction::Forward);
            assert_eq!(ended, Ok(()));
            assert!(found == expected, "{} of {}", found.len(), expected.len());
            let (mut found, ended) = scan(cluster, &conditions, Direction::Backward);
            assert_eq!(ended, Ok(()));
            found.reverse();
            assert!(found == expected, "{} of {}", found.len(), expected.len());
        }
        // Each key alone, in either direction.
        for key in (1000..2500).step_by(7) {
            for direction in [Direction::Forward, Direction::Backward] {
                assert_eq!(scan(cluster, &keys(&[key]), direction), (vec![key], Ok(())));
            }
        }
    });
}

#[test]
fn a_deletion_that_was_not_finished_is_walked() {
    let Some(copy) = copy() else { return };
    let change: Change = Box::new(|pages| {
        let leaf = leaf_with_neighbours(pages);
        // Half-dead: no entries, and no downlink.
        word(&mut pages[leaf], 8188, |flags| flags | 0x10);
        word(&mut pages[leaf], 12, |_| 28);
        remove_downlink(pages, leaf as u32);
    });
    changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
        let (forward, ended) = scan(cluster, &[], Direction::Forward);
        assert_eq!(ended, Ok(()));
        let (mut backward, ended) = scan(cluster, &[], Direction::Backward);
        assert_eq!(ended, Ok(()));
        backward.reverse();
        assert!(forward == backward && forward.len() > 199_000 && forward.len() < 200_000);
        let lost: Vec<i32> =
            (1..=200_000).filter(|key| forward.binary_search(key).is_err()).collect();
        let (before, after) = (lost[0] - 1, lost[lost.len() - 1] + 1);
        let wanted = keys(&[before, lost[0], lost[5], after]);
        for direction in [Direction::Forward, Direction::Backward] {
            let (mut found, ended) = scan(cluster, &wanted, direction);
            found.sort_unstable();
            assert_eq!((found, ended), (vec![before, after], Ok(())));
        }
    });
}

#[test]
fn indexes_of_older_versions_are_scanned() {
    let Some(copy) = copy() else { return };
    for version in [2, 3] {
        let change: Change = Box::new(move |pages| double(&mut pages[0], 28, |_| version));
        changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
            let comparison = Comparison::Less;
            let value = Some(Box::from(50_000_i32.to_le_bytes()));
            let below = [Condition::Compare { column: 0, comparison, value }];
            for direction in [Direction::Forward, Direction::Backward] {
                let (found, ended) = scan(cluster, &below, direction);
                assert_eq!((found.len(), ended), (49_999, Ok(())));
            }
        });
    }
}
