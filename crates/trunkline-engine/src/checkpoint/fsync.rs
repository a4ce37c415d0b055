//! Syncing segments: fsyncs every segment that has been written to since its last fsync
//! (PostgreSQL's `ProcessSyncRequests`).
//!
//! PostgreSQL fsyncs one file after another. We issue many fsyncs concurrently, which allows the
//! file system to commit them in a single journal transaction.
//!
//! The kernel reports a write error only once to each open file description. So if another session
//! has an fsync or writeback of the same file in flight, that call may receive the error, while our
//! own fsync returns success. A checkpoint must therefore wait for other sessions' fsyncs and
//! writebacks as well, and only then check whether any of them has failed.
//!
//! A write may complete while its segment is being fsynced, in which case the fsync doesn't
//! necessarily cover it. We therefore remember how many writes had completed before we issued the
//! fsync, and treat only those as durable afterwards. PostgreSQL uses `sync_cycle_ctr` to solve the
//! same problem.

use super::error::CheckpointError;
use crate::Location;
use crate::pool::{Backend, WriteError};
use crate::storage::{PendingFsync, SegmentName, Storage};
use crate::window::SlotWindow;
use std::io;
use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, Status, WaitRef};

/// Fsyncs in flight.
const FSYNCS: usize = 64;

/// Counts and times of the fsyncs of one checkpoint.
#[derive(Debug, Default)]
pub(super) struct FsyncStats {
    pub(super) files: u64,
    pub(super) longest: Duration,
    pub(super) sum: Duration,
}

/// Syncs every segment that was written since its last fsync.
pub(super) fn sync_all<'a>(
    backend: &mut Backend,
    storages: impl Iterator<Item = &'a Storage>,
) -> Result<FsyncStats, CheckpointError> {
    let mut stats = FsyncStats::default();
    for storage in storages {
        let pending = storage.pending_fsyncs().pending();
        for group in pending.chunks(FSYNCS) {
            sync_group(backend, storage, group, &mut stats)?;
        }
    }
    Ok(stats)
}

/// Waits for the fsyncs and writebacks of other sessions, as well as those that a cancelled
/// checkpoint left in flight.
pub(super) fn wait_for_others<'a>(
    backend: &mut Backend,
    storages: impl Iterator<Item = &'a Storage>,
) -> Result<(), WriteError> {
    for storage in storages {
        for io in storage.pending_fsyncs().fsyncs_in_flight() {
            backend.session().join(io)?;
            storage.pending_fsyncs().fsync_ended(io);
        }
    }
    Ok(())
}

/// Syncs segments of one cluster, all in flight together.
fn sync_group(
    backend: &mut Backend,
    storage: &Storage,
    group: &[(SegmentName, Arc<PendingFsync>)],
    stats: &mut FsyncStats,
) -> Result<(), CheckpointError> {
    // The callback records a failure even if this session is cancelled and never collects the
    // result.
    let callback = Arc::new(storage.pending_fsyncs().callback());
    // For each slot: which segment is being synced, and how many of its writes the fsync covers.
    let mut window: SlotWindow<(), Option<(usize, u64, WaitRef)>> =
        SlotWindow::new(group.len(), vec![callback]);
    for (at, (name, fsync)) in group.iter().enumerate() {
        let (locator, fork, segment) = *name;
        // Read the count before issuing the fsync, because the fsync may not cover writes that
        // complete later.
        let covered = fsync.before_sync();
        let first = locator.first_block(segment);
        let file = match fsync.kept_file() {
            Some(file) => file,
            None => match storage.relation(locator, fork).locate(first) {
                Ok(located) => located.file,
                // The segment was removed concurrently, so there is nothing left that needs to be
                // durable. PostgreSQL treats `ENOENT` the same way here.
                Err(_) if !storage.pending_fsyncs().contains(name) => continue,
                Err(error) => return Err(WriteError::from(error).into()),
            },
        };
        // Register the fsync before issuing it, so that if another pool runs a checkpoint of the
        // same cluster, it will wait for our fsync as well.
        let slot = window.expect_idle();
        let session = backend.session();
        let handle = session.acquire(Class::Checkpoint).map_err(WriteError::from)?;
        let io = handle.wait_ref();
        storage.pending_fsyncs().fsync_begins(io);
        handle.fsync(&file, window.slots(), slot);
        *window.item_mut(slot) = Some((at, covered, io));
        window.issued(slot);
    }
    while window.in_flight() > 0 {
        let (slot, outcome) = window.sleep_any(backend.session()).map_err(WriteError::from)?;
        let Some((at, covered, io)) = window.item_mut(slot).take() else {
            unreachable!("an fsync ended that was not issued");
        };
        let (name, fsync) = &group[at];
        storage.pending_fsyncs().fsync_ended(io);
        // We must not retry, because the kernel may already have dropped the dirty pages, in which
        // case a second fsync would succeed. The callback has recorded the failure, so all later
        // checkpoints will fail too.
        if outcome.status == Status::Error {
            let source = io::Error::from_raw_os_error(outcome.errno().unwrap_or_default());
            let path = storage.relation(name.0, name.1).path(name.2);
            return Err(CheckpointError::Sync { location: Location::new(path), source });
        }
        // We only know that the writes that completed before the fsync was issued are durable. If
        // the segment has been written to since then, it stays in the list.
        fsync.synced(covered);
        storage.pending_fsyncs().forget_clean(name);
        let took = window.results().device_time(slot);
        stats.files += 1;
        stats.longest = stats.longest.max(took);
        stats.sum += took;
    }
    Ok(())
}
