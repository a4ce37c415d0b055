//! One cluster's relation files: where they are, how they are opened, and whether they may be
//! changed.

use std::fmt;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::segment::tablespace_directory;
use trunkline_format::{BlockNo, ControlFile, Fork, Oid};

use super::built_pages::BuiltPages;
use super::error::StorageError;
use super::file_system::{FileSystem, WritableFiles};
use super::file_table::FileTable;
use super::locator::RelationLocator;
use super::open_files::OpenFiles;
use super::pending_fsyncs::PendingFsyncs;
use super::read_times::{ReadTimes, ReadTimesTable};
use crate::datadir::{DataDir, database_directory};
use crate::replay::Replay;

/// The properties of a cluster that determine how its files are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Whether pages have checksums.
    pub checksums: bool,
    /// The directory inside each tablespace, such as `PG_18_202506291`.
    pub tablespace_directory: String,
}

impl Layout {
    /// The layout described by a control file.
    pub fn of(control: &ControlFile) -> Self {
        Self {
            checksums: control.checksums(),
            tablespace_directory: tablespace_directory(control.version),
        }
    }
}

/// A handle to one cluster's relation files. Cloning it is cheap, and all clones refer to the same
/// cluster. When the last clone and the last [`Relation`](super::Relation) have been dropped, we
/// close the cluster's files and remove them from the open-file table.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

struct Inner {
    root: PathBuf,
    layout: Layout,
    /// Tablespaces that were moved to another directory without updating their symbolic links, and
    /// the directories they are in now.
    moved: Vec<(Oid, PathBuf)>,
    files: OpenFiles,
    /// Whether relations may be changed. We check this in addition to `files`, because PostgreSQL
    /// data directories, which we must never modify, share `files` with our own clusters.
    writable: bool,
    /// Whether files are opened with `O_DIRECT`. This is the same for all of the cluster's files.
    direct: bool,
    number: u16,
    pending_fsyncs: PendingFsyncs,
    /// For each fork that we have extended, the number of the next block to reserve. The file
    /// itself may still be shorter than that. The lock takes the place of PostgreSQL's relation
    /// extension lock, but we hold it only while updating the map, never during a system call.
    ends: Mutex<Map<(RelationLocator, Fork), BlockNo>>,
    /// Held while a visibility map is extended. Unlike pages of a table, those of its map belong to certain blocks, so two
    /// sessions must not add a page each.
    map_extension: Mutex<()>,
    /// How long reads take.
    read_times: ReadTimesTable,
    /// Pages that are built from the log, if the cluster is read through it.
    built: Option<BuiltPages>,
}

/// Cluster numbers start at 1, so that 0 can mean "none".
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);

impl Storage {
    /// Opens the cluster at `root` for reading only. Doesn't open any of its files yet.
    ///
    /// # Panics
    /// If the process has already opened 65,535 clusters. We can't reuse their numbers, because
    /// pages of a closed cluster may still be in a buffer pool.
    pub fn new(root: &Path, layout: Layout, files: &OpenFiles, direct: bool) -> Self {
        Self::make((root, &[]), layout, files, false, direct, None)
    }

    /// Opens one of our own clusters, in which relations can be created, changed and removed.
    /// `root` must never be a PostgreSQL data directory.
    ///
    /// # Panics
    /// As for [`Storage::new`].
    pub fn for_writing(root: &Path, layout: Layout, files: &OpenFiles, direct: bool) -> Self {
        Self::make((root, &[]), layout, files, true, direct, None)
    }

    /// Opens the files of a data directory for reading only. Their layout is described by its
    /// control file.
    ///
    /// # Panics
    /// As for [`Storage::new`].
    pub fn of_datadir(dir: &DataDir, files: &OpenFiles, direct: bool) -> Self {
        let places = (dir.path(), dir.moved_tablespaces());
        let replay = dir.replay().cloned();
        Self::make(places, Layout::of(dir.control()), files, false, direct, replay)
    }

    fn make(
        (root, moved): (&Path, &[(Oid, PathBuf)]),
        layout: Layout,
        files: &OpenFiles,
        writable: bool,
        direct: bool,
        replay: Option<Arc<Replay>>,
    ) -> Self {
        let number = u16::try_from(NEXT_NUMBER.fetch_add(1, Ordering::SeqCst)).unwrap_or(0);
        assert!(number != 0, "at most 65535 clusters can be opened in the life of a process");
        Self(Arc::new(Inner {
            root: root.to_owned(),
            layout,
            moved: moved.to_owned(),
            writable,
            direct,
            number,
            pending_fsyncs: PendingFsyncs::new(number, files.table()),
            files: files.clone(),
            ends: Mutex::default(),
            map_extension: Mutex::default(),
            read_times: ReadTimesTable::default(),
            built: replay.map(BuiltPages::new),
        }))
    }

