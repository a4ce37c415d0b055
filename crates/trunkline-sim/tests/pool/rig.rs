//! Where a case of the suite runs: which method, on which storage, under which seed, in which pool.
//!
//! A case is a function over a [`Rig`]. [`check`] runs it everywhere, then looks whether anything is
//! left: pins, locks, handles, permits, open files. A failure under the scheduler names its seed.

use crate::pages::{HeldFiles, page};
use std::path::Path;
use std::task::{Context, Waker};
use trunkline_aio::sync::{Arc, sched};
use trunkline_aio::{Aio, Builder, MethodKind, Observed, WorkerSettings};
use trunkline_engine::pool::{Backend, BackendType, Page, Pool};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, FileSystem, FileTable, KernelFiles, Layout, Relation, RelationLocator,
    Storage,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid};
use trunkline_sim::{Disk, Held, Hooks, Plan, SimExecutor, SimFiles, SimMethod};

/// The methods that can run under the scheduler.
const SIMULATED: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::Custom];
/// The methods that run on real files.
const REAL: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];

/// Places of the simulated device.
const PLACES: usize = 6;

/// Which pools a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pools {
    /// Several sessions, so only a shared one.
    Shared,
    /// One session, in a pool of its own.
    Local,
    Both,
}

/// How large everything is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) pools: Pools,
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
        Self { pools: Pools::Shared, buffers: 64, blocks: 16, handles: 64, seeds: 8, direct: false }
    }
}

impl Setup {
    /// For a case of one session.
    pub(crate) fn both() -> Self {
        Self { pools: Pools::Both, seeds: 6, ..Self::default() }
    }
}

/// Where one run of a case is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bench {
    pub(crate) method: MethodKind,
    /// Of the simulated disk; without one it is real files and real threads.
    pub(crate) seed: Option<u64>,
    pub(crate) local: bool,
}

/// An instance, its storage, its hooks and a pool.
pub(crate) struct Rig {
    pub(crate) aio: Aio,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) plan: Plan,
    pub(crate) pool: Pool,
    pub(crate) storage: Storage,
    pub(crate) bench: Bench,
    pub(crate) system: Arc<HeldFiles>,
    pub(crate) disk: Arc<Disk>,
    pub(crate) folder: Option<tempfile::TempDir>,
}

/// Runs a case everywhere: first where a deadlock is noticed at once.
pub(crate) fn check(setup: Setup, case: fn(&Arc<Rig>)) {
    check_simulated(setup, case);
    check_real(setup, case);
}

/// Runs a case on real files, under each method.
pub(crate) fn check_real(setup: Setup, case: fn(&Arc<Rig>)) {
    for local in pools(setup) {
        for method in REAL {
            run(Bench { method, seed: None, local }, setup, case);
        }
    }
}

/// Runs a case on the simulated disk, under each method and many seeds.
pub(crate) fn check_simulated(setup: Setup, case: fn(&Arc<Rig>)) {
    for local in pools(setup) {
        for method in SIMULATED {
            for seed in 0..setup.seeds {
                let bench = Bench { method, seed: Some(seed), local };
                let result = sched::run(sched::Config::new(seed), move || run(bench, setup, case));
                result.unwrap_or_else(|failure| panic!("{method}, local {local}: {failure}"));
            }
        }
    }
}

fn pools(setup: Setup) -> impl Iterator<Item = bool> {
    let locals: &[bool] = match setup.pools {
        Pools::Shared => &[false],
        Pools::Local => &[true],
        Pools::Both => &[false, true],
    };
    locals.iter().copied()
}

fn run(bench: Bench, setup: Setup, case: fn(&Arc<Rig>)) {
    let rig = Arc::new(Rig::start(bench, setup));
    case(&rig);
    Arc::into_inner(rig).expect("a thread was left behind").finish();
}

impl Rig {
    fn start(bench: Bench, setup: Setup) -> Self {
        let (hooks, disk, plan) = (Arc::new(Hooks::default()), Arc::new(Disk::new()), Plan::none());
        let region = (setup.buffers as usize + 128) * BLOCK_SIZE;
        let mut builder = Builder::new()
            .handles(setup.handles, 2, 4)
            .region_bytes(region)
            .workers(WorkerSettings { min: 3, max: 4, ..WorkerSettings::default() })
            .try_cached_below(0)
            .probe(Arc::clone(&hooks) as Arc<_>)
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
        let inner: Box<dyn FileSystem> = match &folder {
            Some(_) => Box::new(KernelFiles::new(&aio)),
            None => Box::new(SimFiles::new(&aio, &disk)),
        };
        let system = Arc::new(HeldFiles::new(inner));
        let root = folder.as_ref().map_or(Path::new("/sim"), |folder| folder.path());
        let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
        let table = Arc::new(FileTable::new(16));
        let dynamic = Arc::clone(&system) as Arc<dyn FileSystem>;
        let storage = Storage::new(root, layout, table, dynamic, setup.direct);
        let pool = match bench.local {
            true => Pool::local(&aio, setup.buffers),
            false => Pool::new(&aio, setup.buffers),
        };
        let pool = pool.expect("a pool");
        let rig = Self { aio, hooks, plan, pool, storage, bench, system, disk, folder };
        rig.create(0, setup.blocks);
        rig
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.bench.seed.is_some()
    }

