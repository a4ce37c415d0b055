//! Indexes that our B-tree writer has made: their entries and structure, many writers at once, unique keys, splits that a crash has
//! interrupted, and recovery.

use std::cmp::Ordering;
use std::path::Path;

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_engine::btree::Index;
use trunkline_engine::btree_writer::{BtreeWriter, Inserted, Uniqueness};
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::pool::Backend;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{
    Durability, WritableCluster, WritableClusterOptions, WriteSession,
};
use trunkline_format::btree::{BtreePage, KeyColumn, KeyLayout, Order};
use trunkline_format::deform::Attribute;
use trunkline_format::page::is_new;
use trunkline_format::wal::SegmentSize;
use trunkline_format::{Align, Lsn, Oid, PageBytes, Tid, TupleBuilder};

use crate::tree_check::{IndexEntry, walk};

const SEGMENT: u64 = 1 << 20;

const THREADS: u32 = 8;

pub(crate) fn create(data: &Path) {
    let size = SegmentSize::new(SEGMENT as u32).expect("valid");
    new_cluster::create(data, &NewClusterOptions::now(size, true)).expect("created");
}

pub(crate) fn open(data: &Path, buffers: &str) -> WritableCluster {
    let mut settings = Settings::default();
    settings.set("shared_buffers", buffers).expect("a setting");
    let scratch = data.parent().expect("a folder").to_owned();
    let sessions = THREADS as usize + 1;
    let options =
        WritableClusterOptions { sessions, ..WritableClusterOptions::new(settings, scratch) };
    WritableCluster::open(data, &options, |_| {}).expect("opened")
}

pub(crate) fn column(order: Order, descending: bool, nulls_first: bool) -> KeyColumn {
    let (len, align) = match order {
        Order::Int4 => (4, Align::Int),
        Order::Int8 => (8, Align::Double),
        _ => (-1, Align::Int),
    };
    KeyColumn { attribute: Attribute { len, align }, order, descending, nulls_first }
}

pub(crate) fn new_index(
    session: &mut WriteSession,
    layout: &KeyLayout,
) -> (RelationLocator, BtreeWriter) {
    let transaction = session.begin().expect("begun");
    let (tablespace, database) = (Oid(1663), Oid(1));
    let relfilenode = session.new_number(tablespace, database).expect("a number");
    let locator = RelationLocator { tablespace, database, relfilenode };
    let relation = session.create(&transaction, locator).expect("created");
    let index = Index::new(relation, layout.clone());
    let writer = BtreeWriter::create(&mut session.heap(&transaction), index, true);
    session.commit(transaction, Durability::Now).expect("committed");
    (locator, writer.expect("created"))
}

pub(crate) fn index_of(
    session: &WriteSession,
    locator: RelationLocator,
    layout: &KeyLayout,
) -> Index {
    Index::new(session.relation(locator), layout.clone())
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Int4(i32),
    Int8(i64),
    Text(Vec<u8>),
}

impl Value {
    fn payload(&self) -> Vec<u8> {
        match self {
            Self::Int4(value) => value.to_le_bytes().to_vec(),
            Self::Int8(value) => value.to_le_bytes().to_vec(),
            Self::Text(value) => value.clone(),
        }
    }
}

pub(crate) type Row = (Vec<Option<Value>>, Tid);

pub(crate) fn tuple(values: &[Option<Value>]) -> TupleBuilder {
    let mut builder = TupleBuilder::new();
    for value in values {
        match value {
            None => builder.null(),
            Some(Value::Int4(value)) => builder.int4(*value),
            Some(Value::Int8(value)) => builder.int8(*value),
            Some(Value::Text(value)) => builder.text(value),
        };
    }
    builder
}

