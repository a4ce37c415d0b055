//! Changes of heap pages: rows, locks, pruning, freezing, and the visibility map. Seeded operations are compared with a
//! model, and the pages of the pool with those that recovery makes.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_engine::heap_writer::{
    HeapSession, HeapWriteError, HeapWriter, PruneOptions, PruneReason, Pruned, RowLockMode,
};
use trunkline_engine::log::Log;
use trunkline_engine::log_writer::LogWriterError;
use trunkline_engine::storage::{Relation, StorageError};
use trunkline_engine::writable_cluster::{
    Durability, Transaction, WritableCluster, WritableClusterOptions, WriteSession,
};
use trunkline_format::heap_tuple::{XMAX_INVALID, XMIN_FROZEN, is_all_visible, is_only_locked};
use trunkline_format::page::{LinePointerFlags, PageHeader, line_pointer, line_pointers};
use trunkline_format::transam::XidStatus;
use trunkline_format::visibility_map::{self, VisibilityBits};
use trunkline_format::{Fork, HeapTuple, PageBytes, Tid, TupleBuilder, heap_rows};

use crate::writable_cluster::{create, create_without_checksums, new_table, open, options};

/// A cluster with a table.
struct Table {
    session: WriteSession,
    writer: HeapWriter,
    relation: Relation,
    // Dropped last.
    cluster: WritableCluster,
}

impl Table {
    fn new(data: &Path) -> Self {
        create(data);
        Self::of(open(data))
    }

    fn of(cluster: WritableCluster) -> Self {
        let mut session = cluster.session().expect("a session");
        let locator = new_table(&mut session);
        let relation = session.relation(locator);
        Self { session, writer: HeapWriter::new(relation.clone()), relation, cluster }
    }

    /// Loses everything that is not in the WAL, and recovers.
    fn crash(self, data: &Path) -> Self {
        let locator = self.relation.locator();
        drop(self);
        let cluster = open(data);
        assert!(cluster.recovered().is_some(), "it was not shut down");
        let session = cluster.session().expect("a session");
        let relation = session.relation(locator);
        Self { session, writer: HeapWriter::new(relation.clone()), relation, cluster }
    }

    fn map(&self) -> Relation {
        self.relation.storage().relation(self.relation.locator(), Fork::Vm)
    }

    /// The pages of a fork. None if there is no such fork.
    fn pages(&mut self, relation: &Relation) -> Vec<PageBytes> {
        let blocks = match relation.blocks() {
            Err(StorageError::SegmentMissing { .. }) => 0,
            blocks => blocks.expect("known"),
        };
        let backend = self.session.backend();
        let page = |block| {
            let pin = backend.read(relation, block).expect("valid");
            *backend.read_lock(pin.page()).expect("locked")
        };
        (0..blocks).map(page).collect()
    }

    fn heap_page(&mut self, block: u32) -> PageBytes {
        let relation = self.relation.clone();
        self.pages(&relation)[block as usize]
    }

    fn bits(&mut self, block: u32) -> VisibilityBits {
        let map = self.map();
        let page = self.pages(&map).into_iter().nth(visibility_map::map_block(block) as usize);
        page.map(|page| visibility_map::bits(&page, block)).unwrap_or_default()
    }

    /// A transaction of one operation, which commits.
    fn commit<T>(
        &mut self,
        body: impl FnOnce(&mut HeapWriter, &mut WriteSession, &Transaction) -> T,
    ) -> T {
        let transaction = self.session.begin().expect("begun");
        let done = body(&mut self.writer, &mut self.session, &transaction);
        self.session.commit(transaction, Durability::Now).expect("committed");
        done
    }

    fn insert(&mut self, number: i32) -> Tid {
        let mut row = TupleBuilder::new();
        row.int4(number);
        self.commit(|writer, session, transaction| {
            writer.insert(&mut session.heap(transaction), &row.tuple()).expect("inserted").tid
        })
    }

