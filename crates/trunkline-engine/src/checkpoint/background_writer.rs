//! The background writer: keeps clean, unused buffers ready just ahead of the clock's hand.
//!
//! ```text
//!   each round (bgwriter_delay):
//!     taken     buffers that sessions took since the last round, smoothed: up at once, down slowly
//!     wanted    taken × bgwriter_lru_multiplier, at least the pool's 600th part more than there are
//!     scan      from where the last round ended, or from the hand if that has overtaken it: what is
//!               unused and clean counts, what is unused and dirty is written, until as many are
//!               ready as wanted, or bgwriter_lru_maxpages were written
//! ```
//! The rules are PostgreSQL's (`BgBufferSync`; the estimates are in `supply`); what differs is that the
//! writes of a round are in flight together and neighbours are one write. It never waits for a page
//! that somebody uses. When everything has been looked at and nobody takes a buffer it sleeps long, and
//! the first session that takes one wakes it.

use super::supply::{Plan, Supply};
use crate::pool::{Backend, BackendType, Pool, Tag, WriteError, flag};
use crate::settings::Settings;
use crate::write_stream::{WriteOptions, WriteStream};
use std::fmt;
use std::io;
use std::time::Duration;
use trunkline_aio::Canceller;
use trunkline_aio::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, thread};

/// Idle rounds in a row before it sleeps longer, and how much longer (PostgreSQL's).
const IDLE_ROUNDS: u32 = 2;
const LONGER: u32 = 50;

/// When, and how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackgroundWriterSettings {
    /// `bgwriter_delay`: between two rounds.
    pub delay: Duration,
    /// `bgwriter_lru_maxpages`: pages written in a round at most; 0 turns it off.
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

