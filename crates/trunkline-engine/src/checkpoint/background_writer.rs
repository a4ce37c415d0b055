//! Background writer: keeps clean, unused buffers available ahead of the clock hand, so that
//! sessions don't have to flush a victim before they can read a page.
//!
//! ```text
//!   each round (bgwriter_delay):
//!     allocated  buffers that sessions took since the last round, smoothed: up quickly, down slowly
//!     wanted     allocated × bgwriter_lru_multiplier, at least a 600th of the pool more than now
//!     scan       from the end of the last scan, or from the hand if that has overtaken it: unused clean
//!                buffers count, unused dirty ones are written, until there are as many as wanted or
//!                bgwriter_lru_maxpages were written
//! ```
//!
//! The algorithm is the same as PostgreSQL's `BgBufferSync`; the estimates are computed in
//! `supply`. Unlike PostgreSQL, we keep all of a round's writes in flight concurrently, combine
//! neighbouring pages into one write, and skip pages that are locked. If the whole pool has been
//! scanned and no buffers were allocated for a few rounds, the thread hibernates until the next
//! allocation.

use super::supply::{Plan, Supply};
use crate::pool::{Backend, BackendType, BufferTag, Pool, WriteError, flag};
use crate::settings::Settings;
use crate::write_stream::{WriteOptions, WriteStream};
use std::fmt;
use std::io;
use std::time::Duration;
use trunkline_aio::Canceller;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::facade::{Arc, Mutex, thread};

/// The background writer hibernates after this many idle rounds. Its delay is then multiplied by
/// PostgreSQL's `HIBERNATE_FACTOR`.
const IDLE_ROUNDS: u32 = 2;
const HIBERNATE_FACTOR: u32 = 50;

/// Settings of the background writer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackgroundWriterSettings {
    /// `bgwriter_delay`: time between two rounds.
    pub delay: Duration,
    /// `bgwriter_lru_maxpages`: maximum number of pages to write per round. 0 disables the
    /// background writer.
    pub max_pages: u32,
    /// `bgwriter_lru_multiplier`.
    pub multiplier: f64,
    /// `bgwriter_flush_after`, in blocks; 0 leaves writeback to the kernel.
    pub flush_after: u32,
    /// Maximum number of writes in flight.
    pub concurrency: u32,
    /// Maximum number of blocks in one write (`io_max_combine_limit`).
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
    /// From the settings.
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
    /// Rounds that stopped at `bgwriter_lru_maxpages` (`maxwritten_clean`).
    pub maxwritten_clean: u64,
    /// Buffers allocated by sessions, without reuse in rings (`buffers_alloc`).
    pub buffers_alloc: u64,
    /// Number of rounds.
    pub rounds: u64,
    /// Rounds in which a write failed. Its pages are still dirty.
    pub failed_rounds: u64,
}

/// The background writer thread. Dropping it ends the thread.
pub struct BackgroundWriter {
    shared: Arc<Shared>,
    pool: Pool,
    thread: Option<thread::JoinHandle>,
    canceller: Canceller,
}

/// What the thread shares with its owner.
#[derive(Default)]
struct Shared {
    stopping: AtomicBool,
    counts: Mutex<BackgroundWriterCounts>,
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
    /// The kernel can't create another thread, or all sessions of the instance are in use.
    pub fn start(pool: &Pool, settings: BackgroundWriterSettings) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut backend = pool.backend(BackendType::BackgroundWriter).map_err(io::Error::other)?;
        let canceller = backend.session().canceller();
        let (theirs, mine) = (pool.clone(), Arc::clone(&shared));
        let body = move || Rounds::new(&theirs, settings).run(&mine, backend);
        let thread = thread::spawn("background writer", body)?;
        Ok(Self { shared, pool: pool.clone(), thread: Some(thread), canceller })
    }

    /// The counts so far.
    pub fn counts(&self) -> BackgroundWriterCounts {
        *self.shared.counts.lock()
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.pool.manager().replacement().allocations().set_latch();
        // The thread doesn't have to wait for a write to a hung mount, because the write holds its
        // own pins and locks. But if the thread is executing the write itself, we must wait here
        // until the mount responds.
        self.canceller.cancel();
        if let Some(thread) = self.thread.take() {
            // The thread itself has already printed its panic.
            let _ = thread.join();
        }
    }
}

/// The thread's state from round to round.
struct Rounds {
    pool: Pool,
    settings: BackgroundWriterSettings,
    /// Allocations at the time of the last round.
    allocated: u64,
    supply: Supply,
    idle: u32,
}

/// Result of a scan.
struct Scan {
    victims: Vec<(BufferTag, u32)>,
    scanned: u64,
    /// Reusable buffers, including the victims.
    reusable: u64,
    /// The scan stopped at `bgwriter_lru_maxpages`.
    full: bool,
}

