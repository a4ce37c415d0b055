//! The end of a run of the pool's workload: nothing may be left behind.
//!
//! All sessions have gone, some of them with reads under way. When those have ended, no page may be
//! pinned or locked, what is valid must show the right bytes, as many sessions as the pool has pins
//! for must be admitted at once, and after the pools the instance must have every handle, frame and
//! file back.

use super::meter::Kind;
use super::truth::SHAPES;
use super::watch::{self, Issuer, Watch};
use super::{LabFiles, PoolReport, Scene, locator};
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::sync::Arc;
use trunkline_engine::pool::{Backend, BackendType, PINS_GUARANTEED, Policy, Pool, Strategy};
use trunkline_engine::storage::Storage;
use trunkline_format::BlockNo;

/// Sessions that are to be admitted together, at most.
const HOUSE_MAX: u32 = 8;

/// Waits for all tasks and judges what is left.
///
/// # Errors
/// The first finding.
pub(super) fn judge(
    scene: Arc<Scene>,
    watch: &Watch,
    storage: &Storage,
    files: &LabFiles,
) -> Result<PoolReport, String> {
    join_all(&scene)?;
    let faults = scene.plan.struck();
    scene.plan.set(Vec::new());
    let counts = *scene.counts.lock();
    let judged = judge_quiet(&scene);
    let meter = watch.end();
    let aio = scene.aio.clone();
    let frames = aio.region().frames();
    drop(scene);
    judged?;
    for relation in 0..SHAPES.len() {
        storage.forget(locator(relation));
    }
    let left = files.0.lock().take();
    drop(left);
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

fn join_all(scene: &Scene) -> Result<(), String> {
    loop {
        // Not in the condition: its lock would last through the join.
        let thread = scene.threads.lock().pop();
        let Some(thread) = thread else { return Ok(()) };
        thread.join().map_err(|error| error.to_string())?;
    }
}

fn judge_quiet(scene: &Scene) -> Result<(), String> {
    if let Some(finding) = scene.finding.lock().take() {
        return Err(finding);
    }
    if let Some(scan) = scene.parallels.lock().iter().find(|scan| scan.is_whole() == Some(false)) {
        return Err(format!("a parallel scan of {} has left out blocks", scan.relation));
    }
    settle(|| match scene.aio.handles_in_use() {
        0 => Ok(()),
        handles => Err(format!("{handles} handles in use, and nobody there")),
    })?;
    for (number, pool) in scene.pools.iter().enumerate() {
        judge_pool(scene, number, pool).map_err(|finding| format!("pool {number}: {finding}"))?;
    }
    Ok(())
}

fn judge_pool(scene: &Scene, number: usize, pool: &Pool) -> Result<(), String> {
    // The last thread that completed a read may not have come home yet.
    settle(|| match pool.rows().iter().find(|row| row.pins > 0 || row.io.is_some()) {
        None => Ok(()),
        Some(row) => Err(format!("pinned, and nobody there: {row:?}")),
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
        let relation = relation.ok_or_else(|| format!("a page of nobody's: {row:?}"))?;
        if SHAPES[relation].pool != number {
            return Err(format!("a page of the other pool: {row:?}"));
        }
        judge_page(scene, &mut backend, relation, row.block)?;
    }
    drop(backend);
    full_house(scene, number, pool)
}

/// A page that is there must be had without a read, and be free, and be right.
fn judge_page(
    scene: &Scene,
    backend: &mut Backend,
    relation: usize,
    block: BlockNo,
) -> Result<(), String> {
    admin(relation);
    let reads = scene.plan.calls(trunkline_aio::Operation::Readv);
    let what = format!("relation {relation} block {block}");
    let pin =
        backend.read(&scene.relations[relation], block).map_err(|e| format!("{what}: {e}"))?;
    if scene.plan.calls(trunkline_aio::Operation::Readv) != reads {
        return Err(format!("{what} was there, and was read again"));
    }
    let Some(page) = pin.page().try_write() else {
        return Err(format!("{what} is locked, and nobody there"));
    };
    let shown = scene.ledger.shown(relation, block);
    match scene.truth.is(shown, relation, block, &page[..]) {
        true => Ok(()),
        false => Err(format!("{what} at the end: not {shown:?}, but {:?}", &page[..24])),
    }
}

/// The thread of the run itself works.
fn admin(relation: usize) {
    let (kind, strategy, policy) = (Kind::Single, Strategy::Normal, Policy::default());
    watch::work_for(Issuer { task: u32::MAX, owner: 0, relation, policy, kind, strategy });
}

/// As many sessions as there are permits for have a page each. Permits that were lost would keep the
/// last of them waiting for ever: a deadlock.
fn full_house(scene: &Scene, number: usize, pool: &Pool) -> Result<(), String> {
    let relation = SHAPES.iter().position(|shape| shape.pool == number).unwrap_or_default();
    admin(relation);
    let sessions = pool.buffers() / PINS_GUARANTEED;
    if sessions > HOUSE_MAX {
        return Ok(());
    }
    let mut house = Vec::new();
    for block in 0..sessions {
        let backend = pool.backend(BackendType::Client);
        let mut backend = backend.map_err(|error| error.to_string())?;
        let pin = backend.read(&scene.relations[relation], block);
        house.push((pin.map_err(|error| format!("session {block} of many: {error}"))?, backend));
    }
    let permits = pool.permits();
    match permits > pool.buffers() {
        true => Err(format!("{permits} permits for {} buffers", pool.buffers())),
        false => Ok(()),
    }
}

/// Waits until all is well, a second of the façade's time at most.
fn settle(state: impl Fn() -> Result<(), String>) -> Result<(), String> {
    let mut last = Ok(());
    for _ in 0..1000 {
        last = state();
        if last.is_ok() {
            break;
        }
        pause(Duration::from_millis(1));
    }
    last
}