    /// The cluster's number, from 1 to 65,535. It is unique within the process and never reused.
    pub fn number(&self) -> u16 {
        self.0.number
    }

    /// The data directory.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Whether pages have checksums.
    pub fn checksums(&self) -> bool {
        self.0.layout.checksums
    }

    /// Whether files are opened for direct I/O, bypassing the page cache.
    pub fn is_direct(&self) -> bool {
        self.0.direct
    }

    /// Whether relations may be changed.
    pub fn is_writable(&self) -> bool {
        self.0.writable && self.0.files.writer().is_some()
    }

    /// How long reads of a tablespace take with this number of them in flight, if that was measured.
    pub fn read_times(&self, tablespace: Oid, in_flight: u32) -> Option<ReadTimes> {
        self.0.read_times.find(tablespace, in_flight)
    }

    /// Whether the caller should measure how long reads of a tablespace take, with this number of
    /// them in flight, and then call [`Storage::set_read_times`]. This is so for one caller every
    /// ten minutes.
    pub fn claim_read_times(&self, tablespace: Oid, in_flight: u32) -> bool {
        self.0.read_times.claim(tablespace, in_flight)
    }

    /// Stores times that a `ReadTimer` has measured.
    pub fn set_read_times(&self, tablespace: Oid, times: ReadTimes) {
        self.0.read_times.set(tablespace, times);
    }

    /// The replay through which the cluster is read, if it was not shut down.
    pub fn replay(&self) -> Option<&Replay> {
        self.built().map(BuiltPages::replay)
    }

    /// Pages that are built from the log.
    pub(super) fn built(&self) -> Option<&BuiltPages> {
        self.0.built.as_ref()
    }

    /// The segments that have been written since their last fsync.
    pub(crate) fn pending_fsyncs(&self) -> &PendingFsyncs {
        &self.0.pending_fsyncs
    }

    /// Whether this is the last reference to the cluster, in which case no other clone or
    /// [`Relation`](super::Relation) can access its files.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The cluster's open-file table.
    pub fn files(&self) -> &OpenFiles {
        &self.0.files
    }

    /// Closes all of a relation's files (every fork and segment), so that the next access reopens
    /// them. This is the equivalent of PostgreSQL's `smgrrelease`, and must be called after the
    /// relation has been dropped, truncated or replaced. It doesn't disturb I/O in flight, because
    /// each I/O holds its own reference to the file.
    pub fn forget(&self, locator: RelationLocator) {
        self.table().forget(self.number(), Some(locator));
    }

    /// The directory that contains a relation's files.
    pub(super) fn directory(&self, locator: &RelationLocator) -> PathBuf {
        let Inner { root, moved, layout, .. } = &*self.0;
        let place = (locator.tablespace, locator.database);
        database_directory(root, moved, &layout.tablespace_directory, place)
    }

    /// The number for blocking calls on files of a tablespace ([`trunkline_aio::Session::call`]).
    /// Since we don't know which mount a file is on before it is open, we assume that each
    /// tablespace has its own.
    pub(crate) fn call_number(&self, tablespace: Oid) -> u64 {
        u64::from(self.number()) + u64::from(tablespace.0)
    }

    pub(super) fn table(&self) -> &FileTable {
        self.0.files.table()
    }

    /// The file system, for reading.
    pub(crate) fn system(&self) -> &dyn FileSystem {
        self.0.files.system()
    }

    /// The file system, for writing. Fails if the cluster was opened read-only.
    pub(super) fn writer(&self) -> Result<&dyn WritableFiles, StorageError> {
        let writer = self.0.files.writer().filter(|_| self.0.writable);
        writer.ok_or_else(|| StorageError::ReadOnly { path: self.0.root.clone() })
    }

    /// The lock that a session holds while it extends a visibility map.
    pub(crate) fn map_extension(&self) -> &Mutex<()> {
        &self.0.map_extension
    }

    /// For each fork that we have extended, the number of the next block to reserve.
    pub(super) fn ends(&self) -> &Mutex<Map<(RelationLocator, Fork), BlockNo>> {
        &self.0.ends
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The open-file table outlives the cluster. Without this call, the table would keep the
        // cluster's files open until it needed to evict them.
        self.files.table().forget(self.number, None);
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({}, {})", self.number(), self.root().display())
    }
}
