//! Which part of a cluster is meant: all of it, a database, or relations of one by name.
//!
//! A table means its TOAST table and the indexes of both as well, a partitioned table its
//! partitions.

use std::ffi::OsString;

use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::End;
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{self, Only, VerifyReport};
use trunkline_format::Oid;

use crate::cluster::{self, Cluster, DatabaseArgs, FileNames};
use crate::exit::Failure;

/// A part of a cluster.
pub(super) struct Scope {
    /// For the pages.
    pub(super) pages: verify::Scope,
    /// For the contents; `None`: everything.
    pub(super) only: Option<Vec<Only>>,
}

impl Scope {
    /// What the options name.
    pub(super) fn of(
        dir: &DataDir,
        settings: &Settings,
        database: &DatabaseArgs,
        names: &[OsString],
    ) -> Result<Scope, Failure> {
        if database.dbname.is_none() && names.is_empty() {
            return Ok(Scope { pages: verify::Scope::Everything, only: None });
        }
        let name = database.of(names)?;
        let mut cluster = Cluster::aside(dir, settings)?;
        let database = cluster.database(&name)?;
        let oid = database.info().oid;
        if names.is_empty() {
            let only = vec![Only { database: oid, relation: None }];
            return Ok(Scope { pages: verify::Scope::Database(oid), only: Some(only) });
        }
        let relations = cluster::relations(&database, names)?;
        let only = |relation: Oid| Only { database: oid, relation: Some(relation) };
        let parts = relations.iter().flat_map(|relation| database.parts(relation));
        let locators = parts.filter_map(|part| part.locator).collect();
        Ok(Scope {
            pages: verify::Scope::Relations(locators),
            only: Some(relations.iter().map(|relation| only(relation.oid)).collect()),
        })
    }
}

/// Says whose files the findings are of. Not after an interruption: somebody waits for the end, and
/// a file system that hangs would do so again.
pub(super) fn name_relations(report: &mut VerifyReport, dir: &DataDir, settings: &Settings) {
    let nameless = |report: &VerifyReport| report.findings.iter().any(|it| it.relation.is_none());
    if report.end != End::Complete || !nameless(report) {
        return;
    }
    let Some(mut names) = FileNames::of(dir, settings) else { return };
    for finding in report.findings.iter_mut().filter(|finding| finding.relation.is_none()) {
        finding.relation = names.name(&finding.path);
    }
}
