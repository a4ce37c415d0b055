//! Locks that several transactions share, and multixacts across pages, files and crashes.

use std::path::Path;

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_engine::heap_writer::{
    HeapWriteError, HeapWriter, PruneOptions, PruneReason, RowLockMode,
};
use trunkline_engine::storage::Relation;
use trunkline_engine::writable_cluster::{Durability, Transaction, WriteSession};
use trunkline_format::control::ControlFile;
use trunkline_format::heap_tuple::{XMAX_IS_MULTI, XMIN_FROZEN, is_only_locked};
use trunkline_format::page::line_pointer;
use trunkline_format::transam::multixact::MemberStatus;
use trunkline_format::{HeapTuple, Tid, TupleBuilder};

use crate::writable_cluster::{create, new_table, open};

/// A multixact and its members.
type NewMultixact = (u32, Vec<(u32, MemberStatus)>);

/// xmax and infomask of a row.
fn header(session: &mut WriteSession, relation: &Relation, tid: Tid) -> (u32, u16) {
    let pin = session.backend().read(relation, tid.block).expect("read");
    let page = session.backend().read_lock(pin.page()).expect("locked");
    let bytes = line_pointer(&page, tid.item).and_then(|pointer| pointer.item(&page));
    let row = HeapTuple::parse(tid.item, bytes.expect("inside")).expect("sound");
    (row.xmax(), row.infomask())
}

fn members(
    session: &mut WriteSession,
    transaction: &Transaction,
    multixact: u32,
) -> Vec<(u32, MemberStatus)> {
    let heap = session.heap(transaction);
    heap.multixacts.members(heap.backend, multixact).expect("known")
}

#[test]
fn a_row_is_locked_by_several_transactions() {
    let folder = tempfile::tempdir().expect("a folder");
    create(&folder.path().join("data"));
    let cluster = open(&folder.path().join("data"));
    let mut session = cluster.session().expect("a session");
    let locator = new_table(&mut session);
    let relation = session.relation(locator);
    let mut writer = HeapWriter::new(relation.clone());
    let mut row = TupleBuilder::new();
    row.int4(1);
    let inserter = session.begin().expect("begun");
    let tid = writer.insert(&mut session.heap(&inserter), &row.tuple()).expect("inserted").tid;
    session.commit(inserter, Durability::Now).expect("committed");

    let [first, second, third] = [(); 3].map(|()| session.begin().expect("begun"));
    let lock = |writer: &mut HeapWriter, session: &mut WriteSession, of: &Transaction, mode| {
        writer.lock(&mut session.heap(of), tid, mode, None)
    };
    lock(&mut writer, &mut session, &first, RowLockMode::KeyShare).expect("locked");
    let (xmax, infomask) = header(&mut session, &relation, tid);
    assert_eq!((xmax, infomask & XMAX_IS_MULTI), (first.xid(), 0));
    lock(&mut writer, &mut session, &second, RowLockMode::Share).expect("locked");
    let (multixact, infomask) = header(&mut session, &relation, tid);
    assert!(infomask & XMAX_IS_MULTI != 0 && is_only_locked(infomask), "{infomask:#x}");
    let (key_share, share) = (MemberStatus::KeyShare, MemberStatus::Share);
    let expected = [(first.xid(), key_share), (second.xid(), share)];
    assert_eq!(members(&mut session, &first, multixact), expected);

    let is_held = |refused: &HeapWriteError| matches!(refused, HeapWriteError::LockedBy { xmax, .. } if *xmax == second.xid());
    let refused = lock(&mut writer, &mut session, &third, RowLockMode::NoKeyUpdate);
    assert!(is_held(&refused.expect_err("it conflicts with Share")));
    let refused = writer.delete(&mut session.heap(&third), tid, Some(first.xid()));
    assert!(is_held(&refused.expect_err("locked")));
    let refused =
        writer.update(&mut session.heap(&third), tid, &row.tuple(), true, Some(first.xid()));
    assert!(is_held(&refused.expect_err("locked")));
    let weaker = lock(&mut writer, &mut session, &second, RowLockMode::KeyShare);
    assert_eq!(weaker.expect("locked already"), None);
    lock(&mut writer, &mut session, &first, RowLockMode::Share).expect("locked");
    let (stronger, _) = header(&mut session, &relation, tid);
    let expected = [(second.xid(), share), (first.xid(), share)];
    assert_eq!(members(&mut session, &first, stronger), expected);

    // A row with lockers is all-visible, but not all-frozen, and its xmin can be frozen.
    let horizon = first.xid();
    let bits = writer.set_visible(&mut session.heap(&third), 0, horizon).expect("marked");
    assert!(bits.all_visible && !bits.all_frozen);
    let freeze_limit = Some(horizon);
    let options = PruneOptions { reason: PruneReason::Vacuum, horizon, freeze_limit };
    let pruned = writer.prune(&mut session.heap(&third), 0, &options).expect("pruned");
    assert_eq!(pruned.frozen, 1);
    let (xmax, infomask) = header(&mut session, &relation, tid);
    assert_eq!((xmax, infomask & XMIN_FROZEN), (stronger, XMIN_FROZEN));

    session.commit(first, Durability::Now).expect("committed");
    let refused = lock(&mut writer, &mut session, &third, RowLockMode::Update);
    assert!(is_held(&refused.expect_err("the second is running")));
    lock(&mut writer, &mut session, &third, RowLockMode::Share).expect("locked");
    let (left, _) = header(&mut session, &relation, tid);
    let expected = [(second.xid(), share), (third.xid(), share)];
    assert_eq!(members(&mut session, &third, left), expected, "the first has ended");
    session.abort(second).expect("aborted");
    lock(&mut writer, &mut session, &third, RowLockMode::Update).expect("no other is left");
    let (xmax, infomask) = header(&mut session, &relation, tid);
    assert_eq!((xmax, infomask & XMAX_IS_MULTI), (third.xid(), 0));
    writer.delete(&mut session.heap(&third), tid, None).expect("deleted");
    session.commit(third, Durability::Now).expect("committed");
}

