//! How a session waits: for a handle, for its own I/O, for any of it, for somebody else's.
//!
//! Every wait has the same shape: submit what is staged, read the epoch of the session's one event,
//! look, and sleep. Before it sleeps it says in its mailbox what it waits for, so that a reaper can
//! hand exactly that I/O over; afterwards it completes whatever was handed.

use super::{Class, Io, Session, SessionSlot};
use crate::clock;
use crate::core::Completer;
use crate::mailbox::Wish;
use crate::operation::Operations;
use crate::outcome::Outcome;
use crate::request::Operation;
use crate::state::State;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::wait::WaitRef;
use Target::{Among, Joined, Own};
use std::fmt;
use std::task::{Context, Poll};

/// The wait was cancelled. The I/O goes on and will be completed by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// Ends a session's waits from another thread.
#[derive(Debug, Clone)]
pub struct Canceller {
    core: Arc<crate::core::Core>,
    id: u32,
    incarnation: u64,
}

impl Canceller {
    /// Makes the session's present and coming waits end with [`Cancelled`], until
    /// [`Session::clear_cancel`]. Submitted I/O is not touched, nor is a later session that got
    /// the same number.
    pub fn cancel(&self) {
        let slot = &self.core.sessions[self.id as usize];
        // Not back to an older incarnation, which would undo a newer cancel.
        slot.cancelled.fetch_max(self.incarnation, Ordering::SeqCst);
        slot.event.signal();
    }
}

/// Wakes a session that sleeps in [`Session::wait_for`], from anywhere: a lock was granted, a pin
/// was given up.
#[derive(Debug, Clone)]
pub struct Notifier {
    core: Arc<crate::core::Core>,
    id: u32,
}

impl Notifier {
    /// Makes the session look again. Never blocks; a session that does not sleep pays nothing.
    pub fn notify(&self) {
        self.core.sessions[self.id as usize].event.signal();
    }
}

/// Wakes sessions of one instance by their numbers, from anywhere: for owners of queues that note
/// who waits. Holds nothing that keeps the instance from ending.
#[derive(Debug, Clone)]
pub struct Notifiers {
    core: Arc<crate::core::Core>,
}

impl Notifiers {
    pub(crate) fn new(core: Arc<crate::core::Core>) -> Self {
        Self { core }
    }

    /// Makes the session with this number ([`Session::id`]) look again, wherever it waits. Never
    /// blocks; a session that does not sleep pays nothing, one that has ended and left its number
    /// to another wakes that one in vain, and a number that no session can have is ignored.
    pub fn notify(&self, session: u32) {
        if let Some(slot) = self.core.sessions.get(session as usize) {
            slot.event.signal();
        }
    }
}

impl Session {
    /// A way to wake this session.
    pub fn notifier(&self) -> Notifier {
        Notifier { core: Arc::clone(&self.core), id: self.id }
    }

