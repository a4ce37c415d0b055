//! Compares the files that the catalogs name with the files that exist.
//!
//! If a backup has lost a file, a directory or the end of a table, all of its remaining pages are
//! still valid. To find out what is missing, we have to look at the catalogs, and at references in
//! the pages that remain:
//!
//! ```text
//!   pg_database, pg_class ──▶ relations ──▶ is each file there?
//!                                │
//!   all pages of B-trees, ───────┴────────▶ is each file long enough?   (`length_bound.rs`)
//!   visibility maps
//! ```
//!
//! We read the catalogs before we verify the pages, and compare the lengths afterwards. We must
//! verify the pages even if the catalogs are damaged. In that case we add findings about the damage,
//! and report that we could not compare the relations that it affects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::catalog::Persistence;
use trunkline_format::segment::segment_of;
use trunkline_format::{BlockNo, Fork, Oid, PageBytes, RelationFile, SEGMENT_BLOCKS};

use super::catalog_fault;
use super::catalog_summary::{CatalogSummary, DoubtfulLength};
use super::cataloged_relation::{CatalogedRelation, StorageKind};
use super::content_report::Skipped;
use super::finding::{Finding, FindingKind};
use super::finding_log::FindingLog;
use super::length_bound::{LengthBound, LengthBounds};
use super::scope::{Scope, locator_of};
use super::status_files::StatusFiles;
use crate::catalog::{Catalog, CatalogError, Database, OnDamage, RelationPath, first_file};
use crate::datadir::{DataDir, FileEntry, FileList, ProblemKind};
use crate::pool::Backend;
use crate::storage::{RelationLocator, Storage};

/// The relations in the catalogs of a cluster, and the references to their pages.
#[derive(Debug)]
pub struct CatalogFiles {
    dir: DataDir,
    relations: BTreeMap<RelationLocator, CatalogedRelation>,
    bounds: LengthBounds,
    /// Whether the cluster was shut down cleanly. Otherwise, the files may not match the catalogs.
    clean: bool,
    /// Damage in the catalogs that we haven't reported yet.
    faults: Mutex<Vec<Fault>>,
    /// Files of the commit log that rows of the catalogs need, but that are missing, short or
    /// unreadable. `None` if the caller will check contents, which reports these files with all of
    /// their rows.
    status_files: Option<StatusFiles>,
    skipped: Vec<Skipped>,
}

/// Damage in a catalog.
#[derive(Debug)]
struct Fault {
    finding: Finding,
    /// Whether the finding is about a page that cannot be read. If we verify the pages of that
    /// file, we will find it again.
    of_page: bool,
}

impl CatalogFiles {
    /// Reads the catalogs of all databases within a scope. This never fails: if we can't read
    /// something, it becomes a finding of the verification. If the caller will also call
    /// [`verify_contents`](super::verify_contents), `checks_contents` must be true, so that a
    /// missing file of the commit log isn't reported twice.
    pub fn read(
        dir: &DataDir,
        storage: &Storage,
        backend: &mut Backend,
        scope: &Scope,
        checks_contents: bool,
    ) -> Self {
        let clean = dir.is_clean();
        let mut files = Self {
            dir: dir.clone(),
            relations: BTreeMap::new(),
            bounds: LengthBounds::default(),
            clean,
            faults: Mutex::default(),
            status_files: (!checks_contents).then(StatusFiles::default),
            skipped: Vec::new(),
        };
        // Even if a catalog has lost pages, we want the other damage in the catalogs, too.
        match Catalog::open_with(dir, storage, backend, OnDamage::Rescue) {
            Ok(catalog) => files.add_databases(&catalog, backend, scope),
            Err(error) => {
                files.fault(None, &error);
                files.skip("all databases", error.to_string());
            }
        }
        if !clean {
            let reason = "lengths, because the cluster was not shut down cleanly and the files lack \
                          its newest changes; a missing file may be one that was dropped";
            files.skip("all databases", reason.to_owned());
        }
        files
    }

    fn add_databases(&mut self, catalog: &Catalog, backend: &mut Backend, scope: &Scope) {
        for fault in catalog.faults() {
            self.fault(None, fault);
        }
        let lost = catalog.faults().iter().find(|fault| fault.lost_pages());
        if let Some(fault) = lost {
            self.skip("all databases", fault.to_string());
        }
        for info in catalog.databases().iter().filter(|info| scope.has_database(info.oid)) {
            let name = crate::catalog::quoted(&info.name);
            match catalog.database(backend, &info.name) {
                Ok(database) => {
                    for fault in database.faults() {
                        self.fault(Some(&name), fault);
                    }
                    // Rows of shared catalogs are missing, so nothing is compared.
                    if lost.is_none() {
                        self.add_relations(&database, scope);
                    }
                }
                Err(error @ CatalogError::InvalidDatabase { .. }) => {
                    self.skip(&name, error.to_string());
                }
                Err(error) => {
                    self.fault(Some(&name), &error);
                    self.skip(&name, error.to_string());
                }
            }
        }
    }

