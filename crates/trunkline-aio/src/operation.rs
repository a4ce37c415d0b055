//! Result slots owned by the issuer.
//!
//! A set of [`Operations`] belongs to a scan, a stream or a job: a fixed number of slots, each with
//! the memory, the data words and the result of one I/O. The handle that carries an I/O out is
//! freed by whoever completes it, so an issuer that looks away holds no handle; its result waits
//! here. While a slot is pending it belongs to the I/O: dropping the set gives up the results, not
//! the memory, which the I/O keeps until it is complete.
//!
//! ```text
//!   FREE --issue--> PENDING --completer--> DONE --take--> FREE
//! ```

use crate::bitmap::Bitmap;
use crate::callback::{Callback, Weight};
use crate::limits::CALLBACKS_MAX;
use crate::outcome::{Outcome, Status};
use crate::region::Lease;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::wait::WaitRef;
use std::cell::UnsafeCell;
use std::fmt;
use std::time::Duration;

const FREE: u32 = 0;
const PENDING: u32 = 1;
const DONE: u32 = 2;

/// The part of the slots that handles share.
pub(crate) struct Table {
    slots: Box<[Slot]>,
    pub(crate) callbacks: Vec<Arc<dyn Callback>>,
    pub(crate) heavy: bool,
    done: Bitmap,
}

struct Slot {
    state: AtomicU32,
    outcome: AtomicU64,
    device_nanos: AtomicU64,
    body: UnsafeCell<SlotBody>,
}

#[derive(Debug, Default)]
pub(crate) struct SlotBody {
    pub(crate) memory: Vec<Lease>,
    pub(crate) data: Vec<u64>,
}

// SAFETY: a slot's body is touched by the issuer only while the slot is not pending, through
// &mut Operations, and by the one claimer of the handle only while it is (see `body`).
unsafe impl Sync for Table {}

impl Table {
    /// The body of a pending slot.
    ///
    /// # Safety
    /// The caller must be the owner of the handle that carries the slot's I/O (its issuer before
    /// submission, its claimer after), and hold no other reference to this body.
    #[expect(clippy::mut_from_ref, reason = "exclusive by the handle's state, not by a borrow")]
    pub(crate) unsafe fn body(&self, slot: u32) -> &mut SlotBody {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.slots[slot as usize].body.get() }
    }

    /// Completer: stores the result, not yet visible as done.
    pub(crate) fn store(&self, slot: u32, outcome: Outcome, device: Duration) {
        let slot = &self.slots[slot as usize];
        slot.outcome.store(outcome.pack(), Ordering::SeqCst);
        let nanos = u64::try_from(device.as_nanos()).unwrap_or(u64::MAX);
        slot.device_nanos.store(nanos, Ordering::SeqCst);
    }

    /// Completer: gives the slot back to the issuer. The completer must not touch it afterwards.
    pub(crate) fn publish(&self, slot: u32) {
        // First the bit, which `first_done` does not trust alone: as soon as the state says DONE the
        // issuer may take the result, and a bit set after that would name a slot that has none.
        self.done.insert(slot);
        let old = self.slots[slot as usize].state.swap(DONE, Ordering::SeqCst);
        assert_eq!(old, PENDING, "a result for a slot that has no I/O");
    }
}

/// Result slots of one issuer: each has the memory, the data words and the result of one I/O at a time.
///
/// A slot is free until an I/O is issued with it, pending until that is complete, and done until its
/// result is taken. Dropping the set gives up the results only: the memory of a pending slot stays
/// with its I/O.
///
/// # Panics
/// Whatever takes the number of a slot, here and in [`crate::Session`], panics if there is none of
/// that number.
pub struct Operations {
    pub(crate) table: Arc<Table>,
    pub(crate) refs: Vec<Option<(WaitRef, u32)>>,
    pending: usize,
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operations({} slots, {} pending)", self.refs.len(), self.pending)
    }
}

