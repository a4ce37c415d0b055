//! Where a case of the suite runs: which method, on which storage, under which seed, in which pool;
//! and what must be true when it is over.
//!
//! A case is a function over a [`Rig`]. [`check`] runs it everywhere, then looks whether anything is
//! left: pins, locks, handles, permits, open files, pages to be written, segments to be synced. A
//! failure under the scheduler names its seed.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::probe::Watch;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_aio::sync::hash::Map;
use trunkline_aio::sync::{Arc, Mutex, sched, thread};
use trunkline_aio::{Aio, Builder, File, MethodKind, Observed, Operation, WorkerSettings, clock};
use trunkline_engine::checkpoint::{
    CheckpointError, CheckpointOptions, CheckpointReport, checkpoint,
};
use trunkline_engine::log::PositionLog;
use trunkline_engine::pool::{Backend, BackendType, Pin, Pool};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, FileSystem, FileTable, KernelFiles, Layout, Relation, RelationLocator,
    Storage, WritableFiles,
};
use trunkline_format::{
    BLOCK_SIZE, BlockNo, Fork, HeapPageBuilder, Oid, PageBytes, SEGMENT_BLOCKS, page_checksum,
};
use trunkline_sim::pause;
use trunkline_sim::{Disk, Fault, Held, Hooks, Plan, Rule, SimExecutor, SimFiles, SimMethod};

/// The methods that can run under the scheduler.
const SIMULATED: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::Custom];
/// The methods that run on real files.
pub(crate) const REAL: [MethodKind; 3] =
    [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];

/// Places of the simulated device.
const PLACES: usize = 6;

/// How large everything is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Also in a pool of one session.
    pub(crate) local: bool,
    pub(crate) buffers: u32,
    /// Of relation 0, which is there from the start.
    pub(crate) blocks: u32,
    pub(crate) handles: u32,
    /// Seeds per method and pool.
    pub(crate) seeds: u64,
    pub(crate) direct: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self { local: false, buffers: 64, blocks: 32, handles: 64, seeds: 6, direct: false }
    }
}

/// Where one run of a case is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bench {
    pub(crate) method: MethodKind,
    /// Of the simulated disk; without one it is real files and real threads.
    pub(crate) seed: Option<u64>,
    pub(crate) local: bool,
    /// Sessions make buffered writes themselves, as by default on local file systems.
    pub(crate) at_once: bool,
}

/// An instance, its storage, its hooks and a pool.
pub(crate) struct Rig {
    pub(crate) aio: Aio,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) plan: Plan,
    pub(crate) pool: Pool,
    pub(crate) storage: Storage,
    pub(crate) bench: Bench,
    pub(crate) log: PositionLog,
    pub(crate) files: Arc<Files>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) disk: Arc<Disk>,
    /// A sync has failed, so no checkpoint can come to its end any more.
    broken: AtomicBool,
    folder: Option<tempfile::TempDir>,
}

/// A file system that knows the names of what it opened, and can refuse what it is asked for.
pub(crate) struct Files {
    inner: Box<dyn WritableFiles>,
    disk: Option<Arc<Disk>>,
    names: Mutex<Map<u64, PathBuf>>,
    refused: Mutex<Option<(Call, i32)>>,
    /// See [`Files::before_allocation`].
    interlude: Mutex<Option<Interlude>>,
}

/// What happens meanwhile.
type Interlude = Box<dyn FnOnce() + Send>;

/// What a file system is asked for beside I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Open,
    Length,
    Allocate,
    Truncate,
    Remove,
    SyncDirectory,
}

impl Call {
    pub(crate) const ALL: [Call; 6] = [
        Call::Open,
        Call::Length,
        Call::Allocate,
        Call::Truncate,
        Call::Remove,
        Call::SyncDirectory,
    ];
}

impl Files {
    /// A call fails with an errno from now on.
    pub(crate) fn refuse(&self, call: Call, errno: i32) {
        *self.refused.lock() = Some((call, errno));
    }

    /// Nothing fails any more.
    pub(crate) fn refuse_nothing(&self) {
        *self.refused.lock() = None;
    }

    /// When room is made in a file the next time, this happens first: what others do then.
    pub(crate) fn before_allocation(&self, interlude: impl FnOnce() + Send + 'static) {
        *self.interlude.lock() = Some(Box::new(interlude));
    }

