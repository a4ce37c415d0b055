//! Prewarming a cluster of our own that was not shut down: the pool gets the blocks that its relations have at
//! the end of the log, and the kernel's cache those of them that are in files.

use std::fs;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::Unobserved;
use trunkline_engine::prewarm::{
    BufferOptions, Choice, Target, View, into_pool, prefetch, prewarm, select,
};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{PageOrigin, RelationLocator, StorageError};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::{BlockNo, Fork, Oid};

use crate::jobs::{READ, engine, instance, page, pages};
use crate::replayed_cluster::{Crashed, DATABASE, DROP_DATABASE, Open, TRUNCATE, relation, words};
use crate::writable_cluster::new_table;

/// The relations of the cluster.
struct Relations {
    /// Unlogged, with pages in its file, and a visibility map.
    table: RelationLocator,
    /// Unlogged, with pages in its file. Its `_init` fork has one.
    index: RelationLocator,
    /// The log cuts it off after two blocks, which are all that is left of the file's.
    cut: RelationLocator,
    /// The log removes it, and the file is still there.
    removed: RelationLocator,
    /// Three blocks, which are in the log only.
    grown: RelationLocator,
    /// Not changed by the log, except for its first page.
    changed: RelationLocator,
}

impl Relations {
    fn create(open: &mut Open) -> Self {
        let place = (Oid(1663), Oid(1));
        let [table, index, cut, changed] = [(); 4].map(|()| open.fill(place));
        let (removed, grown) = (open.fill((Oid(1663), DATABASE)), new_table(&mut open.session));
        open.session.checkpoint().expect("a checkpoint");
        let [tablespace, database, number] = words(cut);
        open.insert_words(number::STORAGE, TRUNCATE, &[2, tablespace, database, number, 7]);
        open.insert_words(number::DATABASE, DROP_DATABASE, &[DATABASE.0, 1, 1663]);
        for block in 0..3 {
            open.insert_image((grown, Fork::Main, block), &page(block));
        }
        open.delete_first(changed);
        Self { table, index, cut, removed, grown, changed }
    }
}

/// The cluster, and the blocks in the file of its last relation.
fn crashed() -> (Crashed, Relations, BlockNo) {
    let (crashed, relations) = Crashed::new(&["base/5"], Relations::create);
    let path = |locator: RelationLocator| {
        crashed.data.join(format!("base/{}/{}", locator.database, locator.relfilenode))
    };
    let beside = |locator: RelationLocator, fork: &str| {
        path(locator).with_file_name(format!("{}_{fork}", locator.relfilenode))
    };
    fs::write(beside(relations.table, "init"), []).expect("written");
    fs::write(beside(relations.table, "vm"), pages(0..1)).expect("written");
    fs::write(beside(relations.index, "init"), page(0)).expect("written");
    fs::remove_file(path(relations.grown)).expect("removed");
    let blocks = fs::metadata(path(relations.changed)).expect("a file").len() / 8192;
    assert!(blocks > 3 && path(relations.removed).exists(), "{blocks}");
    (crashed, relations, blocks as BlockNo)
}

fn targets(dir: &DataDir, view: View) -> Vec<Target> {
    select(dir, &Choice { view, ..Choice::default() }).expect("selected").targets
}

/// The numbers of the relations, with their forks and the blocks that are selected.
fn blocks(dir: &DataDir, view: View) -> Vec<(u32, Fork, u64)> {
    let targets = targets(dir, view);
    targets.iter().map(|it| (it.locator.relfilenode, it.fork, it.blocks())).collect()
}

#[test]
fn only_what_relations_have_at_the_end_of_the_log_is_loaded() {
    let (crashed, relations, length) = crashed();
    let dir = crashed.open();
    let Relations { table, index, cut, removed, grown, changed } = relations;
    let length = u64::from(length);
    let row = |locator: RelationLocator, blocks| (locator.relfilenode, Fork::Main, blocks);
    let init = |locator: RelationLocator, blocks| (locator.relfilenode, Fork::Init, blocks);
    let mut expected = vec![
        row(table, 0),
        init(table, 0),
        row(index, 1),
        init(index, 1),
        row(cut, 2),
        row(changed, length),
    ];
    assert_eq!(blocks(&dir, View::InFiles), expected);
    expected.push(row(grown, 3));
    assert_eq!(blocks(&dir, View::EndOfLog), expected);
    let on_disk = blocks(&dir, View::OnDisk);
    for row in [table, index, cut, removed].map(|locator| row(locator, length)) {
        assert!(on_disk.contains(&row), "{row:?} {on_disk:?}");
    }
    for method in [MethodKind::Sync, MethodKind::Worker] {
        let aio = instance(method);
        let engine = engine(&aio, 64, false);
        let cluster = engine.cluster_of(dir.clone());
        let chosen = targets(&dir, View::EndOfLog);
        let options = BufferOptions::of(&Settings::default());
        let (pool, storage) = (engine.pool(), cluster.storage());
        let report = into_pool(pool, storage, Some(&dir), chosen, options, Arc::new(Unobserved));
        let report = report.expect("prewarmed");
        assert_eq!(report.failures.total, 0, "{:?}", report.failures.listed);
        let after = report.after.expect("looked at");
        let all = length + 7;
        assert_eq!((report.blocks, after.blocks, after.pool), (all, all, all), "{method}");
        let chosen = targets(&dir, View::InFiles);
        let report = prewarm(&aio, &dir, &chosen, READ, Arc::new(Unobserved)).expect("read");
        assert_eq!((report.blocks, report.failures.total), (length + 4, 0), "{method}");
        let report = prefetch(&aio, &dir, chosen, Arc::new(Unobserved)).expect("advised");
        assert_eq!((report.blocks, report.failures.total), (length + 4, 0), "{method}");
    }
}

#[test]
fn a_block_behind_an_unlogged_relation_names_its_main_fork() {
    let (crashed, relations, _) = crashed();
    let dir = crashed.open();
    for (locator, length) in [(relations.table, 0), (relations.index, 1)] {
        let main = relation(&dir, locator, Fork::Main);
        for block in 0..length {
            let origin = main.page_origin(block).expect("there");
            let PageOrigin::File { path } = origin else { panic!("{origin:?}") };
            assert_eq!(path, relation(&dir, locator, Fork::Init).path(0));
        }
        let error = main.page_origin(length).expect_err("behind the end");
        assert_eq!(error.path(), main.path(0), "{error}");
        assert!(
            matches!(error, StorageError::BeyondEnd { blocks, .. } if blocks == length),
            "{error}"
        );
    }
}
