//! The tables of fixtures, found by name without the engine's catalog: by the map of the mapped
//! catalogs and by the fixed part of the rows of `pg_class`.

use std::fs;
use std::path::{Path, PathBuf};

use trunkline_aio::sync::Arc;
use trunkline_aio::{Aio, Builder, MethodKind};
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::heap::{HeapScan, ScanOptions};
use trunkline_engine::pool::{Backend, BackendType, Pool};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, FileTable, GLOBAL_TABLESPACE, KernelFiles, Relation, RelationLocator,
    Storage,
};
use trunkline_engine::transactions::Transactions;
use trunkline_format::relmap::RelationMap;
use trunkline_format::{Fork, HeapTuple, Oid};

const PG_DATABASE: Oid = Oid(1262);
const PG_CLASS: Oid = Oid(1259);
const PG_NAMESPACE: u32 = 2615;

/// A cluster, opened with everything that reads rows.
pub(crate) struct Cluster {
    pub(crate) dir: DataDir,
    pub(crate) storage: Storage,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) backend: Backend,
}

/// A table, materialized view, TOAST table, index or sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) oid: Oid,
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) kind: char,
    pub(crate) toast: Oid,
    pub(crate) locator: RelationLocator,
}

pub(crate) fn instance(method: MethodKind) -> Aio {
    // Room for the largest pool of the tests, and a few pages of the commit log.
    Builder::new().method(method).region_bytes(16_448 << 13).start().expect("starts")
}

impl Cluster {
    pub(crate) fn open(aio: &Aio, data: &Path, direct: bool, buffers: u32) -> Self {
        let dir = DataDir::open(data, OpenOptions::default()).expect("opened");
        let files = Arc::new(FileTable::new(64));
        let storage = Storage::of_datadir(&dir, files, Arc::new(KernelFiles::new(aio)), direct);
        let transactions = Arc::new(Transactions::of_datadir(&dir, &storage));
        let pool = Pool::new(aio, buffers).expect("a pool");
        let backend = pool.backend(BackendType::Client).expect("a session");
        Self { dir, storage, transactions, backend }
    }

    pub(crate) fn relation(&self, locator: RelationLocator) -> Relation {
        self.storage.relation(locator, Fork::Main)
    }

    /// Calls `each` with every visible row of a table.
    pub(crate) fn rows(&mut self, locator: RelationLocator, mut each: impl FnMut(&HeapTuple<'_>)) {
        let relation = self.relation(locator);
        let options = ScanOptions::default();
        let scan = HeapScan::of_table(&self.backend, &relation, &self.transactions, options);
        let mut scan = scan.expect("a table");
        while let Some(page) = scan.next_page(&mut self.backend).expect("reads") {
            page.rows().for_each(|row| each(&row.expect("sound").tuple));
        }
    }

    fn map(&self, directory: &str) -> RelationMap {
        let path = self.dir.path().join(directory).join("pg_filenode.map");
        let bytes = fs::read(path).expect("read");
        RelationMap::parse(&bytes, self.dir.control().version).expect("a map")
    }

    fn database(&mut self, name: &str) -> Oid {
        let relfilenode = self.map("global").file_of(PG_DATABASE).expect("mapped");
        let locator =
            RelationLocator { tablespace: GLOBAL_TABLESPACE, database: Oid(0), relfilenode };
        let mut found = None;
        self.rows(locator, |tuple| {
            if text(tuple.data(), 4) == name {
                found = Some(Oid(word(tuple.data(), 0)));
            }
        });
        found.expect("a database")
    }

    /// Everything in a database that has a file.
    pub(crate) fn tables(&mut self, database: &str) -> Vec<Found> {
        let database = self.database(database);
        let map = self.map(&format!("base/{database}"));
        let at =
            |relfilenode| RelationLocator { tablespace: DEFAULT_TABLESPACE, database, relfilenode };
        let new = self.dir.control().version.major() >= 18;
        let (toast_at, kind_at) = if new { (112, 119) } else { (108, 115) };
        let mut tables = Vec::new();
        self.rows(at(map.file_of(PG_CLASS).expect("mapped")), |tuple| {
            let data = tuple.data();
            let tablespace = Oid(word(data, 92));
            let tablespace = if tablespace == Oid(0) { DEFAULT_TABLESPACE } else { tablespace };
            let relfilenode = match word(data, 88) {
                0 => map.file_of(Oid(word(data, 0))).unwrap_or_default(),
                file => file,
            };
            if relfilenode != 0 && tablespace != GLOBAL_TABLESPACE {
                tables.push((
                    word(data, 68),
                    Found {
                        oid: Oid(word(data, 0)),
                        schema: String::new(),
                        name: text(data, 4),
                        kind: char::from(data[kind_at]),
                        toast: Oid(word(data, toast_at)),
                        locator: RelationLocator { tablespace, ..at(relfilenode) },
                    },
                ));
            }
        });
        let schemas = tables.iter().find(|(_, table)| table.oid == Oid(PG_NAMESPACE));
        let mut names = Vec::new();
        self.rows(schemas.expect("pg_namespace").1.locator, |tuple| {
            names.push((word(tuple.data(), 0), text(tuple.data(), 4)));
        });
        let named = |(schema, found): (u32, Found)| {
            let name = names.iter().find(|(oid, _)| *oid == schema);
            Found { schema: name.expect("a schema").1.clone(), ..found }
        };
        tables.into_iter().map(named).collect()
    }
}

fn word(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes"))
}

fn text(data: &[u8], at: usize) -> String {
    let name = data[at..at + 64].split(|&byte| byte == 0).next().expect("a part");
    String::from_utf8_lossy(name).into_owned()
}

/// The lines that the server printed for a table, each a tab-separated row with its ctid first; `None`
/// if it was not asked.
pub(crate) fn expected(data: &Path, database: &str, table: &Found) -> Option<Vec<Vec<u8>>> {
    let name = format!("{}.{}.copy", table.schema, table.name);
    let path: PathBuf = data.parent()?.join("expected").join(database).join(name);
    let bytes = fs::read(path).ok()?;
    let mut lines: Vec<Vec<u8>> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    assert_eq!(lines.pop().as_deref(), Some(&b""[..]), "every line has an end");
    Some(lines)
}
