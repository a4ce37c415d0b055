//! Where a case of the contract suite runs: which method, on which storage, under which seed.
//!
//! A case is a function over a [`Bench`]; [`check`] runs it everywhere, and names the seed of a
//! failure, so that `Bench::simulated(method, seed)` repeats it.

use std::ops::Deref;
use std::time::Duration;
use trunkline_aio::sync::{Arc, sched, thread};
use trunkline_aio::{
    Builder, Callback, Class, File, MethodKind, OpenOptions, Outcome, Payload, Session, Slots,
    WorkerSettings,
};
use trunkline_sim::rig::Instance;
use trunkline_sim::{BLOCK, content, pause};

pub(crate) use trunkline_sim::rig::{REAL, SIMULATED};

/// Seeds of each case and method on the simulated disk.
pub(crate) const SEEDS: u64 = 60;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bench {
    pub(crate) method: MethodKind,
    /// Of the simulated disk; without one it is real files and real threads.
    pub(crate) seed: Option<u64>,
    /// Look into the page cache first, as by default.
    pub(crate) cached: bool,
}

/// An instance of a modest size.
pub(crate) struct Rig {
    instance: Instance,
    pub(crate) bench: Bench,
}

impl Deref for Rig {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Bench {
    pub(crate) fn simulated(method: MethodKind, seed: u64) -> Self {
        Self { method, seed: Some(seed), cached: false }
    }

    pub(crate) fn real(method: MethodKind) -> Self {
        Self { method, seed: None, cached: false }
    }

    pub(crate) fn is_simulated(self) -> bool {
        self.seed.is_some()
    }

    /// An instance of a modest size.
    pub(crate) fn start(self) -> Rig {
        self.start_with(|builder| builder)
    }

    /// An instance with other sizes.
    pub(crate) fn start_with(self, sizes: impl FnOnce(Builder) -> Builder) -> Rig {
        let folder = env!("CARGO_TARGET_TMPDIR");
        let instance = Instance::start(self.method, self.is_simulated(), folder, |builder, _| {
            let workers = WorkerSettings { max: 4, ..WorkerSettings::default() };
            let builder = builder.handles(64, 4, 8).region_bytes(1 << 20).workers(workers);
            sizes(match self.cached {
                true => builder,
                false => builder.try_cached_below(0).inline_write_max(0),
            })
        });
        Rig { instance, bench: self }
    }
}

impl Rig {
    /// Opens a file for writing; made with `blocks` blocks, each in version 0 of file 0, if it is
    /// not there.
    pub(crate) fn file(&self, name: &str, blocks: u32) -> File {
        self.file_on(name, blocks, 1)
    }

    /// The same on another mount, where the disk is simulated.
    pub(crate) fn file_on(&self, name: &str, blocks: u32, device: u64) -> File {
        let bytes: Vec<u8> = (0..blocks).flat_map(|block| content(0, block, 0)).collect();
        let Some(folder) = self.folder() else {
            return self.disk.open(&self.aio, name, device, &bytes);
        };
        let path = folder.join(name);
        if !path.exists() {
            std::fs::write(&path, bytes).expect("writes the sample");
        }
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        self.aio.open(&path, options).expect("opens")
    }

    /// What is in a file now.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        match self.folder() {
            Some(folder) => std::fs::read(folder.join(name)).expect("reads"),
            None => self.disk.content(name),
        }
    }

    /// Removes or replaces a file by name.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder().expect("a real file").join(name)
    }

    /// Ends the instance, unless somebody else has it too; its files stay.
    pub(crate) fn end(mut self) -> Option<tempfile::TempDir> {
        self.instance.take_folder()
    }

    pub(crate) fn session(&self) -> Session {
        self.aio.session().expect("a session")
    }

    /// Slots with memory for `blocks` blocks each, filled with a pattern that no file holds.
    pub(crate) fn slots(&self, count: usize, blocks: u32) -> Slots {
        self.slots_with(count, blocks, Vec::new())
    }

    pub(crate) fn slots_with<P: Payload>(
        &self,
        count: usize,
        blocks: u32,
        callbacks: Vec<Arc<dyn Callback<P>>>,
    ) -> Slots<P> {
        let mut slots = Slots::with_callbacks(count, callbacks);
        for slot in 0..count {
            let mut lease = self.aio.region().lease(blocks).expect("frames");
            lease.fill(0xEE);
            slots.memory(slot).expect("idle").push(lease);
        }
        slots
    }

    /// Waits until nothing is in flight and every completer has gone home.
    pub(crate) fn settle(&self) {
        self.instance.settle();
        if self.bench.is_simulated() {
            pause(Duration::from_micros(1));
        }
    }

    /// Lets every other thread go as far as it can, under the scheduler.
    pub(crate) fn quiet(&self) {
        assert!(self.bench.is_simulated(), "only virtual time tells");
        pause(Duration::from_micros(1));
    }

    /// The row of an I/O in the snapshot.
    pub(crate) fn row(&self, io: trunkline_aio::WaitRef) -> Option<trunkline_aio::IoRow> {
        let rows = self.aio.snapshot();
        rows.into_iter().find(|row| (row.io_id, row.io_generation) == (io.io_id(), io.generation()))
    }

    /// Holds everything that the storage gets for `device`, where that can be done.
    pub(crate) fn hold(&self, device: u64) {
        self.disk.hold(device);
    }
}

