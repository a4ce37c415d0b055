//! Reads the catalogs of clusters created by PostgreSQL, and compares them with the server's
//! output. Also checks that damaged catalogs never cause a panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::{Aio, Builder, MethodKind};
use trunkline_engine::catalog::{Catalog, CatalogError, Database, OnDamage, RelationInfo};
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::pool::{Backend, Policy, Pool};
use trunkline_format::catalog::{CATALOGS, Generated, Persistence, RelationKind};
use trunkline_format::text_output::{ObjectClass, TypeCatalog};
use trunkline_format::{Fork, Oid};

use crate::fixtures::fixtures;
use crate::jobs::{METHODS, engine};

/// Everything needed to read a cluster's catalog.
struct Opened {
    catalog: Catalog,
    backend: Backend,
    pool: Pool,
    _aio: Aio,
}

impl Opened {
    fn new(data: &Path, method: MethodKind, buffers: u32, direct: bool) -> Opened {
        // Leave room for a few commit log pages.
        let region = (buffers as usize + 64) * 8192;
        let aio = Builder::new().method(method).region_bytes(region).start().expect("started");
        Self::with(aio, data, buffers, direct, Policy::default()).expect("opened")
    }

    fn with(
        aio: Aio,
        data: &Path,
        buffers: u32,
        direct: bool,
        policy: Policy,
    ) -> Result<Opened, CatalogError> {
        let engine = engine(&aio, buffers, direct);
        let cluster = engine.cluster(data).expect("a data directory");
        let mut backend = engine.session().expect("a backend");
        backend.set_policy(policy);
        let catalog = cluster.read_catalog(&mut backend, OnDamage::Fail)?;
        Ok(Opened { catalog, backend, pool: engine.pool().clone(), _aio: aio })
    }

    fn database(&mut self, name: &str) -> Result<Arc<Database>, CatalogError> {
        self.catalog.database(&mut self.backend, name.as_bytes())
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).expect("UTF-8")
}

/// Every column, in the format of the server's list: schema, relation, kind and column name.
fn listed(database: &Database) -> Vec<[String; 4]> {
    let mut found = Vec::new();
    for relation in database.relations() {
        let schema = text(&database.schema_name(relation));
        let listed = matches!(
            relation.kind,
            RelationKind::Table
                | RelationKind::PartitionedTable
                | RelationKind::MaterializedView
                | RelationKind::View
                | RelationKind::Sequence
        );
        if !listed || ["pg_catalog", "information_schema", "pg_toast"].contains(&&*schema) {
            continue;
        }
        for column in database.columns(relation).expect("columns") {
            if !column.dropped {
                let kind = char::from(relation.kind.code()).to_string();
                found.push([schema.clone(), text(&relation.name), kind, text(&column.name)]);
            }
        }
    }
    found.sort();
    found
}

/// The index of each catalog must be the one that we describe, and have an entry for every row.
#[test]
fn catalogs_have_the_indexes_that_prove_their_length() {
    for (major, data) in fixtures() {
        let mut opened = Opened::new(&data, MethodKind::Sync, 512, false);
        let database = opened.database("bench").expect("opened");
        for catalog in CATALOGS {
            let row = database.index(catalog.index.oid).expect("an index");
            let is_whole = row.valid && row.ready && row.live && !row.partial;
            assert!(row.table == catalog.oid && is_whole, "{major}: {row:?}");
            let relation = database.relation(row.index).expect("a relation");
            assert_eq!(text(&relation.name), catalog.index.name, "{major}");
            assert_eq!(
                text(database.access_method(relation.access_method).expect("named")),
                "btree"
            );
        }
    }
}

/// Names, kinds and columns must match the server's, with every I/O method, both in a small and in
/// a large pool.
#[test]
fn columns_equal_those_of_the_server() {
    for (major, data) in fixtures() {
        let expected_dir = data.with_file_name("expected");
        let opens = METHODS.iter().flat_map(|&method| {
            [(16, false), (2048, false), (2048, true)]
                .map(|(buffers, direct)| (method, buffers, direct))
        });
        for (method, buffers, direct) in opens {
            let mut opened = Opened::new(&data, method, buffers, direct);
            for name in ["fixture", "bench"] {
                let file = expected_dir.join(name).join("columns.tsv");
                let expected = fs::read_to_string(file).expect("read");
                let mut expected: Vec<[String; 4]> = expected
                    .lines()
                    .map(|line| {
                        let mut fields = line.split('\t').map(str::to_owned);
                        std::array::from_fn(|_| fields.next().expect("a field"))
                    })
                    .collect();
                expected.sort();
                let database = opened.database(name).expect("opened");
                assert_eq!(listed(&database), expected, "{major} {name} {method} {buffers}");
            }
            assert_eq!(opened.backend.pins(), 0);
        }
    }
}

