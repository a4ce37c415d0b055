//! Fetching TOAST values, whose chunks are rows that may need the commit log.

use trunkline_aio::facade::Arc;
use trunkline_engine::btree::Index;
use trunkline_engine::heap::{ToastBatch, ToastReader, ToastTable};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_engine::transactions::Transactions;
use trunkline_format::varlena::ToastPointer;
use trunkline_format::{
    BLOCK_SIZE, BlockNo, HeapPageBuilder, Oid, PageBytes, TupleBuilder, page_checksum,
};
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs};

use crate::heap_polls::{create_log, hold_log, is_unlocked, undecided};

const TABLE: Oid = Oid(9000);
const VALUE: u32 = 7;
const CHUNK: &str = "chunk";

/// A page of an index with these flags and items.
fn index_page(
    block: BlockNo,
    bounds: [u16; 2],
    flags: u16,
    fields: &[(usize, &[u32])],
) -> PageBytes {
    let (mut page, special) = ([0; BLOCK_SIZE], BLOCK_SIZE as u16 - 16);
    let header = [(12, bounds[0]), (14, bounds[1]), (16, special), (18, BLOCK_SIZE as u16 | 4)];
    for (at, value) in header.into_iter().chain([(BLOCK_SIZE - 4, flags)]) {
        page[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    for (at, words) in fields {
        for (at, word) in (*at..).step_by(4).zip(*words) {
            page[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
    let checksum = page_checksum(&page, block);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    page
}

/// Creates the commit log, a TOAST table with one value of one chunk, and its index.
fn create(cluster: &Cluster) -> ToastTable {
    create_log(cluster);
    let (mut builder, mut row) = (HeapPageBuilder::new(0), TupleBuilder::new());
    row.int4(VALUE as i32).int4(0).text(CHUNK);
    builder.push(&row.tuple()).expect("room");
    cluster.write_segment(1, 0, &undecided(builder.finish(false), 0));
    // The metapage has a magic number, a version, and the root and the fast root, each with its
    // level. The root is a leaf (flags 1 and 2) with one entry of 16 bytes, for line pointer 1 of
    // block 0.
    let end = BLOCK_SIZE as u16 - 16;
    let entry = end - 16;
    let pointer = u32::from(entry) | 1 << 15 | 16 << 17;
    let meta = index_page(0, [72, end], 8, &[(24, &[0x0005_3162, 4, 1, 0, 1, 0])]);
    let leaf = index_page(
        1,
        [28, entry],
        3,
        &[(24, &[pointer]), (usize::from(entry), &[0, 1 | 16 << 16, VALUE, 0])],
    );
    cluster.write_segment(2, 0, &[meta, leaf].concat());
    let index = Index::of_toast(cluster.relation(2));
    ToastTable { oid: TABLE, heap: cluster.relation(1), index }
}

/// A row's chunk can't be judged again, so all statuses are loaded first. Meanwhile, the content
/// lock is not held.
#[test]
fn a_fetch_reads_the_commit_log_without_a_lock() {
    check(Needs::default(), |cluster| {
        let table = create(cluster);
        let held = hold_log(cluster);
        let fetches = cluster.spawn("fetches", move |cluster| {
            let mut backend = cluster.backend();
            let transactions = Arc::new(Transactions::all_frozen(&cluster.storage));
            let options = StreamOptions::default();
            let mut reader = ToastReader::new(&backend, table, &transactions, options);
            let (mut batch, size) = (ToastBatch::new(), CHUNK.len() as u32);
            let number = batch.push(ToastPointer {
                raw_size: size,
                stored_size: size,
                method: None,
                value_id: VALUE,
                toast_relation: TABLE,
            });
            reader.fetch(&mut backend, &mut batch).expect("not cancelled");
            batch.value(number).expect("fetched").expect("sound").to_vec()
        });
        held.wait();
        assert!(is_unlocked(cluster), "the commit log is read under a content lock");
        held.release();
        assert_eq!(fetches.join(), CHUNK.as_bytes());
    });
}