/// Rows as the index must have them.
fn sorted(mut rows: Vec<Row>, layout: &KeyLayout) -> Vec<IndexEntry> {
    rows.sort_by(|(left, left_row), (right, right_row)| {
        let columns = left.iter().zip(right).zip(layout.keys());
        let by_column = columns.map(|((left, right), column)| match (left, right) {
            (Some(left), Some(right)) if column.descending => right.cmp(left),
            (Some(left), Some(right)) => left.cmp(right),
            (None, None) => Ordering::Equal,
            (None, Some(_)) if column.nulls_first => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) if column.nulls_first => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        });
        by_column.fold(Ordering::Equal, Ordering::then).then(left_row.cmp(right_row))
    });
    let payloads = |values: Vec<Option<Value>>| {
        values.into_iter().map(|value| value.map(|value| value.payload())).collect()
    };
    rows.into_iter().map(|(values, row)| (payloads(values), row)).collect()
}

/// All pages of a relation, without checksums: they are set when a page is written.
fn pages(index: &Index, backend: &mut Backend) -> Vec<PageBytes> {
    let relation = index.relation();
    let blocks = 0..relation.blocks().expect("it exists");
    let pages = blocks.map(|block| {
        let pin = backend.read(relation, block).expect("valid");
        let mut page = *backend.read_lock(pin.page()).expect("locked");
        page[8..10].fill(0);
        page
    });
    pages.collect()
}

fn tid(number: u32) -> Tid {
    Tid { block: number / 100, item: (number % 100) as u16 + 1 }
}

fn insert_all(session: &mut WriteSession, writer: &mut BtreeWriter, rows: &[Row]) -> Lsn {
    let (transaction, mut end) = (session.begin().expect("begun"), Lsn(0));
    for (values, row) in rows {
        let tuple = tuple(values);
        let mut session = session.heap(&transaction);
        let inserted = writer.insert(&mut session, &tuple.tuple(), *row, Uniqueness::NotChecked);
        let Inserted::Done { lsn } = inserted.expect("no error") else {
            unreachable!("nothing is checked");
        };
        end = lsn;
    }
    session.commit(transaction, Durability::Now).expect("committed");
    end
}

/// Texts of 200 to 1200 bytes, so that few fit on a page.
fn long_text(rng: &mut Rng) -> Value {
    let length = 200 + rng.below(1000) as usize;
    let mut text = vec![b'a' + rng.below(26) as u8; length];
    for byte in text.iter_mut().take(8) {
        *byte = b'a' + rng.below(26) as u8;
    }
    Value::Text(text)
}

type MakeKey = fn(&mut Rng, u32) -> Vec<Option<Value>>;

/// The kinds of keys, and how many levels their index has at least.
fn kinds() -> Vec<(&'static str, KeyLayout, u32, MakeKey)> {
    let plain = |order| column(order, false, false);
    let layout = |columns: Vec<KeyColumn>| {
        let keys = columns.len();
        KeyLayout::new(columns, keys)
    };
    let both = vec![column(Order::Int4, true, true), column(Order::Bytes, false, false)];
    let include = vec![plain(Order::Int8), plain(Order::Bytes)];
    vec![
        ("ascending", layout(vec![plain(Order::Int4)]), 2, |_, number| {
            vec![Some(Value::Int4(number as i32))]
        }),
        ("descending", layout(vec![plain(Order::Int8)]), 2, |_, number| {
            vec![Some(Value::Int8(-i64::from(number)))]
        }),
        ("one value", layout(vec![plain(Order::Int4)]), 2, |_, _| vec![Some(Value::Int4(7))]),
        ("few values", layout(vec![column(Order::Int8, true, false)]), 2, |rng, _| {
            vec![(rng.below(8) > 0).then(|| Value::Int8(rng.below(5) as i64))]
        }),
        ("long texts", layout(vec![plain(Order::Bytes)]), 3, |rng, _| vec![Some(long_text(rng))]),
        ("the longest", layout(vec![plain(Order::Bytes)]), 4, |rng, _| {
            let mut text = vec![b'x'; 2680 + rng.below(13) as usize];
            text[2600] = b'a' + rng.below(3) as u8;
            vec![Some(Value::Text(text))]
        }),
        ("two columns", layout(both), 3, |rng, _| {
            let number = (rng.below(4) > 0).then(|| Value::Int4(rng.below(20) as i32));
            let text = match rng.below(3) {
                0 => None,
                1 => Some(Value::Text(b"short".to_vec())),
                _ => Some(long_text(rng)),
            };
            vec![number, text]
        }),
        ("an included column", KeyLayout::new(include, 1), 2, |rng, _| {
            vec![Some(Value::Int8(rng.below(500) as i64)), Some(long_text(rng))]
        }),
    ]
}