/// Our built-in column layouts for the catalogs must have the same columns and types as the
/// server's catalogs.
#[test]
fn described_catalogs_are_the_servers() {
    for (major, data) in fixtures() {
        let version =
            DataDir::open(&data, OpenOptions::default()).expect("opened").control().version;
        let mut opened = Opened::new(&data, MethodKind::Sync, 64, false);
        let database = opened.database("fixture").expect("loaded");
        for table in CATALOGS {
            let relation = database.relation(table.oid).expect(table.name);
            assert_eq!((&*relation.name, relation.shared), (table.name.as_bytes(), table.shared));
            assert_eq!(relation.relfilenode == 0, table.mapped, "{}", table.name);
            let columns = database.columns(relation).expect("columns");
            for (column, found) in table.layout(version).columns().iter().zip(columns) {
                let described = (column.name.as_bytes(), column.column_type.oid());
                let context = (major, table.name, column.name);
                assert_eq!(described, (&*found.name, found.type_oid), "{context:?}");
            }
        }
    }
}

#[test]
fn databases_and_tablespaces() {
    for (major, data) in fixtures() {
        let opened = Opened::new(&data, MethodKind::Sync, 64, false);
        let names: Vec<String> =
            opened.catalog.databases().iter().map(|info| text(&info.name)).collect();
        assert_eq!(names, ["bench", "fixture", "postgres", "template0", "template1"], "{major}");
        for info in opened.catalog.databases() {
            assert_eq!((info.encoding, info.tablespace), (6, Oid(1663)), "{major}");
            assert!(info.sorts_by_bytes() && !info.is_invalid(), "{major}");
            assert_eq!(info.allows_connections, *info.name != *b"template0", "{major}");
            assert_eq!(info.is_template, info.name.starts_with(b"template"), "{major}");
        }
        let spaces: Vec<String> =
            opened.catalog.tablespaces().iter().map(|info| text(&info.name)).collect();
        assert_eq!(spaces, ["pg_default", "pg_global", "in_place"], "{major}");
    }
}

/// A database holds a reference to its cluster, and the catalog holds references to its databases.
/// If these references formed a cycle, we would leak the pool's memory.
#[test]
fn a_dropped_catalog_is_freed() {
    if let Some((_, data)) = fixtures().first() {
        let mut opened = Opened::new(data, MethodKind::Sync, 64, false);
        let database = opened.database("fixture").expect("opened");
        let transactions = Arc::downgrade(opened.catalog.transactions());
        drop(opened);
        assert!(Arc::ptr_eq(database.transactions(), &transactions.upgrade().expect("in use")));
        drop(database);
        assert!(transactions.upgrade().is_none(), "the cluster is still referenced");
    }
}

/// Every relation's files must be where the catalog says they are, and every file must belong to
/// some relation.
#[test]
fn every_relation_has_its_files() {
    for (major, data) in fixtures() {
        let mut opened = Opened::new(&data, MethodKind::Sync, 256, false);
        let dir = DataDir::open(&data, OpenOptions::default()).expect("opened");
        let mut files: BTreeMap<(Oid, Oid, u32), bool> = BTreeMap::new();
        for file in dir.relation_files().files {
            files.insert((file.tablespace, file.database, file.relfilenode), false);
        }
        let names: Vec<Box<[u8]>> =
            opened.catalog.databases().iter().map(|info| info.name.clone()).collect();
        for name in names {
            let database = opened.database(&text(&name)).expect("opened");
            for relation in database.relations() {
                let name = database.qualified_name(relation);
                assert_eq!(
                    relation.locator.is_some(),
                    relation.kind.has_storage(),
                    "{major} {name} {:?}",
                    relation.kind
                );
                let Some(locator) = relation.locator else { continue };
                assert_eq!(database.relation_at(locator), Some(relation));
                let key = (locator.tablespace, locator.database, locator.relfilenode);
                *files.get_mut(&key).expect(&name) = true;
                assert!(database.files(relation).expect("files").blocks().is_ok());
            }
        }
        let orphans: Vec<_> = files.iter().filter(|(_, is_known)| !**is_known).collect();
        assert!(orphans.is_empty(), "{major}: {orphans:?}");
    }
}

