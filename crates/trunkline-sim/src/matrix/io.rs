//! Test support for I/O core cases: an instance, files with self-identifying blocks, and single
//! I/Os.
//!
//! A case is a function of an [`Environment`] and starts the instance it needs. Block contents come
//! from [`content`]. In a new file, every block contains version 0 of file 0, so a case can compare
//! any block with [`original`].
//! ```
//! use trunkline_aio::MethodKind;
//! use trunkline_sim::matrix::io;
//!
//! io::check_seeds(&[MethodKind::Worker], 2, |environment| {
//!     let instance = environment.start();
//!     let file = instance.file("a", 4);
//!     let (mut session, mut slots) = (instance.session(), instance.slots(1, 1));
//!     io::read(&mut session, &file, 2, 1, &mut slots, 0);
//!     io::wait_ok(&mut session, &mut slots, 0);
//!     assert_eq!(io::memory(&mut slots, 0), io::original(2, 1));
//! });
//! ```

use super::{Environment, InlineIo, Instance, Matrix, REAL, SIMULATED};
use crate::block_model::{BLOCK, content};
use crate::pause::pause;
use std::path::PathBuf;
use std::time::Duration;
use trunkline_aio::facade::{Arc, thread};
use trunkline_aio::{
    Builder, Callback, Class, Completion, File, IoRow, MethodKind, OpenOptions, Outcome, Payload,
    Session, Slots, Status, WaitRef, Weight, WorkerSettings,
};

/// Seeds per case and method on the simulated disk. We use more than for pool cases, because these
/// cases are short.
const SEEDS: u64 = 60;

/// Methods under the scheduler that do not execute I/O on the issuer's thread.
pub const ASYNCHRONOUS: [MethodKind; 2] = [MethodKind::Worker, MethodKind::Custom];

/// The real environments, each with and without inline I/O.
fn real() -> Matrix {
    Matrix::real(&REAL).vary(|environment| {
        [InlineIo::Off, InlineIo::Default].map(|inline| Environment { inline, ..environment })
    })
}

/// Runs a case on the simulated disk, and then on real files.
pub fn check(case: impl FnOnce(Environment) + Clone + Send + 'static) {
    Matrix::simulated(&SIMULATED, SEEDS).and(real()).run(case);
}

/// Runs a case on real files, with and without inline I/O.
pub fn check_real(case: impl FnOnce(Environment) + Clone + Send + 'static) {
    real().run(case);
}

/// Runs a case on the simulated disk.
pub fn check_simulated(case: impl FnOnce(Environment) + Clone + Send + 'static) {
    check_seeds(&SIMULATED, SEEDS, case);
}

/// Runs a case on the simulated disk, under methods that do not block the issuer.
pub fn check_asynchronous(case: impl FnOnce(Environment) + Clone + Send + 'static) {
    check_seeds(&ASYNCHRONOUS, 30, case);
}

/// Runs a case in which the thread executing an I/O is stopped, but the issuing thread isn't. Not
/// for `sync`, where they are the same thread.
pub fn check_stoppable(case: impl FnOnce(Environment) + Clone + Send + 'static) {
    let real = Matrix::real(&[MethodKind::Worker, MethodKind::IoUring]);
    real.and(Matrix::simulated(&ASYNCHRONOUS, 20)).run(case);
}

/// Runs a case on the simulated disk, with these methods and this many seeds.
pub fn check_seeds(
    methods: &[MethodKind],
    seeds: u64,
    case: impl FnOnce(Environment) + Clone + Send + 'static,
) {
    Matrix::simulated(methods, seeds).run(case);
}

impl Environment {
    /// Starts a medium-sized instance.
    pub fn start(self) -> Instance {
        self.start_with(|builder| builder)
    }

    /// Starts a medium-sized instance. `configure` may change its settings.
    pub fn start_with(self, configure: impl FnOnce(Builder) -> Builder) -> Instance {
        Instance::start(self, |builder, _| {
            let workers = WorkerSettings { max: 4, ..WorkerSettings::default() };
            let builder = builder.handles(64, 4, 8).region_bytes(1 << 20).workers(workers);
            configure(self.configure(builder))
        })
    }
}

impl Instance {
    /// Opens a file for writing. If it does not exist, creates it with `blocks` blocks in version 0
    /// of file 0.
    pub fn file(&self, name: &str, blocks: u32) -> File {
        self.file_on(name, blocks, 1)
    }