#[test]
fn inserted_entries_are_in_a_sound_tree_also_after_a_crash() {
    let seed = trunkline_aio::facade::random::seed();
    println!("TRUNKLINE_SEED={seed}");
    let mut rng = Rng::new(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data, "1MB");
    let mut session = cluster.session().expect("a session");
    let mut made = Vec::new();
    for (name, layout, levels, make) in kinds() {
        let (locator, mut writer) = new_index(&mut session, &layout);
        let index = index_of(&session, locator, &layout);
        assert_eq!(walk(&index, session.backend()).height, 0);
        // Rows come in any order, as they do after updates.
        let mut rows: Vec<Row> =
            (0..2500).map(|number| (make(&mut rng, number), tid(number))).collect();
        if rng.below(2) == 0 {
            for at in (1..rows.len()).rev() {
                let other = rng.below(at as u64 + 1) as usize;
                let row = rows[at].1;
                rows[at].1 = rows[other].1;
                rows[other].1 = row;
            }
        }
        for part in rows.chunks(700) {
            insert_all(&mut session, &mut writer, part);
            session.checkpoint().expect("a checkpoint");
        }
        // Some more that the checkpoint doesn't have.
        let more: Vec<Row> =
            (2500..2600).map(|number| (make(&mut rng, number), tid(number))).collect();
        insert_all(&mut session, &mut writer, &more);
        rows.extend(more);
        let tree = walk(&index, session.backend());
        let expected = sorted(rows, &layout);
        assert_eq!((tree.entries.len(), tree.unfinished), (expected.len(), 0), "{name}");
        assert!(tree.entries == expected, "{name}");
        assert!(tree.height >= levels, "{name}: {} levels", tree.height);
        made.push((name, locator, layout, expected, pages(&index, session.backend())));
    }
    drop((session, cluster));
    let cluster = open(&data, "1MB");
    let mut session = cluster.session().expect("a session");
    for (name, locator, layout, expected, before) in made {
        let index = index_of(&session, locator, &layout);
        let after = pages(&index, session.backend());
        assert_eq!(after.len(), before.len(), "{name}");
        for (block, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!(before == after, "{name}, block {block}");
        }
        assert!(walk(&index, session.backend()).entries == expected, "{name}");
    }
}

