//! Index scans of damaged indexes, and of indexes that a crash has left in the middle of a change.

use std::fs;

use trunkline_engine::index_scan::{
    BitmapBuilder, IndexOnlyScan, IndexScan, IndexScanError, IndexScanOptions, KeyedScan, TidBitmap,
};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::btree::{BtreePage, Comparison, Condition, Direction, Meta};
use trunkline_format::page::{LinePointer, LinePointerFlags};
use trunkline_format::{BLOCK_SIZE, Fork, PageBytes, Tid, page_checksum};

use crate::damaged_copy::{
    ACCOUNTS, ACCOUNTS_KEY, ACCOUNTS_MAP, Copy, double, inside, item, pointer, set_pointer, word,
};
use crate::fixtures::fixtures;
use crate::index_reads::{accounts_of, any_of, key_of, map_of, point_ranges, ranges};
use crate::tables::{Cluster, instance};
use trunkline_aio::MethodKind;

pub(crate) type Change = Box<dyn Fn(&mut Vec<PageBytes>)>;

/// Changes a file of a copy, and restores it afterwards.
pub(crate) fn changed<T>(
    copy: &Copy,
    place: (&str, &str, Fork),
    change: &Change,
    check: impl FnOnce(&mut Cluster) -> T,
) -> T {
    written(copy, place, |pages| {
        change(pages);
        for (block, page) in (0_u32..).zip(pages) {
            if *page != [0; BLOCK_SIZE] {
                let checksum = page_checksum(page, block);
                page[8..10].copy_from_slice(&checksum.to_le_bytes());
            }
        }
        check
    })
}

/// The same for a change that doesn't mend the checksums.
pub(crate) fn written<T, C: FnOnce(&mut Cluster) -> T>(
    copy: &Copy,
    place: (&str, &str, Fork),
    change: impl FnOnce(&mut Vec<PageBytes>) -> C,
) -> T {
    let (path, _) = copy.find(place.0, place.1, place.2);
    let before = fs::read(&path).expect("read");
    let mut pages: Vec<PageBytes> = before.as_chunks::<BLOCK_SIZE>().0.to_vec();
    let check = change(&mut pages);
    fs::write(&path, pages.as_flattened()).expect("written");
    let aio = instance(MethodKind::Worker);
    // Room for the whole index.
    let result = check(&mut Cluster::open(&aio, &copy.data(), false, 1024));
    fs::write(&path, before).expect("written");
    result
}

/// Scans pgbench_accounts by its primary key. Returns the keys that were found, and how it ended.
fn scan(
    cluster: &mut Cluster,
    conditions: &[Condition],
    direction: Direction,
) -> (Vec<i32>, Result<(), String>) {
    let table = accounts_of(cluster);
    let ranges = ranges(&table, conditions, direction);
    let backend = &mut cluster.backend;
    let mut scan = IndexScan::new(backend, &table, ranges, IndexScanOptions::default());
    let mut keys = Vec::new();
    let mut next = || -> Result<(), IndexScanError> {
        while let Some(page) = scan.next_page(backend)? {
            for row in page.rows() {
                keys.push(key_of(&row?));
            }
        }
        Ok(())
    };
    let ended = next().map_err(|error| error.to_string());
    drop(scan);
    assert_eq!(cluster.backend.pins(), 0);
    (keys, ended)
}

/// Looks up many keys at once. Returns the keys that were found, and how it ended.
fn look_up(
    cluster: &mut Cluster,
    keys: &[i32],
    direction: Direction,
) -> (Vec<i32>, Result<(), String>) {
    let table = accounts_of(cluster);
    let backend = &mut cluster.backend;
    let mut scan = KeyedScan::new(backend, &table, IndexScanOptions::default());
    scan.start(point_ranges(&table, keys, direction));
    let mut found = Vec::new();
    let mut next = || -> Result<(), IndexScanError> {
        while let Some(page) = scan.next_page(backend)? {
            for row in page.rows() {
                let row = row?;
                assert_eq!(key_of(&row), keys[row.entry as usize]);
                found.push(key_of(&row));
            }
        }
        Ok(())
    };
    let ended = next().map_err(|error| error.to_string());
    // The next keys aren't affected.
    scan.start(point_ranges(&table, &[199_999], direction));
    if ended.is_ok() {
        assert!(scan.next_page(backend).expect("sound").is_some());
    }
    drop(scan);
    assert_eq!(cluster.backend.pins(), 0);
    (found, ended)
}