    fn update(&mut self, tid: Tid, number: i32) -> Tid {
        let mut row = TupleBuilder::new();
        row.int4(number);
        self.commit(|writer, session, transaction| {
            let mut heap = session.heap(transaction);
            writer.update(&mut heap, tid, &row.tuple(), true, None).expect("updated").tid
        })
    }

    fn delete(&mut self, tid: Tid) {
        self.commit(|writer, session, transaction| {
            writer.delete(&mut session.heap(transaction), tid, None).expect("deleted");
        });
    }

    /// Prunes a page. No snapshot needs older transactions than the one that does it.
    fn prune(&mut self, block: u32, is_frozen: bool) -> Pruned {
        self.commit(|writer, session, transaction| {
            let horizon = transaction.xid();
            let freeze_limit = is_frozen.then_some(horizon);
            let options = PruneOptions { reason: PruneReason::Vacuum, horizon, freeze_limit };
            writer.prune(&mut session.heap(transaction), block, &options).expect("pruned")
        })
    }

    fn set_visible(&mut self, block: u32) -> VisibilityBits {
        self.commit(|writer, session, transaction| {
            let mut heap = session.heap(transaction);
            writer.set_visible(&mut heap, block, transaction.xid()).expect("marked")
        })
    }

    /// The places and first columns of all visible rows.
    fn rows(&mut self) -> Vec<(u32, u16, i32)> {
        let relation = self.relation.clone();
        let mut found = Vec::new();
        for (block, page) in (0..).zip(self.pages(&relation)) {
            for row in heap_rows(&page) {
                let row = row.expect("sound");
                if is_visible(&row, &mut self.session) {
                    let number = row.data().first_chunk().expect("four bytes");
                    found.push((block, row.item(), i32::from_le_bytes(*number)));
                }
            }
        }
        found
    }

    /// A bit of the map is set only if the page has the flag, and its rows are as the bit says.
    fn check_map(&mut self) {
        let (relation, map) = (self.relation.clone(), self.map());
        let maps = self.pages(&map);
        for (block, page) in (0..).zip(self.pages(&relation)) {
            let map = maps.get(visibility_map::map_block(block) as usize);
            let bits =
                map.map_or_else(VisibilityBits::default, |map| visibility_map::bits(map, block));
            assert!(is_all_visible(&page) || bits == VisibilityBits::default(), "block {block}");
            assert!(bits.all_visible || !bits.all_frozen, "block {block}");
            for row in heap_rows(&page) {
                let row = row.expect("sound");
                if is_all_visible(&page) {
                    assert!(is_visible(&row, &mut self.session), "block {block}, {}", row.item());
                }
                if bits.all_frozen {
                    let is_frozen = row.infomask() & XMIN_FROZEN == XMIN_FROZEN;
                    assert!(is_frozen && row.xmax() == 0, "block {block}, {}", row.item());
                }
            }
        }
    }
}

fn is_visible(row: &HeapTuple<'_>, session: &mut WriteSession) -> bool {
    let mut has_committed = |xid| session.status(xid).expect("known") == XidStatus::Committed;
    let is_frozen = row.infomask() & XMIN_FROZEN == XMIN_FROZEN;
    let is_deleted = row.infomask() & XMAX_INVALID == 0
        && !is_only_locked(row.infomask())
        && has_committed(row.xmax());
    (is_frozen || has_committed(row.xmin())) && !is_deleted
}

