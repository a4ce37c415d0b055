//! Compares index scans with heap scans: for the B-trees that real servers have built, with random
//! conditions, each kind of index scan must find exactly the rows that a filter finds.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_engine::btree::ScanSizes;
use trunkline_engine::catalog::Database;
use trunkline_engine::heap::{HeapPage, HeapScan, ScanOptions, has_external};
use trunkline_engine::index_scan::{
    BitmapBuilder, BitmapHeapScan, IndexOnlyEntry, IndexOnlyScan, IndexScan, IndexScanError,
    IndexScanOptions, IndexedTable, KeyedScan, TidBitmap,
};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{ReleaseAhead, StreamOptions};
use trunkline_engine::storage::Relation;
use trunkline_format::btree::{
    Comparison, Condition, Direction, Entry, KeyColumn, KeyLayout, KeyRanges, KeyValue, Order,
};
use trunkline_format::deform::{Attribute, Column, columns};
use trunkline_format::visibility_map::{bits, map_block};
use trunkline_format::{BlockNo, Fork, HeapTuple, PageBytes, Tid};

use crate::fixtures::fixtures;
use crate::polled::block_on;
use crate::tables::{Cluster, instance};

/// A visible row of a table: its place and the index's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) tid: Tid,
    pub(crate) key: Vec<KeyValue>,
}

/// An index with the table and its rows.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) table: IndexedTable,
    map: (Relation, BlockNo),
    attributes: Vec<Attribute>,
    /// The table's columns that the index has.
    wanted: Vec<usize>,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end.max(1)
    }
}

fn payload(column: &KeyColumn, stored: &[u8]) -> Box<[u8]> {
    let mut room = Vec::new();
    let value = column.payload(stored, &mut room).expect("sound");
    // An index stores a name without its padding.
    let end = match column.order {
        Order::Name => value.iter().position(|byte| *byte == 0).unwrap_or(value.len()),
        _ => value.len(),
    };
    value[..end].into()
}

impl Case {
    /// The columns of the index in a row of the table.
    fn key(&self, tuple: &HeapTuple<'_>) -> Vec<KeyValue> {
        let stored: Vec<Column<'_>> =
            columns(tuple, &self.attributes).map(|column| column.expect("sound")).collect();
        let layout = self.table.index.layout();
        let pairs = self.wanted.iter().zip(layout.columns());
        pairs
            .map(|(&at, column)| {
                // The table stores a varlena or a name where the index may store a C string.
                let of_table = KeyColumn { attribute: self.attributes[at], ..*column };
                stored.get(at).and_then(|column| column.value()).map(|it| payload(&of_table, it))
            })
            .collect()
    }

    fn row(&self, tid: Tid, tuple: &HeapTuple<'_>) -> Row {
        Row { tid, key: self.key(tuple) }
    }

    fn rows_of(&self, page: &HeapPage<'_>, rows: &mut Vec<Row>) {
        for row in page.rows() {
            let row = row.expect("sound");
            rows.push(self.row(row.tid, &row.tuple));
        }
    }

    /// Takes the rows of a scan's next page. False at the end.
    fn take(
        &self,
        page: Result<Option<HeapPage<'_>>, IndexScanError>,
        rows: &mut Vec<Row>,
    ) -> bool {
        let page = page.expect("sound");
        page.iter().for_each(|page| self.rows_of(page, rows));
        page.is_some()
    }

    pub(crate) fn keys(&self) -> &[KeyColumn] {
        self.table.index.layout().keys()
    }

    fn compare(&self, one: &Row, other: &Row) -> Ordering {
        compare(self.keys(), one, other)
    }

    /// The rows that a filter finds, in the order of the table.
    pub(crate) fn filter(&self, conditions: &[Condition]) -> Vec<Row> {
        let matches = |row: &&Row| conditions.iter().all(|it| holds(it, self.keys(), row));
        self.rows.iter().filter(matches).cloned().collect()
    }
}

fn compare(keys: &[KeyColumn], one: &Row, other: &Row) -> Ordering {
    keys.iter().zip(one.key.iter().zip(&other.key)).fold(
        Ordering::Equal,
        |known, (column, (one, other))| {
            known.then_with(|| column.compare(one.as_deref(), other.as_deref()).expect("known"))
        },
    )
}

