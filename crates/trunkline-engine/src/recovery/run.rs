//! Runs a recovery: the order of its steps, and the checks before anything is written.

use std::path::Path;
use std::sync::Arc;

use trunkline_aio::facade::atomic::Ordering;
use trunkline_aio::facade::thread;
use trunkline_aio::{Aio, clock};
use trunkline_format::backup_label::BACKUP_LABEL_NAME;
use trunkline_format::{ClusterState, ControlFile};

use super::end::finish;
use super::error::RecoveryError;
use super::options::{Recovered, RecoveryOptions, RecoveryProgress, RecoveryReport};
use super::page_writer::{PageWriter, Work};
use super::plan::Plan;
use super::status_writer::write_status_pages;
use crate::control_writer::ControlWriter;
use crate::datadir::{CONTROL_NAME, DataDirError, read_control_file};
use crate::log_writer::{Lane, SegmentStore, check_marker};
use crate::replay::{Replay, ReplayOptions, prepared_transactions};
use crate::small_file;
use crate::storage::{Layout, OpenFiles, Storage, WritableFiles};

/// Recovers the cluster in `root` if it was not shut down. It must be one that [`crate::new_cluster`] has made, and no
/// other process may use it. `progress` is called from this thread.
///
/// # Errors
/// [`RecoveryError`]. Recovery can be retried.
pub fn recover(
    aio: &Aio,
    files: &Arc<dyn WritableFiles>,
    root: &Path,
    options: &RecoveryOptions,
    mut progress: impl FnMut(RecoveryProgress),
) -> Result<Recovered, RecoveryError> {
    check_marker(&**files, root)?;
    let begun = clock::now();
    let control = read_control_file(&root.join(CONTROL_NAME))?;
    refuse_backup(root, &control)?;
    let replay_options = ReplayOptions {
        memory: options.memory,
        threads: options.threads,
        io: options.io.clone(),
        ..ReplayOptions::new(options.scratch.clone())
    };
    let Some(replay) = Replay::run(root, &control, &replay_options)? else {
        let wal_end = Replay::end_of_shutdown(root, &control)?;
        return Ok(Recovered { control, wal_end, report: None });
    };
    refuse_unsupported(root, &control, &replay)?;
    if let Some(path) = replay.missing_status_page() {
        return Err(RecoveryError::StatusPageMissing { path });
    }
    let replayed = replay.report();
    let segment_size = replay.log_files().identity().segment_size;
    // The log first, since no page may be durable before its records: after a crash of the process alone, the end of the
    // log may be only in the page cache.
    let mut lane = Lane::new(aio)?;
    let timeline = control.checkpoint.timeline;
    let segments =
        SegmentStore::new(Arc::clone(files), &root.join("pg_wal"), timeline, segment_size);
    segments.sync(replayed.start, replayed.end, &mut lane)?;
    let recovering = ControlFile { state: ClusterState::InCrashRecovery, ..control };
    ControlWriter::new(files, root).write(&mut lane, &recovering)?;
    drop(lane);

    let table = OpenFiles::writable(16, Arc::clone(files));
    let storage = Storage::for_writing(root, Layout::of(&control), &table, false);
    let plan = Plan::new(&replay, &storage, files, options)?;
    let removed = plan.removed;
    let work = Arc::new(Work::new(replay, plan, Arc::clone(files)));
    let total = work.plan.pieces.len();
    write_pages(aio, &work, options.threads, || {
        progress(RecoveryProgress { done: work.done.load(Ordering::Relaxed), total });
    })?;
    write_status_pages(aio, &work.replay, &**files)?;
    for path in &work.plan.directories {
        let synced = files.sync_directory_of(path);
        synced.map_err(|source| RecoveryError::file("fsync the directory of", path, source))?;
    }

    let replayed = work.replay.report();
    let counted = work.replay.control(&control);
    let (control, wal_end) = finish(aio, files, root, (&counted, replayed), segment_size)?;
    let report = RecoveryReport {
        start: replayed.start,
        end: replayed.end,
        reason: replayed.reason.clone(),
        records: replayed.records,
        pages: work.pages.load(Ordering::Relaxed),
        removed,
        scan_time: replayed.elapsed,
        total_time: clock::now().since(begun),
    };
    Ok(Recovered { control, wal_end, report: Some(report) })
}

/// Refuses a copy that only an archive recovery could complete.
fn refuse_backup(root: &Path, control: &ControlFile) -> Result<(), RecoveryError> {
    for (name, what) in [
        (BACKUP_LABEL_NAME, "a backup_label"),
        ("recovery.signal", "a recovery.signal"),
        ("standby.signal", "a standby.signal"),
    ] {
        if small_file::exists(&root.join(name)).map_err(DataDirError::from)? {
            return Err(RecoveryError::Unsupported { what });
        }
    }
    match control.state {
        ClusterState::InArchiveRecovery | ClusterState::ShutDownInRecovery => {
            Err(RecoveryError::Unsupported { what: "an unfinished archive recovery" })
        }
        _ => Ok(()),
    }
}

/// Our own clusters don't have these, so recovery doesn't implement them.
fn refuse_unsupported(
    root: &Path,
    control: &ControlFile,
    replay: &Replay,
) -> Result<(), RecoveryError> {
    if !prepared_transactions(root, control, Some(replay))?.is_empty() {
        return Err(RecoveryError::Unsupported { what: "prepared transactions" });
    }
    if replay.has_relation_maps() {
        return Err(RecoveryError::Unsupported { what: "changes of relation maps in its log" });
    }
    Ok(())
}

/// Writes all pages, in this thread and `threads` - 1 others.
fn write_pages(
    aio: &Aio,
    work: &Arc<Work>,
    threads: u32,
    after_each: impl FnMut(),
) -> Result<(), RecoveryError> {
    let mut mine = PageWriter::new(aio)?;
    let mut others = Threads { work, threads: Vec::new() };
    for _ in 1..threads {
        let (theirs, writer) = (Arc::clone(work), PageWriter::new(aio));
        let body = move || match writer {
            Ok(mut writer) => writer.write_all(&theirs, || {}),
            Err(error) => theirs.fail(error.into()),
        };
        match thread::spawn("recovery", body) {
            Ok(thread) => others.threads.push(thread),
            Err(error) => work.fail(RecoveryError::Thread(error)),
        }
    }
    mine.write_all(work, after_each);
    others.join();
    work.take_failure().map_or(Ok(()), Err)
}

/// The other threads of a recovery. If this thread panics, they stop before the cluster can be opened again.
struct Threads<'w> {
    work: &'w Work,
    threads: Vec<thread::JoinHandle>,
}

impl Threads<'_> {
    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                self.work.fail(RecoveryError::Thread(std::io::Error::other("it panicked")));
            }
        }
    }
}

impl Drop for Threads<'_> {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            let interrupted = std::io::Error::other("the recovery was interrupted");
            self.work.fail(RecoveryError::Thread(interrupted));
            self.join();
        }
    }
}
