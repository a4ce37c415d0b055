//! Index scans on the simulated disk, with faults in pages of the index and of the table.
//!
//! A run makes some pages unreadable for good, lets other reads fail or come back short, cancels the
//! session, and releases what the scans hold. Every scan must return the rows that the conditions
//! mean, except for those on pages of the table whose error it has returned, until it returns an error
//! of the index. Whenever it is given up, nothing stays pinned.
//!
//! `TRUNKLINE_INDEX_SEEDS` sets the number of seeds for each I/O method; in CI it is 12.

use std::future::poll_fn;
use trunkline_aio::facade::{Arc, env};
use trunkline_aio::{Observed, Operation};
use trunkline_engine::btree::{Index, ScanSizes};
use trunkline_engine::heap::{HeapError, HeapPage};
use trunkline_engine::index_scan::{
    BitmapBuilder, BitmapHeapScan, IndexOnlyEntry, IndexOnlyScan, IndexScan, IndexScanError,
    IndexScanOptions, IndexedTable, KeyedScan, TidBitmap,
};
use trunkline_engine::pool::Backend;
use trunkline_engine::read_stream::{ReleaseAhead, StreamOptions};
use trunkline_engine::transactions::Transactions;
use trunkline_format::btree::{
    Comparison, Condition, Direction, KeyColumn, KeyLayout, KeyRanges, KeyValue, Order,
};
use trunkline_format::deform::Attribute;
use trunkline_format::{
    Align, BLOCK_SIZE, BlockNo, HeapPageBuilder, PageBytes, Tid, TupleBuilder, page_checksum,
};
use trunkline_sim::matrix::cluster::check_simulated;
use trunkline_sim::matrix::{Cluster, Needs};

/// The relations.
const TABLE: u32 = 1;
const INDEX: u32 = 2;

const BLOCKS: BlockNo = 24;
const ROWS_PER_BLOCK: u32 = 8;
const KEYS: i32 = (BLOCKS * ROWS_PER_BLOCK) as i32;
const KEYS_PER_LEAF: usize = 6;
const CHILDREN: usize = 5;

/// Where the row of a key is. Neighbouring keys are on different blocks.
fn tid_of(key: i32) -> Tid {
    let place = key as u32 * 71 % KEYS as u32;
    Tid { block: place / ROWS_PER_BLOCK, item: (place % ROWS_PER_BLOCK) as u16 + 1 }
}

fn table_page(block: BlockNo) -> PageBytes {
    let (mut builder, mut row) = (HeapPageBuilder::new(block), TupleBuilder::new());
    let mut keys: Vec<i32> = (0..KEYS).filter(|key| tid_of(*key).block == block).collect();
    keys.sort_by_key(|key| tid_of(*key).item);
    for key in keys {
        row.clear();
        assert_eq!(builder.push(&row.int4(key).tuple()), Ok(tid_of(key).item));
    }
    builder.finish(true)
}

/// An index tuple: where it points to, its second word of flags and size, and its key.
fn tuple(block: u32, item: u16, info: u16, key: Option<i32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(((block >> 16) as u16).to_le_bytes());
    bytes.extend((block as u16).to_le_bytes());
    bytes.extend(item.to_le_bytes());
    bytes.extend(info.to_le_bytes());
    if let Some(key) = key {
        bytes.extend(key.to_le_bytes());
        bytes.extend([0; 4]);
    }
    bytes
}

fn separator(child: BlockNo, key: Option<i32>) -> Vec<u8> {
    match key {
        Some(_) => tuple(child, 1, 0x2010, key),
        None => tuple(child, 0, 0x2008, None),
    }
}

