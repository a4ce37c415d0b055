//! Checkpointer: the thread that runs timed and requested checkpoints.
//!
//! A timed checkpoint is spread over part of the interval until the next timed checkpoint, so that
//! it disturbs other work as little as possible. A requested checkpoint runs as fast as possible,
//! and a request also makes a timed checkpoint hurry up if one is already running. Note that a
//! request that arrives during a checkpoint has to be served by the next checkpoint, because the
//! running checkpoint may have begun before the requester made its changes. PostgreSQL uses the
//! counters `ckpt_started` and `ckpt_done` in `CheckpointerShmem` for the same purpose.
//!
//! The thread and its requesters synchronise through a single latch, a futex whose value is an
//! event counter. Every waiter first reads the counter, then tests its condition, and then sleeps
//! only if the counter hasn't changed. This way, an event that happens between the test and the
//! sleep isn't lost.

use super::error::CheckpointError;
use super::report::{Cause, CheckpointEvent, CheckpointReport};
use super::run::{CheckpointOptions, checkpoint_with};
use crate::pool::{Backend, BackendType, Pool, WriteError};
use crate::settings::Settings;
use crate::write_stream::WriteStats;
use std::fmt;
use std::io;
use std::time::Duration;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Futex, Mutex, thread};

/// Longest time a checkpoint sleeps when it is ahead of schedule (PostgreSQL's
/// `CheckpointWriteDelay`).
const NAP: Duration = Duration::from_millis(100);

/// How long we wait before retrying a failed checkpoint. The cause of the failure, such as a full
/// disk, may have been fixed by then. If we waited for a whole `checkpoint_timeout` instead, too
/// much WAL could pile up.
const RETRY_AFTER: Duration = Duration::from_secs(15);

/// Settings of the checkpointer.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointerSettings {
    /// `checkpoint_timeout`: the time between the start of any checkpoint and the start of the next
    /// timed one.
    pub timeout: Duration,
    /// `checkpoint_completion_target`: fraction of that time over which the writes are spread.
    pub completion_target: f64,
    /// Options of each checkpoint.
    pub options: CheckpointOptions,
    /// Called at the start and at the end of each checkpoint, even if the checkpoint failed
    /// (`log_checkpoints`).
    pub log: Option<fn(CheckpointEvent<'_>)>,
}

impl Default for CheckpointerSettings {
    /// PostgreSQL's defaults.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            completion_target: 0.9,
            options: CheckpointOptions::default(),
            log: None,
        }
    }
}

impl CheckpointerSettings {
    /// From the settings.
    pub fn of(settings: &Settings) -> Self {
        Self {
            timeout: settings.checkpoint_timeout(),
            completion_target: settings.checkpoint_completion_target(),
            options: CheckpointOptions::of(settings),
            ..Self::default()
        }
    }
}

/// The counts of `pg_stat_checkpointer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointerCounts {
    /// Timed checkpoints.
    pub num_timed: u64,
    /// Requested checkpoints.
    pub num_requested: u64,
    /// Checkpoints that succeeded.
    pub num_done: u64,
    /// Checkpoints that failed.
    pub num_failed: u64,
    /// Time spent writing.
    pub write_time: Duration,
    /// Time spent in fsync.
    pub sync_time: Duration,
    /// Pages written, including those of failed checkpoints.
    pub buffers_written: u64,
}

/// The checkpointer thread. When it is dropped, it performs a shutdown checkpoint and then exits.
pub struct Checkpointer {
    shared: Arc<Requests>,
    thread: Option<thread::JoinHandle>,
}

/// What the thread shares with the sessions that request checkpoints.
struct Requests {
    settings: CheckpointerSettings,
    /// Incremented by every request, at the end of every checkpoint, and when the thread exits.
    latch: Futex,
    /// Number of requests so far.
    requested: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Number of the last request that a checkpoint has served.
    served: u64,
    last: Option<Result<CheckpointReport, Arc<CheckpointError>>>,
    counts: CheckpointerCounts,
    stopping: bool,
    stopped: bool,
}

