//! Where a case of the suite runs: which method, on which storage, under which seed, in which pool;
//! and what must be true when it is over.
//!
//! A case is a function over a [`Rig`]. [`check`] runs it everywhere, then looks whether anything is
//! left: pins, locks, handles, permits, open files, pages to be written, segments to be synced. A
//! failure under the scheduler names its seed.

use crate::files::Files;
use crate::probe::Watch;
use std::ops::Deref;
use std::path::Path;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_aio::{MethodKind, Operation};
use trunkline_engine::checkpoint::{
    CheckpointError, CheckpointOptions, CheckpointReport, checkpoint,
};
use trunkline_engine::log::PositionLog;
use trunkline_engine::pool::{Backend, Pin, Pool};
use trunkline_engine::storage::{FileSystem, Storage};
use trunkline_format::{BLOCK_SIZE, BlockNo};
use trunkline_sim::rig::{Bench, Cluster, Instance, SIMULATED, Sizes, includes, spawn};
use trunkline_sim::{Fault, Held, Rule};

pub(crate) use crate::files::Call;
pub(crate) use trunkline_sim::rig::{REAL, Task, is_sound, is_version, page, relation};

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

/// A cluster of our own, with its log, its hooks and a pool.
pub(crate) struct Rig {
    cluster: Cluster,
    pub(crate) log: PositionLog,
    pub(crate) files: Arc<Files>,
    pub(crate) watch: Arc<Watch>,
    /// A sync has failed, so no checkpoint can come to its end any more.
    broken: AtomicBool,
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
    for &local in pools(setup) {
        let benches = REAL.map(|method| Bench::real(method, local));
        let at_once = Bench { at_once: true, ..Bench::real(MethodKind::IoUring, local) };
        for bench in benches.into_iter().chain([at_once]) {
            bench.run(move |bench| run(bench, setup, case));
        }
    }
}

/// Runs a case on the simulated disk, under each method and many seeds.
pub(crate) fn check_simulated(setup: Setup, case: fn(&Arc<Rig>)) {
    for &local in pools(setup) {
        for method in SIMULATED {
            for seed in 0..setup.seeds {
                let at_once = seed % 2 == 1;
                let bench = Bench { at_once, ..Bench::simulated(method, seed, local) };
                bench.run(move |bench| run(bench, setup, case));
            }
        }
    }
}

fn pools(setup: Setup) -> &'static [bool] {
    if setup.local { &[false, true] } else { &[false] }
}

/// Runs a case in one place.
pub(crate) fn run_on(bench: Bench, setup: Setup, case: impl FnOnce(&Arc<Rig>) + Send + 'static) {
    bench.run(move |bench| run(bench, setup, case));
}

fn run(bench: Bench, setup: Setup, case: impl FnOnce(&Arc<Rig>)) {
    let rig = Arc::new(Rig::start(bench, setup));
    case(&rig);
    Arc::into_inner(rig).expect("a thread was left behind").finish();
}

impl Rig {
    fn start(bench: Bench, setup: Setup) -> Self {
        let (log, mut watch) = (PositionLog::default(), None);
        let sizes = Sizes { buffers: setup.buffers, handles: setup.handles };
        let folder = env!("CARGO_TARGET_TMPDIR");
        let instance = Instance::start_for_pool(bench, sizes, folder, |builder, hooks| {
            let around = watch.insert(Arc::new(Watch::new(hooks, &log)));
            builder.probe(Arc::clone(around) as Arc<_>)
        });
        let watch = watch.expect("made with the instance");
        let files = Arc::new(Files::new(&instance));
        watch.look_at(&files);
        let storage = storage(instance.root(), &files, setup.direct);
        let pool = match bench.local {
            true => Pool::local(&instance.aio, setup.buffers),
            false => Pool::with_log(&instance.aio, setup.buffers, Arc::new(log.clone())),
        };
        let cluster = Cluster::new(bench, instance, storage, pool.expect("a pool"));
        cluster.create(0, setup.blocks);
        Self { cluster, log, files, watch, broken: AtomicBool::new(false) }
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
        self.row(number, block).is_some_and(|row| row.dirty)
    }

    /// Whether a block of relation 0 is being written or read.
    pub(crate) fn is_under_io(&self, block: BlockNo) -> bool {
        self.row(0, block).is_some_and(|row| row.io.is_some())
    }

    /// Starts a thread of the façade; its panic is the test's when it is joined.
    pub(crate) fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce(&Arc<Rig>) -> T + Send + 'static,
    ) -> Task<T> {
        spawn(name, self, body)
    }

    /// What must be true when a case is over.
    fn finish(self) {
        self.no_trouble();
        self.settle_pool();
        assert_eq!(self.watch.wrong(), Vec::<String>::new());
        let broken = self.broken.load(Ordering::SeqCst);
        if !broken {
            self.check_clean();
        }
        self.check_locks();
        if !broken {
            self.check_permits();
        }
        self.watch.look_away();
        self.cluster.end();
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
}

/// A cluster of our own.
pub(crate) fn storage(root: &Path, files: &Arc<Files>, direct: bool) -> Storage {
    trunkline_sim::rig::storage(root, Arc::clone(files) as Arc<_>, direct)
}