/// Transactions that a crash has interrupted hold nothing.
#[test]
fn locks_end_with_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data);
    let mut session = cluster.session().expect("a session");
    let locator = new_table(&mut session);
    let mut writer = HeapWriter::new(session.relation(locator));
    let mut row = TupleBuilder::new();
    row.int4(1);
    let [first, second] = [(); 2].map(|()| session.begin().expect("begun"));
    let tid = writer.insert(&mut session.heap(&first), &row.tuple()).expect("inserted").tid;
    for holder in [&first, &second] {
        let locked = writer.lock(&mut session.heap(holder), tid, RowLockMode::Share, None);
        assert!(locked.expect("locked").is_some());
    }
    let flushing = session.begin().expect("begun");
    session.commit(flushing, Durability::Now).expect("committed");
    drop((writer, session, cluster));
    let cluster = open(&data);
    let mut session = cluster.session().expect("a session");
    let relation = session.relation(locator);
    let (_, infomask) = header(&mut session, &relation, tid);
    assert!(infomask & XMAX_IS_MULTI != 0, "the lock was logged");
    let mut writer = HeapWriter::new(relation);
    let third = session.begin().expect("begun");
    writer.delete(&mut session.heap(&third), tid, None).expect("deleted");
    session.commit(third, Durability::Now).expect("committed");
}

/// Two sessions create multixacts until there are several files of each kind, beside checkpoints. Crashes and shutdowns
/// lose none of them.
#[test]
fn multixacts_survive_crashes() {
    const SESSIONS: u64 = 2;
    const EACH: u32 = 20_000;
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let mut known: Vec<NewMultixact> = Vec::new();
    for round in 0..2 {
        let mut cluster = open(&data);
        assert_eq!(cluster.recovered().is_some(), round > 0);
        let mut session = cluster.session().expect("a session");
        let transaction = session.begin().expect("begun");
        for (multixact, expected) in &known {
            assert_eq!(&members(&mut session, &transaction, *multixact), expected);
        }
        let created = Arc::new(Mutex::new(Vec::new()));
        let creators = (0..SESSIONS).map(|at| {
            let mut session = cluster.session().expect("a session");
            let created = Arc::clone(&created);
            let create = move || {
                let multixacts = create_many(&mut session, round * SESSIONS + at, EACH);
                created.lock().extend(multixacts);
            };
            thread::spawn("creator", create).expect("started")
        });
        let creators: Vec<_> = creators.collect();
        session.checkpoint().expect("a checkpoint");
        for creator in creators {
            creator.join().expect("no panic");
        }
        known.append(&mut created.lock());
        session.commit(transaction, Durability::Now).expect("committed");
        if round > 0 {
            drop(session);
            cluster.close().expect("shut down");
        }
    }
    let mut numbers: Vec<u32> = known.iter().map(|(multixact, _)| *multixact).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(1..=known.len() as u32), "each number once");
    let of_control = next_multixact(&data);
    let total: usize = known.iter().map(|(_, members)| members.len()).sum();
    assert_eq!(of_control, (known.len() as u32 + 1, total as u64 + 1));
    for folder in ["pg_multixact/offsets", "pg_multixact/members"] {
        assert!(data.join(folder).join("0001").is_file(), "{folder} has several files");
    }
    let cluster = open(&data);
    assert!(cluster.recovered().is_none());
    let mut session = cluster.session().expect("a session");
    let transaction = session.begin().expect("begun");
    for (multixact, expected) in &known {
        assert_eq!(&members(&mut session, &transaction, *multixact), expected);
    }
    let heap = session.heap(&transaction);
    for unknown in [0, known.len() as u32 + 1] {
        let error = heap.multixacts.members(heap.backend, unknown).expect_err("unknown");
        assert!(error.to_string().contains("does not exist"), "{error}");
    }
}

fn create_many(session: &mut WriteSession, seed: u64, count: u32) -> Vec<NewMultixact> {
    let mut rng = Rng::new(seed);
    let transaction = session.begin().expect("begun");
    let xid = u64::from(transaction.xid());
    let heap = session.heap(&transaction);
    let statuses = [MemberStatus::KeyShare, MemberStatus::Share, MemberStatus::NoKeyUpdateLock];
    let created = (0..count).map(|_| {
        let most = if rng.below(500) == 0 { 1000 } else { 5 };
        let count = 1 + rng.below(most);
        let member = |_| (1 + rng.below(xid) as u32, statuses[rng.below(3) as usize]);
        let members: Vec<_> = (0..count).map(member).collect();
        let multixact = heap.multixacts.create(heap.backend, heap.changer, &members);
        (multixact.expect("created"), members)
    });
    created.collect()
}

/// Number and first member of the next multixact, as in the control file.
fn next_multixact(data: &Path) -> (u32, u64) {
    let bytes = std::fs::read(data.join("global/pg_control")).expect("read");
    let checkpoint = ControlFile::parse(&bytes).expect("sound").checkpoint;
    (checkpoint.next_multi, checkpoint.next_multi_offset)
}