fn put(page: &mut PageBytes, at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Ends a page: `lower` and `upper` of its header, and its checksum.
fn finish(mut page: PageBytes, block: BlockNo, lower: u16, upper: u16) -> PageBytes {
    let special = BLOCK_SIZE as u16 - 16;
    for (at, word) in [(12, lower), (14, upper), (16, special), (18, BLOCK_SIZE as u16 | 4)] {
        put(&mut page, at, &word.to_le_bytes());
    }
    let checksum = page_checksum(&page, block);
    put(&mut page, 8, &checksum.to_le_bytes());
    page
}

/// A page with its left and right neighbours, which are 0 if there are none.
fn index_page(
    (block, left, right): (BlockNo, BlockNo, BlockNo),
    level: u32,
    items: &[Vec<u8>],
) -> PageBytes {
    let (mut page, mut upper) = ([0; BLOCK_SIZE], BLOCK_SIZE - 16);
    for (item, at) in items.iter().zip((24..).step_by(4)) {
        upper -= item.len();
        put(&mut page, upper, item);
        let pointer = upper as u32 | 1 << 15 | (item.len() as u32) << 17;
        put(&mut page, at, &pointer.to_le_bytes());
    }
    let leaf = u32::from(level == 0);
    for (at, word) in (BLOCK_SIZE - 16..).step_by(4).zip([left, right, level, leaf]) {
        put(&mut page, at, &word.to_le_bytes());
    }
    finish(page, block, 24 + 4 * items.len() as u16, upper as u16)
}

/// The pages of an index on all keys, from the metapage to the root.
fn index_pages() -> Vec<PageBytes> {
    let mut pages = vec![[0; BLOCK_SIZE]];
    // The first key of each page of a level, and its block.
    let mut below: Vec<(i32, BlockNo)> = Vec::new();
    let mut level = 0;
    loop {
        let groups: Vec<(i32, Vec<Vec<u8>>)> = match level {
            0 => {
                let keys: Vec<i32> = (0..KEYS).collect();
                let entry = |key: &i32| {
                    let Tid { block, item } = tid_of(*key);
                    tuple(block, item, 0x0010, Some(*key))
                };
                let leaves = keys.chunks(KEYS_PER_LEAF);
                leaves.map(|keys| (keys[0], keys.iter().map(entry).collect())).collect()
            }
            _ => below
                .chunks(CHILDREN)
                .map(|children| {
                    let items = children
                        .iter()
                        .enumerate()
                        .map(|(at, (key, block))| separator(*block, Some(*key).filter(|_| at > 0)));
                    (children[0].0, items.collect())
                })
                .collect(),
        };
        let first = pages.len() as BlockNo;
        let last = first + groups.len() as BlockNo - 1;
        let firsts: Vec<i32> = groups.iter().map(|(key, _)| *key).collect();
        for (at, (block, (_, mut items))) in (first..).zip(groups).enumerate() {
            if let Some(next) = firsts.get(at + 1) {
                items.insert(0, separator(0, Some(*next)));
            }
            let left = if block == first { 0 } else { block - 1 };
            let right = if block == last { 0 } else { block + 1 };
            pages.push(index_page((block, left, right), level, &items));
        }
        below = firsts.into_iter().zip(first..).collect();
        if below.len() == 1 {
            break;
        }
        level += 1;
    }
    let root = pages.len() as u32 - 1;
    let mut meta = [0; BLOCK_SIZE];
    for (at, word) in (24..).step_by(4).zip([0x0005_3162, 4, root, level, root, level]) {
        put(&mut meta, at, &u32::to_le_bytes(word));
    }
    put(&mut meta, BLOCK_SIZE - 4, &8_u16.to_le_bytes());
    pages[0] = finish(meta, 0, 72, BLOCK_SIZE as u16 - 16);
    pages
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// The pages that can't be read, for good.
#[derive(Debug, Default)]
struct Damage {
    table: Vec<BlockNo>,
    index: Vec<BlockNo>,
    /// Other reads fail now and then.
    others: bool,
}

/// Creates the table and the index, and damages some of their pages.
fn create(cluster: &Cluster, random: &mut Random) -> (IndexedTable, Damage) {
    let mut table: Vec<PageBytes> = (0..BLOCKS).map(table_page).collect();
    let mut index = index_pages();
    let mut damage = Damage::default();
    if random.one_in(2) {
        for _ in 0..random.below(4) {
            damage.table.push(random.below(table.len()) as BlockNo);
        }
    }
    if random.one_in(3) {
        damage.index.push(random.below(index.len()) as BlockNo);
    }
    damage.table.sort_unstable();
    damage.table.dedup();
    damage.table.iter().for_each(|block| table[*block as usize][4000] ^= 1);
    damage.index.iter().for_each(|block| index[*block as usize][4000] ^= 1);
    cluster.write_segment(TABLE, 0, table.as_flattened());
    cluster.write_segment(INDEX, 0, index.as_flattened());
    let attribute = Attribute { len: 4, align: Align::Int };
    let column = KeyColumn { attribute, order: Order::Int4, descending: false, nulls_first: false };
    let sizes = ScanSizes { index_blocks: index.len() as BlockNo, table_blocks: BLOCKS };
    let table = IndexedTable {
        index: Index::new(cluster.relation(INDEX), KeyLayout::new(vec![column], 1)),
        rows: cluster.relation(TABLE),
        sizes,
        transactions: Arc::new(Transactions::all_frozen(&cluster.storage)),
    };
    (table, damage)
}

fn number(key: i32) -> KeyValue {
    Some(Box::from(key.to_le_bytes()))
}

/// A range or a list, and the keys that match, in the order of the index.
fn random_condition(random: &mut Random) -> (Condition, Vec<i32>) {
    let key = random.below(KEYS as usize) as i32;
    if random.one_in(3) {
        let values: Vec<i32> =
            (0..1 + random.below(12)).map(|_| random.below(KEYS as usize) as i32).collect();
        let mut keys = values.clone();
        keys.sort_unstable();
        keys.dedup();
        let values = values.into_iter().map(number).collect();
        return (Condition::AnyOf { column: 0, values }, keys);
    }
    let comparison = match random.below(3) {
        0 => Comparison::Less,
        1 => Comparison::GreaterOrEqual,
        _ => Comparison::Equal,
    };
    let keys = (0..KEYS).filter(|other| comparison.holds(other.cmp(&key))).collect();
    (Condition::Compare { column: 0, comparison, value: number(key) }, keys)
}

/// A scan: each step returns the keys of the next rows, or `None` at the end.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Scan {
    Rows(IndexScan),
    Only(IndexOnlyScan),
    Keyed(KeyedScan, Vec<i32>),
    Bitmap(BitmapBuilder, Option<TidBitmap>),
    BitmapHeap(BitmapHeapScan),
}

type Stepped = Result<Option<Vec<i32>>, IndexScanError>;

/// The keys of a page's rows. `wanted` is the key of each entry of a keyed scan.
fn keys_of(page: Result<Option<HeapPage<'_>>, IndexScanError>, wanted: Option<&[i32]>) -> Stepped {
    let Some(page) = page? else { return Ok(None) };
    let keys = page.rows().map(|row| {
        let row = row.expect("the page is sound");
        let key = i32::from_le_bytes(*row.tuple.data().first_chunk().expect("a key"));
        assert_eq!(row.tid, tid_of(key));
        if let Some(wanted) = wanted {
            assert_eq!(key, wanted[row.entry as usize]);
        }
        key
    });
    Ok(Some(keys.collect()))
}

fn entries_of(
    batch: Result<Option<&[IndexOnlyEntry]>, IndexScanError>,
    layout: &KeyLayout,
) -> Stepped {
    let Some(batch) = batch? else { return Ok(None) };
    let keys = batch.iter().map(|entry| {
        let tuple = entry.tuple().expect("sound");
        let key = tuple.attributes(layout.columns()).next().expect("a column");
        let key =
            i32::from_le_bytes(*key.expect("sound").expect("a key").first_chunk().expect("4"));
        assert_eq!(entry.tid, tid_of(key));
        key
    });
    Ok(Some(keys.collect()))
}

impl Scan {
    /// One step. A task polls for it.
    fn step(
        &mut self,
        cluster: &Cluster,
        backend: &mut Backend,
        polls: bool,
        layout: &KeyLayout,
    ) -> Stepped {
        match self {
            Self::Rows(scan) if polls => cluster.block_on(poll_fn(|context| {
                scan.poll_page(context, backend).map(|page| keys_of(page, None))
            })),
            Self::Rows(scan) => keys_of(scan.next_page(backend), None),
            Self::Only(scan) if polls => cluster.block_on(poll_fn(|context| {
                scan.poll_entries(context, backend).map(|batch| entries_of(batch, layout))
            })),
            Self::Only(scan) => entries_of(scan.next_entries(backend), layout),
            Self::Keyed(scan, keys) if polls => cluster.block_on(poll_fn(|context| {
                scan.poll_page(context, backend).map(|page| keys_of(page, Some(keys.as_slice())))
            })),
            Self::Keyed(scan, keys) => keys_of(scan.next_page(backend), Some(keys.as_slice())),
            Self::Bitmap(builder, bitmap) => {
                let Some(filled) = bitmap else { return Ok(None) };
                match polls {
                    true => cluster.block_on(poll_fn(|context| {
                        builder.poll_build(context, backend, filled)
                    }))?,
                    false => builder.build(backend, filled)?,
                }
                Ok(None)
            }
            Self::BitmapHeap(scan) if polls => cluster.block_on(poll_fn(|context| {
                scan.poll_page(context, backend).map(|page| keys_of(page, None))
            })),
            Self::BitmapHeap(scan) => keys_of(scan.next_page(backend), None),
        }
    }

    fn release_ahead(&mut self) {
        match self {
            Self::Rows(scan) => scan.release_ahead(),
            Self::Only(scan) => scan.release_ahead(),
            Self::Keyed(scan, _) => scan.release_ahead(),
            Self::Bitmap(builder, _) => builder.release_ahead(),
            Self::BitmapHeap(scan) => scan.release_ahead(),
        }
    }
}

/// What a scan has returned.
#[derive(Debug, Default)]
struct ScanResult {
    keys: Vec<i32>,
    /// Pages of the table whose error was returned.
    unreadable: Vec<BlockNo>,
    /// An error of the index has ended the scan.
    failed: bool,
    /// The scan was given up.
    stopped: bool,
}

/// Runs a scan to its end, or gives it up.
fn run(
    scan: &mut Scan,
    cluster: &Cluster,
    backend: &mut Backend,
    random: &mut Random,
    layout: &KeyLayout,
) -> ScanResult {
    let mut found = ScanResult::default();
    let (polls, stops) = (random.one_in(2), random.one_in(5));
    backend.session().set_may_block(!polls);
    loop {
        if random.one_in(12) {
            backend.session().canceller().cancel();
        }
        if random.one_in(10) {
            scan.release_ahead();
        }
        let stepped = scan.step(cluster, backend, polls, layout);
        backend.session().clear_cancel();
        match stepped {
            Ok(Some(keys)) => found.keys.extend(keys),
            Ok(None) => return found,
            Err(error) if error.is_cancelled() => {}
            Err(IndexScanError::Heap(HeapError::Read(error))) => {
                found.unreadable.extend(error.block());
            }
            Err(IndexScanError::Index(_)) => {
                found.failed = true;
                return found;
            }
            Err(error) => panic!("{error}"),
        }
        if stops && random.one_in(8) {
            found.stopped = true;
            return found;
        }
    }
}

/// Compares what was found with the keys that match, in the order of the scan; `None` if there is none.
fn check_found(found: &ScanResult, expected: &[i32], ordered: bool, damage: &Damage) {
    let ScanResult { keys, unreadable, failed, stopped } = found;
    let sound = damage.index.is_empty() && damage.table.is_empty() && !damage.others;
    assert!(!sound || (!failed && unreadable.is_empty()), "{found:?}");
    let readable = |key: &&i32| !unreadable.contains(&tid_of(**key).block);
    assert!(keys.iter().all(|key| !damage.table.contains(&tid_of(*key).block)), "{damage:?}");
    let (mut keys, mut expected) = (keys.clone(), expected.to_vec());
    if !ordered {
        keys.sort_unstable();
        expected.sort_unstable();
    }
    let is_part = |part: &[i32], whole: &[i32]| {
        let mut whole = whole.iter();
        part.iter().all(|key| whole.any(|other| other == key))
    };
    assert!(is_part(&keys, &expected), "{keys:?} of {expected:?}");
    // In order, nothing is missing before the last row either.
    let last = keys.last().copied();
    let whole = !failed && !stopped;
    let complete: Vec<i32> = match (whole, ordered, last) {
        (true, ..) => expected,
        (false, true, Some(last)) => {
            let end = expected.iter().rposition(|key| *key == last).expect("expected");
            // A keyed scan may have the key again.
            expected.truncate(end + 1);
            if expected.iter().filter(|key| **key == last).count() > 1 {
                return;
            }
            expected
        }
        _ => return,
    };
    let missing = complete.iter().filter(readable).filter(|key| !keys.contains(key));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&i32>::new(), "{found:?}");
}

