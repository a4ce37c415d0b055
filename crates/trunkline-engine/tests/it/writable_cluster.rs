//! Clusters of our own that are open for writing: what is there after a crash, and after a shutdown. A crash is a cluster
//! that is dropped: its pages and commit log are gone with the pool.

use std::path::Path;

use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_engine::heap_writer::{HeapWriteError, HeapWriter};
use trunkline_engine::log_writer::LogWriterError;
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::pool::IoObject;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{
    Durability, WritableCluster, WritableClusterError, WritableClusterOptions, WriteSession,
};
use trunkline_format::page::line_pointers;
use trunkline_format::transam::XidStatus;
use trunkline_format::wal::SegmentSize;
use trunkline_format::{Fork, HeapTuple, Oid, Tid, TupleBuilder};

pub(crate) fn options(data: &Path) -> WritableClusterOptions {
    let mut settings = Settings::default();
    settings.set("shared_buffers", "1MB").expect("a setting");
    let scratch = data.parent().expect("a folder").to_owned();
    WritableClusterOptions { sessions: 3, ..WritableClusterOptions::new(settings, scratch) }
}

pub(crate) fn open(data: &Path) -> WritableCluster {
    WritableCluster::open(data, &options(data), |_| {}).expect("opened")
}

pub(crate) fn create(data: &Path) {
    create_with(data, true);
}

pub(crate) fn create_without_checksums(data: &Path) {
    create_with(data, false);
}

fn create_with(data: &Path, has_checksums: bool) {
    let size = SegmentSize::new(1 << 20).expect("valid");
    new_cluster::create(data, &NewClusterOptions::now(size, has_checksums)).expect("created");
}

/// Inserts rows with these numbers in one transaction. Returns its XID.
pub(crate) fn insert(
    session: &mut WriteSession,
    writer: &mut HeapWriter,
    numbers: std::ops::Range<i32>,
) -> u32 {
    let transaction = session.begin().expect("begun");
    let xid = transaction.xid();
    for number in numbers {
        let mut row = TupleBuilder::new();
        row.int4(number).text("x".repeat(100));
        writer.insert(&mut session.heap(&transaction), &row.tuple()).expect("inserted");
    }
    session.commit(transaction, Durability::Now).expect("committed");
    xid
}

pub(crate) fn new_table(session: &mut WriteSession) -> RelationLocator {
    new_table_in(session, (Oid(1663), Oid(1)))
}

/// Creates a table in a tablespace and a database, whose directory exists.
pub(crate) fn new_table_in(
    session: &mut WriteSession,
    (tablespace, database): (Oid, Oid),
) -> RelationLocator {
    let transaction = session.begin().expect("begun");
    let relfilenode = session.new_number(tablespace, database).expect("a number");
    let locator = RelationLocator { tablespace, database, relfilenode };
    session.create(&transaction, locator).expect("created");
    session.commit(transaction, Durability::Now).expect("committed");
    locator
}

