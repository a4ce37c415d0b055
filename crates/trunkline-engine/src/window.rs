//! Slot window: keeps a fixed number of I/Os in flight, and stores the issuer's data for each of
//! them.
//!
//! Streams, checkpoints and jobs have several I/Os in flight at a time, and continue with whichever
//! of them completes first. The results are stored in [`trunkline_aio::Slots`]. The window adds a
//! list of idle slots and, for each I/O, some data that belongs to the issuer. PostgreSQL's
//! `read_stream.c` uses a queue of `InProgressIO` entries for the same purpose, but it always waits
//! for the oldest I/O first.
//!
//! A slot is idle until [`SlotWindow::issued`] is called. After that, it is in flight until the
//! issuer takes the result, even if the I/O completes earlier. This ensures that the issuer's data
//! isn't overwritten before the issuer has processed the result. If the session is cancelled while
//! it waits for an I/O, the slot remains in flight.
//!
//! ```text
//!   idle ──idle_slot, item──▶ define the I/O ──issued──▶ in flight ──take or wait──▶ idle
//! ```

use crate::waiting::{Waiting, slept};
use std::task::Poll;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Cancelled, Lease, Outcome, Payload, Session, Slots};

/// The slots for the results, each with one item of the issuer's data.
#[derive(Debug)]
pub(crate) struct SlotWindow<P: Payload, T> {
    slots: Slots<P>,
    items: Vec<T>,
    /// We use this list as a stack, because the memory of the slot that was used last is most
    /// likely to still be in the CPU cache.
    idle: Vec<usize>,
}

impl<P: Payload, T: Default> SlotWindow<P, T> {
    /// Creates a window of `count` idle slots. The given completion callbacks will be called for
    /// all of their I/Os.
    pub(crate) fn new(count: usize, callbacks: Vec<Arc<dyn Callback<P>>>) -> Self {
        let slots = Slots::with_callbacks(count, callbacks);
        let items = (0..count).map(|_| T::default()).collect();
        Self { slots, items, idle: (0..count).rev().collect() }
    }
}

impl<P: Payload, T> SlotWindow<P, T> {
    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Number of I/Os for which the result hasn't been taken yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.len() - self.idle.len()
    }

    /// Number of slots without an I/O.
    pub(crate) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// Returns an idle slot, if there is one. The slot stays idle until [`SlotWindow::issued`] is
    /// called.
    pub(crate) fn idle_slot(&self) -> Option<usize> {
        self.idle.last().copied()
    }

    /// Returns an idle slot. The caller must have checked that there is one.
    ///
    /// # Panics
    /// If every slot is in flight.
    pub(crate) fn expect_idle(&self) -> usize {
        match self.idle_slot() {
            Some(slot) => slot,
            None => unreachable!("an I/O is started without an idle slot"),
        }
    }

    /// Whether another I/O can be issued.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Marks a slot as in flight, after an I/O was issued for it.
    pub(crate) fn issued(&mut self, slot: usize) {
        let at = self.idle.iter().rposition(|&idle| idle == slot);
        assert!(at.is_some(), "slot {slot} is in flight already");
        at.map(|at| self.idle.swap_remove(at));
    }

    /// The result slots, for a caller that wants to issue an I/O.
    pub(crate) fn slots(&mut self) -> &mut Slots<P> {
        &mut self.slots
    }

    /// The result slots, for a caller that must wait for them.
    pub(crate) fn results(&self) -> &Slots<P> {
        &self.slots
    }

    /// The payload of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight, because then the payload belongs to the I/O.
    pub(crate) fn payload(&mut self, slot: usize) -> &mut P {
        match self.slots.payload(slot) {
            Some(payload) => payload,
            None => unreachable!("slot {slot} is in flight"),
        }
    }

    /// The memory of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight, because then the memory belongs to the I/O.
    pub(crate) fn memory(&mut self, slot: usize) -> &mut Vec<Lease> {
        match self.slots.memory(slot) {
            Some(memory) => memory,
            None => unreachable!("slot {slot} is in flight"),
        }
    }

    /// The issuer's data of a slot.
    pub(crate) fn item(&self, slot: usize) -> &T {
        &self.items[slot]
    }

    /// The issuer's data in a slot, so that it can be changed.
    pub(crate) fn item_mut(&mut self, slot: usize) -> &mut T {
        &mut self.items[slot]
    }

    /// Returns a slot's item together with the result slots, in order to issue an I/O that uses
    /// both.
    pub(crate) fn item_and_slots(&mut self, slot: usize) -> (&mut T, &mut Slots<P>) {
        (&mut self.items[slot], &mut self.slots)
    }

    /// Whether there is an I/O that has completed but whose result hasn't been taken yet.
    pub(crate) fn has_done(&self) -> bool {
        self.slots.first_done().is_some()
    }

    /// Takes the result of a slot if its I/O has completed. The slot becomes idle again, but keeps
    /// its payload and its item.
    pub(crate) fn take(&mut self, slot: usize) -> Option<Outcome> {
        let outcome = self.slots.take(slot)?;
        self.idle.push(slot);
        Some(outcome)
    }

    /// Takes the result of any I/O that has completed.
    pub(crate) fn take_any(&mut self) -> Option<(usize, Outcome)> {
        let slot = self.slots.first_done()?;
        Some((slot, self.take(slot)?))
    }

    /// Waits for a slot's I/O and takes its result.
    pub(crate) fn wait(
        &mut self,
        session: &mut Session,
        waiting: &mut Waiting<'_, '_>,
        slot: usize,
    ) -> Poll<Result<Outcome, Cancelled>> {
        let outcome = waiting.for_slot(session, &mut self.slots, slot);
        if matches!(outcome, Poll::Ready(Ok(_))) {
            self.idle.push(slot);
        }
        outcome
    }

    /// Waits until any I/O has completed, and takes its result.
    pub(crate) fn wait_any(
        &mut self,
        session: &mut Session,
        waiting: &mut Waiting<'_, '_>,
    ) -> Poll<Result<(usize, Outcome), Cancelled>> {
        let ended = waiting.for_any_slot(session, &mut self.slots);
        if let Poll::Ready(Ok((slot, _))) = ended {
            self.idle.push(slot);
        }
        ended
    }

    /// Sleeps until any I/O has completed, and takes its result.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn sleep_any(
        &mut self,
        session: &mut Session,
    ) -> Result<(usize, Outcome), Cancelled> {
        slept(self.wait_any(session, &mut Waiting::Sleep))
    }

    /// Sleeps until `count` I/Os have completed, or all of them if fewer are in flight. Doesn't
    /// take any results.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn sleep_some(&self, session: &mut Session, count: usize) -> Result<(), Cancelled> {
        session.wait_some(&self.slots, count)
    }
}
