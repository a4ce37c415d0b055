//! Damages a copy of a real cluster, and checks that verification reports the right problem. We
//! recompute the page checksums, so that the damage can only be found by checking the contents of
//! the pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::{Aio, MethodKind};
use trunkline_engine::job::Unobserved;
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{ContentOptions, Only, verify_contents};
use trunkline_format::btree::{BtreePage, Meta, Target};
use trunkline_format::page::{LinePointer, LinePointerFlags, line_pointer, line_pointers};
use trunkline_format::{
    BLOCK_SIZE, CheckOptions, Fork, PageBytes, Verdict, check_page, page_checksum,
};

use crate::fixtures::fixtures;
use crate::jobs::engine;
use crate::tables::{Cluster, instance};

/// We append this suffix to a table's name to refer to its TOAST table.
const TOAST_OF: &str = " (toast)";

/// A copy of a cluster that the tests can damage and restore.
struct Copy {
    aio: Aio,
    root: tempfile::TempDir,
}

impl Copy {
    fn of(data: &Path) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let mut copy = Command::new("cp");
        copy.arg("-R").arg("--preserve=mode").arg(data).arg(root.path().join("data"));
        assert!(copy.status().expect("runs").success());
        Self { aio: instance(MethodKind::Worker), root }
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Returns a relation's file, and the options for verifying only that relation.
    fn find(&self, database: &str, name: &str, fork: Fork) -> (PathBuf, Only) {
        let mut cluster = Cluster::open(&self.aio, &self.data(), false, 64);
        let database = cluster.database(database);
        let table = database.resolve(name.trim_end_matches(TOAST_OF).as_bytes());
        let table = table.expect("a relation");
        let relation = match name.ends_with(TOAST_OF) {
            true => database.relation(table.toast).expect("a TOAST table"),
            false => table,
        };
        let main = database.files(relation).expect("files").path(0);
        let path = format!("{}{}", main.display(), fork.suffix()).into();
        (path, Only { database: database.info().oid, relation: Some(table.oid) })
    }

    /// The findings, one per line.
    fn verify(&self, only: Only) -> Vec<String> {
        let engine = engine(&self.aio, 512, false);
        let cluster = engine.cluster(self.data()).expect("opened");
        let (pool, dir, storage) = (engine.pool(), cluster.dir(), cluster.storage());
        let mut options = ContentOptions::of(&Settings::default(), true, true);
        options.only = Some(vec![only]);
        let report = verify_contents(pool, dir, storage, &options, Arc::new(Unobserved));
        let report = report.expect("verified");
        assert!(report.tables > 0);
        let line = |finding: &trunkline_engine::verify::Finding| {
            format!("{}: {finding}", finding.relation.as_deref().unwrap_or_default())
        };
        report.findings.iter().map(line).collect()
    }

    /// Damages a file, verifies, and restores it.
    fn broken(
        &self,
        place: (&str, &str, Fork),
        change: impl FnOnce(&mut Vec<PageBytes>),
    ) -> Vec<String> {
        let (database, name, fork) = place;
        let (path, only) = self.find(database, name, fork);
        let before = fs::read(&path).ok();
        let mut pages: Vec<PageBytes> =
            before.as_deref().unwrap_or_default().as_chunks::<BLOCK_SIZE>().0.to_vec();
        let sound = pages.clone();
        change(&mut pages);
        for (block, page) in (0_u32..).zip(&mut pages) {
            // New (all-zero) pages have no checksum.
            if sound.get(block as usize) == Some(page) || *page == [0; BLOCK_SIZE] {
                continue;
            }
            let checksum = page_checksum(page, block);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
            let options = CheckOptions { checksums: true, fork };
            assert_eq!(check_page(page, block, &options), Verdict::Good, "{name} block {block}");
        }
        assert!(sound != pages, "{name}: nothing was changed");
        fs::write(&path, pages.as_flattened()).expect("written");
        let lines = self.verify(only);
        match before {
            Some(bytes) => fs::write(&path, bytes).expect("written"),
            None => fs::remove_file(&path).expect("removed"),
        }
        lines
    }
}

fn pointer(page: &PageBytes, item: u16) -> LinePointer {
    line_pointer(page, item).expect("a line pointer")
}

fn set_pointer(page: &mut PageBytes, item: u16, pointer: LinePointer) {
    let at = 20 + 4 * usize::from(item);
    page[at..at + 4].copy_from_slice(&pointer.to_bits().to_le_bytes());
}