    fn asked(&self, call: Call) -> io::Result<()> {
        match *self.refused.lock() {
            Some((refused, errno)) if refused == call => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    /// What a write has written: the first block, and the bytes.
    pub(crate) fn written(&self, io: &Observed, length: usize) -> Option<(BlockNo, Vec<u8>)> {
        let path = self.names.lock().get(&io.file_id)?.clone();
        let segment = path.extension().and_then(|part| part.to_str()?.parse().ok()).unwrap_or(0);
        let first = segment * SEGMENT_BLOCKS + (io.offset / BLOCK_SIZE as u64) as BlockNo;
        if let Some(disk) = &self.disk {
            let (bytes, offset) = (disk.content(path.to_str()?), io.offset as usize);
            return Some((first, bytes.get(offset..offset + length)?.to_vec()));
        }
        let mut bytes = vec![0; length];
        fs::File::open(path).ok()?.read_exact_at(&mut bytes, io.offset).ok()?;
        Some((first, bytes))
    }

    fn note(&self, path: &Path, opened: io::Result<File>) -> io::Result<File> {
        let file = opened?;
        self.names.lock().insert(file.id(), path.to_owned());
        Ok(file)
    }
}

impl FileSystem for Files {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.asked(Call::Open)?;
        self.note(path, self.inner.open(path, direct))
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.asked(Call::Length)?;
        self.inner.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.asked(Call::Length)?;
        self.inner.file_length(path)
    }
}

impl WritableFiles for Files {
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File> {
        self.asked(Call::Open)?;
        self.note(path, self.inner.open_for_writing(path, direct, create))
    }

    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        let interlude = self.interlude.lock().take();
        interlude.into_iter().for_each(|interlude| interlude());
        self.asked(Call::Allocate)?;
        self.inner.allocate(file, offset, length)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.asked(Call::Truncate)?;
        self.inner.truncate(file, length)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.asked(Call::Remove)?;
        self.inner.remove(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.asked(Call::SyncDirectory)?;
        self.inner.sync_directory_of(path)
    }
}

/// What a version of a block of a relation holds, with the position of its last change in the log.
pub(crate) fn page(number: u32, block: BlockNo, version: u32, lsn: u64) -> PageBytes {
    let mut builder = HeapPageBuilder::new(block);
    builder.push_account(block as i32, version as i32, number as i32).expect("room");
    let mut page = builder.finish(true);
    page[0..4].copy_from_slice(&((lsn >> 32) as u32).to_le_bytes());
    page[4..8].copy_from_slice(&(lsn as u32).to_le_bytes());
    let checksum = page_checksum(&page, block);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    page
}

/// Whether a page is a version of a block, whatever its position in the log and its checksum.
pub(crate) fn is_version(found: &[u8], number: u32, block: BlockNo, version: u32) -> bool {
    found[10..] == page(number, block, version, 0)[10..]
}

/// Whether a page's checksum is right.
pub(crate) fn is_sound(found: &[u8], block: BlockNo) -> bool {
    let Some(page) = found.first_chunk::<BLOCK_SIZE>() else { return false };
    trunkline_format::page::is_new(page)
        || u16::from_le_bytes([page[8], page[9]]) == page_checksum(page, block)
}

/// Runs a case everywhere: first where a deadlock is noticed at once.
pub(crate) fn check(setup: Setup, case: fn(&Arc<Rig>)) {
    check_simulated(setup, case);
    check_real(setup, case);
}

/// Runs a case on real files, under each method.
pub(crate) fn check_real(setup: Setup, case: fn(&Arc<Rig>)) {
    for &local in pools(setup) {
        for method in REAL {
            run(Bench { method, seed: None, local, at_once: false }, setup, case);
        }
        let method = MethodKind::IoUring;
        run(Bench { method, seed: None, local, at_once: true }, setup, case);
    }
}

/// Runs a case on the simulated disk, under each method and many seeds.
pub(crate) fn check_simulated(setup: Setup, case: fn(&Arc<Rig>)) {
    for &local in pools(setup) {
        for method in SIMULATED {
            for seed in 0..setup.seeds {
                let at_once = seed % 2 == 1;
                let bench = Bench { method, seed: Some(seed), local, at_once };
                let result = sched::run(sched::Config::new(seed), move || run(bench, setup, case));
                result.unwrap_or_else(|failure| {
                    panic!("{method}, local {local}, at once {at_once}: {failure}")
                });
            }
        }
    }
}

fn pools(setup: Setup) -> &'static [bool] {
    if setup.local { &[false, true] } else { &[false] }
}

fn run(bench: Bench, setup: Setup, case: fn(&Arc<Rig>)) {
    let rig = Arc::new(Rig::start(bench, setup));
    case(&rig);
    Arc::into_inner(rig).expect("a thread was left behind").finish();
}