/// What SQL says about a row.
fn holds(condition: &Condition, keys: &[KeyColumn], row: &Row) -> bool {
    let compare = |column: usize, wanted: &KeyValue| {
        let (found, wanted) = (row.key[column].as_deref()?, wanted.as_deref()?);
        Some(keys[column].order.compare(found, wanted).expect("known"))
    };
    match condition {
        Condition::Compare { column, comparison, value } => {
            compare(*column, value).is_some_and(|ordering| comparison.holds(ordering))
        }
        Condition::AnyOf { column, values } => {
            values.iter().any(|value| compare(*column, value) == Some(Ordering::Equal))
        }
        Condition::IsNull { column } => row.key[*column].is_none(),
        Condition::IsNotNull { column } => row.key[*column].is_some(),
        Condition::Row { comparison, values } => {
            for (column, value) in values.iter().enumerate() {
                match compare(column, value) {
                    None => return false,
                    Some(Ordering::Equal) if column + 1 < values.len() => {}
                    Some(ordering) => return comparison.holds(ordering),
                }
            }
            false
        }
    }
}

/// A value of a random row, so that conditions often match something.
fn random_value(random: &mut Random, case: &Case, column: usize) -> KeyValue {
    case.rows.get(random.below(case.rows.len()))?.key[column].clone()
}

fn random_condition(random: &mut Random, case: &Case) -> Condition {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let column = random.below(case.keys().len());
    match random.below(10) {
        0 => Condition::IsNull { column },
        1 => Condition::IsNotNull { column },
        2 | 3 => {
            let count = random.below(6);
            let values = (0..count).map(|_| random_value(random, case, column)).collect();
            Condition::AnyOf { column, values }
        }
        4 => {
            let comparison = [Less, LessOrEqual, GreaterOrEqual, Greater][random.below(4)];
            let values = (0..=column).map(|column| random_value(random, case, column)).collect();
            Condition::Row { comparison, values }
        }
        5 | 6 => {
            let value = random_value(random, case, column);
            Condition::Compare { column, comparison: Equal, value }
        }
        _ => {
            let comparison = [Less, LessOrEqual, GreaterOrEqual, Greater][random.below(4)];
            Condition::Compare { column, comparison, value: random_value(random, case, column) }
        }
    }
}

/// The indexes of a database that can be searched, with the visible rows of their tables.
pub(crate) fn cases(
    cluster: &mut Cluster,
    database: &Arc<Database>,
    mut choose: impl FnMut(&str, usize) -> bool,
) -> Vec<Case> {
    let transactions = cluster.transactions();
    let mut cases = Vec::new();
    for relation in database.relations() {
        for (number, row) in database.indexes_of(relation.oid).iter().enumerate() {
            if row.partial || !row.valid || !row.live || row.columns.iter().any(|at| *at <= 0) {
                continue;
            }
            let name = format!(
                "{} ({})",
                database.qualified_name(relation),
                database.relation(row.index).map_or_else(String::new, |it| it.quoted_name())
            );
            let Some(index) = database.btree(row) else { continue };
            let known = |key: &KeyColumn| !matches!(key.order, Order::Unknown | Order::Enum);
            if !index.layout().keys().iter().all(known) || !choose(&name, number) {
                continue;
            }
            let Ok(files) = database.table_files(relation) else { continue };
            let of_table = database.columns(relation).expect("columns");
            // A value that was added later is in the catalog.
            if of_table.iter().any(|column| column.missing.is_some()) {
                continue;
            }
            let attributes = of_table.iter().map(|column| column.attribute).collect();
            let map = files.rows.storage().relation(files.rows.locator(), Fork::Vm);
            let map_blocks = map.blocks().unwrap_or_default();
            let sizes = ScanSizes {
                index_blocks: index.relation().blocks().expect("a length"),
                table_blocks: files.rows.blocks().expect("a length"),
            };
            let table = IndexedTable {
                index,
                rows: files.rows.clone(),
                sizes,
                transactions: Arc::clone(&transactions),
            };
            let wanted = row.columns.iter().map(|at| *at as usize - 1).collect();
            let mut case =
                Case { name, table, map: (map, map_blocks), attributes, wanted, rows: Vec::new() };
            let backend = &mut cluster.backend;
            let scan =
                HeapScan::of_table(backend, &files.rows, &transactions, ScanOptions::default());
            let (mut scan, mut rows, mut toasted) = (scan.expect("a table"), Vec::new(), false);
            while let Some(page) = scan.next_page(backend).expect("reads") {
                toasted |= page.rows().any(|row| has_external(&row.expect("sound").tuple));
                if toasted {
                    break;
                }
                case.rows_of(&page, &mut rows);
            }
            case.rows = rows;
            if !toasted {
                cases.push(case);
            }
        }
    }
    cases
}

