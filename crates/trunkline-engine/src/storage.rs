//! The files of relations: forks cut into segments of 1 GiB, found by number, opened when needed.
//!
//! ```text
//!   Storage ── relation(locator, fork) ──▶ Relation ── locate(block) ──▶ file, offset, blocks left
//!   a cluster   1663/5/16384, vm                          │
//!                                                         ▼
//!                        FileTable: at most so many open segments of all clusters together
//!                                                         │ not there
//!                                                         ▼
//!                        FileSystem: the kernel's files, or a simulated disk's
//! ```
//!
//! Nothing here reads a block: [`Relation::locate`] says where one is, and an I/O handle reads it.
//! A cluster's files are opened either all past the page cache or all through it; a file system that
//! cannot do the former is an error with its name, never a silent change of mode.
//!
//! ```no_run
//! # use std::path::Path;
//! # use trunkline_aio::{Builder, sync::Arc};
//! # use trunkline_engine::datadir::{DataDir, OpenOptions};
//! use trunkline_engine::storage::{FileTable, KernelFiles, RelationLocator, Storage};
//! use trunkline_format::{Fork, Oid};
//!
//! let aio = Builder::new().start()?;
//! let dir = DataDir::open(Path::new("data"), OpenOptions::default())?;
//! let files = Arc::new(FileTable::new(1000));
//! let storage = Storage::of_datadir(&dir, files, Arc::new(KernelFiles::new(&aio)), false);
//! let locator = RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 16384 };
//! let relation = storage.relation(locator, Fork::Main);
//! println!("{} blocks", relation.blocks()?);
//! let located = relation.locate(7)?;
//! println!("block 7 is at byte {} of {}", located.offset, located.file.path().display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod kernel;
mod relation;
mod syncs;
mod table;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_aio::File;
use trunkline_aio::sync::atomic::{AtomicU32, Ordering};
use trunkline_aio::sync::hash::Map;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_format::segment::tablespace_directory;
use trunkline_format::{BlockNo, ControlFile, Fork, Oid};

use crate::datadir::DataDir;

pub use self::error::StorageError;
pub use self::kernel::KernelFiles;
pub use self::relation::{Located, Relation};
pub(crate) use self::syncs::{SegmentName, SegmentSync, SyncCallback, Syncs};
pub use self::table::FileTable;

/// The tablespace of `base`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);

/// The tablespace of `global`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);

/// The three numbers that name a relation's files.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct RelationLocator {
    /// The tablespace the files are in, never 0: 1663 is `base`, 1664 is `global`.
    pub tablespace: Oid,
    /// The database; 0 for relations that all databases share, which are in `global`.
    pub database: Oid,
    /// The file number, from 1. Not the relation's oid once it was rewritten.
    pub relfilenode: u32,
}

/// As PostgreSQL's messages have it: `1663/5/16384`.
impl fmt::Display for RelationLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tablespace, self.database, self.relfilenode)
    }
}

/// Where files come from: the operating system, or a simulated disk in tests. Called without any
/// lock held; may block.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading, past the page cache if `direct`.
    ///
    /// # Errors
    /// As open(2): `ENOENT` for a missing file, `EINVAL` where direct I/O is refused, `ELOOP` for a
    /// symbolic link, `EMFILE` or `ENFILE` when descriptors are short.
    fn open(&self, path: &Path, direct: bool) -> io::Result<File>;

    /// The length of an open file now, in bytes.
    ///
    /// # Errors
    /// As fstat(2).
    fn length(&self, file: &File) -> io::Result<u64>;

    /// The length of a file now, in bytes, without opening it; `None` if there is none.
    ///
    /// # Errors
    /// As lstat(2); anything but a plain file is refused as [`FileSystem::open`] does.
    fn file_length(&self, path: &Path) -> io::Result<Option<u64>>;
}

/// Files that may be changed: what a cluster of our own needs beside reading. A cluster that was not
/// given this cannot change a file.
pub trait WritableFiles: FileSystem {
    /// Opens a file for reading and writing, past the page cache if `direct`, and makes it if it is
    /// missing and `create` says so.
    ///
    /// # Errors
    /// As [`FileSystem::open`].
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File>;

    /// Makes room for `length` bytes at `offset`, as zeros and within the file's length.
    ///
    /// # Errors
    /// As posix_fallocate(3); `EOPNOTSUPP` where zeros have to be written instead.
    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()>;

    /// Cuts a file off.
    ///
    /// # Errors
    /// As ftruncate(2).
    fn truncate(&self, file: &File, length: u64) -> io::Result<()>;

    /// Removes a file by name; that there is none is no error.
    ///
    /// # Errors
    /// As unlink(2).
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in the directory of a file durable.
    ///
    /// # Errors
    /// As fsync(2) of the directory.
    fn sync_directory_of(&self, path: &Path) -> io::Result<()>;
}

/// What the files of a cluster look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Whether pages carry checksums.
    pub checksums: bool,
    /// The directory inside each tablespace, such as `PG_18_202506291`.
    pub tablespace_directory: String,
}

impl Layout {
    /// Of the cluster that has this control file.
    pub fn of(control: &ControlFile) -> Self {
        Self {
            checksums: control.checksums(),
            tablespace_directory: tablespace_directory(control.version),
        }
    }
}

/// One cluster's files. Clones are the same cluster; when the last one and the last [`Relation`] are
/// gone, its files leave the table and are closed.
#[derive(Clone)]
pub struct Storage(Arc<Cluster>);

