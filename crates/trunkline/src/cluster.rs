//! The catalog of a data directory, for commands that take names.
//!
//! `-d DATABASE` says whose names they are. A command with a pool of its own reads the catalog
//! through that; others through a small one that ends with what is found.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_aio::sync::Arc;
use trunkline_engine::catalog::{Catalog, CatalogError, Database, OnDamage, Place, RelationInfo};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::pool::{Backend, BackendType, Policy, Pool};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_format::Oid;
use trunkline_format::relmap::RELATION_MAP_NAME;

use crate::exit::{Failure, message};
use crate::pooled;

/// Buffers of the small pool: 4 MiB, as the catalogs of most databases need.
const BUFFERS: u32 = 512;

/// Faults of a catalog that are said.
const FAULTS_LISTED: usize = 100;

/// Which database names are of.
#[derive(Debug, clap::Args)]
pub(crate) struct DatabaseArgs {
    /// The database that names are of.
    #[arg(short = 'd', long, value_name = "DATABASE")]
    pub(crate) dbname: Option<OsString>,
}

/// A catalog, and what it takes to read on.
pub(crate) struct Cluster {
    pub(crate) catalog: Catalog,
    pub(crate) backend: Backend,
    /// Not dropped: to end it is to wait for its I/O. It goes with the process.
    _aio: ManuallyDrop<Aio>,
}

impl Cluster {
    /// Reads it with the I/O that the settings ask for. What is damaged in it is left out, and said
    /// on standard error.
    pub(crate) fn open(dir: &DataDir, settings: &Settings) -> Result<Cluster, Failure> {
        let aio = pooled::start(settings, BUFFERS, 0)?;
        let pool = pooled::pool(&aio, BUFFERS)?;
        let mut backend = backend(&pool, settings)?;
        let storage = pooled::storage(&aio, dir, settings);
        let catalog = Catalog::open_with(dir, &storage, &mut backend, OnDamage::Collect)?;
        warn_of(catalog.faults(), None);
        Ok(Cluster { catalog, backend, _aio: aio })
    }

    /// Reads it aside, for a command whose own I/O is another matter.
    pub(crate) fn aside(dir: &DataDir, settings: &Settings) -> Result<Cluster, Failure> {
        let mut own = settings.clone();
        own.set("io_method", "sync")?;
        own.set("io_direct", "")?;
        Self::open(dir, &own)
    }

    /// The database that the option names; what is damaged in its catalogs is said on standard error.
    pub(crate) fn database(&mut self, name: &OsString) -> Result<Arc<Database>, Failure> {
        let database = self.catalog.database(&mut self.backend, name.as_bytes())?;
        warn_of(database.faults(), Some(&database));
        Ok(database)
    }
}

/// Says what was left out of catalogs: those of a database, or those that all share.
pub(crate) fn warn_of(faults: &[CatalogError], database: Option<&Database>) {
    for fault in faults.iter().take(FAULTS_LISTED) {
        match database {
            Some(database) => {
                message("warning", format_args!("catalog of {}: {fault}", database.quoted_name()));
            }
            None => message("warning", format_args!("shared catalog: {fault}")),
        }
    }
    if let Some(omitted @ 1..) = faults.len().checked_sub(FAULTS_LISTED) {
        message("warning", format_args!("… and {omitted} more"));
    }
}

/// What files are of, by name, as far as the catalogs can be read.
pub(crate) struct FileNames {
    cluster: Cluster,
    dir: DataDir,
    known: BTreeMap<RelationLocator, Option<Arc<str>>>,
    /// What could not be read, and has been said.
    unread: BTreeSet<Oid>,
    /// Databases whose faults have been said.
    damaged: BTreeSet<Oid>,
}