/// The first columns of all row versions of committed transactions, with their XIDs.
fn rows(session: &mut WriteSession, locator: RelationLocator) -> Vec<(i32, u32)> {
    let relation = session.relation(locator);
    let mut found = Vec::new();
    for block in 0..relation.blocks().expect("it exists") {
        let pin = session.backend().read(&relation, block).expect("valid");
        let page = *session.backend().read_lock(pin.page()).expect("locked");
        for (item, pointer) in line_pointers(&page) {
            let Some(bytes) = pointer.item(&page) else { continue };
            let row = HeapTuple::parse(item, bytes).expect("sound");
            if session.status(row.xmin()).expect("known") == XidStatus::Committed {
                let number = row.data().first_chunk().expect("four bytes");
                found.push((i32::from_le_bytes(*number), row.xmin()));
            }
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn what_was_committed_is_there_after_a_crash_and_after_a_shutdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data);
    let mut session = cluster.session().expect("a session");
    let table = new_table(&mut session);
    let mut writer = HeapWriter::new(session.relation(table));
    let before = insert(&mut session, &mut writer, 0..500);
    session.checkpoint().expect("a checkpoint");
    let after = insert(&mut session, &mut writer, 500..600);
    let mut expected: Vec<_> = (0..500).map(|number| (number, before)).collect();
    expected.extend((500..600).map(|number| (number, after)));
    // One transaction aborts, and one doesn't end.
    let aborted = session.begin().expect("begun");
    let (aborted_xid, mut row) = (aborted.xid(), TupleBuilder::new());
    row.int4(1000);
    writer.insert(&mut session.heap(&aborted), &row.tuple()).expect("inserted");
    session.abort(aborted).expect("aborted");
    let open_one = session.begin().expect("begun");
    let open_xid = open_one.xid();
    writer.insert(&mut session.heap(&open_one), &row.tuple()).expect("inserted");
    assert_eq!(rows(&mut session, table), expected);
    // This commit's flush also makes the WAL of the abort and of the open transaction durable.
    let mut other = HeapWriter::new(session.relation(table));
    insert(&mut session, &mut other, 600..601);
    expected.push((600, open_xid + 1));
    drop((session, cluster));
    // A page of the table could still be written.
    let locked = WritableCluster::open(&data, &options(&data), |_| {});
    assert!(matches!(locked, Err(WritableClusterError::Locked { .. })), "{locked:?}");
    drop((writer, other));

    let mut cluster = open(&data);
    let report = cluster.recovered().expect("it was not shut down");
    assert!(report.records > 100 && report.pages > 1, "{report:?}");
    let mut session = cluster.session().expect("a session");
    assert_eq!(rows(&mut session, table), expected);
    let mut status = |xid| session.status(xid).expect("known");
    assert_eq!(
        (status(aborted_xid), status(open_xid)),
        (XidStatus::Aborted, XidStatus::InProgress)
    );
    let next = session.begin().expect("begun");
    assert_eq!(next.xid(), open_xid + 2, "XIDs are not used twice");
    drop((next, session));
    cluster.close().expect("shut down");
    assert!(matches!(cluster.close(), Err(WritableClusterError::Closed)));
    drop(cluster);

    let cluster = open(&data);
    assert!(cluster.recovered().is_none());
    assert_eq!(rows(&mut cluster.session().expect("a session"), table), expected);
}

#[test]
fn a_shutdown_removes_wal_that_redo_does_not_need() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let segment = |number: u32| data.join(format!("pg_wal/0000000100000000{number:08X}"));
    let mut cluster = open(&data);
    let mut session = cluster.session().expect("a session");
    let table = new_table(&mut session);
    let mut writer = HeapWriter::new(session.relation(table));
    for number in 0.. {
        insert(&mut session, &mut writer, number..number + 1);
        if segment(4).exists() {
            break;
        }
    }
    assert!(segment(1).exists());
    drop((session, writer));
    cluster.close().expect("shut down");
    let left: Vec<u32> = (1..10).filter(|number| segment(*number).exists()).collect();
    assert!(!left.is_empty() && !left.contains(&1), "{left:?}");
    drop(cluster);
    assert!(open(&data).recovered().is_none());
}

#[test]
fn the_commit_log_grows_page_by_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data);
    let mut session = cluster.session().expect("a session");
    let mut last = 0;
    // A page has 32,768 transactions.
    while last < 32_768 + 10 {
        let transaction = session.begin().expect("begun");
        last = transaction.xid();
        if last == 20_000 {
            session.checkpoint().expect("a checkpoint");
        }
        match last % 3 {
            0 => drop(session.commit(transaction, Durability::Soon).expect("committed")),
            1 => session.abort(transaction).expect("aborted"),
            _ => {}
        }
    }
    let table = new_table(&mut session);
    drop((session, cluster));
    let cluster = open(&data);
    let mut session = cluster.session().expect("a session");
    for xid in (3..20).chain(19_990..20_010).chain(32_760..=last) {
        let expected =
            [XidStatus::Committed, XidStatus::Aborted, XidStatus::InProgress][(xid % 3) as usize];
        assert_eq!(session.status(xid).expect("known"), expected, "{xid}");
    }
    assert!(rows(&mut session, table).is_empty());
}

/// Sessions that begin transactions at once agree about which of them begins the page.
#[test]
fn a_page_of_the_commit_log_begins_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data);
    let xids = Arc::new(Mutex::new(Vec::new()));
    let threads = [(); 3].map(|()| {
        let (mut session, xids) = (cluster.session().expect("a session"), Arc::clone(&xids));
        let body = move || {
            let mut mine = Vec::new();
            while mine.last().is_none_or(|last| *last < 32_768 + 200) {
                let transaction = session.begin().expect("begun");
                mine.push(transaction.xid());
                if transaction.xid() > 32_700 {
                    session.commit(transaction, Durability::Soon).expect("committed");
                }
            }
            xids.lock().extend(mine);
        };
        thread::spawn("sessions", body).expect("started")
    });
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut xids: Vec<u32> = xids.lock().clone();
    let mut session = cluster.session().expect("a session");
    for xid in xids.iter().filter(|xid| **xid > 32_700) {
        assert_eq!(session.status(*xid).expect("known"), XidStatus::Committed, "{xid}");
    }
    xids.sort_unstable();
    let expected = 3..=xids.last().copied().unwrap_or_default();
    assert!(xids.into_iter().eq(expected), "each XID is assigned once");
}

