//! What a cluster holds: databases, schemas, relations, columns, types, indexes.
//!
//! ```text
//!   global/pg_filenode.map ──▶ pg_database, pg_tablespace ──▶ Catalog
//!                                                               │ database("bench")
//!   base/5/pg_filenode.map ──▶ pg_class, pg_attribute           ▼
//!                                └──▶ pg_type, pg_index … ──▶ Database: an unchanging snapshot
//!                                                               │ resolve("public.accounts")
//!                                                               ▼
//!                                           RelationInfo, its columns, files, indexes, partitions
//! ```
//!
//! A map beside the files says where the first two catalogs of a database are, and these say where
//! everything else is. All are scanned whole, in order, through the pool: they are small, and a scan
//! asks nothing of indexes that may be damaged. What is read is copied out into plain values; a
//! [`Database`] is made once, shared by all threads, and never changes. Catalogs that hardly anybody
//! needs and that are large, such as that of functions, are read when somebody asks
//! ([`Database::load_names`]).
//!
//! Before anything is believed, a database's own description of the catalogs is compared with what
//! servers of its version have ([`trunkline_format::catalog::CatalogLayout::agrees`]): a cluster of
//! an unknown kind ends in an error and not in garbage.
//!
//! A row that makes no sense is an error too, since what it describes would be missing without a
//! word. Who says so ([`OnDamage::Collect`]) gets the others, and a list of what is wrong
//! ([`Database::faults`]).
//!
//! ```no_run
//! # use trunkline_aio::sync::Arc;
//! # use trunkline_engine::catalog::Catalog;
//! # use trunkline_engine::datadir::DataDir;
//! # use trunkline_engine::pool::{BackendType, Pool};
//! # use trunkline_engine::storage::Storage;
//! fn print_columns(
//!     dir: &DataDir,
//!     storage: &Storage,
//!     pool: &Pool,
//! ) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut backend = pool.backend(BackendType::Client)?;
//!     let catalog = Catalog::open(dir, storage, &mut backend)?;
//!     let database = catalog.database(&mut backend, b"bench")?;
//!     let accounts = database.resolve(b"public.pgbench_accounts")?;
//!     for column in database.columns(accounts)? {
//!         println!("{}", String::from_utf8_lossy(&column.name));
//!     }
//!     Ok(())
//! }
//! ```

mod database;
mod error;
mod load;
mod lookups;
mod name;
mod objects;
mod place;
mod reader;
mod relation;
mod resolve;
mod settings;
mod snapshot;

use std::path::PathBuf;

use trunkline_aio::sync::hash::Map;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::relmap::{RELATION_MAP_NAME, RelationMap};
use trunkline_format::{Fork, Oid, PgVersion};

use crate::datadir::{DataDir, read_small_file};
use crate::pool::Backend;
use crate::storage::{RelationLocator, Storage};
use crate::transactions::Transactions;

pub use self::database::{Database, TableFiles};
pub use self::error::{CatalogError, Unreadable};
pub use self::name::{NameProblem, QualifiedName, quoted};
pub use self::place::{Place, first_file};
pub use self::relation::{
    BTREE_METHOD, ColumnInfo, DatabaseInfo, HEAP_METHOD, RelationInfo, SchemaInfo, TablespaceInfo,
};

/// Bytes of a map file that are looked at: more than any has.
const MAP_BYTES: u64 = 4096;

/// The catalog of a cluster: its databases, and those of them that were opened. Clones are the same.
#[derive(Debug, Clone)]
pub struct Catalog {
    cluster: Arc<Cluster>,
    /// A database knows its cluster, but not this: neither would ever go.
    opened: Arc<Mutex<Map<Oid, Arc<Database>>>>,
}

/// What all databases of a cluster have in common.
#[derive(Debug)]
struct Cluster {
    version: PgVersion,
    storage: Storage,
    transactions: Arc<Transactions>,
    map: RelationMap,
    /// By name.
    databases: Vec<DatabaseInfo>,
    /// By OID.
    tablespaces: Vec<TablespaceInfo>,
    on_damage: OnDamage,
    faults: Vec<CatalogError>,
}

/// What becomes of a row or page of a catalog that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// It ends the reading: what is described there would be missing without a word.
    #[default]
    Fail,
    /// It is left out, and kept for who asks: [`Catalog::faults`], [`Database::faults`].
    Collect,
}

impl Catalog {
    /// Reads which databases and tablespaces there are. `storage` holds the files of `dir`.
    ///
    /// # Errors
    /// [`CatalogError`]: a file is missing, damaged or not to be read.
    pub fn open(
        dir: &DataDir,
        storage: &Storage,
        backend: &mut Backend,
    ) -> Result<Self, CatalogError> {
        Self::open_with(dir, storage, backend, OnDamage::Fail)
    }