#[test]
fn many_sessions_insert_into_one_index() {
    let seed = trunkline_aio::facade::random::seed();
    println!("TRUNKLINE_SEED={seed}");
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    for (name, layout, _, make) in kinds() {
        let cluster = open(&data, "400kB");
        let mut session = cluster.session().expect("a session");
        let (locator, _) = new_index(&mut session, &layout);
        let all: Arc<Mutex<Vec<Row>>> = Arc::new(Mutex::new(Vec::new()));
        let threads = (0..THREADS).map(|at| {
            let (all, layout) = (Arc::clone(&all), layout.clone());
            let mut session = cluster.session().expect("a session");
            let mut rng = Rng::new(seed.wrapping_add(u64::from(at)));
            let body = move || {
                let index = index_of(&session, locator, &layout);
                let mut writer = BtreeWriter::new(index).expect("a known order");
                let numbers = (0..250).map(|number| number * THREADS + at);
                let rows: Vec<Row> =
                    numbers.map(|number| (make(&mut rng, number), tid(number))).collect();
                for part in rows.chunks(50) {
                    insert_all(&mut session, &mut writer, part);
                }
                all.lock().extend(rows);
            };
            thread::spawn("inserter", body).expect("started")
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no error"));
        let expected = sorted(std::mem::take(&mut all.lock()), &layout);
        let index = index_of(&session, locator, &layout);
        let tree = walk(&index, session.backend());
        assert_eq!((tree.entries.len(), tree.unfinished), (expected.len(), 0), "{name}");
        assert!(tree.entries == expected, "{name}");
        let before = pages(&index, session.backend());
        drop((session, index, cluster));
        let cluster = open(&data, "1MB");
        let mut session = cluster.session().expect("a session");
        let index = index_of(&session, locator, &layout);
        assert!(pages(&index, session.backend()) == before, "{name}");
    }
}

/// Ends the WAL at a position, as if the writer had been killed before the next record was written.
fn cut_log(data: &Path, end: Lsn) {
    let mut number = end.0 / SEGMENT;
    let mut from = (end.0 % SEGMENT) as usize;
    loop {
        let path = data.join(format!("pg_wal/00000001{:08X}{:08X}", number >> 12, number & 0xFFF));
        let Ok(mut bytes) = std::fs::read(&path) else { break };
        bytes[from..].fill(0);
        std::fs::write(&path, bytes).expect("written");
        (number, from) = (number + 1, 0);
    }
}

/// After the split of the only leaf there is no root above it, and after later ones no downlink.
#[test]
fn the_next_insert_finishes_a_split_that_a_crash_has_interrupted() {
    let layout = KeyLayout::new(vec![column(Order::Int4, false, false)], 1);
    for splits in [1, 2, 6] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        create(&data);
        let cluster = open(&data, "8MB");
        let mut session = cluster.session().expect("a session");
        let (locator, mut writer) = new_index(&mut session, &layout);
        let index = index_of(&session, locator, &layout);
        // The next number goes to the left end of the index, so that the page which is split is not the last.
        let next = |rows: &Vec<Row>| {
            let number = rows.len() as u32;
            (vec![Some(Value::Int4(-(number as i32)))], tid(number))
        };
        let (mut rows, mut leaves): (Vec<Row>, _) = (Vec::new(), 0);
        let end = loop {
            let row = next(&rows);
            let lsn = insert_all(&mut session, &mut writer, std::slice::from_ref(&row));
            rows.push(row);
            let made = pages(&index, session.backend());
            let is_leaf = |page| BtreePage::parse(page).is_ok_and(|page| page.is_leaf());
            let now = made.iter().skip(1).filter(|page| !is_new(page) && is_leaf(page)).count();
            if now > leaves {
                leaves = now;
                if leaves > splits {
                    break lsn;
                }
            }
        };
        drop((session, index, writer, cluster));
        cut_log(&data, end);
        let cluster = open(&data, "8MB");
        let mut session = cluster.session().expect("a session");
        let index = index_of(&session, locator, &layout);
        let tree = walk(&index, session.backend());
        assert_eq!((tree.unfinished, tree.entries.len()), (1, rows.len()), "{splits} splits");
        let mut writer = BtreeWriter::new(index.clone()).expect("a known order");
        let row = next(&rows);
        insert_all(&mut session, &mut writer, std::slice::from_ref(&row));
        rows.push(row);
        let tree = walk(&index, session.backend());
        assert_eq!((tree.unfinished, tree.height), (0, 2), "{splits} splits");
        assert!(tree.entries == sorted(rows, &layout), "{splits} splits");
    }
}

#[test]
fn equal_keys_of_a_unique_index_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data, "1MB");
    let mut session = cluster.session().expect("a session");
    let layout = KeyLayout::new(vec![column(Order::Bytes, false, false)], 1);
    let (locator, mut writer) = new_index(&mut session, &layout);
    let key = |number: usize| {
        let mut text = vec![b'x'; 900];
        text[..4].copy_from_slice(format!("{number:04}").as_bytes());
        vec![Some(Value::Text(text))]
    };
    let transaction = session.begin().expect("begun");
    let mut all: Vec<Row> = Vec::new();
    let mut insert = |values: Vec<Option<Value>>, row, ignored: &[Tid], nulls_are_equal| {
        let tuple = tuple(&values);
        let check = Uniqueness::Checked { ignored, nulls_are_equal };
        let mut session = session.heap(&transaction);
        let inserted = writer.insert(&mut session, &tuple.tuple(), row, check).expect("no error");
        match inserted {
            Inserted::Done { .. } => {
                all.push((values, row));
                Ok(())
            }
            Inserted::Conflict { rows } => Err(rows),
        }
    };
    for number in 0..100 {
        assert_eq!(insert(key(number), tid(number as u32), &[], false), Ok(()));
    }
    assert_eq!(insert(key(50), tid(1000), &[], false), Err(vec![tid(50)]));
    assert_eq!(insert(key(50), tid(1000), &[tid(49)], false), Err(vec![tid(50)]));
    // Versions of one row, all dead, fill several leaves: each new one comes before them, among them, or behind.
    let mut dead = vec![tid(50)];
    for number in 0..60 {
        let row = tid(10_000 + number * 37 % 60);
        assert_eq!(insert(key(50), row, &dead, false), Ok(()), "{number}");
        dead.push(row);
    }
    dead.sort_unstable();
    assert_eq!(insert(key(50), tid(1), &[], false), Err(dead.clone()));
    let last = dead.pop().expect("many");
    assert_eq!(insert(key(50), tid(1000), &dead, false), Err(vec![last]));
    // Nulls are not equal, unless the index says so.
    assert_eq!(insert(vec![None], tid(2000), &[], false), Ok(()));
    assert_eq!(insert(vec![None], tid(2001), &[], false), Ok(()));
    let both = vec![tid(2000), tid(2001)];
    assert_eq!(insert(vec![None], tid(2002), &[], true), Err(both));
    session.commit(transaction, Durability::Now).expect("committed");
    let index = index_of(&session, locator, &layout);
    assert!(walk(&index, session.backend()).entries == sorted(all, &layout));
    assert_eq!(session.backend().pins(), 0);
}

