//! Maps relation names to files and back.
//!
//! [`FileSelection`] turns the names on a command line into file numbers, and reads the catalog
//! only if one of the names requires it. [`RelationNames`] turns the paths in findings into
//! relation names. Both must still work if the catalog is damaged. The user can always give a file
//! number instead of a name, and a finding is useful even without a relation name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::Arc;
use trunkline_engine::catalog::{
    CatalogError, Database, QualifiedName, RelationInfo, RelationPath, Unreadable,
};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::pool::ReadError;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{RelationLocator, StorageError};
use trunkline_format::catalog::{Persistence, RelationKind};
use trunkline_format::relmap::RELATION_MAP_NAME;
use trunkline_format::{Fork, Oid};

use crate::catalog_session::{CatalogSession, warn_of_damage};
use crate::data_dir::moved_tablespace_hint;
use crate::encoding::resolve;
use crate::exit::{Failure, message};
use crate::options::DatabaseArgs;

/// The files referenced by the names on a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileSelection {
    /// No name was given.
    Everything,
    /// All files of this database.
    Database(Oid),
    /// The files to select: the named relations, as paths with file numbers, and the files given by
    /// path. The list is empty if the named relations have no files.
    Listed(Vec<PathBuf>),
}

impl FileSelection {
    /// Resolves `names`. With `-d`, all of them are relation names. Without `-d`, a name of the
    /// form DATABASE.SCHEMA.TABLE is a relation name, and if PGDATABASE is set, so is any name
    /// without a slash. Any other name is either a relation's file number or a path. `fork` is the
    /// one that is needed, by default the main fork.
    pub(crate) fn resolve(
        dir: &DataDir,
        settings: &Settings,
        args: &DatabaseArgs,
        names: &[PathBuf],
        fork: Option<Fork>,
    ) -> Result<FileSelection, Failure> {
        let database_of = |name: &Path| database_of_name(name.as_os_str());
        if args.dbname.is_none() && names.iter().all(|name| database_of(name).is_none()) {
            return Ok(match names {
                [] => FileSelection::Everything,
                names => FileSelection::Listed(names.to_vec()),
            });
        }
        let mut session = CatalogSession::open_with_sync_io(dir, settings)?;
        if let (Some(name), []) = (&args.dbname, names) {
            return Ok(FileSelection::Database(session.database_oid(name.as_bytes())?));
        }
        let mut listed: Vec<PathBuf> = Vec::new();
        // Consecutive names are often in the same database.
        let mut last: Option<(Vec<u8>, Arc<Database>)> = None;
        for name in names {
            let given = args.dbname.as_ref().map(|name| name.as_bytes().to_vec());
            let Some(of) = given.or_else(|| database_of(name)) else {
                listed.push(name.clone());
                continue;
            };
            let database = match last.take() {
                Some((known, database)) if known == of => database,
                _ => session.database(&of)?,
            };
            for relation in relations_with_files(&database, &[name.clone().into()])? {
                let Some(locator) = relation.locator else { continue };
                require_fork(dir, &database, relation, fork)?;
                let numbers = PathBuf::from(locator.to_string());
                if !listed.contains(&numbers) {
                    listed.push(numbers);
                }
            }
            last = Some((of, database));
        }
        Ok(FileSelection::Listed(listed))
    }
}

/// Checks that a fork of a relation, by default the main fork, is not in a tablespace that has been
/// moved, and that the first file of a main fork exists. Without it, the relation is damaged, so this
/// is a finding and not a mistake in the command line.
pub(crate) fn require_fork(
    dir: &DataDir,
    database: &Database,
    relation: &RelationInfo,
    fork: Option<Fork>,
) -> Result<(), Failure> {
    let Some(main) = database.files(relation) else { return Ok(()) };
    if let Some(target) = dir.dangling_link(&main.path(0)) {
        let (name, shown) = (database.qualified_name(relation), target.display());
        let text = format!("{name} is in \"{shown}\", which does not exist");
        return Err(Failure::cannot_run(text).with_hint(moved_tablespace_hint(&target)));
    }
    let is_main = fork.is_none_or(|fork| fork == Fork::Main);
    if !is_main || !relation.has_main_fork() || is_reset_by_recovery(dir, relation) {
        return Ok(());
    }
    match main.blocks() {
        Err(error @ StorageError::SegmentMissing { .. }) => Err(ReadError::Storage(error).into()),
        _ => Ok(()),
    }
}

/// Whether recovery will make the main fork of a relation from its init fork. The main fork of an
/// unlogged relation is not in a base backup or a standby.
pub(crate) fn is_reset_by_recovery(dir: &DataDir, relation: &RelationInfo) -> bool {
    relation.persistence == Persistence::Unlogged && !dir.is_clean()
}