impl fmt::Debug for Checkpointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checkpointer({:?})", self.counts())
    }
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel can't create another thread, or all sessions of the instance are in use.
    pub fn start(pool: &Pool, settings: CheckpointerSettings) -> io::Result<Self> {
        let shared = Arc::new(Requests {
            settings,
            latch: Futex::new(0),
            requested: AtomicU64::new(0),
            inner: Mutex::default(),
        });
        let backend = pool.backend(BackendType::Checkpointer).map_err(io::Error::other)?;
        let (pool, mine) = (pool.clone(), Arc::clone(&shared));
        let thread = thread::spawn("checkpointer", move || mine.run(&pool, backend))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Requests a fast checkpoint, and waits until it has ended.
    ///
    /// # Errors
    /// The error that made the checkpoint fail. All sessions that requested the same checkpoint get
    /// the same error.
    pub fn request(&self) -> Result<CheckpointReport, Arc<CheckpointError>> {
        let number = self.shared.requested.fetch_add(1, Ordering::SeqCst) + 1;
        self.shared.latch.signal();
        loop {
            let epoch = self.shared.latch.epoch();
            {
                let inner = self.shared.inner.lock();
                if inner.served >= number
                    && let Some(last) = &inner.last
                {
                    return last.clone();
                }
                if inner.stopped {
                    return Err(Arc::new(CheckpointError::Write(WriteError::Cancelled)));
                }
            }
            self.shared.latch.wait(epoch, None);
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> CheckpointerCounts {
        self.shared.inner.lock().counts
    }

    /// Runs a shutdown checkpoint, ends the thread, and returns the result.
    ///
    /// # Errors
    /// The error that made the shutdown checkpoint fail. If there is one, the data files alone are
    /// incomplete, and any changes made since the last completed checkpoint must be recovered from
    /// the log.
    pub fn shut_down(mut self) -> Result<CheckpointReport, Arc<CheckpointError>> {
        let well = self.stop();
        // If the thread has panicked, the last result we have is that of an earlier checkpoint.
        let last = self.shared.inner.lock().last.clone().filter(|_| well);
        last.unwrap_or_else(|| Err(Arc::new(CheckpointError::Write(WriteError::Cancelled))))
    }

    /// Ends the thread. Returns false if the thread panicked, in which case it has already printed
    /// the panic message.
    fn stop(&mut self) -> bool {
        self.shared.inner.lock().stopping = true;
        self.shared.latch.signal();
        self.thread.take().is_none_or(|thread| thread.join().is_ok())
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Records the end of the thread when it is dropped.
struct Stopped<'a>(&'a Requests);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().stopped = true;
        self.0.latch.signal();
    }
}

impl Requests {
    fn run(&self, pool: &Pool, mut backend: Backend) {
        // If this thread panics, any session that is waiting for a checkpoint must still wake up
        // and get an error.
        let _stopped = Stopped(self);
        let mut next = clock::now().after(self.settings.timeout);
        loop {
            let epoch = self.latch.epoch();
            let requested = self.requested.load(Ordering::SeqCst);
            let (served, stopping) = {
                let inner = self.inner.lock();
                (inner.served, inner.stopping)
            };
            let now = clock::now();
            let cause = if stopping {
                Cause::Shutdown
            } else if requested > served {
                Cause::Requested
            } else if now >= next {
                Cause::Timed
            } else {
                self.latch.wait(epoch, Some(next.since(now)));
                continue;
            };
            // As in PostgreSQL, a requested checkpoint postpones the next timed one.
            next = now.after(self.settings.timeout);
            if !self.run_one(pool, &mut backend, cause, requested) {
                // The cause of the failure may go away soon, so don't wait for the next timed
                // checkpoint before retrying.
                next = next.min(clock::now().after(RETRY_AFTER));
            }
            if stopping {
                return;
            }
        }
    }

    /// Runs one checkpoint that serves all requests up to number `requested`. The caller read that
    /// number before calling us, so all of these requesters made their changes before the
    /// checkpoint marks the dirty pages.
    fn run_one(&self, pool: &Pool, backend: &mut Backend, cause: Cause, requested: u64) -> bool {
        {
            let counts = &mut self.inner.lock().counts;
            counts.num_timed += u64::from(cause == Cause::Timed);
            counts.num_requested += u64::from(cause == Cause::Requested);
        }
        let log =
            |event: CheckpointEvent<'_>| self.settings.log.iter().for_each(|call| call(event));
        log(CheckpointEvent::Starting(cause));
        let begun = clock::now();
        let options = CheckpointOptions { cause, ..self.settings.options };
        let mut written = WriteStats::default();
        let pace = |done| {
            if cause == Cause::Timed {
                self.nap(begun, done, requested);
            }
        };
        let ended = checkpoint_with(pool, backend, options, pace, &mut written);
        log(match &ended {
            Ok(report) => CheckpointEvent::Complete(report),
            Err(error) => CheckpointEvent::Failed(error),
        });
        let good = ended.is_ok();
        let mut inner = self.inner.lock();
        if let Ok(report) = &ended {
            inner.counts.num_done += 1;
            inner.counts.write_time += report.write_time;
            inner.counts.sync_time += report.sync_time;
        }
        // As in PostgreSQL, pages count even if the checkpoint fails.
        inner.counts.buffers_written += written.blocks;
        inner.counts.num_failed += u64::from(!good);
        inner.served = requested;
        inner.last = Some(ended.map_err(Arc::new));
        drop(inner);
        self.latch.signal();
        good
    }

    /// If a timed checkpoint is ahead of schedule, sleeps until it no longer is (PostgreSQL's
    /// `CheckpointWriteDelay` and `IsCheckpointOnSchedule`). Returns immediately if another
    /// checkpoint has been requested in the meantime, or if we're shutting down.
    fn nap(&self, begun: Time, done: f64, requested: u64) {
        let span = self.settings.timeout.mul_f64(self.settings.completion_target.clamp(0.0, 1.0));
        let due = begun.after(span.mul_f64(done.clamp(0.0, 1.0)));
        loop {
            let epoch = self.latch.epoch();
            let left = due.since(clock::now());
            let hurry =
                self.requested.load(Ordering::SeqCst) > requested || self.inner.lock().stopping;
            if left.is_zero() || hurry {
                return;
            }
            self.latch.wait(epoch, Some(left.min(NAP)));
        }
    }
}