    /// Whether reads run in other threads than the session's, unless it executes one itself.
    pub(crate) fn is_asynchronous(&self) -> bool {
        self.bench.method != MethodKind::Sync
    }

    /// Relations by number.
    pub(crate) fn relation(&self, number: u32) -> Relation {
        let locator = RelationLocator {
            tablespace: DEFAULT_TABLESPACE,
            database: Oid(5),
            relfilenode: 16_384 + number,
        };
        self.storage.relation(locator, Fork::Main)
    }

    pub(crate) fn backend(&self) -> Backend {
        self.pool.backend(BackendType::Client).expect("a session")
    }

    /// One that never executes its reads itself, except under `sync`.
    pub(crate) fn task_backend(&self) -> Backend {
        let mut backend = self.backend();
        backend.session().set_may_block(false);
        backend
    }

    /// A stream over blocks of relation 0.
    pub(crate) fn stream(
        &self,
        backend: &Backend,
        blocks: &[BlockNo],
        options: StreamOptions,
    ) -> ReadStream<BlockList> {
        ReadStream::new(backend, &self.relation(0), BlockList::new(blocks.to_vec()), options)
    }

    /// Starts to read blocks of relation 0 and does not wait. Under `sync` they are read.
    pub(crate) fn start_read(
        &self,
        backend: &mut Backend,
        blocks: &[BlockNo],
    ) -> ReadStream<BlockList> {
        backend.session().set_may_block(false);
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = self.stream(backend, blocks, options);
        let _ = stream.poll_next(&mut Context::from_waker(Waker::noop()), backend);
        stream
    }

    /// Reads a block of relation 0, which must be as it was written.
    pub(crate) fn read_ok(&self, backend: &mut Backend, block: BlockNo) {
        let pin = backend.read(&self.relation(0), block).expect("reads");
        self.check_page(&backend.read_lock(pin.page()).expect("locks"), block);
    }

    pub(crate) fn check_page(&self, found: &Page<'_>, block: BlockNo) {
        assert!(**found == page(0, block), "block {block}: the wrong page");
    }

    /// Reads a stream to its end: the blocks in the order in which they came, and the errors.
    pub(crate) fn drain(
        &self,
        backend: &mut Backend,
        stream: &mut ReadStream<BlockList>,
    ) -> Vec<Result<BlockNo, String>> {
        let mut seen = Vec::new();
        loop {
            match stream.next(backend) {
                Ok(None) => return seen,
                Ok(Some(found)) => {
                    assert_eq!(found.pin.block(), found.block);
                    let page = backend.read_lock(found.pin).expect("locks");
                    self.check_page(&page, found.block);
                    seen.push(Ok(found.block));
                }
                Err(error) => seen.push(Err(error.to_string())),
            }
        }
    }

    /// First block and number of blocks of each read since `hooks.record()`.
    pub(crate) fn reads(&self) -> Vec<(BlockNo, u32)> {
        self.hooks.recorded().iter().map(extent).collect()
    }

    /// The same for one session.
    pub(crate) fn reads_of(&self, session: u32) -> Vec<(BlockNo, u32)> {
        let ios = self.hooks.recorded();
        ios.iter().filter(|io| io.session == session).map(extent).collect()
    }

    /// Holds back the result of the next read that includes a block.
    pub(crate) fn hold(&self, block: BlockNo) -> Held {
        self.hooks.hold_result(move |io| includes(io, block))
    }

    /// Fills a pool of 16 buffers with reads that nobody waits for, and that do not end until all
    /// that is held is released: no pin is booked, and no buffer is free.
    pub(crate) fn fill_with_reads(&self) -> Vec<Held> {
        assert!(self.is_asynchronous() && self.pool.buffers() == 16);
        let held = (0..16).map(|_| self.hooks.hold_result(|_| true)).collect();
        let (mut backend, mut next) = (self.backend(), 0);
        while next < 16 {
            let list: Vec<BlockNo> = (next..16).collect();
            let mut stream = self.start_read(&mut backend, &list);
            next += stream.stats().io_blocks as BlockNo;
            stream.let_go();
        }
        self.wait_until("every buffer is being read", || {
            self.pool.rows().iter().filter(|row| row.pins == 1 && row.io.is_some()).count() == 16
        });
        held
    }

    /// Makes all reads of a block end in an error until `hooks.keep_results`.
    pub(crate) fn fail(&self, block: BlockNo, errno: i32) {
        self.hooks.change_results(move |io, raw| if includes(io, block) { -errno } else { raw });
    }

    /// Pins of a block of relation 0, those of I/O included.
    pub(crate) fn pins(&self, block: BlockNo) -> u32 {
        let locator = self.relation(0).locator();
        let rows = self.pool.rows();
        let row = rows.iter().find(|row| row.relation == locator && row.block == block);
        row.map_or(0, |row| row.pins)
    }

    /// Waits until a block of relation 0 has so many pins.
    pub(crate) fn wait_pins(&self, block: BlockNo, pins: u32) {
        self.wait_until(&format!("{pins} pins of block {block}"), || self.pins(block) == pins);
    }
}

fn extent(io: &Observed) -> (BlockNo, u32) {
    let size = BLOCK_SIZE as u64;
    ((io.offset / size) as BlockNo, io.length / BLOCK_SIZE as u32)
}

fn includes(io: &Observed, block: BlockNo) -> bool {
    let (first, count) = extent(io);
    (first..first + count).contains(&block)
}
