//! The background writer: keeps clean, unused buffers ready just ahead of the clock's hand.
//!
//! ```text
//!   each round (bgwriter_delay):
//!     taken     buffers that sessions took since the last round, smoothed: up at once, down slowly
//!     wanted    taken × bgwriter_lru_multiplier, at least the pool's 600th part
//!     scan      from the hand on: what is unused and clean counts, what is unused and dirty is
//!               written, until as many are ready as wanted, or bgwriter_lru_maxpages were written
//! ```
//! The rules are PostgreSQL's (`BgBufferSync`); what differs is that the writes of a round are in
//! flight together and neighbours are one write. It never waits for a page that somebody uses.

use crate::pool::{Backend, BackendType, Pool, Tag, flag};
use crate::write_stream::{WriteOptions, WriteStats, WriteStream};
use std::fmt;
use std::io;
use std::time::Duration;
use trunkline_aio::Canceller;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Futex, thread};

/// Rounds over which the rate of taking is smoothed (PostgreSQL's).
const SMOOTHING: f64 = 16.0;

/// A round wants at least so small a part of the pool to be ready: all of it in two minutes at the
/// default delay (PostgreSQL's).
const LEAST_PART: u32 = 600;

/// Rounds in a row without anything to do before it sleeps longer, and how much longer.
const IDLE_ROUNDS: u32 = 5;
const LONGER: u32 = 50;

/// When, and how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackgroundWriterSettings {
    /// `bgwriter_delay`: between two rounds.
    pub delay: Duration,
    /// `bgwriter_lru_maxpages`: pages written in a round at most; 0 writes none.
    pub max_pages: u32,
    /// `bgwriter_lru_multiplier`.
    pub multiplier: f64,
    /// `bgwriter_flush_after`, in blocks; 0 leaves write-back to the system.
    pub flush_after: u32,
    /// Writes in flight at most.
    pub concurrency: u32,
    /// Blocks of one write at most (`io_max_combine_limit`).
    pub combine: u32,
}

impl Default for BackgroundWriterSettings {
    /// PostgreSQL's defaults.
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(200),
            max_pages: 100,
            multiplier: 2.0,
            flush_after: 64,
            concurrency: 16,
            combine: 16,
        }
    }
}

/// The counts of `pg_stat_bgwriter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackgroundWriterCounts {
    /// Pages written (`buffers_clean`).
    pub buffers_clean: u64,
    /// Rounds that ended at `bgwriter_lru_maxpages` (`maxwritten_clean`).
    pub maxwritten_clean: u64,
    /// Buffers that sessions took (`buffers_alloc`).
    pub buffers_alloc: u64,
    /// Rounds.
    pub rounds: u64,
    /// Rounds in which a write failed; its pages are as dirty as before.
    pub failed_rounds: u64,
}

/// See the module. Dropping it ends the thread.
pub struct BackgroundWriter {
    state: Arc<State>,
    thread: Option<thread::JoinHandle>,
    canceller: Canceller,
}

#[derive(Default)]
struct State {
    bell: Futex,
    stopping: AtomicBool,
    clean: AtomicU64,
    max_written: AtomicU64,
    alloc: AtomicU64,
    rounds: AtomicU64,
    failed: AtomicU64,
}

impl fmt::Debug for BackgroundWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackgroundWriter({:?})", self.counts())
    }
}

impl BackgroundWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses another thread, or the instance another session.
    pub fn start(pool: &Pool, settings: BackgroundWriterSettings) -> io::Result<Self> {
        let state = Arc::new(State::default());
        let mut backend = pool.backend(BackendType::BackgroundWriter).map_err(io::Error::other)?;
        let canceller = backend.session().canceller();
        let (pool, mine) = (pool.clone(), Arc::clone(&state));
        let body = move || Rounds::new(&pool, settings).run(&mine, backend);
        let thread = thread::spawn("background writer", body)?;
        Ok(Self { state, thread: Some(thread), canceller })
    }

    /// What it has done so far.
    pub fn counts(&self) -> BackgroundWriterCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        BackgroundWriterCounts {
            buffers_clean: get(&self.state.clean),
            maxwritten_clean: get(&self.state.max_written),
            buffers_alloc: get(&self.state.alloc),
            rounds: get(&self.state.rounds),
            failed_rounds: get(&self.state.failed),
        }
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::SeqCst);
        self.state.bell.word().fetch_add(1, Ordering::SeqCst);
        self.state.bell.wake(u32::MAX >> 1);
        // A write that hangs with its mount owns what it needs; nobody has to wait for it.
        self.canceller.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic there was printed by its own thread.
            let _ = thread.join();
        }
    }
}