fn names(database: &Database, relations: &[&RelationInfo]) -> Vec<String> {
    relations.iter().map(|relation| database.qualified_name(relation)).collect()
}

#[test]
fn partitions_toast_and_indexes() {
    for (_, data) in fixtures() {
        let mut opened = Opened::new(&data, MethodKind::Sync, 256, false);
        let database = opened.database("fixture").expect("opened");
        let resolve = |name: &str| database.resolve(name.as_bytes()).expect("there");
        let leaves = database.leaves(resolve("s1.part"));
        let mut found = names(&database, &leaves);
        found.sort();
        assert_eq!(found, ["s1.part_2023", "s1.part_2024_a", "s1.part_2024_def", "s1.part_att"]);
        // A parent that is not partitioned has rows of its own.
        assert_eq!(names(&database, &database.leaves(resolve("s1.inh_p"))), ["s1.inh_p"]);
        assert_eq!(names(&database, &database.leaves(resolve("s1.ty"))), ["s1.ty"]);

        let files = database.table_files(resolve("s1.toast")).expect("files");
        let toast = files.toast.expect("long values");
        assert_eq!(toast.oid, resolve("s1.toast").toast);
        assert_ne!(toast.heap.locator(), toast.index.relation().locator());
        assert!(toast.index.meta(&mut opened.backend).is_ok());
        assert!(toast.heap.blocks().expect("blocks") > 0);
        assert!(database.table_files(resolve("s1.hot")).is_ok());
        let mut btrees = 0;
        for relation in database.relations() {
            for row in database.indexes_of(relation.oid) {
                assert_eq!(database.index(row.index), Some(row));
                let found = database.btree(row);
                btrees += usize::from(found.is_some());
                if let Some(found) = found {
                    assert!(found.layout().keys().len() == usize::from(row.key_count));
                    assert!(found.meta(&mut opened.backend).is_ok());
                }
            }
        }
        assert!(btrees > 100, "{btrees}");
        assert_eq!(resolve("s1.unl").persistence, Persistence::Unlogged);
        let columns = database.columns(resolve("s1.gen")).expect("columns");
        assert!(columns.iter().any(|column| column.generated == Generated::Stored));
        let columns = database.columns(resolve("s1.missing")).expect("columns");
        assert!(columns.iter().filter(|column| column.missing.is_some()).count() >= 5);
        assert!(columns.iter().any(|column| column.dropped));
    }
}

