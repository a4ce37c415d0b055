//! One job: its threads, its end, and how far it is.
//!
//! ```text
//!   caller ── watches, 50 ms a tick ──▶ may leave, whatever hangs
//!     └▶ conductor ── lists, rechecks the directory ──▶ may hang with the data directory
//!          └▶ a thread per mount ── reads ──▶ may hang with its mount
//! ```

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use trunkline_aio::clock;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::sync::{Arc, Futex, Mutex, thread};
use trunkline_aio::{Aio, Canceller, Counters, OpenOptions, Operation, file_system_name};
use trunkline_format::BLOCK_SIZE;

use super::{JobError, Observer, ReadOptions, Visitor, mount};
use crate::datadir::FileEntry;

/// How often the caller looks whether to stop, and tells how far the job is.
const TICK: Duration = Duration::from_millis(50);

/// How often a long job looks whether a server has started.
const RECHECK_EVERY: Duration = Duration::from_secs(1);

/// How long a job that was told to stop may take to do so before it is left behind.
const GRACE: Duration = Duration::from_secs(1);

/// Descriptors that are not for relation files: standard ones, rings, the directory's own files.
const DESCRIPTORS_RESERVED: u64 = 20;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything was read, or found not to be readable.
    Complete,
    /// It was told to stop.
    Cancelled,
    /// It was told to stop, and a read or another system call did not come back. Its thread and its
    /// pages are left behind: do not wait for the [`Aio`] to end.
    Abandoned,
}

/// What the I/O of a job looked like. Other users of the same instance are counted too.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IoSummary {
    /// Reads.
    pub reads: u64,
    /// Bytes that they brought.
    pub bytes: u64,
    /// Reads that found everything in the page cache at the first look, without a hop.
    pub cached: u64,
    /// Mean number of reads in flight.
    pub in_flight: f64,
    /// How often a thread slept for I/O, and how long in all.
    pub waits: u64,
    /// How long, summed.
    pub wait_time: Duration,
    /// How long the storage had the reads, summed.
    pub device_time: Duration,
    /// Reads executed again after EINTR or EAGAIN.
    pub retried: u64,
}

impl IoSummary {
    fn between(before: &Counters, after: &Counters) -> Self {
        let (old, new) = (before.operation(Operation::Readv), after.operation(Operation::Readv));
        let samples = after.in_flight_samples - before.in_flight_samples;
        let sum = after.in_flight_sum - before.in_flight_sum;
        Self {
            reads: new.count - old.count,
            bytes: new.bytes - old.bytes,
            cached: after.cached - before.cached,
            in_flight: sum as f64 / samples.max(1) as f64,
            waits: after.waits - before.waits,
            wait_time: after.wait_time.saturating_sub(before.wait_time),
            device_time: new.device_time.saturating_sub(old.device_time),
            retried: after.retried - before.retried,
        }
    }
}

/// What there is to say about any job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline {
    pub(crate) end: End,
    /// All of it.
    pub(crate) elapsed: Duration,
    /// From the first read to the last.
    pub(crate) reading: Duration,
    pub(crate) blocks: u64,
    pub(crate) io: IoSummary,
}

/// What one thread of a job does.
pub(crate) type Body = Box<dyn FnOnce(&Job) -> Result<(), JobError> + Send>;

/// The shared state of a job.
pub(crate) struct Job {
    pub(crate) aio: Aio,
    pub(crate) options: ReadOptions,
    pub(crate) visitor: Arc<dyn Visitor>,
    pub(crate) observer: Arc<dyn Observer>,
    /// Blocks that arrived.
    pub(crate) blocks: AtomicU64,
    /// Bytes done with, arrived or not.
    done_bytes: AtomicU64,
    stopping: AtomicBool,
    cancellers: Mutex<Vec<Canceller>>,
    threads_running: AtomicUsize,
    /// Nanoseconds that [`Job::in_threads`] took; 0 while it goes on.
    reading: AtomicU64,
    /// The first error of a thread.
    failure: Mutex<Option<JobError>>,
    /// Counts ends of threads; whoever waits for one sleeps here.
    ended: Futex,
}

