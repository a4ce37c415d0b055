//! The catalog of a cluster: its databases and tablespaces, and the databases opened so far.
//!
//! Databases are loaded on first use. While loading one, we don't hold the lock on the map of
//! loaded databases.

use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::Oid;
use trunkline_format::catalog::{DatabaseRow, PG_DATABASE, PG_TABLESPACE, TablespaceRow};

use super::cluster::{Cluster, OnDamage, read_map};
use super::database::Database;
use super::error::CatalogError;
use super::name::{nearest, quoted};
use super::reader::{Faults, Reader};
use crate::datadir::DataDir;
use crate::pool::Backend;
use crate::storage::{GLOBAL_TABLESPACE, Storage};
use crate::transactions::Transactions;

/// The catalog of a cluster. Clones share the loaded databases.
#[derive(Debug, Clone)]
pub struct Catalog {
    cluster: Arc<Cluster>,
    /// This can't be a field of the shared cluster state. Every database holds a reference to its
    /// cluster, so a reference in the other direction would create a cycle, and neither of them
    /// would ever be freed.
    opened: Arc<Mutex<Map<Oid, Arc<Database>>>>,
}

impl Catalog {
    /// Reads `pg_database` and `pg_tablespace`. `storage` must belong to `dir`.
    ///
    /// # Errors
    /// [`CatalogError`]: a file is missing, damaged or unreadable.
    pub fn open(
        dir: &DataDir,
        storage: &Storage,
        backend: &mut Backend,
    ) -> Result<Self, CatalogError> {
        Self::open_with(dir, storage, backend, OnDamage::Fail)
    }

    /// As [`Catalog::open`]. `on_damage` also applies to every database opened later.
    ///
    /// # Errors
    /// As [`Catalog::open`]; for damaged rows and pages only with [`OnDamage::Fail`], and for a
    /// catalog that has lost pages, not with [`OnDamage::Rescue`].
    pub fn open_with(
        dir: &DataDir,
        storage: &Storage,
        backend: &mut Backend,
        on_damage: OnDamage,
    ) -> Result<Self, CatalogError> {
        let version = dir.control().version;
        let mut cluster = Cluster {
            version,
            clean: dir.is_clean(),
            storage: storage.clone(),
            transactions: Arc::new(Transactions::of_datadir(dir, storage)),
            map: read_map(storage, Oid(0), GLOBAL_TABLESPACE, version)?,
            databases: Vec::new(),
            tablespaces: Vec::new(),
            on_damage,
            faults: Vec::new(),
        };
        let mut faults = Faults::new(on_damage);
        let mut reader = Reader { backend, cluster: &cluster, faults: &mut faults };
        let mut databases = reader.rows::<DatabaseRow>(cluster.shared_catalog(&PG_DATABASE)?)?;
        let mut tablespaces =
            reader.rows::<TablespaceRow>(cluster.shared_catalog(&PG_TABLESPACE)?)?;
        databases.sort_by(|one, other| one.name.cmp(&other.name));
        tablespaces.sort_by_key(|tablespace| tablespace.oid);
        cluster.databases = databases;
        cluster.tablespaces = tablespaces;
        cluster.faults = faults.into_found();
        Ok(Self { cluster: Arc::new(cluster), opened: Arc::default() })
    }

    /// Damage that we skipped while reading databases and tablespaces, in the order we found it.
    /// This is empty if the catalog was opened with [`OnDamage::Fail`].
    pub fn faults(&self) -> &[CatalogError] {
        &self.cluster.faults
    }

    /// All databases, by name.
    pub fn databases(&self) -> &[DatabaseRow] {
        &self.cluster.databases
    }

    /// All tablespaces, by OID, with `pg_default` and `pg_global`.
    pub fn tablespaces(&self) -> &[TablespaceRow] {
        &self.cluster.tablespaces
    }

    /// The cluster's commit log and multixacts.
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.cluster.transactions
    }

    /// The database with exactly this name. Loads it on first use.
    ///
    /// # Errors
    /// [`CatalogError`]: it does not exist, or cannot be read.
    pub fn database(
        &self,
        backend: &mut Backend,
        name: &[u8],
    ) -> Result<Arc<Database>, CatalogError> {
        self.open_database(backend, self.database_info(name)?)
    }

    /// The row of the database with exactly this name. Reads nothing, so it also works if the
    /// database's own catalogs are damaged.
    ///
    /// # Errors
    /// [`CatalogError`]: it does not exist, or is invalid.
    pub fn database_info(&self, name: &[u8]) -> Result<&DatabaseRow, CatalogError> {
        let Some(info) = self.cluster.databases.iter().find(|info| *info.name == *name) else {
            let names = self.cluster.databases.iter().map(|info| &*info.name);
            return Err(CatalogError::NoDatabase {
                name: String::from_utf8_lossy(name).into_owned(),
                near: nearest(name, names).map(quoted),
            });
        };
        valid(info)
    }

    /// The database with this OID, or `None`. Loads it on first use.
    ///
    /// # Errors
    /// [`CatalogError`]: it cannot be read.
    pub fn database_by_oid(
        &self,
        backend: &mut Backend,
        oid: Oid,
    ) -> Result<Option<Arc<Database>>, CatalogError> {
        let info = self.cluster.databases.iter().find(|info| info.oid == oid);
        info.map(|info| self.open_database(backend, valid(info)?)).transpose()
    }

    fn open_database(
        &self,
        backend: &mut Backend,
        info: &DatabaseRow,
    ) -> Result<Arc<Database>, CatalogError> {
        if let Some(found) = self.opened.lock().get(&info.oid) {
            return Ok(Arc::clone(found));
        }
        // We don't hold the lock during I/O, so two sessions may load the same database
        // concurrently. In that case, the session that finishes last discards its copy.
        let made = Arc::new(Database::load(&self.cluster, backend, info)?);
        Ok(Arc::clone(self.opened.lock().entry(info.oid).or_insert(made)))
    }
}

/// Returns an error for a database that `DROP DATABASE` has begun to remove.
fn valid(info: &DatabaseRow) -> Result<&DatabaseRow, CatalogError> {
    if info.is_invalid() {
        let name = String::from_utf8_lossy(&info.name).into_owned();
        return Err(CatalogError::InvalidDatabase { name });
    }
    Ok(info)
}