#[test]
fn names_that_do_not_exist() {
    for (_, data) in fixtures() {
        let mut opened = Opened::new(&data, MethodKind::Sync, 256, false);
        let error = opened.database("fixtures").expect_err("refused");
        assert_eq!(error.to_string(), "database \"fixtures\" does not exist");
        assert_eq!(error.hint().as_deref(), Some("perhaps you meant fixture"));
        let database = opened.database("fixture").expect("opened");
        for (name, expected, hint) in [
            ("s1.tyy", "relation s1.tyy does not exist", Some("perhaps you meant s1.ty")),
            ("toastdef", "relation toastdef does not exist", Some("perhaps you meant s1.toastdef")),
            ("toastdeff", "relation toastdeff does not", Some("perhaps you meant s1.toastdef")),
            ("S1.TY.x", "s1.ty.x is not in database \"fixture\"", None),
            ("s2.ty", "schema \"s2\" does not exist in database", Some("perhaps you meant s1")),
            ("s1.xyzzy", "relation s1.xyzzy does not exist in database \"fixture\"", None),
            ("a.b.c.d", "invalid name \"a.b.c.d\": too many dotted names", Some("names are")),
            ("\"S1\".ty", "schema \"S1\" does not exist", Some("perhaps you meant s1")),
        ] {
            let error = database.resolve(name.as_bytes()).expect_err("refused");
            assert!(error.to_string().starts_with(expected), "{name}: {error}");
            assert!(error.is_usage());
            let found = error.hint();
            match hint {
                Some(hint) => assert!(found.is_some_and(|found| found.starts_with(hint)), "{name}"),
                None => assert_eq!(found, None, "{name}"),
            }
        }
        for name in ["s1.ty", "S1.Ty", "fixture.s1.ty", "pg_class", "PG_CATALOG.pg_class"] {
            database.resolve(name.as_bytes()).expect(name);
        }
        assert!(database.resolve(b"public.\"Weird Name.x\"").is_ok());
        for (name, expected) in [
            ("pg_catalog.pg_tables", "pg_catalog.pg_tables is a view: it stores no rows"),
            ("pg_class_oid_index", "pg_catalog.pg_class_oid_index is an index, not a table"),
            ("s1.part", "s1.part is a partitioned table: it stores no rows"),
        ] {
            let relation = database.resolve(name.as_bytes()).expect(name);
            let error = database.table_files(relation).expect_err("refused").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

/// Enum labels and object names are loaded only on request.
#[test]
fn look_ups() {
    for (_, data) in fixtures() {
        let mut opened = Opened::new(&data, MethodKind::Sync, 256, false);
        let database = opened.database("fixture").expect("opened");
        let catalog: &dyn TypeCatalog = &*database;
        assert_eq!(catalog.type_row(Oid(23)).map(|row| text(&row.name)).as_deref(), Some("int4"));
        assert_eq!(catalog.range_subtype(Oid(3904)), Some(Oid(23)));
        assert_eq!(catalog.multirange_range(Oid(4451)), Some(Oid(3904)));
        let class = catalog.columns(Oid(1259)).expect("columns");
        // `relname`, the only `name` among the first columns.
        assert_eq!((class[1].type_oid, class[1].attribute.len), (Oid(19), 64));
        let named = |class, name: &str| catalog.objects_named(class, name.as_bytes()).len();
        assert_eq!(named(ObjectClass::Relation, "pg_class"), 1);
        assert_eq!(named(ObjectClass::Schema, "s1"), 1);
        assert_eq!(named(ObjectClass::Database, "bench"), 1);
        assert_eq!(named(ObjectClass::Type, "int4"), 1);
        assert_eq!(catalog.object(ObjectClass::Procedure, Oid(42)), None);
        // 1008 is `regproc[]`. If we load the names for an array type, that must include the names
        // for its element type.
        database.load_names(&mut opened.backend, [Oid(1008), Oid(23)]).expect("read");
        let input = catalog.object(ObjectClass::Procedure, Oid(42)).expect("int4in");
        assert_eq!((text(&input.name).as_str(), input.arguments), ("int4in", vec![Oid(2275)]));
        assert!(named(ObjectClass::Procedure, "abs") > 3);
        assert_eq!(named(ObjectClass::Operator, "="), 0);
        database.load_names(&mut opened.backend, [Oid(2249)]).expect("read");
        let equal = catalog.object(ObjectClass::Operator, Oid(96)).expect("=");
        assert_eq!(equal.arguments, [Oid(23), Oid(23)]);
        assert_eq!(named(ObjectClass::Role, "postgres"), 1);
        assert_eq!(named(ObjectClass::Collation, "C"), 1);
        assert_eq!(named(ObjectClass::TextSearchConfig, "english"), 1);
        assert_eq!(named(ObjectClass::TextSearchDictionary, "simple"), 1);
    }
}

/// Copies only those files that the catalog code reads: a few small files, and the catalogs of one
/// database.
fn copy_catalogs(data: &Path, to: &Path, database: Oid) {
    let copy = |name: &str| {
        let target = to.join(name);
        fs::create_dir_all(target.parent().expect("a parent")).expect("made");
        fs::copy(data.join(name), target).expect("copied");
    };
    for name in ["PG_VERSION", "global/pg_control", "pg_xact/0000"] {
        copy(name);
    }
    for directory in ["global".to_owned(), format!("base/{database}")] {
        for entry in fs::read_dir(data.join(&directory)).expect("listed") {
            let name = entry.expect("an entry").file_name().into_string().expect("text");
            if !name.contains('_') || name == "pg_filenode.map" {
                copy(&format!("{directory}/{name}"));
            }
        }
    }
}

/// Opening a damaged catalog must either succeed or return an error.
#[test]
fn flipped_bits_end_in_a_catalog_or_an_error() {
    let seed = 0xF11B;
    let mut random = Rng::new(seed);
    for (major, data) in fixtures() {
        let mut opened = Opened::new(&data, MethodKind::Sync, 64, false);
        let database = opened.database("fixture").expect("opened");
        let oid = database.info().oid;
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("directory");
        copy_catalogs(&data, home.path(), oid);
        let mut targets = vec![
            home.path().join("global/pg_filenode.map"),
            home.path().join(format!("base/{oid}/pg_filenode.map")),
        ];
        let tables = [1262, 1213, 1259, 1249, 1247, 2615, 2610, 2611, 3501, 3541, 2601, 2616, 1255];
        for table in tables {
            let relation = database.relation(Oid(table)).expect("a catalog");
            let path = database.files(relation).expect("files").path(0);
            let below = path.strip_prefix(&data).expect("inside");
            targets.push(home.path().join(below));
        }
        let (mut good, mut bad) = (0, 0);
        for round in 0..40 {
            let path = &targets[random.below(targets.len() as u64) as usize];
            let whole = fs::read(path).expect("read");
            if whole.is_empty() {
                continue;
            }
            let mut bytes = whole.clone();
            for _ in 0..=random.below(20) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            fs::write(path, bytes).expect("written");
            match open_and_ask(home.path()) {
                Ok(()) => good += 1,
                Err(error) => {
                    let text = error.to_string();
                    assert!(!text.is_empty(), "seed {seed:#x}, round {round}");
                    bad += 1;
                }
            }
            fs::write(path, whole).expect("written");
        }
        open_and_ask(home.path()).expect("whole again");
        println!("pg{major}: {good} good, {bad} bad");
        assert!(good > 0 && bad > 0);
    }
}

fn open(data: &Path) -> Result<Opened, CatalogError> {
    let aio = Builder::new().method(MethodKind::Sync).region_bytes(1 << 20).start();
    // Ignore checksum failures. Otherwise, the pool would reject any page with a flipped bit, and
    // we wouldn't test the catalog parser at all.
    let policy = Policy { ignore_checksum_failure: true, ..Policy::default() };
    Opened::with(aio.expect("started"), data, 64, false, policy)
}

fn open_and_ask(data: &Path) -> Result<(), CatalogError> {
    let mut opened = open(data)?;
    let database = opened.database("fixture")?;
    for relation in database.relations() {
        let _ = database.leaves(relation).len();
        let _ = database.columns(relation);
        let _ = database.table_files(relation);
        for index in database.indexes_of(relation.oid) {
            let _ = database.btree(index);
        }
    }
    let _ = database.resolve(b"s1.ty");
    database.load_names(&mut opened.backend, [Oid(2249)])
}

/// We must read a database's catalog only once, no matter how often the database is opened, and
/// even with a small pool.
#[test]
fn snapshots_are_shared() {
    for (_, data) in fixtures() {
        let mut opened = Opened::new(&data, MethodKind::Sync, 256, false);
        let first = opened.database("bench").expect("opened");
        let reads = opened.pool.total();
        let second = opened.database("bench").expect("opened");
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(opened.pool.total().since(&reads).hits, 0);
        let by_oid = opened.catalog.database_by_oid(&mut opened.backend, first.info().oid);
        assert!(by_oid.expect("opened").is_some_and(|found| Arc::ptr_eq(&first, &found)));
        let none = opened.catalog.database_by_oid(&mut opened.backend, Oid(99)).expect("read");
        assert!(none.is_none());
        let relation = first.resolve(b"pgbench_accounts").expect("there");
        assert_eq!(relation.rows, Some(200_000.0));
        assert_eq!(first.files(relation).expect("files").fork(), Fork::Main);
    }
}

#[test]
fn missing_relation_maps_are_reported() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("directory");
    let Some((_, data)) = fixtures().into_iter().next() else { return };
    let mut opened = Opened::new(&data, MethodKind::Sync, 64, false);
    let database = opened.database("fixture").expect("opened").info().oid;
    copy_catalogs(&data, home.path(), database);
    let map = home.path().join(format!("base/{database}/pg_filenode.map"));
    fs::remove_file(&map).expect("removed");
    let mut opened = open(home.path()).expect("opened");
    let error = opened.database("fixture").expect_err("refused").to_string();
    assert_eq!(error, format!("\"{}\" is missing", map.display()));
    fs::write(&map, [0; 512]).expect("written");
    let error = opened.database("fixture").expect_err("refused").to_string();
    assert!(error.contains("relation map"), "{error}");
    fs::remove_file(home.path().join("global/pg_filenode.map")).expect("removed");
    assert!(open(home.path()).is_err());
}
