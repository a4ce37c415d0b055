//! Sizes of relations and databases, and how much of them is in the page cache.
//!
//! ```text
//!   base/5/16384      8 MB, 2 MB cached ┐
//!   base/5/16384_vm   8 kB, 8 kB cached ┼─▶ relation 16384 ─┐
//!                       TOAST table and its index           ┼─▶ line of the table in the list
//! ```
//! What is cached is measured before anything else is read, and without reading the files
//! (mincore(2)).
//!
//! If something is missing or can't be read, a sum of the rest would look like a small database. We
//! therefore keep track of which sums are incomplete.

use std::collections::BTreeMap;
use std::io;

use trunkline_aio::{Aio, OpenOptions, is_residency_known, residency};
use trunkline_engine::catalog::{
    Catalog, Database, DatabaseRow, RelationInfo, RelationPath, first_file,
};
use trunkline_engine::datadir::{DataDir, FileEntry, Problem, ProblemKind};
use trunkline_engine::storage::RelationLocator;
use trunkline_format::{Fork, Oid};

use crate::exit::Failure;
use crate::named_files::is_reset_by_recovery;

/// Total file size of each relation and of each database. We walk through all files once and add up
/// their sizes, which is cheaper than calling stat for every relation's files.
pub(super) struct Sizes {
    dir: DataDir,
    relations: BTreeMap<RelationLocator, FileSizes>,
    /// The sizes of each database's files in each tablespace.
    databases: BTreeMap<(Oid, Oid), Size>,
    /// Why the sums are incomplete.
    problems: Vec<Problem>,
}

/// Bytes in files, and how many of them are in the page cache; 0 if that was not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) cached: u64,
}

/// The sum of the files of a relation or a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sum {
    /// Nothing is missing.
    Complete(Size),
    /// Something is missing, or could not be read.
    AtLeast(Size),
    /// Its main file or directory doesn't exist.
    Missing,
}

impl Sum {
    /// What was found; `None` if its main file or directory doesn't exist.
    pub(super) fn found(self) -> Option<Size> {
        match self {
            Self::Complete(size) | Self::AtLeast(size) => Some(size),
            Self::Missing => None,
        }
    }

    pub(super) fn is_complete(self) -> bool {
        matches!(self, Self::Complete(_))
    }
}

impl Size {
    fn add(&mut self, other: Size) {
        self.bytes += other.bytes;
        self.cached += other.cached;
    }
}

/// Size of all forks of a relation.
#[derive(Default)]
struct FileSizes {
    size: Size,
    /// Whether the first segment of the main fork exists. If it doesn't, the relation has been
    /// dropped, and any other forks are only leftovers.
    exists: bool,
    /// Whether another segment or fork is missing or could not be examined.
    incomplete: bool,
}

impl Sizes {
    /// Adds up all files of the directory. Measures what is cached if there is an I/O instance to
    /// open the files with.
    pub(super) fn of(dir: &DataDir, cache: Option<&Aio>) -> Result<Sizes, Failure> {
        let list = dir.relation_files();
        let mut sizes = Sizes {
            dir: dir.clone(),
            relations: BTreeMap::new(),
            databases: BTreeMap::new(),
            problems: list.problems.into_iter().filter(|it| hides_files(&it.kind)).collect(),
        };
        for file in list.files {
            let cached = cache.map_or(Ok(0), |aio| cached_bytes(aio, &file))?;
            let FileEntry { tablespace, database, relfilenode, bytes, .. } = file;
            let size = Size { bytes, cached };
            let locator = RelationLocator { tablespace, database, relfilenode };
            let relation = sizes.relations.entry(locator).or_default();
            relation.size.add(size);
            relation.exists |= file.fork == Fork::Main && file.segment == 0;
            sizes.databases.entry((database, tablespace)).or_default().add(size);
        }
        for problem in &sizes.problems {
            let path = RelationPath::of(dir, &problem.path);
            if let Some(locator) = path.and_then(|path| path.locator()) {
                sizes.relations.entry(locator).or_default().incomplete = true;
            }
        }
        Ok(sizes)
    }

    /// Adds problems for the tablespaces that the catalog names, but that have no place. Removes the
    /// problems of tablespaces that it doesn't name, such as those of a link left behind, because no
    /// relation can be there.
    pub(super) fn compare_tablespaces(&mut self, catalog: &Catalog) {
        let is_named = |oid| catalog.tablespaces().iter().any(|tablespace| tablespace.oid == oid);
        if catalog.faults().is_empty() {
            self.problems.retain(|problem| {
                let path = RelationPath::of(&self.dir, &problem.path);
                path.is_none_or(|path| is_named(path.tablespace))
            });
        }
        let links = self.dir.path().join("pg_tblspc");
        for tablespace in catalog.tablespaces() {
            let location = self.dir.tablespace_location(tablespace.oid);
            if !matches!(location, Ok(Some(_))) {
                let path = links.join(tablespace.oid.to_string());
                self.problems.push(Problem { path, kind: ProblemKind::Missing });
            }
        }
    }