    /// Like [`Instance::file`], but on another mount if the disk is simulated.
    ///
    /// # Panics
    /// If the file cannot be created or opened.
    pub fn file_on(&self, name: &str, blocks: u32, device: u64) -> File {
        let bytes = original(0, blocks);
        let Some(folder) = self.folder() else {
            return self.disk.open(&self.aio, name, device, &bytes);
        };
        let path = folder.join(name);
        if !path.exists() {
            std::fs::write(&path, bytes).expect("writes the file");
        }
        let options = OpenOptions { write: true, ..OpenOptions::default() };
        self.aio.open(&path, options).expect("opens")
    }

    /// The contents of a file.
    ///
    /// # Panics
    /// If the file cannot be read.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        match self.folder() {
            Some(folder) => std::fs::read(folder.join(name)).expect("reads"),
            None => self.disk.content(name),
        }
    }

    /// The path of a real file.
    ///
    /// # Panics
    /// On the simulated disk.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().expect("a real file").join(name)
    }

    /// A session.
    ///
    /// # Panics
    /// If the instance has no free session.
    pub fn session(&self) -> Session {
        self.aio.session().expect("a session")
    }

    /// Slots with memory for `blocks` blocks each. We fill the memory with a byte that no file
    /// contains, so a case notices if bytes were not transferred.
    pub fn slots(&self, count: usize, blocks: u32) -> Slots {
        self.slots_with(count, blocks, Vec::new())
    }

    /// Like [`Instance::slots`], with completion callbacks.
    ///
    /// # Panics
    /// If the region has too few free frames.
    pub fn slots_with<P: Payload>(
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

    /// Lets the other threads run until all of them block, which only virtual time can guarantee.
    ///
    /// # Panics
    /// On real files, where no wait is long enough to guarantee it.
    pub fn quiesce(&self) {
        assert!(self.is_simulated(), "only virtual time is certain");
        pause(Duration::from_micros(1));
    }

    /// The I/O's row in the snapshot, which corresponds to `pg_aios`. `None` if the handle is free
    /// or was reused.
    pub fn row(&self, io: WaitRef) -> Option<IoRow> {
        let rows = self.aio.snapshot();
        rows.into_iter().find(|row| (row.io_id, row.io_generation) == (io.io_id(), io.generation()))
    }
}

/// Acquires a handle and starts a read of `blocks` blocks at block `first` into a slot.
///
/// # Panics
/// If the session is cancelled or the slot is too small.
pub fn read<P: Payload>(
    session: &mut Session,
    file: &File,
    first: u32,
    blocks: u32,
    slots: &mut Slots<P>,
    slot: usize,
) -> WaitRef {
    let io = session.acquire(Class::Foreground).expect("a handle");
    let (offset, length) = (u64::from(first) * BLOCK as u64, blocks * BLOCK as u32);
    io.read(file, offset, length, slots, slot).expect("defined")
}

/// Fills a slot with the given version of the blocks and starts to write them.
///
/// # Panics
/// See [`read`].
pub fn write<P: Payload>(
    session: &mut Session,
    file: &File,
    first: u32,
    blocks: u32,
    version: u32,
    slots: &mut Slots<P>,
    slot: usize,
) -> WaitRef {
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

/// Waits for a slot's I/O, which must succeed.
///
/// # Panics
/// If the wait is cancelled, or if the I/O failed or was short.
pub fn wait_ok<P: Payload>(session: &mut Session, slots: &mut Slots<P>, slot: usize) -> Outcome {
    let outcome = session.wait(slots, slot).expect("not cancelled");
    assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
    outcome
}

/// Returns the contents of a slot's memory.
///
/// # Panics
/// If the slot has an I/O in flight.
pub fn memory<P: Payload>(slots: &mut Slots<P>, slot: usize) -> Vec<u8> {
    slots.memory(slot).expect("idle").iter().flat_map(|lease| lease.iter().copied()).collect()
}

/// Version 0 of some blocks of file 0, i.e. the contents of a new file.
pub fn original(first: u32, blocks: u32) -> Vec<u8> {
    (first..first + blocks).flat_map(|block| content(0, block, 0)).collect()
}

/// Starts a thread of the façade. Joining it passes its panic on to the case.
///
/// # Panics
/// If no thread can be started.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> thread::JoinHandle {
    thread::spawn(name, body).expect("a thread")
}

/// A completion callback that doesn't change the result. A heavy callback may be left to a helper
/// thread, so it takes a different completion path than a light callback.
#[derive(Debug, Clone, Copy)]
pub struct PassThrough(pub Weight);

impl Callback for PassThrough {
    fn name(&self) -> &'static str {
        "pass through"
    }
    fn weight(&self) -> Weight {
        self.0
    }
    fn complete(&self, _io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        prior
    }
}
