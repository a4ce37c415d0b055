//! Crashes during writes, checkpoints, evictions and extensions.
//!
//! After a crash, a write that was not synced may have reached the disk completely, in part (only
//! some of its sectors), or not at all. Each page must therefore either contain one of the versions
//! it has had, or be torn and have a wrong checksum. Changes that were made before a completed
//! checkpoint began must not be lost. Since there is no redo here, we check the pages exactly as
//! the crash left them.

use crate::reopened;
use std::collections::BTreeMap;
use std::time::Duration;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_engine::pool::ExtendMethod;
use trunkline_format::{BLOCK_SIZE, page};
use trunkline_sim::matrix::cluster::check_simulated;
use trunkline_sim::matrix::{Cluster, Needs, Pools, is_sound, is_version};
use trunkline_sim::pause;

/// The versions a block may have after a crash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Known {
    /// The last version a session started to write into the page.
    begun: u32,
    /// The last version that was complete in the pool.
    made: u32,
    /// The last version that must survive a crash, i.e. `made` as of the start of the last
    /// completed checkpoint.
    durable: u32,
}

/// All blocks' versions.
#[derive(Default)]
struct Versions(Mutex<BTreeMap<u32, Known>>);

impl Versions {
    /// Changes a block to its next version. A crash between the two updates may leave either
    /// version.
    fn change(&self, cluster: &Cluster, backend: &mut trunkline_engine::pool::Backend, block: u32) {
        let version = {
            let mut known = self.0.lock();
            let known = known.entry(block).or_default();
            known.begun += 1;
            known.begun
        };
        cluster.change(backend, block, version);
        self.0.lock().entry(block).or_default().made = version;
    }

    /// Runs a checkpoint. Everything that was complete before it began must be durable afterwards.
    fn checkpoint(&self, cluster: &Cluster, backend: &mut trunkline_engine::pool::Backend) {
        let before = self.0.lock().clone();
        cluster.checkpoint(backend).expect("a checkpoint");
        let mut known = self.0.lock();
        for (block, Known { made, .. }) in before {
            let known = known.entry(block).or_default();
            known.durable = known.durable.max(made);
        }
    }
}

/// Simulates a crash on a copy of the disk, and checks the pages on that copy. Returns how many
/// pages are torn, and how many contain an older version than the last one.
fn crash_and_check(cluster: &Cluster, versions: &Versions, seed: u64) -> (u32, u32) {
    // Read the bounds before and after copying the disk. A version counts as `durable` only if it
    // was durable before we made the copy, and `begun` may increase while we are copying.
    let before = versions.0.lock().clone();
    let left = Arc::new(cluster.disk.after_crash(seed));
    let after = versions.0.lock().clone();
    let bytes = left.content(cluster.relation(0).path(0).to_str().expect("a name"));
    // Opening the files with a second engine is slow, so we do it only for some crashes.
    if seed.is_multiple_of(20) {
        let known = after.iter().map(|(&block, known)| {
            let durable = before.get(&block).map_or(0, |known| known.durable);
            (block, durable..=known.begun)
        });
        reopened::check(cluster, &left, &known.collect());
    }
    let (mut torn, mut behind) = (0, 0);
    for (&block, known) in &after {
        let durable = before.get(&block).map_or(0, |known| known.durable);
        let at = block as usize * BLOCK_SIZE;
        let Some(found) = bytes.get(at..at + BLOCK_SIZE) else {
            assert!(
                durable == 0 && block >= 32,
                "block {block} is missing, {known:?}, seed {seed}"
            );
            continue;
        };
        if !is_sound(found, block) {
            torn += 1;
            continue;
        }
        let new = found.first_chunk().is_some_and(page::is_new);
        assert!(!new || (durable == 0 && block >= 32), "block {block} is new, {known:?}");
        let version = (durable..=known.begun).find(|&it| is_version(found, 0, block, it));
        assert!(version.is_some() || new, "block {block}: an old version, {known:?}, seed {seed}");
        behind += u32::from(version.is_some_and(|version| version < known.made));
    }
    (torn, behind)
}

