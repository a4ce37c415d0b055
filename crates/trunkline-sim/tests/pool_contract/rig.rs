//! Where a case of the suite runs: which method, on which storage, under which seed, in which pool.
//!
//! A case is a function over a [`Rig`]. [`check`] runs it everywhere, then looks whether anything is
//! left: pins, locks, handles, permits, open files. A failure under the scheduler names its seed.

use crate::pages::HeldFiles;
use std::ops::Deref;
use std::task::{Context, Waker};
use trunkline_aio::sync::Arc;
use trunkline_engine::pool::{Backend, Page, Pool};
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_engine::storage::{OpenFiles, Storage};
use trunkline_format::BlockNo;
use trunkline_sim::Held;
use trunkline_sim::rig::{
    Bench, Cluster, Instance, REAL, SIMULATED, Sizes, Task, extent, includes, layout, spawn,
};

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

/// A cluster that is only read, with a pool.
pub(crate) struct Rig {
    cluster: Cluster,
    pub(crate) system: Arc<HeldFiles>,
}

impl Deref for Rig {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// Runs a case everywhere: first where a deadlock is noticed at once.
pub(crate) fn check(setup: Setup, case: fn(&Arc<Rig>)) {
    check_simulated(setup, case);
    check_real(setup, case);
}

/// Runs a case on real files, under each method.
pub(crate) fn check_real(setup: Setup, case: fn(&Arc<Rig>)) {
    for &local in setup.pools.are_local() {
        for method in REAL {
            Bench::real(method, local).run(move |bench| run(bench, setup, case));
        }
    }
}

/// Runs a case on the simulated disk, under each method and many seeds.
pub(crate) fn check_simulated(setup: Setup, case: fn(&Arc<Rig>)) {
    for &local in setup.pools.are_local() {
        for method in SIMULATED {
            for seed in 0..setup.seeds {
                let bench = Bench::simulated(method, seed, local);
                bench.run(move |bench| run(bench, setup, case));
            }
        }
    }
}

impl Pools {
    fn are_local(self) -> &'static [bool] {
        match self {
            Pools::Shared => &[false],
            Pools::Local => &[true],
            Pools::Both => &[false, true],
        }
    }
}

fn run(bench: Bench, setup: Setup, case: fn(&Arc<Rig>)) {
    let rig = Arc::new(Rig::start(bench, setup));
    case(&rig);
    Arc::into_inner(rig).expect("a thread was left behind").finish();
}

impl Rig {
    fn start(bench: Bench, setup: Setup) -> Self {
        let sizes = Sizes { buffers: setup.buffers, handles: setup.handles };
        let folder = env!("CARGO_TARGET_TMPDIR");
        let instance = Instance::start_for_pool(bench, sizes, folder, |builder, _| builder);
        let system = Arc::new(HeldFiles::new(instance.files()));
        let files = OpenFiles::read_only(16, Arc::clone(&system) as _);
        let storage = Storage::new(instance.root(), layout(), &files, setup.direct);
        let pool = match bench.local {
            true => Pool::local(&instance.aio, setup.buffers),
            false => Pool::new(&instance.aio, setup.buffers),
        };
        let cluster = Cluster::new(bench, instance, storage, pool.expect("a pool"));
        cluster.create(0, setup.blocks);
        Self { cluster, system }
    }

    /// What must be true when a case is over.
    fn finish(self) {
        self.settle_pool();
        let rows = self.pool.rows();
        assert!(rows.iter().all(|row| row.io.is_none() && !row.dirty), "{rows:?}");
        self.check_permits();
        self.check_locks();
        self.cluster.end();
    }

    /// Starts a thread of the façade; its panic is the test's when it is joined.
    pub(crate) fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce(&Arc<Rig>) -> T + Send + 'static,
    ) -> Task<T> {
        spawn(name, self, body)
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
        assert!(**found == crate::pages::page(0, block), "block {block}: the wrong page");
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
        self.row(0, block).map_or(0, |row| row.pins)
    }

    /// Waits until a block of relation 0 has so many pins.
    pub(crate) fn wait_pins(&self, block: BlockNo, pins: u32) {
        self.wait_until(&format!("{pins} pins of block {block}"), || self.pins(block) == pins);
    }
}
