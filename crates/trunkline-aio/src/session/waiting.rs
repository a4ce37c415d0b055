//! How a session waits: for a handle, for its own I/O, for any of it, for somebody else's.
//!
//! Every wait has the same shape: submit what is staged, read the epoch of the session's one event,
//! look, and sleep. Before it sleeps it says in its mailbox what it waits for, so that a reaper can
//! hand exactly that I/O over; afterwards it completes whatever was handed.

use super::{Cancelled, Class, Io, Session, SessionSlot};
use crate::callback::Payload;
use crate::clock;
use crate::core::Completer;
use crate::mailbox::Wish;
use crate::outcome::Outcome;
use crate::request::Operation;
use crate::slots::{SlotSet, Slots};
use crate::state::State;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::wait::WaitRef;
use Target::{Among, Joined, Own};

impl Session {
    /// Sleeps until `done`, which is asked again at every notification and every completion of the
    /// session's own I/O. Submits first, so that nobody waits for what lies staged here.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn wait_for(&mut self, done: impl Fn() -> bool) -> Result<(), Cancelled> {
        self.wait_until(Wish::Any, Own, done)
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

    /// Takes a handle if one can be had now. A task of this session that polled for one has lost its
    /// place in line, and polls again if it still wants one.
    pub fn try_acquire(&mut self, class: Class) -> Option<Io<'_>> {
        self.leave_queue();
        self.prepare_acquire();
        let io = self.take_handle(class)?;
        Some(Io::new(self, io))
    }

    /// Stands in line for a free handle; one that stands there keeps its place. A session held by
    /// its own quota is woken by its own completions, and must not take a wake-up from one that
    /// could use the handle.
    pub(super) fn enter_queue(&mut self, class: Class) {
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

    pub(super) fn prepare_acquire(&mut self) {
        // An Io that was leaked (mem::forget) must not cost a handle for ever.
        if self.reclaim_forgotten() {
            self.core.stats.leaked();
        }
        self.submit_if_old();
    }

    pub(super) fn take_handle(&mut self, class: Class) -> Option<WaitRef> {
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
    pub fn wait<P: Payload>(
        &mut self,
        slots: &mut Slots<P>,
        slot: usize,
    ) -> Result<Outcome, Cancelled> {
        let slots = slots.set_mut();
        let (io, issuer) = issued(slots, slot);
        let own = if issuer == self.id { Own } else { Joined(io) };
        self.wait_until(Wish::For(io), own, || slots.is_done(slot))?;
        Ok(taken(slots, slot))
    }

    /// Waits for whichever of the set's I/Os ends first; its slot and result.
    ///
    /// # Errors
    /// The session was cancelled; the I/Os go on.
    /// # Panics
    /// If no slot is pending, or one was issued by another session.
    pub fn wait_any<P: Payload>(
        &mut self,
        slots: &mut Slots<P>,
    ) -> Result<(usize, Outcome), Cancelled> {
        let slots = slots.set_mut();
        self.assert_mine(slots);
        let refs = slots.issued();
        self.wait_until(Wish::Any, Among(refs), || slots.first_done().is_some())?;
        let slot = slots.first_done().unwrap_or_default();
        Ok((slot, taken(slots, slot)))
    }

    /// Waits until `count` of the set's I/Os are done, or all that are pending, and leaves
    /// their results in the slots. One wake-up brings them all: an issuer that refills its window
    /// in groups saves those in between.
    ///
    /// # Errors
    /// The session was cancelled; the I/Os go on.
    /// # Panics
    /// If a slot was issued by another session.
    pub fn wait_some<P: Payload>(
        &mut self,
        slots: &Slots<P>,
        count: usize,
    ) -> Result<(), Cancelled> {
        let slots = slots.set();
        let mine = slots.issued().iter().flatten().all(|(_, issuer)| *issuer == self.id);
        assert!(mine, "wait_some needs slots of this session");
        let core = Arc::clone(&self.core);
        let event = &core.sessions[self.id as usize].event;
        let count = count.min(slots.pending());
        let result = self.wait_until(Wish::Any, Among(slots.issued()), || {
            event.has(count, || slots.done_count())
        });
        event.has_enough();
        result
    }

    pub(super) fn assert_mine(&self, slots: &SlotSet) {
        assert!(slots.pending() > 0, "nothing to wait for");
        let mine = slots.issued().iter().flatten().all(|(_, issuer)| *issuer == self.id);
        assert!(mine, "waiting for any needs slots of this session");
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
pub(super) fn complete_first(core: &crate::core::Core, refs: &[Option<(WaitRef, u32)>]) {
    for (io, _) in refs.iter().flatten() {
        if core.try_complete(*io, Completer::Waiter) {
            return;
        }
    }
}

pub(super) fn issued(slots: &SlotSet, slot: usize) -> (WaitRef, u32) {
    let found = slots.issued()[slot];
    assert!(found.is_some(), "slot {slot} has no I/O to wait for");
    found.unwrap_or((WaitRef { index: 0, generation: 0 }, 0))
}

pub(super) fn taken(slots: &mut SlotSet, slot: usize) -> Outcome {
    let outcome = slots.take(slot);
    assert!(outcome.is_some(), "slot {slot} was found done");
    outcome.unwrap_or_default()
}