impl Operations {
    /// `slots` free slots; `callbacks` apply to every I/O, the last one runs first.
    ///
    /// # Panics
    /// If there are more than four callbacks.
    pub fn new(slots: usize, callbacks: Vec<Arc<dyn Callback>>) -> Self {
        assert!(callbacks.len() <= CALLBACKS_MAX, "at most {CALLBACKS_MAX} callbacks");
        let heavy = callbacks.iter().any(|c| c.weight() == Weight::Heavy);
        let table = Table {
            slots: (0..slots)
                .map(|_| Slot {
                    state: AtomicU32::new(FREE),
                    outcome: AtomicU64::new(0),
                    device_nanos: AtomicU64::new(0),
                    body: UnsafeCell::default(),
                })
                .collect(),
            callbacks,
            heavy,
            done: Bitmap::new(slots),
        };
        Self { table: Arc::new(table), refs: vec![None; slots], pending: 0 }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.refs.len()
    }

    /// Whether there are no slots.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }

    /// Slots issued and not yet taken.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// A slot that is neither issued nor waiting to be taken.
    pub fn free_slot(&self) -> Option<usize> {
        self.refs.iter().position(Option::is_none)
    }

    /// The memory of a slot; `None` while its I/O is under way.
    pub fn memory(&mut self, slot: usize) -> Option<&mut Vec<Lease>> {
        self.idle_body(slot).map(|body| &mut body.memory)
    }

    /// The data words of a slot; `None` while its I/O is under way.
    pub fn data(&mut self, slot: usize) -> Option<&mut Vec<u64>> {
        self.idle_body(slot).map(|body| &mut body.data)
    }

    fn idle_body(&mut self, slot: usize) -> Option<&mut SlotBody> {
        let cell = &self.table.slots[slot];
        if cell.state.load(Ordering::SeqCst) == PENDING {
            return None;
        }
        // SAFETY: not pending, so no handle owns the slot; only the issuer can make it pending,
        // and that is us, by &mut self.
        Some(unsafe { &mut *cell.body.get() })
    }

    /// Whether the slot's I/O is complete and its result not yet taken.
    pub fn is_done(&self, slot: usize) -> bool {
        self.table.slots[slot].state.load(Ordering::SeqCst) == DONE
    }

    /// Slots done and not yet taken.
    pub fn done_count(&self) -> usize {
        self.table.done.count()
    }

    /// Some slot that is done.
    pub fn first_done(&self) -> Option<usize> {
        self.table.done.find(|slot| self.is_done(slot as usize)).map(|slot| slot as usize)
    }

    /// The reference to the I/O that a slot carries, until its result is taken.
    pub fn wait_ref(&self, slot: usize) -> Option<WaitRef> {
        self.refs[slot].map(|(io, _)| io)
    }

    /// Takes the result of a slot that is done, and frees the slot; `None` if it is not done.
    pub fn take(&mut self, slot: usize) -> Option<Outcome> {
        if !self.is_done(slot) {
            return None;
        }
        let cell = &self.table.slots[slot];
        let outcome = Outcome::unpack(cell.outcome.load(Ordering::SeqCst));
        self.table.done.remove(slot as u32);
        cell.state.store(FREE, Ordering::SeqCst);
        self.refs[slot] = None;
        self.pending -= 1;
        Some(outcome)
    }

    /// How long the storage took for the I/O that the slot carried last; zero if there was none.
    pub fn device_time(&self, slot: usize) -> Duration {
        Duration::from_nanos(self.table.slots[slot].device_nanos.load(Ordering::SeqCst))
    }

    /// The text for an outcome of these operations that is no success: the deciding callback's, else
    /// the errno's.
    pub fn describe(&self, outcome: Outcome) -> String {
        if let Some(level) = usize::from(outcome.reporter).checked_sub(1)
            && let Some(text) = self.table.callbacks.get(level).and_then(|c| c.report(outcome))
        {
            return text;
        }
        match outcome.status {
            Status::Error => std::io::Error::from_raw_os_error(outcome.detail as i32).to_string(),
            Status::Partial => format!("only {} bytes transferred", outcome.count),
            status => status.name().to_lowercase(),
        }
    }

    /// Marks a slot pending for the I/O `io` of session `session`.
    ///
    /// # Panics
    /// If the slot is not free.
    pub(crate) fn begin(&mut self, slot: usize, io: WaitRef, session: u32) {
        let state = &self.table.slots[slot].state;
        let begun = state.compare_exchange(FREE, PENDING, Ordering::SeqCst, Ordering::SeqCst);
        assert!(begun.is_ok(), "slot {slot} has an I/O or a result that was not taken");
        self.refs[slot] = Some((io, session));
        self.pending += 1;
    }
}
