//! The dispatcher: chooses how a staged I/O reaches the storage.
//!
//! Normally we pass the I/O to the current method. In three cases we take a shortcut, which avoids
//! passing the I/O to another thread:
//! - An I/O the session needs immediately is executed inline, if nothing else is in flight.
//! - A buffered read is executed inline if its data is in the page cache.
//! - A buffered write is executed inline if its mount accepts writes quickly (`write_latency`).
//!
//! Unlike PostgreSQL's `io_method`, the method can be switched at run time. An I/O stays with the
//! method it was submitted through, so switching affects only I/O that is submitted later. The
//! threads of a method that is no longer active remain idle until shutdown.
//!
//! If the requested method is unavailable, the dispatcher falls back to the next best one and
//! records the reason. The order is io_uring, io_uring without registered memory, worker, sync. In
//! the same situation, PostgreSQL would refuse to start.

use crate::clock;
use crate::completion::in_flight::{InFlight, Submitted};
use crate::facade::Mutex;
use crate::limits::{INLINE_WRITE_MAX, TRY_CACHED_BELOW};
use crate::lock_free::state::State;
use crate::lock_free::wait_ref::WaitRef;
use crate::method::fallback::{Fallback, Feature};
use crate::method::in_force::MethodInForce;
use crate::method::inline::Inline;
use crate::method::ring::{UringFeatures, UringSettings};
use crate::method::uring::Uring;
use crate::method::worker::{self, Workers};
use crate::method::{Batch, Method};
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::tables::completer::Completer;
use crate::tables::method_kind::MethodKind;
use crate::tables::statistics::{Counter, GeneralCells};
use std::fmt;
use std::sync::Arc;

/// Which method was requested, which one is active, and why they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodStatus {
    /// The method requested last.
    pub requested: MethodKind,
    /// The method new I/O is submitted through.
    pub used: MethodKind,
    /// Recorded fallbacks, oldest first.
    pub fallbacks: Vec<Fallback>,
    /// The rings' features, if there are rings.
    pub uring: Option<UringFeatures>,
}

/// The dispatcher's settings.
#[derive(Clone)]
pub(crate) struct DispatcherSettings {
    pub(crate) uring: UringSettings,
    pub(crate) custom: Option<Arc<dyn Method>>,
    /// For buffered reads below this many bytes, the page cache is tried first.
    pub(crate) try_cached_below: u32,
    /// Buffered writes of up to this many bytes may be executed inline.
    pub(crate) inline_write_max: u32,
}

impl Default for DispatcherSettings {
    fn default() -> Self {
        Self {
            uring: UringSettings::default(),
            custom: None,
            try_cached_below: TRY_CACHED_BELOW,
            inline_write_max: INLINE_WRITE_MAX,
        }
    }
}

/// Submits staged I/O to the current method, or executes it inline.
pub(crate) struct Dispatcher {
    /// This instance's I/O in flight, shared with the methods' threads.
    in_flight: Arc<InFlight>,
    /// The active method. Shared with ring drivers, which switch away from a failed ring.
    method: Arc<MethodInForce>,
    /// The most recently started rings, which may be idle if another method is current.
    uring: Mutex<Option<Arc<Uring>>>,
    /// Rings that have failed. Their drivers may still be waiting for I/O that the kernel has
    /// accepted, and shutdown has to join those drivers too.
    retired: Mutex<Vec<Arc<Uring>>>,
    /// How many times io_uring has been started, protected by a lock. We hold that lock while
    /// switching methods, so that only one switch can run at a time. It must be taken before the
    /// `uring` and `retired` locks.
    switching: Mutex<u64>,
    settings: DispatcherSettings,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dispatcher({})", self.current())
    }
}

impl Dispatcher {
    pub(crate) fn new(in_flight: Arc<InFlight>, settings: DispatcherSettings) -> Self {
        Self {
            in_flight,
            method: Arc::new(MethodInForce::new()),
            uring: Mutex::new(None),
            retired: Mutex::default(),
            switching: Mutex::new(0),
            settings,
        }
    }

    pub(crate) fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// The active method.
    pub(crate) fn current(&self) -> MethodKind {
        self.method.current()
    }

    pub(crate) fn status(&self) -> MethodStatus {
        // We must read the method before the rings. If broken rings are replaced in between, we
        // would otherwise report the state of the old rings for the new method.
        let current = self.current();
        let uring = self.uring.lock().clone();
        let broken = uring.as_ref().is_some_and(|uring| uring.is_broken());
        MethodStatus {
            requested: self.method.requested(),
            // Once a ring has failed, its I/O goes to the workers, even before the switch.
            used: match current {
                MethodKind::IoUring if broken => MethodKind::Worker,
                current => current,
            },
            fallbacks: self.method.fallbacks(),
            uring: uring.map(|uring| uring.features()),
        }
    }

