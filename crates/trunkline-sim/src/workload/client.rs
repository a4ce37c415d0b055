//! A client of a random I/O workload: chooses its next step, and checks every outcome.
//!
//! ```text
//!   step: issue a batch | issue one | wait one | wait any | poll | join another's I/O
//!         | give up slots | cancel itself | leak a handle | new session | switch the method
//! ```
//! If all of a client's slots are in use, it first waits for one of them, so it always makes
//! progress.

use super::shared::{Counts, Shared};
use crate::block_model::{BLOCK, Baseline, content};
use crate::clients::client_seed;
use crate::matrix::io::PassThrough;
use crate::waker::block_on;
use std::future::poll_fn;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::{
    Aio, CLASSES, Cancelled, Class, Operation, Outcome, Payload, Session, Slots, Weight,
};

/// Number of slots per client.
const SLOTS: usize = 8;
/// Maximum number of blocks per I/O. An I/O that spans several blocks uses either a single buffer
/// for all of them, or a separate buffer for each block.
const COMBINED_MAX: u32 = 4;

/// A slot's I/O, and the data needed to check its outcome.
#[derive(Debug, Clone)]
struct Issued {
    operation: Operation,
    file: usize,
    first: u32,
    /// Each block's state when the I/O was issued.
    baselines: Vec<Baseline>,
    /// The session that issued it. When the client replaces its session, the slot outlives its
    /// issuer.
    session: u32,
}

/// A client, which has at most one session at a time.
pub(super) struct Client {
    aio: Aio,
    shared: Arc<Shared>,
    number: u32,
    rng: Rng,
    session: Option<Session>,
    slots: Slots,
    issued: [Option<Issued>; SLOTS],
    counts: Counts,
}

impl Client {
    pub(super) fn new(aio: Aio, shared: Arc<Shared>, number: u32) -> Self {
        let mut rng = Rng::new(client_seed(shared.workload.seed, number));
        let slots = some_slots(&mut rng);
        Self {
            aio,
            shared,
            number,
            rng,
            session: None,
            slots,
            issued: Default::default(),
            counts: Counts::default(),
        }
    }

    pub(super) fn run(mut self) {
        for _ in 0..self.shared.workload.steps {
            self.step();
        }
        while self.slots.pending() > 0 {
            self.wait_any();
        }
        let mut total = self.shared.counts.lock();
        total.issued += self.counts.issued;
        total.taken += self.counts.taken;
        total.abandoned += self.counts.abandoned;
    }

    /// Performs one random step. A step needs a free slot, so the client may first have to wait for
    /// an I/O.
    fn step(&mut self) {
        if self.slots.free_slot().is_none() {
            self.wait_any();
        }
        match self.rng.below(16) {
            0..=4 => self.issue_batch(),
            5 | 6 => self.issue_one(),
            7 => self.wait_one(),
            8 | 9 => self.wait_any(),
            10 => self.poll_one(),
            11 => self.join_another(),
            12 => self.give_up(),
            13 => self.cancel(),
            14 => self.leak(),
            _ => self.change(),
        }
    }

    /// Returns the client's session, opening a new session if necessary.
    fn session(&mut self) -> Option<&mut Session> {
        if self.session.is_none() {
            self.session = self.aio.session().ok();
        }
        self.session.as_mut()
    }

    /// Calls `body` with the client's session. We take the session out of the client for the
    /// duration of the call, because `body` needs mutable access to both. Returns `None` if no
    /// session can be opened.
    fn with_session<R>(&mut self, body: impl FnOnce(&mut Self, &mut Session) -> R) -> Option<R> {
        self.session()?;
        let mut session = self.session.take()?;
        let result = body(self, &mut session);
        self.session = Some(session);
        Some(result)
    }

    /// Stages a random number of I/Os. Dropping the batch submits them together.
    fn issue_batch(&mut self) {
        let count = 1 + self.rng.below(SLOTS as u64);
        self.with_session(|client, session| {
            let mut batch = session.batch();
            for _ in 0..count {
                if client.slots.free_slot().is_some() {
                    client.issue(&mut batch, false);
                }
            }
        });
    }