    fn add_relations(&mut self, database: &Database, scope: &Scope) {
        let name = database.quoted_name();
        let faults = database.faults();
        if let Some(fault) = faults.iter().find(|fault| fault.lost_pages()) {
            self.skip(&name, fault.to_string());
            return;
        }
        if let Some(first) = faults.first() {
            let reason = format!("some relations, as catalogs are damaged: {first}");
            self.skip(&name, reason);
        }
        let tables = database.relations().iter();
        let rows = tables.flat_map(|table| database.indexes_of(table.oid));
        let indexes: Map<Oid, _> = rows.map(|row| (row.index, row)).collect();
        for relation in database.relations() {
            let index = indexes.get(&relation.oid).copied();
            match (relation.locator, database.require_files(relation)) {
                // The shared relations are listed in every database.
                (Some(locator), _) if scope.has_relation(locator) => {
                    let cataloged = CatalogedRelation::of(database, relation, index);
                    if !cataloged.has_main {
                        let reason = "not a heap, so its access method decides which files it has";
                        self.skip(&cataloged.name, reason.to_owned());
                    }
                    self.relations.entry(locator).or_insert(cataloged);
                }
                // The server removes the files of temporary relations when it starts.
                (None, Err(error))
                    if relation.kind.has_storage()
                        && relation.persistence != Persistence::Temporary =>
                {
                    self.skip(&name, error.to_string());
                }
                _ => {}
            }
        }
    }

    fn fault(&mut self, database: Option<&str>, fault: &CatalogError) {
        if fault.file_fault().is_some() {
            if let Some(files) = &self.status_files {
                files.add_catalog_row(fault);
            }
            return;
        }
        let finding = catalog_fault::finding_of(&self.dir, database, fault);
        let of_page = catalog_fault::is_of_page(fault);
        self.faults.lock().push(Fault { finding, of_page });
    }

    fn skip(&mut self, what: &str, reason: String) {
        self.skipped.push(Skipped { relation: what.into(), reason });
    }

    /// Returns the name of the relation that a file belongs to.
    pub(super) fn name_of(&self, path: &Path) -> Option<Arc<str>> {
        let locator = RelationPath::of(&self.dir, path)?.locator()?;
        Some(Arc::clone(&self.relations.get(&locator)?.name))
    }

    /// Whether the file belongs to a relation of the catalogs that isn't just being built.
    pub(super) fn is_built(&self, file: &FileEntry) -> bool {
        self.relations.get(&locator_of(file)).is_some_and(CatalogedRelation::is_built)
    }

    /// Whether the file belongs to a relation of a kind whose records can all be replayed.
    pub(super) fn has_rules(&self, file: &FileEntry) -> bool {
        self.relations.get(&locator_of(file)).is_some_and(CatalogedRelation::has_rules)
    }

    /// Records that some pages of a file could not be read. References in these pages are lost, so
    /// if the file belongs to a B-tree, it no longer proves any length.
    pub(super) fn pages_failed(&self, file: &FileEntry) {
        if file.fork == Fork::Main {
            self.bounds.mark_incomplete(locator_of(file));
        }
    }

    /// Collects the references to other pages in pages that were read. Bit n of `bad` is set if page
    /// n is invalid.
    pub(super) fn pages_read(&self, file: &FileEntry, first: BlockNo, pages: &[u8], bad: u128) {
        if bad != 0 {
            self.pages_failed(file);
        }
        let locator = locator_of(file);
        let Some(relation) = self.relations.get(&locator).filter(|_| self.clean) else { return };
        let pages: &[PageBytes] = pages.as_chunks().0;
        let good = (0_u32..).zip(pages).filter(|(at, _)| bad >> at & 1 == 0);
        let good = good.map(|(at, page)| (first.wrapping_add(at), page));
        match (&relation.storage, file.fork) {
            (StorageKind::Heap { .. }, Fork::Vm) => self.bounds.map_pages(locator, good),
            (StorageKind::Btree { table: Some(table) }, Fork::Main) => {
                self.bounds.btree_pages(locator, (*table, &relation.name), good);
            }
            _ => {}
        }
    }

