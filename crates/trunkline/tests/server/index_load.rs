//! The index of the processes that are killed: all threads insert into one. Its keys are a text, of which there are few so that pages
//! split between equal texts, some of them long so that there are many pages, and the number of the thread.

use std::fs;
use std::path::Path;

use trunkline_aio::facade::random::Rng;
use trunkline_engine::btree::Index;
use trunkline_engine::btree_writer::{BtreeWriteError, BtreeWriter, Uniqueness};
use trunkline_engine::heap_writer::HeapSession;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{Durability, WritableCluster, WriteSession};
use trunkline_format::btree::{KeyColumn, KeyLayout, Meta, Order};
use trunkline_format::deform::Attribute;
use trunkline_format::{Align, BLOCK_SIZE, Oid, Tid, TupleBuilder};

use crate::tree_check::walk;
use crate::writer_process::options;

/// One thread's right to insert into the index.
pub(crate) struct IndexLoad {
    writer: BtreeWriter,
    thread: i32,
}

fn layout() -> KeyLayout {
    let column = |len, order| KeyColumn {
        attribute: Attribute { len, align: Align::Int },
        order,
        descending: false,
        nulls_first: false,
    };
    KeyLayout::new(vec![column(-1, Order::Bytes), column(4, Order::Int4)], 2)
}

impl IndexLoad {
    /// Makes a new index.
    pub(crate) fn create(session: &mut WriteSession) -> RelationLocator {
        let transaction = session.begin().expect("begun");
        let (tablespace, database) = (Oid(1663), Oid(1));
        let relfilenode = session.new_number(tablespace, database).expect("a number");
        let locator = RelationLocator { tablespace, database, relfilenode };
        let relation = session.create(&transaction, locator).expect("created");
        let index = Index::new(relation, layout());
        BtreeWriter::create(&mut session.heap(&transaction), index, true).expect("created");
        session.commit(transaction, Durability::Now).expect("committed");
        locator
    }

    pub(crate) fn open(session: &WriteSession, index: RelationLocator, thread: u64) -> Self {
        let index = Index::new(session.relation(index), layout());
        let writer = BtreeWriter::new(index).expect("a known order");
        Self { writer, thread: thread as i32 }
    }

    /// Inserts an entry for a row.
    pub(crate) fn insert(&mut self, session: &mut HeapSession<'_>, rng: &mut Rng, row: Tid) {
        let mut tuple = TupleBuilder::new();
        let letter = [b'a' + rng.below(26) as u8];
        match rng.below(8) {
            0 => tuple.null(),
            1 => tuple.text(letter.repeat(2600)),
            2..=4 => tuple.text(letter.repeat(10)),
            _ => tuple.text(letter.repeat(300 + rng.below(4) as usize)),
        };
        tuple.int4(self.thread);
        match self.writer.insert(session, &tuple.tuple(), row, Uniqueness::NotChecked) {
            // The row's line pointer was used before by a row that was removed since.
            Ok(_) | Err(BtreeWriteError::Exists { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks each index of a cluster that was recovered and shut down.
pub(crate) fn check(data: &Path, scratch: &Path) {
    let mut cluster = WritableCluster::open(data, &options(scratch, 0), |_| {}).expect("opened");
    let mut session = cluster.session().expect("a session");
    let mut indexes = 0;
    for entry in fs::read_dir(data.join("base/1")).expect("listed") {
        let entry = entry.expect("an entry");
        let bytes = fs::read(entry.path()).expect("read");
        let is_index =
            bytes.first_chunk::<BLOCK_SIZE>().is_some_and(|page| Meta::parse(page).is_ok());
        if !is_index {
            continue;
        }
        let relfilenode = entry.file_name().to_string_lossy().parse().expect("a number");
        let (tablespace, database) = (Oid(1663), Oid(1));
        let locator = RelationLocator { tablespace, database, relfilenode };
        let index = Index::new(session.relation(locator), layout());
        let tree = walk(&index, session.backend());
        let (entries, height) = (tree.entries.len(), tree.height);
        println!("  {entries} entries on {height} levels, {} unfinished splits", tree.unfinished);
        indexes += 1;
    }
    assert!(indexes > 0, "each writer makes an index");
    drop(session);
    cluster.close().expect("shut down");
}