impl BackgroundWriterSettings {
    /// As a user has set them.
    pub fn of(settings: &Settings) -> Self {
        Self {
            delay: settings.bgwriter_delay(),
            max_pages: settings.bgwriter_lru_maxpages(),
            multiplier: settings.bgwriter_lru_multiplier(),
            flush_after: settings.bgwriter_flush_after(),
            combine: settings.io_max_combine_limit(),
            ..Self::default()
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
    /// Buffers that sessions took, not counting those that rings took again (`buffers_alloc`).
    pub buffers_alloc: u64,
    /// Rounds.
    pub rounds: u64,
    /// Rounds in which a write failed; its pages are as dirty as before.
    pub failed_rounds: u64,
}

/// See the module. Dropping it ends the thread.
pub struct BackgroundWriter {
    state: Arc<State>,
    pool: Pool,
    thread: Option<thread::JoinHandle>,
    canceller: Canceller,
}

#[derive(Default)]
struct State {
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
        let (theirs, mine) = (pool.clone(), Arc::clone(&state));
        let body = move || Rounds::new(&theirs, settings).run(&mine, backend);
        let thread = thread::spawn("background writer", body)?;
        Ok(Self { state, pool: pool.clone(), thread: Some(thread), canceller })
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
        self.pool.shared.alarm.ring();
        // A write that hangs with its mount owns what it needs; nobody has to wait for it, unless it is one
        // that the thread makes itself: that ends when the mount answers.
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
    /// Buffers that had been taken at the last round.
    taken: u64,
    supply: Supply,
    idle: u32,
}

/// What a round has found.
struct Scan {
    victims: Vec<(Tag, u32)>,
    looked: u64,
    /// Buffers that can be had, those that are to be written included.
    found: u64,
    /// It ended because as many are to be written as a round may write.
    full: bool,
}

impl Rounds {
    fn new(pool: &Pool, settings: BackgroundWriterSettings) -> Self {
        let taken = pool.shared.taken.load(Ordering::SeqCst);
        Self { pool: pool.clone(), settings, taken, supply: Supply::new(), idle: 0 }
    }

    fn run(&mut self, state: &State, mut backend: Backend) {
        let pool = self.pool.clone();
        let alarm = &pool.shared.alarm;
        loop {
            let seen = alarm.rung();
            if state.stopping.load(Ordering::SeqCst) {
                return;
            }
            let mut delay = self.settings.delay;
            if self.idle >= IDLE_ROUNDS {
                alarm.want();
                if pool.shared.taken.load(Ordering::SeqCst) == self.taken {
                    delay *= LONGER;
                }
            }
            alarm.wait(seen, delay);
            if state.stopping.load(Ordering::SeqCst) {
                return;
            }
            self.round(state, &mut backend);
        }
    }

    fn round(&mut self, state: &State, backend: &mut Backend) {
        let now = self.pool.shared.taken.load(Ordering::SeqCst);
        let taken = now - std::mem::replace(&mut self.taken, now);
        state.rounds.fetch_add(1, Ordering::SeqCst);
        state.alloc.fetch_add(taken, Ordering::SeqCst);
        let idle = match self.settings.max_pages {
            0 => {
                self.supply.forget();
                // Idle only if nobody takes buffers: else every buffer taken would wake it.
                taken == 0
            }
            _ => self.clean(state, backend, taken),
        };
        self.idle = if idle { self.idle.saturating_add(1) } else { 0 };
    }

    /// Looks ahead of the hand and writes what is to be written there. True: everything has been
    /// looked at, and nobody takes buffers.
    fn clean(&mut self, state: &State, backend: &mut Backend, taken: u64) -> bool {
        let shared = &self.pool.shared;
        let (laps, at) = shared.clock.position();
        let hand = laps * u64::from(shared.count()) + u64::from(at);
        let BackgroundWriterSettings { delay, multiplier, .. } = self.settings;
        let millis = (delay.as_secs_f64() * 1e3).max(1.0);
        let plan = self.supply.plan(hand, taken, shared.count(), millis, multiplier);
        let Scan { victims, looked, found, full } = self.scan(plan);
        self.supply.scanned(looked, found);
        if !victims.is_empty() {
            let BackgroundWriterSettings { concurrency, combine, flush_after, .. } = self.settings;
            let options =
                WriteOptions { concurrency, combine, flush_after, ..WriteOptions::default() };
            let mut stream = WriteStream::new(backend, options);
            let failed = self.write(&mut stream, backend, victims).is_err();
            state.failed.fetch_add(u64::from(failed), Ordering::SeqCst);
            state.clean.fetch_add(stream.stats().blocks, Ordering::SeqCst);
        }
        state.max_written.fetch_add(u64::from(full), Ordering::SeqCst);
        plan.lap == 0 && taken == 0
    }

    /// What is to be written so that as many buffers ahead of the hand can be had at once as wanted.
    fn scan(&self, plan: Plan) -> Scan {
        let shared = &self.pool.shared;
        let max = self.settings.max_pages as usize;
        let mut scan = Scan { victims: Vec::new(), looked: 0, found: 0, full: false };
        while scan.looked < plan.lap && plan.ready + scan.found < plan.wanted && !scan.full {
            let buffer = ((plan.first + scan.looked) % u64::from(shared.count())) as u32;
            scan.looked += 1;
            let seen = shared.word(buffer).load();
            if seen.pins() > 0 || seen.usage() > 0 || seen.any(flag::IO_IN_PROGRESS) {
                continue;
            }
            scan.found += 1;
            if seen.has(flag::DIRTY) {
                scan.victims.push((shared.buffers[buffer as usize].tag(), buffer));
                scan.full = scan.victims.len() >= max;
            }
        }
        scan
    }

    fn write(
        &self,
        stream: &mut WriteStream,
        backend: &mut Backend,
        mut victims: Vec<(Tag, u32)>,
    ) -> Result<(), WriteError> {
        victims.sort_unstable_by_key(|(tag, _)| tag.words());
        for (tag, buffer) in victims {
            let Some(storage) = self.pool.shared.storage(tag.cluster()) else { continue };
            let relation = storage.relation(tag.locator(), tag.fork());
            stream.write(backend, &relation, tag.block(), buffer)?;
        }
        stream.finish(backend).map(drop)
    }
}
