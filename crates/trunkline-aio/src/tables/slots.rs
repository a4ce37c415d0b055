//! Result slots: where an issuer gets the results of its I/O.
//!
//! Handles are scarce, so we must be able to reuse a handle as soon as its I/O completes, even if
//! the issuer never looks at the result. The completing thread therefore copies the result into a
//! slot that belongs to the issuer. A scan, a stream or a job owns one set of [`Slots`], and each
//! slot holds the memory, payload and result of one I/O at a time.
//!
//! ```text
//!   FREE --issue--> PENDING --completion--> DONE --take--> FREE
//! ```
//!
//! A pending slot belongs to its I/O. If the set is dropped while an I/O is pending, only the
//! result is discarded. The handles share ownership of the slot table, so its memory isn't freed
//! until the last I/O has completed.
//!
//! The issuer and its callbacks know the payload type, but the handles don't, because all issuers
//! share them. [`SlotTable`] is therefore not generic, and accesses payloads and callbacks through
//! the private trait `Contents`. This costs one virtual call per completion, but no allocation.
//!
//! PostgreSQL reports results through `PgAioReturn`, which points into the issuer's memory. That
//! works there because the issuer itself reclaims the handle.

use crate::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::limits::CALLBACKS_MAX;
use crate::lock_free::bitmap::Bitmap;
use crate::lock_free::outcome::{Outcome, Status};
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::storage::region::Lease;
use crate::tables::callback::{Callback, Completion, Payload, Weight};
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const FREE: u32 = 0;
const PENDING: u32 = 1;
const DONE: u32 = 2;

/// The I/O's description, as passed to completion callbacks.
#[derive(Clone, Copy)]
pub(crate) struct IoFacts<'a> {
    pub(crate) wait_ref: WaitRef,
    pub(crate) operation: Operation,
    pub(crate) file: &'a File,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// The part of a slot set that the issuer shares with its pending I/Os' handles.
pub(crate) struct SlotTable {
    slots: Box<[Slot]>,
    /// Slots in DONE. Only a hint; see [`SlotTable::publish`].
    done: Bitmap,
    /// Whether any callback is expensive.
    heavy: bool,
    /// Payloads and callbacks, behind a trait because their type isn't known here.
    contents: Arc<dyn Contents>,
}

/// One slot. Its `state` determines the owner. While the slot is PENDING, the owner is whichever
/// thread owns the I/O's handle; otherwise it is the issuer.
struct Slot {
    /// FREE, PENDING or DONE. The issuer makes a slot PENDING and later FREE; only the completing
    /// thread makes it DONE.
    state: AtomicU32,
    outcome: AtomicU64,
    /// The I/O's device time: how long the storage took to execute it.
    device_nanos: AtomicU64,
    /// The leases that the I/O reads into or writes from. They stay here while the slot is PENDING,
    /// so that dropping the set can't free memory the kernel is still using.
    memory: UnsafeCell<Vec<Lease>>,
}

// SAFETY: a slot's memory has only one owner at a time. While the slot is pending, that is
// whichever thread owns the handle (see the unsafe methods). Otherwise it is the issuer, which
// needs &mut Slots to access it.
unsafe impl Sync for SlotTable {}

impl fmt::Debug for SlotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotTable({} slots)", self.slots.len())
    }
}

impl SlotTable {
    /// Whether completing an I/O of this table is expensive (see [`Weight`]).
    pub(crate) fn is_heavy(&self) -> bool {
        self.heavy
    }

    /// Runs the completion callbacks on a raw outcome and returns the final outcome. If `by_frames`
    /// is set, the I/O was issued with frame numbers and did not use the slot's memory.
    ///
    /// # Safety
    /// The slot must be pending, and the caller must own its I/O's handle.
    pub(crate) unsafe fn complete(
        &self,
        slot: u32,
        io: IoFacts<'_>,
        by_frames: bool,
        outcome: Outcome,
    ) -> Outcome {
        // SAFETY: the caller owns the pending slot.
        let memory = unsafe { &mut *self.slots[slot as usize].memory.get() };
        let memory = if by_frames { &mut [] } else { &mut memory[..] };
        // SAFETY: the caller's promise.
        unsafe { self.contents.complete(slot as usize, io, memory, outcome) }
    }