/// Returns the bytes of an item, which we find through its line pointer.
fn item(page: &mut PageBytes, number: u16) -> &mut [u8] {
    let found = pointer(page, number);
    &mut page[usize::from(found.offset)..usize::from(found.end())]
}

fn word(bytes: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
    let word = change(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    bytes[at..at + 2].copy_from_slice(&word.to_le_bytes());
}

fn double(bytes: &mut [u8], at: usize, change: impl FnOnce(u32) -> u32) {
    let old = u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"));
    bytes[at..at + 4].copy_from_slice(&change(old).to_le_bytes());
}

/// Returns the normal line pointers on a heap page.
fn normal(page: &PageBytes) -> Vec<u16> {
    let normal = |(_, pointer): &(u16, LinePointer)| pointer.flags == LinePointerFlags::Normal;
    line_pointers(page).filter(normal).map(|(item, _)| item).collect()
}

/// Returns the block number of an index page that is on the given level and has more than ten line
/// pointers. If it's a leaf, it must also have both a left and a right sibling.
fn inside(pages: &[PageBytes], level: u32) -> usize {
    let fits = |page: &PageBytes| {
        BtreePage::parse(page).is_ok_and(|page| {
            page.level() == level
                && !page.is_ignored()
                && page.count() > 10
                && (level > 0 || (page.left().is_some() && page.right().is_some()))
        })
    };
    (1..pages.len()).skip(3).find(|&block| fits(&pages[block])).expect("a page")
}

const ACCOUNTS: (&str, &str, Fork) = ("bench", "public.pgbench_accounts", Fork::Main);
const ACCOUNTS_MAP: (&str, &str, Fork) = ("bench", "public.pgbench_accounts", Fork::Vm);
const ACCOUNTS_KEY: (&str, &str, Fork) = ("bench", "public.pgbench_accounts_pkey", Fork::Main);

type Case = ((&'static str, &'static str, Fork), &'static [&'static str], fn(&mut Vec<PageBytes>));

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

const TREES: &[Case] = &[
    (
        ACCOUNTS_KEY,
        &["bench.public.pgbench_accounts_pkey: block ", "6: not above the entry"],
        |pages| {
            let block = inside(pages, 0);
            let page = &mut pages[block];
            let (five, six) = (pointer(page, 5), pointer(page, 6));
            set_pointer(page, 5, six);
            set_pointer(page, 6, five);
        },
    ),
    (ACCOUNTS_KEY, &["left link points to block "], |pages| {
        let page = inside(pages, 0);
        double(&mut pages[page], 8176, |left| left + 1);
    }),
    (
        ACCOUNTS_KEY,
        &[
            "differs from the high key of the page to the left",
            "first entry is below the high key of",
        ],
        |pages| {
            let page = inside(pages, 0);
            double(item(&mut pages[page], 1), 8, |key| key + 1);
        },
    ),
    (ACCOUNTS_KEY, &["no downlink points to this page", "not the next of its level"], |pages| {
        let page = inside(pages, 1);
        let mut children = [5, 6].map(|number| item(&mut pages[page], number)[..4].to_vec());
        children.reverse();
        for (number, child) in [5, 6].into_iter().zip(children) {
            item(&mut pages[page], number)[..4].copy_from_slice(&child);
        }
    }),
    (ACCOUNTS_KEY, &["differs from the high key of the page to the left"], |pages| {
        let page = inside(pages, 1);
        double(item(&mut pages[page], 5), 8, |key| key - 1);
    }),
    (ACCOUNTS_KEY, &["left link points to block ", "no downlink points to this page"], |pages| {
        // Make the page's right link skip its right sibling, so that the only links to the skipped
        // page are in its parent and in the next page.
        let page = inside(pages, 0);
        let skipped = BtreePage::parse(&pages[page]).expect("sound").right().expect("a neighbour");
        let right = BtreePage::parse(&pages[skipped as usize]).expect("sound").right();
        double(&mut pages[page], 8180, |_| right.expect("a neighbour"));
    }),
    (ACCOUNTS_KEY, &["links to the right do not end within 551 blocks"], |pages| {
        let page = inside(pages, 0);
        let left = BtreePage::parse(&pages[page]).expect("sound").left().expect("a neighbour");
        double(&mut pages[page], 8180, |_| left);
    }),
    (ACCOUNTS_KEY, &["root flag contradicts the metapage, which has root"], |pages| {
        let root = Meta::parse(&pages[0]).expect("sound").root;
        word(&mut pages[root as usize][..], 8188, |flags| flags & !2);
    }),
    (ACCOUNTS_KEY, &["block 0: fast root is block ", "not the only page of level"], |pages| {
        double(&mut pages[0][..], 40, |block| block - 1);
    }),
    (ACCOUNTS_KEY, &["is not the only page of level 0"], |pages| {
        // Make the fast root a leaf. The level in the metapage is right for a leaf.
        let leaf = inside(pages, 0) as u32;
        double(&mut pages[0][..], 40, |_| leaf);
        double(&mut pages[0][..], 44, |_| 0);
    }),
    (ACCOUNTS_KEY, &["level 7 found, 1 expected"], |pages| {
        let page = inside(pages, 1);
        double(&mut pages[page], 8184, |_| 7);
    }),
    (("fixture", "s1.bt_dup", Fork::Main), &["rows of its list are out of order"], |pages| {
        let list = |page: &PageBytes| {
            let page = BtreePage::parse(page).ok().filter(|page| page.is_leaf())?;
            let mut entries = page.entries().flatten();
            let list = entries.find(|entry| matches!(entry.target(), Target::Rows(_)))?;
            Some(list.item())
        };
        let (page, number) = pages
            .iter_mut()
            .skip(1)
            .find_map(|page| Some((list(page)?, page)))
            .map(|(a, b)| (b, a))
            .expect("a list");
        let entry = item(page, number);
        let start = usize::from(u16::from_le_bytes([entry[2], entry[3]]));
        let (one, other) = entry[start..start + 12].split_at_mut(6);
        one.swap_with_slice(other);
    }),
];