/// Collects all rows in a bitmap.
fn fill_bitmap(cluster: &mut Cluster, conditions: &[Condition]) -> Result<(), String> {
    let table = accounts_of(cluster);
    let ranges = ranges(&table, conditions, Direction::Forward);
    let backend = &mut cluster.backend;
    let stream = StreamOptions::default();
    let mut builder = BitmapBuilder::new(backend, &table.index, table.sizes, ranges, stream);
    let built = builder.build(backend, &mut TidBitmap::new(1 << 20));
    built.map_err(|error| error.to_string())
}

pub(crate) fn copy() -> Option<Copy> {
    let (_, data) = fixtures().into_iter().rfind(|(major, _)| *major <= 18)?;
    Some(Copy::of(&data))
}

pub(crate) fn leaf_with_neighbours(pages: &[PageBytes]) -> usize {
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
    vec![any_of(numbers)]
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
        for key in (1000..2500).step_by(37) {
            for direction in [Direction::Forward, Direction::Backward] {
                assert_eq!(scan(cluster, &keys(&[key]), direction), (vec![key], Ok(())));
            }
        }
        // Far more keys on the right half than the index has blocks.
        let many: Vec<i32> = (0..4000).map(|at| 800 + at % 1600).collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let (found, ended) = look_up(cluster, &many, direction);
            assert_eq!(ended, Ok(()));
            assert!(found == many, "{} of {}", found.len(), many.len());
        }
    });
}

/// After the split of an inner page that was not finished, its right half is found from its left half.
#[test]
fn a_split_above_the_leaves_that_was_not_finished_is_walked() {
    let Some(copy) = copy() else { return };
    let change: Change = Box::new(|pages| {
        let root = Meta::parse(&pages[0]).expect("sound").root as usize;
        let child = |pages: &[PageBytes], at| {
            let root = BtreePage::parse(&pages[root]).expect("sound");
            root.entry(at).expect("an entry").child().expect("a child")
        };
        let (left, right) = (child(pages, 1), child(pages, 2));
        assert_eq!(BtreePage::parse(&pages[left as usize]).expect("sound").right(), Some(right));
        word(&mut pages[left as usize], 8188, |flags| flags | 0x80);
        let count = BtreePage::parse(&pages[root]).expect("sound").count();
        for number in 2..count {
            let next = pointer(&pages[root], number + 1);
            set_pointer(&mut pages[root], number, next);
        }
        word(&mut pages[root], 12, |lower| lower - 4);
    });
    changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
        let many: Vec<i32> = (0..4000).map(|at| (at * 7919) % 200_000 + 1).collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let (found, ended) = look_up(cluster, &many, direction);
            assert_eq!(ended, Ok(()));
            assert!(found == many, "{} of {}", found.len(), many.len());
            let (found, ended) = scan(cluster, &[], direction);
            assert_eq!((found.len(), ended), (200_000, Ok(())));
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

/// Makes an index one of PostgreSQL 10 (version 2) or 11 (version 3): separators and high keys have all
/// columns, and neither a row nor a number of columns.
fn make_older(pages: &mut [PageBytes], version: u32) {
    double(&mut pages[0], 28, |_| version);
    for page in pages.iter_mut().skip(1) {
        let Ok(parsed) = BtreePage::parse(page) else { continue };
        let (leaf, first, count) = (parsed.is_leaf(), parsed.first(), parsed.count());
        let pivots = 1..=if leaf { first - 1 } else { count };
        for number in pivots {
            let tuple = item(page, number);
            // The heap TID's line pointer held the number of columns.
            word(tuple, 4, |_| 1);
            word(tuple, 6, |info| info & !0x2000);
            // In version 2, the first separator of a page keeps the length that it had with a key.
            if version == 2 && !leaf && number == first {
                word(tuple, 6, |info| info & !0x1FFF | 16);
            }
        }
    }
}

#[test]
fn indexes_of_older_versions_are_scanned() {
    let Some(copy) = copy() else { return };
    for version in [2, 3] {
        let change: Change = Box::new(move |pages| make_older(pages, version));
        changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
            let comparison = Comparison::Less;
            let value = Some(Box::from(50_000_i32.to_le_bytes()));
            let below = [Condition::Compare { column: 0, comparison, value }];
            let some: Vec<i32> = (1..200_000).step_by(97).collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let (found, ended) = scan(cluster, &below, direction);
                assert_eq!((found.len(), ended), (49_999, Ok(())));
                let (mut found, ended) = scan(cluster, &keys(&some), direction);
                if direction == Direction::Backward {
                    found.reverse();
                }
                assert_eq!(ended, Ok(()));
                assert!(found == some, "{} of {}", found.len(), some.len());
                let (found, ended) = look_up(cluster, &some, direction);
                assert_eq!(ended, Ok(()));
                assert!(found == some, "{} of {}", found.len(), some.len());
            }
        });
    }
}

