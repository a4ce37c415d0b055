//! Damages the indexes in a copy of a real cluster, and the rows that they point to, and checks that
//! verification reports the right problem.

use std::fs;

use trunkline_aio::facade::Arc;
use trunkline_engine::job::Unobserved;
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{ContentOptions, verify_contents};
use trunkline_format::btree::{BtreePage, Meta, Target};
use trunkline_format::page::{LinePointer, LinePointerFlags};
use trunkline_format::{BLOCK_SIZE, Fork, PageBytes, page_checksum};

use crate::damaged_copy::{
    ACCOUNTS, ACCOUNTS_KEY, Case, Copy, double, inside, item, pointer, run, set_pointer, word,
};
use crate::fixtures::fixtures;
use crate::jobs::engine;

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

#[test]
fn inconsistent_trees_are_found() {
    run(TREES);
}

#[test]
fn contradictions_of_rows_and_entries_are_found() {
    run(HEAP_AND_INDEX);
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
