//! The heart: every state change of every handle goes through here.
//!
//! ```text
//!  session                        method's thread                    completer
//!  submit: STAGED->SUBMITTED  ->  execute (blocking thread)      ->  complete: claimed,
//!          method, or inline      or reap (driver): raw result       callbacks, result to the
//!                                 SUBMITTED->COMPLETED_IO            slot, handle free, wake
//! ```
//! `execute` completes what it executed. `reap` completes what is light, hands the rest to the
//! session that waits for exactly it, or leaves it to the helpers (see `mailbox`) and to sessions
//! that joined it, whoever comes first. What completing means is in `completion`.

mod completion;

pub use completion::{COMPLETERS, Completer};

use crate::bitmap::Bitmap;
use crate::capacity::Capacity;
use crate::clock::{self, Time};
use crate::file::Registry;
use crate::freelist::FreeList;
use crate::graveyard::Graveyard;
use crate::handle::{Handle, flag};
use crate::method::{Batch, MethodKind, Submitted, should_retry};
use crate::methods::Methods;
use crate::probe::{Observed, Probe};
use crate::region::Region;
use crate::request::{Executor, Operation, Request};
use crate::session::SessionSlot;
use crate::state::State;
use crate::stats::Stats;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, thread};
use crate::wait::WaitRef;
use crate::wakes::Wakes;
use completion::AbortOnPanic;
use std::fmt;

/// What became of a reaped I/O.
#[derive(Debug)]
pub enum Reaped {
    /// Complete, or handed to the session that waits for it.
    Done,
    /// Left to the helpers: call [`Core::wake_helpers`] at the end of the batch.
    Helpers,
    /// The result says "again": submit it once more.
    Again(Submitted),
}

/// The shared state of one instance. Methods get it with each batch.
pub struct Core {
    pub(crate) handles: Box<[Handle]>,
    pub(crate) free: FreeList,
    pub(crate) capacity: Capacity,
    pub(crate) sessions: Box<[SessionSlot]>,
    /// Handles in COMPLETED_IO that wait for a helper.
    pub(crate) ready: Bitmap,
    pub(crate) registry: Arc<Registry>,
    pub(crate) graveyard: Graveyard,
    pub(crate) region: Region,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) probe: Option<Arc<dyn Probe>>,
    pub(crate) stats: Stats,
    pub(crate) methods: Methods,
    pub(crate) session_quota: u32,
    pub(crate) iovecs: usize,
    /// Reads below this many bytes are tried without waiting first.
    pub(crate) try_cached_below: u32,
    /// Buffered writes of up to this many bytes may be made by the session itself.
    pub(crate) inline_write_max: u32,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({} handles, {} in use)", self.handles.len(), self.free.in_use())
    }
}

impl Core {
    /// Changes a handle's state; the one hook for tracing, pauses and faults.
    pub(crate) fn advance(&self, io: WaitRef, from: State, to: State) {
        let handle = &self.handles[io.index as usize];
        handle.word.advance(io.generation, from, to);
        if let Some(probe) = &self.probe {
            probe.transition(&self.observed(io), from, to);
        }
    }

    fn observed(&self, io: WaitRef) -> Observed {
        let view = &self.handles[io.index as usize].view;
        Observed {
            io,
            session: view.session.load(Ordering::Relaxed),
            class: view.class(),
            operation: view.operation(),
            method: view.method(),
            synchronous: view.flags.load(Ordering::Relaxed) & flag::SYNCHRONOUS != 0,
            file_id: view.file_id.load(Ordering::Relaxed),
            offset: view.offset.load(Ordering::Relaxed),
            length: view.length.load(Ordering::Relaxed),
        }
    }

    /// The token of a SUBMITTED handle, for the session that has just submitted it and for methods
    /// that kept the index of a token they were given.
    pub(crate) fn token(&self, index: u32) -> Submitted {
        Submitted { instance: self.instance(), io: self.wait_ref(index) }
    }

