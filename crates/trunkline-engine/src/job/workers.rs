//! The threads of one job: start, stop, join.
//!
//! A job has one coordinator thread and any number of workers. They all share one [`Job`].
//!
//! **No lost wake-ups.** `exits` is an event counter. Before a thread goes to sleep, it first reads
//! the counter, then checks its condition (whether there is a result, or how many workers are
//! running), and then sleeps only if the counter hasn't changed. When a thread exits, it first
//! publishes its result and then increments the counter. The waiter therefore either sees the
//! result or doesn't go to sleep.
//!
//! **Stopping.** The workers check the `stopping` flag between two units of work, just as
//! PostgreSQL's backends call `CHECK_FOR_INTERRUPTS()`. Since a sleeping worker can't check the
//! flag, each session and each backend also registers a canceller, and [`Job::stop`] triggers all
//! of them.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::facade::{Arc, Futex, Mutex, thread};
use trunkline_aio::{Aio, Canceller, Session, clock};
use trunkline_format::BLOCK_SIZE;

use super::error::JobError;
use super::observer::Observer;
use super::summary::{End, IoSummary, JobSummary};

/// How often the caller reports progress and checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How often a long job checks whether a server has been started on the data directory.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long we wait for a cancelled job to stop before we abandon it. One second is much more than
/// a healthy device needs for a read, but it's not too long to wait after pressing Ctrl-C.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The state shared by all threads of a job. Each thread holds an `Arc` of it, because an abandoned
/// thread may outlive the call that started it.
pub(crate) struct Job {
    aio: Aio,
    /// The caller's observer. It is shared, because an abandoned worker may still call it.
    observer: Arc<dyn Observer>,
    /// Number of blocks read so far. Like the other counters here, this is just a statistic, so
    /// relaxed ordering is enough.
    blocks_read: AtomicU64,
    /// Number of bytes processed. This includes bytes that couldn't be read, so that progress
    /// reaches 100% even if files are damaged.
    bytes_done: AtomicU64,
    /// Set when the job is being stopped, and never cleared. It must be set before locking
    /// `cancellers`; see [`Job::cancel_on_stop`].
    stopping: AtomicBool,
    /// Cancellers of all sessions and backends that the workers have opened.
    cancellers: Mutex<Vec<Canceller>>,
    /// Nanoseconds from the start of the workers until the last of them has finished, added up over
    /// all phases.
    working: AtomicU64,
    /// The first error returned by a worker. The type is erased here; it's the error type that the
    /// job was started with. We store the error here so that the caller can report it even if the
    /// coordinator never returns, because it's still waiting for a worker that hangs.
    first_error: Mutex<Option<Box<dyn Any + Send>>>,
    /// Incremented whenever a thread exits. The caller and the coordinator sleep on this counter.
    exits: Futex,
}

