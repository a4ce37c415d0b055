//! The worker that reads one mount's files.
//!
//! If the page cache serves a read, the read is already complete by the time issuing it returns. In
//! that case the worker visits its pages right away, and the next read can reuse the memory while
//! it is still in the CPU cache. All other reads are handled in completion order, since the visitor
//! doesn't depend on block order.

use trunkline_aio::{Cancelled, Class, MethodKind, Session};
use trunkline_format::BLOCK_SIZE;

use super::read_queue::{NextRead, ReadQueue};
use super::visitor::Context;
use super::window::ReadWindow;
use crate::datadir::FileEntry;
use crate::job::JobError;

/// The window is refilled when a quarter of it is free. Refilling after each completion would
/// submit batches of one read and spend a system call on each.
const REFILL_FRACTION: usize = 4;

/// A worker's resources: buffers in its window, and files it may keep open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) slots: usize,
    pub(super) open_files: usize,
}

/// Reads all `files`, none of which is empty.
pub(super) fn read(
    context: Context<'_>,
    files: &[FileEntry],
    limits: Limits,
) -> Result<(), JobError> {
    let Context { job, options, .. } = context;
    let mut worker = MountWorker {
        context,
        session: job.session()?,
        window: ReadWindow::new(context, limits.slots)?,
        queue: ReadQueue::new(context, files, limits.open_files),
    };
    // The `sync` method executes each read within the submitting call, so it can't have several
    // reads in flight.
    let sync = job.aio().method_status().used == MethodKind::Sync;
    let ended = match sync || options.depth <= 1 {
        true => worker.one_by_one(),
        false => worker.many_in_flight(),
    };
    worker.window.finish();
    // Cancellation is not an error of the job: the caller asked for it.
    let _: Result<(), Cancelled> = ended;
    Ok(())
}

/// One mount's worker: the queue supplies runs of blocks, and the window reads them.
struct MountWorker<'s> {
    context: Context<'s>,
    session: Session,
    window: ReadWindow<'s>,
    queue: ReadQueue<'s>,
}

impl MountWorker<'_> {
    /// Executes the reads in this thread, one at a time. If the method is `sync` but read-ahead was
    /// requested, we issue `posix_fadvise` for up to `depth` reads in advance. That would be
    /// useless for direct I/O, which bypasses the page cache.
    fn one_by_one(&mut self) -> Result<(), Cancelled> {
        let options = self.context.options;
        let ahead = if options.depth > 1 && !options.direct { options.depth } else { 0 };
        while !self.context.job.is_stopping() {
            self.queue.look_ahead(ahead as usize, |run| {
                let offset = u64::from(run.block) * BLOCK_SIZE as u64;
                let length = u64::from(run.blocks) * BLOCK_SIZE as u64;
                self.session.advise(&run.file.file, offset, length);
            });
            let NextRead::Run(run) = self.queue.next(0) else { return Ok(()) };
            let io = self.session.acquire(Class::Maintenance)?;
            self.window.issue(io.needed_now(), run, &mut self.queue);
            while self.window.in_flight() > 0 {
                self.window.wait(&mut self.session, &mut self.queue)?;
            }
        }
        Ok(())
    }

    /// Keeps up to `depth` reads in flight until the queue is empty and the last read has
    /// completed.
    fn many_in_flight(&mut self) -> Result<(), Cancelled> {
        let refill = (self.window.capacity() / REFILL_FRACTION).max(1);
        loop {
            if self.window.in_flight() == 0 || self.window.idle() >= refill {
                self.fill()?;
            }
            if self.window.in_flight() == 0 {
                return Ok(());
            }
            self.window.wait(&mut self.session, &mut self.queue)?;
            self.window.complete_finished(&mut self.queue);
        }
    }

    /// Issues reads until the window is full or the queue has no more runs ready.
    fn fill(&mut self) -> Result<(), Cancelled> {
        let Self { context, session, window, queue } = self;
        let mut batch = session.batch();
        while window.idle() > 0 && !context.job.is_stopping() {
            let NextRead::Run(run) = queue.next(window.in_flight()) else { break };
            // Waiting for a handle is only necessary if we have no read in flight. Otherwise we
            // stop filling: the next completion frees both a handle and a buffer.
            let io = if window.in_flight() == 0 {
                batch.acquire(Class::Maintenance)?
            } else if let Some(io) = batch.try_acquire(Class::Maintenance) {
                io
            } else {
                queue.put_back(run);
                break;
            };
            window.issue(io, run, queue);
            // Reads that the page cache served have already completed. Handle them now, so that
            // their buffers can be reused by this same batch.
            window.complete_finished(queue);
        }
        Ok(())
    }
}