/// The line pointers of a page: `1→4` is a redirect.
fn pointers(page: &PageBytes) -> String {
    let words = line_pointers(page).map(|(item, pointer)| match pointer.flags {
        LinePointerFlags::Normal => format!("{item}"),
        LinePointerFlags::Redirect => format!("{item}→{}", pointer.offset),
        LinePointerFlags::Dead => format!("{item} dead"),
        LinePointerFlags::Unused => format!("{item} unused"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// What recovery determines: neither the bytes between line pointers and items, nor those between items, in which a prune
/// may have left something that an image doesn't have; and no checksum, which is set when the page is written.
fn logged(page: &PageBytes, fork: Fork) -> PageBytes {
    let mut logged = *page;
    logged[8..10].fill(0);
    let header = PageHeader::parse(page);
    if fork == Fork::Main && header.lower <= header.upper {
        logged[usize::from(header.lower)..usize::from(header.upper)].fill(0);
        for (_, pointer) in line_pointers(page) {
            if pointer.flags == LinePointerFlags::Normal {
                let end = usize::from(pointer.end());
                logged[end..end.next_multiple_of(8)].fill(0);
            }
        }
    }
    logged
}

#[test]
fn seeded_operations_agree_with_a_model_and_survive_crashes() {
    for seed in 0..4 {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let (mut table, mut rng) = (Table::new(&data), Rng::new(seed));
        let mut rows: Vec<(Tid, i32)> = Vec::new();
        let mut is_marked = false;
        for round in 0..4 {
            for _ in 0..40 {
                let transaction = table.session.begin().expect("begun");
                let Table { session, writer, .. } = &mut table;
                change_rows((session, writer), transaction, &mut rng, &mut rows);
                let transaction = table.session.begin().expect("begun");
                maintain(&mut table, &transaction, transaction.xid(), &mut rng);
                table.session.commit(transaction, Durability::Now).expect("committed");
                if rng.below(30) == 0 {
                    table.session.checkpoint().expect("a checkpoint");
                }
            }
            table.check_map();
            let mut expected: Vec<_> =
                rows.iter().map(|(tid, number)| (tid.block, tid.item, *number)).collect();
            expected.sort_unstable();
            assert_eq!(table.rows(), expected, "seed {seed}, round {round}");
            let forks = [table.relation.clone(), table.map()];
            let before = forks.each_ref().map(|fork| table.pages(fork));
            is_marked |= before[1].iter().any(|page| visibility_map::last_set(page, 0).is_some());
            drop(forks);
            table = table.crash(&data);
            let forks = [table.relation.clone(), table.map()];
            for (relation, before) in forks.iter().zip(&before) {
                let after = table.pages(relation);
                assert_eq!(after.len(), before.len(), "seed {seed}, {relation:?}");
                for (block, (before, after)) in (0..).zip(before.iter().zip(&after)) {
                    let fork = relation.fork();
                    let (before, after) = (logged(before, fork), logged(after, fork));
                    let difference = before.iter().zip(&after).position(|(a, b)| a != b);
                    let place = format!("seed {seed}, round {round}, {relation:?}, block {block}");
                    assert_eq!(difference, None, "{place}: {}", pointers(&after));
                }
            }
            assert_eq!(table.rows(), expected, "seed {seed}, round {round}");
        }
        assert!(is_marked, "seed {seed}: no page was ever all-visible");
    }
}

/// Changes a row whose xmax may be an earlier transaction: there is no other transaction with these rows.
fn in_spite_of_ended<T>(mut change: impl FnMut(Option<u32>) -> Result<T, HeapWriteError>) -> T {
    match change(None) {
        Err(HeapWriteError::LockedBy { xmax, .. }) => change(Some(xmax)).expect("changed"),
        done => done.expect("changed"),
    }
}

/// One transaction, which may abort.
fn change_rows(
    (session, writer): (&mut WriteSession, &mut HeapWriter),
    transaction: Transaction,
    rng: &mut Rng,
    rows: &mut Vec<(Tid, i32)>,
) {
    let mut heap = session.heap(&transaction);
    let mut changed = rows.clone();
    for _ in 0..1 + rng.below(6) {
        let number = rng.below(1 << 30) as i32;
        let mut row = TupleBuilder::new();
        row.int4(number).text("x".repeat(rng.below(600) as usize));
        let at = rng.below(changed.len().max(1) as u64) as usize;
        match rng.below(10) {
            0..2 => {
                let written = writer.insert(&mut heap, &row.tuple()).expect("inserted");
                changed.push((written.tid, number));
            }
            2 => {
                let count = rng.below(60) as i32;
                let builders: Vec<TupleBuilder> = (0..count)
                    .map(|offset| {
                        let mut row = TupleBuilder::new();
                        row.int4(offset).text("y".repeat(rng.below(300) as usize));
                        row
                    })
                    .collect();
                let tuples: Vec<_> = builders.iter().map(TupleBuilder::tuple).collect();
                let written = writer.insert_many(&mut heap, &tuples).expect("inserted");
                assert_eq!(written.len(), tuples.len());
                changed.extend((0..).zip(&written).map(|(number, row)| (row.tid, number)));
            }
            _ if changed.is_empty() => {}
            3..6 => {
                let keeps_keys = rng.below(3) > 0;
                let tid = changed[at].0;
                let updated = in_spite_of_ended(|ended| {
                    writer.update(&mut heap, tid, &row.tuple(), keeps_keys, ended)
                });
                changed[at] = (updated.tid, number);
            }
            6 => {
                let modes = [
                    RowLockMode::KeyShare,
                    RowLockMode::Share,
                    RowLockMode::NoKeyUpdate,
                    RowLockMode::Update,
                ];
                let (tid, mode) = (changed[at].0, modes[rng.below(4) as usize]);
                in_spite_of_ended(|ended| writer.lock(&mut heap, tid, mode, ended));
            }
            _ => {
                let tid = changed.swap_remove(at).0;
                in_spite_of_ended(|ended| writer.delete(&mut heap, tid, ended));
            }
        }
    }
    if rng.below(5) == 0 {
        return session.abort(transaction).expect("aborted");
    }
    session.commit(transaction, Durability::Now).expect("committed");
    *rows = changed;
}

/// What vacuum does with a page.
fn maintain(table: &mut Table, transaction: &Transaction, horizon: u32, rng: &mut Rng) {
    let blocks = table.relation.blocks().expect("known");
    if blocks == 0 {
        return;
    }
    let block = rng.below(blocks.into()) as u32;
    let choice = rng.below(4);
    let dead = if choice == 1 { dead_items(&table.heap_page(block)) } else { Vec::new() };
    let mut heap = table.session.heap(transaction);
    match choice {
        0 => {
            let freeze_limit = (rng.below(2) == 0).then_some(horizon);
            let options = PruneOptions { reason: PruneReason::Vacuum, horizon, freeze_limit };
            table.writer.prune(&mut heap, block, &options).expect("pruned");
        }
        1 if dead.is_empty() => {}
        1 => {
            table.writer.remove_dead(&mut heap, block, &dead).expect("removed");
        }
        _ => {
            table.writer.set_visible(&mut heap, block, horizon).expect("marked");
        }
    }
}

fn dead_items(page: &PageBytes) -> Vec<u16> {
    let is_dead = |flags| flags == LinePointerFlags::Dead;
    line_pointers(page)
        .filter(|(_, pointer)| is_dead(pointer.flags))
        .map(|(item, _)| item)
        .collect()
}

#[test]
fn a_hot_chain_is_redirected_then_dead_then_unused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(&folder.path().join("data"));
    let mut tid = table.insert(1);
    let other = table.insert(2);
    for number in [11, 12, 13] {
        tid = table.update(tid, number);
    }
    assert_eq!(pointers(&table.heap_page(0)), "1, 2, 3, 4, 5");
    // A snapshot as old as the second update still sees the version of the first.
    let horizon = HeapTuple::parse(3, item(&table.heap_page(0), 3)).expect("sound").xmax();
    let pruned = table.commit(|writer, session, transaction| {
        let reason = PruneReason::OnAccess;
        let options = PruneOptions { reason, horizon, freeze_limit: None };
        writer.prune(&mut session.heap(transaction), 0, &options).expect("pruned")
    });
    assert_eq!((pruned.redirected, pruned.dead, pruned.unused), (1, vec![], 0));
    assert_eq!(pointers(&table.heap_page(0)), "1→3, 2, 3, 4, 5");
    assert_eq!(table.prune(0, false).unused, 2);
    assert_eq!(pointers(&table.heap_page(0)), "1→5, 2, 3 unused, 4 unused, 5");
    assert_eq!(table.prune(0, false), Pruned::default(), "there is nothing left to do");
    assert_eq!(table.rows(), [(0, 2, 2), (0, 5, 13)]);

    table.delete(tid);
    assert!(!table.set_visible(0).all_visible, "a row is deleted");
    let pruned = table.prune(0, false);
    assert_eq!((pruned.dead, pruned.unused), (vec![1], 1));
    assert!(!table.set_visible(0).all_visible, "an index may still name line pointer 1");
    table.delete(other);
    assert_eq!(table.prune(0, false).dead, [2]);
    let removed = |table: &mut Table, items: &[u16]| {
        table.commit(|writer, session, transaction| {
            writer.remove_dead(&mut session.heap(transaction), 0, items)
        })
    };
    let refused = removed(&mut table, &[1, 3]);
    assert!(matches!(refused, Err(HeapWriteError::NotDead { .. })), "{refused:?}");
    assert_eq!(removed(&mut table, &[]).expect("nothing to remove"), None);
    assert!(removed(&mut table, &[2, 1]).expect("removed").is_some());
    assert_eq!(pointers(&table.heap_page(0)), "1 unused");
    assert!(table.set_visible(0).all_frozen, "there is no row");
}

fn item(page: &PageBytes, item: u16) -> &[u8] {
    line_pointer(page, item).and_then(|pointer| pointer.item(page)).expect("an item")
}

#[test]
fn versions_of_an_aborted_transaction_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(&folder.path().join("data"));
    let tid = table.insert(1);
    let mut row = TupleBuilder::new();
    row.int4(2);
    let aborted = table.session.begin().expect("begun");
    let mut heap = table.session.heap(&aborted);
    let updated =
        table.writer.update(&mut heap, tid, &row.tuple(), true, None).expect("updated").tid;
    table.writer.update(&mut heap, updated, &row.tuple(), true, None).expect("updated");
    table.writer.insert(&mut heap, &row.tuple()).expect("inserted");
    table.session.abort(aborted).expect("aborted");
    let pruned = table.prune(0, true);
    assert_eq!((pruned.redirected, pruned.dead, pruned.unused, pruned.frozen), (0, vec![4], 2, 1));
    assert_eq!(pointers(&table.heap_page(0)), "1, 2 unused, 3 unused, 4 dead");
    let page = table.heap_page(0);
    let row = HeapTuple::parse(1, item(&page, 1)).expect("sound");
    assert_eq!((row.xmax(), row.infomask() & XMAX_INVALID), (0, XMAX_INVALID));
    assert!(!row.is_hot_updated());
    assert_eq!(table.rows(), [(0, 1, 1)]);
}

#[test]
fn every_change_of_a_row_clears_the_bits_of_its_page() {
    let visible = VisibilityBits { all_visible: true, all_frozen: false };
    let (none, frozen) =
        (VisibilityBits::default(), VisibilityBits { all_frozen: true, ..visible });
    type Operation =
        fn(&mut HeapWriter, &mut HeapSession<'_>, Tid, &TupleBuilder) -> Result<(), HeapWriteError>;
    let operations: [(&str, Operation, VisibilityBits); 6] = [
        ("insert", |w, s, _, row| w.insert(s, &row.tuple()).map(drop), none),
        ("multi-insert", |w, s, _, row| w.insert_many(s, &[row.tuple()]).map(drop), none),
        ("HOT", |w, s, tid, row| w.update(s, tid, &row.tuple(), true, None).map(drop), none),
        ("update", |w, s, tid, row| w.update(s, tid, &row.tuple(), false, None).map(drop), none),
        ("lock", |w, s, tid, _| w.lock(s, tid, RowLockMode::Update, None).map(drop), visible),
        ("delete", |w, s, tid, _| w.delete(s, tid, None).map(drop), none),
    ];
    for (name, operation, expected) in operations {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let mut table = Table::new(&data);
        let tid = table.insert(1);
        assert_eq!(table.set_visible(0), visible, "{name}");
        assert_eq!(table.prune(0, true).frozen, 1, "{name}");
        assert_eq!(table.set_visible(0), frozen, "{name}");
        // So the bits are not cleared by the same redo that sets them.
        table.session.checkpoint().expect("a checkpoint");
        let mut row = TupleBuilder::new();
        row.int4(7);
        table.commit(|writer, session, transaction| {
            operation(writer, &mut session.heap(transaction), tid, &row).expect("done");
        });
        assert_eq!(table.bits(0), expected, "{name}");
        assert_eq!(is_all_visible(&table.heap_page(0)), expected.all_visible, "{name}");
        table.check_map();
        let mut table = table.crash(&data);
        assert_eq!(table.bits(0), expected, "{name}, recovered");
        assert_eq!(is_all_visible(&table.heap_page(0)), expected.all_visible, "{name}, recovered");
    }
}

#[test]
fn a_torn_write_of_a_map_page_is_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut table = Table::new(&data);
    let tid = table.insert(1);
    assert!(table.set_visible(0).all_visible);
    table.session.checkpoint().expect("a checkpoint");
    table.delete(tid);
    let path = table.map().path(0);
    let locator = table.relation.locator();
    drop(table);
    let mut bytes = std::fs::read(&path).expect("read");
    assert_eq!(bytes[24], 1, "the checkpoint has written the bit");
    bytes[24] = 0;
    std::fs::write(&path, bytes).expect("written");
    // The checksum is still that of the page with the bit.
    let cluster = open(&data);
    let session = cluster.session().expect("a session");
    let relation = session.relation(locator);
    let writer = HeapWriter::new(relation.clone());
    let mut table = Table { session, writer, relation, cluster };
    assert_eq!(table.bits(0), VisibilityBits::default());
}

#[test]
fn sessions_change_pages_of_one_map_page_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut table = Table::new(&data);
    let running = Arc::new(Mutex::new(BTreeSet::new()));
    let left = Arc::new(AtomicU64::new(2));
    let begin = |session: &mut WriteSession, running: &Mutex<BTreeSet<u32>>| {
        let mut running = running.lock();
        let transaction = session.begin().expect("begun");
        running.insert(transaction.xid());
        transaction
    };
    let writers: Vec<_> = (0..2)
        .map(|seed| {
            let mut session = table.cluster.session().expect("a session");
            let mut writer = HeapWriter::new(table.relation.clone());
            let (running, left) = (Arc::clone(&running), Arc::clone(&left));
            let body = move || {
                let (mut rng, mut rows) = (Rng::new(seed), Vec::new());
                for _ in 0..300 {
                    let transaction = begin(&mut session, &running);
                    let xid = transaction.xid();
                    change_rows((&mut session, &mut writer), transaction, &mut rng, &mut rows);
                    running.lock().remove(&xid);
                }
                left.fetch_sub(1, Ordering::SeqCst);
            };
            thread::spawn("writer", body).expect("started")
        })
        .collect();
    let mut rng = Rng::new(7);
    while left.load(Ordering::SeqCst) > 0 {
        let transaction = begin(&mut table.session, &running);
        let horizon = *running.lock().first().expect("this transaction");
        maintain(&mut table, &transaction, horizon, &mut rng);
        running.lock().remove(&transaction.xid());
        table.session.commit(transaction, Durability::Soon).expect("committed");
    }
    writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    table.check_map();
    let rows = table.rows();
    assert!(!rows.is_empty());
    let mut table = table.crash(&data);
    table.check_map();
    assert_eq!(table.rows(), rows);
}

#[test]
fn an_update_to_another_page_clears_the_bits_of_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(&folder.path().join("data"));
    let mut row = TupleBuilder::new();
    row.int4(1).text("x".repeat(3000));
    let rows = [row.tuple(), row.tuple(), row.tuple()];
    let written = table.commit(|writer, session, transaction| {
        writer.insert_many(&mut session.heap(transaction), &rows).expect("inserted")
    });
    let places: Vec<(u32, u16)> = written.iter().map(|row| (row.tid.block, row.tid.item)).collect();
    assert_eq!(places, [(0, 1), (0, 2), (1, 1)]);
    for block in [0, 1] {
        assert!(table.set_visible(block).all_visible);
    }
    let new = table.commit(|writer, session, transaction| {
        let mut heap = session.heap(transaction);
        writer.update(&mut heap, written[0].tid, &row.tuple(), true, None).expect("updated").tid
    });
    assert_eq!((new.block, new.item), (1, 2));
    for block in [0, 1] {
        assert_eq!(table.bits(block), VisibilityBits::default());
        assert!(!is_all_visible(&table.heap_page(block)));
    }
}