impl Job {
    pub(crate) fn new(aio: &Aio, observer: Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self {
            aio: aio.clone(),
            observer,
            blocks_read: AtomicU64::new(0),
            bytes_done: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            cancellers: Mutex::default(),
            working: AtomicU64::new(0),
            first_error: Mutex::new(None),
            exits: Futex::new(0),
        })
    }

    /// Runs `coordinate` in a separate thread. Returns when that thread has finished, or when the
    /// job was cancelled but didn't stop within [`CANCEL_TIMEOUT`].
    ///
    /// All that the caller's thread does in here is poll and sleep. This way, it can always return,
    /// even if the coordinator or a worker is stuck in a system call.
    pub(crate) fn run<E: From<JobError> + Send + 'static>(
        self: &Arc<Self>,
        coordinate: impl FnOnce(&Arc<Job>) -> Result<(), E> + Send + 'static,
    ) -> Result<JobSummary, E> {
        let (started, before) = (clock::now(), self.aio.counters());
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let exit = move |job: &Job, outcome: Result<(), E>| {
            // A coordinator that panicked has not stopped its workers.
            if outcome.is_err() {
                job.stop();
            }
            *slot.lock() = Some(outcome);
        };
        self.spawn("coordinator", coordinate, exit)?;
        let mut deadline = None;
        let outcome = loop {
            // We must load the event counter before checking for a result. If the coordinator exits
            // in between, the counter will have changed, and wait() returns immediately.
            let exits = self.exits.epoch();
            let outcome = result.lock().take();
            let now = clock::now();
            // If there is a result, use it, even if the timeout has just expired as well.
            if outcome.is_some() || deadline.is_some_and(|deadline| now >= deadline) {
                break outcome;
            }
            if deadline.is_none() && self.observer.cancelled() {
                self.stop();
                deadline = Some(now.after(CANCEL_TIMEOUT));
            }
            self.observer.progressed(self.bytes_done.load(Ordering::Relaxed));
            self.exits.wait(exits, Some(POLL_INTERVAL));
        };
        let end = match outcome {
            // If the job was stopped by an error, return that error. The caller is better served by
            // that than by learning that we then had to abandon the job.
            None => match self.take_first_error() {
                Some(error) => return Err(error),
                None => End::Abandoned,
            },
            Some(outcome) => {
                outcome?;
                if deadline.is_some() { End::Cancelled } else { End::Complete }
            }
        };
        self.observer.progressed(self.bytes_done.load(Ordering::Relaxed));
        let elapsed = clock::now().since(started);
        let working = Duration::from_nanos(self.working.load(Ordering::Relaxed));
        Ok(JobSummary {
            end,
            elapsed,
            working: if working.is_zero() { elapsed } else { working },
            blocks: self.blocks_read.load(Ordering::Relaxed),
            io: IoSummary::between(&before, &self.aio.counters()),
        })
    }

    /// Runs `work` in `workers` threads and waits for all of them. Each thread is passed its
    /// number.
    ///
    /// `recheck` is called once a second, and once more at the end, because the job's result is
    /// worthless if a server has changed the files in the meantime. If a worker fails, the other
    /// workers are stopped. Note that if `recheck` fails or we can't start a thread, we return
    /// without waiting for the workers that are already running.
    pub(crate) fn run_workers<E: From<JobError> + Send + 'static>(
        self: &Arc<Self>,
        workers: usize,
        recheck: impl Fn() -> Result<(), E>,
        work: impl Fn(&Job, usize) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<(), E> {
        let started = clock::now();
        let work = Arc::new(work);
        // Number of workers that are still running. A worker must decrement this before it
        // increments `exits`, so that if the coordinator sees the new event count, it also sees the
        // new number of workers.
        let running = Arc::new(AtomicUsize::new(workers));
        for number in 0..workers {
            let (work, running) = (Arc::clone(&work), Arc::clone(&running));
            let exit = move |job: &Job, outcome: Result<(), E>| {
                if let Err(error) = outcome {
                    job.keep_first_error(error);
                    job.stop();
                }
                running.fetch_sub(1, Ordering::SeqCst);
            };
            // If the system doesn't let us create another thread, we must also stop the workers
            // that are already running.
            self.spawn("worker", move |job| work(job, number), exit)
                .inspect_err(|_| self.stop())?;
        }
        let mut next = clock::now().after(RECHECK_INTERVAL);
        loop {
            let exits = self.exits.epoch();
            if running.load(Ordering::SeqCst) == 0 {
                break;
            }
            let now = clock::now();
            if now >= next {
                recheck().inspect_err(|_| self.stop())?;
                next = now.after(RECHECK_INTERVAL);
            }
            self.exits.wait(exits, Some(next.since(now)));
        }
        let nanos = u64::try_from(clock::now().since(started).as_nanos()).unwrap_or(u64::MAX);
        // A job may have several phases, so add up their times.
        self.working.fetch_add(nanos, Ordering::Relaxed);
        if let Some(error) = self.take_first_error() {
            return Err(error);
        }
        // A server may have started after the last periodic check.
        recheck()
    }

    /// Runs `body` in a new thread, and calls `exit` in that thread with the result. If `body`
    /// panics, the result is [`JobError::Panicked`]. We never join the thread, because if it hangs,
    /// we would hang too. Instead, we use `exits` to find out when it has exited.
    fn spawn<E: From<JobError> + 'static>(
        self: &Arc<Self>,
        name: &str,
        body: impl FnOnce(&Arc<Job>) -> Result<(), E> + Send + 'static,
        exit: impl FnOnce(&Job, Result<(), E>) + Send + 'static,
    ) -> Result<(), JobError> {
        let job = Arc::clone(self);
        let thread = move || {
            // The guard assumes a panic until `body` has returned.
            let mut guard = ExitGuard {
                job: &job,
                outcome: Some(Err(JobError::Panicked.into())),
                exit: Some(exit),
            };
            let outcome = body(&job);
            guard.outcome = Some(outcome);
        };
        thread::spawn(name, thread).map(drop).map_err(JobError::Start)
    }

    /// Keeps the error of a worker if it's the first one. Later errors are usually just a
    /// consequence of stopping the job.
    fn keep_first_error<E: Send + 'static>(&self, error: E) {
        self.first_error.lock().get_or_insert_with(|| Box::new(error));
    }

    fn take_first_error<E: 'static>(&self) -> Option<E> {
        let error = self.first_error.lock().take()?;
        error.downcast().ok().map(|error| *error)
    }

    /// Stops the job. Workers don't start anything new, and if a worker is waiting for something,
    /// it stops waiting and gets an error. We don't wait for I/O that is in flight.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for canceller in self.cancellers.lock().iter() {
            canceller.cancel();
        }
    }

    /// Whether the worker should stop. A relaxed load is enough here, because no other data depends
    /// on the flag, and it does no harm if we notice it one unit of work late.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The instance that the job runs on.
    pub(crate) fn aio(&self) -> &Aio {
        &self.aio
    }

    /// The caller's observer.
    pub(crate) fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// Opens a session whose waits end when the job stops.
    pub(crate) fn session(&self) -> Result<Session, JobError> {
        let session = self.aio.session();
        let session = session.map_err(|error| JobError::Start(io::Error::other(error)))?;
        self.cancel_on_stop(session.canceller());
        Ok(session)
    }

    /// Makes sure that the session's waits are cancelled when the job stops. If the job is already
    /// stopping, cancels them immediately.
    ///
    /// We must check the flag while holding the lock. Since [`Self::stop`] sets the flag before it
    /// acquires the lock, either we see the flag here, or `stop` will see the canceller that we're
    /// adding.
    pub(super) fn cancel_on_stop(&self, canceller: Canceller) {
        let mut cancellers = self.cancellers.lock();
        if self.stopping.load(Ordering::SeqCst) {
            canceller.cancel();
        }
        cancellers.push(canceller);
    }

    /// Counts `blocks` as processed, of which `read` could be read.
    pub(crate) fn count(&self, blocks: u32, read: u32) {
        self.bytes_done.fetch_add(u64::from(blocks) * BLOCK_SIZE as u64, Ordering::Relaxed);
        self.blocks_read.fetch_add(u64::from(read), Ordering::Relaxed);
    }

    /// Sleeps until another thread of the job exits, but at most for one poll interval. We call
    /// this before retrying when we've run out of file descriptors, because an exiting thread may
    /// release some.
    pub(crate) fn pause(&self) {
        let exits = self.exits.epoch();
        self.exits.wait(exits, Some(POLL_INTERVAL));
    }
}