/// Lets reads fail or come back short now and then.
fn disturb(cluster: &Cluster, seed: u64) {
    let mut random = Random(seed);
    cluster.probe.change_results(move |io: &Observed, raw: i32| {
        if io.operation != Operation::Readv || raw <= 0 {
            return raw;
        }
        match random.below(24) {
            0 => -5,
            1 => (random.below(raw as usize) + 1) as i32,
            _ => raw,
        }
    });
}

fn options(random: &mut Random) -> IndexScanOptions {
    let mut stream = || StreamOptions {
        full: random.one_in(2),
        concurrency: [0, 1, 4, 16][random.below(4)],
        combine: [1, 4, 16][random.below(3)],
        ..StreamOptions::default()
    };
    let (leaves, heap) = (stream(), stream());
    IndexScanOptions { leaves, heap, unordered: random.one_in(2) }
}

fn scan_once(cluster: &Arc<Cluster>, table: &IndexedTable, damage: &Damage, random: &mut Random) {
    let mut backend = cluster.async_backend();
    let backend = &mut backend;
    let layout = table.index.layout();
    let options = options(random);
    let (condition, mut expected) = random_condition(random);
    let direction = [Direction::Forward, Direction::Backward][random.below(2)];
    let ranges = KeyRanges::new(layout, std::slice::from_ref(&condition), direction);
    let Some(ranges) = ranges.expect("usable") else {
        assert!(expected.is_empty());
        return;
    };
    if direction == Direction::Backward {
        expected.reverse();
    }
    let mut ordered = true;
    let mut scan = match random.below(4) {
        0 => {
            ordered = !options.unordered;
            Scan::Rows(IndexScan::new(backend, table, ranges, options))
        }
        1 => Scan::Only(IndexOnlyScan::new(backend, table, (&table.rows, 0), ranges, options)),
        2 => {
            let mut scan = KeyedScan::new(backend, table, options);
            let batches = 1 + random.below(3);
            for batch in 0..batches {
                let keys: Vec<i32> =
                    (0..random.below(40)).map(|_| random.below(KEYS as usize) as i32).collect();
                let key = |key: &i32| {
                    let value = number(*key);
                    let equal =
                        Condition::Compare { column: 0, comparison: Comparison::Equal, value };
                    KeyRanges::new(layout, &[equal], direction).expect("usable")
                };
                scan.start(keys.iter().map(key).collect());
                let mut keyed = Scan::Keyed(scan, keys.clone());
                let found = run(&mut keyed, cluster, backend, random, layout);
                check_found(&found, &keys, true, damage);
                let Scan::Keyed(again, _) = keyed else { unreachable!("just made") };
                scan = again;
                // The next batch begins whether this one has ended or not.
                assert!(batch < batches);
            }
            drop(scan);
            assert_eq!(backend.pins(), 0);
            return;
        }
        _ => {
            let (index, sizes) = (&table.index, table.sizes);
            let builder = BitmapBuilder::new(backend, index, sizes, ranges, options.leaves);
            let bitmap = TidBitmap::new([0, 1 << 16][random.below(2)]);
            let mut building = Scan::Bitmap(builder, Some(bitmap));
            let built = run(&mut building, cluster, backend, random, layout);
            let Scan::Bitmap(builder, bitmap) = building else { unreachable!("just made") };
            drop(builder);
            assert_eq!(backend.pins(), 0);
            if built.failed || built.stopped {
                return;
            }
            let (rows, transactions) = (&table.rows, &table.transactions);
            let bitmap = bitmap.expect("a bitmap");
            let scan = BitmapHeapScan::new(backend, rows, transactions, bitmap, options);
            let mut scan = Scan::BitmapHeap(scan);
            let mut found = run(&mut scan, cluster, backend, random, layout);
            // A lossy page has more rows.
            found.keys.retain(|key| expected.contains(key));
            check_found(&found, &expected, false, damage);
            drop(scan);
            assert_eq!(backend.pins(), 0);
            return;
        }
    };
    let found = run(&mut scan, cluster, backend, random, layout);
    check_found(&found, &expected, ordered, damage);
    drop(scan);
    assert_eq!(backend.pins(), 0);
}

#[test]
fn scans_return_exactly_what_they_can_read() {
    let seeds = env::var("TRUNKLINE_INDEX_SEEDS").and_then(|seeds| seeds.to_str()?.parse().ok());
    let needs = Needs { buffers: 32, seeds: seeds.unwrap_or(12), ..Needs::default() };
    check_simulated(needs, |cluster| {
        let seed = cluster.environment.seed.expect("simulated");
        let mut random = Random(0x1D5C_A900 + 977 * seed);
        let (table, mut damage) = create(cluster, &mut random);
        if random.one_in(2) {
            damage.others = true;
            disturb(cluster, 1 + seed);
        }
        for _ in 0..12 {
            scan_once(cluster, &table, &damage, &mut random);
        }
        cluster.probe.keep_results();
    });
}