#[test]
fn a_page_is_not_all_visible_before_every_snapshot_sees_its_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(&folder.path().join("data"));
    let tid = table.insert(1);
    let marked = |table: &mut Table, horizon| {
        table.commit(|writer, session, transaction| {
            writer.set_visible(&mut session.heap(transaction), 0, horizon).expect("marked")
        })
    };
    let xmin = HeapTuple::parse(1, item(&table.heap_page(0), 1)).expect("sound").xmin();
    assert!(!marked(&mut table, xmin).all_visible, "a snapshot may be as old as the row");
    let open = table.session.begin().expect("begun");
    table.writer.delete(&mut table.session.heap(&open), tid, None).expect("deleted");
    assert!(!marked(&mut table, open.xid()).all_visible, "the row is being deleted");
    table.session.abort(open).expect("aborted");
    let open = table.session.begin().expect("begun");
    let mut row = TupleBuilder::new();
    row.int4(2);
    table.writer.insert(&mut table.session.heap(&open), &row.tuple()).expect("inserted");
    assert!(!marked(&mut table, open.xid()).all_visible, "a row is being inserted");
    let horizon = open.xid() + 1;
    table.session.commit(open, Durability::Now).expect("committed");
    assert!(marked(&mut table, horizon).all_visible);
}

#[test]
fn rows_are_locked_by_one_transaction() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(&folder.path().join("data"));
    let tid = table.insert(1);
    let (first, second) =
        (table.session.begin().expect("begun"), table.session.begin().expect("begun"));
    let mut lock = |transaction: &Transaction, mode, ended| {
        table.writer.lock(&mut table.session.heap(transaction), tid, mode, ended)
    };
    assert!(lock(&first, RowLockMode::Share, None).expect("locked").is_some());
    assert!(lock(&first, RowLockMode::KeyShare, None).expect("locked").is_none(), "it is weaker");
    assert!(lock(&first, RowLockMode::Update, None).expect("locked").is_some());
    let refused = lock(&second, RowLockMode::KeyShare, None);
    let is_refused =
        matches!(refused, Err(HeapWriteError::LockedBy { xmax, .. }) if xmax == first.xid());
    assert!(is_refused, "{refused:?}");
    let refused = lock(&second, RowLockMode::KeyShare, Some(first.xid() - 1));
    assert!(matches!(refused, Err(HeapWriteError::LockedBy { .. })), "{refused:?}");
    let ended = Some(first.xid());
    assert!(lock(&second, RowLockMode::NoKeyUpdate, ended).expect("locked").is_some());
    let refused = table.writer.delete(&mut table.session.heap(&first), tid, None);
    assert!(matches!(refused, Err(HeapWriteError::LockedBy { .. })), "{refused:?}");
    let mut row = TupleBuilder::new();
    row.int4(2);
    let refused =
        table.writer.update(&mut table.session.heap(&first), tid, &row.tuple(), true, None);
    assert!(matches!(refused, Err(HeapWriteError::LockedBy { .. })), "{refused:?}");
    // Its own lock.
    table.writer.delete(&mut table.session.heap(&second), tid, None).expect("deleted");
    let refused = table.writer.delete(&mut table.session.heap(&second), tid, None);
    assert!(matches!(refused, Err(HeapWriteError::ChangedBy { .. })), "{refused:?}");
    let refused =
        table.writer.lock(&mut table.session.heap(&second), tid, RowLockMode::Share, None);
    assert!(matches!(refused, Err(HeapWriteError::ChangedBy { .. })), "{refused:?}");
    table.session.abort(second).expect("aborted");
    table.session.abort(first).expect("aborted");
    assert_eq!(table.rows(), [(0, 1, 1)]);
}

