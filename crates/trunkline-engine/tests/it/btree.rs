//! Tests of B-tree indexes that were built by real servers. We walk every level of every index and
//! search a primary key, with small and large pools.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::task::{Poll, ready};

use trunkline_aio::{Aio, MethodKind};
use trunkline_engine::btree::{BtreeError, Index, LevelWalk};
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::pool::{Backend, BackendType, Pool, ReadError};
use trunkline_engine::read_stream::{
    BlockList, BlockSource, ReadStream, SourceWait, StreamOptions,
};
use trunkline_engine::storage::{OpenFiles, Relation, RelationLocator, Storage};
use trunkline_format::btree::{BtreePage, Key, KeyColumn, KeyLayout, Meta, Order};
use trunkline_format::deform::Attribute;
use trunkline_format::{Align, BLOCK_SIZE, Fork, Oid, PageBytes, Tid};

use crate::fixtures::fixtures;
use crate::jobs::{METHODS, instance};

fn storage(aio: &Aio, data: &Path, direct: bool) -> Storage {
    let dir = DataDir::open(data, OpenOptions::default()).expect("opened");
    let files = OpenFiles::kernel(aio, 64);
    Storage::of_datadir(&dir, &files, direct)
}

/// Returns all main forks of a database that start with a B-tree metapage, with their lengths in
/// blocks.
fn indexes(data: &Path, database: u32) -> Vec<(RelationLocator, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(data.join(format!("base/{database}"))).expect("read") {
        let entry = entry.expect("entry");
        let Ok(relfilenode) = entry.file_name().to_string_lossy().parse() else { continue };
        let bytes = fs::read(entry.path()).expect("read");
        let Some(page) = bytes.first_chunk::<BLOCK_SIZE>() else { continue };
        if Meta::parse(page).is_ok() {
            let locator =
                RelationLocator { tablespace: Oid(1663), database: Oid(database), relfilenode };
            found.push((locator, bytes.len() as u64));
        }
    }
    found.sort_by_key(|(locator, _)| locator.relfilenode);
    found
}

