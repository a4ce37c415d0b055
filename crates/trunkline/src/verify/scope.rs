//! Selects which part of a cluster to check: the whole cluster, one database, or some of a
//! database's relations.
//!
//! If a table is named, we also check its TOAST table and the indexes of both tables. If a
//! partitioned table is named, we check its partitions instead.

use std::ffi::OsString;

use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::End;
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{self, Only, VerifyReport};
use trunkline_format::Oid;

use crate::catalog_session::CatalogSession;
use crate::exit::Failure;
use crate::named_files::{RelationNames, relations_with_files};
use crate::options::DatabaseArgs;

/// A part of a cluster.
pub(super) struct Scope {
    /// The files to check page by page.
    pub(super) pages: verify::Scope,
    /// The relations to check rows and indexes of; `None` for everything.
    pub(super) only: Option<Vec<Only>>,
}

impl Scope {
    /// Resolves the options.
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
        let mut session = CatalogSession::open_with_sync_io(dir, settings)?;
        if names.is_empty() {
            let oid = session.database_oid(&name)?;
            let only = vec![Only { database: oid, relation: None }];
            return Ok(Scope { pages: verify::Scope::Database(oid), only: Some(only) });
        }
        let database = session.database(&name)?;
        let oid = database.info().oid;
        let relations = relations_with_files(&database, names)?;
        let only = |relation: Oid| Only { database: oid, relation: Some(relation) };
        let parts = relations.iter().flat_map(|relation| database.parts(relation));
        let locators = parts.filter_map(|part| part.locator).collect();
        Ok(Scope {
            pages: verify::Scope::Relations(locators),
            only: Some(relations.iter().map(|relation| only(relation.oid)).collect()),
        })
    }
}

/// Adds relation names to findings and unchecked pages that have only a path.
///
/// We skip this if the check was interrupted. The user is waiting for the command to end, and if
/// the interrupt was sent because the file system hangs, reading the catalog would hang as well.
pub(super) fn name_relations(report: &mut VerifyReport, dir: &DataDir, settings: &Settings) {
    let is_unnamed = report.findings.iter().any(|finding| finding.relation.is_none());
    if report.end != End::Complete || !is_unnamed && report.unchecked.is_empty() {
        return;
    }
    let Some(mut names) = RelationNames::open(dir, settings) else { return };
    for finding in report.findings.iter_mut().filter(|finding| finding.relation.is_none()) {
        finding.relation = names.of_file(&finding.path);
    }
    for unchecked in &mut report.unchecked {
        unchecked.relation = names.of_file(&unchecked.path);
    }
}