    /// Submits one session's STAGED handles. The calling thread executes whatever the method
    /// doesn't take, unless it must not block.
    pub(crate) fn submit(&self, staged: &[u32], may_block: bool) {
        if staged.is_empty() {
            return;
        }
        let completions = self.in_flight.completions();
        // Read the method only once: a switch mid-batch must not split the batch.
        let (kind, now) = (self.current(), clock::now());
        for &index in staged {
            completions.handles().handle(index).set_started(now);
            self.set_submitted(completions.handles().wait_ref(index), kind);
        }
        let statistics = completions.statistics();
        statistics.general().batches.add(1);
        statistics.sample_in_flight(staged.len(), completions.handles().in_use());
        // We must change all handles to SUBMITTED before we offer any of them to the method,
        // because a worker may complete the first I/O while we're still queueing the rest.
        let mut batch = Batch::new(&self.in_flight, staged);
        self.submit_to(kind, &mut batch);
        let pool = completions.pool();
        if !may_block && kind != MethodKind::Sync && batch.remaining() > 0 && pool.is_running() {
            pool.take_over(std::iter::from_fn(|| batch.take_queued()));
        }
        // Under `sync` everything stays in the batch, which doesn't count as an overflow.
        if kind != MethodKind::Sync && batch.remaining() > 0 {
            statistics.general().overflowed.add(batch.remaining() as u64);
        }
        while let Some(io) = batch.take() {
            self.in_flight.execute_inline(io);
        }
    }

    fn submit_to(&self, kind: MethodKind, batch: &mut Batch<'_>) {
        match kind {
            MethodKind::Sync => Inline.submit(&self.in_flight, batch),
            MethodKind::Worker => Workers.submit(&self.in_flight, batch),
            MethodKind::Custom => {
                if let Some(custom) = &self.settings.custom {
                    custom.submit(&self.in_flight, batch);
                }
            }
            MethodKind::IoUring => {
                // Clone the reference, so that we don't hold the lock while we fill a ring's inbox.
                let uring = self.uring.lock().clone();
                if let Some(uring) = uring {
                    uring.submit(&self.in_flight, batch);
                }
                // A ring that has just failed doesn't accept any I/O, and we may not have switched
                // to a different method yet. Let the worker pool execute the rest; the pool is
                // always running under io_uring.
                if batch.remaining() > 0 {
                    Workers.submit(&self.in_flight, batch);
                }
            }
        }
    }

    /// Records the method in the handle and changes the handle's state to SUBMITTED. From here on,
    /// the handle no longer belongs to the session, unless the session executes the I/O itself.
    fn set_submitted(&self, io: WaitRef, method: MethodKind) {
        let handles = self.in_flight.completions().handles();
        handles.handle(io.index()).set_method(method);
        handles.advance(io, State::Staged, State::Submitted);
    }

    /// Executes a STAGED I/O inline, because the session needs it immediately and would otherwise
    /// just sleep until it completes.
    pub(crate) fn execute_needed(&self, io: WaitRef) {
        let token = self.submit_inline(io, |general| &general.needed_now);
        self.in_flight.execute(token, Completer::Inline);
    }

    /// Submits a STAGED I/O that the session itself executes, and counts it.
    fn submit_inline(&self, io: WaitRef, counter: fn(&GeneralCells) -> &Counter) -> Submitted {
        let completions = self.in_flight.completions();
        completions.handles().handle(io.index()).set_synchronous();
        self.set_submitted(io, self.current());
        let statistics = completions.statistics();
        counter(statistics.general()).add(1);
        statistics.sample_in_flight(1, completions.handles().in_use());
        self.in_flight.token(io.index())
    }

    /// Returns true if a STAGED I/O is a read for which the session should try the page cache
    /// first, however long it is if `large` is true. This is never the case under `sync`, where the
    /// session executes the read anyway and the attempt would only cost an additional system call.
    pub(crate) fn may_be_cached(&self, io: WaitRef, large: bool) -> bool {
        let handle = self.in_flight.completions().handles().handle(io.index());
        let below = self.settings.try_cached_below;
        handle.is_buffered()
            && handle.operation() == Operation::Readv
            && (handle.length() < below || large && below > 0)
            && self.current() != MethodKind::Sync
    }

    /// Executes a STAGED read inline if its data is in the page cache. If not, returns false and
    /// leaves it STAGED.
    pub(crate) fn execute_cached(&self, io: WaitRef) -> bool {
        self.in_flight.execute_cached(io, self.current())
    }