fn tids(rows: &[Row]) -> Vec<Tid> {
    rows.iter().map(|row| row.tid).collect()
}

fn sorted(mut tids: Vec<Tid>) -> Vec<Tid> {
    tids.sort_unstable();
    tids
}

pub(crate) fn index_rows(
    case: &Case,
    backend: &mut Backend,
    ranges: KeyRanges,
    options: IndexScanOptions,
) -> Vec<Row> {
    let mut scan = IndexScan::new(backend, &case.table, ranges, options);
    let mut rows = Vec::new();
    while let Some(page) = scan.next_page(backend).expect("sound") {
        assert!(page.is_listed() && !page.needs_recheck());
        case.rows_of(&page, &mut rows);
    }
    drop(scan);
    assert_eq!(backend.pins(), 0);
    rows
}

/// The same with a task that polls, and that releases everything now and then.
fn polled_rows(
    case: &Case,
    backend: &mut Backend,
    ranges: KeyRanges,
    options: IndexScanOptions,
) -> Vec<Row> {
    let mut scan = IndexScan::new(backend, &case.table, ranges, options);
    let mut rows = Vec::new();
    let mut pages = 0;
    while block_on(|context| {
        scan.poll_page(context, backend).map(|page| case.take(page, &mut rows))
    }) {
        pages += 1;
        if pages % 7 == 0 {
            scan.release_ahead();
        }
    }
    drop(scan);
    assert_eq!(backend.pins(), 0);
    rows
}

/// The entries of an index-only scan, and the number of rows that it has looked up. A polled scan releases
/// everything now and then.
fn only_rows(
    case: &Case,
    backend: &mut Backend,
    ranges: KeyRanges,
    polled: bool,
) -> (Vec<(Tid, Vec<KeyValue>)>, u64) {
    let (map, blocks) = &case.map;
    let options = IndexScanOptions::default();
    let mut scan = IndexOnlyScan::new(backend, &case.table, (map, *blocks), ranges, options);
    let (mut entries, mut batches) = (Vec::new(), 0);
    let layout = case.table.index.layout();
    let mut take = |batch: Result<Option<&[IndexOnlyEntry]>, IndexScanError>| {
        let Some(batch) = batch.expect("sound") else { return false };
        assert!(!batch.is_empty());
        let tuples = batch.iter().map(|entry| (entry.tid, entry.tuple().expect("sound")));
        entries.extend(tuples.map(|(tid, tuple)| (tid, values(layout, &tuple))));
        true
    };
    while match polled {
        true => block_on(|context| scan.poll_entries(context, backend).map(&mut take)),
        false => take(scan.next_entries(backend)),
    } {
        batches += 1;
        if polled && batches % 3 == 0 {
            scan.release_ahead();
        }
    }
    let fetches = scan.counts().heap_fetches;
    assert!(scan.take_map_error().is_none());
    drop(scan);
    assert_eq!(backend.pins(), 0);
    (entries, fetches)
}

fn values(layout: &KeyLayout, entry: &Entry<'_>) -> Vec<KeyValue> {
    let attributes = entry.attributes(layout.columns()).zip(layout.columns());
    attributes
        .map(|(value, column)| value.expect("sound").map(|value| payload(column, value)))
        .collect()
}