const HEAP_AND_INDEX: &[Case] = &[
    (
        ACCOUNTS_KEY,
        &["row has the same key in unique index pgbench_accounts_pkey as row ("],
        |pages| {
            let page = inside(pages, 0);
            let key: [u8; 4] = item(&mut pages[page], 9)[8..12].try_into().expect("a key");
            item(&mut pages[page], 8)[8..12].copy_from_slice(&key);
        },
    ),
    (
        ACCOUNTS_KEY,
        &["row has the same key in unique index pgbench_accounts_pkey as row ("],
        |pages| {
            // Two entries on different leaves.
            let page = inside(pages, 0);
            let leaf = BtreePage::parse(&pages[page]).expect("sound");
            let (last, right) = (leaf.count(), leaf.right().expect("a neighbour"));
            let key: [u8; 4] = {
                let right = &mut pages[right as usize];
                let first = BtreePage::parse(right).expect("sound").first();
                item(right, first)[8..12].try_into().expect("a key")
            };
            item(&mut pages[page], last)[8..12].copy_from_slice(&key);
        },
    ),
    (
        ACCOUNTS_KEY,
        &["row's key differs from that of its entry in index pgbench_accounts_pkey"],
        |pages| {
            let page = inside(pages, 0);
            double(item(&mut pages[page], 8), 8, |key| key + 1_000_000);
        },
    ),
    (
        ACCOUNTS_KEY,
        &[
            "points here, to none of 61 line pointers",
            "row is visible, but index pgbench_accounts_pkey has no entry",
        ],
        |pages| {
            let page = inside(pages, 0);
            word(item(&mut pages[page], 8), 4, |_| 1000);
        },
    ),
    (ACCOUNTS_KEY, &["entry points to row (100000,", "has no entry for line pointer"], |pages| {
        let page = inside(pages, 0);
        word(item(&mut pages[page], 8), 0, |_| 1);
        word(item(&mut pages[page], 8), 2, |_| (100_000_u32 & 0xFFFF) as u16);
    }),
    (
        ACCOUNTS_KEY,
        &["two entries of index pgbench_accounts_pkey point to the same row"],
        |pages| {
            let page = inside(pages, 0);
            let row: [u8; 6] = item(&mut pages[page], 9)[..6].try_into().expect("six bytes");
            item(&mut pages[page], 8)[..6].copy_from_slice(&row);
        },
    ),
    (
        ACCOUNTS_KEY,
        &["the entry of index pgbench_accounts_pkey for line pointer ", "is marked as dead"],
        |pages| {
            let page = inside(pages, 0);
            let dead = LinePointer { flags: LinePointerFlags::Dead, ..pointer(&pages[page], 8) };
            set_pointer(&mut pages[page], 8, dead);
        },
    ),
    (
        ACCOUNTS_KEY,
        &["row is visible, but index pgbench_accounts_pkey has no entry for"],
        |pages| {
            let page = inside(pages, 0);
            let count = BtreePage::parse(&pages[page]).expect("sound").count();
            for number in 8..count {
                let next = pointer(&pages[page], number + 1);
                set_pointer(&mut pages[page], number, next);
            }
            word(&mut pages[page][..], 12, |lower| lower - 4);
        },
    ),
    (
        ACCOUNTS,
        &[
            "block 5: line pointer 3: an entry of index pgbench_accounts_pkey points here, to a heap-only tuple",
        ],
        |pages| {
            word(item(&mut pages[5], 3), 18, |mask| mask | 0x8000);
        },
    ),
    (
        ACCOUNTS,
        &["an entry of index pgbench_accounts_pkey points here, to an unused line pointer"],
        |pages| {
            let unused = LinePointer { offset: 0, flags: LinePointerFlags::Unused, length: 0 };
            set_pointer(&mut pages[5], 3, unused);
        },
    ),
    (ACCOUNTS, &["points here, to a page without rows"], |pages| pages[9] = [0; BLOCK_SIZE]),
    (ACCOUNTS, &["block 7: line pointer 2: row's key differs from that of its entry"], |pages| {
        double(item(&mut pages[7], 2), 24, |key| key + 5);
    }),
    (
        ("fixture", "s1.bt", Fork::Main),
        &["in index bt_t for", "in index bt_multi for", "in index bt_inc for"],
        |pages| {
            // A letter within a text column, of a row without nulls.
            let tuple = item(&mut pages[1], 2);
            let at = tuple.windows(6).position(|bytes| bytes == b"common").expect("the text");
            tuple[at] = b'C';
        },
    ),
];