impl Rounds {
    fn new(pool: &Pool, settings: BackgroundWriterSettings) -> Self {
        let allocated = pool.manager().replacement().allocations().count();
        Self { pool: pool.clone(), settings, allocated, supply: Supply::new(), idle: 0 }
    }

    fn run(&mut self, shared: &Shared, mut backend: Backend) {
        let pool = self.pool.clone();
        let allocations = pool.manager().replacement().allocations();
        loop {
            let epoch = allocations.latch_epoch();
            if shared.stopping.load(Ordering::SeqCst) {
                return;
            }
            let mut delay = self.settings.delay;
            if self.idle >= IDLE_ROUNDS {
                // Hibernate until the next allocation sets the latch. We must arm the latch before
                // testing the count, so that we don't miss an allocation that happens in between.
                allocations.arm();
                if allocations.count() == self.allocated {
                    delay *= HIBERNATE_FACTOR;
                }
            }
            allocations.wait(epoch, delay);
            if shared.stopping.load(Ordering::SeqCst) {
                return;
            }
            self.round(&shared.counts, &mut backend);
        }
    }

    fn round(&mut self, counts: &Mutex<BackgroundWriterCounts>, backend: &mut Backend) {
        let now = self.pool.manager().replacement().allocations().count();
        let allocated = now - std::mem::replace(&mut self.allocated, now);
        {
            let mut counts = counts.lock();
            counts.rounds += 1;
            counts.buffers_alloc += allocated;
        }
        let idle = match self.settings.max_pages {
            0 => {
                self.supply.forget();
                // If buffers are still being allocated, return false. There would be no point in
                // hibernating, because the very next allocation would wake the thread up again.
                allocated == 0
            }
            _ => self.clean(counts, backend, allocated),
        };
        self.idle = if idle { self.idle.saturating_add(1) } else { 0 };
    }

    /// Scans the buffers ahead of the clock hand and writes out the dirty ones. Returns true if the
    /// whole pool has been scanned and no buffers have been allocated since the last round.
    fn clean(
        &mut self,
        counts: &Mutex<BackgroundWriterCounts>,
        backend: &mut Backend,
        allocated: u64,
    ) -> bool {
        let hand = self.pool.manager().replacement().clock().passed();
        let BackgroundWriterSettings { delay, multiplier, .. } = self.settings;
        let millis = (delay.as_secs_f64() * 1e3).max(1.0);
        let plan = self.supply.plan(hand, allocated, self.pool.buffers(), millis, multiplier);
        let Scan { victims, scanned, reusable, full } = self.scan(plan);
        self.supply.scanned(scanned, reusable);
        if !victims.is_empty() {
            let BackgroundWriterSettings { concurrency, combine, flush_after, .. } = self.settings;
            let options =
                WriteOptions { concurrency, combine, flush_after, ..WriteOptions::default() };
            let mut stream = WriteStream::new(backend, options);
            let failed = self.write(&mut stream, backend, victims).is_err();
            let mut counts = counts.lock();
            counts.failed_rounds += u64::from(failed);
            counts.buffers_clean += stream.stats().blocks;
        }
        counts.lock().maxwritten_clean += u64::from(full);
        plan.lap == 0 && allocated == 0
    }

    /// Scans buffers until we have found as many reusable ones as we want, and lists the dirty
    /// buffers among them. The scan doesn't pin buffers and doesn't lower usage counts, because
    /// ageing pages is the clock sweep's job. A listed page may therefore be evicted before we get
    /// to write it, so the write rechecks its tag.
    fn scan(&self, plan: Plan) -> Scan {
        let buffers = self.pool.manager().buffers();
        let max = self.settings.max_pages as usize;
        let mut scan = Scan { victims: Vec::new(), scanned: 0, reusable: 0, full: false };
        while scan.scanned < plan.lap && plan.ready + scan.reusable < plan.wanted && !scan.full {
            let buffer = ((plan.first + scan.scanned) % u64::from(buffers.count())) as u32;
            scan.scanned += 1;
            let state = buffers.state(buffer);
            if state.pins() > 0 || state.usage() > 0 || state.has(flag::IO_IN_PROGRESS) {
                continue;
            }
            scan.reusable += 1;
            if state.has(flag::DIRTY) {
                scan.victims.push((buffers.tag(buffer), buffer));
                scan.full = scan.victims.len() >= max;
            }
        }
        scan
    }

    fn write(
        &self,
        stream: &mut WriteStream,
        backend: &mut Backend,
        mut victims: Vec<(BufferTag, u32)>,
    ) -> Result<(), WriteError> {
        victims.sort_unstable_by_key(|(tag, _)| tag.words());
        for (tag, buffer) in victims {
            let Some(relation) = self.pool.manager().clusters().relation(tag) else { continue };
            stream.write(backend, &relation, tag.block(), buffer)?;
        }
        stream.finish(backend).map(drop)
    }
}