    /// Adds findings about damage in the catalogs, and about files and directories that the catalogs
    /// name but that don't exist.
    pub(super) fn check_existence(&self, list: &FileList, findings: &FindingLog) {
        let problems: BTreeSet<&Path> = list.problems.iter().map(|p| &*p.path).collect();
        // Whether the listing already reports a problem with a file or a directory above it.
        let is_covered = |path: &Path| path.ancestors().any(|path| problems.contains(path));
        // If we are going to read a file, we will report problems with it or its pages then. But the
        // catalogs themselves may be outside the scope.
        let is_known =
            |path: &Path| is_covered(path) || list.files.iter().any(|file| file.path == path);
        let mut reported = BTreeSet::new();
        for Fault { finding, of_page } in std::mem::take(&mut *self.faults.lock()) {
            let of_file = matches!(finding.kind, FindingKind::File(_) | FindingKind::NotOpened(_));
            if (of_page || of_file) && is_known(&finding.path) {
                continue;
            }
            if of_file && !reported.insert(finding.path.clone()) {
                continue;
            }
            findings.push(finding);
        }
        for finding in self.status_files.iter().flat_map(StatusFiles::take) {
            findings.push(finding);
        }
        let first = list.files.iter().filter(|file| file.segment == 0);
        let there: BTreeSet<_> = first.map(|file| (locator_of(file), file.fork)).collect();
        let mut directories: BTreeMap<PathBuf, u64> = BTreeMap::new();
        for (&locator, relation) in &self.relations {
            // After a crash, recovery removes all forks of an unlogged relation except the init fork,
            // and creates a new main fork from it.
            let has_main = relation.has_main && (self.clean || !relation.unlogged);
            let forks = [(has_main, Fork::Main), (relation.has_init, Fork::Init)];
            for (_, fork) in forks.into_iter().filter(|(required, _)| *required) {
                if there.contains(&(locator, fork)) {
                    continue;
                }
                let path = self.path(locator, fork, 0);
                if reported.contains(&path) || is_covered(&path) {
                    continue;
                }
                if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
                    *directories.entry(directory.to_owned()).or_default() += 1;
                    continue;
                }
                findings.file(path, Some(&relation.name), FindingKind::File(ProblemKind::Missing));
            }
        }
        for (directory, relations) in directories {
            if !reported.contains(&directory) {
                let kind = ProblemKind::MissingDirectory { relations };
                findings.file(directory, None, FindingKind::File(kind));
            }
        }
    }

    /// Adds findings about relations that are too short. `lengths` has the lengths of all main forks
    /// that exist.
    pub(super) fn check_lengths(
        &self,
        lengths: &BTreeMap<RelationLocator, BlockNo>,
        findings: &FindingLog,
    ) -> CatalogSummary {
        let mut summary = CatalogSummary {
            lengths_compared: self.clean,
            skipped: self.skipped.clone(),
            ..<_>::default()
        };
        // Whether we have read all pages of a B-tree.
        let is_whole = |index: RelationLocator| {
            lengths.contains_key(&index) && !self.bounds.is_incomplete(index)
        };
        for (locator, relation) in &self.relations {
            summary.relations += 1;
            let Some(&found) = lengths.get(locator) else { continue };
            // The segment that should contain the first missing block.
            let path = || self.path(*locator, Fork::Main, segment_of(found).0);
            let is_proven = self.clean && relation.is_length_proven(*locator, is_whole);
            if !is_proven {
                summary.unproven.push(Arc::clone(&relation.name));
            }
            let bounds = self.bounds.of(*locator).into_iter().chain(relation.least_blocks());
            let bound = bounds.max_by_key(|bound| bound.blocks).filter(|_| self.clean);
            if let Some(LengthBound { blocks, proof }) = bound.filter(|bound| found < bound.blocks)
            {
                let kind = FindingKind::Short { found, expected: blocks, proof };
                findings.file(path(), Some(&relation.name), kind);
            } else if self.clean && !is_proven && found < relation.pages {
                let (relation, pages) = (Arc::clone(&relation.name), relation.pages);
                summary.doubtful.push(DoubtfulLength { relation, path: path(), found, pages });
            }
        }
        summary
    }

    /// Returns the path of a segment.
    fn path(&self, locator: RelationLocator, fork: Fork, segment: u32) -> PathBuf {
        let file = RelationFile { relfilenode: locator.relfilenode, fork, segment };
        first_file(&self.dir, locator).with_file_name(file.to_string())
    }
}

/// Returns the lengths of all main forks in a listing. A fork ends with its first segment that isn't
/// full.
pub(super) fn main_lengths(list: &FileList) -> BTreeMap<RelationLocator, BlockNo> {
    let mut lengths: BTreeMap<RelationLocator, BlockNo> = BTreeMap::new();
    // The listing has the segments of a fork in order.
    for file in list.files.iter().filter(|file| file.fork == Fork::Main) {
        let length = lengths.entry(locator_of(file)).or_default();
        if file.segment.checked_mul(SEGMENT_BLOCKS) == Some(*length) {
            *length = length.saturating_add(file.blocks());
        }
    }
    lengths
}