/// A bitmap, and the number of rows that were added to it.
fn bitmap(case: &Case, backend: &mut Backend, ranges: KeyRanges, bytes: usize) -> (TidBitmap, u64) {
    let mut bitmap = TidBitmap::new(bytes);
    let (index, sizes) = (&case.table.index, case.table.sizes);
    let mut builder = BitmapBuilder::new(backend, index, sizes, ranges, StreamOptions::default());
    block_on(|context| builder.poll_build(context, backend, &mut bitmap)).expect("sound");
    let rows = builder.rows();
    drop(builder);
    assert_eq!(backend.pins(), 0);
    (bitmap, rows)
}

/// The rows of a bitmap, after the check that the caller has to make.
fn bitmap_rows(
    case: &Case,
    backend: &mut Backend,
    bitmap: TidBitmap,
    passes: impl Fn(&Row) -> bool,
) -> Vec<Row> {
    let pages = bitmap.pages();
    let (table, options) = (&case.table, IndexScanOptions::default());
    let mut scan = BitmapHeapScan::new(backend, &table.rows, &table.transactions, bitmap, options);
    let mut rows = Vec::new();
    let mut take = |page: Result<Option<HeapPage<'_>>, IndexScanError>| {
        let mut of_page = Vec::new();
        let page = page.expect("sound");
        page.iter().for_each(|page| case.rows_of(page, &mut of_page));
        if page.as_ref().is_some_and(HeapPage::needs_recheck) {
            of_page.retain(&passes);
        }
        rows.extend(of_page);
        page.is_some()
    };
    // Every other page by a task.
    while take(scan.next_page(backend))
        && block_on(|context| scan.poll_page(context, backend).map(&mut take))
    {}
    let counts = scan.counts();
    assert_eq!((counts.exact_blocks, counts.lossy_blocks), pages, "{}", case.name);
    drop(scan);
    assert_eq!(backend.pins(), 0);
    rows
}

/// How many of the rows are on blocks that the visibility map doesn't mark as all-visible.
fn doubtful(case: &Case, backend: &mut Backend, tids: &[Tid]) -> u64 {
    let (map, blocks) = &case.map;
    let mut known: BTreeMap<BlockNo, PageBytes> = BTreeMap::new();
    let mut is_visible = |block: BlockNo| {
        let of_map = map_block(block);
        of_map < *blocks
            && bits(
                known.entry(of_map).or_insert_with(|| {
                    let pin = backend.read(map, of_map).expect("reads");
                    *backend.read_lock(pin.page()).expect("locked")
                }),
                block,
            )
            .all_visible
    };
    tids.iter().filter(|tid| !is_visible(tid.block)).count() as u64
}

/// Compares every kind of scan with the filter.
fn check(case: &Case, backend: &mut Backend, random: &mut Random) -> usize {
    let count = random.below(4);
    let conditions: Vec<Condition> = (0..count).map(|_| random_condition(random, case)).collect();
    let expected = case.filter(&conditions);
    let expected_tids = tids(&expected);
    let layout = case.table.index.layout();
    let text = || format!("{} {conditions:?}", case.name);
    for direction in [Direction::Forward, Direction::Backward] {
        let ranges = KeyRanges::new(layout, &conditions, direction).expect("usable");
        let Some(ranges) = ranges else {
            assert!(expected.is_empty(), "{}", text());
            continue;
        };
        let mut options = IndexScanOptions::default();
        let rows = index_rows(case, backend, ranges.clone(), options);
        assert_eq!(sorted(tids(&rows)), expected_tids, "{direction:?} {}", text());
        let in_order = rows.windows(2).all(|pair| {
            let ordering = case.compare(&pair[0], &pair[1]);
            ordering
                != if direction == Direction::Forward { Ordering::Greater } else { Ordering::Less }
        });
        assert!(in_order, "{direction:?} {}", text());
        let polled = polled_rows(case, backend, ranges.clone(), options);
        assert!(polled == rows, "{direction:?} {}", text());
        // Each way takes turns, to save time.
        let by_task = random.below(2) == 1;
        let (entries, fetches) = only_rows(case, backend, ranges.clone(), by_task);
        let keys: Vec<Vec<KeyValue>> = entries.iter().map(|(_, key)| key.clone()).collect();
        let of_rows: Vec<Vec<KeyValue>> = rows.iter().map(|row| row.key.clone()).collect();
        assert!(keys == of_rows, "{direction:?} {}", text());
        let roots: Vec<Tid> = entries.iter().map(|(tid, _)| *tid).collect();
        // Entries whose rows are dead may be looked up too.
        let least = doubtful(case, backend, &roots);
        let (_, entries_found) = bitmap(case, backend, ranges.clone(), 1 << 22);
        let dead = entries_found - entries.len() as u64;
        assert!((least..=least + dead).contains(&fetches), "{fetches} {least} {dead} {}", text());
        options.unordered = true;
        let unordered = index_rows(case, backend, ranges.clone(), options);
        assert_eq!(sorted(tids(&unordered)), expected_tids, "{}", text());
        if direction == Direction::Forward {
            for bytes in [1 << 22, 0] {
                let (bitmap, _) = bitmap(case, backend, ranges.clone(), bytes);
                let rows = bitmap_rows(case, backend, bitmap, |row| {
                    conditions.iter().all(|it| holds(it, case.keys(), row))
                });
                assert_eq!(sorted(tids(&rows)), expected_tids, "{}", text());
                assert!(rows.windows(2).all(|pair| pair[0].tid.block <= pair[1].tid.block));
            }
        }
    }
    expected.len()
}