/// A key on the leaf that tests damage.
fn key_of_leaf(copy: &Copy, number: u16) -> i32 {
    let (path, _) = copy.find(ACCOUNTS_KEY.0, ACCOUNTS_KEY.1, ACCOUNTS_KEY.2);
    let bytes = fs::read(path).expect("read");
    let pages = bytes.as_chunks().0;
    let mut page = pages[leaf_with_neighbours(pages)];
    i32::from_le_bytes(*item(&mut page, number)[8..].first_chunk().expect("a key"))
}

/// Links that lead in a circle, on each level, through live and deleted pages.
#[test]
fn circles_of_links_end_a_scan() {
    let Some(copy) = copy() else { return };
    let deleted = |level: u32| -> Change {
        Box::new(move |pages| {
            let page = match level {
                0 => leaf_with_neighbours(pages),
                1 => inside(pages, 1),
                _ => Meta::parse(&pages[0]).expect("sound").root as usize,
            };
            word(&mut pages[page], 8188, |flags| flags | 0x10);
            double(&mut pages[page], 8176, |_| page as u32);
            double(&mut pages[page], 8180, |_| page as u32);
        })
    };
    // Two downlinks lead to the same page, and its right link to itself.
    let live: Change = Box::new(|pages| {
        let root = Meta::parse(&pages[0]).expect("sound").root as usize;
        let child = item(&mut pages[root], 1)[2..4].to_vec();
        item(&mut pages[root], 2)[2..4].copy_from_slice(&child);
        let page = usize::from(u16::from_le_bytes([child[0], child[1]]));
        double(&mut pages[page], 8180, |_| page as u32);
    });
    let some = [1, key_of_leaf(&copy, 8), 100_000, 199_999];
    let changes =
        [("leaf", deleted(0)), ("parent", deleted(1)), ("root", deleted(2)), ("live", live)];
    for (name, change) in changes {
        changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
            let ends = |ended: Result<(), String>| {
                let error = ended.expect_err(name);
                assert!(error.contains("do not end within 551 blocks"), "{name}: {error}");
                assert!(error.contains("block "), "{name}: {error}");
            };
            for direction in [Direction::Forward, Direction::Backward] {
                ends(scan(cluster, &keys(&some), direction).1);
                ends(look_up(cluster, &some, direction).1);
            }
            ends(fill_bitmap(cluster, &keys(&some)));
        });
    }
}