fn databases(data: &Path) -> Vec<u32> {
    let entries = fs::read_dir(data.join("base")).expect("read");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn one_int4() -> KeyLayout {
    let attribute = Attribute { len: 4, align: Align::Int };
    let column = KeyColumn { attribute, order: Order::Int4, descending: false, nulls_first: false };
    KeyLayout::new(vec![column], 1)
}

/// Walks one level. Returns its blocks and the number of TIDs on it.
fn walk(index: &Index, backend: &mut Backend, level: u32) -> (Vec<u32>, usize) {
    let options = StreamOptions::default();
    let mut walk = LevelWalk::of_level(index, backend, level, options).expect("begins");
    let (mut blocks, mut rows) = (Vec::new(), 0);
    let root = index.meta(backend).expect("sound").root;
    while let Some(found) = walk.next(backend).expect("sound") {
        let page = BtreePage::parse(found.page).expect("sound");
        page.check(true).expect("sound");
        let led = found.downlink.is_some_and(|downlink| downlink.child == found.block);
        assert_eq!(led, !page.is_ignored() && found.block != root, "block {}", found.block);
        assert_eq!(page.left(), blocks.last().copied());
        blocks.push(found.block);
        if !page.is_ignored() {
            rows += page.entries().map(|entry| entry.expect("sound").rows().count()).sum::<usize>();
        }
    }
    assert_eq!(walk.unmatched_downlink(), None);
    drop(walk);
    assert_eq!(backend.pins(), 0);
    (blocks, rows)
}

#[test]
fn every_level_of_every_index_matches_its_parents() {
    for (major, data) in fixtures() {
        let aio = instance(MethodKind::Worker);
        let storage = storage(&aio, &data, false);
        let pool = Pool::new(&aio, 64).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        let (mut count, mut pages, mut rows) = (0, 0, 0);
        for database in databases(&data) {
            for (locator, bytes) in indexes(&data, database) {
                let relation = storage.relation(locator, Fork::Main);
                let index = Index::new(relation, one_int4());
                let meta = index.meta(&mut backend).expect("sound");
                let mut seen = BTreeSet::new();
                for level in 0..=meta.level {
                    let (blocks, found) = walk(&index, &mut backend, level);
                    assert!(blocks.iter().all(|block| seen.insert(*block)), "twice");
                    rows += found;
                }
                assert!((seen.len() as u64) < bytes / BLOCK_SIZE as u64);
                assert!(meta.root == 0 || seen.contains(&meta.root));
                pages += seen.len();
                count += 1;
            }
        }
        println!("pg{major}: {count} indexes, {pages} pages, {rows} entries");
        assert!(count > 400, "{count}");
    }
}

/// The primary key of pgbench_accounts, by far the largest index. Its keys are the integers from 1
/// to 200,000.
fn accounts_key(data: &Path) -> RelationLocator {
    let all = databases(data).into_iter().flat_map(|database| indexes(data, database));
    all.max_by_key(|(_, bytes)| *bytes).expect("an index").0
}

fn rows_between(index: &Index, backend: &mut Backend, from: i32, to: i32) -> Vec<Tid> {
    let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
    let (from, to): ([Key<'_>; 1], [Key<'_>; 1]) = ([Some(&from)], [Some(&to)]);
    let mut scan = index.scan(backend, &from, &to).expect("sound");
    let mut rows = Vec::new();
    while scan.next_page(backend, &mut rows).expect("sound") {}
    assert_eq!(backend.pins(), 0);
    rows
}

#[test]
fn searches_in_a_primary_key_find_its_rows() {
    for (major, data) in fixtures() {
        let locator = accounts_key(&data);
        for method in METHODS {
            for (direct, buffers) in [(false, 16), (true, 1024)] {
                let aio = instance(method);
                let storage = storage(&aio, &data, direct);
                let index = Index::new(storage.relation(locator, Fork::Main), one_int4());
                let pool = Pool::new(&aio, buffers).expect("a pool");
                let mut backend = pool.backend(BackendType::Client).expect("a session");
                let all = rows_between(&index, &mut backend, i32::MIN, i32::MAX);
                assert_eq!(all.len(), 200_000, "pg{major}");
                let sorted = all.windows(2).all(|pair| pair[0] < pair[1]);
                assert!(sorted, "pgbench fills the table in order of its key");
                for key in [1, 2, 366, 367, 368, 99_999, 100_000, 199_999, 200_000] {
                    let rows = rows_between(&index, &mut backend, key, key);
                    assert_eq!(rows, [all[key as usize - 1]], "{key}");
                }
                for key in [i32::MIN, -1, 0, 200_001, i32::MAX] {
                    assert_eq!(rows_between(&index, &mut backend, key, key), []);
                }
                let some = rows_between(&index, &mut backend, 300, 70_000);
                assert_eq!(some, all[299..70_000]);
                assert_eq!(rows_between(&index, &mut backend, 5, 4), []);
                let (leaves, rows) = walk(&index, &mut backend, 0);
                assert_eq!((leaves.len(), rows), (547, 200_000), "pg{major} {method}");
            }
        }
    }
}

/// Finds the heap blocks of an index's entries on its leaves, which it reads ahead.
struct LeafSource {
    leaves: ReadStream<BlockList>,
    /// Blocks with one of the line pointers that the leaf refers to. If several entries in a row are
    /// on the same block, we read it once.
    found: VecDeque<(u32, u16)>,
    last: Option<u32>,
    ended: bool,
}

impl BlockSource for LeafSource {
    type Data = u16;

    fn next_block(&mut self) -> Poll<Option<(u32, u16)>> {
        match self.found.pop_front() {
            None if !self.ended => Poll::Pending,
            found => Poll::Ready(found),
        }
    }

    fn fetch(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
    ) -> Poll<Result<(), ReadError>> {
        let Some(leaf) = ready!(self.leaves.next_from_source(backend, wait))? else {
            self.ended = true;
            return Poll::Ready(Ok(()));
        };
        let bytes = leaf.pin.try_read().expect("not locked").to_vec();
        let page = BtreePage::parse(bytes.first_chunk().expect("a page")).expect("sound");
        for tid in page.entries().flat_map(|entry| entry.expect("sound").rows()) {
            if self.last.replace(tid.block) != Some(tid.block) {
                self.found.push_back((tid.block, tid.item));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn release_ahead(&mut self) {
        self.leaves.release_ahead();
    }
}

/// A stream over the table gets its blocks from a stream over the leaves of the primary key. The
/// pool is small, so both streams often have to release what they have read ahead.
#[test]
fn heap_blocks_are_read_through_the_leaves_of_a_primary_key() {
    for (major, data) in fixtures() {
        let key = accounts_key(&data);
        for method in METHODS {
            for (direct, buffers) in [(true, 16), (false, 256)] {
                let aio = instance(method);
                let storage = storage(&aio, &data, direct);
                let index = Index::new(storage.relation(key, Fork::Main), one_int4());
                let pool = Pool::new(&aio, buffers).expect("a pool");
                let mut backend = pool.backend(BackendType::Client).expect("a session");
                let mut wanted: Vec<u32> = rows_between(&index, &mut backend, i32::MIN, i32::MAX)
                    .iter()
                    .map(|tid| tid.block)
                    .collect();
                wanted.dedup();
                let (leaves, _) = walk(&index, &mut backend, 0);
                let options = StreamOptions::default();
                let leaves =
                    ReadStream::new(&backend, index.relation(), BlockList::new(leaves), options);
                let (found, last, ended) = (VecDeque::new(), None, false);
                let source = LeafSource { leaves, found, last, ended };
                let table = storage.relation(accounts(&data, key), Fork::Main);
                let mut stream = ReadStream::new(&backend, &table, source, options);
                let mut seen = Vec::new();
                while let Some(found) = stream.next(&mut backend).expect("reads") {
                    let page = found.pin.try_read().expect("not locked");
                    let items = (u16::from_le_bytes([page[12], page[13]]) - 24) / 4;
                    assert!((1..=items).contains(found.data), "pg{major}, block {}", found.block);
                    seen.push(found.block);
                }
                assert!(seen == wanted, "pg{major} {method}: {} blocks", seen.len());
                drop(stream);
                assert_eq!((backend.pins(), pool.permits()), (0, 0));
            }
        }
    }
}

/// The table pgbench_accounts: the largest file of its database.
fn accounts(data: &Path, key: RelationLocator) -> RelationLocator {
    let entries = fs::read_dir(data.join(format!("base/{}", key.database))).expect("read");
    let files = entries.map(|entry| entry.expect("entry"));
    let numbered = files.filter_map(|file| {
        let relfilenode = file.file_name().to_str()?.parse().ok()?;
        Some((file.metadata().ok()?.len(), relfilenode))
    });
    let (_, relfilenode) = numbered.max().expect("a table");
    RelationLocator { relfilenode, ..key }
}

/// Copies an index file into a new data directory, after applying `change` to its pages.
fn damaged(data: &Path, change: impl FnOnce(&mut [PageBytes])) -> tempfile::TempDir {
    let locator = accounts_key(data);
    let name = format!("base/{}/{}", locator.database, locator.relfilenode);
    let mut bytes = fs::read(data.join(&name)).expect("read");
    change(bytes.as_chunks_mut().0);
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    fs::create_dir_all(root.path().join("base/5")).expect("a directory");
    fs::write(root.path().join("base/5/16384"), bytes).expect("writes");
    root
}

#[test]
fn loops_and_wrong_links_are_errors() {
    let Some((_, data)) = fixtures().pop() else { return };
    let put = |page: &mut PageBytes, at: usize, word: u32| {
        page[at..at + 4].copy_from_slice(&word.to_le_bytes());
    };
    let leaf_before = |pages: &[PageBytes], block: u32| {
        let left = BtreePage::parse(&pages[block as usize]).expect("sound").left();
        left.expect("a neighbour")
    };
    type Change<'a> = Box<dyn Fn(&mut [PageBytes]) + 'a>;
    let cases: [(&str, Change<'_>); 5] = [
        (
            "links to the right do not end within 551 blocks",
            Box::new(|pages| {
                let far = leaf_before(pages, 500);
                put(&mut pages[500], 8180, far);
            }),
        ),
        (
            "level 2 found, 0 expected",
            Box::new(|pages| {
                let meta = Meta::parse(&pages[0]).expect("sound");
                put(&mut pages[1], 8180, meta.root);
            }),
        ),
        ("metapage magic 0x00000000 found", Box::new(|pages| put(&mut pages[0], 24, 0))),
        ("read only 0 of 8192 bytes", Box::new(|pages| put(&mut pages[200], 8180, 7000))),
        ("special space at 8184 found", Box::new(|pages| pages[300][16] = 0xF8)),
    ];
    for (text, change) in cases {
        let root = damaged(&data, |pages| change(pages));
        let aio = instance(MethodKind::Worker);
        let layout = trunkline_engine::storage::Layout {
            checksums: false,
            tablespace_directory: "PG_18_202506291".into(),
        };
        let files = OpenFiles::kernel(&aio, 64);
        let files = Storage::new(root.path(), layout, &files, false);
        let locator =
            RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 16_384 };
        let relation: Relation = files.relation(locator, Fork::Main);
        let index = Index::new(relation, one_int4());
        let pool = Pool::new(&aio, 64).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        let (from, to) = (i32::MIN.to_le_bytes(), i32::MAX.to_le_bytes());
        let scanned =
            index.scan(&mut backend, &[Some(&from)], &[Some(&to)]).and_then(|mut scan| {
                let mut rows = Vec::new();
                while scan.next_page(&mut backend, &mut rows)? {}
                Ok(())
            });
        let walked = LevelWalk::of_leaves(&index, &mut backend, StreamOptions::default());
        let walked = walked.and_then(|mut walk| {
            while walk.next(&mut backend)?.is_some() {}
            Ok::<_, BtreeError>(())
        });
        for found in [scanned, walked] {
            let found = found.expect_err(text).to_string();
            assert!(found.contains(text), "{found}, expected {text}");
        }
        assert_eq!(backend.pins(), 0);
    }
}