/// What is kept from round to round.
struct Rounds {
    pool: Pool,
    settings: BackgroundWriterSettings,
    taken: u64,
    smoothed: f64,
    idle: u32,
}

/// One look ahead of the hand.
struct Scan {
    victims: Vec<(Tag, u32)>,
    full: bool,
}

impl Rounds {
    fn new(pool: &Pool, settings: BackgroundWriterSettings) -> Self {
        let taken = pool.shared.taken.load(Ordering::Relaxed);
        Self { pool: pool.clone(), settings, taken, smoothed: 0.0, idle: 0 }
    }

    fn run(&mut self, state: &State, mut backend: Backend) {
        loop {
            let seen = state.bell.word().load(Ordering::SeqCst);
            if state.stopping.load(Ordering::SeqCst) {
                return;
            }
            let longer = if self.idle >= IDLE_ROUNDS { LONGER } else { 1 };
            state.bell.wait(seen, Some(self.settings.delay * longer));
            if state.stopping.load(Ordering::SeqCst) {
                return;
            }
            self.round(state, &mut backend);
        }
    }

    fn round(&mut self, state: &State, backend: &mut Backend) {
        let now = self.pool.shared.taken.load(Ordering::Relaxed);
        let taken = now - self.taken;
        self.taken = now;
        self.smoothed = match taken as f64 {
            more if more >= self.smoothed => more,
            less => self.smoothed + (less - self.smoothed) / SMOOTHING,
        };
        let wanted = (self.smoothed * self.settings.multiplier) as u32;
        let wanted = wanted.max(self.pool.buffers() / LEAST_PART).min(self.pool.buffers());
        let Scan { victims, full } = self.scan(wanted);
        let result = self.write(backend, victims);
        state.rounds.fetch_add(1, Ordering::SeqCst);
        state.alloc.fetch_add(taken, Ordering::SeqCst);
        let blocks = match result {
            Ok(stats) => stats.blocks,
            Err(_) => {
                state.failed.fetch_add(1, Ordering::SeqCst);
                0
            }
        };
        state.clean.fetch_add(blocks, Ordering::SeqCst);
        state.max_written.fetch_add(u64::from(full), Ordering::SeqCst);
        self.idle = if taken == 0 && blocks == 0 { self.idle.saturating_add(1) } else { 0 };
    }

    /// What is to be written so that `wanted` buffers ahead of the hand can be had at once.
    fn scan(&self, wanted: u32) -> Scan {
        let shared = &self.pool.shared;
        let (_, hand) = shared.clock.position();
        let count = shared.count();
        let (mut ready, mut victims) = (0, Vec::new());
        let max = self.settings.max_pages as usize;
        for offset in 0..count {
            if ready >= wanted || victims.len() >= max {
                break;
            }
            let buffer = (hand + offset) % count;
            let seen = shared.word(buffer).load();
            if seen.pins() > 0 || seen.usage() > 0 || seen.any(flag::IO_IN_PROGRESS) {
                continue;
            }
            ready += 1;
            if seen.has(flag::DIRTY) {
                victims.push((shared.buffers[buffer as usize].tag(), buffer));
            }
        }
        Scan { full: ready < wanted && victims.len() >= max, victims }
    }

    fn write(
        &self,
        backend: &mut Backend,
        mut victims: Vec<(Tag, u32)>,
    ) -> Result<WriteStats, crate::pool::WriteError> {
        if victims.is_empty() {
            return Ok(WriteStats::default());
        }
        victims.sort_unstable_by_key(|(tag, _)| tag.words());
        let BackgroundWriterSettings { concurrency, combine, flush_after, .. } = self.settings;
        let options = WriteOptions { concurrency, combine, flush_after, ..WriteOptions::default() };
        let mut stream = WriteStream::new(backend, options);
        for (tag, buffer) in victims {
            let Some(storage) = self.pool.shared.storage(tag.cluster()) else { continue };
            let relation = storage.relation(tag.locator(), tag.fork());
            stream.write(backend, &relation, tag.block(), buffer)?;
        }
        stream.finish(backend)
    }
}
