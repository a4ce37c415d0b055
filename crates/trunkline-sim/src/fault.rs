//! Fault plans: which fault strikes which execution of an operation.
//!
//! ```
//! use trunkline_aio::Operation;
//! use trunkline_sim::{Fault, FaultPlan, Rule};
//!
//! // The third read fails, and so do the two after it.
//! let plan = FaultPlan::exact(vec![Rule::new(Operation::Readv, 3, Fault::Error(5)).times(3)]);
//! let faults: Vec<bool> = (0..6).map(|_| plan.next(Operation::Readv).is_some()).collect();
//! assert_eq!(faults, [false, false, true, true, true, false]);
//! ```

use std::time::Duration;
use trunkline_aio::sync::hash::Map;
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{OPERATIONS, Operation, Request};

/// One fault. The table in the documentation of the crate describes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// At most this many bytes are transferred.
    Short(u32),
    /// EINTR.
    Interrupted,
    /// EAGAIN.
    Again,
    /// This errno.
    Error(i32),
    /// Nothing is transferred.
    EndOfFile,
    /// A write that reports success and stores nothing.
    LostWrite,
    /// A write that is stored this many bytes further on.
    Misdirected(u32),
    /// A write of which only every other sector of this many bytes arrives.
    TornWrite(u32),
    /// A read with one wrong bit, at this byte of the transfer (modulo its length).
    BitRot(u32),
    /// The I/O takes this long.
    Delay(Duration),
    /// A later I/O is executed first.
    Reorder,
}

/// One rule of an exact plan.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    operation: Operation,
    first: u64,
    times: u64,
    fault: Fault,
}

impl Rule {
    /// `fault` strikes execution number `nth` (from 1) of `operation`.
    pub fn new(operation: Operation, nth: u64, fault: Fault) -> Self {
        Self { operation, first: nth, times: 1, fault }
    }

    /// The fault strikes this many executions in a row; [`u64::MAX`] is permanent.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }
}

/// How often each kind of fault strikes, in 1,000 executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Short transfers, the end of the file among them.
    pub short: u32,
    /// EINTR and EAGAIN.
    pub again: u32,
    /// EIO.
    pub error: u32,
    /// Delays of up to 10 ms.
    pub delay: u32,
    /// Reordering.
    pub reorder: u32,
    /// Lost, misdirected and torn writes and bit rot, which only a checksum finds.
    pub silent: u32,
}

#[derive(Debug)]
enum Source {
    Exact(Vec<Rule>),
    Random(Rng, Rates),
}

#[derive(Debug)]
struct PlanState {
    calls: [u64; OPERATIONS.len()],
    struck: u64,
    source: Source,
    /// Faults that struck, by file and offset, until [`FaultPlan::take_strike`]; `None` if not kept.
    strikes: Option<Map<(u64, u64), Fault>>,
}

/// A fault plan. Clones share the counts.
#[derive(Debug, Clone)]
pub struct FaultPlan(Arc<Mutex<PlanState>>);

impl FaultPlan {
    /// No fault strikes.
    pub fn none() -> Self {
        Self::exact(Vec::new())
    }

    /// Faults by rules; the first rule that applies wins.
    pub fn exact(rules: Vec<Rule>) -> Self {
        Self::of(Source::Exact(rules))
    }

    /// Faults at random.
    pub fn random(seed: u64, rates: Rates) -> Self {
        Self::of(Source::Random(Rng::new(seed), rates))
    }

    fn of(source: Source) -> Self {
        let calls = [0; OPERATIONS.len()];
        Self(Arc::new(Mutex::new(PlanState { calls, struck: 0, source, strikes: None })))
    }

    /// Keeps faults that strike for [`FaultPlan::take_strike`].
    #[must_use]
    pub fn keeping_strikes(self) -> Self {
        self.0.lock().strikes = Some(Map::default());
        self
    }

    /// Takes the fault of the last execution at an offset of a file. No two I/Os in flight may begin at the
    /// same offset.
    pub fn take_strike(&self, file_id: u64, offset: u64) -> Option<Fault> {
        self.0.lock().strikes.as_mut()?.remove(&(file_id, offset))
    }

    /// [`FaultPlan::next`] for a request; its fault is kept if the plan keeps faults.
    pub(crate) fn next_for(&self, request: &Request<'_>) -> Option<Fault> {
        let fault = self.next(request.operation)?;
        if let Some(strikes) = &mut self.0.lock().strikes {
            strikes.insert((request.file_id, request.offset), fault);
        }
        Some(fault)
    }

    /// Counts an execution of `operation` and returns the fault that strikes it.
    pub fn next(&self, operation: Operation) -> Option<Fault> {
        let state = &mut *self.0.lock();
        state.calls[operation as usize] += 1;
        let call = state.calls[operation as usize];
        let fault = match &mut state.source {
            Source::Exact(rules) => rules
                .iter()
                .find(|rule| {
                    rule.operation == operation
                        && call >= rule.first
                        && call - rule.first < rule.times
                })
                .map(|rule| rule.fault),
            Source::Random(rng, rates) => draw(rng, *rates, operation),
        };
        state.struck += u64::from(fault.is_some());
        fault
    }

    /// Replaces the rules and resets the counts.
    pub fn set(&self, rules: Vec<Rule>) {
        let mut state = self.0.lock();
        state.calls = [0; OPERATIONS.len()];
        state.struck = 0;
        state.source = Source::Exact(rules);
    }

    /// Executions that a fault has struck.
    pub fn struck(&self) -> u64 {
        self.0.lock().struck
    }

    /// Executions of `operation` so far.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.0.lock().calls[operation as usize]
    }
}

fn draw(rng: &mut Rng, rates: Rates, operation: Operation) -> Option<Fault> {
    let moves = matches!(operation, Operation::Readv | Operation::Writev);
    let mut ticket = rng.below(1000);
    let mut hit = |rate: u32| {
        let hit = ticket < u64::from(rate);
        ticket = if hit { u64::MAX } else { ticket - u64::from(rate) };
        hit
    };
    if hit(rates.short) {
        let length = rng.below(40_000) as u32;
        let fault = if rng.below(4) == 0 { Fault::EndOfFile } else { Fault::Short(length) };
        return moves.then_some(fault);
    }
    if hit(rates.again) {
        return Some(if rng.below(2) == 0 { Fault::Interrupted } else { Fault::Again });
    }
    if hit(rates.error) {
        return Some(Fault::Error(libc::EIO));
    }
    if hit(rates.delay) {
        return Some(Fault::Delay(Duration::from_micros(rng.below(10_000))));
    }
    if hit(rates.reorder) {
        return Some(Fault::Reorder);
    }
    if hit(rates.silent) {
        return match (operation, rng.below(3)) {
            (Operation::Readv, _) => Some(Fault::BitRot(rng.below(1 << 20) as u32)),
            (Operation::Writev, 0) => Some(Fault::LostWrite),
            (Operation::Writev, 1) => Some(Fault::Misdirected(8192)),
            (Operation::Writev, _) => Some(Fault::TornWrite(512)),
            _ => None,
        };
    }
    None
}
