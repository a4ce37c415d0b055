//! Random workloads: tasks with sessions that read, write and sync, and misbehave as programs do.
//!
//! Each task writes blocks of its own and reads everybody's. It collects I/O in batches, waits for
//! one, for any, by polling, for somebody else's; gives up slots with I/O under way, cancels
//! itself, forgets handles, ends its session and goes on with another one. The [`Ledger`] judges
//! every byte that comes back; [`run`] judges what is left when all have ended: nothing.
//! ```no_run
//! # fn f(aio: trunkline_aio::Aio, files: Vec<trunkline_aio::File>) -> Result<(), String> {
//! let ledger = trunkline_sim::Ledger::new().into();
//! let workload = trunkline_sim::Workload { seed: 7, ..Default::default() };
//! trunkline_sim::run(&aio, files, &ledger, workload)
//! # }
//! ```

mod task;

pub use task::poll_until_done;

use crate::checker::Ledger;
use crate::gate::pause;
use std::time::Duration;
use task::{Published, Task};
use trunkline_aio::sync::{Arc, Mutex, thread};
use trunkline_aio::{Aio, File, MethodKind};

/// What kind of run.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Decides what the tasks do.
    pub seed: u64,
    /// Tasks at the same time.
    pub tasks: u32,
    /// Steps of each task.
    pub steps: u32,
    /// Blocks of each file; all hold version 0 at the start.
    pub blocks: u32,
    /// Read other tasks' blocks too: only where reads and writes of a block exclude each other.
    pub share: bool,
    /// Switch between these methods meanwhile.
    pub methods: &'static [MethodKind],
}

impl Default for Workload {
    fn default() -> Self {
        Self { seed: 0, tasks: 3, steps: 12, blocks: 24, share: true, methods: &[] }
    }
}

/// What tasks count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    issued: u64,
    taken: u64,
    abandoned: u64,
}

/// What all tasks of a run share.
#[derive(Debug)]
struct Shared {
    workload: Workload,
    ledger: Arc<Ledger>,
    files: Vec<File>,
    published: Published,
    tally: Mutex<Tally>,
    /// The first finding.
    finding: Mutex<Option<String>>,
}

impl Shared {
    fn find(&self, text: String) {
        self.finding.lock().get_or_insert(text);
    }
}

/// Runs a workload over `files`, whose blocks hold version 0, and waits until it has left nothing
/// behind: no handle, no frame, no file, no outcome.
///
/// # Errors
/// What was found to be wrong first.
pub fn run(
    aio: &Aio,
    files: Vec<File>,
    ledger: &Arc<Ledger>,
    workload: Workload,
) -> Result<(), String> {
    let before = aio.counters();
    let frames = aio.region().free_frames();
    let (open, count) = (aio.open_files(), files.len());
    let shared = Arc::new(Shared {
        workload,
        ledger: Arc::clone(ledger),
        files,
        published: Published::default(),
        tally: Mutex::default(),
        finding: Mutex::default(),
    });
    let mut threads = Vec::new();
    for number in 0..workload.tasks {
        let (aio, shared) = (aio.clone(), Arc::clone(&shared));
        let body = move || Task::new(aio, shared, number).run();
        threads.push(thread::spawn(&format!("task {number}"), body).map_err(|e| e.to_string())?);
    }
    for thread in threads {
        thread.join().map_err(|e| e.to_string())?;
    }
    if let Some(finding) = shared.finding.lock().take() {
        return Err(finding);
    }
    let tally = *shared.tally.lock();
    // The last user of a file may be an I/O for which nobody waits.
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
    if [completed, kinds, submitted] != [tally.issued; 3] {
        return Err(format!(
            "{} issued, {submitted} submitted, {completed} completed, {kinds} by kind",
            tally.issued
        ));
    }
    if tally.issued != tally.taken + tally.abandoned {
        return Err(format!("outcomes: {tally:?}"));
    }
    Ok(())
}

/// Waits until `done`, a second of the façade's time at most.
fn settle(done: impl Fn() -> bool) -> Result<(), ()> {
    for _ in 0..1000 {
        if done() {
            return Ok(());
        }
        pause(Duration::from_millis(1));
    }
    Err(())
}