struct Cluster {
    root: PathBuf,
    layout: Layout,
    /// Tablespaces that are elsewhere than their links say.
    moved: Vec<(Oid, PathBuf)>,
    files: Arc<FileTable>,
    system: Arc<dyn FileSystem>,
    /// What may change files; none for a cluster that is only read.
    writer: Option<Arc<dyn WritableFiles>>,
    direct: bool,
    number: u16,
    syncs: Syncs,
    /// Ends of the forks that were made longer here: blocks given out, though perhaps not yet there.
    ends: Mutex<Map<(RelationLocator, Fork), BlockNo>>,
}

/// Numbers of clusters begin at 1, so that 0 may stand for none.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);

impl Storage {
    /// The cluster at `root`, whose files are kept open in `files`. Looks at no file yet.
    ///
    /// # Panics
    /// At the 65,536th cluster of the process: numbers are never reused, since pages in a buffer
    /// pool may outlive a cluster that was closed.
    pub fn new(
        root: &Path,
        layout: Layout,
        files: Arc<FileTable>,
        system: Arc<dyn FileSystem>,
        direct: bool,
    ) -> Self {
        Self::make((root, &[]), layout, files, system, None, direct)
    }

    /// The same for a cluster of our own, whose relations may be made, changed and removed. Never for
    /// a PostgreSQL data directory.
    ///
    /// # Panics
    /// As [`Storage::new`].
    pub fn for_writing(
        root: &Path,
        layout: Layout,
        files: Arc<FileTable>,
        system: Arc<dyn WritableFiles>,
        direct: bool,
    ) -> Self {
        let writer = Some(Arc::clone(&system));
        Self::make((root, &[]), layout, files, system, writer, direct)
    }

    fn make(
        (root, moved): (&Path, &[(Oid, PathBuf)]),
        layout: Layout,
        files: Arc<FileTable>,
        system: Arc<dyn FileSystem>,
        writer: Option<Arc<dyn WritableFiles>>,
        direct: bool,
    ) -> Self {
        let number = u16::try_from(NEXT_NUMBER.fetch_add(1, Ordering::SeqCst)).unwrap_or(0);
        assert!(number != 0, "at most 65535 clusters can be opened in the life of a process");
        Self(Arc::new(Cluster {
            root: root.to_owned(),
            layout,
            moved: moved.to_owned(),
            system,
            writer,
            direct,
            number,
            syncs: Syncs::new(number, &files),
            files,
            ends: Mutex::default(),
        }))
    }

    /// The files of an open data directory, laid out as its control file says.
    ///
    /// # Panics
    /// As [`Storage::new`].
    pub fn of_datadir(
        dir: &DataDir,
        files: Arc<FileTable>,
        system: Arc<dyn FileSystem>,
        direct: bool,
    ) -> Self {
        let places = (dir.path(), dir.moved_tablespaces());
        Self::make(places, Layout::of(dir.control()), files, system, None, direct)
    }

    /// The identity of the cluster within the process, 1 to 65,535; never reused.
    pub fn number(&self) -> u16 {
        self.0.number
    }

    /// The data directory.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Whether pages carry checksums.
    pub fn checksums(&self) -> bool {
        self.0.layout.checksums
    }

    /// Whether files are opened past the page cache.
    pub fn is_direct(&self) -> bool {
        self.0.direct
    }

    /// Whether its relations may be changed.
    pub fn is_writable(&self) -> bool {
        self.0.writer.is_some()
    }

    /// The segments that were written and are not known to be durable.
    pub(crate) fn syncs(&self) -> &Syncs {
        &self.0.syncs
    }

    /// Whether nobody else has this cluster: no clone, and no relation of it.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The table that keeps the files open.
    pub fn files(&self) -> &Arc<FileTable> {
        &self.0.files
    }

    /// One fork of a relation. Looks at no file, and allocates nothing.
    pub fn relation(&self, locator: RelationLocator, fork: Fork) -> Relation {
        Relation::new(self.clone(), locator, fork)
    }

    /// Forgets the files of a relation, all forks and segments: the next use opens them anew. For a
    /// relation that was dropped, cut off or replaced. I/O under way keeps its file.
    pub fn forget(&self, locator: RelationLocator) {
        self.0.files.forget(self.number(), Some(locator));
    }

    /// The directory of a relation's files.
    fn directory(&self, locator: &RelationLocator) -> PathBuf {
        let root = &self.0.root;
        match locator.tablespace {
            GLOBAL_TABLESPACE => root.join("global"),
            DEFAULT_TABLESPACE => root.join("base").join(locator.database.to_string()),
            tablespace => {
                let moved = self.0.moved.iter().find(|(oid, _)| *oid == tablespace);
                let linked = || root.join("pg_tblspc").join(tablespace.to_string());
                moved
                    .map_or_else(linked, |(_, to)| to.clone())
                    .join(&self.0.layout.tablespace_directory)
                    .join(locator.database.to_string())
            }
        }
    }

    /// Where its files come from.
    pub(crate) fn system(&self) -> &dyn FileSystem {
        &*self.0.system
    }

    fn writer(&self) -> Result<&dyn WritableFiles, StorageError> {
        self.0.writer.as_deref().ok_or_else(|| StorageError::ReadOnly { path: self.0.root.clone() })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.files.forget(self.number, None);
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({}, {})", self.number(), self.root().display())
    }
}
