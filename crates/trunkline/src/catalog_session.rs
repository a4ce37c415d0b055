//! A session that reads a data directory's catalog, for commands that accept table names.
//!
//! The user selects the database with `-d DATABASE` or with a name of the form
//! DATABASE.SCHEMA.TABLE. `copy` and `verify --rows` read the catalog through the same pool as the
//! tables. All other commands use a small separate engine, which this module starts. This engine is
//! independent of the command's main I/O instance.

use std::collections::BTreeMap;
use std::path::Path;

use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::{Catalog, CatalogError, Database, OnDamage};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::pool::{Backend, Policy};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::Storage;
use trunkline_engine::verify::{CatalogFiles, Scope};
use trunkline_format::Oid;

use crate::data_dir::moved_tablespace_hint;
use crate::exit::{Failure, first_warnings, message};
use crate::io_instance::IoInstance;

/// Size of the small pool: 4 MiB, which holds the catalogs of most databases.
const BUFFERS: u32 = 512;

/// A catalog and a session to read it.
pub(crate) struct CatalogSession {
    pub(crate) catalog: Catalog,
    pub(crate) backend: Backend,
    dir: DataDir,
}

impl CatalogSession {
    /// Reads the shared catalogs with the configured I/O settings. Damaged rows are skipped, and a
    /// warning is printed. But if a catalog has lost pages, that is an error.
    pub(crate) fn open(dir: &DataDir, settings: &Settings) -> Result<CatalogSession, Failure> {
        // The engine shares the instance, which keeps running without us (see `IoInstance`).
        let (_, engine) = IoInstance::with_engine(settings, BUFFERS)?;
        let mut backend = engine.session()?;
        let cluster = engine.cluster_of(dir.clone());
        let catalog = cluster.read_catalog(&mut backend, OnDamage::Collect)?;
        warn_of_damage(catalog.faults(), None);
        Ok(CatalogSession { catalog, backend, dir: dir.clone() })
    }

    /// Reads the shared catalogs with buffered `sync` I/O and ignores the I/O settings, because
    /// those are meant for the command's main job. Just to look up a few names, we don't want to
    /// start worker threads, set up an io_uring, or fail because the file system doesn't support
    /// direct I/O.
    pub(crate) fn open_with_sync_io(
        dir: &DataDir,
        settings: &Settings,
    ) -> Result<CatalogSession, Failure> {
        Self::open(dir, &with_sync_io(settings)?)
    }

    /// Looks up the OID of a database without reading the database's own catalogs, so that damage in
    /// them doesn't matter.
    pub(crate) fn database_oid(&self, name: &[u8]) -> Result<Oid, Failure> {
        Ok(self.catalog.database_info(name)?.oid)
    }

    /// Reads the catalogs of a database. Damaged rows are skipped with a warning.
    pub(crate) fn database(&mut self, name: &[u8]) -> Result<Arc<Database>, Failure> {
        let database = self.catalog.database(&mut self.backend, name);
        let database = database.map_err(|error| database_failure(error, &self.dir))?;
        warn_of_damage(database.faults(), Some(&database));
        Ok(database)
    }
}

/// The files of a data directory, using buffered `sync` I/O, for a command that reads a page without
/// the catalogs.
pub(crate) fn storage(dir: &DataDir, settings: &Settings) -> Result<Storage, Failure> {
    let (_, engine) = IoInstance::with_engine(&with_sync_io(settings)?, BUFFERS)?;
    Ok(engine.cluster_of(dir.clone()).storage().clone())
}

/// Reads the names of the files in the catalogs, using buffered `sync` I/O. Damage in the catalogs
/// becomes findings of the verification that compares the files with them.
pub(crate) fn catalog_files(
    dir: &DataDir,
    settings: &Settings,
    scope: &Scope,
    checks_contents: bool,
) -> Result<CatalogFiles, Failure> {
    let (_, engine) = IoInstance::with_engine(&with_sync_io(settings)?, BUFFERS)?;
    let mut session = engine.session()?;
    // A damaged page is a finding here, even with `ignore_checksum_failure`.
    session.set_policy(Policy::default());
    let cluster = engine.cluster_of(dir.clone());
    Ok(CatalogFiles::read(dir, cluster.storage(), &mut session, scope, checks_contents))
}

fn with_sync_io(settings: &Settings) -> Result<Settings, Failure> {
    let mut own = settings.clone();
    own.set("io_method", "sync")?;
    own.set("io_direct", "")?;
    Ok(own)
}

/// Converts an error that occurred while opening a database. If the database couldn't be opened
/// because its tablespace has been moved, we add a hint that names the command-line option for that
/// case.
pub(crate) fn database_failure(error: CatalogError, dir: &DataDir) -> Failure {
    let target = match &error {
        CatalogError::MapMissing { path } => dir.dangling_link(path),
        _ => None,
    };
    Failure::from(error).with_hint_if_any(target.as_deref().map(moved_tablespace_hint))
}

/// Prints a warning if damaged rows were skipped in a database's catalogs or in the shared
/// catalogs. For rows that were skipped because of a missing file, there is one warning per file.
pub(crate) fn warn_of_damage(faults: &[CatalogError], database: Option<&Database>) {
    let place = match database {
        Some(database) => format!("catalog of {}", database.quoted_name()),
        None => "shared catalog".to_owned(),
    };
    let mut unknown: BTreeMap<&Path, (u64, &CatalogError)> = BTreeMap::new();
    let mut damaged = Vec::new();
    for fault in faults {
        match fault.file_fault() {
            Some(file) => unknown.entry(&file.path).or_insert((0, fault)).0 += 1,
            None => damaged.push(fault),
        }
    }
    for (rows, first) in unknown.values() {
        let text = "rows left out because their visibility is unknown";
        message("warning", format_args!("{place}: {text}: {rows}; the first: {first}"));
    }
    first_warnings(damaged.iter().map(|fault| format!("{place}: {fault}")));
}
