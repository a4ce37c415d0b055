//! Executes a work list with **I/O handles**: one session that keeps a window of reads in flight.
//!
//! There is no buffer pool, so this loop is the only code between the work list and the I/O core.
//! It leases frames for each slot, stages reads in batches, and waits until some of them have
//! completed. With a window of one, it measures the latency of a read whose result is needed
//! immediately.

use crate::data::{Data, SEGMENT};
use crate::failure::Result;
use crate::work::{Done, Work};
use std::time::{Duration, Instant};
use trunkline_aio::{
    Aio, Builder, Class, Counters, File, MethodKind, MethodStatus, OpenOptions, Operation, Outcome,
    Session, Slots, Status, WorkerSettings,
};
use trunkline_format::BLOCK_SIZE;

/// I/O method, window and other parameters of one contender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) method: MethodKind,
    pub(crate) direct: bool,
    /// Maximum number of reads in flight.
    pub(crate) window: usize,
    /// Number of slots that must be free before the session issues more reads. If we wait until
    /// several slots are free, one wake-up can serve several completions.
    pub(crate) refill: usize,
    /// Size of the largest read in bytes.
    pub(crate) length: u32,
    /// Maximum number of I/O workers.
    pub(crate) workers: usize,
    /// Does the session try `RWF_NOWAIT` itself before it hands a buffered read to the I/O method?
    pub(crate) look_first: bool,
}

impl Setup {
    /// Defaults: refill when half of the window is free, and use no more workers than PostgreSQL
    /// does by default.
    pub(crate) fn new(method: MethodKind, direct: bool, window: usize, length: u32) -> Self {
        let refill = window.div_ceil(2);
        Self { method, direct, window, refill, length, workers: 8, look_first: true }
    }

    /// An instance with these parameters, not yet started.
    pub(crate) fn builder(&self) -> Builder {
        let workers = WorkerSettings {
            max: self.workers,
            launch_interval: Duration::ZERO,
            ..WorkerSettings::default()
        };
        let builder = Builder::new().method(self.method).workers(workers);
        if self.look_first { builder } else { builder.try_cached_below(0) }
    }

    /// Starts an instance with enough memory for one window of reads.
    pub(crate) fn start(&self) -> Result<Aio> {
        let aio = self.builder().region_bytes(self.window * self.length as usize).start()?;
        warn_of_fallback(&aio.method_status(), self.method);
        Ok(aio)
    }
}

/// Prints why another I/O method serves than the one we asked for. Its numbers would be misleading.
pub(crate) fn warn_of_fallback(status: &MethodStatus, wanted: MethodKind) {
    if status.used != wanted {
        eprintln!("{} serves instead of {wanted}: {:?}", status.used, status.fallbacks);
    }
}

/// A session, its window of reads, its open files and its instance.
pub(crate) struct Handles {
    // Fields are dropped in declaration order. The session must come first, because dropping it
    // submits any staged I/Os, which still use the slots and the files.
    session: Session,
    operations: Slots,
    free: Vec<usize>,
    files: Vec<File>,
    setup: Setup,
    aio: Aio,
}

impl Handles {
    /// Starts an instance and opens the data with it.
    pub(crate) fn open(data: &Data, setup: Setup) -> Result<Self> {
        let aio = setup.start()?;
        let options = OpenOptions { direct: setup.direct, ..OpenOptions::default() };
        let files = data.paths.iter().map(|path| aio.open(path, options));
        let files = files.collect::<std::io::Result<_>>()?;
        let mut operations = Slots::new(setup.window);
        let frames = setup.length.div_ceil(BLOCK_SIZE as u32);
        for slot in 0..setup.window {
            let memory = operations.memory(slot).ok_or("a new slot is busy")?;
            memory.push(aio.region().lease(frames).ok_or("the region is too small")?);
        }
        let free = (0..setup.window).rev().collect();
        Ok(Self { session: aio.session()?, operations, free, files, setup, aio })
    }