fn run(cases: &[Case]) {
    // We only use the cluster of the newest server here, because other tests cover the differences
    // between versions.
    let Some((_, data)) = fixtures().into_iter().rfind(|(major, _)| *major <= 18) else { return };
    let copy = Copy::of(&data);
    for (place, texts, change) in cases {
        let found = copy.broken(*place, change);
        for text in *texts {
            let said = found.iter().any(|line| line.contains(text));
            assert!(said, "{place:?}: {text:?} expected, {found:#?} found");
        }
        if let [first, rest @ ..] = texts
            && first.ends_with(": ")
        {
            let together = found
                .iter()
                .any(|line| line.contains(first) && rest.iter().all(|it| line.contains(it)));
            assert!(together, "{place:?}: {found:#?}");
        }
    }
    for (place, ..) in cases {
        let (_, only) = copy.find(place.0, place.1, Fork::Main);
        assert_eq!(copy.verify(only), [""; 0], "mended");
    }
}

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

#[test]
fn inconsistent_trees_are_found() {
    run(TREES);
}

#[test]
fn contradictions_of_rows_and_entries_are_found() {
    run(HEAP_AND_INDEX);
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

/// If we check a table in many parts, we must get the same findings.
#[test]
fn a_check_in_parts_has_the_same_findings() {
    let Some((_, data)) = fixtures().pop() else { return };
    let copy = Copy::of(&data);
    let (path, only) = copy.find(ACCOUNTS_KEY.0, ACCOUNTS_KEY.1, Fork::Main);
    let mut bytes = fs::read(&path).expect("read");
    let pages: &mut [PageBytes] = bytes.as_chunks_mut().0;
    let mut broken = 0_u64;
    for block in 1..pages.len() as u32 {
        let page = &mut pages[block as usize];
        let leaf = BtreePage::parse(page).is_ok_and(|page| page.is_leaf() && page.count() > 10);
        if leaf {
            word(item(page, 8), 4, |item| item ^ 1);
            let checksum = page_checksum(page, block);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
            broken += 1;
        }
    }
    fs::write(&path, &bytes).expect("written");
    let all = copy.verify(only);
    // Like findings are counted, and only a few of them are listed.
    assert!(
        all.len() < 20 && all.iter().any(|line| line.ends_with(" more like this)")),
        "{all:#?}"
    );
    let engine = engine(&copy.aio, 64, false);
    let cluster = engine.cluster(copy.data()).expect("opened");
    let (pool, dir, storage) = (engine.pool(), cluster.dir(), cluster.storage());
    let mut options = ContentOptions::of(&Settings::default(), false, true);
    options.only = Some(vec![only]);
    options.checks.entries_max = 10_000;
    let report = verify_contents(pool, dir, storage, &options, Arc::new(Unobserved));
    let report = report.expect("verified");
    let line = |finding: &trunkline_engine::verify::Finding| {
        format!("{}: {finding}", finding.relation.as_deref().unwrap_or_default())
    };
    assert_eq!(report.findings.iter().map(line).collect::<Vec<_>>(), all);
    assert!(report.findings_total > broken, "{}", report.findings_total);
    assert_eq!((report.rows, report.entries), (200_000, 200_000));
}
