//! The cluster that is used by test cases for the buffer pool. It consists of a pool, some
//! relations, which are identified by number, and the storage for them.
//!
//! Relation `n` has relfilenode `16384 + n` in database 5. We store the relation, the block number
//! and the version in every page, so that we notice if a page ends up in the wrong buffer or at the
//! wrong offset. The functions in this module that change segments bypass the engine, as if another
//! process had changed the files. Their changes are durable immediately.

use super::instance::Instance;
use super::{
    Environment, FaultyFiles, InlineIo, Matrix, REAL, SIMULATED, TestThread, WriteChecker, pages,
    spawn,
};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::AtomicBool;
use trunkline_aio::{MethodKind, Observed, WorkerSettings};
use trunkline_engine::log::PositionLog;
use trunkline_engine::pool::{Backend, BackendType, BufferRow, Pool};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, FileSystem, Layout, OpenFiles, Relation, RelationLocator, Storage,
    WritableFiles,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid, SEGMENT_BLOCKS};

/// The relations' mount on the simulated disk.
const DEVICE: u64 = 1;

/// The relfilenode of relation 0.
const FIRST_FILE: u32 = 16_384;

/// Maximum number of files a cluster keeps open.
const FILES_OPEN: usize = 16;

/// Number of pages in the I/O region in addition to the pool's buffers.
const FRAMES_BESIDE: usize = 128;

/// The kinds of pool a case runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pools {
    /// A shared pool, because the case needs several sessions.
    Shared,
    /// A local pool, as used for temporary relations, with its single session.
    Local,
    /// Both, one after the other.
    Both,
}

/// The cluster a pool case needs.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// The kinds of pool the case runs in.
    pub pools: Pools,
    /// Pool size in buffers.
    pub buffers: u32,
    /// Length of relation 0, which exists from the start, in blocks.
    pub blocks: u32,
    /// Number of I/O handles in the instance. A few of them are reserved for particular I/O
    /// classes.
    pub handles: u32,
    /// Maximum number of sessions.
    pub sessions: u32,
    /// Number of seeds per method and pool.
    pub seeds: u64,
    /// Opens the relations for direct I/O.
    pub direct: bool,
    /// The case may change the cluster. This adds a write-ahead log and the write checker.
    pub writable: bool,
    /// The case waits for I/O that another thread executes, so it doesn't run under `sync`.
    pub asynchronous: bool,
}

impl Default for Needs {
    /// A shared pool over a read-only cluster.
    fn default() -> Self {
        Self { blocks: 16, seeds: 8, writable: false, ..Self::writable() }
    }
}

impl Needs {
    /// For a case with a single session over a read-only cluster.
    pub fn one_session() -> Self {
        Self { pools: Pools::Both, seeds: 6, ..Self::default() }
    }

    /// For a case that changes the cluster, in a shared pool.
    pub const fn writable() -> Self {
        Self {
            pools: Pools::Shared,
            buffers: 64,
            blocks: 32,
            handles: 64,
            sessions: 255,
            seeds: 6,
            direct: false,
            writable: true,
            asynchronous: false,
        }
    }

    /// For a case that waits for I/O that another thread executes.
    #[must_use]
    pub fn asynchronous(self) -> Self {
        Self { asynchronous: true, ..self }
    }

    /// Expands the environments, so that the case runs with each kind of pool that it asks for. If
    /// the case writes, it also runs with inline writes, where the session executes the I/O itself
    /// instead of passing it to the I/O method. In simulated runs, we use inline writes if the seed
    /// is odd. On real files, we run the case with inline writes only for io_uring, in addition to
    /// the normal run.
    fn expand(self, matrix: Matrix) -> Matrix {
        let can_run = |it: &Environment| it.is_asynchronous() || !self.asynchronous;
        let matrix = matrix.vary(|environment| Some(environment).filter(can_run));
        let matrix = matrix.vary(|environment| match self.pools {
            Pools::Shared => vec![environment],
            Pools::Local => vec![Environment { local_pool: true, ..environment }],
            Pools::Both => environment.with_both_pools().to_vec(),
        });
        if !self.writable {
            return matrix;
        }
        let inline = |environment| Environment { inline: InlineIo::Writes, ..environment };
        matrix.vary(|environment| match (environment.seed, environment.method) {
            (Some(seed), _) if seed % 2 == 1 => vec![inline(environment)],
            (None, MethodKind::IoUring) => vec![environment, inline(environment)],
            _ => vec![environment],
        })
    }

    fn simulated(self) -> Matrix {
        self.expand(Matrix::simulated(&SIMULATED, self.seeds))
    }