#[test]
fn a_change_that_has_committed_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(&folder.path().join("data"));
    let tid = table.insert(1);
    table.update(tid, 2);
    let xmax = HeapTuple::parse(1, item(&table.heap_page(0), 1)).expect("sound").xmax();
    let mut row = TupleBuilder::new();
    row.int4(3);
    for ended in [None, Some(xmax)] {
        let refused = table.commit(|writer, session, transaction| {
            let mut heap = session.heap(transaction);
            let updated = writer.update(&mut heap, tid, &row.tuple(), false, ended).map(drop);
            let deleted = writer.delete(&mut heap, tid, ended).map(drop);
            let locked = writer.lock(&mut heap, tid, RowLockMode::KeyShare, ended).map(drop);
            [updated, deleted, locked]
        });
        for refused in refused {
            let is_refused = match &refused {
                Err(HeapWriteError::LockedBy { .. }) => ended.is_none(),
                Err(HeapWriteError::ChangedBy { .. }) => ended.is_some(),
                _ => false,
            };
            assert!(is_refused, "{ended:?}: {refused:?}");
        }
    }
    assert_eq!(table.rows(), [(0, 2, 2)]);
}

#[test]
fn a_page_without_a_checksum_is_not_all_visible_before_its_commits_are_durable() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create_without_checksums(&data);
    // So that nothing else flushes the log.
    let wal_writer_delay = Duration::from_secs(3600);
    let options = WritableClusterOptions { wal_writer_delay, ..options(&data) };
    let cluster = WritableCluster::open(&data, &options, |_| {}).expect("opened");
    let mut table = Table::of(cluster);
    let mut row = TupleBuilder::new();
    row.int4(1);
    let transaction = table.session.begin().expect("begun");
    table.writer.insert(&mut table.session.heap(&transaction), &row.tuple()).expect("inserted");
    let end = table.session.commit(transaction, Durability::Soon).expect("committed");
    assert!(table.cluster.log().durable() < end, "the commit has not been flushed");
    let transaction = table.session.begin().expect("begun");
    let mut heap = table.session.heap(&transaction);
    let bits = table.writer.set_visible(&mut heap, 0, transaction.xid()).expect("marked");
    assert!(bits.all_visible);
    assert!(table.cluster.log().durable() >= end, "the commit may be lost");
}