/// Sessions that insert the same keys: each key gets in once.
#[test]
fn a_key_of_a_unique_index_is_inserted_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data, "400kB");
    let mut session = cluster.session().expect("a session");
    let layout = KeyLayout::new(vec![column(Order::Int4, false, false)], 1);
    let (locator, _) = new_index(&mut session, &layout);
    let threads = (0..THREADS).map(|at| {
        let (mut session, layout) = (cluster.session().expect("a session"), layout.clone());
        let body = move || {
            let index = index_of(&session, locator, &layout);
            let mut writer = BtreeWriter::new(index).expect("a known order");
            let transaction = session.begin().expect("begun");
            for number in 0..1500 {
                let values = [Some(Value::Int4(number % 1000))];
                let row = Tid { block: number as u32, item: at as u16 + 1 };
                let check = Uniqueness::Checked { ignored: &[], nulls_are_equal: false };
                let tuple = tuple(&values);
                let mut heap = session.heap(&transaction);
                match writer.insert(&mut heap, &tuple.tuple(), row, check).expect("no error") {
                    Inserted::Done { .. } => assert!(number < 1000),
                    Inserted::Conflict { rows } => assert_eq!(rows.len(), 1),
                }
            }
            session.commit(transaction, Durability::Now).expect("committed");
        };
        thread::spawn("inserter", body).expect("started")
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no error"));
    let index = index_of(&session, locator, &layout);
    let found = walk(&index, session.backend()).entries;
    let keys: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
    let expected: Vec<_> =
        (0..1000_i32).map(|number| vec![Some(number.to_le_bytes().to_vec())]).collect();
    assert!(keys == expected, "{} keys", keys.len());
}