    /// The problems because of which the sum of a database's files is incomplete.
    pub(super) fn problems_of(&self, info: &DatabaseRow) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| match RelationPath::of(&self.dir, &problem.path) {
            Some(RelationPath { database: Some(oid), .. }) => oid == info.oid,
            // A directory above those of databases. Any database may have relations in any
            // tablespace.
            _ => true,
        })
    }

    pub(super) fn of_database(&self, info: &DatabaseRow) -> Sum {
        let mut size = Size::default();
        let everywhere = (info.oid, Oid(0))..=(info.oid, Oid(u32::MAX));
        self.databases.range(everywhere).for_each(|(_, part)| size.add(*part));
        let (tablespace, database, relfilenode) = (info.tablespace, info.oid, 0);
        let is_there = self.databases.contains_key(&(database, tablespace));
        let is_hidden = || self.is_hidden(RelationLocator { tablespace, database, relfilenode });
        if !is_there && !is_hidden() {
            Sum::Missing
        } else if self.problems_of(info).next().is_some() {
            Sum::AtLeast(size)
        } else {
            Sum::Complete(size)
        }
    }

    /// Whether we could not read a directory that a relation's files would be in, so that we don't
    /// know whether they exist.
    fn is_hidden(&self, locator: RelationLocator) -> bool {
        let file = first_file(&self.dir, locator);
        let is_unreadable = |it: &Problem| matches!(it.kind, ProblemKind::Unreadable(_));
        self.problems.iter().any(|it| is_unreadable(it) && file.starts_with(&it.path))
    }

    /// Returns the size of a relation, including its TOAST table. Returns `None` if the relation
    /// has no files.
    pub(super) fn of_relation(&self, database: &Database, relation: &RelationInfo) -> Option<Sum> {
        let own = |relation: &RelationInfo| {
            let locator = relation.locator?;
            let is_reset = is_reset_by_recovery(&self.dir, relation);
            let files = self.relations.get(&locator);
            Some(match files.filter(|files| files.exists || is_reset) {
                Some(files) if files.incomplete => Sum::AtLeast(files.size),
                Some(files) => Sum::Complete(files.size),
                None if self.is_hidden(locator) => Sum::AtLeast(Size::default()),
                None => Sum::Missing,
            })
        };
        let whole = own(relation)?;
        let Some(mut size) = whole.found() else { return Some(whole) };
        let mut is_complete = whole.is_complete();
        let toast = database.relation(relation.toast);
        let indexes = toast.iter().flat_map(|toast| database.indexes_of(toast.oid));
        let indexes = indexes.map(|row| database.relation(row.index));
        for part in toast.into_iter().map(Some).chain(indexes) {
            let part = part.and_then(own);
            is_complete &= part.is_some_and(Sum::is_complete);
            size.add(part.and_then(Sum::found).unwrap_or_default());
        }
        Some(if is_complete { Sum::Complete(size) } else { Sum::AtLeast(size) })
    }
}

/// Whether files may be missing in the listing because of a problem.
fn hides_files(kind: &ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::Unreadable(_)
            | ProblemKind::Symlink
            | ProblemKind::NotAFile
            | ProblemKind::NotATablespace { .. }
            | ProblemKind::Dangling { .. }
            | ProblemKind::MissingSegment { .. }
    )
}

/// How many bytes of a file are in the page cache. The file is opened but not read.
fn cached_bytes(aio: &Aio, file: &FileEntry) -> Result<u64, Failure> {
    let failed = |error: io::Error| {
        let path = file.path.display();
        Failure::cannot_run(format!("could not examine file \"{path}\": {error}"))
    };
    if file.bytes == 0 {
        return Ok(0);
    }
    let options = OpenOptions { no_follow: true, ..OpenOptions::default() };
    let open = aio.open(&file.path, options).map_err(failed)?;
    if !is_residency_known(&open).map_err(failed)? {
        let path = file.path.display();
        let text = format!("the kernel does not say how much of file \"{path}\" is cached");
        let hint = "run as the user that owns the data directory, or as root";
        return Err(Failure::cannot_run(text).with_hint(hint));
    }
    let found = residency(&open).map_err(failed)?;
    // The kernel counts whole memory pages.
    Ok(found.cached.min(file.bytes))
}