    /// Sleeps until `done`, which is asked again at every notification and every completion of the
    /// session's own I/O. Submits first, so that nobody waits for what lies staged here.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn wait_for(&mut self, done: impl Fn() -> bool) -> Result<(), Cancelled> {
        self.wait_until(Wish::Any, Own, done)
    }

    /// Whether `done`, as [`Session::wait_for`]; otherwise the task is woken when it may be.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn poll_for(
        &mut self,
        context: &mut Context<'_>,
        done: impl Fn() -> bool,
    ) -> Poll<Result<(), Cancelled>> {
        self.submit();
        if done() {
            return Poll::Ready(Ok(()));
        }
        self.slot().event.register(context.waker());
        if done() {
            return Poll::Ready(Ok(()));
        }
        self.pending_unless_cancelled()
    }

    /// A way to cancel this session's waits.
    pub fn canceller(&self) -> Canceller {
        let incarnation = self.slot().incarnation.load(Ordering::SeqCst);
        Canceller { core: Arc::clone(&self.core), id: self.id, incarnation }
    }

    /// Allows waits again after a cancel.
    pub fn clear_cancel(&mut self) {
        let slot = self.slot();
        let mine = slot.incarnation.load(Ordering::SeqCst);
        // Only our own: anything else there belongs to a session that has ended.
        let _ = slot.cancelled.compare_exchange(mine, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Takes a handle, waiting for one if the class has no more, or the session its quota.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn acquire(&mut self, class: Class) -> Result<Io<'_>, Cancelled> {
        self.leave_queue();
        self.prepare_acquire();
        if let Some(io) = self.take_handle(class) {
            return Ok(Io::new(self, io));
        }
        let io = self.wait_for_handle(class)?;
        Ok(Io::new(self, io))
    }

    /// Takes a handle if one can be had now.
    pub fn try_acquire(&mut self, class: Class) -> Option<Io<'_>> {
        self.leave_queue();
        self.prepare_acquire();
        let io = self.take_handle(class)?;
        Some(Io::new(self, io))
    }

    /// Takes a handle if one can be had now; otherwise the task is woken when it may.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn poll_acquire(
        &mut self,
        context: &mut Context<'_>,
        class: Class,
    ) -> Poll<Result<Io<'_>, Cancelled>> {
        if self.queued != Some(class) {
            self.leave_queue();
        }
        self.prepare_acquire();
        let mut taken = self.take_handle(class);
        if taken.is_none() {
            self.submit();
            self.slot().event.register(context.waker());
            self.enter_queue(class);
            taken = self.take_handle(class);
        }
        let cancelled = self.slot().is_cancelled();
        if taken.is_none() && !cancelled {
            return Poll::Pending;
        }
        self.leave_queue();
        Poll::Ready(taken.map(|io| Io::new(self, io)).ok_or(Cancelled))
    }

    /// Stands in line for a free handle; one that stands there keeps its place. A session held by
    /// its own quota is woken by its own completions, and must not take a wake-up from one that
    /// could use the handle.
    fn enter_queue(&mut self, class: Class) {
        if !self.at_quota(class) {
            self.core.capacity.register(class, self.id);
            self.queued = Some(class);
        }
    }

    pub(super) fn leave_queue(&mut self) {
        if let Some(class) = self.queued.take() {
            self.core.capacity.deregister(class, self.id, &self.core.sessions);
        }
    }

    fn prepare_acquire(&mut self) {
        // An Io that was leaked (mem::forget) must not cost a handle for ever.
        if self.reclaim_forgotten() {
            self.core.stats.leaked();
        }
        self.submit_if_old();
    }

    fn take_handle(&mut self, class: Class) -> Option<WaitRef> {
        if self.at_quota(class) {
            return None;
        }
        let slot = self.slot();
        let index = self.core.free.take(self.core.capacity.limit(class))?;
        slot.in_use.fetch_add(1, Ordering::SeqCst);
        let handle = &self.core.handles[index as usize];
        handle.view.session.store(self.id, Ordering::Release);
        handle.view.class.store(class as u8, Ordering::Release);
        let io = WaitRef { index, generation: handle.word.load().generation };
        self.core.advance(io, State::Idle, State::HandedOut);
        self.handed_out = Some(io);
        Some(io)
    }

    fn wait_for_handle(&mut self, class: Class) -> Result<WaitRef, Cancelled> {
        self.submit();
        let core = Arc::clone(&self.core);
        let slot = &core.sessions[self.id as usize];
        let started = clock::now();
        let mut slept = false;
        loop {
            let seen = slot.event.epoch();
            self.enter_queue(class);
            slot.mailbox.post(Wish::Any);
            let taken = self.take_handle(class);
            let cancelled = slot.is_cancelled();
            if taken.is_none() && !cancelled {
                slept = true;
                slot.event.wait(seen, None);
            }
            self.complete_assigned();
            if taken.is_none() && !cancelled {
                continue;
            }
            self.leave_queue();
            if slept {
                self.record_wait(started, None);
            }
            return taken.ok_or(Cancelled);
        }
    }

    fn at_quota(&self, class: Class) -> bool {
        let held = self.slot().in_use.load(Ordering::SeqCst);
        class != Class::Log && held >= self.core.session_quota
    }

    /// Waits for the I/O of a slot and takes its result.
    ///
    /// # Errors
    /// The session was cancelled; the I/O goes on.
    /// # Panics
    /// If the slot was not issued.
    pub fn wait(&mut self, operations: &mut Operations, slot: usize) -> Result<Outcome, Cancelled> {
        let (io, issuer) = issued(operations, slot);
        let own = if issuer == self.id { Own } else { Joined(io) };
        self.wait_until(Wish::For(io), own, || operations.is_done(slot))?;
        Ok(taken(operations, slot))
    }

    /// Waits for whichever of the operations' I/Os ends first; its slot and result.
    ///
    /// # Errors
    /// The session was cancelled; the I/Os go on.
    /// # Panics
    /// If no slot is pending, or one was issued by another session.
    pub fn wait_any(&mut self, operations: &mut Operations) -> Result<(usize, Outcome), Cancelled> {
        self.assert_mine(operations);
        let refs = &operations.refs;
        self.wait_until(Wish::Any, Among(refs), || operations.first_done().is_some())?;
        let slot = operations.first_done().unwrap_or_default();
        Ok((slot, taken(operations, slot)))
    }

    /// Waits until `count` of the operations' I/Os are done, or all that are pending, and leaves
    /// their results in the slots. One wake-up brings them all: an issuer that refills its window
    /// in groups saves those in between.
    ///
    /// # Errors
    /// The session was cancelled; the I/Os go on.
    /// # Panics
    /// If a slot was issued by another session.
    pub fn wait_some(&mut self, operations: &Operations, count: usize) -> Result<(), Cancelled> {
        let mine = operations.refs.iter().flatten().all(|(_, issuer)| *issuer == self.id);
        assert!(mine, "wait_some needs operations of this session");
        let core = Arc::clone(&self.core);
        let event = &core.sessions[self.id as usize].event;
        let count = count.min(operations.pending());
        let result = self.wait_until(Wish::Any, Among(&operations.refs), || {
            event.has(count, || operations.done_count())
        });
        event.has_enough();
        result
    }

    /// The result of a slot if it is there; otherwise the task is woken when it may be.
    ///
    /// # Errors
    /// The session was cancelled; the I/O goes on.
    /// # Panics
    /// If the slot was not issued.
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        operations: &mut Operations,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        let (io, issuer) = issued(operations, slot);
        if issuer != self.id && !operations.is_done(slot) {
            self.core.handles[io.index as usize].joiners.insert(self.id);
            self.joined = true;
        }
        let ready = |operations: &Operations| operations.is_done(slot).then_some(slot);
        let polled = self.poll_until(context, operations, &[Some((io, issuer))], ready);
        polled.map_ok(|_| taken(operations, slot))
    }

    /// The slot and result of whichever of the operations' I/Os has ended; otherwise the task is
    /// woken when one may have.
    ///
    /// # Errors
    /// The session was cancelled; the I/Os go on.
    /// # Panics
    /// If no slot is pending, or one was issued by another session.
    pub fn poll_any(
        &mut self,
        context: &mut Context<'_>,
        operations: &mut Operations,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        self.assert_mine(operations);
        let polled = self.poll_until(context, operations, &operations.refs, Operations::first_done);
        polled.map_ok(|slot| (slot, taken(operations, slot)))
    }

    fn poll_until(
        &mut self,
        context: &mut Context<'_>,
        operations: &Operations,
        refs: &[Option<(WaitRef, u32)>],
        ready: impl Fn(&Operations) -> Option<usize>,
    ) -> Poll<Result<usize, Cancelled>> {
        self.submit();
        if ready(operations).is_none() {
            complete_first(&self.core, refs);
        }
        if ready(operations).is_none() {
            self.slot().event.register(context.waker());
        }
        if let Some(slot) = ready(operations) {
            // The waker may stay: the task may have been told that something else is pending.
            return Poll::Ready(Ok(slot));
        }
        self.pending_unless_cancelled()
    }

    fn pending_unless_cancelled<T>(&self) -> Poll<Result<T, Cancelled>> {
        match self.slot().is_cancelled() {
            true => Poll::Ready(Err(Cancelled)),
            false => Poll::Pending,
        }
    }

    fn assert_mine(&self, operations: &Operations) {
        assert!(operations.pending() > 0, "nothing to wait for");
        let mine = operations.refs.iter().flatten().all(|(_, issuer)| *issuer == self.id);
        assert!(mine, "waiting for any needs operations of this session");
    }

    /// Waits until somebody's I/O is complete, whoever issued it. Its result is the issuer's.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn join(&mut self, io: WaitRef) -> Result<(), Cancelled> {
        let core = Arc::clone(&self.core);
        let handle = &core.handles[io.index as usize];
        self.wait_until(Wish::For(io), Joined(io), || {
            handle.word.load().generation != io.generation
        })
    }

    /// Whether somebody's I/O is complete, as [`Session::join`]; otherwise the task is woken when it
    /// may be. It completes the I/O itself if that is all it lacks. Any number of I/Os can be joined
    /// by polling each; who gives one up may be woken once more by it.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn poll_join(
        &mut self,
        context: &mut Context<'_>,
        io: WaitRef,
    ) -> Poll<Result<(), Cancelled>> {
        self.submit();
        if self.is_complete(io) {
            return Poll::Ready(Ok(()));
        }
        let handle = &self.core.handles[io.index as usize];
        handle.joiners.insert(self.id);
        self.slot().event.register(context.waker());
        self.core.try_complete(io, Completer::Waiter);
        let polled = match self.is_complete(io) {
            true => Poll::Ready(Ok(())),
            false => self.pending_unless_cancelled(),
        };
        match polled.is_ready() {
            // It was this I/O's bit: at the start the handle did not yet carry another one.
            true => drop(handle.joiners.remove(self.id)),
            false => self.joined = true,
        }
        polled
    }

    /// Removes what joins that were given up have left in handles whose I/O still goes on.
    pub(super) fn leave_joined(&mut self) {
        if std::mem::take(&mut self.joined) {
            for handle in &self.core.handles {
                if handle.joiners.contains(self.id) {
                    handle.joiners.remove(self.id);
                }
            }
        }
    }

    /// Whether somebody's I/O is complete.
    pub fn is_complete(&self, io: WaitRef) -> bool {
        self.core.handles[io.index as usize].word.load().generation != io.generation
    }

    /// The one way to sleep for I/O.
    fn wait_until(
        &mut self,
        wish: Wish,
        target: Target<'_>,
        done: impl Fn() -> bool,
    ) -> Result<(), Cancelled> {
        if done() {
            return Ok(());
        }
        self.submit();
        let core = Arc::clone(&self.core);
        let slot: &SessionSlot = &core.sessions[self.id as usize];
        let (started, kind) = (clock::now(), kind_of(&core, wish, target));
        let mut slept = false;
        // Whether the bit set below is this I/O's: once the I/O is over it may stand for the next.
        let joins = matches!(target, Joined(io) if !self.is_complete(io));
        let result = loop {
            let seen = slot.event.epoch();
            if let Joined(io) = target {
                // Anew each time: a completion that is late in draining may take the bit away,
                // but then it signals us as well.
                core.handles[io.index as usize].joiners.insert(self.id);
            }
            slot.mailbox.post(wish);
            match (wish, target) {
                (Wish::For(io), _) => {
                    core.try_complete(io, Completer::Waiter);
                }
                (Wish::Any, Among(refs)) if !done() => complete_first(&core, refs),
                (Wish::Any, _) => {}
            }
            let finished = done();
            let cancelled = slot.is_cancelled();
            if !finished && !cancelled {
                slept = true;
                slot.event.wait(seen, None);
            }
            self.complete_assigned();
            if finished {
                break Ok(());
            }
            if cancelled {
                break Err(Cancelled);
            }
        };
        if let Joined(io) = target
            && joins
        {
            core.handles[io.index as usize].joiners.remove(self.id);
        }
        if slept {
            self.record_wait(started, kind);
        }
        result
    }

    /// Takes what a reaper put into the mailbox, and completes it.
    fn complete_assigned(&self) {
        if let Some(index) = self.slot().mailbox.take() {
            let generation = self.core.handles[index as usize].word.load().generation;
            self.core.try_complete(WaitRef { index, generation }, Completer::Waiter);
        }
    }

    fn record_wait(&mut self, started: clock::Time, kind: Option<(Class, Operation)>) {
        let waited = clock::now().since(started);
        self.waits += 1;
        self.wait_time += waited;
        self.core.stats.waited(self.id, kind, waited);
    }
}