    /// Stores the result. The issuer doesn't see it until [`SlotTable::publish`].
    pub(crate) fn store(&self, slot: u32, outcome: Outcome, device: Duration) {
        let slot = &self.slots[slot as usize];
        slot.outcome.store(outcome.pack(), Ordering::SeqCst);
        let nanos = u64::try_from(device.as_nanos()).unwrap_or(u64::MAX);
        slot.device_nanos.store(nanos, Ordering::SeqCst);
    }

    /// Returns the slot to the issuer. The completing thread must not touch it afterwards.
    pub(crate) fn publish(&self, slot: u32) {
        // Set the bit before the state. Once the state is DONE, the issuer may take the result and
        // free the slot, so a bit that we set afterwards could refer to a slot without a result. In
        // this order, the bit may be set before the slot is DONE, which is why `first_done`
        // rechecks the state of each slot it finds.
        self.done.insert(slot);
        let old = self.slots[slot as usize].state.swap(DONE, Ordering::SeqCst);
        assert_eq!(old, PENDING, "a result for a slot that has no I/O");
    }
}

/// The typed part of a slot set, as its non-generic table uses it.
trait Contents: Send + Sync {
    /// # Safety
    /// Either the slot must be pending and the caller must own the handle of its I/O, or the slot
    /// must not be pending and the caller must be its issuer.
    unsafe fn data_len(&self, slot: usize) -> usize;

    /// # Safety
    /// The slot must be pending, and the caller must own its I/O's handle.
    unsafe fn complete(
        &self,
        slot: usize,
        io: IoFacts<'_>,
        memory: &mut [Lease],
        outcome: Outcome,
    ) -> Outcome;

    /// Asks the callback at `level` to describe an outcome it decided.
    fn report(&self, level: usize, outcome: Outcome) -> Option<String>;
}

/// Payloads and callbacks of a set with payload type `P`.
struct TypedContents<P> {
    payloads: Box<[UnsafeCell<P>]>,
    callbacks: Vec<Arc<dyn Callback<P>>>,
}

// SAFETY: as in SlotTable, each payload has only one owner at a time. The owner may be on any
// thread, which is OK because P is Send.
unsafe impl<P: Send> Sync for TypedContents<P> {}

impl<P: Payload> Contents for TypedContents<P> {
    unsafe fn data_len(&self, slot: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { &*self.payloads[slot].get() }.data_len()
    }

    unsafe fn complete(
        &self,
        slot: usize,
        io: IoFacts<'_>,
        memory: &mut [Lease],
        mut outcome: Outcome,
    ) -> Outcome {
        let IoFacts { wait_ref, operation, file, offset, length } = io;
        // SAFETY: the caller's promise.
        let payload = unsafe { &mut *self.payloads[slot].get() };
        for (level, callback) in self.callbacks.iter().enumerate().rev() {
            // Each callback gets its own description of the I/O, so that it can't change the next
            // callback's description.
            let (memory, payload) = (&mut *memory, &mut *payload);
            let mut completion =
                Completion { wait_ref, operation, file, offset, length, memory, payload };
            let mut next = callback.complete(&mut completion, outcome);
            // The reporter is the last callback that changed the outcome, because only that
            // callback can describe it.
            next.reporter = if next == outcome { outcome.reporter } else { level as u8 + 1 };
            outcome = next;
        }
        outcome
    }

    fn report(&self, level: usize, outcome: Outcome) -> Option<String> {
        self.callbacks.get(level).and_then(|callback| callback.report(outcome))
    }
}

/// The non-generic part of [`Slots`], which sessions use to issue I/O and to wait.
pub(crate) struct SlotSet {
    table: Arc<SlotTable>,
    /// By slot: the I/O and the session that issued it, until its result is taken.
    issued: Vec<Option<(WaitRef, u32)>>,
    /// Number of slots in `issued` that are not `None`.
    pending: usize,
}

