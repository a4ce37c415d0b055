//! Rows whose visibility is unknown because a file of the commit log or of multixacts is missing,
//! short or unreadable.
//!
//! If such a file is missing, we don't know the visibility of any row that it covers, unless the row
//! has hint bits. Nothing is wrong with these rows. Instead of one finding for each of them, we
//! therefore add a single finding for the file, with the number of rows.
//!
//! We may come across a row of a catalog twice: when we read the catalogs to find the tables, and
//! again when we check the catalog like any other table. We must count such a row only once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trunkline_aio::facade::hash::Set;
use trunkline_aio::facade::{Arc, Mutex};

use super::content_problem::ContentProblem;
use super::finding::{Finding, FindingKind};
use crate::Location;
use crate::catalog::CatalogError;
use crate::heap::RowProblem;
use crate::transactions::TransactionError;

/// Why we needed the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// To find out whether a row is visible.
    Row,
    /// To find out whether the chunks of a TOAST value are visible.
    Value,
}

/// The files that are missing, short or unreadable, with the number of rows that needed them. All
/// workers add to it.
#[derive(Debug, Default)]
pub(super) struct StatusFiles(Mutex<BTreeMap<PathBuf, StatusFile>>);

/// One such file.
#[derive(Debug)]
struct StatusFile {
    /// The error for the first row, in the order of relation names and places.
    error: TransactionError,
    /// That row, with the name of its relation.
    first: (Arc<str>, Location),
    rows: u64,
    values: u64,
    /// Rows of catalogs that we have already counted when we read the catalogs.
    catalog_rows: Set<(PathBuf, Option<u32>, Option<u16>)>,
}

impl StatusFiles {
    /// Records that we needed the file that `error` is about for the row of `relation` at
    /// `location`. Returns false if `error` isn't about a file, in which case the row itself is
    /// damaged.
    pub(super) fn add(
        &self,
        error: &TransactionError,
        needed: Needed,
        relation: &Arc<str>,
        location: &Location,
    ) -> bool {
        self.record(error, needed, relation, location, false)
    }

    /// Like [`Self::add`], but for a row that we needed to find the tables. Returns false if `fault`
    /// isn't about such a row.
    pub(super) fn add_catalog_row(&self, fault: &CatalogError) -> bool {
        let CatalogError::HeapRow(row) = fault else { return false };
        let RowProblem::Transaction(error) = &row.problem else { return false };
        let relation = format!("catalog file \"{}\"", row.location.path().display());
        self.record(error, Needed::Row, &relation.into(), &row.location, true)
    }

    fn record(
        &self,
        error: &TransactionError,
        needed: Needed,
        relation: &Arc<str>,
        location: &Location,
        catalog: bool,
    ) -> bool {
        let Some(fault) = error.file_fault() else { return false };
        let mut files = self.0.lock();
        let first = || (Arc::clone(relation), location.clone());
        let file = files.entry(fault.path.clone()).or_insert_with(|| StatusFile {
            error: error.clone(),
            first: first(),
            rows: 0,
            values: 0,
            catalog_rows: Set::default(),
        });
        if place(relation, location) < place(&file.first.0, &file.first.1) {
            (file.error, file.first) = (error.clone(), first());
        }
        if needed == Needed::Value {
            file.values += 1;
            return true;
        }
        let is_known = (catalog || !file.catalog_rows.is_empty()) && {
            let key = (location.path().to_owned(), location.block(), location.item());
            if catalog { !file.catalog_rows.insert(key) } else { file.catalog_rows.contains(&key) }
        };
        file.rows += u64::from(!is_known);
        true
    }

    /// Returns one finding for each file.
    pub(super) fn take(&self) -> Vec<Finding> {
        let files = std::mem::take(&mut *self.0.lock());
        let finding = |(path, file): (PathBuf, StatusFile)| {
            let StatusFile { error, first: (relation, location), rows, values, .. } = file;
            let (block, item) = (location.block(), location.item());
            let ctid = match (block, item) {
                (Some(block), Some(item)) => format!("({block},{item})"),
                _ => location.to_string(),
            };
            let (error, first) = (error.to_string(), format!("{ctid} of {relation}"));
            let problem = ContentProblem::StatusFile { error, rows, values, first };
            let kind = FindingKind::Content(problem);
            Finding { path, relation: None, block: None, item: None, kind, more: 0 }
        };
        files.into_iter().map(finding).collect()
    }
}

/// The sort key of a row. We sort rows because workers check the tables in any order, on which the
/// report must not depend.
fn place<'l>(relation: &'l str, location: &Location) -> (&'l str, Option<u32>, Option<u16>) {
    (relation, location.block(), location.item())
}