/// Reads `blocks` blocks at block `first` into a slot; does not wait.
pub(crate) fn read<P: Payload>(
    session: &mut Session,
    file: &File,
    first: u32,
    blocks: u32,
    slots: &mut Slots<P>,
    slot: usize,
) -> trunkline_aio::WaitRef {
    let io = session.acquire(Class::Foreground).expect("a handle");
    let (offset, length) = (u64::from(first) * BLOCK as u64, blocks * BLOCK as u32);
    io.read(file, offset, length, slots, slot).expect("defined")
}

/// Fills a slot with `version` of the blocks and writes them; does not wait.
pub(crate) fn write<P: Payload>(
    session: &mut Session,
    file: &File,
    first: u32,
    blocks: u32,
    version: u32,
    slots: &mut Slots<P>,
    slot: usize,
) -> trunkline_aio::WaitRef {
    let memory = slots.memory(slot).expect("idle");
    let bytes: Vec<u8> = (first..first + blocks).flat_map(|b| content(0, b, version)).collect();
    let mut bytes = &bytes[..];
    for lease in memory.iter_mut() {
        let length = lease.len().min(bytes.len());
        lease[..length].copy_from_slice(&bytes[..length]);
        bytes = &bytes[length..];
    }
    let io = session.acquire(Class::Eviction).expect("a handle");
    let (offset, length) = (u64::from(first) * BLOCK as u64, blocks * BLOCK as u32);
    io.write(file, offset, length, slots, slot).expect("defined")
}

/// Waits for a slot that must end well.
pub(crate) fn wait_ok<P: Payload>(
    session: &mut Session,
    slots: &mut Slots<P>,
    slot: usize,
) -> Outcome {
    let outcome = session.wait(slots, slot).expect("not cancelled");
    assert_eq!(outcome.status, trunkline_aio::Status::Ok, "{outcome:?}");
    outcome
}

/// What a slot's memory holds.
pub(crate) fn memory<P: Payload>(slots: &mut Slots<P>, slot: usize) -> Vec<u8> {
    slots.memory(slot).expect("idle").iter().flat_map(|lease| lease.iter().copied()).collect()
}

/// Version 0 of blocks of file 0.
pub(crate) fn original(first: u32, blocks: u32) -> Vec<u8> {
    (first..first + blocks).flat_map(|block| content(0, block, 0)).collect()
}

/// Starts a thread of the façade; its panic is the test's when it is joined.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> thread::JoinHandle {
    thread::spawn(name, body).expect("a thread")
}

/// Runs a case everywhere: first where a deadlock is noticed at once.
pub(crate) fn check(case: fn(Bench)) {
    check_simulated(case);
    check_real(case);
}

/// Runs a case on real files, under each method, with and without the look into the page cache.
pub(crate) fn check_real(case: fn(Bench)) {
    for method in REAL {
        case(Bench::real(method));
        case(Bench { cached: true, ..Bench::real(method) });
    }
}

/// Runs a case on the simulated disk, under each method and many seeds.
pub(crate) fn check_simulated(case: fn(Bench)) {
    for method in SIMULATED {
        check_seeds(method, SEEDS, case);
    }
}

/// Under the scheduler, with a method that does not block the issuer.
pub(crate) fn check_free(case: fn(Bench)) {
    check_seeds(MethodKind::Worker, 30, case);
    check_seeds(MethodKind::Custom, 30, case);
}

/// Runs a case on the simulated disk under one method.
pub(crate) fn check_seeds(method: MethodKind, seeds: u64, case: fn(Bench)) {
    for seed in 0..seeds {
        run_seed(method, seed, case);
    }
}

/// Runs a case once.
pub(crate) fn run_seed(method: MethodKind, seed: u64, case: fn(Bench)) -> sched::Report {
    let bench = Bench::simulated(method, seed);
    let result = sched::run(sched::Config::new(seed), move || case(bench));
    result.unwrap_or_else(|failure| panic!("{method}: {failure}"))
}