/// A thread with a result.
pub(crate) struct Task<T> {
    handle: thread::JoinHandle,
    result: Arc<Mutex<Option<T>>>,
}

impl<T> Task<T> {
    pub(crate) fn join(self) -> T {
        self.handle.join().expect("a thread failed");
        self.result.lock().take().expect("a result")
    }

    /// Whether it has ended, or is about to.
    pub(crate) fn is_done(&self) -> bool {
        self.result.lock().is_some()
    }
}

impl Rig {
    fn start(bench: Bench, setup: Setup) -> Self {
        let (hooks, disk, plan) = (Arc::new(Hooks::default()), Arc::new(Disk::new()), Plan::none());
        let log = PositionLog::default();
        let watch = Arc::new(Watch::new(&hooks, &log));
        let mut builder = Builder::new()
            .handles(setup.handles, 2, 4)
            .region_bytes((setup.buffers as usize + 128) * BLOCK_SIZE)
            .workers(WorkerSettings { min: 3, max: 4, ..WorkerSettings::default() })
            .try_cached_below(0)
            .write_at_once_max(if bench.at_once { u32::MAX } else { 0 })
            .probe(Arc::clone(&watch) as Arc<_>)
            .method(bench.method);
        if bench.seed.is_some() {
            builder = builder
                .executor(Arc::new(SimExecutor::new(&disk, plan.clone())))
                .custom_method(Arc::new(SimMethod::new(&disk, plan.clone(), PLACES)));
        }
        let aio = builder.start().expect("starts");
        assert_eq!(aio.method_status().used, bench.method, "{:?}", aio.method_status());
        let folder = bench
            .seed
            .is_none()
            .then(|| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder"));
        let inner: Box<dyn WritableFiles> = match &folder {
            Some(_) => Box::new(KernelFiles::new(&aio)),
            None => Box::new(SimFiles::new(&aio, &disk)),
        };
        let files = Arc::new(Files {
            inner,
            disk: bench.seed.map(|_| Arc::clone(&disk)),
            names: Mutex::default(),
            refused: Mutex::default(),
            interlude: Mutex::default(),
        });
        watch.look_at(&files);
        let root = folder.as_ref().map_or(Path::new("/sim"), |folder| folder.path());
        let storage = storage(root, &files, setup.direct);
        let logged = Arc::new(log.clone());
        let pool = match bench.local {
            true => Pool::local(&aio, setup.buffers),
            false => Pool::with_log(&aio, setup.buffers, logged),
        };
        let pool = pool.expect("a pool");
        let broken = AtomicBool::new(false);
        let rig = Self {
            aio,
            hooks,
            plan,
            pool,
            storage,
            bench,
            log,
            files,
            watch,
            disk,
            broken,
            folder,
        };
        rig.create(0, setup.blocks);
        rig
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.bench.seed.is_some()
    }

    /// Whether writes run in other threads than the session's.
    pub(crate) fn is_asynchronous(&self) -> bool {
        self.bench.method != MethodKind::Sync
    }

    /// Relations by number.
    pub(crate) fn relation(&self, number: u32) -> Relation {
        relation(&self.storage, number)
    }

    /// Makes a relation, each block in version 0, durable.
    pub(crate) fn create(&self, number: u32, blocks: u32) {
        let bytes: Vec<u8> = (0..blocks).flat_map(|block| page(number, block, 0, 0)).collect();
        let path = self.relation(number).path(0);
        if self.folder.is_none() {
            return self.disk.create(path.to_str().expect("a name"), 1, &bytes);
        }
        fs::create_dir_all(path.parent().expect("a directory")).expect("creates it");
        fs::write(&path, bytes).expect("writes");
    }

    /// What a read of a relation's first segment finds on disk.
    pub(crate) fn on_disk(&self, number: u32) -> Vec<u8> {
        let path = self.relation(number).path(0);
        match self.folder.is_none() {
            true => self.disk.content(path.to_str().expect("a name")),
            false => fs::read(&path).unwrap_or_default(),
        }
    }

    /// Whether a relation's first segment is there.
    pub(crate) fn exists(&self, number: u32) -> bool {
        let path = self.relation(number).path(0);
        self.files.file_length(&path).expect("looks").is_some()
    }

    /// The version on disk of a block of relation 0 is this one.
    pub(crate) fn is_on_disk(&self, block: BlockNo, version: u32) -> bool {
        let at = block as usize * BLOCK_SIZE;
        let bytes = self.on_disk(0);
        bytes
            .get(at..at + BLOCK_SIZE)
            .is_some_and(|found| is_sound(found, block) && is_version(found, 0, block, version))
    }

    pub(crate) fn backend(&self) -> Backend {
        self.pool.backend(BackendType::Client).expect("a session")
    }

    /// Changes a block of relation 0.
    pub(crate) fn change(&self, backend: &mut Backend, block: BlockNo, version: u32) {
        self.change_in(backend, 0, block, version);
    }

    /// Changes a block.
    pub(crate) fn change_in(
        &self,
        backend: &mut Backend,
        number: u32,
        block: BlockNo,
        version: u32,
    ) {
        let pin = backend.read(&self.relation(number), block).expect("reads");
        self.change_pinned(backend, number, &pin, version);
    }

    /// Changes a block that is pinned.
    pub(crate) fn change_pinned(
        &self,
        backend: &mut Backend,
        number: u32,
        pin: &Pin,
        version: u32,
    ) {
        let block = pin.page().block();
        let mut bytes = backend.write_lock(pin.page()).expect("locks");
        // The record first, then the page; a pool of one session has no log.
        let lsn = if self.bench.local { 0 } else { self.log.append(64).0 };
        bytes.copy_from_slice(&page(number, block, version, lsn));
        bytes.mark_dirty();
    }

    /// A block of relation 0 can be read and is this version.
    pub(crate) fn assert_reads(&self, backend: &mut Backend, block: BlockNo, version: u32) {
        let pin = backend.read(&self.relation(0), block).expect("reads");
        let found = backend.read_lock(pin.page()).expect("locks");
        assert!(is_version(&*found, 0, block, version), "block {block} is not {version}");
    }

    pub(crate) fn checkpoint(
        &self,
        backend: &mut Backend,
    ) -> Result<CheckpointReport, CheckpointError> {
        self.checkpoint_with(backend, CheckpointOptions::default())
    }

    pub(crate) fn checkpoint_with(
        &self,
        backend: &mut Backend,
        options: CheckpointOptions,
    ) -> Result<CheckpointReport, CheckpointError> {
        let result = checkpoint(&self.pool, backend, options, |_| {});
        if let Err(CheckpointError::Sync { .. }) = &result {
            self.broken.store(true, Ordering::SeqCst);
        }
        result
    }

    /// From now on the next `times` executions of `operation` meet with `fault`: on the simulated
    /// disk before anything is done, on real files by a result that says so.
    pub(crate) fn trouble(&self, operation: Operation, fault: Fault, times: u64) {
        if self.is_simulated() {
            return self.plan.set(vec![Rule::new(operation, 1, fault).times(times)]);
        }
        let mut left = times;
        self.hooks.change_results(move |io, raw| {
            if io.operation != operation || left == 0 || raw < 0 {
                return raw;
            }
            left -= 1;
            match fault {
                Fault::Error(errno) => -errno,
                Fault::Interrupted => -libc::EINTR,
                Fault::Again => -libc::EAGAIN,
                Fault::Short(bytes) => raw.min(bytes as i32),
                _ => raw,
            }
        });
    }

    /// All is well again.
    pub(crate) fn no_trouble(&self) {
        self.plan.set(Vec::new());
        self.hooks.keep_results();
    }

    /// Holds back the result of the next write that includes a block.
    pub(crate) fn hold_write(&self, block: BlockNo) -> Held {
        self.hooks.hold_result(move |io| io.operation == Operation::Writev && includes(io, block))
    }

    /// Whether a block of a relation has something to write.
    pub(crate) fn is_dirty(&self, number: u32, block: BlockNo) -> bool {
        let locator = self.relation(number).locator();
        let rows = self.pool.rows();
        rows.iter().any(|row| row.relation == locator && row.block == block && row.dirty)
    }

    /// Whether a block of relation 0 is being written or read.
    pub(crate) fn is_under_io(&self, block: BlockNo) -> bool {
        let locator = self.relation(0).locator();
        let rows = self.pool.rows();
        rows.iter().any(|row| row.relation == locator && row.block == block && row.io.is_some())
    }

    /// Starts a thread of the façade; its panic is the test's when it is joined.
    pub(crate) fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce(&Arc<Rig>) -> T + Send + 'static,
    ) -> Task<T> {
        let (rig, result) = (Arc::clone(self), Arc::new(Mutex::new(None)));
        let theirs = Arc::clone(&result);
        let handle = thread::spawn(name, move || {
            let value = body(&rig);
            // Before the result: who has that may end the rig.
            drop(rig);
            *theirs.lock() = Some(value);
        });
        Task { handle: handle.expect("a thread"), result }
    }