/// Passes on a thread's result when it is dropped. This way, we also get a result if the thread
/// panics.
struct ExitGuard<'j, E, F: FnOnce(&Job, Result<(), E>)> {
    job: &'j Job,
    outcome: Option<Result<(), E>>,
    exit: Option<F>,
}

impl<E, F: FnOnce(&Job, Result<(), E>)> Drop for ExitGuard<'_, E, F> {
    fn drop(&mut self) {
        if let (Some(exit), Some(outcome)) = (self.exit.take(), self.outcome.take()) {
            exit(self.job, outcome);
        }
        // We must publish the result before signalling, because the waiter expects to find it when
        // it wakes up.
        self.job.exits.signal();
    }
}

/// Groups work by mount (`st_dev`), so that if a file system hangs, only its own workers are
/// blocked. Items on the same mount stay in order.
pub(crate) fn by_mount<T>(
    items: impl IntoIterator<Item = T>,
    device: impl Fn(&T) -> u64,
) -> Vec<Vec<T>> {
    let mut mounts: BTreeMap<u64, Vec<T>> = BTreeMap::new();
    for item in items {
        mounts.entry(device(&item)).or_default().push(item);
    }
    mounts.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::observer::Unobserved;
    use super::*;
    use trunkline_aio::{Builder, MethodKind};

    fn job() -> Arc<Job> {
        let aio = Builder::new().method(MethodKind::Sync).start().expect("started");
        Job::new(&aio, Arc::new(Unobserved))
    }

    #[test]
    fn a_panicking_worker_fails_the_job_and_stops_the_others() {
        let summary = job().run::<JobError>(|job| {
            job.run_workers(
                3,
                || Ok(()),
                |job, number| {
                    assert_ne!(number, 1, "this panic is part of the test");
                    while !job.is_stopping() {
                        job.pause();
                    }
                    Ok(())
                },
            )
        });
        assert!(matches!(summary, Err(JobError::Panicked)), "{summary:?}");
    }

    #[test]
    fn a_panicking_coordinator_fails_the_job() {
        let summary = job().run::<JobError>(|_| panic!("this panic is part of the test"));
        assert!(matches!(summary, Err(JobError::Panicked)), "{summary:?}");
    }

    /// Cancels the job when a worker says so.
    struct CancelledBy(Arc<AtomicBool>);

    impl Observer for CancelledBy {
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn an_abandoned_job_reports_the_error_that_stopped_it() {
        let aio = Builder::new().method(MethodKind::Sync).start().expect("started");
        let (cancelled, released) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let job = Job::new(&aio, Arc::new(CancelledBy(Arc::clone(&cancelled))));
        let release = Arc::clone(&released);
        let summary = job.run::<JobError>(move |job| {
            job.run_workers(
                2,
                || Ok(()),
                move |job, number| {
                    if number == 0 {
                        return Err(JobError::Memory { blocks: 7 });
                    }
                    // This worker hangs: it ignores that the job stops.
                    while !job.is_stopping() {
                        job.pause();
                    }
                    cancelled.store(true, Ordering::SeqCst);
                    while !released.load(Ordering::SeqCst) {
                        job.pause();
                    }
                    Ok(())
                },
            )
        });
        release.store(true, Ordering::SeqCst);
        assert!(matches!(summary, Err(JobError::Memory { blocks: 7 })), "{summary:?}");
    }

    #[test]
    fn the_first_error_of_a_worker_is_the_error_of_the_job() {
        let summary = job().run::<JobError>(|job| {
            job.run_workers(
                4,
                || Ok(()),
                |_, number| Err(JobError::Memory { blocks: number as u32 }),
            )
        });
        assert!(matches!(summary, Err(JobError::Memory { .. })), "{summary:?}");
    }
}