    /// A number that tells this instance from others alive.
    fn instance(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The lane of the mount that a submitted I/O goes to.
    pub(crate) fn lane(&self, io: &Submitted) -> usize {
        // SAFETY: the holder of the one Submitted of this I/O owns the body; read for the moment.
        let body = unsafe { self.handles[io.index() as usize].body() };
        body.file.as_ref().map_or(0, crate::File::lane)
    }

    /// Stops a custom method that mixes up instances before it touches somebody else's memory.
    fn check(&self, io: &Submitted) {
        assert_eq!(io.instance, self.instance(), "a token of another instance");
        let seen = self.handles[io.index() as usize].word.load();
        let right = seen.generation == io.io.generation && seen.state == State::Submitted;
        assert!(right, "a token of an I/O that is not submitted");
    }

    fn wait_ref(&self, index: u32) -> WaitRef {
        WaitRef { index, generation: self.handles[index as usize].word.load().generation }
    }

    /// Hands STAGED handles of one session to the method in force; what it leaves, the calling
    /// thread executes.
    pub(crate) fn submit(self: &Arc<Self>, staged: &[u32]) {
        if staged.is_empty() {
            return;
        }
        let kind = self.methods.current();
        let now = clock::now().nanos();
        for &index in staged {
            let view = &self.handles[index as usize].view;
            view.method.store(kind as u8, Ordering::Release);
            view.started.store(now, Ordering::Release);
            self.advance(self.wait_ref(index), State::Staged, State::Submitted);
        }
        self.stats.submitted(staged.len(), self.free.in_use());
        let mut batch = Batch { core: self, indexes: staged, taken: 0 };
        self.methods.submit(self, kind, &mut batch);
        if kind != MethodKind::Sync {
            self.stats.overflowed(batch.remaining());
        }
        while let Some(io) = batch.take() {
            self.execute_inline(io);
        }
    }

    /// Executors a STAGED read at once if the page cache holds it; false leaves it STAGED.
    pub(crate) fn read_cached(&self, index: u32) -> bool {
        let reference = self.wait_ref(index);
        let view = &self.handles[index as usize].view;
        let now = clock::now().nanos();
        // The session owns the handle, in STAGED as well as in SUBMITTED.
        let mut io = Submitted { instance: self.instance(), io: reference };
        let raw = self.executor.execute_cached(&mut self.request_of(&mut io));
        let Some(raw) = raw else { return false };
        view.method.store(self.methods.current() as u8, Ordering::Release);
        view.started.store(now, Ordering::Release);
        view.flags.fetch_or(flag::SYNCHRONOUS, Ordering::Release);
        self.advance(reference, State::Staged, State::Submitted);
        let raw = self.inspected(&mut io, raw);
        if should_retry(raw, 0) {
            self.stats.retried();
            self.execute(io, Completer::Inline);
            return true;
        }
        self.stats.cached(self.free.in_use());
        self.finish(io, raw);
        if self.handles[index as usize].word.claim(reference.generation) {
            self.complete(reference, Completer::Inline);
        }
        true
    }

    /// Executors a STAGED I/O in the issuer's thread, past the method.
    pub(crate) fn execute_now(&self, io: WaitRef) {
        let view = &self.handles[io.index as usize].view;
        view.method.store(self.methods.current() as u8, Ordering::Release);
        self.advance(io, State::Staged, State::Submitted);
        self.stats.needed_now(self.free.in_use());
        self.execute_inline(self.token(io.index));
    }

    /// Carries out a STAGED write, or call to write back, in the issuer's thread, since the mount takes
    /// writes as quickly as copies. Notes how long a write took.
    pub(crate) fn inline_write(&self, io: WaitRef, file: &crate::File) {
        let view = &self.handles[io.index as usize].view;
        let (operation, length) = (view.operation(), view.length.load(Ordering::Relaxed));
        view.method.store(self.methods.current() as u8, Ordering::Release);
        view.flags.fetch_or(flag::SYNCHRONOUS, Ordering::Release);
        self.advance(io, State::Staged, State::Submitted);
        self.stats.inline_write(self.free.in_use());
        let begun = file.pace().begins(clock::now());
        let (started, ended) = self.execute_timed(self.token(io.index), Completer::Inline);
        file.pace().ended(begun);
        if operation == Operation::Writev {
            file.pace().took(length, ended.since(started), ended);
        }
    }

    /// Executors in the issuer's thread.
    pub(crate) fn execute_inline(&self, io: Submitted) {
        let view = &self.handles[io.index() as usize].view;
        view.flags.fetch_or(flag::SYNCHRONOUS, Ordering::Release);
        self.execute(io, Completer::Inline);
    }

    /// Executors in the calling thread, which may block, and completes.
    ///
    /// # Panics
    /// If the token is another instance's.
    pub fn execute(&self, io: Submitted, completer: Completer) {
        self.execute_timed(io, completer);
    }

    /// The same; when the storage had it.
    fn execute_timed(&self, mut io: Submitted, completer: Completer) -> (Time, Time) {
        self.check(&io);
        let guard = AbortOnPanic;
        let reference = io.io;
        let handle = &self.handles[reference.index as usize];
        let started = clock::now();
        handle.view.started.store(started.nanos(), Ordering::Release);
        let mut attempts = 0;
        let raw = loop {
            let raw = self.executor.execute(&mut self.request(&mut io));
            let raw = self.inspected(&mut io, raw);
            if !should_retry(raw, attempts) {
                break raw;
            }
            attempts += 1;
            self.stats.retried();
            thread::yield_now();
        };
        std::mem::forget(guard);
        let ended = self.finish(io, raw);
        if handle.word.claim(reference.generation) {
            self.complete(reference, completer);
        }
        (started, ended)
    }

    /// Records a raw result (bytes, or minus errno) that a driver learned.
    ///
    /// # Panics
    /// If the token is another instance's.
    pub fn reap(&self, io: Submitted, raw: i32) -> Reaped {
        self.reap_one_of(io, raw, &mut Wakes::new(&self.sessions))
    }

    /// [`Core::reap`] for one result of a batch: its session is woken when `wakes` is dropped.
    pub(crate) fn reap_one_of(&self, mut io: Submitted, raw: i32, wakes: &mut Wakes<'_>) -> Reaped {
        self.check(&io);
        let reference = io.io;
        let index = reference.index;
        let handle = &self.handles[index as usize];
        let raw = self.inspected(&mut io, raw);
        // SAFETY: the holder of a Submitted owns the handle's body.
        let body = unsafe { handle.body() };
        if should_retry(raw, body.attempts) {
            body.attempts += 1;
            self.stats.retried();
            return Reaped::Again(io);
        }
        let heavy = body.table.as_ref().is_some_and(|table| table.is_heavy());
        let session = handle.view.session.load(Ordering::Relaxed);
        self.finish(io, raw);
        if !heavy {
            if handle.word.claim(reference.generation) {
                wakes.add(self.complete_unsignalled(reference, Completer::Reaper));
            }
            return Reaped::Done;
        }
        // From here on another thread may have completed and reused the handle; an offer or a
        // ready bit for a stale generation is recognised by whoever gets it.
        let slot = &self.sessions[session as usize];
        if slot.mailbox.offer(reference) {
            slot.event.signal();
            return Reaped::Done;
        }
        self.ready.insert(index);
        // A session that waits for just this I/O need not wait for a helper as well. The bits stay:
        // whoever does not get to complete it is woken once more when it is complete.
        handle.joiners.for_each(|joiner| self.sessions[joiner as usize].event.signal());
        Reaped::Helpers
    }

    /// Wakes a helper for I/Os that [`Core::reap`] left.
    pub fn wake_helpers(&self) {
        self.methods.pool().kick();
    }

    /// What to execute.
    ///
    /// # Panics
    /// If the token is another instance's.
    pub fn request<'a>(&'a self, io: &'a mut Submitted) -> Request<'a> {
        self.check(io);
        self.request_of(io)
    }

    fn request_of<'a>(&'a self, io: &'a mut Submitted) -> Request<'a> {
        let handle = &self.handles[io.index() as usize];
        let view = &handle.view;
        // SAFETY: the holder of the one Submitted of this I/O owns the body; the request borrows
        // the Submitted mutably, so it neither outlives that ownership nor has a twin.
        let body = unsafe { handle.body() };
        let count = body.iovec_count;
        Request {
            operation: view.operation(),
            offset: view.offset.load(Ordering::Relaxed),
            length: view.length.load(Ordering::Relaxed),
            file_id: view.file_id.load(Ordering::Relaxed),
            direct: view.flags.load(Ordering::Relaxed) & flag::BUFFERED == 0,
            taken_at_once: body.file.as_ref().is_some_and(crate::File::is_taken_at_once),
            awaits: body.awaits,
            fd: body.file.as_ref().map_or(-1, crate::File::raw_fd),
            iovecs: &mut body.iovecs[..count],
        }
    }

    /// Marks the moment a driver gives the I/O to the storage, for the device time.
    ///
    /// # Panics
    /// If the token is another instance's.
    pub fn mark_started(&self, io: &Submitted) {
        self.check(io);
        let view = &self.handles[io.index() as usize].view;
        view.started.store(clock::now().nanos(), Ordering::Release);
    }

    /// Lets the probe see and change a raw result.
    fn inspected(&self, io: &mut Submitted, raw: i32) -> i32 {
        let Some(probe) = &self.probe else { return raw };
        let changed = probe.raw_result(&self.observed(io.io), raw);
        let mut request = self.request(io);
        if changed != raw && request.operation == crate::Operation::Readv {
            // What the changed result no longer covers must not look like good data by accident.
            let mut keep = usize::try_from(changed).unwrap_or(0);
            for buffer in request.targets() {
                let kept = keep.min(buffer.len());
                buffer[kept..].fill(0xA5);
                keep -= kept;
            }
        }
        changed
    }

    /// Notes the raw result and the time, which it returns.
    fn finish(&self, io: Submitted, raw: i32) -> Time {
        let reference = io.io;
        let view = &self.handles[reference.index as usize].view;
        let now = clock::now();
        view.ended.store(now.nanos(), Ordering::Release);
        view.raw.store(i64::from(raw), Ordering::Release);
        self.advance(reference, State::Submitted, State::CompletedIo);
        now
    }

    /// Gives back a handle that was handed out and never defined. Others may wait for what it was
    /// to carry out: for them it is over.
    pub(crate) fn release(&self, io: WaitRef, session: u32) {
        self.advance(io, State::HandedOut, State::Idle);
        self.sessions[session as usize].in_use.fetch_sub(1, Ordering::SeqCst);
        self.free.give(io.index);
        let joiners = &self.handles[io.index as usize].joiners;
        joiners.drain(|joiner| self.sessions[joiner as usize].event.signal());
        self.capacity.freed(&self.sessions);
    }
}
