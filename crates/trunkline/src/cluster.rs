//! The catalog of a data directory, for commands that take names.
//!
//! `-d DATABASE` says whose names they are, or DATABASE.SCHEMA.TABLE does. A command with a pool of
//! its own reads the catalog through that; others through a small one that ends with what is found.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use trunkline_aio::sync::Arc;
use trunkline_engine::catalog::{
    Catalog, CatalogError, Database, OnDamage, Place, QualifiedName, RelationInfo, Unreadable,
};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::pool::Backend;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_format::Oid;
use trunkline_format::catalog::RelationKind;
use trunkline_format::relmap::RELATION_MAP_NAME;

use crate::exit::{Failure, message};
use crate::pooled;
use crate::verify::elsewhere;

/// Buffers of the small pool: 4 MiB, as the catalogs of most databases need.
const BUFFERS: u32 = 512;

/// Faults of a catalog that are said.
const FAULTS_LISTED: usize = 100;

/// Which database names are of.
#[derive(Debug, clap::Args)]
pub(crate) struct DatabaseArgs {
    /// The database that names are of; a name may say it itself, as DATABASE.SCHEMA.TABLE.
    #[arg(short = 'd', long, value_name = "DATABASE")]
    pub(crate) dbname: Option<OsString>,
}

impl DatabaseArgs {
    /// The database that is named: by the option, or else by the first name that says one.
    pub(crate) fn of<'n>(
        &self,
        names: impl IntoIterator<Item = &'n OsString>,
    ) -> Result<Vec<u8>, Failure> {
        if let Some(name) = &self.dbname {
            return Ok(name.as_bytes().to_vec());
        }
        let parsed = |name: &OsString| QualifiedName::parse(name.as_bytes()).ok()?.database;
        names.into_iter().find_map(parsed).ok_or_else(|| {
            Failure::usage("no database given")
                .with_hint("use -d DATABASE, or DATABASE.SCHEMA.TABLE")
        })
    }
}

/// A catalog, and what it takes to read on.
pub(crate) struct Cluster {
    pub(crate) catalog: Catalog,
    pub(crate) backend: Backend,
    dir: DataDir,
}

impl Cluster {
    /// Reads it with the I/O that the settings ask for. What is damaged in it is left out, and said
    /// on standard error.
    pub(crate) fn open(dir: &DataDir, settings: &Settings) -> Result<Cluster, Failure> {
        let engine = pooled::open(settings, BUFFERS)?;
        let mut backend = engine.session()?;
        let cluster = engine.cluster_of(dir.clone());
        let catalog = cluster.read_catalog(&mut backend, OnDamage::Collect)?;
        warn_of(catalog.faults(), None);
        Ok(Cluster { catalog, backend, dir: dir.clone() })
    }

    /// Reads it aside, for a command whose own I/O is another matter.
    pub(crate) fn aside(dir: &DataDir, settings: &Settings) -> Result<Cluster, Failure> {
        let mut own = settings.clone();
        own.set("io_method", "sync")?;
        own.set("io_direct", "")?;
        Self::open(dir, &own)
    }

    /// The database that the option names; what is damaged in its catalogs is said on standard error.
    pub(crate) fn database(&mut self, name: &[u8]) -> Result<Arc<Database>, Failure> {
        let database = self.catalog.database(&mut self.backend, name);
        let database = database.map_err(|error| unread(error, &self.dir))?;
        warn_of(database.faults(), Some(&database));
        Ok(database)
    }
}

/// Why a database cannot be read: where its tablespace was moved, with the way to it.
pub(crate) fn unread(error: CatalogError, dir: &DataDir) -> Failure {
    let target = match &error {
        CatalogError::MapMissing { path } => dir.dangling_link(path),
        _ => None,
    };
    let failure = Failure::from(error);
    match target {
        Some(target) => failure.with_hint(elsewhere(&target)),
        None => failure,
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

/// What names lead to, as a directory's listing knows it: by numbers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Everything: nothing is named.
    Everything,
    /// All that is of this database.
    Database(Oid),
    /// These relations and files; none, if all that is named has no files.
    These(Vec<PathBuf>),
}

impl Named {
    /// What is meant by `names` with these options. Without a database a name is DATABASE.SCHEMA.TABLE,
    /// or else numbers or a path, which are taken as they are.
    pub(crate) fn of(
        dir: &DataDir,
        settings: &Settings,
        args: &DatabaseArgs,
        names: &[PathBuf],
    ) -> Result<Named, Failure> {
        let database_of = |name: &Path| {
            let name = name.as_os_str().as_bytes();
            // Paths have slashes, but names may too, within quotes.
            let is_path = name.contains(&b'/') && !name.contains(&b'"');
            QualifiedName::parse(name).ok()?.database.filter(|_| !is_path)
        };
        if args.dbname.is_none() && names.iter().all(|name| database_of(name).is_none()) {
            let names = names.to_vec();
            return Ok(if names.is_empty() { Named::Everything } else { Named::These(names) });
        }
        let mut cluster = Cluster::aside(dir, settings)?;
        if let (Some(name), []) = (&args.dbname, names) {
            return Ok(Named::Database(cluster.database(name.as_bytes())?.info().oid));
        }
        let mut found: Vec<PathBuf> = Vec::new();
        let mut last: Option<(Vec<u8>, Arc<Database>)> = None;
        for name in names {
            let given = args.dbname.as_ref().map(|name| name.as_bytes().to_vec());
            let Some(of) = given.or_else(|| database_of(name)) else {
                found.push(name.clone());
                continue;
            };
            let database = match last.take() {
                Some((known, database)) if known == of => database,
                _ => cluster.database(&of)?,
            };
            for relation in relations(&database, &[name.clone().into()])? {
                let Some(locator) = relation.locator else { continue };
                let place = dir.path().join("pg_tblspc").join(locator.tablespace.to_string());
                if let Some(target) = dir.dangling_link(&place) {
                    let name = database.qualified_name(relation);
                    let target_shown = target.display();
                    let text = format!("{name} is in \"{target_shown}\", which is not there");
                    return Err(Failure::cannot_run(text).with_hint(elsewhere(&target)));
                }
                let number = PathBuf::from(locator.to_string());
                if !found.contains(&number) {
                    found.push(number);
                }
            }
            last = Some((of, database));
        }
        Ok(Named::These(found))
    }
}

/// The relations with files that the names lead to, each once: a partitioned table is its
/// partitions, a partitioned index theirs. A partition that is on another server is left out with a
/// note, as is a table that has no partitions.
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
            message("note", text);
        }
        for relation in parts {
            match database.require_files(relation) {
                Err(error) if relation.oid != named.oid && is_foreign(&error) => {
                    message("note", format_args!("{error}; it is left out"));
                    continue;
                }
                other => other?,
            }
            if !found.iter().any(|known| known.oid == relation.oid) {
                found.push(relation);
            }
        }
    }
    Ok(found)
}

/// Whether a relation cannot be read because its rows are on another server.
pub(crate) fn is_foreign(error: &CatalogError) -> bool {
    let kind = Unreadable::Kind(RelationKind::ForeignTable);
    matches!(error, CatalogError::NotReadable { reason, .. } if *reason == kind)
}
