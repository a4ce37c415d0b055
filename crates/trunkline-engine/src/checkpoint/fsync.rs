//! Syncing segments: fsyncs every segment that was written since its last fsync (PostgreSQL's
//! `ProcessSyncRequests`).
//!
//! PostgreSQL calls fsync for one file after the other. Here many fsyncs are in flight together, so
//! that the file system can commit them in one journal transaction.
//!
//! The kernel reports a write error only once to each open file description. So it may report the
//! error to an fsync or writeback that another session has issued and that is still in flight,
//! while our own fsync of the same file returns success. A checkpoint must therefore also wait for
//! other sessions' fsyncs and writebacks, and only then check whether any of them has failed.
//!
//! A write may complete while the fsync of its segment is in flight, and that fsync doesn't
//! necessarily cover the write. So we remember the number of completed writes before the fsync
//! starts, and afterwards only those count as durable. PostgreSQL solves the same problem with
//! `sync_cycle_ctr`.

use super::error::CheckpointError;
use crate::Location;
use crate::pool::{Backend, WriteError};
use crate::storage::{PendingFsync, SegmentName, Storage};
use crate::window::SlotWindow;
use std::io;
use std::time::Duration;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Class, Status, WaitRef};
use trunkline_format::segment;

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

/// Waits for other sessions' fsyncs and writebacks, and for those left in flight by a cancelled
/// checkpoint.
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
    // The callback records a failure even if this session is cancelled and never takes the result.
    let callback = Arc::new(storage.pending_fsyncs().callback());
    // By slot: which segment is synced, and how many of its writes the fsync covers.
    let mut window: SlotWindow<(), Option<(usize, u64, WaitRef)>> =
        SlotWindow::new(group.len(), vec![callback]);
    for (at, (name, fsync)) in group.iter().enumerate() {
        let (locator, fork, segment) = *name;
        // Read the count before the fsync is issued: a write that completes later may not be
        // covered.
        let covered = fsync.before_sync();
        let first = segment::first_block(segment).unwrap_or_default();
        let file = match fsync.kept_file() {
            Some(file) => file,
            None => match storage.relation(locator, fork).locate(first) {
                Ok(located) => located.file,
                // The segment was removed concurrently, so its contents no longer need to be
                // durable. PostgreSQL handles `ENOENT` here in the same way.
                Err(_) if !storage.pending_fsyncs().contains(name) => continue,
                Err(error) => return Err(WriteError::from(error).into()),
            },
        };
        // Register the fsync before it's issued, so that another pool's checkpoint of the same
        // cluster waits for it as well.
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
        // Don't retry: the kernel may already have dropped the dirty pages, and a second fsync
        // would succeed. The callback has recorded the failure, so every later checkpoint fails
        // too.
        if outcome.status == Status::Error {
            let source = io::Error::from_raw_os_error(outcome.errno().unwrap_or_default());
            let path = storage.relation(name.0, name.1).path(name.2);
            return Err(CheckpointError::Sync { location: Location::new(path), source });
        }
        // Only the writes that had completed before the fsync was issued are known to be durable.
        // If the segment was written since, it stays in the list.
        fsync.synced(covered);
        storage.pending_fsyncs().forget_clean(name);
        let took = window.results().device_time(slot);
        stats.files += 1;
        stats.longest = stats.longest.max(took);
        stats.sum += took;
    }
    Ok(())
}