/// Only the keys on a damaged page fail, and only when it is their turn.
#[test]
fn damage_concerns_only_the_keys_that_lead_to_it() {
    let Some(copy) = copy() else { return };
    let (bad, beside) = (key_of_leaf(&copy, 8), key_of_leaf(&copy, 20));
    let entry: Change = Box::new(|pages| {
        let leaf = leaf_with_neighbours(pages);
        word(item(&mut pages[leaf], 8), 4, |_| 0);
    });
    let leaf: Change = Box::new(|pages| {
        let leaf = leaf_with_neighbours(pages);
        double(&mut pages[leaf], 8184, |_| 3);
    });
    let wanted = [150_000, beside, 7, bad, 100_000];
    for (change, rows, text) in
        [(entry, &wanted[..3], "points at line pointer 0"), (leaf, &wanted[..1], "level 3")]
    {
        changed(&copy, ACCOUNTS_KEY, &change, |cluster| {
            for direction in [Direction::Forward, Direction::Backward] {
                let (found, ended) = look_up(cluster, &wanted, direction);
                assert_eq!(found, rows);
                let error = ended.expect_err(text);
                assert!(error.contains(text) && error.contains("block "), "{error}");
                // A caller that stops before the damaged key doesn't notice it.
                assert_eq!(look_up(cluster, &[100_000], direction), (vec![100_000], Ok(())));
            }
        });
    }
}

/// An unreadable page of the index is an error of the index, whatever was read before it.
#[test]
fn an_unreadable_page_of_the_index_is_named() {
    let Some(copy) = copy() else { return };
    let unreadable = |pages: &mut Vec<PageBytes>| {
        let leaf = leaf_with_neighbours(pages);
        pages[leaf][4000] ^= 1;
        |cluster: &mut Cluster| {
            let table = accounts_of(cluster);
            let backend = &mut cluster.backend;
            for unordered in [false, true] {
                let all = ranges(&table, &[], Direction::Forward);
                let options = IndexScanOptions { unordered, ..IndexScanOptions::default() };
                let mut scan = IndexScan::new(backend, &table, all, options);
                let mut rows = 0;
                let error = loop {
                    match scan.next_page(backend) {
                        Ok(Some(page)) => rows += page.rows().count(),
                        Ok(None) => panic!("{rows} rows and no error"),
                        Err(error) => break error,
                    }
                };
                assert!(matches!(error, IndexScanError::Index(_)), "{error:?}");
                assert!(rows > 300, "{rows}");
                assert!(scan.next_page(backend).expect("ended").is_none());
            }
        }
    };
    written(&copy, ACCOUNTS_KEY, unreadable);
}

/// The tuples of an index-only scan, and the errors between them.
fn index_only(cluster: &mut Cluster, use_map: bool) -> (Vec<(Tid, i32)>, Vec<String>, u64) {
    let table = accounts_of(cluster);
    let (map, blocks) = map_of(&table);
    let all = ranges(&table, &[], Direction::Forward);
    let map = (&map, if use_map { blocks } else { 0 });
    let backend = &mut cluster.backend;
    let mut scan = IndexOnlyScan::new(backend, &table, map, all, IndexScanOptions::default());
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    loop {
        match scan.next_entries(backend) {
            Ok(Some(batch)) => entries.extend(batch.iter().map(|entry| {
                let tuple = entry.tuple().expect("sound");
                let key = tuple.attributes(table.index.layout().columns()).next();
                let key = key.expect("a column").expect("sound").expect("not null");
                (entry.tid, i32::from_le_bytes(*key.first_chunk().expect("a key")))
            })),
            Ok(None) => break,
            Err(error) => {
                assert!(!matches!(error, IndexScanError::Index(_)), "{error}");
                errors.push(error.to_string());
            }
        }
    }
    if let Some(error) = scan.take_map_error() {
        errors.push(error.to_string());
    }
    let fetches = scan.counts().heap_fetches;
    drop(scan);
    assert_eq!(cluster.backend.pins(), 0);
    (entries, errors, fetches)
}