impl SlotSet {
    pub(crate) fn table(&self) -> &Arc<SlotTable> {
        &self.table
    }

    pub(crate) fn len(&self) -> usize {
        self.issued.len()
    }

    /// Number of slots issued with results not yet taken.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// Issued I/Os with results not yet taken, and their issuing sessions.
    pub(crate) fn issued(&self) -> &[Option<(WaitRef, u32)>] {
        &self.issued
    }

    /// Returns true if the slot belongs to an I/O. Once this has returned false, it keeps returning
    /// false until the issuer uses the slot again, because only the issuer can make a slot pending.
    fn is_pending(&self, slot: usize) -> bool {
        self.table.slots[slot].state.load(Ordering::SeqCst) == PENDING
    }

    pub(crate) fn is_done(&self, slot: usize) -> bool {
        self.table.slots[slot].state.load(Ordering::SeqCst) == DONE
    }

    /// Number of bits in `done`. During a completion it may count a slot that is not DONE yet.
    pub(crate) fn done_count(&self) -> usize {
        self.table.done.count()
    }

    pub(crate) fn first_done(&self) -> Option<usize> {
        self.table.done.iter().map(|slot| slot as usize).find(|&slot| self.is_done(slot))
    }

    pub(crate) fn memory(&mut self, slot: usize) -> Option<&mut Vec<Lease>> {
        if self.is_pending(slot) {
            return None;
        }
        // SAFETY: the slot is not pending, so it belongs to the issuer. Only the issuer can make it
        // pending again, and it can't do so while we hold `&mut self`.
        Some(unsafe { &mut *self.table.slots[slot].memory.get() })
    }

    /// [`Payload::data_len`] of the slot.
    pub(crate) fn data_len(&mut self, slot: usize) -> usize {
        if self.is_pending(slot) {
            return 0;
        }
        // SAFETY: as in `memory`.
        unsafe { self.table.contents.data_len(slot) }
    }

    /// Marks a slot pending for the I/O `io` of session `session`.
    ///
    /// # Panics
    /// If the slot is not free.
    pub(crate) fn begin(&mut self, slot: usize, io: WaitRef, session: u32) {
        let state = &self.table.slots[slot].state;
        let begun = state.compare_exchange(FREE, PENDING, Ordering::SeqCst, Ordering::SeqCst);
        assert!(begun.is_ok(), "slot {slot} has an I/O or a result that was not taken");
        self.issued[slot] = Some((io, session));
        self.pending += 1;
    }

    /// Takes the result of a slot that is DONE and frees the slot.
    pub(crate) fn take(&mut self, slot: usize) -> Option<Outcome> {
        if !self.is_done(slot) {
            return None;
        }
        let cell = &self.table.slots[slot];
        let outcome = Outcome::unpack(cell.outcome.load(Ordering::SeqCst));
        self.table.done.remove(slot as u32);
        cell.state.store(FREE, Ordering::SeqCst);
        self.issued[slot] = None;
        self.pending -= 1;
        Some(outcome)
    }
}

/// A set of result slots. Each slot holds one I/O's memory, payload and result at a time.
///
/// A slot is free until an I/O is issued with it, pending until that I/O completes, and done until
/// the issuer takes the result. If the set is dropped, only the results are discarded. The memory
/// of a pending slot stays with its I/O.
///
/// `P` is the data that the set's callbacks need for each I/O. A set without callbacks uses the
/// default, `()`.
///
/// # Panics
/// Every function that takes a slot number, here and in [`crate::Session`], panics if the set
/// doesn't have that slot.
pub struct Slots<P: Payload = ()> {
    // This field must be dropped before the `set` field. That way, the thread that drops the last
    // reference to the table also drops the last reference to the callbacks, so a completing thread
    // can defer both.
    contents: Arc<TypedContents<P>>,
    set: SlotSet,
}

impl<P: Payload> fmt::Debug for Slots<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slots({}, {} pending)", self.len(), self.pending())
    }
}

impl Slots {
    /// A set of `count` free slots without callbacks.
    pub fn new(count: usize) -> Self {
        Self::with_callbacks(count, Vec::new())
    }
}