impl FileNames {
    /// Of a directory whose files may be damaged: `None` if its catalog is not to be read, which is
    /// said on standard error, unless there is none at all.
    pub(crate) fn of(dir: &DataDir, settings: &Settings) -> Option<FileNames> {
        if !dir.path().join("global").join(RELATION_MAP_NAME).exists() {
            return None;
        }
        match Cluster::aside(dir, settings) {
            Ok(cluster) => {
                let (known, unread, damaged) = <_>::default();
                Some(FileNames { cluster, dir: dir.clone(), known, unread, damaged })
            }
            Err(failure) => {
                message("warning", format_args!("relations cannot be named: {failure}"));
                None
            }
        }
    }

    /// Database, schema and relation of a file.
    pub(crate) fn name(&mut self, path: &Path) -> Option<Arc<str>> {
        let locator = Place::of(&self.dir, path)?.locator()?;
        if let Some(known) = self.known.get(&locator) {
            return known.clone();
        }
        let found = self.look_up(locator);
        self.known.insert(locator, found.clone());
        found
    }

    fn look_up(&mut self, locator: RelationLocator) -> Option<Arc<str>> {
        // Every database knows those that all share.
        let shared = locator.database == Oid(0);
        let databases = self.cluster.catalog.databases().iter();
        let candidates: Vec<Oid> = databases
            .filter(|info| info.oid == locator.database || shared && info.allows_connections)
            .map(|info| info.oid)
            .collect();
        for oid in candidates {
            if self.unread.contains(&oid) {
                continue;
            }
            let Cluster { catalog, backend, .. } = &mut self.cluster;
            match catalog.database_by_oid(backend, oid) {
                Ok(Some(database)) => {
                    if self.damaged.insert(oid) {
                        warn_of(database.faults(), Some(&database));
                    }
                    let relation = database.relation_at(locator)?;
                    let name = database.qualified_name(relation);
                    let of = if shared { String::new() } else { database.quoted_name() + "." };
                    return Some(format!("{of}{name}").into());
                }
                Ok(None) => {}
                Err(error) => {
                    message("warning", format_args!("relations cannot be named: {error}"));
                    self.unread.insert(oid);
                }
            }
        }
        None
    }
}

/// A session of a pool, with the policy that the settings ask for.
pub(crate) fn backend(pool: &Pool, settings: &Settings) -> Result<Backend, Failure> {
    let mut backend = pool.backend(BackendType::Client).map_err(Failure::cannot_run)?;
    backend.set_policy(Policy {
        zero_damaged_pages: settings.zero_damaged_pages(),
        ignore_checksum_failure: settings.ignore_checksum_failure(),
    });
    Ok(backend)
}

/// Names as a directory's listing knows them, by numbers, and the database that everything is to be
/// of if nothing is named. Without a database names are numbers or paths already.
pub(crate) fn numbers(
    dir: &DataDir,
    settings: &Settings,
    database: &DatabaseArgs,
    names: &[PathBuf],
) -> Result<(Vec<PathBuf>, Option<Oid>), Failure> {
    let Some(name) = &database.dbname else { return Ok((names.to_vec(), None)) };
    let database = Cluster::aside(dir, settings)?.database(name)?;
    let names: Vec<OsString> = names.iter().map(|name| name.clone().into()).collect();
    let relations = relations(&database, &names)?;
    let locators = relations.iter().filter_map(|relation| relation.locator);
    let numbers = locators.map(|locator| PathBuf::from(locator.to_string())).collect();
    Ok((numbers, Some(database.info().oid)))
}

/// The relations with files that the names lead to, each once: a partitioned table is its
/// partitions, a partitioned index theirs.
pub(crate) fn relations<'d>(
    database: &'d Database,
    names: &[OsString],
) -> Result<Vec<&'d RelationInfo>, Failure> {
    let mut found: Vec<&RelationInfo> = Vec::new();
    for name in names {
        let named = database.resolve(name.as_bytes())?;
        let parts = if named.is_partitioned() { database.leaves(named) } else { vec![named] };
        if parts.is_empty() {
            let text = format!("{} has no partitions", database.qualified_name(named));
            return Err(Failure::usage(text));
        }
        for relation in parts {
            database.require_files(relation)?;
            if !found.iter().any(|known| known.oid == relation.oid) {
                found.push(relation);
            }
        }
    }
    Ok(found)
}
