//! Crashed directories whose log has records that we can't apply: those of index methods for which we have no
//! rules, and those that can't be true. Other pages are read, checked and loaded.

use std::fs;
use std::path::{Path, PathBuf};

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::heap_writer::HeapWriter;
use trunkline_engine::job::Unobserved;
use trunkline_engine::log_writer::Inserter;
use trunkline_engine::prewarm::{BufferOptions, Choice, into_pool, select};
use trunkline_engine::replay::ReplayOptions;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{Durability, WritableCluster, WriteSession};
use trunkline_format::wal::resource_manager::{heap_operation, number, xlog_operation};
use trunkline_format::wal::{ImageMode, NewBlock, NewRecord, RelFileLocator};
use trunkline_format::{BlockNo, Fork, PageBytes, TupleBuilder};

use crate::jobs::{OPTIONS, engine, instance, lines, page, pages, verified};
use crate::writable_cluster::{create, new_table, open};

/// Operations of Gin.
const UPDATE_META_PAGE: u8 = 0x60;
const INSERT: u8 = 0x20;

/// No operation of Gin.
const UNKNOWN: u8 = 0xF0;

/// A cluster that crashes.
struct Crashing {
    folder: tempfile::TempDir,
    cluster: WritableCluster,
    session: WriteSession,
    inserter: Inserter,
}

impl Crashing {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        create(&data);
        let cluster = open(&data);
        let session = cluster.session().expect("a session");
        let inserter = Inserter::new(cluster.log()).expect("a slot");
        Self { folder, cluster, session, inserter }
    }

    /// Inserts a record about a block.
    fn insert(
        &mut self,
        (manager, info): (u8, u8),
        (relation, block): (RelationLocator, BlockNo),
        (page, image): (&PageBytes, ImageMode),
    ) {
        let RelationLocator { tablespace, database, relfilenode } = relation;
        let relation = RelFileLocator { tablespace, database, number: relfilenode };
        let (fork, is_standard, keeps_data) = (Fork::Main, true, false);
        let named = NewBlock {
            id: 0,
            relation,
            fork,
            block,
            page,
            image,
            is_standard,
            keeps_data,
            data: &[],
        };
        let main_data: &[&[u8]] = &[&[0; 8]];
        let blocks = &[named];
        let record = NewRecord { blocks, ..NewRecord::plain(manager, info, 0, main_data) };
        let session = self.session.backend().session();
        let mut room = self.cluster.log().room(session, 1, 9000).expect("room");
        self.inserter.insert(&mut room, &record).expect("inserted");
    }

    /// A relation of six pages, of which the log has images. Four of them are in the file too.
    fn imaged(&mut self) -> RelationLocator {
        let relation = new_table(&mut self.session);
        for block in 0..6 {
            let image = (&page(block), ImageMode::Always);
            self.insert((number::XLOG, xlog_operation::FPI), (relation, block), image);
        }
        fs::write(self.path(relation), pages(0..4)).expect("written");
        relation
    }

    /// A change of a page by a record without an image.
    fn change(&mut self, operation: (u8, u8), relation: RelationLocator, block: BlockNo) {
        self.insert(operation, (relation, block), (&[0; 8192], ImageMode::Never));
    }

    fn path(&self, relation: RelationLocator) -> PathBuf {
        self.folder.path().join(format!("data/base/1/{}", relation.relfilenode))
    }

    /// Makes the log durable and crashes.
    fn crash(mut self) -> (tempfile::TempDir, DataDir) {
        let last = self.session.begin().expect("begun");
        self.session.commit(last, Durability::Now).expect("committed");
        let Self { folder, cluster, session, inserter } = self;
        drop((inserter, session, cluster));
        let dir = replayed(folder.path());
        (folder, dir)
    }
}

fn replayed(folder: &Path) -> DataDir {
    let options = ReplayOptions::new(folder.to_owned());
    DataDir::open_replayed(&folder.join("data"), OpenOptions::default(), &options).expect("opened")
}