    /// Kind of memory pages that back the region, for the report. Huge pages matter: see decision
    /// 0001.
    pub(crate) fn page_kind(&self) -> &'static str {
        self.aio.region().page_kind().name()
    }

    /// Executes all reads of the work list.
    pub(crate) fn run(&mut self, work: &Work) -> Result<Done> {
        let before = self.aio.counters();
        let started = Instant::now();
        if self.setup.window == 1 {
            self.one_by_one(work)?;
        } else {
            self.windowed(work)?;
        }
        let elapsed = started.elapsed();
        Ok(flight(Done::of(work), &before, &self.aio.counters(), elapsed))
    }

    fn one_by_one(&mut self, work: &Work) -> Result<()> {
        for &offset in &work.offsets {
            let io = self.session.acquire(Class::Foreground)?.needed_now();
            let file = &self.files[segment(offset)];
            io.read(file, offset % SEGMENT, work.length, &mut self.operations, 0)?;
            let outcome = self.session.wait(&mut self.operations, 0)?;
            check(&self.operations, outcome, work.length)?;
        }
        Ok(())
    }

    fn windowed(&mut self, work: &Work) -> Result<()> {
        let mut offsets = work.offsets.iter();
        // With `sync`, there are never any reads in flight. For buffered reads, we issue
        // posix_fadvise instead, so that the kernel reads ahead. We take the offsets for those
        // calls from `ahead`.
        let mut ahead = offsets.clone();
        let advised = self.setup.method == MethodKind::Sync && !self.setup.direct;
        if advised {
            for &offset in ahead.by_ref().take(self.setup.window - 1) {
                let file = &self.files[segment(offset)];
                self.session.advise(file, offset % SEGMENT, u64::from(work.length));
            }
        }
        loop {
            let refill = self.free.len() >= self.setup.refill || self.operations.pending() == 0;
            if refill && offsets.len() > 0 {
                let mut batch = self.session.batch();
                // With posix_fadvise, issue only one read at a time, because otherwise the kernel
                // would read ahead further than the window allows.
                let keep = if advised { self.free.len() - 1 } else { 0 };
                while self.free.len() > keep
                    && let Some(&offset) = offsets.next()
                    && let Some(slot) = self.free.pop()
                {
                    if advised && let Some(&next) = ahead.next() {
                        let file = &self.files[segment(next)];
                        batch.advise(file, next % SEGMENT, u64::from(work.length));
                    }
                    let file = &self.files[segment(offset)];
                    let io = batch.acquire(Class::Maintenance)?;
                    io.read(file, offset % SEGMENT, work.length, &mut self.operations, slot)?;
                }
            }
            if self.operations.pending() == 0 {
                return Ok(());
            }
            // Wait until `refill` slots are free. Waking up earlier would be useless, as the
            // session wouldn't issue reads yet.
            let missing = self.setup.refill.saturating_sub(self.free.len()).max(1);
            self.session.wait_some(&self.operations, missing)?;
            while let Some(slot) = self.operations.first_done()
                && let Some(outcome) = self.operations.take(slot)
            {
                self.free.push(slot);
                check(&self.operations, outcome, work.length)?;
            }
        }
    }
}

/// Index of the file that contains this offset of the data.
fn segment(offset: u64) -> usize {
    (offset / SEGMENT) as usize
}

fn check(operations: &Slots, outcome: Outcome, length: u32) -> Result<()> {
    if outcome.status != Status::Ok || outcome.count != length {
        return Err(operations.describe(outcome).into());
    }
    Ok(())
}

/// Adds the mean number of reads in flight to `done`, computed from two snapshots of the counters.
pub(crate) fn flight(done: Done, before: &Counters, after: &Counters, elapsed: Duration) -> Done {
    let samples = after.in_flight_samples - before.in_flight_samples;
    let sum = after.in_flight_sum - before.in_flight_sum;
    let (old, new) = (before.operation(Operation::Readv), after.operation(Operation::Readv));
    let device = new.device_time.saturating_sub(old.device_time);
    Done {
        in_flight: Some(sum as f64 / samples.max(1) as f64),
        at_storage: Some(device.as_secs_f64() / elapsed.as_secs_f64()),
        ..done
    }
}