    /// The same, and says what becomes of damage, here and in every database that is opened.
    ///
    /// # Errors
    /// As [`Catalog::open`]; of damaged rows and pages only with [`OnDamage::Fail`].
    pub fn open_with(
        dir: &DataDir,
        storage: &Storage,
        backend: &mut Backend,
        on_damage: OnDamage,
    ) -> Result<Self, CatalogError> {
        let version = dir.control().version;
        let transactions = Arc::new(Transactions::of_datadir(dir, storage));
        let map =
            read_map(storage, &database_place(Oid(0), crate::storage::GLOBAL_TABLESPACE), version)?;
        let mut faults = reader::Faults::new(on_damage);
        let mut reader = reader::Reader {
            backend,
            storage,
            transactions: &transactions,
            version,
            faults: &mut faults,
        };
        let databases = reader.databases(&map)?;
        let tablespaces = reader.tablespaces(&map)?;
        let cluster = Arc::new(Cluster {
            version,
            storage: storage.clone(),
            transactions,
            map,
            databases,
            tablespaces,
            on_damage,
            faults: faults.into_found(),
        });
        Ok(Self { cluster, opened: Arc::default() })
    }

    /// What was left out of databases and tablespaces, in the order in which it was met; nothing
    /// unless it was opened with [`OnDamage::Collect`].
    pub fn faults(&self) -> &[CatalogError] {
        &self.cluster.faults
    }

    /// All databases, by name.
    pub fn databases(&self) -> &[DatabaseInfo] {
        &self.cluster.databases
    }

    /// All tablespaces, by OID, `pg_default` and `pg_global` included.
    pub fn tablespaces(&self) -> &[TablespaceInfo] {
        &self.cluster.tablespaces
    }

    /// What became of the cluster's transactions.
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.cluster.transactions
    }

    /// The database with exactly this name, read if it was not.
    ///
    /// # Errors
    /// [`CatalogError`]: there is none, or it cannot be read.
    pub fn database(
        &self,
        backend: &mut Backend,
        name: &[u8],
    ) -> Result<Arc<Database>, CatalogError> {
        let Some(info) = self.cluster.databases.iter().find(|info| *info.name == *name) else {
            let names = self.cluster.databases.iter().map(|info| &*info.name);
            return Err(CatalogError::NoDatabase {
                name: String::from_utf8_lossy(name).into_owned(),
                near: name::nearest(name, names).map(quoted),
            });
        };
        self.open_database(backend, info)
    }

    /// The database with this OID, read if it was not; `None` if there is none.
    ///
    /// # Errors
    /// [`CatalogError`]: it cannot be read.
    pub fn database_by_oid(
        &self,
        backend: &mut Backend,
        oid: Oid,
    ) -> Result<Option<Arc<Database>>, CatalogError> {
        let info = self.cluster.databases.iter().find(|info| info.oid == oid);
        info.map(|info| self.open_database(backend, info)).transpose()
    }

    fn open_database(
        &self,
        backend: &mut Backend,
        info: &DatabaseInfo,
    ) -> Result<Arc<Database>, CatalogError> {
        if info.is_invalid {
            let name = String::from_utf8_lossy(&info.name).into_owned();
            return Err(CatalogError::InvalidDatabase { name });
        }
        if let Some(found) = self.opened.lock().get(&info.oid) {
            return Ok(Arc::clone(found));
        }
        // Without the lock, which is not to be held while somebody reads: should two come at once,
        // both read, and what the later one made is dropped.
        let made = Arc::new(Database::load(&self.cluster, backend, info)?);
        Ok(Arc::clone(self.opened.lock().entry(info.oid).or_insert(made)))
    }
}

/// Any relation in the directory of a database; with database 0, in `global`.
fn database_place(database: Oid, tablespace: Oid) -> RelationLocator {
    RelationLocator { tablespace, database, relfilenode: 1 }
}

/// Reads the map that lies beside the files of `place`.
fn read_map(
    storage: &Storage,
    place: &RelationLocator,
    version: PgVersion,
) -> Result<RelationMap, CatalogError> {
    let mut path: PathBuf = storage.relation(*place, Fork::Main).path(0);
    path.set_file_name(RELATION_MAP_NAME);
    let bytes = read_small_file(&path, MAP_BYTES)?;
    let bytes = bytes.ok_or_else(|| CatalogError::MapMissing { path: path.clone() })?;
    RelationMap::parse(&bytes, version).map_err(|source| CatalogError::Map { path, source })
}
