//! Do the pages of a cluster fit together? Tables and indexes, one after the other, as the catalog
//! describes them.
//!
//! ```text
//!   catalogs ──▶ tables of all databases, the largest first
//!                 └▶ a few workers, each with a session: table ──▶ table ──▶ …
//! ```
//! What is wrong with a table or an index is a [`Finding`], also that it cannot be read at all; the
//! others are checked all the same.

use std::collections::VecDeque;
use std::io;

use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::{BLOCK_SIZE, Oid};

use super::age::NextIds;
use super::content_report::{ContentError, ContentReport, Skipped};
use super::findings::{Finding, FindingKind, Findings};
use super::orphans::Orphans;
use super::problem::ContentProblem;
use super::sink::Sink;
use super::table;
use super::target::{Target, full_name};
use crate::catalog::{Catalog, CatalogError, Database, OnDamage, RelationInfo};
use crate::datadir::DataDir;
use crate::job::{Job, JobError, Observer};
use crate::pool::{Backend, BackendType, Policy, Pool, ReadError};
use crate::read_stream::StreamOptions;
use crate::settings::Settings;
use crate::storage::Storage;

/// Entries of indexes that a worker keeps, of 16 bytes each: 64 MiB.
const ENTRIES_MAX: usize = 4 << 20;

/// What is checked of a table, and how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// Values against their types, long values and whether rows name them, the visibility map.
    pub rows: bool,
    /// B-trees, rows against them, and that unique ones are.
    pub indexes: bool,
    /// How a worker reads.
    pub stream: StreamOptions,
    /// Entries of a table's indexes that a worker keeps in memory at a time, 16 bytes each; of a
    /// table with more the indexes are read several times. While a unique index is read whose order
    /// is not known, as many keys are kept besides as it may have entries.
    pub entries_max: usize,
    /// The server's major version.
    pub(super) major: u32,
    /// What the cluster gives out next.
    pub(super) next: Option<NextIds>,
}

/// How to verify contents.
#[derive(Debug, Clone)]
pub struct ContentOptions {
    /// What is checked.
    pub checks: Checks,
    /// Tables that are checked at a time, at least 1.
    pub workers: u32,
    /// Findings that the report lists; all are counted.
    pub findings_listed: usize,
    /// Nothing but these; `None`: everything.
    pub only: Option<Vec<Only>>,
}

/// Something that is to be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only {
    /// The OID of a database.
    pub database: Oid,
    /// The OID of a table, a TOAST table or an index of one in it; `None`: all of them. A table comes
    /// with its TOAST table and its indexes.
    pub relation: Option<Oid>,
}

impl ContentOptions {
    /// As the settings say.
    pub fn of(settings: &Settings, rows: bool, indexes: bool) -> Self {
        let stream = StreamOptions::maintenance(settings);
        let checks =
            Checks { rows, indexes, stream, entries_max: ENTRIES_MAX, major: 0, next: None };
        Self { checks, workers: 1, findings_listed: super::FINDINGS_LISTED, only: None }
    }
}

/// Verifies the contents of tables and indexes of every database.
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
    let job = Job::new(pool.aio(), observer);
    let (major, next) = (dir.control().version.major(), NextIds::of(dir.control()));
    let checks = Checks { major, next, ..options.checks };
    let work = Arc::new(Work {
        pool: pool.clone(),
        dir: dir.clone(),
        storage: storage.clone(),
        options: ContentOptions { checks, ..options.clone() },
        findings: Findings::new(options.findings_listed),
        counts: Counts::default(),
        skipped: Mutex::default(),
        orphans: Mutex::default(),
    });
    let shared = Arc::clone(&work);
    let outline = job.run(move |job| shared.coordinate(job))?;
    let (findings, findings_total) = work.findings.take();
    let mut skipped = std::mem::take(&mut *work.skipped.lock());
    skipped
        .sort_by(|one, other| (&one.relation, &one.reason).cmp(&(&other.relation, &other.reason)));
    let mut orphans = std::mem::take(&mut *work.orphans.lock());
    orphans.sort_by(|one, other| one.relation.cmp(&other.relation));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(ContentReport {
        end: outline.end,
        tables: count(&work.counts.tables),
        indexes: count(&work.counts.indexes),
        rows: count(&work.counts.rows),
        entries: count(&work.counts.entries),
        pages: outline.blocks,
        findings,
        findings_total,
        skipped,
        orphans,
        elapsed: outline.elapsed,
        io: outline.io,
    })
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    tables: AtomicU64,
    indexes: AtomicU64,
    pub(super) rows: AtomicU64,
    pub(super) entries: AtomicU64,
}

/// One verification, shared by its workers.
pub(super) struct Work {
    pool: Pool,
    dir: DataDir,
    storage: Storage,
    options: ContentOptions,
    pub(super) findings: Findings,
    pub(super) counts: Counts,
    pub(super) skipped: Mutex<Vec<Skipped>>,
    pub(super) orphans: Mutex<Vec<Orphans>>,
}

/// A table to be checked.
struct Task {
    database: Arc<Database>,
    relation: Oid,
    blocks: u64,
}

