//! Tests of the engine's main API: opening clusters and relations by name, and creating tables.

use std::fs;

use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{DEFAULT_TABLESPACE, Layout, RelationLocator};
use trunkline_engine::{Engine, EngineError};
use trunkline_format::{Fork, Oid};

use crate::fixtures::fixtures;
use crate::jobs::page;

#[test]
fn a_relation_is_read_by_name() {
    for (major, data) in fixtures() {
        let engine = Engine::open(&Settings::default()).expect("an engine");
        let cluster = engine.cluster(&data).expect("a cluster");
        let database = cluster.database("bench").expect("a database");
        let table = database.relation("public.pgbench_branches").expect("a relation");
        assert_eq!(table.info().name[..], *b"pgbench_branches");
        let mut session = engine.session().expect("a session");
        let pin = table.read(&mut session, 0).expect("a page");
        assert_eq!(pin.page().block(), 0);
        drop(pin);
        let mut stream = table.stream(&session).expect("a stream");
        let mut pages = 0;
        while stream.next(&mut session).expect("a page").is_some() {
            pages += 1;
        }
        assert_eq!(Ok(pages), table.blocks().map_err(|error| error.to_string()));
        let mut scan = table.scan(&session).expect("a scan");
        let mut rows = 0;
        while let Some(page) = scan.next_page(&mut session).expect("a page") {
            rows += page.rows().filter(Result::is_ok).count();
        }
        assert!(rows > 0, "pg{major}");
        let index = database.relation("pgbench_branches_pkey").expect("an index");
        assert!(matches!(index.scan(&session), Err(EngineError::Catalog(_))));
        assert!(matches!(cluster.database("none"), Err(EngineError::Catalog(_))));
    }
}

#[test]
fn only_a_table_of_our_own_can_be_written() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    fs::create_dir_all(home.path().join("base/5")).expect("a directory");
    let engine = Engine::builder(&Settings::default()).buffers(16).open().expect("an engine");
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let locator =
        RelationLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), relfilenode: 1 };
    let own = engine.writable_storage(home.path(), layout.clone());
    let table = own.relation(locator, Fork::Main);
    table.create().expect("created");
    let mut session = engine.session().expect("a session");
    let method = engine.settings().file_extend_method();
    for pin in session.extend(&table, 2, method).expect("extended") {
        let mut bytes = session.write_lock(pin.page()).expect("locked");
        bytes.mark_dirty();
        *bytes = page(pin.page().block());
    }
    let report = engine.checkpoint(&mut session).expect("a checkpoint");
    assert_eq!((report.buffers, report.files), (2, 1));
    assert_eq!(fs::read(table.path(0)).expect("read"), [page(0), page(1)].concat());

    let read_only = engine.storage(home.path(), layout).relation(locator, Fork::Main);
    assert_eq!(read_only.blocks().expect("two"), 2);
    let error = session.extend(&read_only, 1, method).expect_err("refused");
    assert!(error.to_string().ends_with("nothing in it is changed"), "{error}");
}
