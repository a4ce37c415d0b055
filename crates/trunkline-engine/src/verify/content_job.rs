//! The job that runs a content check: reads the catalogs, then checks the tables of all databases.
//!
//! ```text
//!   catalogs ──▶ tables of all databases, the largest first
//!                 └▶ workers, each with a session: table ──▶ table ──▶ …
//! ```
//!
//! If there is a problem with a table or an index, we add a finding and go on with the other
//! tables, even if the relation can't be read at all. The same applies to catalog damage: we add a
//! finding, and check all tables that are described by the undamaged part of the catalogs.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::{BLOCK_SIZE, Oid};

use super::catalog_fault;
use super::checked_table::{CheckedTable, full_name};
use super::content_options::{Checks, ContentOptions, Only};
use super::content_problem::ContentProblem;
use super::content_report::{ContentError, ContentReport};
use super::content_results::ContentResults;
use super::sink::Sink;
use super::table_check;
use super::xid_range::NextIds;
use crate::catalog::{Catalog, CatalogError, Database, OnDamage, RelationInfo};
use crate::datadir::DataDir;
use crate::job::{Job, JobError, Observer};
use crate::pool::{Backend, BackendType, Policy, Pool, ReadError};
use crate::storage::Storage;

/// Verifies the contents of every database's tables and indexes, or only of those selected by the
/// options.
///
/// # Errors
/// See [`ContentError`].
pub fn verify_contents(
    pool: &Pool,
    dir: &DataDir,
    storage: &Storage,
    options: &ContentOptions,
    observer: Arc<dyn Observer>,
) -> Result<ContentReport, ContentError> {
    let (major, next) = (dir.control().version.major(), NextIds::of(dir.control()));
    let checks = Checks { major, next, ..options.checks };
    let check = Arc::new(ContentJob {
        pool: pool.clone(),
        dir: dir.clone(),
        storage: storage.clone(),
        options: ContentOptions { checks, ..options.clone() },
        results: ContentResults::new(options.findings_listed),
    });
    let shared = Arc::clone(&check);
    let summary = Job::new(pool.aio(), observer).run(move |job| shared.coordinate(job))?;
    Ok(check.results.report(summary))
}

/// One content check, shared by its workers.
struct ContentJob {
    pool: Pool,
    dir: DataDir,
    storage: Storage,
    options: ContentOptions,
    results: ContentResults,
}

/// A table to check.
struct QueuedTable {
    database: Arc<Database>,
    relation: Oid,
    /// Number of blocks of the table and its indexes. We use it to sort the tables by size and to
    /// report progress.
    blocks: u64,
}

impl ContentJob {
    /// Reads the catalogs, queues the tables and runs the workers.
    fn coordinate(self: Arc<Self>, job: &Arc<Job>) -> Result<(), ContentError> {
        let mut backend = self.backend(job)?;
        // Don't give up because of damaged catalog rows or missing pages. We add a finding for each of
        // them, and check everything else.
        let catalog = Catalog::open_with(&self.dir, &self.storage, &mut backend, OnDamage::Rescue)?;
        self.catalog_faults(None, catalog.faults());
        let mut tables = self.tables(job, &catalog, &mut backend);
        drop(backend);
        // Check the largest tables first. Otherwise, a worker that starts on a large table at the
        // end would still be busy after all others have finished.
        tables.sort_by_key(|table| (std::cmp::Reverse(table.blocks), table.relation));
        let bytes = tables.iter().map(|table| table.blocks * BLOCK_SIZE as u64).sum();
        job.observer().begins(tables.len(), bytes);
        let workers = (self.options.workers.max(1) as usize).min(tables.len().max(1));
        let queue = Mutex::new(VecDeque::from(tables));
        let dir = self.dir.clone();
        let recheck = || Ok(dir.recheck().map_err(JobError::from)?);
        job.run_workers(workers, recheck, move |job, _| Ok(self.worker(job, &queue, &catalog)?))
    }

    /// Opens a backend with the default policy, under which a damaged page causes an error. We must
    /// not let the pool replace such a page with zeros.
    fn backend(&self, job: &Job) -> Result<Backend, JobError> {
        job.backend(&self.pool, BackendType::Standalone, Policy::default())
    }

    /// Returns all tables to check. If a database can't be read, we add a finding for it.
    fn tables(&self, job: &Job, catalog: &Catalog, backend: &mut Backend) -> Vec<QueuedTable> {
        let mut queued = Vec::new();
        let mut shared: BTreeSet<Oid> = BTreeSet::new();
        for info in catalog.databases() {
            let wanted = |only: &Only| only.database == info.oid;
            if self.options.only.as_ref().is_some_and(|only| !only.iter().any(wanted)) {
                continue;
            }
            if job.is_stopping() {
                break;
            }
            match catalog.database(backend, &info.name) {
                Ok(database) => {
                    let name = database.quoted_name();
                    self.catalog_faults(Some(&name), database.faults());
                    let relations = database.relations().iter();
                    let tables = relations.filter(|relation| self.is_wanted(&database, relation));
                    // The shared catalogs are listed in every database, but we want to check them
                    // only once.
                    let mine = tables.filter(|table| !table.shared || shared.insert(table.oid));
                    queued.extend(mine.map(|relation| queued_table(&database, relation)));
                }
                // DROP DATABASE was interrupted, and has already removed some of the files, so
                // there is nothing to check.
                Err(error @ CatalogError::InvalidDatabase { .. }) => {
                    let name = String::from_utf8_lossy(&info.name);
                    self.results.skipped(name.into(), error.to_string());
                }
                Err(error) => {
                    let name = crate::catalog::quoted(&info.name);
                    self.catalog_fault(Some(&name), &error);
                    self.results.skipped(name.into(), format!("contents not checked: {error}"));
                }
            }
        }
        queued
    }