impl Work {
    fn coordinate(self: Arc<Self>, job: &Arc<Job>) -> Result<(), ContentError> {
        let mut backend = self.backend(job)?;
        let catalog =
            Catalog::open_with(&self.dir, &self.storage, &mut backend, OnDamage::Collect)?;
        for fault in catalog.faults() {
            self.catalog_fault(None, fault);
        }
        let mut tasks = self.tasks(job, &catalog, &mut backend);
        drop(backend);
        // The largest first, so that the last to end is a small one.
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.blocks), task.relation));
        let bytes = tasks.iter().map(|task| task.blocks * BLOCK_SIZE as u64).sum();
        job.observer().begins(tasks.len(), bytes);
        let workers = (self.options.workers.max(1) as usize).min(tasks.len().max(1));
        let tasks = Mutex::new(VecDeque::from(tasks));
        let dir = self.dir.clone();
        let recheck = || Ok(dir.recheck().map_err(JobError::from)?);
        job.run_workers(workers, recheck, move |job, _| Ok(self.worker(job, &tasks, &catalog)?))
    }

    fn backend(&self, job: &Job) -> Result<Backend, JobError> {
        job.backend(&self.pool, BackendType::Standalone, Policy::default())
    }

    /// Every table that is to be checked.
    fn tasks(&self, job: &Job, catalog: &Catalog, backend: &mut Backend) -> Vec<Task> {
        let mut tasks = Vec::new();
        let mut shared_seen = false;
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
                    for fault in database.faults() {
                        self.catalog_fault(Some(&name), fault);
                    }
                    let relations = database.relations().iter();
                    let tables = relations.filter(|relation| self.is_wanted(&database, relation));
                    // Those that all databases share are checked once.
                    let mine = tables.filter(|relation| !relation.shared || !shared_seen);
                    tasks.extend(mine.map(|relation| task(&database, relation)));
                    shared_seen = true;
                }
                // Its removal was not finished: there is nothing that could be checked.
                Err(error @ CatalogError::InvalidDatabase { .. }) => {
                    self.skipped.lock().push(Skipped {
                        relation: String::from_utf8_lossy(&info.name).into(),
                        reason: error.to_string(),
                    })
                }
                Err(error) => {
                    self.catalog_fault(Some(&crate::catalog::quoted(&info.name)), &error);
                }
            }
        }
        tasks
    }

    /// Something is wrong with the catalog of a database, or with those that all share.
    fn catalog_fault(&self, database: Option<&str>, fault: &CatalogError) {
        let (path, block, item, text) = match fault {
            CatalogError::Row { location, source } => {
                (location.path(), location.block(), location.item(), source.to_string())
            }
            other => (self.dir.path(), None, None, other.to_string()),
        };
        self.findings.push(Finding {
            path: path.to_owned(),
            relation: database.map(Into::into),
            block,
            item,
            kind: FindingKind::Content(ContentProblem::Unreadable(text)),
        });
    }

    /// Whether a relation is a table with files, and was asked for.
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

    fn worker(
        &self,
        job: &Job,
        tasks: &Mutex<VecDeque<Task>>,
        catalog: &Catalog,
    ) -> Result<(), JobError> {
        let mut backend = self.backend(job)?;
        loop {
            // Not in the condition: the lock would be held for as long as the table takes.
            let next = tasks.lock().pop_front();
            let Some(task) = next else { return Ok(()) };
            if job.is_stopping() {
                return Ok(());
            }
            match self.check(job, &task, catalog, &mut backend) {
                Ok(()) => {}
                // To be cancelled is a way to end, and the caller knows.
                Err(ReadError::Cancelled) => return Ok(()),
                Err(error) => return Err(JobError::Start(io::Error::other(error))),
            }
        }
    }

    fn check(
        &self,
        job: &Job,
        task: &Task,
        catalog: &Catalog,
        backend: &mut Backend,
    ) -> Result<(), ReadError> {
        let Some(relation) = task.database.relation(task.relation) else { return Ok(()) };
        let sink = Sink::new(job, self);
        let target = match Target::of(&task.database, relation) {
            Ok(target) => target,
            Err(CatalogError::NotReadable { reason, .. }) => {
                let relation = full_name(&task.database, relation);
                self.skipped.lock().push(Skipped { relation, reason: reason.to_string() });
                return Ok(());
            }
            Err(error) => {
                if let Some(files) = task.database.files(relation) {
                    let name = full_name(&task.database, relation);
                    let problem = ContentProblem::Unreadable(error.to_string());
                    sink.add(&files, &name, None, None, problem);
                }
                return Ok(());
            }
        };
        for note in &target.notes {
            sink.not_looked_into(&target, note.clone());
        }
        self.counts.tables.fetch_add(1, Ordering::Relaxed);
        if self.options.checks.indexes {
            self.counts.indexes.fetch_add(target.indexes.len() as u64, Ordering::Relaxed);
        }
        table::check(&target, catalog.transactions(), backend, self.options.checks, &sink)
    }
}

fn task(database: &Arc<Database>, relation: &RelationInfo) -> Task {
    let blocks = |oid: Oid| {
        let files = database.relation(oid).and_then(|relation| database.files(relation));
        files.and_then(|files| files.blocks().ok()).map_or(0, u64::from)
    };
    let indexes = database.indexes_of(relation.oid).iter();
    let all = blocks(relation.oid) + indexes.map(|row| blocks(row.index)).sum::<u64>();
    Task { database: Arc::clone(database), relation: relation.oid, blocks: all }
}