/// Changes pages until stopped, and extends the relation now and then.
fn session(cluster: &Cluster, versions: &Versions, number: u32, stop: &AtomicBool) {
    let mut backend = cluster.backend();
    let mut random = Rng::new(cluster.environment.seed.unwrap_or(0) * 10 + u64::from(number));
    while !stop.load(Ordering::SeqCst) {
        // Each block is changed by a single session, because `Versions` does not order concurrent
        // changes.
        let block = random.below(8) as u32 * 4 + number;
        versions.change(cluster, &mut backend, block);
        if random.below(10) == 0 {
            let method = match random.below(2) {
                0 => ExtendMethod::WriteZeros,
                _ => ExtendMethod::PosixFallocate,
            };
            let made = backend.extend(&cluster.relation(0), 1 + random.below(12) as u32, method);
            let blocks: Vec<u32> =
                made.expect("room").iter().map(|pin| pin.page().block()).collect();
            blocks.into_iter().for_each(|block| versions.change(cluster, &mut backend, block));
        }
        pause(Duration::from_micros(random.below(60)));
    }
}

/// Four sessions change pages and extend the relation while checkpoints are running. The disk
/// crashes at random moments.
fn run(cluster: &Arc<Cluster>) {
    let (versions, stop) = (Arc::new(Versions::default()), Arc::new(AtomicBool::new(false)));
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let (versions, stop) = (Arc::clone(&versions), Arc::clone(&stop));
            cluster.spawn("session", move |cluster| session(cluster, &versions, number, &stop))
        })
        .collect();
    let (versions_too, stop_too) = (Arc::clone(&versions), Arc::clone(&stop));
    let checkpoints = cluster.spawn("checkpoints", move |cluster| {
        let mut backend = cluster.backend();
        while !stop_too.load(Ordering::SeqCst) {
            pause(Duration::from_micros(300));
            versions_too.checkpoint(cluster, &mut backend);
        }
    });
    let mut random = Rng::new(cluster.environment.seed.unwrap_or(0));
    let mut behind = 0;
    for crash in 0..12 {
        pause(Duration::from_micros(50 + random.below(400)));
        (0..4).for_each(|seed| behind += crash_and_check(cluster, &versions, crash * 10 + seed).1);
    }
    stop.store(true, Ordering::SeqCst);
    tasks.into_iter().for_each(trunkline_sim::matrix::TestThread::join);
    checkpoints.join();
    assert!(behind > 0, "the crashes undid changes");
    versions.checkpoint(cluster, &mut cluster.backend());
    let undone = crash_and_check(cluster, &versions, 99);
    assert_eq!(undone, (0, 0), "every change survives after the last checkpoint");
}

#[test]
fn no_change_is_lost_with_evictions_in_a_small_pool() {
    check_simulated(Needs { buffers: 16, seeds: 6, ..Needs::writable() }, run);
}

#[test]
fn no_change_is_lost_with_checkpoints_in_a_large_pool() {
    check_simulated(Needs { buffers: 256, seeds: 6, ..Needs::writable() }, run);
}

/// A failed fsync loses data, even though the data can still be read. No later checkpoint may
/// succeed.
#[test]
fn no_checkpoint_succeeds_after_an_fsync_that_lost_pages() {
    check_simulated(Needs { seeds: 4, pools: Pools::Both, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        (0..16).for_each(|block| cluster.change(&mut backend, block, 1));
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        (0..16).for_each(|block| cluster.change(&mut backend, block, 2));
        cluster.disk.lose_syncs(1);
        cluster.checkpoint(&mut backend).expect_err("a failed sync");
        for seed in 0..4 {
            cluster.checkpoint(&mut backend).expect_err("permanent");
            let left = cluster.disk.after_crash(seed);
            let bytes = left.content(cluster.relation(0).path(0).to_str().expect("a name"));
            for (found, block) in bytes.chunks(BLOCK_SIZE).zip(0..16) {
                assert!(is_version(found, 0, block, 1), "block {block}: lost for good");
            }
        }
    });
}

/// A relation's length is durable after a checkpoint, both after extension and after truncation.
#[test]
fn lengths_are_durable_after_a_checkpoint() {
    check_simulated(Needs { seeds: 4, pools: Pools::Both, ..Needs::writable() }, |cluster| {
        let mut backend = cluster.backend();
        let length = |cluster: &Cluster, seed| {
            let left = cluster.disk.after_crash(seed);
            left.content(cluster.relation(0).path(0).to_str().expect("a name")).len() / BLOCK_SIZE
        };
        let made = backend.extend(&cluster.relation(0), 20, ExtendMethod::PosixFallocate);
        let end = 32 + made.expect("room").len();
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        (0..8).for_each(|seed| assert_eq!(length(cluster, seed), end, "made longer"));
        backend.truncate(&cluster.relation(0), 10).expect("cut off");
        cluster.checkpoint(&mut backend).expect("a checkpoint");
        (0..8).for_each(|seed| assert_eq!(length(cluster, seed), 10, "cut off"));
    });
}