/// A pool of 16 buffers, in which a page of the commit log does not stay.
#[test]
fn the_commit_log_is_a_page_of_the_pool() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let mut options = options(&data);
    options.settings.set("shared_buffers", "128kB").expect("a setting");
    let cluster = WritableCluster::open(&data, &options, |_| {}).expect("opened");
    let mut session = cluster.session().expect("a session");
    let table = new_table(&mut session);
    let mut writer = HeapWriter::new(session.relation(table));
    let first = insert(&mut session, &mut writer, 0..3000);
    let relation = session.relation(table);
    let blocks = relation.blocks().expect("it exists");
    assert!(blocks > 32, "{blocks}");
    let pool = cluster.engine().pool().clone();
    let in_pool = || pool.rows().into_iter().find(|row| row.relation.slru().is_some());
    let row = in_pool().expect("the commit has changed it");
    assert!((row.dirty, row.block, row.fork) == (true, 0, Fork::Main), "{row:?}");
    assert_eq!(row.relation.to_string(), "pg_xact");
    session.checkpoint().expect("a checkpoint");
    for block in 0..blocks {
        drop(session.backend().read(&relation, block).expect("read"));
    }
    assert_eq!(in_pool(), None);
    assert_eq!(session.status(first).expect("read again"), XidStatus::Committed);
    assert!(in_pool().is_some_and(|row| !row.dirty));
    session.backend().publish_counts();
    let counts = pool.counts().into_iter().filter(|(key, _)| key.object == IoObject::Slru);
    let (mut reads, mut writes) = (0, 0);
    for (key, tally) in counts {
        assert_eq!(key.relation, row.relation);
        (reads, writes) = (reads + tally.read_blocks, writes + tally.written_blocks);
    }
    assert!(reads >= 2 && writes >= 1, "{reads} reads, {writes} writes");
    drop((session, writer, relation, pool, cluster));
    let cluster = open(&data);
    let found = rows(&mut cluster.session().expect("a session"), table);
    assert_eq!(found.len(), 3000);
}

#[test]
fn rows_that_cannot_be_written_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let cluster = open(&data);
    let mut session = cluster.session().expect("a session");
    let table = new_table(&mut session);
    let mut writer = HeapWriter::new(session.relation(table));
    insert(&mut session, &mut writer, 0..1);
    let end = cluster.log().end();
    let transaction = session.begin().expect("begun");
    let mut long = TupleBuilder::new();
    long.text("x".repeat(8160));
    let mut heap = session.heap(&transaction);
    let error = writer.insert(&mut heap, &long.tuple()).expect_err("too long");
    assert_eq!(error.to_string(), "row is too big: size 8188, maximum size 8160");
    let missing = writer.delete(&mut heap, Tid { block: 0, item: 2 }, None);
    assert!(matches!(missing, Err(HeapWriteError::NoRow { .. })), "{missing:?}");
    let short = TupleBuilder::new();
    let tid = Tid { block: 0, item: 9 };
    let missing = writer.update(&mut heap, tid, &short.tuple(), true, None);
    assert!(matches!(missing, Err(HeapWriteError::NoRow { .. })), "{missing:?}");
    let beyond = writer.delete(&mut heap, Tid { block: 99, item: 1 }, None);
    assert!(matches!(beyond, Err(HeapWriteError::Read(_))), "{beyond:?}");
    assert_eq!(cluster.log().end(), end, "nothing was logged");
    assert_eq!(rows(&mut session, table).len(), 1);
}

#[test]
fn sessions_are_limited_and_a_cluster_is_opened_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    create(&data);
    let mut cluster = open(&data);
    let sessions: Vec<_> = (0..3).map(|_| cluster.session().expect("a session")).collect();
    let more = cluster.session();
    assert!(matches!(more, Err(WritableClusterError::NoWriteSession { sessions: 3 })), "{more:?}");
    assert!(matches!(cluster.close(), Err(WritableClusterError::InUse)));
    let again = WritableCluster::open(&data, &options(&data), |_| {});
    assert!(matches!(again, Err(WritableClusterError::Locked { .. })), "{again:?}");
    assert!(data.join("postmaster.pid").exists(), "a server must not start");
    drop(sessions);
    cluster.close().expect("shut down");
    drop(cluster);
    assert!(!data.join("postmaster.pid").exists());
    std::fs::remove_file(data.join("trunkline.cluster")).expect("removed");
    let foreign = WritableCluster::open(&data, &options(&data), |_| {});
    let is_refused =
        matches!(foreign, Err(WritableClusterError::Log(LogWriterError::NotOurs { .. })));
    assert!(is_refused, "{foreign:?}");
}
