//! A worker that reads one mount's files, along with the other workers of the mount.
//!
//! If a read can be served from the page cache, it has already completed by the time the call that
//! issues it returns. The worker then visits its pages right away, so that the next read can reuse
//! the memory while it is still in the CPU cache. If the mount has a worker for each CPU, we try
//! this with all reads, because passing them to other threads would only cost time (decision 0017).
//! If it has fewer, the I/O method's threads copy and check pages as well. All other reads are
//! handled in the order in which they complete, which is OK because the visitor doesn't depend on
//! the order of the blocks.

use trunkline_aio::facade::Mutex;
use trunkline_aio::{Cancelled, Class, MethodKind, Session};
use trunkline_format::BLOCK_SIZE;

use super::file_reads::FileReads;
use super::read_queue::ReadQueue;
use super::visitor::Context;
use crate::job::JobError;

/// We refill the window only when a quarter of it is free. If we did so after each completion,
/// every system call would submit just one read.
const REFILL_FRACTION: usize = 4;

/// Reads until the queue is empty, with a window of up to `slots` buffers. The last worker of a
/// mount reports the files that have shrunk. We don't leave that until the end of the job, because
/// another mount may hang, and then the job ends without its coordinator.
///
/// # Errors
/// There is no session or no memory, and that is also true of all other workers of this mount. If
/// one of them could start, it reads everything.
pub(super) fn read(
    context: Context<'_>,
    queue: &Mutex<ReadQueue>,
    slots: usize,
) -> Result<(), JobError> {
    let outcome = read_queue(context, queue, slots);
    // Release the lock before we call the visitor.
    let last = queue.lock().worker_ended(outcome.is_ok());
    let Some(last) = last else { return Ok(()) };
    for (entry, failure) in last.shrunk {
        context.visitor.failed(&entry, failure);
    }
    if last.any_started { Ok(()) } else { outcome }
}

/// Starts a session, leases the buffers, and reads. It's an error only if the worker can't start.
fn read_queue(
    context: Context<'_>,
    queue: &Mutex<ReadQueue>,
    slots: usize,
) -> Result<(), JobError> {
    let mut session = context.job.session()?;
    let mut reads = FileReads::new(context, queue, slots)?;
    // The `sync` method executes each read while it is being submitted, so this worker can't have
    // more than one read in flight.
    let sync = context.job.aio().method_status().used == MethodKind::Sync;
    let ended = match sync || context.options.depth <= 1 {
        true => one_by_one(context, &mut session, &mut reads),
        false => many_in_flight(context, &mut session, &mut reads),
    };
    // Don't treat cancellation as an error of the job, because the caller asked for it.
    let _: Result<(), Cancelled> = ended;
    Ok(())
}

/// Executes the reads in this thread, one at a time. If read-ahead was requested but the method is
/// `sync`, we call `posix_fadvise` for up to `depth` reads ahead. We don't do that for direct
/// I/O, which bypasses the page cache.
fn one_by_one(
    Context { job, options, .. }: Context<'_>,
    session: &mut Session,
    reads: &mut FileReads<'_>,
) -> Result<(), Cancelled> {
    let ahead = if options.depth > 1 && !options.direct { options.depth } else { 0 };
    while !job.is_stopping() {
        reads.look_ahead(ahead as usize, |run| {
            let offset = u64::from(run.block) * BLOCK_SIZE as u64;
            let length = u64::from(run.blocks) * BLOCK_SIZE as u64;
            session.advise(&run.file.file, offset, length);
        });
        let Some(run) = reads.next_run() else { return Ok(()) };
        reads.issue(session.acquire(Class::Maintenance)?.needed_now(), run);
        while reads.window().in_flight() > 0 {
            reads.wait(session)?;
        }
    }
    Ok(())
}

/// Keeps up to `depth` reads in flight, until the queue is empty and all reads have completed.
fn many_in_flight(
    context: Context<'_>,
    session: &mut Session,
    reads: &mut FileReads<'_>,
) -> Result<(), Cancelled> {
    let refill = (reads.window().len() / REFILL_FRACTION).max(1);
    loop {
        if reads.window().in_flight() == 0 || reads.window().idle() >= refill {
            fill(context, session, reads)?;
        }
        if reads.window().in_flight() == 0 {
            return Ok(());
        }
        reads.wait(session)?;
        reads.complete_finished();
    }
}

/// Issues reads until the window is full, or until the queue can't supply any more runs for now.
fn fill(
    context: Context<'_>,
    session: &mut Session,
    reads: &mut FileReads<'_>,
) -> Result<(), Cancelled> {
    let mut batch = session.batch();
    while reads.window().has_idle() && !context.job.is_stopping() {
        let Some(run) = reads.next_run() else { break };
        // We only have to wait for a handle if we have no reads in flight. Otherwise we can stop
        // here, because the next completion will free up a handle as well as a buffer.
        let io = if reads.window().in_flight() == 0 {
            batch.acquire(Class::Maintenance)?
        } else if let Some(io) = batch.try_acquire(Class::Maintenance) {
            io
        } else {
            reads.put_back(run);
            break;
        };
        reads.issue(if context.try_cached { io.try_cached() } else { io }, run);
        // Reads that were served from the page cache have already completed. Handle them now, so
        // that we can use their buffers again within this batch.
        reads.complete_finished();
    }
    Ok(())
}