/// The database of a relation name given without `-d`: its own, or `$PGDATABASE`. `None` for a path
/// or file numbers.
pub(crate) fn database_of_name(name: &OsStr) -> Option<Vec<u8>> {
    let name = name.as_bytes();
    // Note that a quoted name may contain a slash, too.
    if name.contains(&b'/') && !name.contains(&b'"') {
        return None;
    }
    QualifiedName::parse(name).ok()?.database.or_else(DatabaseArgs::default_name)
}

/// The relations with files referenced by `names`, each listed once.
///
/// We replace a partitioned table or index with its partitions. If a partition is a foreign table,
/// or if a partitioned table has no partitions at all, we print a note and skip it.
pub(crate) fn relations_with_files<'d>(
    database: &'d Database,
    names: &[OsString],
) -> Result<Vec<&'d RelationInfo>, Failure> {
    let mut relations: Vec<&RelationInfo> = Vec::new();
    for name in names {
        let named = resolve(database, name)?;
        let parts = database.leaves(named);
        if parts.is_empty() {
            let text = format!("{} has no partitions", database.qualified_name(named));
            message("note", text);
        }
        for relation in parts {
            match database.require_files(relation) {
                Err(error) if relation.oid != named.oid && is_foreign(&error) => {
                    message("note", format_args!("{error}; skipped"));
                    continue;
                }
                other => other?,
            }
            if !relations.iter().any(|known| known.oid == relation.oid) {
                relations.push(relation);
            }
        }
    }
    Ok(relations)
}

/// Whether a relation cannot be read because its rows are on another server.
fn is_foreign(error: &CatalogError) -> bool {
    let kind = Unreadable::Kind(RelationKind::ForeignTable);
    matches!(error, CatalogError::NotReadable { reason, .. } if *reason == kind)
}

/// Looks up the names of relations by file path, as far as the catalogs can be read.
///
/// We read a database's catalogs the first time one of its files is looked up. The result is cached
/// even if it is a failure, so that each database causes only one warning.
pub(crate) struct RelationNames {
    session: CatalogSession,
    dir: DataDir,
    names: BTreeMap<RelationLocator, Option<Arc<str>>>,
    /// Databases that could not be read; a warning was printed for each.
    unreadable: BTreeSet<Oid>,
    /// Databases whose damaged rows were reported.
    reported: BTreeSet<Oid>,
}

impl RelationNames {
    /// Opens the shared catalogs. If they can't be read, prints a warning and returns `None`. If
    /// the directory contains no catalog at all, returns `None` without a warning.
    pub(crate) fn open(dir: &DataDir, settings: &Settings) -> Option<RelationNames> {
        if !dir.path().join("global").join(RELATION_MAP_NAME).exists() {
            return None;
        }
        match CatalogSession::open_with_sync_io(dir, settings) {
            Ok(session) => {
                let (names, unreadable, reported) = <_>::default();
                Some(RelationNames { session, dir: dir.clone(), names, unreadable, reported })
            }
            Err(failure) => {
                message("warning", format_args!("could not look up relation names: {failure}"));
                None
            }
        }
    }

    /// Returns the name of the relation that a file belongs to, including its database and schema.
    pub(crate) fn of_file(&mut self, path: &Path) -> Option<Arc<str>> {
        self.of_locator(RelationPath::of(&self.dir, path)?.locator()?)
    }

    /// Returns the name of the relation with these file numbers.
    pub(crate) fn of_locator(&mut self, locator: RelationLocator) -> Option<Arc<str>> {
        if let Some(known) = self.names.get(&locator) {
            return known.clone();
        }
        let name = self.look_up(locator);
        self.names.insert(locator, name.clone());
        name
    }

    /// Looks for the relation in the catalogs of each database that may contain it, and stops at
    /// the first one that does.
    fn look_up(&mut self, locator: RelationLocator) -> Option<Arc<str>> {
        // A shared relation has a pg_class row in every database, so it's enough to read the
        // catalogs of any one database.
        let shared = locator.database == Oid(0);
        let databases = self.session.catalog.databases().iter();
        let candidates: Vec<Oid> = databases
            .filter(|info| info.oid == locator.database || shared && info.allows_connections)
            .map(|info| info.oid)
            .collect();
        for oid in candidates {
            if self.unreadable.contains(&oid) {
                continue;
            }
            let CatalogSession { catalog, backend, .. } = &mut self.session;
            match catalog.database_by_oid(backend, oid) {
                Ok(Some(database)) => {
                    if self.reported.insert(oid) {
                        warn_of_damage(database.faults(), Some(&database));
                    }
                    let relation = database.relation_at(locator)?;
                    let name = database.qualified_name(relation);
                    let of = if shared { String::new() } else { database.quoted_name() + "." };
                    return Some(format!("{of}{name}").into());
                }
                Ok(None) => {}
                Err(error) => {
                    message("warning", format_args!("could not look up relation names: {error}"));
                    self.unreadable.insert(oid);
                }
            }
        }
        None
    }
}
