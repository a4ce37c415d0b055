//! Random workload for the I/O core: clients that read, write and sync, and that misuse the
//! interface.
//!
//! Each client writes only its own blocks but reads all clients' blocks. It issues single I/Os and
//! batches, and then polls or waits for one of its I/Os, for any of them, or for another client's
//! I/O. It also drops slots with I/O in flight, cancels its session, leaks handles, and replaces
//! its session. The [`BlockModel`] checks every byte returned by a read. At the end, [`run`] checks
//! that no handle, frame or open file was leaked.
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
    /// Determines the clients' steps. Under the scheduler, the interleaving of their threads has a
    /// separate seed.
    pub seed: u64,
    /// Number of concurrent clients.
    pub clients: u32,
    /// Steps of each client.
    pub steps: u32,
    /// Blocks of each file; all have version 0 at the start.
    pub blocks: u32,
    /// Clients also read other clients' blocks. Only allowed on storage where a read never sees
    /// half of a concurrent write.
    pub share: bool,
    /// Clients switch between these I/O methods during the run. Empty if they don't switch.
    pub methods: &'static [MethodKind],
}

impl Default for Workload {
    fn default() -> Self {
        Self { seed: 0, clients: 3, steps: 12, blocks: 24, share: true, methods: &[] }
    }
}

/// I/O counts. At the end of a run, `issued` must equal `taken + abandoned`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    /// I/Os defined.
    issued: u64,
    /// Outcomes received by clients.
    taken: u64,
    /// I/Os in flight when their slots were dropped.
    abandoned: u64,
}

/// State shared by all clients of a run.
#[derive(Debug)]
struct Shared {
    workload: Workload,
    model: Arc<BlockModel>,
    files: Vec<File>,
    /// Wait references of recent I/Os, so that clients can join another client's I/O.
    published: Published,
    counts: Mutex<Counts>,
    /// The first failure; later failures are usually its consequences.
    failure: Mutex<Option<String>>,
}

impl Shared {
    /// Records a failure. Clients don't panic, because the other clients must still finish.
    fn fail(&self, text: String) {
        self.failure.lock().get_or_insert(text);
    }
}

/// Runs a workload over `files`, in which every block must have version 0. Afterwards it waits
/// until every handle, frame and file is free again, and compares the instance's counters with the
/// I/Os issued by the clients.
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
    // An abandoned I/O may hold the last reference to a file, so below we wait for open files, too.
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

/// Waits until `done` returns true, for at most a second on the façade's clock.
fn settle(done: impl Fn() -> bool) -> Result<(), ()> {
    for _ in 0..1000 {
        if done() {
            return Ok(());
        }
        pause(Duration::from_millis(1));
    }
    Err(())
}
