//! Running a checkpoint: mark, write, sync (PostgreSQL's `BufferSync`).
//!
//! We don't undo anything when a checkpoint fails or is cancelled. Pages that were already written
//! are clean, and their segments are recorded as pending fsyncs; all other pages are still dirty.
//! Some pages may still be marked, but that's harmless, because the next checkpoint marks and lists
//! all dirty pages anyway.

use super::error::CheckpointError;
use super::fsync::{FsyncStats, sync_all, wait_for_others};
use super::order;
use super::report::{Cause, CheckpointReport};
use crate::pool::{Backend, BufferManager, BufferTag, Pool, WriteError};
use crate::settings::Settings;
use crate::storage::{Relation, Storage};
use crate::write_stream::{WriteOptions, WriteStats, WriteStream};
use std::collections::BTreeMap;
use trunkline_aio::{Class, clock};

/// Options of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// Why it runs.
    pub cause: Cause,
    /// Maximum number of writes in flight.
    pub concurrency: u32,
    /// Maximum number of blocks in one write (`io_max_combine_limit`).
    pub combine: u32,
    /// `checkpoint_flush_after`, in blocks; 0 leaves writeback to the kernel.
    pub flush_after: u32,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self { cause: Cause::Requested, concurrency: 128, combine: 16, flush_after: 32 }
    }
}

impl CheckpointOptions {
    /// Takes the options from the settings. Writes are made as large as possible, because no
    /// session is waiting for any single page.
    pub fn of(settings: &Settings) -> Self {
        Self {
            combine: settings.io_max_combine_limit(),
            flush_after: settings.checkpoint_flush_after(),
            ..Self::default()
        }
    }
}

/// Runs one checkpoint of the pool. `pace` is called after each page with the fraction of the work
/// done so far, from 0 to 1, and may sleep to slow the checkpoint down.
///
/// A pool can only run one checkpoint at a time. If another checkpoint is already running, this
/// call waits for it to finish, even if that checkpoint is being spread over time. Only
/// [`super::Checkpointer::request`] makes a running checkpoint hurry up.
///
/// # Errors
/// See [`CheckpointError`].
pub fn checkpoint(
    pool: &Pool,
    backend: &mut Backend,
    options: CheckpointOptions,
    pace: impl FnMut(f64),
) -> Result<CheckpointReport, CheckpointError> {
    let mut written = WriteStats::default();
    checkpoint_with(pool, backend, options, pace, &mut written)
}

/// Like `checkpoint`, but if the checkpoint fails, the caller can still find out from `written`
/// what was written.
pub(super) fn checkpoint_with(
    pool: &Pool,
    backend: &mut Backend,
    options: CheckpointOptions,
    mut pace: impl FnMut(f64),
    written: &mut WriteStats,
) -> Result<CheckpointReport, CheckpointError> {
    let manager = pool.manager();
    // We can only run one checkpoint at a time, because CHECKPOINT_NEEDED doesn't record which
    // checkpoint set the flag.
    let _lock = pool.checkpoint_lock().acquire(backend.session()).map_err(WriteError::from)?;
    refuse_after_failed_sync(manager)?;
    let begun = clock::now();
    // The set of pages to write is fixed from here on. If a page becomes dirty after this, it's
    // left to the next checkpoint, so the amount of work is bounded.
    let marked = manager.buffers().mark_for_checkpoint();
    let total = marked.len();
    // We must get the list of clusters only after marking the pages. A cluster stays open as long
    // as it has a dirty page, so if a marked page's cluster isn't in the list, the page must have
    // been written by another session in the meantime.
    let storages: BTreeMap<u16, Storage> =
        manager.open_storages().into_iter().map(|storage| (storage.number(), storage)).collect();
    let mut stream = WriteStream::new(
        backend,
        WriteOptions {
            concurrency: options.concurrency,
            combine: options.combine,
            class: Class::Checkpoint,
            must: true,
            checkpoint: true,
            flush_after: options.flush_after,
        },
    );
    let mut last: Option<(BufferTag, Relation)> = None;
    for (done, (tag, buffer)) in order::balanced(marked).enumerate() {
        let relation = match last.take() {
            Some((of, relation)) if of.same_fork(tag) => relation,
            _ => match storages.get(&tag.cluster()) {
                Some(storage) => storage.relation(tag.locator(), tag.fork()),
                None => continue,
            },
        };
        let added = stream.write(backend, &relation, tag.block(), buffer);
        // We only get an error here if the session was cancelled or a log flush failed. Failed
        // writes are collected, and `finish` returns the first one.
        added.inspect_err(|_| *written = stream.stats())?;
        last = Some((tag, relation));
        pace((done + 1) as f64 / total as f64);
    }
    let finished = stream.finish(backend);
    *written = stream.stats();
    let writes = finished?;
    let written_at = clock::now();
    // At this point all of our writes have completed and are recorded as pending fsyncs. If a
    // marked page was written by another session instead, that write was also recorded before the
    // page became clean.
    let FsyncStats { files, longest, sum } = sync_all(backend, storages.values())?;
    wait_for_others(backend, storages.values())?;
    // If the kernel lost a page, it may have reported that to another session's fsync rather than
    // to ours.
    refuse_after_failed_sync(manager)?;
    let ended = clock::now();
    Ok(CheckpointReport {
        cause: options.cause,
        buffers: writes.blocks,
        pool_buffers: u64::from(pool.buffers()),
        writes,
        write_time: written_at.since(begun),
        sync_time: ended.since(written_at),
        total_time: ended.since(begun),
        files,
        longest_sync: longest,
        average_sync: sum.checked_div(files as u32).unwrap_or_default(),
    })
}

/// A completed checkpoint guarantees that redo can start from it. Once an fsync has failed, we can
/// no longer guarantee that, so this checkpoint must fail too.
fn refuse_after_failed_sync(manager: &BufferManager) -> Result<(), CheckpointError> {
    let mut storages = manager.open_storages().into_iter();
    match storages.any(|storage| storage.pending_fsyncs().has_failed()) {
        true => Err(CheckpointError::EarlierSync),
        false => Ok(()),
    }
}