    fn real(self) -> Matrix {
        self.expand(Matrix::real(&REAL))
    }
}

/// Runs a case on the simulated disk, and then on real files.
pub fn check(needs: Needs, body: fn(&Arc<Cluster>)) {
    needs.simulated().and(needs.real()).run(move |environment| run_in(environment, needs, body));
}

/// Runs a case on the simulated disk only.
pub fn check_simulated(needs: Needs, body: fn(&Arc<Cluster>)) {
    needs.simulated().run(move |environment| run_in(environment, needs, body));
}

/// Runs a case on real files only.
pub fn check_real(needs: Needs, body: fn(&Arc<Cluster>)) {
    needs.real().run(move |environment| run_in(environment, needs, body));
}

/// Runs a case in a single environment. Unlike the other functions, this accepts a closure that has
/// state, which is needed to use a coverage meter.
pub fn check_in(
    environment: Environment,
    needs: Needs,
    body: impl FnOnce(&Arc<Cluster>) + Send + 'static,
) {
    environment.run(move |environment| run_in(environment, needs, body));
}

/// Starts a cluster, runs the case, and runs the final checks.
fn run_in(environment: Environment, needs: Needs, body: impl FnOnce(&Arc<Cluster>)) {
    let cluster = Arc::new(Cluster::start(environment, needs));
    body(&cluster);
    Cluster::finish_last(cluster);
}

/// A cluster with a buffer pool and all the layers below it. It dereferences to its [`Instance`],
/// so that a test case has direct access to the instance's disk, probe and faults.
#[derive(Debug)]
pub struct Cluster {
    /// The pool.
    pub pool: Pool,
    /// The cluster's relations.
    pub storage: Storage,
    /// The file system below the relations.
    pub files: Arc<FaultyFiles>,
    /// The write-ahead log of a writable shared pool. It only keeps track of LSNs, and doesn't
    /// store any records.
    pub log: PositionLog,
    /// Checks for each page write that the checksum is valid and that the WAL was flushed before
    /// the data page.
    pub writes: Arc<WriteChecker>,
    /// True if an fsync has failed. After that, every checkpoint fails, so the final checks must
    /// not expect the pool to be clean.
    pub(super) sync_failed: AtomicBool,
    pub(super) writable: bool,
    pub(super) instance: Instance,
}

impl Deref for Cluster {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Cluster {
    fn start(environment: Environment, needs: Needs) -> Self {
        let (log, mut checker) = (PositionLog::default(), None);
        let instance = Instance::start(environment, |builder, probe| {
            let checker = checker.insert(Arc::new(WriteChecker::new(probe, &log)));
            let builder = builder
                .handles(needs.handles, 2, 4)
                .sessions(needs.sessions)
                .region_bytes((needs.buffers as usize + FRAMES_BESIDE) * BLOCK_SIZE)
                .workers(WorkerSettings { min: 3, max: 4, ..WorkerSettings::default() })
                .probe(Arc::clone(checker) as Arc<_>);
            environment.configure(builder)
        });
        // The checker is a wrapper around the instance's probe, so it must be created when the
        // instance is started.
        let writes = checker.expect("made with the instance");
        let files = Arc::new(FaultyFiles::new(&instance));
        let storage = match needs.writable {
            true => {
                writes.attach(&files);
                storage(instance.root(), Arc::clone(&files) as _, needs.direct)
            }
            false => {
                let files =
                    OpenFiles::read_only(FILES_OPEN, Arc::clone(&files) as Arc<dyn FileSystem>);
                Storage::new(instance.root(), layout(), &files, needs.direct)
            }
        };
        let pool = match (environment.local_pool, needs.writable) {
            (true, _) => Pool::local(&instance.aio, needs.buffers),
            (false, false) => Pool::new(&instance.aio, needs.buffers),
            (false, true) => Pool::with_log(&instance.aio, needs.buffers, Arc::new(log.clone())),
        };
        let cluster = Self {
            pool: pool.expect("a pool"),
            storage,
            files,
            log,
            writes,
            sync_failed: AtomicBool::new(false),
            writable: needs.writable,
            instance,
        };
        cluster.create(0, needs.blocks);
        cluster
    }

    /// Starts a thread of the façade. Joining it passes its panic on to the case.
    pub fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce(&Arc<Self>) -> T + Send + 'static,
    ) -> TestThread<T> {
        spawn(name, self, body)
    }

    /// A new session of the pool.
    ///
    /// # Panics
    /// If the pool has no free session.
    pub fn backend(&self) -> Backend {
        self.pool.backend(BackendType::Client).expect("a session")
    }