    /// Returns true if a STAGED I/O is either a buffered write that the session should execute
    /// itself, or the writeback that follows such writes. A writeback doesn't tell us how fast
    /// writes are, so we must not use one to find out whether a slow mount has recovered.
    pub(crate) fn is_inline_write(&self, io: WaitRef, file: &File) -> bool {
        let handle = self.in_flight.completions().handles().handle(io.index());
        let operation = handle.operation();
        let most = match operation {
            Operation::Writev => self.settings.inline_write_max,
            Operation::BeginWriteback if self.settings.inline_write_max > 0 => u32::MAX,
            _ => return false,
        };
        !file.is_direct()
            && (1..=most).contains(&handle.length())
            && self.current() != MethodKind::Sync
            && match operation {
                Operation::Writev => file.write_latency().allows_write(clock::now),
                _ => file.write_latency().is_fast(clock::now),
            }
    }

    /// Executes a STAGED write or writeback inline, and records how long the write took. We call
    /// `begin` and `end` so that other sessions notice if the write hangs.
    pub(crate) fn execute_write(&self, io: WaitRef, file: &File) {
        let handle = self.in_flight.completions().handles().handle(io.index());
        let (operation, length) = (handle.operation(), handle.length());
        let token = self.submit_inline(io, |general| &general.inline_writes);
        let latency = file.write_latency();
        let write = latency.begin(clock::now());
        let (started, ended) = self.in_flight.execute_timed(token, Completer::Inline);
        latency.end(write);
        if operation == Operation::Writev {
            latency.record(length, ended.since(started), ended);
        }
    }

    /// Switches to `wanted`, or to the next best method that is available.
    pub(crate) fn switch(&self, wanted: MethodKind) {
        let mut starts = self.switching.lock();
        self.method.request(wanted);
        let used = match wanted {
            MethodKind::Sync => MethodKind::Sync,
            MethodKind::Worker => self.with_workers(MethodKind::Worker),
            MethodKind::Custom if self.settings.custom.is_none() => {
                self.method.note(Fallback::recognise(Feature::Custom, libc::ENOSYS));
                self.with_workers(MethodKind::Worker)
            }
            MethodKind::Custom => self.with_workers(MethodKind::Custom),
            MethodKind::IoUring => match self.start_uring(&mut starts) {
                Ok(()) => self.with_workers(MethodKind::IoUring),
                Err(errno) => {
                    self.method.note(Fallback::recognise(Feature::IoUring, errno));
                    self.with_workers(MethodKind::Worker)
                }
            },
        };
        let uring = self.uring.lock().clone();
        let rings = uring.as_ref().map_or(0, |uring| uring.number());
        self.method.set(used, if used == MethodKind::IoUring { rings } else { 0 });
        // The rings may have failed before we called `set`. At that point, their drivers couldn't
        // switch away from them yet, so we have to do it here.
        if uring.is_some_and(|uring| uring.is_broken()) {
            self.method.leave_rings(rings);
        }
    }

    /// Starts the workers. All methods except `sync` need them, either to execute I/O or to
    /// complete I/O that a driver has reaped. If no thread can be started, returns `sync`.
    fn with_workers(&self, wanted: MethodKind) -> MethodKind {
        match worker::start(&self.in_flight) {
            Ok(()) => wanted,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                // Without workers, nothing could run a ring driver's callbacks, so io_uring can't
                // be used either.
                self.method.note(Fallback::recognise(Feature::Workers, errno));
                MethodKind::Sync
            }
        }
    }

    /// Starts the rings, or reuses the running rings if they still work. Returns the errno if no
    /// ring can be opened.
    fn start_uring(&self, starts: &mut u64) -> Result<(), i32> {
        let works = self.uring.lock().as_ref().is_some_and(|uring| !uring.is_broken());
        if works {
            return Ok(());
        }
        *starts += 1;
        let (started, notes) =
            Uring::start(&self.in_flight, &self.method, self.settings.uring, *starts)?;
        let broken = self.uring.lock().replace(Arc::new(started));
        self.retired.lock().extend(broken);
        notes.into_iter().for_each(|note| self.method.note(note));
        Ok(())
    }

    /// Stops all threads. There must be no I/O in flight. We stop the drivers before the workers,
    /// because a driver may still have work for the workers.
    pub(crate) fn shut_down(&self) {
        let uring = self.uring.lock().take();
        let retired = std::mem::take(&mut *self.retired.lock());
        for uring in retired.iter().chain(&uring) {
            uring.shut_down();
        }
        if let Some(custom) = &self.settings.custom {
            custom.shut_down();
        }
        self.in_flight.completions().pool().shut_down();
    }
}
