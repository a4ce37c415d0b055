//! Sizes of relations and databases, and how much of them is in the page cache.
//!
//! ```text
//!   base/5/16384      8 MB, 2 MB cached ┐
//!   base/5/16384_vm   8 kB, 8 kB cached ┼─▶ relation 16384 ─┐
//!                       TOAST table and its index           ┼─▶ line of the table in the list
//! ```
//! What is cached is measured before anything else is read, and without reading the files
//! (mincore(2)).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::geteuid;
use trunkline_aio::{Aio, OpenOptions, residency};
use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_engine::datadir::{DataDir, FileEntry};
use trunkline_engine::storage::RelationLocator;
use trunkline_format::{Fork, Oid};

use crate::exit::Failure;

/// Total file size of each relation and of each database. We walk through all files once and add up
/// their sizes, which is cheaper than calling stat for every relation's files.
pub(super) struct Sizes {
    relations: BTreeMap<RelationLocator, FileSizes>,
    databases: BTreeMap<Oid, Size>,
}

/// Bytes in files, and how many of them are in the page cache; 0 if that was not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) cached: u64,
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
}

impl Sizes {
    /// Adds up all files of the directory. Measures what is cached if there is an I/O instance to
    /// open the files with.
    pub(super) fn of(dir: &DataDir, cache: Option<&Aio>) -> Result<Sizes, Failure> {
        let mut sizes = Sizes { relations: BTreeMap::new(), databases: BTreeMap::new() };
        for file in dir.relation_files().files {
            let cached = cache.map_or(Ok(0), |aio| cached_bytes(aio, &file))?;
            let FileEntry { tablespace, database, relfilenode, bytes, .. } = file;
            let size = Size { bytes, cached };
            let locator = RelationLocator { tablespace, database, relfilenode };
            let relation = sizes.relations.entry(locator).or_default();
            relation.size.add(size);
            relation.exists |= file.fork == Fork::Main && file.segment == 0;
            sizes.databases.entry(database).or_default().add(size);
        }
        Ok(sizes)
    }

    pub(super) fn of_database(&self, oid: Oid) -> Size {
        self.databases.get(&oid).copied().unwrap_or_default()
    }

    /// Returns the size of a relation, including its TOAST table. Returns `None` if the relation
    /// has no files or if they are missing.
    pub(super) fn of_relation(&self, database: &Database, relation: &RelationInfo) -> Option<Size> {
        let own = |relation: &RelationInfo| {
            let files = self.relations.get(&relation.locator?)?;
            files.exists.then_some(files.size)
        };
        let mut size = own(relation)?;
        let Some(toast) = database.relation(relation.toast) else { return Some(size) };
        size.add(own(toast).unwrap_or_default());
        for row in database.indexes_of(toast.oid) {
            size.add(database.relation(row.index).and_then(own).unwrap_or_default());
        }
        Some(size)
    }
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
    // To other users the kernel says that everything is cached, to reveal nothing about other
    // users' files (can_do_mincore).
    let owner = fs::symlink_metadata(&file.path).map_err(failed)?.uid();
    let user = geteuid();
    let may_write = || accessat(CWD, &file.path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if owner != user.as_raw() && !user.is_root() && !may_write() {
        let path = file.path.display();
        let text = format!("the kernel does not say how much of file \"{path}\" is cached");
        let hint = "run as the user that owns the data directory, or as root";
        return Err(Failure::cannot_run(text).with_hint(hint));
    }
    let options = OpenOptions { no_follow: true, ..OpenOptions::default() };
    let found = aio.open(&file.path, options).and_then(|file| residency(&file)).map_err(failed)?;
    // The kernel counts whole memory pages.
    Ok(found.cached.min(file.bytes))
}
