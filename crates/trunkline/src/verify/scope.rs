//! Which part of a cluster is meant: all of it, a database, or relations of one by name.
//!
//! A table means its TOAST table and the indexes of both as well, a partitioned table its
//! partitions.

use std::ffi::OsString;

use trunkline_engine::datadir::{DataDir, FileEntry};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::verify::Only;
use trunkline_format::Oid;

use crate::cluster::{self, Cluster, DatabaseArgs};
use crate::exit::Failure;

/// A part of a cluster.
pub(super) struct Scope {
    /// For the contents.
    pub(super) only: Vec<Only>,
    database: Oid,
    /// For the pages; `None`: all files of the database.
    locators: Option<Vec<RelationLocator>>,
}

impl Scope {
    /// What the options name; `None`: everything.
    pub(super) fn of(
        dir: &DataDir,
        settings: &Settings,
        database: &DatabaseArgs,
        names: &[OsString],
    ) -> Result<Option<Scope>, Failure> {
        let Some(name) = &database.dbname else { return Ok(None) };
        let mut cluster = Cluster::aside(dir, settings)?;
        let database = cluster.database(name)?;
        let oid = database.info().oid;
        if names.is_empty() {
            let only = vec![Only { database: oid, relation: None }];
            return Ok(Some(Scope { only, database: oid, locators: None }));
        }
        let relations = cluster::relations(&database, names)?;
        let only = |relation: Oid| Only { database: oid, relation: Some(relation) };
        let mut oids: Vec<Oid> = relations.iter().map(|relation| relation.oid).collect();
        let only = oids.iter().copied().map(only).collect();
        // First the TOAST tables, then the indexes of all.
        oids.extend(relations.iter().map(|relation| relation.toast));
        let tables = oids.clone();
        let indexes = tables.iter().flat_map(|table| database.indexes_of(*table));
        oids.extend(indexes.map(|row| row.index));
        let locators = oids.iter().filter_map(|oid| database.relation(*oid)?.locator).collect();
        Ok(Some(Scope { only, database: oid, locators: Some(locators) }))
    }

    /// Their files.
    pub(super) fn files(&self, dir: &DataDir) -> Vec<FileEntry> {
        let mut files = dir.relation_files().files;
        files.retain(|file| {
            let FileEntry { tablespace, database, relfilenode, .. } = *file;
            let locator = RelationLocator { tablespace, database, relfilenode };
            match &self.locators {
                None => database == self.database,
                Some(locators) => locators.contains(&locator),
            }
        });
        files
    }
}