impl Job {
    pub(crate) fn new(
        aio: &Aio,
        options: ReadOptions,
        visitor: Arc<dyn Visitor>,
        observer: Arc<dyn Observer>,
    ) -> Arc<Self> {
        Arc::new(Self {
            aio: aio.clone(),
            options,
            visitor,
            observer,
            blocks: AtomicU64::new(0),
            done_bytes: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            cancellers: Mutex::default(),
            threads_running: AtomicUsize::new(0),
            reading: AtomicU64::new(0),
            failure: Mutex::default(),
            ended: Futex::new(0),
        })
    }

    /// Runs `conduct` in a thread of its own and watches it.
    pub(crate) fn run(
        self: &Arc<Self>,
        conduct: impl FnOnce(&Arc<Job>) -> Result<(), JobError> + Send + 'static,
    ) -> Result<Outline, JobError> {
        let (started, before) = (clock::now(), self.aio.counters());
        let result = Arc::new(Mutex::new(None));
        let (job, slot) = (Arc::clone(self), Arc::clone(&result));
        let body = move || {
            let outcome = conduct(&job);
            *slot.lock() = Some(outcome);
            job.signal();
        };
        thread::spawn("conductor", body).map_err(JobError::Start)?;
        let mut deadline = None;
        let outcome = loop {
            let seen = self.ended.word().load(Ordering::SeqCst);
            let outcome = result.lock().take();
            let now = clock::now();
            if outcome.is_some() || deadline.is_some_and(|deadline| now >= deadline) {
                break outcome;
            }
            if deadline.is_none() && self.observer.cancelled() {
                self.stop();
                deadline = Some(now.after(GRACE));
            }
            self.observer.progressed(self.done_bytes.load(Ordering::Relaxed));
            self.ended.wait(seen, Some(TICK));
        };
        let end = match outcome {
            None => End::Abandoned,
            Some(outcome) => {
                outcome?;
                if deadline.is_some() { End::Cancelled } else { End::Complete }
            }
        };
        self.observer.progressed(self.done_bytes.load(Ordering::Relaxed));
        let elapsed = clock::now().since(started);
        let reading = Duration::from_nanos(self.reading.load(Ordering::Relaxed));
        Ok(Outline {
            end,
            elapsed,
            reading: if reading.is_zero() { elapsed } else { reading },
            blocks: self.blocks.load(Ordering::Relaxed),
            io: IoSummary::between(&before, &self.aio.counters()),
        })
    }

    /// Reads all blocks of `files`. Calls `recheck` now and then, and at the end.
    pub(crate) fn read_all(
        self: &Arc<Self>,
        files: Vec<FileEntry>,
        recheck: impl Fn() -> Result<(), JobError>,
    ) -> Result<(), JobError> {
        self.observer.begins(files.len(), whole_bytes(&files));
        let mut mounts: BTreeMap<u64, Vec<FileEntry>> = BTreeMap::new();
        for file in files.into_iter().filter(|file| file.blocks() > 0) {
            mounts.entry(file.device).or_default().push(file);
        }
        if self.options.direct {
            mounts.values().try_for_each(|files| self.probe_direct(files))?;
        }
        let shares = mounts.len();
        let bodies = mounts.into_values().map(|files| -> Body {
            let combine = self.options.combine_blocks;
            let share = self.aio.region().frames() / shares as u32;
            let slots = self.options.slots().min((share / combine) as usize);
            let limits = mount::Limits { slots, open_files: open_files_max(shares) };
            Box::new(move |job| mount::read(job, files, limits))
        });
        self.in_threads(bodies.collect(), recheck)
    }