    /// Adds findings about the catalog of a database, or about the shared catalogs.
    fn catalog_faults(&self, database: Option<&str>, faults: &[CatalogError]) {
        let unknown = faults.iter().any(|fault| fault.file_fault().is_some());
        for fault in faults {
            if fault.lost_pages() {
                let name = database.unwrap_or("shared catalogs");
                self.results.skipped(name.into(), format!("contents not all checked: {fault}"));
            }
            // If rows are missing in the catalogs, they contradict each other.
            if matches!(fault, CatalogError::Layout { .. }) && unknown {
                let name = database.unwrap_or("shared catalogs");
                self.results.skipped(name.into(), fault.to_string());
                continue;
            }
            self.catalog_fault(database, fault);
        }
    }

    /// Adds a finding about the catalog of a database, or about the shared catalogs. If a row was
    /// left out only because a file of the commit log is missing, the finding is about that file,
    /// and there is only one for all such rows.
    fn catalog_fault(&self, database: Option<&str>, fault: &CatalogError) {
        if !self.results.status_files.add_catalog_row(fault) && !self.options.catalogs_compared {
            self.results.findings.push(catalog_fault::finding_of(&self.dir, database, fault));
        }
    }

    /// Whether we should check a relation. It must be a table with files, and it must have been
    /// selected, either directly, through one of its indexes, or as the TOAST table of a selected
    /// table.
    fn is_wanted(&self, database: &Database, relation: &RelationInfo) -> bool {
        if !relation.kind.is_table_like() || relation.locator.is_none() {
            return false;
        }
        let Some(only) = &self.options.only else { return true };
        only.iter().filter(|only| only.database == database.info().oid).any(|only| {
            let Some(wanted) = only.relation else { return true };
            let indexes = database.indexes_of(relation.oid).iter();
            let toast_of = database.relation(wanted).map(|table| table.toast);
            wanted == relation.oid
                || toast_of == Some(relation.oid)
                || indexes.map(|row| row.index).any(|index| index == wanted)
        })
    }

    /// Checks tables from the queue until it is empty.
    fn worker(
        &self,
        job: &Job,
        queue: &Mutex<VecDeque<QueuedTable>>,
        catalog: &Catalog,
    ) -> Result<(), JobError> {
        let mut backend = self.backend(job)?;
        loop {
            // Don't inline this into the `let … else`, because then we would hold the lock while
            // we check the table.
            let next = queue.lock().pop_front();
            let Some(table) = next else { return Ok(()) };
            if job.is_stopping() {
                return Ok(());
            }
            match self.check(job, &table, catalog, &mut backend) {
                Ok(()) => {}
                // We don't treat cancellation as an error of the check, because it was requested by
                // the caller.
                Err(ReadError::Cancelled) => return Ok(()),
                Err(error) => return Err(JobError::Start(io::Error::other(error))),
            }
        }
    }

    /// Checks one table with its indexes.
    fn check(
        &self,
        job: &Job,
        queued: &QueuedTable,
        catalog: &Catalog,
        backend: &mut Backend,
    ) -> Result<(), ReadError> {
        let Some(relation) = queued.database.relation(queued.relation) else { return Ok(()) };
        let sink = Sink::new(job, &self.results);
        let faults = queued.database.faults();
        let table = match CheckedTable::of(&queued.database, relation) {
            Ok(table) => table,
            Err(CatalogError::NotReadable { reason, .. }) => {
                let name = full_name(&queued.database, relation);
                self.results.skipped(name, reason.to_string());
                return Ok(());
            }
            // We couldn't read some rows of the catalogs because pages of the catalogs or a file of
            // the commit log are missing. Nothing is wrong with the table if these rows describe it.
            Err(error @ CatalogError::Columns { .. })
                if faults
                    .iter()
                    .any(|fault| fault.file_fault().is_some() || fault.lost_pages()) =>
            {
                let name = full_name(&queued.database, relation);
                self.results.skipped(name, error.to_string());
                return Ok(());
            }
            Err(error) => {
                if let Some(files) = queued.database.files(relation) {
                    let name = full_name(&queued.database, relation);
                    let problem = ContentProblem::Unreadable(error.to_string());
                    sink.add(&files, &name, None, None, problem);
                }
                return Ok(());
            }
        };
        for note in &table.notes {
            sink.skipped(&table, note.clone());
        }
        if let Some(toast) = table.lost_toast {
            let text = format!("the catalogs do not describe its TOAST table {toast}");
            // If we have already reported damage in the catalogs, that's the cause.
            match faults.is_empty() {
                true => sink.table(&table, None, None, ContentProblem::Unreadable(text)),
                false => sink.skipped(&table, format!("values in TOAST are not checked: {text}")),
            }
        }
        // The lock must not be held while we check the table.
        {
            let mut report = self.results.report.lock();
            report.tables += 1;
            if self.options.checks.indexes {
                report.indexes += table.indexes.len() as u64;
            }
        }
        table_check::check(&table, catalog.transactions(), backend, self.options.checks, &sink)
    }
}

/// Creates the queue entry for a table. If we can't determine a table's length, we use zero. The
/// error will be reported when we try to read the table.
fn queued_table(database: &Arc<Database>, relation: &RelationInfo) -> QueuedTable {
    let blocks = |oid: Oid| {
        let files = database.relation(oid).and_then(|relation| database.files(relation));
        files.and_then(|files| files.blocks().ok()).map_or(0, u64::from)
    };
    let indexes = database.indexes_of(relation.oid).iter();
    let all = blocks(relation.oid) + indexes.map(|row| blocks(row.index)).sum::<u64>();
    QueuedTable { database: Arc::clone(database), relation: relation.oid, blocks: all }
}