/// Opens the fixtures of these versions in several ways, and passes some of their indexes to `check`. What
/// doesn't depend on the format of old versions is tested with one of them, to save time.
fn in_some_ways(wanted: impl Fn(u32) -> bool, mut check: impl FnMut(&mut Cluster, Vec<Case>, u64)) {
    for (major, data) in fixtures().into_iter().filter(|(major, _)| wanted(*major)) {
        let ways: &[(MethodKind, bool, u32)] = match major {
            18 => &[
                (MethodKind::Worker, false, 16),
                (MethodKind::Sync, false, 64),
                (MethodKind::IoUring, true, 512),
            ],
            _ => &[(MethodKind::Worker, false, 64)],
        };
        for (seed, &(method, direct, buffers)) in (1..).zip(ways) {
            let aio = instance(method);
            let mut cluster = Cluster::open(&aio, &data, direct, buffers);
            let seed = u64::from(major) << 8 | seed;
            let mut random = Random(seed);
            for name in ["fixture", "bench"] {
                let database = cluster.database(name);
                let few = if name == "bench" { 16 } else { 6 };
                let chosen = cases(&mut cluster, &database, |name, _| {
                    // The large table in one of the ways, the fixtures' own tables, and some of
                    // the catalogs.
                    if name.contains("pgbench_accounts") {
                        return (major, buffers) == (18, 16);
                    }
                    !name.starts_with("pg_") || random.below(few) == 0
                });
                assert!(!chosen.is_empty());
                check(&mut cluster, chosen, seed);
            }
        }
    }
}

#[test]
fn index_scans_find_the_rows_that_a_filter_finds() {
    in_some_ways(
        |_| true,
        |cluster, cases, seed| {
            let mut random = Random(seed + 0xF11);
            let (mut scans, mut rows) = (0, 0);
            for case in &cases {
                let rounds = if case.rows.len() > 10_000 { 1 } else { 3 };
                for _ in 0..rounds {
                    rows += check(case, &mut cluster.backend, &mut random);
                    scans += 1;
                }
            }
            println!("{} indexes, {scans} conditions, {rows} rows", cases.len());
        },
    );
}

#[test]
fn bitmaps_are_combined() {
    in_some_ways(
        |major| major == 18,
        |cluster, cases, seed| {
            let mut random = Random(seed + 0xB17);
            let backend = &mut cluster.backend;
            for case in cases.iter().filter(|case| !case.rows.is_empty()).take(12) {
                let one = random_condition(&mut random, case);
                let other = random_condition(&mut random, case);
                for (bytes, other_bytes) in [(1 << 20, 1 << 20), (0, 1 << 20), (1 << 20, 0)] {
                    let first = bitmap_of(case, backend, &one, bytes);
                    let second = bitmap_of(case, backend, &other, other_bytes);
                    let (mut both, mut any) = (first.clone(), first);
                    both.intersect(&second);
                    any.unite(&second);
                    let one_holds = |row: &Row| holds(&one, case.keys(), row);
                    let other_holds = |row: &Row| holds(&other, case.keys(), row);
                    let rows =
                        bitmap_rows(case, backend, both, |row| one_holds(row) && other_holds(row));
                    let expected = case.filter(&[one.clone(), other.clone()]);
                    assert_eq!(
                        sorted(tids(&rows)),
                        tids(&expected),
                        "{} {one:?} {other:?}",
                        case.name
                    );
                    let rows =
                        bitmap_rows(case, backend, any, |row| one_holds(row) || other_holds(row));
                    let expected: Vec<Row> = case
                        .rows
                        .iter()
                        .filter(|row| one_holds(row) || other_holds(row))
                        .cloned()
                        .collect();
                    assert_eq!(
                        sorted(tids(&rows)),
                        tids(&expected),
                        "{} {one:?} {other:?}",
                        case.name
                    );
                }
            }
        },
    );
}

