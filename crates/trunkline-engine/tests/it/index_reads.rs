//! How much index scans read: nothing beyond what they need at the beginning, more only after they had
//! to wait, and each page once where that is possible.

use trunkline_aio::MethodKind;
use trunkline_engine::btree::ScanSizes;
use trunkline_engine::heap::HeapRow;
use trunkline_engine::index_scan::{
    BitmapBuilder, BitmapHeapScan, ExpectedRows, IndexOnlyScan, IndexScan, IndexScanOptions,
    IndexedTable, KeyedScan, ScanCounts, TidBitmap,
};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_engine::storage::Relation;
use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges, KeyValue};
use trunkline_format::{BlockNo, Fork};

use crate::fixtures::fixtures;
use crate::jobs::METHODS;
use crate::tables::{Cluster, instance};

/// The primary key of pgbench_accounts with its table.
pub(crate) fn accounts_of(cluster: &mut Cluster) -> IndexedTable {
    let database = cluster.database("bench");
    let table = database.resolve(b"pgbench_accounts").expect("a table");
    let row = database.indexes_of(table.oid).first().expect("an index");
    let index = database.btree(row).expect("a B-tree");
    let rows = database.table_files(table).expect("files").rows;
    let sizes = ScanSizes {
        index_blocks: index.relation().blocks().expect("a length"),
        table_blocks: rows.blocks().expect("a length"),
    };
    IndexedTable { index, rows, sizes, transactions: cluster.transactions() }
}

/// The visibility map of a table, with its length.
pub(crate) fn map_of(table: &IndexedTable) -> (Relation, BlockNo) {
    let map = table.rows.storage().relation(table.rows.locator(), Fork::Vm);
    let blocks = map.blocks().expect("a length");
    (map, blocks)
}

/// Passes on pgbench_accounts, in a pool that has none of its pages.
pub(crate) fn accounts(
    method: MethodKind,
    buffers: u32,
    check: impl FnOnce(&mut Cluster, &IndexedTable),
) {
    let Some((_, data)) = fixtures().pop() else { return };
    let aio = instance(method);
    let mut cluster = Cluster::open(&aio, &data, false, buffers);
    let table = accounts_of(&mut cluster);
    check(&mut cluster, &table);
}

pub(crate) fn number(number: i32) -> KeyValue {
    Some(Box::from(number.to_le_bytes()))
}

pub(crate) fn from(key: i32) -> Condition {
    let comparison = Comparison::GreaterOrEqual;
    Condition::Compare { column: 0, comparison, value: number(key) }
}

pub(crate) fn ranges(
    table: &IndexedTable,
    conditions: &[Condition],
    direction: Direction,
) -> KeyRanges {
    let ranges = KeyRanges::new(table.index.layout(), conditions, direction);
    ranges.expect("usable").expect("not empty")
}

/// The ranges of each key alone.
pub(crate) fn point_ranges(
    table: &IndexedTable,
    keys: &[i32],
    direction: Direction,
) -> Vec<Option<KeyRanges>> {
    let key = |key: &i32| {
        let value = number(*key);
        let equal = Condition::Compare { column: 0, comparison: Comparison::Equal, value };
        Some(ranges(table, &[equal], direction))
    };
    keys.iter().map(key).collect()
}

/// The keys in a list.
pub(crate) fn any_of(keys: &[i32]) -> Condition {
    Condition::AnyOf { column: 0, values: keys.iter().map(|key| number(*key)).collect() }
}

