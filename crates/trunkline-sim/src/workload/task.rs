//! One task of a random workload: what it does next, and what it expects of every outcome.
//!
//! ```text
//!   step: issue a batch | issue one | wait one | wait any | poll | join another's | give up slots
//!         | cancel itself | forget a handle | another session | switch the method
//! ```
//! A step that finds its slots full waits for one first, so a task always gets on.

use super::{Shared, Tally};
use crate::alarm::block_on;
use crate::checker::{BLOCK, Known, content};
use std::future::poll_fn;
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{
    Aio, CLASSES, Callback, Cancelled, Class, Completion, Operation, Outcome, Payload, Session,
    Slots, WaitRef, Weight,
};

/// Slots of a task.
const SLOTS: usize = 8;
/// Blocks of one I/O at most.
const COMBINED_MAX: u32 = 4;

/// References to I/Os that a task shows to the others.
#[derive(Debug, Default)]
pub(super) struct Published(Mutex<Vec<WaitRef>>);

impl Published {
    fn show(&self, io: WaitRef) {
        let mut shown = self.0.lock();
        shown.push(io);
        let excess = shown.len().saturating_sub(8);
        shown.drain(..excess);
    }

    fn some(&self, rng: &mut Rng) -> Option<WaitRef> {
        let shown = self.0.lock();
        shown.get(rng.below(shown.len() as u64) as usize).copied()
    }
}

/// What a slot was issued for.
#[derive(Debug, Clone)]
struct Issued {
    operation: Operation,
    file: usize,
    first: u32,
    known: Vec<Known>,
    session: u32,
}

/// A callback that changes nothing; heavy ones go another way to completion than light ones.
struct Bystander(Weight);

impl Callback for Bystander {
    fn name(&self) -> &'static str {
        "bystander"
    }
    fn weight(&self) -> Weight {
        self.0
    }
    fn complete(&self, _io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        prior
    }
}

pub(super) struct Task {
    aio: Aio,
    shared: Arc<Shared>,
    number: u32,
    rng: Rng,
    session: Option<Session>,
    slots: Slots,
    issued: [Option<Issued>; SLOTS],
    tally: Tally,
}

