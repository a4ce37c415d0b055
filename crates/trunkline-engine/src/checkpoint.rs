//! Checkpoints: everything that was changed before one begins is on disk when it has ended.
//!
//! ```text
//!   mark      every dirty page, and sort the pages by tablespace, relation, fork and block
//!   write     tablespaces take turns, each by its share, through one write stream; paced or at once
//!   sync      every segment that was written since it was last synced, all in parallel
//! ```
//! A page that is changed again meanwhile is written as it then is: that is no loss. A page that
//! somebody else writes meanwhile is waited for if its write is not over. A write that fails leaves
//! its page dirty and fails the checkpoint; a sync that fails stops everything, since the system may
//! have dropped what it could not write (facts: PostgreSQL stops the server).
//!
//! [`checkpoint`] is one checkpoint in the caller's thread; `checkpointer` takes requests and keeps
//! time; `background_writer` sees to it that readers find clean buffers.

mod background_writer;
mod checkpointer;
mod order;
mod report;
mod supply;

pub use background_writer::{BackgroundWriter, BackgroundWriterCounts, BackgroundWriterSettings};
pub use checkpointer::{Checkpointer, CheckpointerCounts, CheckpointerSettings};
pub use report::{Cause, CheckpointEvent, CheckpointReport};

use crate::pool::{Backend, Pool, Shared, Tag, WriteError};
use crate::storage::{PendingFsync, Relation, SegmentName, Storage};
use crate::write_stream::{WriteOptions, WriteStats, WriteStream};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::Ordering;
use trunkline_aio::{Class, Slots, Status, clock};
use trunkline_format::segment;

/// How to go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// Why.
    pub cause: Cause,
    /// Writes in flight at most.
    pub concurrency: u32,
    /// Blocks of one write at most (`io_max_combine_limit`).
    pub combine: u32,
    /// `checkpoint_flush_after`, in blocks; 0 leaves write-back to the system.
    pub flush_after: u32,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self { cause: Cause::Requested, concurrency: 128, combine: 16, flush_after: 32 }
    }
}

/// Why a checkpoint did not come to its end. Pages that were not written are as dirty as before.
#[derive(Debug)]
pub enum CheckpointError {
    /// A write failed, or could not be started.
    Write(WriteError),
    /// A sync has failed, now or before: what was written since the last checkpoint cannot be counted
    /// on, and nothing that is written from now on. The process must end and start anew from its log.
    Sync {
        /// The file; `None` if it was before.
        path: Option<PathBuf>,
        /// The system's answer.
        source: Option<io::Error>,
    },
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => write!(f, "checkpoint failed: {error}"),
            Self::Sync { path: Some(path), source: Some(source) } => {
                write!(
                    f,
                    "checkpoint failed: could not fsync file \"{}\": {source}",
                    path.display()
                )
            }
            Self::Sync { .. } => f.write_str("checkpoint refused: an earlier fsync has failed"),
        }
    }
}

impl std::error::Error for CheckpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            Self::Sync { source, .. } => source.as_ref().map(|error| error as _),
        }
    }
}

impl From<WriteError> for CheckpointError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Sync { path, source } => {
                Self::Sync { path: Some(path), source: Some(source) }
            }
            error => Self::Write(error),
        }
    }
}

/// Does one checkpoint of the pool. `pace` is asked after each page, with the part of the work that is
/// done, 0 to 1; it may wait.
///
/// There is one checkpoint of a pool at a time: if another one runs, this one waits for its end, and a
/// timed one takes its time. Only [`Checkpointer::request`] makes that hurry.
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

/// The same; what it has written is told also if it fails.
pub(crate) fn checkpoint_with(
    pool: &Pool,
    backend: &mut Backend,
    options: CheckpointOptions,
    mut pace: impl FnMut(f64),
    written: &mut WriteStats,
) -> Result<CheckpointReport, CheckpointError> {
    let shared = Arc::clone(&pool.shared);
    let _turn = Turn::take(&shared, backend)?;
    refuse_after_failure(&shared)?;
    let begun = clock::now();
    let marked = mark(&shared);
    let total = marked.len();
    let storages: BTreeMap<u16, Storage> =
        shared.storages().into_iter().map(|storage| (storage.number(), storage)).collect();
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
    let mut last: Option<(Tag, Relation)> = None;
    for (done, (tag, buffer)) in order::balanced(marked).enumerate() {
        let relation = match last.take() {
            Some((of, relation)) if of.same_fork(tag) => relation,
            _ => match storages.get(&tag.cluster()) {
                Some(storage) => storage.relation(tag.locator(), tag.fork()),
                None => continue,
            },
        };
        let gathered = stream.write(backend, &relation, tag.block(), buffer);
        gathered.inspect_err(|_| *written = stream.stats())?;
        last = Some((tag, relation));
        pace((done + 1) as f64 / total as f64);
    }
    let finished = stream.finish(backend);
    *written = stream.stats();
    let written = finished?;
    let written_at = clock::now();
    let synced = sync_all(backend, storages.values())?;
    await_others(backend, storages.values())?;
    // Somebody else's sync of the same segments may have been told what ours was not.
    refuse_after_failure(&shared)?;
    let ended = clock::now();
    Ok(CheckpointReport {
        cause: options.cause,
        buffers: written.blocks,
        pool_buffers: u64::from(pool.buffers()),
        writes: written,
        write_time: written_at.since(begun),
        sync_time: ended.since(written_at),
        total_time: ended.since(begun),
        files: synced.files,
        longest_sync: synced.longest,
        average_sync: synced.sum.checked_div(synced.files as u32).unwrap_or_default(),
    })
}

