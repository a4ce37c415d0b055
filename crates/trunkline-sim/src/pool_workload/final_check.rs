//! Final check of a pool workload: the run must not leak anything.
//!
//! By now all sessions have ended, but some of their reads may still be in flight. Once those reads
//! have completed, no page may be pinned or locked, and all valid pages must have the expected
//! contents. Each pool must also still be able to admit as many sessions as it guarantees pins for.
//! Finally, we drop the pools and check that every handle, frame and file is free.

use super::model::{SHAPES, locator};
use super::page_check::PageCheck;
use super::read_probe::{Issuer, ReadProbe};
use super::run::{PoolReport, Run};
use crate::clients::settle;
use trunkline_aio::Operation;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{Backend, BackendType, PINS_GUARANTEED, Policy, Pool};
use trunkline_engine::storage::Storage;

/// Maximum number of sessions admitted together. We skip the check for larger pools.
const SESSIONS_MAX: u32 = 8;

/// Waits for all clients to end, and checks for leaks. `close_files` drops the run's file system.
///
/// # Errors
/// Returns the first failure.
pub(super) fn check(
    run: Arc<Run>,
    probe: &ReadProbe,
    storage: &Storage,
    close_files: impl FnOnce(),
) -> Result<PoolReport, String> {
    join_all(&run)?;
    let faults = run.plan.struck();
    // The checks read pages themselves, so we must disable all faults first.
    run.plan.set(Vec::new());
    let counts = *run.counts.lock();
    let checked = check_quiescent(&run);
    let meter = probe.end();
    let aio = run.aio.clone();
    let frames = aio.region().frames();
    drop(run);
    checked?;
    for relation in 0..SHAPES.len() {
        storage.forget(locator(relation));
    }
    close_files();
    settle(|| {
        let counts = (aio.handles_in_use(), frames - aio.region().free_frames(), aio.open_files());
        match counts {
            (0, 0, 0) => Ok(()),
            (handles, frames, files) => {
                Err(format!("left behind: {handles} handles, {frames} frames, {files} files"))
            }
        }
    })?;
    Ok(PoolReport { faults, counts, meter, steps: 0 })
}

/// Joins all client threads, including those added when a client moved.
fn join_all(run: &Run) -> Result<(), String> {
    loop {
        // We can't pop in the loop condition, because that would hold the mutex during the join.
        let thread = run.threads.lock().pop();
        let Some(thread) = thread else { return Ok(()) };
        thread.join().map_err(|error| error.to_string())?;
    }
}

/// Checks the run's failures, its parallel scans, and its pools.
fn check_quiescent(run: &Run) -> Result<(), String> {
    run.failure.take()?;
    if let Some(scan) = run.parallels.lock().iter().find(|scan| scan.is_complete() == Some(false)) {
        return Err(format!("a parallel scan of {} has missed blocks", scan.relation));
    }
    settle(|| match run.aio.handles_in_use() {
        0 => Ok(()),
        handles => Err(format!("{handles} handles in use after all sessions ended")),
    })?;
    for (number, pool) in run.pools.iter().enumerate() {
        check_pool(run, number, pool).map_err(|failure| format!("pool {number}: {failure}"))?;
    }
    Ok(())
}

/// Checks a pool's pins, permits and valid pages.
fn check_pool(run: &Run, number: usize, pool: &Pool) -> Result<(), String> {
    // The thread that completed the last read may not have released its pin yet.
    settle(|| match pool.rows().iter().find(|row| row.pins > 0 || row.io.is_some()) {
        None => Ok(()),
        Some(row) => Err(format!("pinned after all sessions ended: {row:?}")),
    })?;
    let permits = pool.permits();
    if permits > pool.buffers() {
        return Err(format!("{permits} permits for {} buffers", pool.buffers()));
    }
    let mut backend = pool.backend(BackendType::Client).map_err(|error| error.to_string())?;
    if backend.pins() > 0 {
        return Err(format!("a new session has {} pins", backend.pins()));
    }
    for row in pool.rows().iter().filter(|row| row.valid) {
        let relation = (0..SHAPES.len()).find(|&relation| locator(relation) == row.relation);
        let relation = relation.ok_or_else(|| format!("a page of an unknown relation: {row:?}"))?;
        if SHAPES[relation].pool != number {
            return Err(format!("a page of the other pool: {row:?}"));
        }
        check_page(run, &mut backend, PageCheck { relation, block: row.block })?;
    }
    drop(backend);
    check_admission(run, number, pool)
}

/// Checks a page that is valid according to the pool. Reading that page must be a hit, it must not
/// be locked, and its contents must match the expectations.
fn check_page(run: &Run, backend: &mut Backend, page: PageCheck) -> Result<(), String> {
    set_no_client(page.relation);
    let reads = run.plan.calls(Operation::Readv);
    let read = backend.read(&run.relations[page.relation], page.block);
    let pin = read.map_err(|error| format!("{page}: {error}"))?;
    if run.plan.calls(Operation::Readv) != reads {
        return Err(format!("{page} was valid, and was read again"));
    }
    let Some(found) = pin.page().try_write() else {
        return Err(format!("{page} is locked after all sessions ended"));
    };
    page.compare(run, &found[..]).map_err(|failure| format!("at the end: {failure}"))
}

/// Marks the final check's reads as not belonging to any client.
fn set_no_client(relation: usize) {
    Issuer::single(u32::MAX, 0, relation, Policy::default()).set();
}

/// Starts as many sessions as the pool guarantees pins for, and has each session read a page. If a
/// permit has been leaked, the last session waits forever, and the scheduler reports that as a
/// deadlock.
fn check_admission(run: &Run, number: usize, pool: &Pool) -> Result<(), String> {
    let relation = SHAPES.iter().position(|shape| shape.pool == number).unwrap_or_default();
    set_no_client(relation);
    let sessions = pool.buffers() / PINS_GUARANTEED;
    if sessions > SESSIONS_MAX {
        return Ok(());
    }
    let mut admitted = Vec::new();
    for block in 0..sessions {
        let backend = pool.backend(BackendType::Client);
        let mut backend = backend.map_err(|error| error.to_string())?;
        let pin = backend.read(&run.relations[relation], block);
        admitted.push((pin.map_err(|error| format!("session {block} of many: {error}"))?, backend));
    }
    let permits = pool.permits();
    match permits > pool.buffers() {
        true => Err(format!("{permits} permits for {} buffers", pool.buffers())),
        false => Ok(()),
    }
}