impl Task {
    pub(super) fn new(aio: Aio, shared: Arc<Shared>, number: u32) -> Self {
        let seed = shared.workload.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number));
        let mut rng = Rng::new(seed);
        let slots = some_slots(&mut rng);
        Self {
            aio,
            shared,
            number,
            rng,
            session: None,
            slots,
            issued: Default::default(),
            tally: Tally::default(),
        }
    }

    pub(super) fn run(mut self) {
        for _ in 0..self.shared.workload.steps {
            self.step();
        }
        while self.slots.pending() > 0 {
            self.wait_any();
        }
        let mut total = self.shared.tally.lock();
        total.issued += self.tally.issued;
        total.taken += self.tally.taken;
        total.abandoned += self.tally.abandoned;
    }

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
            14 => self.forget(),
            _ => self.change(),
        }
    }

    /// The task's session, a new one if it has none.
    fn session(&mut self) -> Option<&mut Session> {
        if self.session.is_none() {
            self.session = self.aio.session().ok();
        }
        self.session.as_mut()
    }

    fn issue_batch(&mut self) {
        let count = 1 + self.rng.below(SLOTS as u64);
        let Some(mut session) = self.session().map(|_| ()).and_then(|()| self.session.take())
        else {
            return;
        };
        {
            let mut batch = session.batch();
            for _ in 0..count {
                if self.slots.free_slot().is_some() {
                    self.issue(&mut batch, false);
                }
            }
        }
        self.session = Some(session);
    }

    fn issue_one(&mut self) {
        if self.session().is_none() {
            return;
        }
        let Some(mut session) = self.session.take() else { return };
        let needed = self.rng.below(2) == 0;
        self.issue(&mut session, needed);
        self.session = Some(session);
    }

    fn issue(&mut self, session: &mut Session, needed: bool) {
        let Some(slot) = self.slots.free_slot() else { return };
        let class = CLASSES[self.rng.below(CLASSES.len() as u64) as usize];
        let file = self.rng.below(self.shared.files.len() as u64) as usize;
        // A full table is no reason to sleep every time.
        let id = session.id();
        let io = match self.rng.below(4) {
            0 => session.try_acquire(class),
            _ => session.acquire(class).ok(),
        };
        let Some(mut io) = io else { return };
        if needed {
            io = io.needed_now();
        }
        self.shared.published.show(io.wait_ref());
        let Some(plan) = self.plan(file, slot, id) else { return };
        let target = self.shared.files[file].clone();
        let offset = u64::from(plan.first) * BLOCK as u64;
        let length = (plan.known.len() * BLOCK) as u32;
        let defined = match plan.operation {
            Operation::Readv => io.read(&target, offset, length, &mut self.slots, slot).is_ok(),
            Operation::Writev => io.write(&target, offset, length, &mut self.slots, slot).is_ok(),
            Operation::Fsync => {
                io.fsync(&target, &mut self.slots, slot);
                true
            }
            Operation::Fdatasync => {
                io.fdatasync(&target, &mut self.slots, slot);
                true
            }
            Operation::BeginWriteback => {
                io.begin_writeback(&target, 0, 0, &mut self.slots, slot);
                true
            }
        };
        assert!(defined, "the slot has memory for {plan:?}");
        self.tally.issued += 1;
        self.issued[slot] = Some(plan);
    }

    /// Chooses what to do with the slot and puts memory into it; `None` if there is no memory.
    fn plan(&mut self, file: usize, slot: usize, session: u32) -> Option<Issued> {
        let operation = match self.rng.below(9) {
            0..=3 => Operation::Readv,
            4..=5 => Operation::Writev,
            6 => Operation::Fsync,
            7 => Operation::Fdatasync,
            _ => Operation::BeginWriteback,
        };
        if !matches!(operation, Operation::Readv | Operation::Writev) {
            return Some(Issued { operation, file, first: 0, known: Vec::new(), session });
        }
        let (first, count) = self.blocks(operation, file)?;
        let region = self.aio.region().clone();
        // Of one piece, or of as many pieces as there are blocks.
        let pieces = if self.rng.below(2) == 0 { 1 } else { count };
        let memory = self.slots.memory(slot)?;
        memory.clear();
        for _ in 0..pieces {
            memory.push(region.lease(count / pieces)?);
        }
        let (id, ledger) = (file as u32, &self.shared.ledger);
        let known = (first..first + count).map(|block| ledger.known(id, block)).collect();
        if operation == Operation::Writev {
            let versions: Vec<u32> =
                (first..first + count).filter_map(|block| ledger.begin(id, block)).collect();
            let mut bytes = (first..).zip(versions).flat_map(|(block, v)| content(id, block, v));
            for lease in memory.iter_mut() {
                lease.iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = from);
            }
        }
        Some(Issued { operation, file, first, known, session })
    }

    /// Blocks that this task may touch now: of its own if it writes.
    fn blocks(&mut self, operation: Operation, file: usize) -> Option<(u32, u32)> {
        let workload = self.shared.workload;
        let per_task = workload.blocks / workload.tasks;
        let write = operation == Operation::Writev;
        let whose = match write || !workload.share {
            true => self.number,
            false => self.rng.below(u64::from(workload.tasks)) as u32,
        };
        let at = self.rng.below(u64::from(per_task)) as u32;
        let count = 1 + self.rng.below(u64::from(COMBINED_MAX.min(per_task - at))) as u32;
        let first = whose * per_task + at;
        // A write goes nowhere where another one of this task is under way, or was abandoned.
        let busy = self.issued.iter().flatten().any(|other| {
            let touches =
                other.first < first + count && first < other.first + other.known.len() as u32;
            other.file == file && touches && (write || other.operation == Operation::Writev)
        });
        let abandoned =
            (first..first + count).any(|block| self.shared.ledger.is_abandoned(file as u32, block));
        (!busy && !(abandoned && (write || !workload.share))).then_some((first, count))
    }

    fn wait_one(&mut self) {
        let issued: Vec<usize> = (0..SLOTS).filter(|&s| self.issued[s].is_some()).collect();
        if issued.is_empty() {
            return;
        }
        let slot = issued[self.rng.below(issued.len() as u64) as usize];
        self.wait_for(slot);
    }

    fn wait_for(&mut self, slot: usize) {
        let Some(session) = self.session() else { return };
        session.clear_cancel();
        let Some(mut session) = self.session.take() else { return };
        let outcome = session.wait(&mut self.slots, slot);
        self.session = Some(session);
        self.took(slot, outcome);
    }

    fn wait_any(&mut self) {
        if self.slots.pending() == 0 {
            return;
        }
        let Some(session) = self.session() else { return };
        session.clear_cancel();
        let Some(mut session) = self.session.take() else { return };
        // After a change of sessions the I/Os are another session's, and only waited for one by one.
        let mine = self.issued.iter().flatten().all(|issued| issued.session == session.id());
        let result = if mine {
            let some = self.rng.below(4) as usize;
            match session.wait_some(&self.slots, some) {
                Ok(()) if self.slots.done_count() < some.min(self.slots.pending()) => {
                    self.shared.find(format!("{some} were wanted, {:?} came", self.slots));
                }
                _ => {}
            }
            session.wait_any(&mut self.slots)
        } else {
            let slot = self.issued.iter().position(Option::is_some).unwrap_or_default();
            session.wait(&mut self.slots, slot).map(|outcome| (slot, outcome))
        };
        self.session = Some(session);
        match result {
            Ok((slot, outcome)) => self.took(slot, Ok(outcome)),
            Err(Cancelled) => self.shared.find("cancelled without a cancel".into()),
        }
    }

    fn poll_one(&mut self) {
        let Some(slot) = self.issued.iter().position(Option::is_some) else { return };
        let Some(session) = self.session() else { return };
        session.clear_cancel();
        let Some(mut session) = self.session.take() else { return };
        let outcome = poll_until_done(&mut session, &mut self.slots, slot);
        self.session = Some(session);
        self.took(slot, outcome);
    }

    fn join_another(&mut self) {
        let Some(io) = self.shared.published.some(&mut self.rng) else { return };
        let Some(session) = self.session() else { return };
        session.clear_cancel();
        if session.join(io).is_err() || !session.is_complete(io) {
            self.shared.find(format!("{io:?} joined, and not complete"));
        }
    }

    /// Drops the slots with all that is under way.
    fn give_up(&mut self) {
        for issued in self.issued.iter_mut().filter_map(Option::take) {
            if issued.operation == Operation::Writev {
                for block in issued.first..issued.first + issued.known.len() as u32 {
                    self.shared.ledger.abandoned(issued.file as u32, block);
                }
            }
            self.tally.abandoned += 1;
        }
        self.slots = some_slots(&mut self.rng);
    }

    fn cancel(&mut self) {
        let Some(session) = self.session() else { return };
        session.canceller().cancel();
        let Some(slot) = self.issued.iter().position(Option::is_some) else { return };
        let Some(mut session) = self.session.take() else { return };
        let outcome = session.wait(&mut self.slots, slot);
        session.clear_cancel();
        self.session = Some(session);
        if outcome.is_ok() {
            self.took(slot, outcome);
        }
    }

    /// Forgets a handle: by a leak that Rust cannot prevent.
    fn forget(&mut self) {
        let Some(session) = self.session() else { return };
        session.clear_cancel();
        std::mem::forget(session.acquire(Class::LookAhead));
        if self.rng.below(2) == 0
            && let Some(session) = self.session()
            && !session.end_scope().handed_out
        {
            self.shared.find("a forgotten handle was not noticed".into());
        }
    }

    /// Goes on with another session, or under another method.
    fn change(&mut self) {
        let methods = self.shared.workload.methods;
        if methods.is_empty() || self.rng.below(2) == 0 {
            self.session = None;
        } else {
            let method = methods[self.rng.below(methods.len() as u64) as usize];
            self.aio.set_method(method);
        }
    }

    fn took(&mut self, slot: usize, outcome: Result<Outcome, Cancelled>) {
        let Ok(outcome) = outcome else {
            self.shared.find("cancelled without a cancel".into());
            return;
        };
        self.tally.taken += 1;
        let Some(issued) = self.issued[slot].take() else {
            self.shared.find(format!("an outcome of slot {slot}, which was not issued"));
            return;
        };
        let (file, whole) = (issued.file as u32, (issued.known.len() * BLOCK) as u32);
        let ledger = &self.shared.ledger;
        match issued.operation {
            Operation::Writev => {
                for block in issued.first..issued.first + issued.known.len() as u32 {
                    match outcome.count == whole {
                        true => ledger.done(file, block),
                        false => ledger.failed(file, block),
                    }
                }
            }
            Operation::Readv => self.judge(&issued, slot, outcome),
            Operation::Fsync | Operation::Fdatasync | Operation::BeginWriteback => {}
        }
    }

    fn judge(&mut self, issued: &Issued, slot: usize, outcome: Outcome) {
        let memory = self.slots.memory(slot).map(std::mem::take).unwrap_or_default();
        let mut bytes: Vec<u8> = memory.iter().flat_map(|lease| lease.iter().copied()).collect();
        bytes.truncate(outcome.count as usize);
        for ((block, known), found) in (issued.first..).zip(&issued.known).zip(bytes.chunks(BLOCK))
        {
            if !self.shared.ledger.judge_since(*known, issued.file as u32, block, found) {
                let text = format!(
                    "file {} block {block}: {:?} known {known:?}, read by {}",
                    issued.file,
                    &found[..found.len().min(16)],
                    self.number
                );
                self.shared.find(text);
            }
        }
    }
}

fn some_slots(rng: &mut Rng) -> Slots {
    let weight = if rng.below(2) == 0 { Weight::Light } else { Weight::Heavy };
    Slots::with_callbacks(SLOTS, vec![Arc::new(Bystander(weight))])
}

/// The smallest executor: polls a slot until it is done, asleep in between.
///
/// # Errors
/// The session was cancelled.
pub fn poll_until_done<P: Payload>(
    session: &mut Session,
    slots: &mut Slots<P>,
    slot: usize,
) -> Result<Outcome, Cancelled> {
    block_on(poll_fn(|context| session.poll(context, slots, slot)))
}
