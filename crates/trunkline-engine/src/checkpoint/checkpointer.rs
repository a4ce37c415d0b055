//! The checkpointer: one thread that does checkpoints when it is time, and when somebody asks.
//!
//! A timed checkpoint is spread over a part of the time until the next one, so that it disturbs
//! little; a requested one goes as fast as it can, and so does a timed one from the moment that
//! somebody asks. Who asks is told how it ended: a request that comes while a checkpoint runs gets the
//! next one, since the running one may have passed by what the asker has changed.

use super::{
    Cause, CheckpointError, CheckpointEvent, CheckpointOptions, CheckpointReport, checkpoint_with,
};
use crate::pool::{BackendType, Pool};
use crate::settings::Settings;
use crate::write_stream::WriteStats;
use std::fmt;
use std::io;
use std::time::Duration;
use trunkline_aio::clock::{self, Time};
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Futex, Mutex, thread};

const EVERYBODY: u32 = u32::MAX >> 1;

/// The longest nap of a checkpoint that is ahead of its time: what was noticed late costs no more.
const NAP: Duration = Duration::from_millis(100);

/// After a checkpoint that failed the next one is tried so soon (PostgreSQL's).
const AGAIN: Duration = Duration::from_secs(15);

/// When, and how.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointerSettings {
    /// `checkpoint_timeout`: from the beginning of any checkpoint to that of a timed one.
    pub timeout: Duration,
    /// `checkpoint_completion_target`: the part of that time over which its writes are spread.
    pub completion_target: f64,
    /// How to write.
    pub options: CheckpointOptions,
    /// Who is told of the beginning and the end of each checkpoint, also of one that failed
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
    /// As a user has set them.
    pub fn of(settings: &Settings) -> Self {
        Self {
            timeout: settings.checkpoint_timeout(),
            completion_target: settings.checkpoint_completion_target(),
            options: CheckpointOptions::of(settings),
            ..Self::default()
        }
    }
}

impl CheckpointOptions {
    /// As a user has set them. Writes are as large as they may be at all: nobody waits for one page.
    pub fn of(settings: &Settings) -> Self {
        Self {
            combine: settings.io_max_combine_limit(),
            flush_after: settings.checkpoint_flush_after(),
            ..Self::default()
        }
    }
}

/// The counts of `pg_stat_checkpointer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckpointerCounts {
    /// Checkpoints that were begun because it was time.
    pub num_timed: u64,
    /// Checkpoints that were begun because somebody asked.
    pub num_requested: u64,
    /// Checkpoints that came to their end.
    pub num_done: u64,
    /// Checkpoints that failed.
    pub num_failed: u64,
    /// Time spent writing.
    pub write_time: Duration,
    /// Time spent syncing.
    pub sync_time: Duration,
    /// Pages written, also by checkpoints that failed.
    pub buffers_written: u64,
}

/// See the module. Dropping it does a last checkpoint and ends the thread.
pub struct Checkpointer {
    state: Arc<State>,
    thread: Option<thread::JoinHandle>,
}

struct State {
    settings: CheckpointerSettings,
    /// Moves with every request, every end, and the last of all.
    bell: Futex,
    asked: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The number of the last request that the last checkpoint has served.
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
    /// The system refuses another thread, or the instance another session.
    pub fn start(pool: &Pool, settings: CheckpointerSettings) -> io::Result<Self> {
        let state = Arc::new(State {
            settings,
            bell: Futex::new(0),
            asked: AtomicU64::new(0),
            inner: Mutex::default(),
        });
        let backend = pool.backend(BackendType::Checkpointer).map_err(io::Error::other)?;
        let (pool, mine) = (pool.clone(), Arc::clone(&state));
        let thread = thread::spawn("checkpointer", move || mine.run(&pool, backend))?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Does a checkpoint at once, and waits for its end.
    ///
    /// # Errors
    /// Why it did not come to its end.
    pub fn request(&self) -> Result<CheckpointReport, Arc<CheckpointError>> {
        let number = self.state.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.state.ring();
        loop {
            let seen = self.state.bell.word().load(Ordering::SeqCst);
            {
                let inner = self.state.inner.lock();
                if inner.served >= number
                    && let Some(last) = &inner.last
                {
                    return last.clone();
                }
                if inner.stopped {
                    return Err(Arc::new(CheckpointError::Write(
                        crate::pool::WriteError::Cancelled,
                    )));
                }
            }
            self.state.bell.wait(seen, None);
        }
    }

    /// What it has done so far.
    pub fn counts(&self) -> CheckpointerCounts {
        self.state.inner.lock().counts
    }

    /// Does a last checkpoint and ends the thread; how that ended.
    ///
    /// # Errors
    /// Why the last checkpoint did not come to its end: the files are not complete without the log.
    pub fn shut_down(mut self) -> Result<CheckpointReport, Arc<CheckpointError>> {
        let well = self.stop();
        // That of a checkpoint before it is no answer.
        let last = self.state.inner.lock().last.clone().filter(|_| well);
        last.unwrap_or_else(|| {
            Err(Arc::new(CheckpointError::Write(crate::pool::WriteError::Cancelled)))
        })
    }

    /// Ends the thread. False: a bug had ended it before, which it has printed.
    fn stop(&mut self) -> bool {
        self.state.inner.lock().stopping = true;
        self.state.ring();
        self.thread.take().is_none_or(|thread| thread.join().is_ok())
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Says that the thread has ended.
struct Stopped<'a>(&'a State);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().stopped = true;
        self.0.ring();
    }
}

