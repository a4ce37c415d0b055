//! The threads of one job: start, stop, join.
//!
//! A job has one coordinator thread and any number of workers. All of them share [`Job`].
//!
//! **No lost wake-ups.** `exits` is an event count. A waiter first loads it, then checks its
//! condition (a result, or the number of running workers), and then sleeps only if the count hasn't
//! changed. An exiting thread first publishes its result and then increments the count. So the
//! waiter either sees the result or doesn't sleep.
//!
//! **Stopping.** `stopping` is a flag that workers poll between two units of work, as PostgreSQL's
//! backends poll `CHECK_FOR_INTERRUPTS()`. A worker that sleeps does not poll, so each session and
//! backend also registers a canceller, and [`Job::stop`] triggers all of them.

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

/// How often a long job checks whether a server has started on the data directory.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long a cancelled job may take to stop before we abandon it. One second is far longer than a
/// healthy device needs for one read, but not too long to wait after pressing Ctrl-C.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// State shared by a job's threads. Each thread holds it in an `Arc`, since an abandoned thread
/// outlives the call that started it.
pub(crate) struct Job {
    aio: Aio,
    /// The caller's observer. Shared, because an abandoned worker may still call it.
    observer: Arc<dyn Observer>,
    /// Blocks read so far. Like the other counters, this is only a statistic, so relaxed ordering
    /// is enough.
    blocks_read: AtomicU64,
    /// Bytes processed, including those that couldn't be read. Progress thus reaches 100% even if
    /// files are damaged.
    bytes_done: AtomicU64,
    /// Set once and never cleared. Written before `cancellers` is locked; see
    /// [`Job::cancel_on_stop`].
    stopping: AtomicBool,
    /// Cancellers of all sessions and backends that the workers have opened.
    cancellers: Mutex<Vec<Canceller>>,
    /// Nanoseconds from the workers' start until the last worker ended, over all phases.
    working: AtomicU64,
    /// A worker's first error, of the error type that the job runs with. The caller must be able to
    /// report it even if the coordinator, still waiting for a worker that hangs, never returns.
    first_error: Mutex<Option<Box<dyn Any + Send>>>,
    /// Event count of thread exits. The caller and the coordinator sleep on it.
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

    /// Runs `coordinate` in its own thread. Returns when that thread has finished, or when the job
    /// was cancelled but didn't stop within [`CANCEL_TIMEOUT`].
    ///
    /// The caller's thread only polls and sleeps here. It can therefore always return, even if the
    /// coordinator or a worker is stuck in a system call.
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
            // Load the event count before checking the result. If the coordinator exits in between,
            // the count has changed and wait() returns immediately.
            let exits = self.exits.epoch();
            let outcome = result.lock().take();
            let now = clock::now();
            // A result that arrives at the last moment takes precedence over the timeout.
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
            // If an error stopped the job, report that error, because it is more useful than the
            // fact that the job was then abandoned.
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

    /// Runs `work` in `workers` threads, passes each thread its number, and waits for all of them.
    ///
    /// Calls `recheck` once a second and once more at the end, because a result is worthless if a
    /// server changed the files during the job. A worker's first error stops the other workers.
    /// Note that if `recheck` fails or a thread can't be started, we return without waiting for the
    /// workers that are already running.
    pub(crate) fn run_workers<E: From<JobError> + Send + 'static>(
        self: &Arc<Self>,
        workers: usize,
        recheck: impl Fn() -> Result<(), E>,
        work: impl Fn(&Job, usize) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<(), E> {
        let started = clock::now();
        let work = Arc::new(work);
        // Number of workers still running. Each worker decrements it before it increments `exits`,
        // so a coordinator that sees the new event count also sees the new number.
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
            // If the system refuses to create a thread, the workers already running must stop too.
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

    /// Runs `body` in a new thread, and passes its result to `exit` in that thread. If `body`
    /// panics, the result is [`JobError::Panicked`]. The thread is detached, and we learn of its
    /// exit only through `exits`, because joining a thread that hangs would hang the joining thread
    /// too.
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

    /// Keeps a worker's error, unless there is one already: later errors usually result from
    /// stopping the job.
    fn keep_first_error<E: Send + 'static>(&self, error: E) {
        self.first_error.lock().get_or_insert_with(|| Box::new(error));
    }

    fn take_first_error<E: 'static>(&self) -> Option<E> {
        let error = self.first_error.lock().take()?;
        error.downcast().ok().map(|error| *error)
    }

    /// Stops the job. Workers don't start any more work, and if they're waiting for something, the
    /// wait ends with an error. We don't wait for I/O in flight.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for canceller in self.cancellers.lock().iter() {
            canceller.cancel();
        }
    }

    /// Whether the worker should finish. A relaxed load is enough, since no data depends on the
    /// flag. Seeing it one unit of work late does no harm.
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

    /// Cancels a session's waits when the job stops, or immediately if it is already stopping.
    ///
    /// We check the flag under the lock. [`Self::stop`] sets the flag before it takes the lock. So
    /// either we see the flag here, or `stop` sees the canceller we're adding.
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

    /// Sleeps until another of the job's threads exits, but at most for one poll interval. We use
    /// this to retry after running out of file descriptors, because an exiting thread releases
    /// some.
    pub(crate) fn pause(&self) {
        let exits = self.exits.epoch();
        self.exits.wait(exits, Some(POLL_INTERVAL));
    }
}

/// Reports a thread's result from its destructor, so that we also get one if the thread unwinds
/// from a panic.
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
        // Signal only after publishing the result, because a woken waiter must find it.
        self.job.exits.signal();
    }
}

/// Groups work by mount (`st_dev`), so that a file system that hangs blocks only its own worker.
/// The order within each mount is preserved.
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
