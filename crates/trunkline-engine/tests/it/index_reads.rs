//! How much index scans read: nothing beyond what they need at the beginning, more only after they had
//! to wait, and each page once where that is possible.

use trunkline_aio::MethodKind;
use trunkline_engine::index_scan::{
    IndexOnlyScan, IndexScan, IndexScanOptions, KeyedScan, ScanCounts,
};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::Fork;
use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges, KeyValue};

use crate::fixtures::fixtures;
use crate::index_scan::{Case, cases};
use crate::jobs::METHODS;
use crate::tables::{Cluster, instance};

/// The primary key of pgbench_accounts, in a pool that has none of its pages.
fn accounts(method: MethodKind, buffers: u32, check: impl FnOnce(&mut Cluster, &Case)) {
    let Some((_, data)) = fixtures().pop() else { return };
    let aio = instance(method);
    let case = {
        let mut cluster = Cluster::open(&aio, &data, false, 512);
        let database = cluster.database("bench");
        let name = |name: &str, _| name.contains("pgbench_accounts");
        cases(&mut cluster, &database, name).pop().expect("an index")
    };
    let mut cluster = Cluster::open(&aio, &data, false, buffers);
    // The relations of the first engine belong to its pool.
    let database = cluster.database("bench");
    let mut none = cases(&mut cluster, &database, |_, _| false);
    assert!(none.pop().is_none());
    let table = database.resolve(b"pgbench_accounts").expect("a table");
    let row = database.indexes_of(table.oid).first().expect("an index");
    let mut case = case;
    case.table.index = database.btree(row).expect("a B-tree");
    case.table.rows = database.table_files(table).expect("files").rows;
    case.table.transactions = cluster.transactions();
    check(&mut cluster, &case);
}

fn number(number: i32) -> KeyValue {
    Some(Box::from(number.to_le_bytes()))
}

fn from(key: i32) -> Condition {
    let comparison = Comparison::GreaterOrEqual;
    Condition::Compare { column: 0, comparison, value: number(key) }
}

fn ranges(case: &Case, conditions: &[Condition], direction: Direction) -> KeyRanges {
    let ranges = KeyRanges::new(case.table.index.layout(), conditions, direction);
    ranges.expect("usable").expect("not empty")
}

/// Blocks that were read: of the index and of the table.
fn blocks(counts: &ScanCounts) -> (u64, u64) {
    (counts.index.io_blocks, counts.heap.io_blocks)
}

#[test]
fn a_scan_that_stops_early_reads_only_what_it_needs() {
    for method in METHODS {
        for direction in [Direction::Forward, Direction::Backward] {
            for unordered in [false, true] {
                accounts(method, 4096, |cluster, case| {
                    let backend = &mut cluster.backend;
                    let ranges = ranges(case, &[from(70_000)], direction);
                    let options = IndexScanOptions { unordered, ..IndexScanOptions::default() };
                    let mut scan = IndexScan::new(backend, &case.table, ranges, options);
                    assert!(scan.next_page(backend).expect("reads").is_some());
                    // The metapage, the root, a page above the leaves, and a leaf.
                    assert_eq!(blocks(&scan.counts()), (4, 1), "{method} {direction:?}");
                    drop(scan);
                    assert_eq!(backend.pins(), 0);
                });
            }
        }
    }
}

#[test]
fn a_scan_of_cached_pages_does_not_look_ahead() {
    accounts(MethodKind::Worker, 16_384, |cluster, case| {
        let backend = &mut cluster.backend;
        let mut pages = Vec::new();
        for _ in 0..2 {
            let ranges = KeyRanges::all(case.table.index.layout(), Direction::Forward);
            let options = IndexScanOptions::default();
            let mut scan = IndexScan::new(backend, &case.table, ranges, options);
            while scan.next_page(backend).expect("reads").is_some() {}
            let counts = scan.counts();
            pages.push((counts.index.pages, counts.heap.pages));
            if pages.len() == 1 {
                // Each block is read once, and the stream looked ahead.
                let (sizes, (index, heap)) = (case.table.sizes, blocks(&counts));
                assert!(heap == u64::from(sizes.table_blocks), "{heap} {sizes:?}");
                assert!(index <= u64::from(sizes.index_blocks), "{index} {sizes:?}");
                // How far depends on the speed of the storage.
                let waits = counts.heap.waits.min(5) as u32;
                assert!(counts.heap.distance_max >= 1 << waits >> 1, "{counts:?}");
            } else {
                assert_eq!(blocks(&counts), (0, 0));
                assert_eq!(counts.heap.distance_max.max(counts.index.distance_max), 1);
            }
        }
        assert_eq!(pages[0], pages[1]);
    });
}

#[test]
fn an_index_only_scan_reads_no_table_where_all_is_visible() {
    accounts(MethodKind::Worker, 4096, |cluster, case| {
        let backend = &mut cluster.backend;
        let map = case.table.rows.storage().relation(case.table.rows.locator(), Fork::Vm);
        let map_blocks = map.blocks().expect("a length");
        for (map_blocks, limit) in [(map_blocks, usize::MAX), (0, 3)] {
            let ranges = ranges(case, &[from(100_000)], Direction::Forward);
            let options = IndexScanOptions::default();
            let map = (&map, map_blocks);
            let mut scan = IndexOnlyScan::new(backend, &case.table, map, ranges, options);
            let (mut entries, mut batches) = (0, 0);
            while batches < limit
                && let Some(batch) = scan.next_entries(backend).expect("reads")
            {
                entries += batch.len();
                batches += 1;
            }
            let counts = scan.counts();
            match limit {
                usize::MAX => {
                    assert_eq!(entries, 100_001);
                    assert!(counts.heap_fetches < 10_000, "{counts:?}");
                }
                _ => {
                    // Without a map, every entry needs its row. Those of a block come together.
                    assert!(entries > 0 && counts.heap.pages == 3, "{entries} {counts:?}");
                    assert!(counts.heap.io_blocks <= 8, "{counts:?}");
                }
            }
        }
    });
}

#[test]
fn the_pages_of_many_keys_are_known_in_advance() {
    // Without slow start, and under sync, how far the streams look ahead doesn't depend on any speed.
    accounts(MethodKind::Sync, 4096, |cluster, case| {
        let backend = &mut cluster.backend;
        let stream = StreamOptions { full: true, ..StreamOptions::default() };
        let options = IndexScanOptions { leaves: stream, heap: stream, unordered: false };
        let mut scan = KeyedScan::new(backend, &case.table, options);
        let equal = |key: i32| Condition::Compare {
            column: 0,
            comparison: Comparison::Equal,
            value: number(key),
        };
        let keys: Vec<i32> = (0..500).map(|at| (at * 7919) % 200_000 + 1).collect();
        let key = |key: &i32| Some(ranges(case, &[equal(*key)], Direction::Forward));
        scan.start(keys.iter().map(key).collect());
        let mut rows = 0;
        while let Some(page) = scan.next_page(backend).expect("reads") {
            rows += page.rows().count();
        }
        let counts = scan.counts();
        assert_eq!(rows, 500);
        // No leaf is read twice, although the keys are not in order.
        assert!(counts.index.io_blocks <= u64::from(case.table.sizes.index_blocks), "{counts:?}");
        assert!(counts.index.advised > 50 && counts.heap.advised > 100, "{counts:?}");
    });
}