    /// Waits for a state that no event announces: by looking again and again, after every other
    /// thread has had its turn.
    pub(crate) fn wait_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let begin = clock::now();
        while !done() {
            let waited = clock::now().since(begin);
            assert!(waited < Duration::from_secs(30), "waited in vain for: {what}");
            self.look_again();
        }
    }

    /// Lets every other thread go as far as it can: for certain under the scheduler, a while
    /// otherwise.
    pub(crate) fn let_others_go(&self) {
        match self.is_simulated() {
            true => pause(Duration::from_micros(500)),
            false => (0..50).for_each(|_| thread::yield_now()),
        }
    }

    fn look_again(&self) {
        match self.is_simulated() {
            true => pause(Duration::from_micros(500)),
            false => thread::yield_now(),
        }
    }

    /// What must be true when a case is over.
    fn finish(self) {
        self.no_trouble();
        self.wait_until("nothing in flight", || self.aio.handles_in_use() == 0);
        self.wait_until("no pins", || self.pool.rows().iter().all(|row| row.pins == 0));
        assert_eq!(self.watch.wrong(), Vec::<String>::new());
        if !self.broken.load(Ordering::SeqCst) {
            self.check_clean();
        }
        self.check_locks();
        self.check_permits();
        let Self { aio, pool, storage, files, watch, .. } = self;
        let table = Arc::clone(storage.files());
        drop((pool, storage));
        watch.look_away();
        // Who completed the last write of a session that was cancelled may just be letting go of it.
        let begin = clock::now();
        while table.open() > 0 || aio.open_files() > 0 {
            assert!(clock::now().since(begin) < Duration::from_secs(30), "files left open");
            match self.bench.seed {
                Some(_) => pause(Duration::from_micros(500)),
                None => thread::yield_now(),
            }
        }
        drop(files);
    }

    /// A checkpoint writes and syncs everything, so that the next one has nothing to do.
    fn check_clean(&self) {
        let mut backend = self.backend();
        self.checkpoint(&mut backend).expect("the last checkpoint");
        let rows = self.pool.rows();
        assert!(rows.iter().all(|row| row.io.is_none() && !row.dirty), "{rows:?}");
        let again = self.checkpoint(&mut backend).expect("one more");
        assert_eq!((again.buffers, again.files), (0, 0), "{again}");
        assert_eq!(self.watch.wrong(), Vec::<String>::new());
    }

    /// As many sessions as there is room for are admitted at once: no permit is lost.
    fn check_permits(&self) {
        if self.broken.load(Ordering::SeqCst) {
            return;
        }
        self.create(9, 64);
        let relation = self.relation(9);
        let sessions = (self.pool.buffers() / 4).min(32);
        let mut backends: Vec<_> = (0..sessions).map(|_| self.backend()).collect();
        let mut pins = Vec::new();
        for (at, backend) in backends.iter_mut().enumerate() {
            pins.push(backend.read(&relation, at as u32).expect("reads"));
            assert_eq!(backend.pins(), 1);
        }
        assert!(self.pool.permits() <= self.pool.buffers());
        drop(pins);
        assert!(backends.iter().all(|backend| backend.pins() == 0));
    }

    /// Every page can be locked for oneself.
    fn check_locks(&self) {
        let mut backend = self.backend();
        for row in self.pool.rows() {
            let relation = self.storage.relation(row.relation, row.fork);
            if !self.pool.contains(&relation, row.block) {
                continue;
            }
            let pin = backend.read(&relation, row.block).expect("a hit");
            assert!(pin.page().try_write().is_some(), "block {} is locked", row.block);
        }
    }
}

/// A cluster of our own.
pub(crate) fn storage(root: &Path, files: &Arc<Files>, direct: bool) -> Storage {
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let table = Arc::new(FileTable::new(16));
    Storage::for_writing(root, layout, table, Arc::clone(files) as Arc<dyn WritableFiles>, direct)
}

/// Relations by number.
pub(crate) fn relation(storage: &Storage, number: u32) -> Relation {
    let relfilenode = 16_384 + number;
    let locator = RelationLocator { tablespace: DEFAULT_TABLESPACE, database: Oid(5), relfilenode };
    storage.relation(locator, Fork::Main)
}

/// First block and number of blocks.
pub(crate) fn extent(io: &Observed) -> (BlockNo, u32) {
    let size = BLOCK_SIZE as u64;
    ((io.offset / size) as BlockNo, io.length / BLOCK_SIZE as u32)
}

fn includes(io: &Observed, block: BlockNo) -> bool {
    let (first, count) = extent(io);
    (first..first + count).contains(&block)
}