impl State {
    fn ring(&self) {
        self.bell.word().fetch_add(1, Ordering::SeqCst);
        self.bell.wake(EVERYBODY);
    }

    fn run(&self, pool: &Pool, mut backend: crate::pool::Backend) {
        // Also if a bug ends this thread: who waits for a checkpoint must not wait for ever.
        let _stopped = Stopped(self);
        let mut next = clock::now().after(self.settings.timeout);
        loop {
            let seen = self.bell.word().load(Ordering::SeqCst);
            let asked = self.asked.load(Ordering::SeqCst);
            let (served, stopping) = {
                let inner = self.inner.lock();
                (inner.served, inner.stopping)
            };
            let now = clock::now();
            let cause = if stopping {
                Cause::Shutdown
            } else if asked > served {
                Cause::Requested
            } else if now >= next {
                Cause::Timed
            } else {
                self.bell.wait(seen, Some(next.since(now)));
                continue;
            };
            // As PostgreSQL does: what was asked for does as well.
            next = now.after(self.settings.timeout);
            if !self.one(pool, &mut backend, cause, asked) {
                // Not after the whole time: what has failed may have been mended.
                next = next.min(clock::now().after(AGAIN));
            }
            if stopping {
                return;
            }
        }
    }

    fn one(
        &self,
        pool: &Pool,
        backend: &mut crate::pool::Backend,
        cause: Cause,
        asked: u64,
    ) -> bool {
        {
            let counts = &mut self.inner.lock().counts;
            counts.num_timed += u64::from(cause == Cause::Timed);
            counts.num_requested += u64::from(cause == Cause::Requested);
        }
        let tell = |event: CheckpointEvent<'_>| self.settings.log.iter().for_each(|log| log(event));
        tell(CheckpointEvent::Starting(cause));
        let begun = clock::now();
        let options = CheckpointOptions { cause, ..self.settings.options };
        let mut written = WriteStats::default();
        let pace = |done| {
            if cause == Cause::Timed {
                self.nap(begun, done, asked);
            }
        };
        let ended = checkpoint_with(pool, backend, options, pace, &mut written);
        tell(match &ended {
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
        // As PostgreSQL counts: page by page, whatever becomes of the checkpoint.
        inner.counts.buffers_written += written.blocks;
        inner.counts.num_failed += u64::from(!good);
        inner.served = asked;
        inner.last = Some(ended.map_err(Arc::new));
        drop(inner);
        self.ring();
        good
    }

    /// Waits while the checkpoint is ahead of its time, unless somebody has asked for one since.
    fn nap(&self, begun: Time, done: f64, asked: u64) {
        let span = self.settings.timeout.mul_f64(self.settings.completion_target.clamp(0.0, 1.0));
        let due = begun.after(span.mul_f64(done.clamp(0.0, 1.0)));
        loop {
            let seen = self.bell.word().load(Ordering::SeqCst);
            let left = due.since(clock::now());
            let hurry = self.asked.load(Ordering::SeqCst) > asked || self.inner.lock().stopping;
            if left.is_zero() || hurry {
                return;
            }
            self.bell.wait(seen, Some(left.min(NAP)));
        }
    }
}