#[test]
fn pages_without_a_redo_rule_are_not_findings() {
    let mut crashing = Crashing::new();
    let [index, wrong, other] = [(); 3].map(|()| crashing.imaged());
    crashing.change((number::GIN, UPDATE_META_PAGE), index, 5);
    crashing.change((number::GIN, INSERT), index, 3);
    crashing.change((number::GIN, UPDATE_META_PAGE), index, 1);
    crashing.change((number::GIN, INSERT), other, 2);
    // The method, or we, would have a rule if these were right.
    crashing.change((number::GIN, UNKNOWN), wrong, 2);
    crashing.change((number::BTREE, UNKNOWN), wrong, 4);
    let (_folder, dir) = crashing.crash();
    let report = verified(&instance(MethodKind::Worker), &dir, OPTIONS);
    let found = lines(&dir, &report);
    assert_eq!(found.len(), 2, "{found:?}");
    for (line, (block, name)) in found.iter().zip([(2, "Gin/unknown"), (4, "Btree/unknown")]) {
        assert!(
            line.starts_with(&format!("base/1/{}: block {block}: ", wrong.relfilenode)),
            "{line}"
        );
        assert!(line.contains(name), "{line}");
    }
    assert_eq!((report.findings_total(), report.pages_unchecked()), (2, 4));
    let unchecked: Vec<String> = report.unchecked.iter().map(ToString::to_string).collect();
    let expected = [
        ("3 pages are not checked, the first is block 1: not replayed: ", "Gin/UPDATE_META_PAGE, "),
        ("block 2 is not checked: not replayed: ", "Gin/INSERT, for which we have no rule"),
    ];
    assert_eq!(unchecked.len(), 2, "{unchecked:?}");
    for (text, (start, end)) in unchecked.iter().zip(expected) {
        assert!(text.starts_with(start) && text.contains(end), "{text}");
    }
}

#[test]
fn only_the_pages_that_cannot_be_built_are_not_loaded() {
    let mut crashing = Crashing::new();
    let [index, wrong] = [(); 2].map(|()| crashing.imaged());
    crashing.change((number::GIN, UPDATE_META_PAGE), index, 0);
    crashing.change((number::GIN, INSERT), index, 2);
    crashing.change((number::BTREE, UNKNOWN), wrong, 1);
    crashing.change((number::BTREE, UNKNOWN), wrong, 2);
    let (_folder, dir) = crashing.crash();
    let aio = instance(MethodKind::Worker);
    let engine = engine(&aio, 64, false);
    let cluster = engine.cluster_of(dir.clone());
    for (relation, failures, unchecked) in [(index, 0, 2), (wrong, 2, 0)] {
        let names = vec![PathBuf::from(format!("1/{}", relation.relfilenode))];
        let targets = select(&dir, &Choice { names, ..Choice::default() }).expect("there").targets;
        let options = BufferOptions::of(&Settings::default());
        let (pool, storage) = (engine.pool(), cluster.storage());
        let report = into_pool(pool, storage, Some(&dir), targets, options, Arc::new(Unobserved));
        let report = report.expect("prewarmed");
        // The file has four of the six blocks.
        assert_eq!((report.blocks, report.streams.pages), (4, 4));
        assert_eq!((report.failures.total, report.unchecked.pages), (failures, unchecked));
        let listed: Vec<_> =
            report.failures.listed.iter().chain(&report.unchecked.listed).collect();
        let [(path, text)] = listed[..] else { panic!("{listed:?}") };
        assert!(path.ends_with(relation.relfilenode.to_string()), "{path:?}");
        assert!(text.ends_with("for which we have no rule; and 1 more block like this"), "{text}");
    }
}

#[test]
fn an_impossible_block_is_an_error_behind_all_others() {
    let mut crashing = Crashing::new();
    let table = new_table(&mut crashing.session);
    let mut writer = HeapWriter::new(crashing.session.relation(table));
    let transaction = crashing.session.begin().expect("begun");
    for number in 0..500 {
        let mut row = TupleBuilder::new();
        row.int4(number).text("x".repeat(100));
        let heap = &mut crashing.session.heap(&transaction);
        writer.insert(heap, &row.tuple()).expect("inserted");
    }
    crashing.session.commit(transaction, Durability::Now).expect("committed");
    let length = crashing.session.relation(table).blocks().expect("known");
    assert!(length > 5, "{length}");
    let block = 4_000_000_000;
    crashing.change((number::HEAP, heap_operation::INSERT), table, block);
    drop(writer);
    let (_folder, dir) = crashing.crash();
    let aio = instance(MethodKind::Worker);
    let engine = engine(&aio, 64, false);
    let cluster = engine.cluster_of(dir.clone());
    let relation = cluster.storage().relation(table, Fork::Main);
    let mut session = engine.session().expect("a session");
    let expected =
        format!("names block {block} of a relation of {length} blocks, which is impossible");
    let blocks = 0..relation.blocks().expect("known");
    let read = blocks.map(|block| session.read(&relation, block).map(|_| block));
    let mut read: Vec<_> = read.collect();
    let last = read.pop().expect("a block").expect_err("impossible").to_string();
    assert!(last.contains(&expected), "{last}");
    let good: Vec<BlockNo> = read.into_iter().map(|block| block.expect("good")).collect();
    assert_eq!(good, (0..length).collect::<Vec<_>>());
    let report = verified(&aio, &dir, OPTIONS);
    let found = lines(&dir, &report);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(&expected), "{found:?}");
}
