//! I/O in flight: the interface an I/O method uses to execute and complete I/O.
//!
//! A method receives a [`Submitted`] token for each I/O. It must pass every token to one of two
//! functions, exactly once:
//! - [`InFlight::execute`] executes the I/O in the calling thread, which may block, and completes
//!   it.
//! - [`InFlight::reap`] takes a raw result the method got elsewhere, for example from a ring.
//!
//! ```text
//!  worker: execute ----------------------------------+
//!  driver: request -> kernel or device -> reap ---+  |
//!                                                 v  v
//!                                   SUBMITTED -> COMPLETED_IO -> completion
//! ```
//!
//! `reap` completes an I/O itself if its callbacks are cheap. If they are expensive (see
//! [`crate::Weight`]), it hands the I/O to the session waiting for it or, if no session is waiting,
//! to a helper. A driver therefore never spends its time on checksums.
//!
//! The decision to retry an I/O is made only here, so that every method treats EINTR and EAGAIN
//! alike.

use crate::clock::{self, Time};
use crate::completion::completions::{AbortOnPanic, Completions};
use crate::completion::lanes::Queued;
use crate::facade::thread;
use crate::limits::RETRIES_MAX;
use crate::lock_free::state::State;
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::executor::Executor;
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::storage::region::Region;
use crate::storage::request::Request;
use crate::tables::completer::Completer;
use crate::tables::method_kind::MethodKind;
use crate::tables::wake_batch::WakeBatch;
use std::fmt;
use std::sync::Arc;

/// Represents a SUBMITTED I/O. Each such I/O has exactly one token. The thread holding the token
/// owns the handle's body, and is responsible for completing the I/O.
///
/// A token identifies its instance and contains the generation of its handle, and we check both
/// whenever the token is used. This prevents a method that serves two instances from passing one
/// instance's token to the other.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a submitted I/O that is dropped never completes"]
pub struct Submitted {
    /// The address of the instance's [`InFlight`], which does not move while tokens exist.
    instance: usize,
    io: WaitRef,
}

impl Submitted {
    pub(crate) fn index(&self) -> u32 {
        self.io.index()
    }
}

/// The result of [`InFlight::reap`], and what the driver must do next.
#[derive(Debug)]
pub enum Reaped {
    /// The I/O is complete, or was handed to the session waiting for it. The driver has nothing
    /// left to do.
    Done,
    /// The I/O is now in the ready set. At the end of its batch, the driver must call
    /// [`InFlight::wake_helpers`] once.
    Helpers,
    /// The raw result was EINTR or EAGAIN. The driver submits the I/O again.
    Again(Submitted),
}

/// One instance's submitted I/O, with the completion tables, executor and memory it needs.
pub struct InFlight {
    completions: Completions,
    executor: Arc<dyn Executor>,
    /// The handles' iovecs point into this region. By holding a reference to it, we keep its memory
    /// mapped for as long as any thread may execute or reap I/O.
    region: Region,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InFlight({:?})", self.completions.handles())
    }
}

impl InFlight {
    pub(crate) fn new(
        completions: Completions,
        executor: Arc<dyn Executor>,
        region: Region,
    ) -> Self {
        Self { completions, executor, region }
    }

    pub(crate) fn completions(&self) -> &Completions {
        &self.completions
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Issues `posix_fadvise` for a range that will be read soon. Returns whether
    /// the call succeeded.
    pub(crate) fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        self.executor.advise(file, offset, length)
    }

    /// Creates the token for a SUBMITTED handle. There are only two cases where this is allowed: a
    /// session may create the token of a handle it has just submitted, and a method may recreate a
    /// token it has received but stored only as a handle index. In any other case, the body would
    /// end up with two owners.
    pub(crate) fn token(&self, index: u32) -> Submitted {
        Submitted { instance: self.instance(), io: self.completions.handles().wait_ref(index) }
    }