    /// Returns a new session. It always uses the I/O method for its reads, except with `sync`. The
    /// file of relation 0 is open, so the first poll doesn't wait for that.
    pub fn async_backend(&self) -> Backend {
        let mut backend = self.backend();
        self.make_async(&mut backend);
        backend
    }

    /// Makes a session like one of [`Cluster::async_backend`].
    pub(super) fn make_async(&self, backend: &mut Backend) {
        backend.session().set_may_block(false);
        if !self.relation(0).is_open(0) {
            // A case that has no such relation doesn't need it open.
            let _ = self.relation(0).locate(0);
        }
    }

    /// A relation by its number.
    pub fn relation(&self, number: u32) -> Relation {
        relation(&self.storage, number)
    }

    /// Returns information about the buffer that contains a block, as in `pg_buffercache`. Returns
    /// `None` if the block isn't in the pool.
    pub fn row(&self, number: u32, block: BlockNo) -> Option<BufferRow> {
        let locator = locator(number);
        self.pool.rows().into_iter().find(|row| row.relation == locator && row.block == block)
    }

    /// Creates a relation with every block at version 0.
    ///
    /// # Panics
    /// Panics if the file cannot be written. The same is true of all functions that bypass the
    /// engine.
    pub fn create(&self, number: u32, blocks: u32) {
        self.write_segment(number, 0, &pages(number, blocks));
    }

    /// Creates or replaces a segment of a relation.
    ///
    /// # Panics
    /// See [`Cluster::create`].
    pub fn write_segment(&self, number: u32, segment: u32, bytes: &[u8]) {
        let path = self.relation(number).path(segment);
        if self.is_simulated() {
            return self.disk.create(name(&path), DEVICE, bytes);
        }
        fs::create_dir_all(path.parent().expect("a directory")).expect("creates it");
        fs::write(&path, bytes).expect("writes");
    }

    /// Sets the length of a relation's first segment.
    ///
    /// # Panics
    /// See [`Cluster::create`].
    pub fn set_blocks(&self, number: u32, blocks: u32) {
        let (path, length) = (self.relation(number).path(0), blocks as usize * BLOCK_SIZE);
        if self.is_simulated() {
            return self.disk.set_length(name(&path), length);
        }
        let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
        file.set_len(length as u64).expect("truncates");
    }

    /// Replaces a block in a relation's first segment.
    ///
    /// # Panics
    /// See [`Cluster::create`].
    pub fn put(&self, number: u32, block: BlockNo, page: &[u8]) {
        assert!(block < SEGMENT_BLOCKS);
        let (path, offset) = (self.relation(number).path(0), block as usize * BLOCK_SIZE);
        if self.is_simulated() {
            return self.disk.overwrite(name(&path), offset, page);
        }
        let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
        file.write_all_at(page, offset as u64).expect("writes");
    }

    /// The contents of a relation's first segment; empty if the segment does not exist.
    pub fn on_disk(&self, number: u32) -> Vec<u8> {
        let path = self.relation(number).path(0);
        match self.is_simulated() {
            true => self.disk.content(name(&path)),
            false => fs::read(&path).unwrap_or_default(),
        }
    }
}

/// The name of a path on the simulated disk.
fn name(path: &Path) -> &str {
    path.to_str().expect("a name")
}

/// The layout of all clusters: data checksums are enabled.
pub fn layout() -> Layout {
    Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() }
}

/// Opens the relations of a cluster for writing.
pub fn storage(root: &Path, files: Arc<dyn WritableFiles>, direct: bool) -> Storage {
    Storage::for_writing(root, layout(), &OpenFiles::writable(FILES_OPEN, files), direct)
}

/// The relation locator for a relation number.
pub fn locator(number: u32) -> RelationLocator {
    let relfilenode = FIRST_FILE + number;
    RelationLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), relfilenode }
}

/// Returns the relation with this number.
pub fn relation(storage: &Storage, number: u32) -> Relation {
    storage.relation(locator(number), Fork::Main)
}

/// An I/O's first block within its segment and its number of blocks.
pub(super) fn extent(io: &Observed) -> (BlockNo, u32) {
    let size = BLOCK_SIZE as u64;
    ((io.offset / size) as BlockNo, io.length / BLOCK_SIZE as u32)
}

/// Whether an I/O covers this block of its segment.
pub(super) fn includes(io: &Observed, block: BlockNo) -> bool {
    let (first, count) = extent(io);
    (first..first + count).contains(&block)
}
