//! Random workload of the I/O core: clients that read, write and sync, and that misuse the
//! interface.
//!
//! Each client writes its own blocks and reads all clients' blocks. It issues single I/Os and
//! batches. It waits for one I/O, for any of its I/Os, for another client's I/O, or polls. It also
//! drops slots with I/O in flight, cancels its session, leaks handles, and replaces its session.
//! The [`BlockModel`] checks every byte that a read returns. At the end, [`run`] checks that no
//! handle, frame or open file was leaked.
//! ```no_run
//! # fn f(aio: trunkline_aio::Aio, files: Vec<trunkline_aio::File>) -> Result<(), String> {
//! let model = trunkline_sim::BlockModel::new().into();
//! let workload = trunkline_sim::Workload { seed: 7, ..Default::default() };
//! trunkline_sim::run(&aio, files, &model, workload)
//! # }
//! ```

mod client;

pub use client::poll_until_done;

use crate::block_model::BlockModel;
use crate::pause::pause;
use client::{Client, Published};
use std::time::Duration;
use trunkline_aio::sync::{Arc, Mutex, thread};
use trunkline_aio::{Aio, File, MethodKind};

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Decides what the clients do. Under the scheduler, the interleaving of their threads has its
    /// own seed.
    pub seed: u64,
    /// Clients that run at the same time.
    pub clients: u32,
    /// Steps of each client.
    pub steps: u32,
    /// Blocks of each file; all have version 0 at the start.
    pub blocks: u32,
    /// Clients also read other clients' blocks. This needs storage on which a read never sees half
    /// of a concurrent write.
    pub share: bool,
    /// Clients switch between these I/O methods during the run; empty means no switches.
    pub methods: &'static [MethodKind],
}

impl Default for Workload {
    fn default() -> Self {
        Self { seed: 0, clients: 3, steps: 12, blocks: 24, share: true, methods: &[] }
    }
}

/// I/O counts. At the end, `issued` must be the sum of the other two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    /// Defined I/Os.
    issued: u64,
    /// Outcomes that a client received.
    taken: u64,
    /// I/Os in flight when their slots were dropped.
    abandoned: u64,
}

/// State that all clients of a run share.
#[derive(Debug)]
struct Shared {
    workload: Workload,
    model: Arc<BlockModel>,
    files: Vec<File>,
    /// Wait references of recent I/Os, so that clients can join the I/O of another.
    published: Published,
    counts: Mutex<Counts>,
    /// The first failure; later failures are usually its consequences.
    failure: Mutex<Option<String>>,
}

impl Shared {
    /// Records a failure. A client does not panic, because the others must still end.
    fn fail(&self, text: String) {
        self.failure.lock().get_or_insert(text);
    }
}

/// Runs a workload over `files`, in which every block must have version 0. Afterwards it waits
/// until every handle, frame and file is free again, and compares the counters of the instance with
/// the I/Os that the clients issued.
///
/// # Errors
/// Returns the run's first failure.
pub fn run(
    aio: &Aio,
    files: Vec<File>,
    model: &Arc<BlockModel>,
    workload: Workload,
) -> Result<(), String> {
    let before = aio.counters();
    let frames = aio.region().free_frames();
    let (open, count) = (aio.open_files(), files.len());
    let shared = Arc::new(Shared {
        workload,
        model: Arc::clone(model),
        files,
        published: Published::default(),
        counts: Mutex::default(),
        failure: Mutex::default(),
    });
    let mut threads = Vec::new();
    for number in 0..workload.clients {
        let (aio, shared) = (aio.clone(), Arc::clone(&shared));
        let body = move || Client::new(aio, shared, number).run();
        threads.push(thread::spawn(&format!("client {number}"), body).map_err(|e| e.to_string())?);
    }
    for thread in threads {
        thread.join().map_err(|e| e.to_string())?;
    }
    if let Some(failure) = shared.failure.lock().take() {
        return Err(failure);
    }
    let counts = *shared.counts.lock();
    // The last reference to a file may belong to an abandoned I/O, so we wait for open files below
    // as well.
    drop(shared);
    settle(|| {
        aio.handles_in_use() == 0
            && aio.region().free_frames() == frames
            && aio.open_files() == open - count
    })
    .map_err(|()| {
        format!(
            "left behind: {} handles, {} of {frames} frames free, {} files open of {open}",
            aio.handles_in_use(),
            aio.region().free_frames(),
            aio.open_files()
        )
    })?;
    let after = aio.counters();
    let completed: u64 =
        after.completers.iter().sum::<u64>() - before.completers.iter().sum::<u64>();
    let by_kind = |c: &trunkline_aio::Counters| c.by_kind.iter().flatten().map(|o| o.count).sum();
    let kinds: u64 = by_kind(&after);
    let kinds = kinds - by_kind(&before);
    let submitted = after.in_flight_samples - before.in_flight_samples;
    if [completed, kinds, submitted] != [counts.issued; 3] {
        return Err(format!(
            "{} issued, {submitted} submitted, {completed} completed, {kinds} by kind",
            counts.issued
        ));
    }
    if counts.issued != counts.taken + counts.abandoned {
        return Err(format!("outcomes: {counts:?}"));
    }
    Ok(())
}

/// Waits until `done`, for at most a second of the façade's clock.
fn settle(done: impl Fn() -> bool) -> Result<(), ()> {
    for _ in 0..1000 {
        if done() {
            return Ok(());
        }
        pause(Duration::from_millis(1));
    }
    Err(())
}
