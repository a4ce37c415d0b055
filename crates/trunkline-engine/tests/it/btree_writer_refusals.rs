//! What the B-tree writer refuses, and pages of indexes that it can't have made itself: posting lists and half-dead pages. The tests
//! make them by the records of a server that deduplicates and vacuums.

use trunkline_engine::btree::Index;
use trunkline_engine::btree_writer::{BtreeWriteError, BtreeWriter, Inserted, Uniqueness};
use trunkline_engine::page_change::ChangedPage;
use trunkline_engine::writable_cluster::{Durability, Transaction, WriteSession};
use trunkline_format::btree::{BtreePage, KeyLayout, Meta, Order};
use trunkline_format::wal::resource_manager::btree_operation::{
    DEDUP, MARK_PAGE_HALF_DEAD, META_CLEANUP,
};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewRecord};
use trunkline_format::{BlockNo, Tid};

use crate::btree_writer::{Value, column, create, index_of, new_index, open, tuple};

fn int4_layout() -> KeyLayout {
    KeyLayout::new(vec![column(Order::Int4, false, false)], 1)
}

fn insert(
    session: &mut WriteSession,
    transaction: &Transaction,
    writer: &mut BtreeWriter,
    (number, row): (i32, Tid),
) -> Result<Inserted, BtreeWriteError> {
    let tuple = tuple(&[Some(Value::Int4(number))]);
    let mut session = session.heap(transaction);
    writer.insert(&mut session, &tuple.tuple(), row, Uniqueness::NotChecked)
}

#[track_caller]
fn insert_new(
    session: &mut WriteSession,
    transaction: &Transaction,
    writer: &mut BtreeWriter,
    entry: (i32, Tid),
) {
    let inserted = insert(session, transaction, writer, entry);
    assert!(matches!(inserted, Ok(Inserted::Done { .. })), "{inserted:?}");
}

/// A block reference of a record that a test makes up.
type Part<'a> = (BlockNo, ImageMode, &'a [&'a [u8]]);

fn change(
    session: &mut WriteSession,
    transaction: &Transaction,
    index: &Index,
    (operation, main): (u8, &[u8]),
    parts: &[Part<'_>],
) {
    let relation = index.relation();
    let heap = session.heap(transaction);
    let mut room = heap.changer.room(heap.backend.session(), (1, 2, 1000)).expect("room");
    let read = |block| heap.backend.read(relation, block).expect("valid");
    let pins: Vec<_> = parts.iter().map(|part| part.0).map(read).collect();
    let mut locked: Vec<_> =
        pins.iter().map(|pin| pin.page().try_write().expect("not locked")).collect();
    let main: &[&[u8]] = &[main];
    let record = NewRecord::plain(number::BTREE, operation, heap.xid, main);
    let changed = locked.iter_mut().zip(parts);
    let mut changed: Vec<_> = changed
        .map(|(page, &(block, image, data))| ChangedPage { relation, block, page, image, data })
        .collect();
    heap.changer.change(&mut room, &record, &mut changed).expect("changed");
}

#[test]
fn what_cannot_be_written_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data, "1MB");
    let mut session = cluster.session().expect("a session");
    let unknown = KeyLayout::new(vec![column(Order::Unknown, false, false)], 1);
    let layout = KeyLayout::new(vec![column(Order::Bytes, false, false)], 1);
    let (locator, mut writer) = new_index(&mut session, &layout);
    let refused = BtreeWriter::new(index_of(&session, locator, &unknown));
    assert!(matches!(refused, Err(BtreeWriteError::UnknownOrder { column: 1 })), "{refused:?}");
    let transaction = session.begin().expect("begun");
    let again = BtreeWriter::create(
        &mut session.heap(&transaction),
        index_of(&session_of(&cluster), locator, &layout),
        true,
    );
    assert!(matches!(again, Err(BtreeWriteError::NotEmpty { .. })), "{again:?}");
    let end = cluster.log().end();
    let mut error = |values: &[Option<Value>], row| {
        let tuple = tuple(values);
        let mut session = session.heap(&transaction);
        let inserted = writer.insert(&mut session, &tuple.tuple(), row, Uniqueness::NotChecked);
        inserted.expect_err("refused")
    };
    let (text, row) = (|length| Some(Value::Text(vec![b'x'; length])), Tid { block: 3, item: 4 });
    let long = error(&[text(2693)], row).to_string();
    let expected = "index row size 2712 exceeds btree version 4 maximum 2704 for index \"";
    assert!(long.starts_with(expected) && long.ends_with("\", row (3,4)"), "{long}");
    let two = error(&[text(1), text(1)], row);
    assert!(matches!(two, BtreeWriteError::Columns { found: 2, expected: 1 }), "{two:?}");
    let nowhere = error(&[text(1)], Tid { block: 3, item: 0 });
    assert!(matches!(nowhere, BtreeWriteError::InvalidRow { .. }), "{nowhere:?}");
    let other_type = error(&[Some(Value::Int4(100))], row);
    assert!(matches!(other_type, BtreeWriteError::Value { .. }), "{other_type:?}");
    assert_eq!(cluster.log().end(), end, "nothing was logged");
}

/// Another session, to get at the relation.
fn session_of(cluster: &trunkline_engine::writable_cluster::WritableCluster) -> WriteSession {
    cluster.session().expect("a session")
}