/// After the error, entries belong to the pages that their rows are on.
#[test]
fn an_index_only_scan_goes_on_after_a_page_of_the_table() {
    let Some(copy) = copy() else { return };
    written(&copy, ACCOUNTS, |pages| {
        pages[5][4000] ^= 1;
        set_unused(&mut pages[900], 3);
        |cluster: &mut Cluster| {
            let (entries, errors, fetches) = index_only(cluster, false);
            assert_eq!(errors.len(), 2, "{errors:?}");
            assert!(errors[0].contains("block 5"), "{errors:?}");
            assert!(errors[1].contains("which is an unused line pointer"), "{errors:?}");
            assert_eq!((entries.len(), fetches), (200_000 - 2 * 61, 200_000));
            assert!(entries.iter().all(|(tid, _)| ![5, 900].contains(&tid.block)));
            assert!(entries.is_sorted_by_key(|(_, key)| *key));
        }
    });
}

/// Marks a line pointer as unused, and mends the checksum.
fn set_unused(page: &mut PageBytes, number: u16) {
    let unused = LinePointer { offset: 0, flags: LinePointerFlags::Unused, length: 0 };
    set_pointer(page, number, unused);
    let checksum = page_checksum(page, 900);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
}

/// Without its map, an index-only scan looks up the rows in the table, and says why.
#[test]
fn an_unreadable_visibility_map_is_reported() {
    let Some(copy) = copy() else { return };
    let sound =
        changed(&copy, ACCOUNTS_MAP, &(Box::new(|_: &mut Vec<PageBytes>| {}) as Change), |it| {
            index_only(it, true)
        });
    assert_eq!((sound.0.len(), sound.1.len()), (200_000, 0));
    written(&copy, ACCOUNTS_MAP, |pages| {
        pages[0][4000] ^= 1;
        |cluster: &mut Cluster| {
            let (entries, errors, fetches) = index_only(cluster, true);
            assert!(entries == sound.0, "{}", entries.len());
            assert_eq!(fetches, 200_000);
            assert!(errors.len() == 1 && errors[0].contains("_vm"), "{errors:?}");
        }
    });
}

/// The first entry must be looked up, and nothing else. The scan that stops after it doesn't go through
/// all the other entries in search of the next one.
#[test]
fn an_index_only_scan_that_stops_early_does_not_search_for_doubtful_entries() {
    let Some(copy) = copy() else { return };
    let change: Change = Box::new(|pages| {
        // Two bits for each block: visible, frozen.
        pages[0][24..].fill(0xFF);
        pages[0][24] &= !3;
    });
    changed(&copy, ACCOUNTS_MAP, &change, |cluster| {
        let table = accounts_of(cluster);
        let (map, blocks) = map_of(&table);
        // The index is cached, and the table isn't.
        fill_bitmap(cluster, &[]).expect("sound");
        let backend = &mut cluster.backend;
        let stream = StreamOptions { full: true, ..StreamOptions::default() };
        let slow = IndexScanOptions::default();
        for options in [slow, IndexScanOptions { leaves: stream, heap: stream, ..slow }] {
            let all = ranges(&table, &[], Direction::Forward);
            let mut scan = IndexOnlyScan::new(backend, &table, (&map, blocks), all, options);
            let mut entries = 0;
            let mut next = |scan: &mut IndexOnlyScan| {
                let batch = scan.next_entries(backend).expect("sound");
                entries += batch.map_or(0, <[_]>::len);
                (entries, scan.counts().index.pages)
            };
            // The metapage, two pages above the leaves, one leaf.
            assert_eq!(next(&mut scan), (61, 4));
            while next(&mut scan).0 < 20_000 {}
            let (entries, pages) = next(&mut scan);
            assert!(pages <= 2 * (entries as u64 / 366 + 1) + 4, "{entries} {pages}");
        }
        assert_eq!(cluster.backend.pins(), 0);
    });
}
