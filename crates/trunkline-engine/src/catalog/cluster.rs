//! State that all databases of a cluster share, and the relation maps (`relmapper.c`).
//!
//! A few catalogs, including `pg_class` itself, can't have their file number stored in `pg_class`,
//! because we need that number in order to read `pg_class` in the first place. Their `relfilenode`
//! is 0, and the real number is stored in a map file, `pg_filenode.map`. There is one map for the
//! shared catalogs, in `global`, and one for each database.
//!
//! `VACUUM FULL` has the same problem when it rewrites `pg_class`. It couldn't update the file
//! number in `pg_class` itself, but it can replace the map file atomically.

use std::path::PathBuf;

use trunkline_aio::facade::Arc;
use trunkline_format::catalog::{CatalogTable, ClassRow, DatabaseRow, Persistence, TablespaceRow};
use trunkline_format::relmap::{RELATION_MAP_NAME, RelationMap};
use trunkline_format::{Fork, Oid, PgVersion};

use super::error::CatalogError;
use crate::datadir::DataDirError;
use crate::small_file;
use crate::storage::{GLOBAL_TABLESPACE, RelationLocator, Storage};
use crate::transactions::Transactions;

/// The most bytes to read from a map file. Every version's map is smaller.
const MAP_BYTES_MAX: u64 = 4096;

/// How the reader handles a damaged row or page of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Return an error. If we skipped the damage instead, the objects described there would
    /// silently be missing.
    #[default]
    Fail,
    /// Leave it out and record it in [`super::Catalog::faults`] or [`super::Database::faults`]. If
    /// a catalog has lost pages, that is still an error, because any number of objects may be
    /// missing.
    Collect,
    /// Record that, too, and continue with what is left.
    Rescue,
}

/// State that all databases of a cluster share. Immutable after [`super::Catalog::open`].
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) version: PgVersion,
    /// Whether the cluster was shut down cleanly. Otherwise, an index may refer to pages that were
    /// never written.
    pub(super) clean: bool,
    pub(super) storage: Storage,
    pub(super) transactions: Arc<Transactions>,
    /// The map in `global`.
    pub(super) map: RelationMap,
    /// By name.
    pub(super) databases: Vec<DatabaseRow>,
    /// By OID.
    pub(super) tablespaces: Vec<TablespaceRow>,
    pub(super) on_damage: OnDamage,
    pub(super) faults: Vec<CatalogError>,
}

/// The files of a catalog.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogLocator {
    pub(super) table: &'static CatalogTable,
    pub(super) rows: RelationLocator,
    /// Its index, see [`CatalogTable::index`]. `None` if it isn't mapped and `pg_class` has no row
    /// for it.
    pub(super) index: Option<RelationLocator>,
}

impl Cluster {
    /// The files of a shared catalog.
    pub(super) fn shared_catalog(
        &self,
        table: &'static CatalogTable,
    ) -> Result<CatalogLocator, CatalogError> {
        let file = |oid| self.map.file_of(oid).map(global);
        let rows = file(table.oid).ok_or_else(|| CatalogError::NoCatalog {
            table: table.name,
            database: "global".to_owned(),
        })?;
        Ok(CatalogLocator { table, rows, index: file(table.index.oid) })
    }
}

fn global(relfilenode: u32) -> RelationLocator {
    RelationLocator { tablespace: GLOBAL_TABLESPACE, database: Oid(0), relfilenode }
}

/// A database's relation map and the shared map. Together with a `pg_class` row, they determine a
/// relation's files.
pub(super) struct RelationMaps<'c> {
    database: Oid,
    tablespace: Oid,
    map: RelationMap,
    shared_map: &'c RelationMap,
}

impl<'c> RelationMaps<'c> {
    /// Reads the map of a database.
    pub(super) fn read(cluster: &'c Cluster, info: &DatabaseRow) -> Result<Self, CatalogError> {
        let (database, tablespace) = (info.oid, info.tablespace);
        let map = read_map(&cluster.storage, database, tablespace, cluster.version)?;
        Ok(Self { database, tablespace, map, shared_map: &cluster.map })
    }

    /// Locates a relation's files, like `RelationInitPhysicalAddr`. Returns `None` if this kind of
    /// relation has no storage. Also returns `None` for temporary relations, because their session
    /// has ended and a server would remove their files at startup.
    pub(super) fn locate(&self, row: &ClassRow) -> Option<RelationLocator> {
        if !row.kind.has_storage() || row.persistence == Persistence::Temporary {
            return None;
        }
        // A mapped catalog has 0 here, because its file number can change without an update of
        // pg_class.
        let relfilenode = match row.relfilenode {
            0 if row.shared => self.shared_map.file_of(row.oid)?,
            0 => self.map.file_of(row.oid)?,
            file => file,
        };
        // 0 stands for the database's default tablespace, so that a database can be moved without
        // updating its pg_class.
        let tablespace = if row.tablespace == Oid(0) { self.tablespace } else { row.tablespace };
        Some(match row.shared {
            true => global(relfilenode),
            false => RelationLocator { tablespace, database: self.database, relfilenode },
        })
    }

    /// The files of a mapped catalog.
    pub(super) fn mapped(&self, table: &'static CatalogTable) -> Option<CatalogLocator> {
        let (tablespace, database) = (self.tablespace, self.database);
        let file = |oid| match table.shared {
            true => self.shared_map.file_of(oid).map(global),
            false => {
                let file = self.map.file_of(oid);
                file.map(|relfilenode| RelationLocator { tablespace, database, relfilenode })
            }
        };
        Some(CatalogLocator { table, rows: file(table.oid)?, index: file(table.index.oid) })
    }
}

/// Reads the map from a database's directory. Database 0 is `global`.
pub(super) fn read_map(
    storage: &Storage,
    database: Oid,
    tablespace: Oid,
    version: PgVersion,
) -> Result<RelationMap, CatalogError> {
    if let Some(bytes) =
        storage.replay().and_then(|replay| replay.relation_map(database, tablespace))
    {
        // The replay has verified it.
        let path = storage.root().join("pg_wal");
        return RelationMap::parse(bytes, version)
            .map_err(|source| CatalogError::Map { path, source });
    }
    // A database's map is in the same directory as all of its relations, so we build the path of an
    // arbitrary relation and just replace the file name.
    let any = RelationLocator { tablespace, database, relfilenode: 1 };
    let mut path: PathBuf = storage.relation(any, Fork::Main).path(0);
    path.set_file_name(RELATION_MAP_NAME);
    let bytes = small_file::read(&path, MAP_BYTES_MAX).map_err(DataDirError::from)?;
    let bytes = bytes.ok_or_else(|| CatalogError::MapMissing { path: path.clone() })?;
    RelationMap::parse(&bytes, version).map_err(|source| CatalogError::Map { path, source })
}