    /// Issues a single I/O. Half of these I/Os are marked as needed immediately, which lets the
    /// session execute them itself.
    fn issue_one(&mut self) {
        self.with_session(|client, session| {
            let needed = client.rng.below(2) == 0;
            client.issue(session, needed);
        });
    }

    /// Acquires a handle and defines an I/O on it. If there is no I/O to issue, we drop the handle
    /// without using it. This is one of the kinds of misuse that we want to test.
    fn issue(&mut self, session: &mut Session, needed: bool) {
        let Some(slot) = self.slots.free_slot() else { return };
        let class = CLASSES[self.rng.below(CLASSES.len() as u64) as usize];
        let file = self.rng.below(self.shared.files.len() as u64) as usize;
        // If no handle is free, some clients wait and others don't.
        let id = session.id();
        let io = match self.rng.below(4) {
            0 => session.try_acquire(class),
            _ => session.acquire(class).ok(),
        };
        let Some(mut io) = io else { return };
        if needed {
            io = io.needed_now();
        }
        // Publish the wait reference before defining the I/O, so that another client may also try
        // to join a handle that we end up dropping unused.
        self.shared.published.publish(io.wait_ref());
        let Some(plan) = self.plan(file, slot, id) else { return };
        let target = self.shared.files[file].clone();
        let offset = u64::from(plan.first) * BLOCK as u64;
        let length = (plan.baselines.len() * BLOCK) as u32;
        let defined = match plan.operation {
            Operation::Readv => io.read(&target, offset, length, &mut self.slots, slot),
            Operation::Writev => io.write(&target, offset, length, &mut self.slots, slot),
            Operation::Fsync => Ok(io.fsync(&target, &mut self.slots, slot)),
            Operation::Fdatasync => Ok(io.fdatasync(&target, &mut self.slots, slot)),
            Operation::BeginWriteback => {
                Ok(io.begin_writeback(&target, 0, 0, &mut self.slots, slot))
            }
        };
        assert!(defined.is_ok(), "the slot has memory for {plan:?}");
        self.counts.issued += 1;
        self.issued[slot] = Some(plan);
    }

