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
mod shared;

pub use client::poll_until_done;
pub use shared::Workload;

use crate::block_model::BlockModel;
use crate::clients::settle;
use client::Client;
use shared::Shared;
use trunkline_aio::facade::{Arc, thread};
use trunkline_aio::{Aio, Counters, File};

/// Runs a workload on `files`. All blocks in these files must have version 0. Afterwards, waits
/// until every handle, frame and file is free again, and checks that the instance's counters agree
/// with the number of I/Os the clients have issued.
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
    let shared = Arc::new(Shared::new(workload, model, files));
    let mut threads = Vec::new();
    for number in 0..workload.clients {
        let (aio, shared) = (aio.clone(), Arc::clone(&shared));
        let body = move || Client::new(aio, shared, number).run();
        threads.push(thread::spawn(&format!("client {number}"), body).map_err(|e| e.to_string())?);
    }
    for thread in threads {
        thread.join().map_err(|e| e.to_string())?;
    }
    shared.failure.take()?;
    let counts = *shared.counts.lock();
    // An abandoned I/O may hold the last reference to a file, so below we wait for open files, too.
    drop(shared);
    settle(|| {
        let found = (aio.handles_in_use(), aio.region().free_frames(), aio.open_files());
        if found == (0, frames, open - count) {
            return Ok(());
        }
        let (handles, free, files) = found;
        Err(format!(
            "left behind: {handles} handles, {free} of {frames} frames free, {files} files open of \
             {open}"
        ))
    })?;
    let after = aio.counters();
    let since = |counter: fn(&Counters) -> u64| counter(&after) - counter(&before);
    let completed = since(|c| c.completers.iter().sum());
    let kinds = since(|c| c.by_kind.iter().flatten().map(|operation| operation.count).sum());
    let submitted = since(|c| c.in_flight_samples);
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