/// Class and operation of what is waited for, for the statistics; of the first if it is any.
fn kind_of(core: &crate::core::Core, wish: Wish, target: Target<'_>) -> Option<(Class, Operation)> {
    let io = match (wish, target) {
        (Wish::For(io), _) => io,
        (Wish::Any, Among(refs)) => refs.iter().flatten().next()?.0,
        (Wish::Any, _) => return None,
    };
    let view = &core.handles[io.index as usize].view;
    Some((view.class(), view.operation()))
}

/// Whose I/O a wait is for.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// One of this session's own.
    Own,
    /// One that another session issued.
    Joined(WaitRef),
    /// The first of these, all this session's own.
    Among(&'a [Option<(WaitRef, u32)>]),
}

/// Completes one I/O of the list that nobody has claimed, rather than sleeping.
fn complete_first(core: &crate::core::Core, refs: &[Option<(WaitRef, u32)>]) {
    for (io, _) in refs.iter().flatten() {
        if core.try_complete(*io, Completer::Waiter) {
            return;
        }
    }
}

fn issued(operations: &Operations, slot: usize) -> (WaitRef, u32) {
    let found = operations.refs[slot];
    assert!(found.is_some(), "slot {slot} has no I/O to wait for");
    found.unwrap_or((WaitRef { index: 0, generation: 0 }, 0))
}

fn taken(operations: &mut Operations, slot: usize) -> Outcome {
    let outcome = operations.take(slot);
    assert!(outcome.is_some(), "slot {slot} was found done");
    outcome.unwrap_or_default()
}