    /// A number that distinguishes this instance from all others.
    fn instance(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The submitted I/O as lanes queue it.
    pub(crate) fn queued(&self, io: &Submitted) -> Queued {
        let handle = self.completions.handles().handle(io.index());
        // SAFETY: the holder of the only token of this I/O owns the body.
        let lane = unsafe { handle.body() }.lane();
        Queued { lane, index: io.index(), class: handle.class() }
    }

    /// Panics if a custom method confuses two instances or uses the same token twice. Without this
    /// check, the method could corrupt the memory of another I/O.
    fn check(&self, io: &Submitted) {
        assert_eq!(io.instance, self.instance(), "a token of another instance");
        let submitted = self.completions.handles().is_submitted(io.io);
        assert!(submitted, "a token of an I/O that is not submitted");
    }

    /// Describes the I/O to an executor or a ring: its operation, descriptor, offset and memory.
    ///
    /// # Panics
    /// If the token belongs to another instance.
    pub fn request<'a>(&'a self, io: &'a mut Submitted) -> Request<'a> {
        self.check(io);
        self.request_of(io)
    }

    fn request_of<'a>(&'a self, io: &'a mut Submitted) -> Request<'a> {
        // SAFETY: there is only one token for this I/O, and the thread holding it owns the body.
        // The request borrows the token mutably, so the token can't be given away while the request
        // exists, and there can't be a second request at the same time.
        unsafe { self.completions.handles().handle(io.index()).request() }
    }

    /// Records the time when a driver passes the I/O to the storage. We measure the device time
    /// from here, because the time the I/O spent in the driver's queue should not be blamed on the
    /// disk.
    ///
    /// # Panics
    /// If the token belongs to another instance.
    pub fn mark_started(&self, io: &Submitted) {
        self.check(io);
        self.completions.handles().handle(io.index()).set_started(clock::now());
    }

    /// Executes the I/O in the calling thread, which may block, and completes it.
    ///
    /// # Panics
    /// If the token belongs to another instance.
    pub fn execute(&self, io: Submitted, completer: Completer) {
        self.execute_timed(io, completer);
    }

    /// Executes the I/O in the thread that issued it.
    pub(crate) fn execute_inline(&self, io: Submitted) {
        self.completions.handles().handle(io.index()).set_synchronous();
        self.execute(io, Completer::Inline);
    }

    /// Like [`InFlight::execute`], but returns the times at which the storage received and finished
    /// the I/O.
    pub(crate) fn execute_timed(&self, mut io: Submitted, completer: Completer) -> (Time, Time) {
        self.check(&io);
        let guard = AbortOnPanic;
        let reference = io.io;
        let started = clock::now();
        self.completions.handles().handle(io.index()).set_started(started);
        let mut attempts = 0;
        // If the executor panics, the guard above aborts the process. Otherwise the I/O would
        // remain SUBMITTED forever, and every session waiting for it would hang.
        let raw = loop {
            let raw = self.executor.execute(&mut self.request(&mut io));
            let raw = self.probed(&mut io, raw);
            if !should_retry(raw, attempts) {
                break raw;
            }
            attempts += 1;
            self.completions.statistics().general().retried.add(1);
            thread::yield_now();
        };
        std::mem::forget(guard);
        let ended = self.finish(io, raw);
        self.completions.try_complete(reference, completer);
        (started, ended)
    }

    /// Executes a STAGED read inline, provided its data is in the page cache (`RWF_NOWAIT`). If the
    /// data isn't cached, the I/O remains STAGED and we return false.
    ///
    /// We try the read before the transition to SUBMITTED, because there is no way back from
    /// SUBMITTED to STAGED.
    pub(crate) fn execute_cached(&self, reference: WaitRef, method: MethodKind) -> bool {
        let handle = self.completions.handles().handle(reference.index());
        let now = clock::now();
        // The session owns the handle in STAGED as well as in SUBMITTED, so it's OK to create the
        // token early. We call `request_of` directly, because `check` would reject the token of a
        // handle that isn't SUBMITTED yet.
        let mut io = Submitted { instance: self.instance(), io: reference };
        let raw = self.executor.execute_cached(&mut self.request_of(&mut io));
        let Some(raw) = raw else { return false };
        handle.set_method(method);
        handle.set_started(now);
        handle.set_synchronous();
        self.completions.handles().advance(reference, State::Staged, State::Submitted);
        let raw = self.probed(&mut io, raw);
        if should_retry(raw, 0) {
            self.completions.statistics().general().retried.add(1);
            self.execute(io, Completer::Inline);
            return true;
        }
        let statistics = self.completions.statistics();
        statistics.general().cached.add(1);
        statistics.sample_in_flight(1, self.completions.handles().in_use());
        self.finish(io, raw);
        self.completions.try_complete(reference, Completer::Inline);
        true
    }

    /// Records a raw result (bytes, or minus errno) that the method obtained elsewhere. Then either
    /// completes the I/O or leaves that to another thread.
    ///
    /// # Panics
    /// If the token belongs to another instance.
    pub fn reap(&self, io: Submitted, raw: i32) -> Reaped {
        self.reap_in_batch(io, raw, None)
    }

    /// [`InFlight::reap`] for one result of a batch. The issuer is woken when the caller delivers
    /// the batch.
    pub(crate) fn reap_in_batch(
        &self,
        mut io: Submitted,
        raw: i32,
        wakes: Option<&mut WakeBatch>,
    ) -> Reaped {
        self.check(&io);
        let reference = io.io;
        let handle = self.completions.handles().handle(reference.index());
        let raw = self.probed(&mut io, raw);
        // SAFETY: the holder of the token owns the body.
        let body = unsafe { handle.body() };
        if should_retry(raw, body.attempts()) {
            body.count_attempt();
            self.completions.statistics().general().retried.add(1);
            return Reaped::Again(io);
        }
        // Read both values before calling `finish`. Once the handle is in COMPLETED_IO, this thread
        // no longer owns the body, and another thread may complete the I/O at any time.
        let (heavy, session) = (body.is_heavy(), handle.session());
        self.finish(io, raw);
        if !heavy {
            match wakes {
                Some(wakes) => self.completions.try_complete_reaped(reference, wakes),
                None => _ = self.completions.try_complete(reference, Completer::Reaper),
            }
            return Reaped::Done;
        }
        match self.completions.hand_over(reference, session) {
            true => Reaped::Done,
            false => Reaped::Helpers,
        }
    }

    /// Wakes a helper for the I/O that [`InFlight::reap`] left in the ready set.
    pub fn wake_helpers(&self) {
        self.completions.pool().kick();
    }

    /// Passes a raw result to the probe, which may replace it to inject an error or a short
    /// transfer.
    fn probed(&self, io: &mut Submitted, raw: i32) -> i32 {
        let changed = self.completions.handles().probe_raw_result(io.io, raw);
        if changed != raw {
            let mut request = self.request(io);
            if request.operation == Operation::Readv {
                // The kernel has already transferred the data. We overwrite the part that the
                // changed result no longer covers, so that a caller that fails to check for a short
                // read won't find good data there by accident.
                let mut keep = usize::try_from(changed).unwrap_or(0);
                for buffer in request.targets() {
                    let kept = keep.min(buffer.len());
                    buffer[kept..].fill(0xA5);
                    keep -= kept;
                }
            }
        }
        changed
    }

    /// Records the raw result, changes the handle's state to COMPLETED_IO, and returns the time
    /// when the I/O ended. This consumes the token, because from here on any thread may claim the
    /// I/O.
    fn finish(&self, io: Submitted, raw: i32) -> Time {
        let now = clock::now();
        self.completions.handles().handle(io.index()).set_raw(raw, now);
        self.completions.handles().advance(io.io, State::Submitted, State::CompletedIo);
        now
    }
}

/// Whether the I/O must be retried. The rule is the same for every method.
fn should_retry(raw: i32, attempts: u32) -> bool {
    (raw == -libc::EINTR || raw == -libc::EAGAIN) && attempts < RETRIES_MAX
}