/// The key of a row of pgbench_accounts.
pub(crate) fn key_of(row: &HeapRow<'_>) -> i32 {
    i32::from_le_bytes(*row.tuple.data().first_chunk().expect("a key"))
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
                accounts(method, 4096, |cluster, table| {
                    let backend = &mut cluster.backend;
                    let ranges = ranges(table, &[from(70_000)], direction);
                    let options = IndexScanOptions { unordered, ..IndexScanOptions::default() };
                    let mut scan = IndexScan::new(backend, table, ranges, options);
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
    accounts(MethodKind::Worker, 16_384, |cluster, table| {
        let backend = &mut cluster.backend;
        let mut pages = Vec::new();
        for _ in 0..2 {
            let ranges = KeyRanges::all(table.index.layout(), Direction::Forward);
            let options = IndexScanOptions::default();
            let mut scan = IndexScan::new(backend, table, ranges, options);
            while scan.next_page(backend).expect("reads").is_some() {}
            let counts = scan.counts();
            pages.push((counts.index.pages, counts.heap.pages));
            if pages.len() == 1 {
                // Each block is read once, and the stream looked ahead.
                let (sizes, (index, heap)) = (table.sizes, blocks(&counts));
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
    accounts(MethodKind::Worker, 4096, |cluster, table| {
        let backend = &mut cluster.backend;
        let (map, map_blocks) = map_of(table);
        for (map_blocks, limit) in [(map_blocks, usize::MAX), (0, 3)] {
            let ranges = ranges(table, &[from(100_000)], Direction::Forward);
            let options = IndexScanOptions::default();
            let map = (&map, map_blocks);
            let mut scan = IndexOnlyScan::new(backend, table, map, ranges, options);
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
                    // What is read ahead isn't looked up yet.
                    assert_eq!(counts.heap_fetches, entries as u64);
                    assert!(counts.heap.io_blocks <= 8, "{counts:?}");
                }
            }
        }
    });
}

/// Keys of rows on five pages, which one leaf has.
fn keys_of_five_pages(table: &IndexedTable) -> KeyRanges {
    let keys: Vec<i32> = (0..5).map(|at| 70_001 + at * 61).collect();
    ranges(table, &[any_of(&keys)], Direction::Forward)
}

/// Each page is read alone.
fn single_pages() -> IndexScanOptions {
    let heap = StreamOptions { combine: 1, ..StreamOptions::default() };
    IndexScanOptions { heap, ..IndexScanOptions::default() }
}

/// What a scan of five pages has read when its first page is returned.
fn read_for_first_page(
    cluster: &mut Cluster,
    table: &IndexedTable,
    expected: ExpectedRows,
) -> ScanCounts {
    let backend = &mut cluster.backend;
    let mut scan = IndexScan::new(backend, table, keys_of_five_pages(table), single_pages());
    scan.expect_rows(expected);
    assert!(scan.next_page(backend).expect("reads").is_some());
    scan.counts()
}

/// The same for a bitmap scan.
fn bitmap_read_for_first_page(
    cluster: &mut Cluster,
    table: &IndexedTable,
    expected: ExpectedRows,
) -> ScanCounts {
    let backend = &mut cluster.backend;
    let IndexedTable { index, rows, sizes, transactions } = table;
    let (ranges, options) = (keys_of_five_pages(table), single_pages());
    let mut bitmap = TidBitmap::new(1 << 20);
    let mut builder = BitmapBuilder::new(backend, index, *sizes, ranges, options.leaves);
    builder.build(backend, &mut bitmap).expect("sound");
    let mut scan = BitmapHeapScan::new(backend, rows, transactions, bitmap, options);
    scan.expect_rows(expected);
    assert!(scan.next_page(backend).expect("reads").is_some());
    scan.counts()
}

/// A caller that says how many rows it will take gets their pages with reads that are in flight
/// together. Rows that are only likely to be taken are not read before it had to wait.
#[test]
fn pages_of_expected_rows_are_read_at_once() {
    // After the first wait, the stream looks one page ahead anyway.
    for (certain, likely, together) in
        [(0, 0, 2), (1, 1, 2), (2, 5, 2), (4, 4, 4), (4, 5, 4), (100, 100, 5)]
    {
        for read in [read_for_first_page, bitmap_read_for_first_page] {
            accounts(MethodKind::Worker, 4096, |cluster, table| {
                let expected = ExpectedRows { certain, likely, ends: false };
                let counts = read(cluster, table, expected);
                let heap = counts.heap;
                assert_eq!(heap.io_blocks, together, "{certain}, {likely}: {counts:?}");
                assert_eq!(
                    u64::from(heap.distance_max),
                    together,
                    "{certain}, {likely}: {counts:?}"
                );
                assert_eq!(cluster.backend.pins(), 0);
            });
        }
    }
}

/// A limit that is reached has read no page in vain, although the stream would look further ahead.
#[test]
fn pages_behind_a_limit_are_not_read() {
    let heap = StreamOptions { full: true, combine: 4, ..StreamOptions::default() };
    for ends in [true, false] {
        accounts(MethodKind::Worker, 4096, |cluster, table| {
            let backend = &mut cluster.backend;
            let options = IndexScanOptions { heap, ..IndexScanOptions::default() };
            let mut scan = IndexScan::new(backend, table, keys_of_five_pages(table), options);
            for left in [3, 2, 1] {
                scan.expect_rows(ExpectedRows { certain: left, likely: left, ends });
                assert!(scan.next_page(backend).expect("reads").is_some());
            }
            assert_eq!(scan.counts().heap.io_blocks == 3, ends, "{:?}", scan.counts());
            // The rows were not enough.
            scan.expect_rows(ExpectedRows { certain: 2, likely: 2, ends: false });
            assert!(scan.next_page(backend).expect("reads").is_some());
            assert!(scan.next_page(backend).expect("reads").is_some());
            assert!(scan.next_page(backend).expect("reads").is_none());
            assert_eq!(scan.counts().heap.io_blocks, 5, "{:?}", scan.counts());
        });
    }
}

/// Cached pages are not pinned early, whatever is expected.
#[test]
fn expected_rows_of_cached_pages_are_not_looked_ahead_to() {
    accounts(MethodKind::Worker, 16_384, |cluster, table| {
        let backend = &mut cluster.backend;
        for unordered in [false, true] {
            for round in 0..2 {
                let ranges = KeyRanges::all(table.index.layout(), Direction::Forward);
                let options = IndexScanOptions { unordered, ..IndexScanOptions::default() };
                let mut scan = IndexScan::new(backend, table, ranges, options);
                scan.expect_rows(ExpectedRows { certain: 1 << 20, likely: 1 << 20, ends: false });
                while scan.next_page(backend).expect("reads").is_some() {}
                let counts = scan.counts();
                assert!(round == 0 || counts.heap.distance_max == 1, "{counts:?}");
                let blocks = u64::from(table.sizes.table_blocks);
                assert!(!unordered || counts.heap.pages < blocks + blocks / 8, "{counts:?}");
            }
        }
    });
}

#[test]
fn the_pages_of_many_keys_are_known_in_advance() {
    // Without slow start, and under sync, how far the streams look ahead doesn't depend on any speed.
    accounts(MethodKind::Sync, 4096, |cluster, table| {
        let backend = &mut cluster.backend;
        let stream = StreamOptions { full: true, ..StreamOptions::default() };
        let options = IndexScanOptions { leaves: stream, heap: stream, unordered: false };
        let mut scan = KeyedScan::new(backend, table, options);
        let keys: Vec<i32> = (0..500).map(|at| (at * 7919) % 200_000 + 1).collect();
        scan.start(point_ranges(table, &keys, Direction::Forward));
        let mut rows = 0;
        while let Some(page) = scan.next_page(backend).expect("reads") {
            rows += page.rows().count();
        }
        let counts = scan.counts();
        assert_eq!(rows, 500);
        // No leaf is read twice, although the keys are not in order.
        assert!(counts.index.io_blocks <= u64::from(table.sizes.index_blocks), "{counts:?}");
        assert!(counts.index.advised > 50 && counts.heap.advised > 100, "{counts:?}");
    });
}

/// Index pages that a scan visits until it has returned this many rows.
fn index_pages(
    cluster: &mut Cluster,
    table: &IndexedTable,
    options: IndexScanOptions,
    rows: usize,
) -> u64 {
    let backend = &mut cluster.backend;
    let ranges = ranges(table, &[from(70_000)], Direction::Forward);
    let mut scan = IndexScan::new(backend, table, ranges, options);
    let mut found = 0;
    while found < rows
        && let Some(page) = scan.next_page(backend).expect("reads")
    {
        found += page.rows().count();
    }
    scan.counts().index.pages
}

#[test]
fn a_scan_of_cached_pages_that_stops_in_the_middle_reads_little_more() {
    accounts(MethodKind::Worker, 16_384, |cluster, table| {
        // Everything is cached.
        let options = IndexScanOptions::default();
        index_pages(cluster, table, options, usize::MAX);
        for rows in [1, 360, 1470, 12_000, 40_000, 100_000] {
            let ordered = index_pages(cluster, table, options, rows);
            let unordered = IndexScanOptions { unordered: true, ..options };
            let unordered = index_pages(cluster, table, unordered, rows);
            assert!(unordered <= ordered + 1 + ordered / 50, "{rows}: {unordered} of {ordered}");
        }
    });
}

#[test]
fn a_cold_scan_that_stops_in_the_middle_reads_half_as_much_again() {
    // The table's pages are read at most three ahead, which takes at most one more leaf.
    let heap = StreamOptions { concurrency: 1, combine: 1, ..StreamOptions::default() };
    for method in METHODS {
        for rows in [1, 360, 1470, 12_000] {
            for unordered in [false, true] {
                accounts(method, 16_384, |cluster, table| {
                    let leaves = StreamOptions::default();
                    let options = IndexScanOptions { leaves, heap, unordered };
                    let read = index_pages(cluster, table, options, rows);
                    // 366 rows on a leaf, and three pages above the leaves.
                    let needed = rows as u64 / 366 + 4;
                    assert!(read <= needed + needed / 2 + 1, "{rows}: {read} of {needed}");
                });
            }
        }
    }
}

/// Under sync, nothing is in flight, but a scan in the order of the index still advises the pages that
/// the next leaves lead to, even if each leaf has only one of them.
#[test]
fn an_ordered_scan_advises_pages_under_sync() {
    accounts(MethodKind::Sync, 4096, |cluster, table| {
        let backend = &mut cluster.backend;
        // In an order that isn't that of the table's blocks, so that each needs advice of its own.
        let keys: Vec<i32> = (1..200_000).step_by(900).collect();
        let ranges = ranges(table, &[any_of(&keys)], Direction::Backward);
        let mut scan = IndexScan::new(backend, table, ranges, IndexScanOptions::default());
        let mut found = Vec::new();
        while let Some(page) = scan.next_page(backend).expect("reads") {
            found.extend(page.rows().map(|row| key_of(&row.expect("sound"))));
        }
        found.reverse();
        assert_eq!(found, keys);
        let counts = scan.counts();
        let pages = keys.len() as u64;
        assert!(counts.heap.advised > pages / 2, "{counts:?}");
        assert!(counts.index.advised > pages / 2, "{counts:?}");
        assert!(counts.heap.io_blocks == pages, "{counts:?}");
    });
}

/// A semi-join needs only the first row of some keys, and passes the next keys at once.
#[test]
fn keys_can_be_given_up() {
    for method in METHODS {
        accounts(method, 256, |cluster, table| {
            let backend = &mut cluster.backend;
            let stream = StreamOptions { full: true, ..StreamOptions::default() };
            let options = IndexScanOptions { leaves: stream, heap: stream, unordered: false };
            let mut scan = KeyedScan::new(backend, table, options);
            for batch in 0..20 {
                let keys: Vec<i32> =
                    (0..50).map(|at| (at * 7919 + batch * 977) % 200_000 + 1).collect();
                scan.start(point_ranges(table, &keys, Direction::Backward));
                let (mut found, mut pages) = (Vec::new(), 0);
                while let Some(page) = scan.next_page(backend).expect("reads") {
                    for row in page.rows() {
                        let row = row.expect("sound");
                        assert_eq!(key_of(&row), keys[row.entry as usize]);
                        found.push(row.entry);
                    }
                    pages += 1;
                    if batch % 3 != 2 && pages > batch {
                        break;
                    }
                }
                assert!(found.is_sorted());
                assert!(batch % 3 != 2 || found.len() == 50, "{batch}: {}", found.len());
            }
            drop(scan);
            assert_eq!(backend.pins(), 0);
        });
    }
}