    /// Runs each body in a thread of its own, and waits for all. Calls `recheck` now and then, and
    /// at the end. The first error of a body stops the others.
    pub(crate) fn in_threads(
        self: &Arc<Self>,
        bodies: Vec<Body>,
        recheck: impl Fn() -> Result<(), JobError>,
    ) -> Result<(), JobError> {
        let started = clock::now();
        for body in bodies {
            self.start(body)?;
        }
        let mut next = clock::now().after(RECHECK_EVERY);
        loop {
            let seen = self.ended.word().load(Ordering::SeqCst);
            if self.threads_running.load(Ordering::SeqCst) == 0 {
                break;
            }
            let now = clock::now();
            if now >= next {
                recheck().inspect_err(|_| self.stop())?;
                next = now.after(RECHECK_EVERY);
            }
            self.ended.wait(seen, Some(next.since(now)));
        }
        let nanos = u64::try_from(clock::now().since(started).as_nanos()).unwrap_or(u64::MAX);
        self.reading.store(nanos, Ordering::Relaxed);
        if let Some(error) = self.failure.lock().take() {
            return Err(error);
        }
        recheck()
    }

    fn start(self: &Arc<Self>, body: Body) -> Result<(), JobError> {
        let job = Arc::clone(self);
        self.threads_running.fetch_add(1, Ordering::SeqCst);
        let body = move || {
            if let Err(error) = body(&job) {
                job.failure.lock().get_or_insert(error);
                job.stop();
            }
            job.threads_running.fetch_sub(1, Ordering::SeqCst);
            job.signal();
        };
        thread::spawn("reader", body).map(drop).map_err(|error| {
            self.stop();
            JobError::Start(error)
        })
    }

    /// Opens one file for direct I/O, so that a file system without it is named before anything is
    /// read. Other errors are the file's own, and found again when it is its turn.
    fn probe_direct(&self, files: &[FileEntry]) -> Result<(), JobError> {
        let options = OpenOptions { direct: true, no_follow: true, ..OpenOptions::default() };
        let refused = files.iter().find(|file| {
            let error = self.aio.open(&file.path, options).err();
            error.is_none_or(|error| error.kind() == io::ErrorKind::InvalidInput)
        });
        let Some(file) = refused else { return Ok(()) };
        match self.aio.open(&file.path, options) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(JobError::Direct {
                path: file.path.clone(),
                file_system: file_system_name(&file.path),
            }),
            _ => Ok(()),
        }
    }

    /// Nothing more is issued, and waits end; what is under way is left to itself.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for canceller in self.cancellers.lock().iter() {
            canceller.cancel();
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// A session to be cancelled when the job stops.
    pub(crate) fn enrol(&self, canceller: Canceller) {
        let mut cancellers = self.cancellers.lock();
        if self.stopping.load(Ordering::SeqCst) {
            canceller.cancel();
        }
        cancellers.push(canceller);
    }

    /// A piece is done with; `arrived` of its blocks were read.
    pub(crate) fn count(&self, blocks: u32, arrived: u32) {
        self.done_bytes.fetch_add(u64::from(blocks) * BLOCK_SIZE as u64, Ordering::Relaxed);
        self.blocks.fetch_add(u64::from(arrived), Ordering::Relaxed);
    }

    /// Waits a moment for another thread of the job to end or give up what is scarce.
    pub(super) fn pause(&self) {
        let seen = self.ended.word().load(Ordering::SeqCst);
        self.ended.wait(seen, Some(TICK));
    }

    fn signal(&self) {
        self.ended.word().fetch_add(1, Ordering::SeqCst);
        self.ended.wake(u32::MAX >> 1);
    }
}

/// Bytes in whole blocks.
pub(crate) fn whole_bytes(files: &[FileEntry]) -> u64 {
    files.iter().map(|file| u64::from(file.blocks()) * BLOCK_SIZE as u64).sum()
}

/// Files that one of `shares` threads may have open.
fn open_files_max(shares: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let free = limit.unwrap_or(u64::MAX).saturating_sub(DESCRIPTORS_RESERVED);
    usize::try_from(free / shares as u64).unwrap_or(usize::MAX).max(1)
}