fn bitmap_of(case: &Case, backend: &mut Backend, condition: &Condition, bytes: usize) -> TidBitmap {
    let layout = case.table.index.layout();
    let conditions = std::slice::from_ref(condition);
    match KeyRanges::new(layout, conditions, Direction::Forward).expect("usable") {
        Some(ranges) => bitmap(case, backend, ranges, bytes).0,
        None => TidBitmap::new(bytes),
    }
}

/// The rows of each key come together, in the order of the keys.
#[test]
fn many_keys_are_looked_up_together() {
    in_some_ways(
        |major| major == 18,
        |cluster, cases, seed| {
            let mut random = Random(seed + 0x1CE);
            let backend = &mut cluster.backend;
            for case in cases.iter().filter(|case| !case.rows.is_empty()) {
                let mut scan = KeyedScan::new(backend, &case.table, IndexScanOptions::default());
                let batches = if case.rows.len() > 10_000 { 2 } else { 3 };
                for batch in 0..batches {
                    let count = [1, 7, 40][batch];
                    let keys: Vec<Vec<Condition>> = (0..count)
                        .map(|_| {
                            let columns = 1 + random.below(case.keys().len());
                            let row = &case.rows[random.below(case.rows.len())];
                            let equal = |column: usize| Condition::Compare {
                                column,
                                comparison: Comparison::Equal,
                                value: row.key[column].clone(),
                            };
                            (0..columns).map(equal).collect()
                        })
                        .collect();
                    let layout = case.table.index.layout();
                    let direction = [Direction::Forward, Direction::Backward][random.below(2)];
                    let ranges = keys.iter().map(|conditions| {
                        KeyRanges::new(layout, conditions, direction).expect("usable")
                    });
                    scan.start(ranges.collect());
                    let mut found: Vec<(u32, Row)> = Vec::new();
                    let mut take = |page: Result<Option<HeapPage<'_>>, IndexScanError>| {
                        let page = page.expect("sound");
                        for row in page.iter().flat_map(HeapPage::rows) {
                            let row = row.expect("sound");
                            found.push((row.entry, case.row(row.tid, &row.tuple)));
                        }
                        page.is_some()
                    };
                    // Every other page by a task.
                    while take(scan.next_page(backend))
                        && block_on(|context| scan.poll_page(context, backend).map(&mut take))
                    {
                    }
                    let turned = |ordering: Ordering| match direction {
                        Direction::Forward => ordering,
                        Direction::Backward => ordering.reverse(),
                    };
                    let in_order = |pair: &[(u32, Row)]| {
                        let rows = turned(case.compare(&pair[0].1, &pair[1].1));
                        pair[0].0.cmp(&pair[1].0).then(rows) != Ordering::Greater
                    };
                    assert!(found.windows(2).all(in_order), "{direction:?} {}", case.name);
                    assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{}", case.name);
                    for (number, conditions) in (0..).zip(&keys) {
                        let of_key =
                            found.iter().filter(|(key, _)| *key == number).map(|(_, row)| row.tid);
                        let expected = tids(&case.filter(conditions));
                        assert_eq!(
                            sorted(of_key.collect()),
                            expected,
                            "{} {conditions:?}",
                            case.name
                        );
                    }
                }
                drop(scan);
                assert_eq!(backend.pins(), 0);
            }
        },
    );
}