#[test]
fn a_prune_waits_until_no_other_session_has_the_page_pinned() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = Table::new(&folder.path().join("data"));
    let tid = table.insert(1);
    table.update(tid, 2);
    let mut other = table.cluster.session().expect("a session");
    let pin = other.backend().read(&table.relation, 0).expect("valid");
    let transaction = table.session.begin().expect("begun");
    let horizon = transaction.xid();
    let on_access = PruneOptions { reason: PruneReason::OnAccess, horizon, freeze_limit: None };
    let done = table.writer.prune(&mut table.session.heap(&transaction), 0, &on_access);
    assert_eq!(done.expect("not pruned"), Pruned::default(), "a prune on access does not wait");
    let options = PruneOptions { reason: PruneReason::Vacuum, ..on_access };
    table.session.backend().session().canceller().cancel();
    let waited = table.writer.prune(&mut table.session.heap(&transaction), 0, &options);
    let was_cancelled = matches!(&waited, Err(HeapWriteError::Log(LogWriterError::Cancelled(_))));
    assert!(was_cancelled, "{waited:?}");
    assert_eq!(pointers(&table.heap_page(0)), "1, 2");
    drop((pin, other));
    let pruned = table.writer.prune(&mut table.session.heap(&transaction), 0, &options);
    assert_eq!(pruned.expect("pruned").redirected, 1);
}
