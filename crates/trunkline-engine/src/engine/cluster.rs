//! A PostgreSQL data directory opened in an engine. Its databases and relations can be looked up by
//! name.
//!
//! The catalog is read on first use. We use a temporary session for that, so that callers don't
//! need a session just to open a relation. A database is a snapshot of its catalogs: they are read
//! once and never change. Each relation holds a reference to its database, each database to its
//! cluster, and each cluster to its engine. There are no references in the other direction, so
//! there can't be any reference cycles.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use trunkline_aio::facade::Mutex;
use trunkline_format::BlockNo;

use super::error::EngineError;
use super::instance::Engine;
use crate::catalog::{Catalog, CatalogError, ColumnInfo, Database, OnDamage, RelationInfo};
use crate::datadir::{DataDir, OpenOptions};
use crate::heap::{HeapScan, ScanOptions};
use crate::pool::{Backend, Pin, ReadError};
use crate::read_stream::{BlockRange, ReadStream, StreamOptions};
use crate::settings::Settings;
use crate::storage::{Relation, Storage, StorageError};

/// A data directory opened for reading. Clones refer to the same cluster.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    engine: Engine,
    dir: DataDir,
    storage: Storage,
    /// Read on first use. The lock is never held during I/O.
    catalog: Mutex<Option<Catalog>>,
}

impl Engine {
    /// Opens a PostgreSQL data directory for reading. Fails if a server is running on it, if the
    /// cluster wasn't shut down cleanly, or if its version is unknown.
    ///
    /// # Errors
    /// [`EngineError::DataDir`].
    pub fn cluster(&self, directory: impl AsRef<Path>) -> Result<Cluster, EngineError> {
        Ok(self.cluster_of(DataDir::open(directory.as_ref(), OpenOptions::default())?))
    }

    /// Opens the cluster in a data directory that was opened with custom options, such as
    /// [`OpenOptions::force_unclean`] or [`DataDir::with_tablespaces`].
    pub fn cluster_of(&self, dir: DataDir) -> Cluster {
        let storage = Storage::of_datadir(&dir, self.files(), self.is_direct());
        let engine = self.clone();
        Cluster(Arc::new(Inner { engine, dir, storage, catalog: Mutex::default() }))
    }
}

impl Cluster {
    /// The data directory, with its control file, warnings and relation files.
    pub fn dir(&self) -> &DataDir {
        &self.0.dir
    }

    /// The relations by number, without the catalog.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// The engine that the cluster is opened in.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The cluster's catalog, which lists its databases and tablespaces. A damaged catalog row is
    /// an error.
    ///
    /// # Errors
    /// [`EngineError::Catalog`] or [`EngineError::TooManySessions`].
    pub fn catalog(&self) -> Result<Catalog, EngineError> {
        if let Some(catalog) = &*self.0.catalog.lock() {
            return Ok(catalog.clone());
        }
        // We must not hold the lock while reading the catalog. If two threads read it at the same
        // time, we keep the result of whichever finishes first.
        let catalog = self.read_catalog(&mut self.engine().session()?, OnDamage::Fail)?;
        Ok(self.0.catalog.lock().get_or_insert(catalog).clone())
    }

    /// Reads the catalog again, and lets the caller choose how to deal with damage. We don't cache
    /// the result, because it may be incomplete, and [`Cluster::catalog`] must never return an
    /// incomplete catalog.
    ///
    /// # Errors
    /// [`CatalogError`], but not for damaged rows and pages if [`OnDamage::Collect`] is used.
    pub fn read_catalog(
        &self,
        session: &mut Backend,
        on_damage: OnDamage,
    ) -> Result<Catalog, CatalogError> {
        Catalog::open_with(self.dir(), self.storage(), session, on_damage)
    }

    /// The database with exactly this name.
    ///
    /// # Errors
    /// [`EngineError::Catalog`]: it does not exist, or cannot be read.
    pub fn database(&self, name: &str) -> Result<OpenDatabase, EngineError> {
        let catalog = self.catalog()?.database(&mut self.engine().session()?, name.as_bytes())?;
        Ok(OpenDatabase { cluster: self.clone(), catalog })
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({})", self.dir().path().display())
    }
}

/// A database of a [`Cluster`], with a snapshot of its catalogs.
#[derive(Debug, Clone)]
pub struct OpenDatabase {
    cluster: Cluster,
    catalog: Arc<Database>,
}

impl OpenDatabase {
    /// Its catalogs: schemas, relations, columns, types, indexes.
    pub fn catalog(&self) -> &Arc<Database> {
        &self.catalog
    }

    /// Looks up a relation by name. The name is either `schema.name`, or just `name` for a relation
    /// in the `pg_catalog` or `public` schema. The SQL quoting rules apply, so names that contain
    /// capital letters or dots must be double-quoted.
    ///
    /// # Errors
    /// [`EngineError::Catalog`]: it does not exist, or it has no files, as a view or a partitioned
    /// table.
    pub fn relation(&self, name: &str) -> Result<OpenRelation, EngineError> {
        let info = self.catalog.resolve(name.as_bytes())?;
        self.catalog.require_files(info)?;
        let columns = self.catalog.columns(info)?.to_vec();
        let Some(files) = self.catalog.files(info) else {
            unreachable!("a relation that has files has a locator");
        };
        Ok(OpenRelation { database: self.clone(), info: info.clone(), columns, files })
    }
}

/// A table, materialized view or index of an [`OpenDatabase`] that can now be read.
#[derive(Debug, Clone)]
pub struct OpenRelation {
    database: OpenDatabase,
    info: RelationInfo,
    columns: Vec<ColumnInfo>,
    files: Relation,
}

impl OpenRelation {
    /// Its `pg_class` row.
    pub fn info(&self) -> &RelationInfo {
        &self.info
    }

    /// Its columns by number, including dropped columns.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// Its main fork.
    pub fn files(&self) -> &Relation {
        &self.files
    }

    /// Its length in blocks.
    ///
    /// # Errors
    /// [`StorageError`]: a segment is missing or cannot be examined.
    pub fn blocks(&self) -> Result<BlockNo, StorageError> {
        self.files.blocks()
    }

    /// Reads one page, unless it's already in the pool.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, session: &mut Backend, block: BlockNo) -> Result<Pin, ReadError> {
        session.read(&self.files, block)
    }

    /// A read stream over all pages of the relation, in order, with read-ahead according to the
    /// settings. We determine the length of the relation only once, when this is called, so pages
    /// that are added later won't be read.
    ///
    /// # Errors
    /// [`StorageError`]: its length is unknown.
    pub fn stream(&self, session: &Backend) -> Result<ReadStream<BlockRange>, StorageError> {
        let blocks = BlockRange::new(0..self.blocks()?);
        let options = StreamOptions { sequential: true, ..StreamOptions::of(self.settings()) };
        Ok(ReadStream::new(session, &self.files, blocks, options))
    }

    /// A sequential scan. It returns the visible rows of all pages, in order, with read-ahead
    /// according to the settings.
    ///
    /// # Errors
    /// [`EngineError::Catalog`] if it is not a heap table; [`EngineError::Storage`].
    pub fn scan(&self, session: &Backend) -> Result<HeapScan<BlockRange>, EngineError> {
        let catalog = &self.database.catalog;
        let rows = catalog.table_files(&self.info)?.rows;
        let options = ScanOptions::of(self.settings());
        Ok(HeapScan::of_table(session, &rows, catalog.transactions(), options)?)
    }

    fn settings(&self) -> &Settings {
        self.database.cluster.engine().settings()
    }
}