/// One checkpoint of a pool at a time: two would tell each other's pages apart by one flag.
struct Turn<'a>(&'a Shared);

impl<'a> Turn<'a> {
    fn take(shared: &'a Shared, backend: &mut Backend) -> Result<Self, WriteError> {
        let id = backend.session_id();
        let free = || {
            let word = &shared.checkpointing;
            word.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        shared.checkpoint_waiters.insert(id);
        let waited = backend.session().wait_for(free);
        shared.checkpoint_waiters.remove(id);
        waited?;
        Ok(Self(shared))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.checkpointing.store(false, Ordering::SeqCst);
        self.0.checkpoint_waiters.notify(&self.0.notifiers);
    }
}

fn refuse_after_failure(shared: &Shared) -> Result<(), CheckpointError> {
    match shared.storages().iter().any(|storage| storage.pending_fsyncs().has_failed()) {
        true => Err(CheckpointError::Sync { path: None, source: None }),
        false => Ok(()),
    }
}

/// Marks all that is dirty now; the pages and where they are.
fn mark(shared: &Shared) -> Vec<(Tag, u32)> {
    let descriptors = shared.buffers.iter().zip(0_u32..);
    let dirty = descriptors.filter(|(descriptor, _)| descriptor.word.mark_for_checkpoint());
    // A tag may be torn if the page goes meanwhile, but then it was written; the write looks again.
    dirty.map(|(descriptor, buffer)| (descriptor.tag(), buffer)).collect()
}

#[derive(Debug, Default)]
struct Synced {
    files: u64,
    longest: Duration,
    sum: Duration,
}

/// Segments that are synced at the same time.
const SYNCS: usize = 64;

/// Makes durable what was written to any segment since its last sync.
fn sync_all<'a>(
    backend: &mut Backend,
    storages: impl Iterator<Item = &'a Storage>,
) -> Result<Synced, CheckpointError> {
    let mut synced = Synced::default();
    for storage in storages {
        let pending = storage.pending_fsyncs().pending();
        for group in pending.chunks(SYNCS) {
            sync_group(backend, storage, group, &mut synced)?;
        }
    }
    Ok(synced)
}

/// Waits until it is known how the syncs of others have ended, and those of a checkpoint that was cut short:
/// one of them may have been told of an error and not have told us yet.
fn await_others<'a>(
    backend: &mut Backend,
    storages: impl Iterator<Item = &'a Storage>,
) -> Result<(), WriteError> {
    for storage in storages {
        for io in storage.pending_fsyncs().fsyncs_in_flight() {
            backend.session.join(io)?;
            storage.pending_fsyncs().fsync_ended(io);
        }
    }
    Ok(())
}

fn sync_group(
    backend: &mut Backend,
    storage: &Storage,
    group: &[(SegmentName, Arc<PendingFsync>)],
    synced: &mut Synced,
) -> Result<(), CheckpointError> {
    // Whatever becomes of this thread, a failure is noted where it is learned.
    let callback = Arc::new(storage.pending_fsyncs().callback());
    let mut operations = Slots::<()>::with_callbacks(group.len(), vec![callback]);
    let mut issued = vec![None; group.len()];
    for (slot, (name, sync)) in group.iter().enumerate() {
        let (locator, fork, segment) = *name;
        let covered = sync.before_sync();
        let first = segment::first_block(segment).unwrap_or_default();
        let file = match sync.kept_file() {
            Some(file) => file,
            None => match storage.relation(locator, fork).locate(first) {
                Ok(located) => located.file,
                // Removed since: nobody counts on it.
                Err(_) if !storage.pending_fsyncs().contains(name) => continue,
                Err(error) => return Err(WriteError::from(error).into()),
            },
        };
        let handle = backend.session.acquire(Class::Checkpoint).map_err(WriteError::from)?;
        let io = handle.wait_ref();
        storage.pending_fsyncs().fsync_begins(io);
        handle.fsync(&file, &mut operations, slot);
        issued[slot] = Some((covered, io));
    }
    while operations.pending() > 0 {
        let (slot, outcome) =
            backend.session.wait_any(&mut operations).map_err(WriteError::from)?;
        let (Some((covered, io)), (name, sync)) = (issued[slot], &group[slot]) else {
            unreachable!("a sync ended that was not issued");
        };
        storage.pending_fsyncs().fsync_ended(io);
        if outcome.status == Status::Error {
            let source = io::Error::from_raw_os_error(outcome.errno().unwrap_or_default());
            let path = storage.relation(name.0, name.1).path(name.2);
            return Err(CheckpointError::Sync { path: Some(path), source: Some(source) });
        }
        sync.synced(covered);
        storage.pending_fsyncs().forget_clean(name);
        let took = operations.device_time(slot);
        synced.files += 1;
        synced.longest = synced.longest.max(took);
        synced.sum += took;
    }
    Ok(())
}
