//! Slot window: keeps a fixed number of I/Os in flight, with the issuer's data for each I/O.
//!
//! Streams, checkpoints and jobs all keep several I/Os in flight and continue with whichever
//! completes first. [`trunkline_aio::Slots`] stores the results. The window adds the issuer's data
//! for each I/O and a list of idle slots. PostgreSQL's `read_stream.c` has a queue of
//! `InProgressIO` entries for the same purpose, but always waits for the oldest I/O.
//!
//! A slot is idle until [`SlotWindow::issued`] is called, and then in flight until its result is
//! taken, even if its I/O has already completed. So an item is never overwritten before its result
//! has been processed. A wait that fails, because the session was cancelled, leaves the slot in
//! flight.
//!
//! ```text
//!   idle ──idle_slot, item──▶ define the I/O ──issued──▶ in flight ──take or wait──▶ idle
//! ```

use crate::waiting::{Waiting, slept};
use std::task::Poll;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Cancelled, Lease, Outcome, Payload, Session, Slots};

/// Result slots, with one item of the issuer's data for each slot.
#[derive(Debug)]
pub(crate) struct SlotWindow<P: Payload, T> {
    slots: Slots<P>,
    items: Vec<T>,
    /// Used as a stack, because the memory of the slot used last is most likely still in the
    /// processor's cache.
    idle: Vec<usize>,
}

impl<P: Payload, T: Default> SlotWindow<P, T> {
    /// A window of `count` idle slots, whose I/Os run these completion callbacks.
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

    /// Number of I/Os whose results haven't been taken yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.len() - self.idle.len()
    }

    /// Number of slots without an I/O.
    pub(crate) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// An idle slot, if there is one. It stays idle until [`SlotWindow::issued`] is called.
    pub(crate) fn idle_slot(&self) -> Option<usize> {
        self.idle.last().copied()
    }

    /// An idle slot, for a caller that has checked that there is one.
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

    /// The result slots, to issue an I/O with.
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
    /// If the slot is in flight, because the payload belongs to the I/O.
    pub(crate) fn payload(&mut self, slot: usize) -> &mut P {
        match self.slots.payload(slot) {
            Some(payload) => payload,
            None => unreachable!("slot {slot} is in flight"),
        }
    }

    /// The memory of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight, because the memory belongs to the I/O.
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

    /// The issuer's data of a slot, for changes.
    pub(crate) fn item_mut(&mut self, slot: usize) -> &mut T {
        &mut self.items[slot]
    }

    /// A slot's item together with the result slots, to issue an I/O that uses both.
    pub(crate) fn item_and_slots(&mut self, slot: usize) -> (&mut T, &mut Slots<P>) {
        (&mut self.items[slot], &mut self.slots)
    }

    /// Whether an I/O is complete whose result hasn't been taken yet.
    pub(crate) fn has_done(&self) -> bool {
        self.slots.first_done().is_some()
    }

    /// Takes a slot's result, if its I/O is complete. The slot becomes idle again, but keeps its
    /// payload and item.
    pub(crate) fn take(&mut self, slot: usize) -> Option<Outcome> {
        let outcome = self.slots.take(slot)?;
        self.idle.push(slot);
        Some(outcome)
    }

    /// Takes the result of any I/O that is complete.
    pub(crate) fn take_any(&mut self) -> Option<(usize, Outcome)> {
        let slot = self.slots.first_done()?;
        Some((slot, self.take(slot)?))
    }

    /// Waits for the I/O of a slot and takes its result.
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

    /// Waits until any I/O is complete, and takes its result.
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

    /// Sleeps until any I/O is complete, and takes its result.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn sleep_any(
        &mut self,
        session: &mut Session,
    ) -> Result<(usize, Outcome), Cancelled> {
        slept(self.wait_any(session, &mut Waiting::Sleep))
    }

    /// Sleeps until `count` I/Os are complete, or all I/Os in flight if there are fewer. Takes no
    /// results.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(crate) fn sleep_some(&self, session: &mut Session, count: usize) -> Result<(), Cancelled> {
        session.wait_some(&self.slots, count)
    }
}