#[test]
fn metapages_of_other_kinds_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data, "1MB");
    let mut session = cluster.session().expect("a session");
    let (locator, mut writer) = new_index(&mut session, &int4_layout());
    let index = index_of(&session, locator, &int4_layout());
    let transaction = session.begin().expect("begun");
    let row = Tid { block: 1, item: 1 };
    insert_new(&mut session, &transaction, &mut writer, (1, row));
    let sound = index.meta(session.backend()).expect("sound");
    let mut try_with = |meta: Meta| {
        let record = meta.to_record();
        let data: &[&[u8]] = &[&record];
        let parts = [(0, ImageMode::WillInit, data)];
        change(&mut session, &transaction, &index, (META_CLEANUP, &[]), &parts);
        insert(&mut session, &transaction, &mut writer, (1, row)).expect_err("refused")
    };
    let old = try_with(Meta { version: 3, ..sound });
    assert!(matches!(old, BtreeWriteError::Version { found: 3, .. }), "{old:?}");
    let deep = try_with(Meta { fast_root: 9, ..sound });
    assert!(matches!(deep, BtreeWriteError::FastRoot { fast_root: 9, .. }), "{deep:?}");
    let sound = try_with(sound);
    assert!(matches!(sound, BtreeWriteError::Exists { .. }), "{sound:?}");
}

#[test]
fn rows_go_around_posting_lists_but_not_into_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data, "1MB");
    let mut session = cluster.session().expect("a session");
    let (locator, mut writer) = new_index(&mut session, &int4_layout());
    let index = index_of(&session, locator, &int4_layout());
    let transaction = session.begin().expect("begun");
    let row = |item| Tid { block: 1, item };
    for item in [10, 20, 30] {
        insert_new(&mut session, &transaction, &mut writer, (5, row(item)));
    }
    let root = index.meta(session.backend()).expect("sound").root;
    let runs: &[&[u8]] = &[&[1, 0, 3, 0]];
    let parts = [(root, ImageMode::IfNeeded, runs)];
    change(&mut session, &transaction, &index, (DEDUP, &[1, 0]), &parts);
    let mut try_row = |item| insert(&mut session, &transaction, &mut writer, (5, row(item)));
    let inside = try_row(15);
    assert!(matches!(inside, Err(BtreeWriteError::PostingList { .. })), "{inside:?}");
    for item in [10, 20, 30] {
        let exists = try_row(item);
        assert!(matches!(exists, Err(BtreeWriteError::Exists { .. })), "{exists:?}");
    }
    for item in [9, 31] {
        assert!(matches!(try_row(item), Ok(Inserted::Done { .. })), "{item}");
    }
    let pin = session.backend().read(index.relation(), root).expect("valid");
    let page = *session.backend().read_lock(pin.page()).expect("locked");
    let page = BtreePage::parse(&page).expect("sound");
    let rows: Vec<Vec<Tid>> =
        page.entries().map(|entry| entry.expect("sound").rows().collect()).collect();
    assert_eq!(rows, [vec![row(9)], vec![row(10), row(20), row(30)], vec![row(31)]]);
}

/// `VACUUM` has begun to delete a leaf, and was interrupted. Its keys now belong to its right sibling.
#[test]
fn half_dead_pages_are_passed() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data, "1MB");
    let mut session = cluster.session().expect("a session");
    let (locator, mut writer) = new_index(&mut session, &int4_layout());
    let index = index_of(&session, locator, &int4_layout());
    let transaction = session.begin().expect("begun");
    let row = |number: i32| Tid { block: 1 + number as u32, item: 1 };
    for number in 0..1200 {
        insert_new(&mut session, &transaction, &mut writer, (number, row(number)));
    }
    let root = index.meta(session.backend()).expect("sound").root;
    let page_of = |session: &mut WriteSession, block| {
        let pin = session.backend().read(index.relation(), block).expect("valid");
        *session.backend().read_lock(pin.page()).expect("locked")
    };
    let root_page = page_of(&mut session, root);
    let root_page = BtreePage::parse(&root_page).expect("sound");
    let child = |item| root_page.entry(item).expect("sound").child().expect("a downlink");
    let (left, leaf, right) = (child(1), child(2), child(3));
    let words = [2, leaf, left, right, u32::MAX].map(u32::to_le_bytes).concat();
    let parts: [Part<'_>; 2] = [(leaf, ImageMode::WillInit, &[]), (root, ImageMode::IfNeeded, &[])];
    change(&mut session, &transaction, &index, (MARK_PAGE_HALF_DEAD, &words), &parts);
    let of_leaf = {
        let page = page_of(&mut session, right);
        let page = BtreePage::parse(&page).expect("sound");
        let first = page.entry(page.first()).expect("sound");
        first.first_row().expect("a row").block as i32 - 2
    };
    insert_new(&mut session, &transaction, &mut writer, (of_leaf, row(of_leaf)));
    let page = page_of(&mut session, right);
    let page = BtreePage::parse(&page).expect("sound");
    let first = page.entry(page.first()).expect("sound").first_row();
    assert_eq!(first, Some(row(of_leaf)), "it is on the right sibling");
    let page = page_of(&mut session, leaf);
    let page = BtreePage::parse(&page).expect("sound");
    assert!(page.is_half_dead() && page.count() == 1);
    session.commit(transaction, Durability::Now).expect("committed");
}
