//! Turns errors in the catalogs into findings.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::Arc;

use super::content_problem::{ContentProblem, InvalidTarget};
use super::finding::{Finding, FindingKind};
use super::length_bound::LengthProof;
use crate::catalog::CatalogError;
use crate::datadir::{DataDir, DataDirError, ProblemKind};
use crate::heap::HeapError;
use crate::storage::StorageError;

/// Returns the finding for a fault in the catalogs of a database, or in the shared catalogs.
pub(super) fn finding_of(dir: &DataDir, database: Option<&str>, fault: &CatalogError) -> Finding {
    let unreadable = |text| FindingKind::Content(ContentProblem::Unreadable(text));
    let mut relation: Option<Arc<str>> = database.map(Into::into);
    if let CatalogError::Short { table, .. }
    | CatalogError::NewPage { table, .. }
    | CatalogError::File { table, .. } = fault
    {
        let database = database.filter(|_| !table.shared);
        let database = database.map(|name| format!("{name}.")).unwrap_or_default();
        relation = Some(format!("{database}pg_catalog.{}", table.name).into());
    }
    let (path, block, item, kind) = match (fault, file_fault(fault)) {
        (_, Some((path, kind))) => (path, None, None, kind),
        (CatalogError::Short { path, table, found, expected, row }, None) => {
            let proof = LengthProof::Entry { index: table.index.name.into(), row: *row };
            let kind = FindingKind::Short { found: *found, expected: *expected, proof };
            (path.clone(), None, None, kind)
        }
        (CatalogError::NewPage { path, table, row }, None) => {
            let (index, found) = (table.index.name.to_owned(), InvalidTarget::NewPage);
            let kind = FindingKind::Content(ContentProblem::EntryTarget { index, found });
            (path.clone(), Some(row.block), Some(row.item), kind)
        }
        (CatalogError::Row { location, source }, None) => (
            location.path().to_owned(),
            location.block(),
            location.item(),
            unreadable(source.to_string()),
        ),
        (CatalogError::HeapRow(row), None) => (
            row.location.path().to_owned(),
            row.location.block(),
            row.location.item(),
            unreadable(row.problem.to_string()),
        ),
        (other, None) => {
            let location = match other {
                CatalogError::Heap(HeapError::Read(error)) => error.location(),
                _ => None,
            };
            let path = location.map_or(dir.path(), |location| location.path());
            let block = location.and_then(|location| location.block());
            (path.to_owned(), block, None, unreadable(other.to_string()))
        }
    };
    Finding { path, relation, block, item, kind, more: 0 }
}

/// Whether the fault is a page of a catalog that can't be read. Verifying the pages of that file
/// reports the same page.
pub(super) fn is_of_page(fault: &CatalogError) -> bool {
    let CatalogError::Heap(HeapError::Read(error)) = fault else { return false };
    error.block().is_some()
}

/// Returns the file, if the fault is a file that is missing or that can't be opened.
fn file_fault(fault: &CatalogError) -> Option<(PathBuf, FindingKind)> {
    let missing = |path: &Path| (path.to_owned(), FindingKind::File(ProblemKind::Missing));
    let (path, source) = match fault {
        CatalogError::MapMissing { path } => {
            // If the whole directory is missing, report that instead of just one file in it.
            let directory = path.parent().filter(|directory| !directory.exists());
            return Some(missing(directory.unwrap_or(path)));
        }
        CatalogError::Directory(DataDirError::Io { path, source, .. })
        | CatalogError::File { source: StorageError::Io { path, source, .. }, .. } => {
            (path, source)
        }
        CatalogError::File { source: StorageError::SegmentMissing { location }, .. } => {
            return Some(missing(location.path()));
        }
        _ => return None,
    };
    // We have to rebuild the error, because an io::Error cannot be cloned.
    let source = match source.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => source.kind().into(),
    };
    Some((path.to_owned(), FindingKind::NotOpened(source)))
}