    /// Chooses an I/O for a slot, and attaches memory to the slot. Returns `None` if the chosen
    /// blocks are already in use, or if no frames are free.
    fn plan(&mut self, file: usize, slot: usize, session: u32) -> Option<Issued> {
        let operation = match self.rng.below(9) {
            0..=3 => Operation::Readv,
            4..=5 => Operation::Writev,
            6 => Operation::Fsync,
            7 => Operation::Fdatasync,
            _ => Operation::BeginWriteback,
        };
        if !matches!(operation, Operation::Readv | Operation::Writev) {
            return Some(Issued { operation, file, first: 0, baselines: Vec::new(), session });
        }
        let (first, count) = self.blocks(operation, file)?;
        let region = self.aio.region().clone();
        // Use one buffer for all blocks, or one buffer per block.
        let pieces = if self.rng.below(2) == 0 { 1 } else { count };
        let memory = self.slots.memory(slot)?;
        memory.clear();
        for _ in 0..pieces {
            memory.push(region.lease(count / pieces)?);
        }
        let (id, model) = (file as u32, &self.shared.model);
        let baselines = (first..first + count).map(|block| model.baseline(id, block)).collect();
        if operation == Operation::Writev {
            let versions: Vec<u32> =
                (first..first + count).filter_map(|block| model.begin(id, block)).collect();
            let mut bytes = (first..).zip(versions).flat_map(|(block, v)| content(id, block, v));
            for lease in memory.iter_mut() {
                lease.iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = from);
            }
        }
        Some(Issued { operation, file, first, baselines, session })
    }

    /// Chooses blocks this client may use now, or returns `None`. Clients write only their own
    /// blocks.
    fn blocks(&mut self, operation: Operation, file: usize) -> Option<(u32, u32)> {
        let workload = self.shared.workload;
        let per_client = workload.blocks / workload.clients;
        let write = operation == Operation::Writev;
        let whose = match write || !workload.share {
            true => self.number,
            false => self.rng.below(u64::from(workload.clients)) as u32,
        };
        let at = self.rng.below(u64::from(per_client)) as u32;
        let count = 1 + self.rng.below(u64::from(COMBINED_MAX.min(per_client - at))) as u32;
        let first = whose * per_client + at;
        // The model records only one version per block, so a client's write must not overlap any
        // other I/O that the client has in flight. Its reads may overlap each other, and they may
        // overlap other clients' writes.
        let busy = self.issued.iter().flatten().any(|other| {
            let touches =
                other.first < first + count && first < other.first + other.baselines.len() as u32;
            other.file == file && touches && (write || other.operation == Operation::Writev)
        });
        let abandoned =
            (first..first + count).any(|block| self.shared.model.is_abandoned(file as u32, block));
        (!busy && !(abandoned && (write || !workload.share))).then_some((first, count))
    }

    /// Waits for a random slot with an I/O.
    fn wait_one(&mut self) {
        let issued: Vec<usize> = (0..SLOTS).filter(|&s| self.issued[s].is_some()).collect();
        if issued.is_empty() {
            return;
        }
        let slot = issued[self.rng.below(issued.len() as u64) as usize];
        self.wait_for(slot);
    }

    /// Waits for one slot. This also works if the client's earlier session issued the I/O.
    fn wait_for(&mut self, slot: usize) {
        self.with_session(|client, session| {
            session.clear_cancel();
            let outcome = session.wait(&mut client.slots, slot);
            client.finish(slot, outcome);
        });
    }

    /// Waits for any I/O. Sometimes it first waits for several I/Os together and checks that enough
    /// of them have completed.
    fn wait_any(&mut self) {
        if self.slots.pending() == 0 {
            return;
        }
        self.with_session(|client, session| {
            session.clear_cancel();
            let Self { slots, issued, rng, shared, .. } = client;
            // I/Os issued by an earlier session can only be waited for individually.
            let mine = issued.iter().flatten().all(|issued| issued.session == session.id());
            let result = if mine {
                let some = rng.below(4) as usize;
                match session.wait_some(slots, some) {
                    Ok(()) if slots.done_count() < some.min(slots.pending()) => {
                        shared.failure.record(format!("waited for {some}: {slots:?}"));
                    }
                    _ => {}
                }
                session.wait_any(slots)
            } else {
                let slot = issued.iter().position(Option::is_some).unwrap_or_default();
                session.wait(slots, slot).map(|outcome| (slot, outcome))
            };
            // Without an outcome, the slot doesn't matter.
            let (slot, outcome) = result.map_or((0, Err(Cancelled)), |(slot, o)| (slot, Ok(o)));
            client.finish(slot, outcome);
        });
    }

    /// Polls one slot until its I/O is done, as an async task would.
    fn poll_one(&mut self) {
        let Some(slot) = self.issued.iter().position(Option::is_some) else { return };
        self.with_session(|client, session| {
            session.clear_cancel();
            let outcome = poll_until_done(session, &mut client.slots, slot);
            client.finish(slot, outcome);
        });
    }

    /// Waits for another client's I/O. When the wait returns, the I/O must be complete, but the
    /// client that issued it may not have received the outcome yet.
    fn join_another(&mut self) {
        let Some(io) = self.shared.published.some(&mut self.rng) else { return };
        let Some(session) = self.session() else { return };
        session.clear_cancel();
        if session.join(io).is_err() || !session.is_complete(io) {
            self.shared.failure.record(format!("{io:?} was joined and is not complete"));
        }
    }

    /// Drops all slots while their I/Os are still in flight. The memory must stay allocated until
    /// each I/O has completed, and the handles must be freed even though the issuer takes no
    /// further action.
    fn give_up(&mut self) {
        for issued in self.issued.iter_mut().filter_map(Option::take) {
            if issued.operation == Operation::Writev {
                for block in issued.first..issued.first + issued.baselines.len() as u32 {
                    self.shared.model.abandoned(issued.file as u32, block);
                }
            }
            self.counts.abandoned += 1;
        }
        self.slots = some_slots(&mut self.rng);
    }

    /// Cancels the session and then waits. The wait must return, with or without the outcome.
    fn cancel(&mut self) {
        self.with_session(|client, session| {
            session.canceller().cancel();
            let Some(slot) = client.issued.iter().position(Option::is_some) else { return };
            let outcome = session.wait(&mut client.slots, slot);
            session.clear_cancel();
            if outcome.is_ok() {
                client.finish(slot, outcome);
            }
        });
    }

    /// Leaks a handle with `mem::forget`, which safe Rust allows. Half of the time, the session
    /// then ends its scope, which must report the leak. Otherwise, the session must recover the
    /// handle later.
    fn leak(&mut self) {
        let Some(session) = self.session() else { return };
        session.clear_cancel();
        std::mem::forget(session.acquire(Class::LookAhead));
        if self.rng.below(2) == 0
            && let Some(session) = self.session()
            && !session.end_scope().handed_out
        {
            self.shared.failure.record("a leaked handle was not noticed".into());
        }
    }

    /// Replaces the session, or switches the instance's I/O method.
    fn change(&mut self) {
        let methods = self.shared.workload.methods;
        if methods.is_empty() || self.rng.below(2) == 0 {
            self.session = None;
        } else {
            let method = methods[self.rng.below(methods.len() as u64) as usize];
            self.aio.set_method(method);
        }
    }

    /// Checks an outcome and updates the model. After a short or failed write, the contents of its
    /// blocks are uncertain.
    fn finish(&mut self, slot: usize, outcome: Result<Outcome, Cancelled>) {
        let Ok(outcome) = outcome else {
            self.shared.failure.record("cancelled without a cancel".into());
            return;
        };
        self.counts.taken += 1;
        let Some(issued) = self.issued[slot].take() else {
            self.shared.failure.record(format!("an outcome of slot {slot}, which has no I/O"));
            return;
        };
        let (file, whole) = (issued.file as u32, (issued.baselines.len() * BLOCK) as u32);
        let model = &self.shared.model;
        match issued.operation {
            Operation::Writev => {
                for block in issued.first..issued.first + issued.baselines.len() as u32 {
                    match outcome.count == whole {
                        true => model.done(file, block),
                        false => model.failed(file, block),
                    }
                }
            }
            Operation::Readv => self.check_read(&issued, slot, outcome),
            Operation::Fsync | Operation::Fdatasync | Operation::BeginWriteback => {}
        }
    }

    /// Compares each block returned by a read with the model. Afterwards, takes the memory out of
    /// the slot, so that the frames go back to their region.
    fn check_read(&mut self, issued: &Issued, slot: usize, outcome: Outcome) {
        let memory = self.slots.memory(slot).map(std::mem::take).unwrap_or_default();
        let mut bytes: Vec<u8> = memory.iter().flat_map(|lease| lease.iter().copied()).collect();
        bytes.truncate(outcome.count as usize);
        for ((block, baseline), found) in
            (issued.first..).zip(&issued.baselines).zip(bytes.chunks(BLOCK))
        {
            if !self.shared.model.allows_since(*baseline, issued.file as u32, block, found) {
                let text = format!(
                    "file {} block {block}: {:?}, {baseline:?}, read by client {}",
                    issued.file,
                    &found[..found.len().min(16)],
                    self.number
                );
                self.shared.failure.record(text);
            }
        }
    }
}

/// Slots with a light or a heavy callback, chosen at random. A heavy callback takes a different
/// completion path.
fn some_slots(rng: &mut Rng) -> Slots {
    let weight = if rng.below(2) == 0 { Weight::Light } else { Weight::Heavy };
    Slots::with_callbacks(SLOTS, vec![Arc::new(PassThrough(weight))])
}

/// Polls a slot until its I/O is done, sleeping between polls.
///
/// # Errors
/// If the session was cancelled.
pub fn poll_until_done<P: Payload>(
    session: &mut Session,
    slots: &mut Slots<P>,
    slot: usize,
) -> Result<Outcome, Cancelled> {
    let mut wait = session.polled_wait();
    block_on(poll_fn(|context| session.poll(context, &mut wait, slots, slot)))
}