impl<P: Payload> Slots<P> {
    /// A set of `count` free slots whose callbacks run for every I/O; the last one runs first.
    ///
    /// # Panics
    /// If there are more than four callbacks.
    pub fn with_callbacks(count: usize, callbacks: Vec<Arc<dyn Callback<P>>>) -> Self {
        assert!(callbacks.len() <= CALLBACKS_MAX, "at most {CALLBACKS_MAX} callbacks");
        let slot = |_| Slot {
            state: AtomicU32::new(FREE),
            outcome: AtomicU64::new(0),
            device_nanos: AtomicU64::new(0),
            memory: UnsafeCell::default(),
        };
        let heavy = callbacks.iter().any(|callback| callback.weight() == Weight::Heavy);
        let payloads = (0..count).map(|_| UnsafeCell::default()).collect();
        let contents = Arc::new(TypedContents { payloads, callbacks });
        let table = SlotTable {
            slots: (0..count).map(slot).collect(),
            done: Bitmap::new(count),
            heavy,
            contents: Arc::clone(&contents) as Arc<dyn Contents>,
        };
        let set = SlotSet { table: Arc::new(table), issued: vec![None; count], pending: 0 };
        Self { contents, set }
    }

    pub(crate) fn set(&self) -> &SlotSet {
        &self.set
    }

    pub(crate) fn set_mut(&mut self) -> &mut SlotSet {
        &mut self.set
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether the set has no slots.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of issued slots with results not yet taken.
    pub fn pending(&self) -> usize {
        self.set.pending()
    }

    /// A slot that is neither issued nor waiting for its result to be taken.
    pub fn free_slot(&self) -> Option<usize> {
        self.set.issued.iter().position(Option::is_none)
    }

    /// The memory of a slot; `None` while its I/O is pending.
    pub fn memory(&mut self, slot: usize) -> Option<&mut Vec<Lease>> {
        self.set.memory(slot)
    }

    /// The payload of a slot; `None` while its I/O is pending.
    pub fn payload(&mut self, slot: usize) -> Option<&mut P> {
        if self.set.is_pending(slot) {
            return None;
        }
        // SAFETY: the slot is not pending, so it belongs to the issuer. Only the issuer can make it
        // pending again, and it can't do so while we hold `&mut self`.
        Some(unsafe { &mut *self.contents.payloads[slot].get() })
    }

    /// Whether a slot's I/O is complete but its result hasn't been taken yet.
    pub fn is_done(&self, slot: usize) -> bool {
        self.set.is_done(slot)
    }

    /// Number of slots that are done but not yet taken.
    pub fn done_count(&self) -> usize {
        self.set.done_count()
    }

    /// Returns any slot that is done.
    pub fn first_done(&self) -> Option<usize> {
        self.set.first_done()
    }

    /// The reference to a slot's I/O, until its result is taken.
    pub fn wait_ref(&self, slot: usize) -> Option<WaitRef> {
        self.set.issued[slot].map(|(io, _)| io)
    }

    /// Takes the result of a done slot, and frees the slot; `None` if the slot is not done.
    pub fn take(&mut self, slot: usize) -> Option<Outcome> {
        self.set.take(slot)
    }

    /// Device time of the slot's last I/O; zero if there was none.
    pub fn device_time(&self, slot: usize) -> Duration {
        Duration::from_nanos(self.set.table.slots[slot].device_nanos.load(Ordering::SeqCst))
    }

    /// Describes an outcome other than success, with the text of the callback that decided it or
    /// the errno's text.
    pub fn describe(&self, outcome: Outcome) -> String {
        if let Some(level) = usize::from(outcome.reporter).checked_sub(1)
            && let Some(text) = self.contents.report(level, outcome)
        {
            return text;
        }
        match outcome.status {
            Status::Error => std::io::Error::from_raw_os_error(outcome.detail as i32).to_string(),
            Status::Partial => format!("only {} bytes transferred", outcome.count),
            status => status.name().to_lowercase(),
        }
    }
}
