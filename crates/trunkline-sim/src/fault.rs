//! Fault plan: decides which fault strikes which execution of an operation.
//!
//! If a test needs a specific failure, it lists the exact faults to inject (see [`Rule`]). In a
//! random workload, we choose faults at random, based on a seed (see [`Rates`]). When an operation
//! is retried, that counts as another execution. A rule can therefore make all retries fail as
//! well, or it can let the retry succeed.
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
use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{OPERATIONS, Operation, Request};

/// A fault. See the table in the crate documentation for what each fault does and what result is
/// returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Transfers at most this many bytes.
    Short(u32),
    /// `EINTR`: the call was interrupted before it transferred anything.
    Interrupted,
    /// `EAGAIN`.
    Again,
    /// Fails with this errno.
    Error(i32),
    /// Returns 0 bytes, like a read past end of file.
    EndOfFile,
    /// Reports success and stores nothing.
    LostWrite,
    /// Reports success and stores the data this many bytes too far into the file.
    Misdirected(u32),
    /// Reports success and stores only every other sector; the value is the sector size in bytes.
    TornWrite(u32),
    /// Flips one bit of the data read, in this byte of the transfer (modulo its length).
    BitRot(u32),
    /// Delays the I/O by this much virtual time.
    Delay(Duration),
    /// Executes the I/O only after a later I/O has executed.
    Reorder,
}

impl Fault {
    /// Returns the raw result of the I/O if this fault prevents any data from being transferred.
    /// Returns `None` for all other faults, which only change or delay the transfer.
    pub(crate) fn without_transfer(self) -> Option<i32> {
        match self {
            Fault::Interrupted => Some(-libc::EINTR),
            Fault::Again => Some(-libc::EAGAIN),
            Fault::Error(errno) => Some(-errno),
            Fault::EndOfFile => Some(0),
            _ => None,
        }
    }
}

/// A rule in a plan that contains an explicit list of faults. The fault is injected into executions
/// `first` to `first + times - 1` of `operation`, or of `operation` at one place.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    operation: Operation,
    first: u64,
    times: u64,
    fault: Fault,
    /// File id and offset; `None` means that the rule applies to every file.
    place: Option<(u64, u64)>,
}

impl Rule {
    /// The fault strikes execution number `nth` of `operation`, starting at 1.
    pub fn new(operation: Operation, nth: u64, fault: Fault) -> Self {
        Self { operation, first: nth, times: 1, fault, place: None }
    }

    /// The fault strikes this many consecutive executions. [`u64::MAX`] makes it permanent.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Restricts the rule to I/O that starts at this offset of a file. `nth` then counts only the
    /// executions at this place.
    #[must_use]
    pub fn at(mut self, file_id: u64, offset: u64) -> Self {
        self.place = Some((file_id, offset));
        self
    }

    /// Whether the rule counts this execution.
    fn counts(&self, operation: Operation, place: Option<(u64, u64)>) -> bool {
        self.operation == operation && (self.place.is_none() || self.place == place)
    }
}

/// How often each kind of fault strikes, per 1,000 executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Short transfers, including those of 0 bytes.
    pub short: u32,
    /// EINTR and EAGAIN.
    pub again: u32,
    /// EIO.
    pub error: u32,
    /// Delays of up to 10 ms.
    pub delay: u32,
    /// Reordering.
    pub reorder: u32,
    /// Lost writes, misdirected writes, torn writes and bit rot. The I/O appears to succeed, so
    /// these can only be detected with a checksum.
    pub silent: u32,
}

/// Where the faults of a plan come from.
#[derive(Debug)]
enum Source {
    /// Rules, each with the number of executions it has counted.
    Exact(Vec<(Rule, u64)>),
    Random(Rng, Rates),
}

impl Source {
    fn of(rules: Vec<Rule>) -> Self {
        Self::Exact(rules.into_iter().map(|rule| (rule, 0)).collect())
    }
}

/// The state of a plan. It is protected by a mutex, because workers and sessions use the plan
/// concurrently.
#[derive(Debug)]
struct PlanState {
    /// Number of executions of each operation.
    calls: [u64; OPERATIONS.len()],
    /// Number of executions struck by a fault.
    struck: u64,
    source: Source,
    /// The faults that have been injected so far, indexed by file id and offset.
    /// [`FaultPlan::take_strike`] removes them again. `None` if this plan doesn't record them.
    strikes: Option<Map<(u64, u64), Fault>>,
}

/// A fault plan. All clones of a plan share the same state, so a test can change the plan while an
/// instance is using it.
#[derive(Debug, Clone)]
pub struct FaultPlan(Arc<Mutex<PlanState>>);

impl FaultPlan {
    /// A plan without faults.
    pub fn none() -> Self {
        Self::exact(Vec::new())
    }

    /// A plan with exact rules. The first matching rule wins.
    pub fn exact(rules: Vec<Rule>) -> Self {
        Self::of(Source::of(rules))
    }

    /// A plan with random faults. The same seed and sequence of executions yield the same faults.
    pub fn random(seed: u64, rates: Rates) -> Self {
        Self::of(Source::Random(Rng::new(seed), rates))
    }

    fn of(source: Source) -> Self {
        let calls = [0; OPERATIONS.len()];
        Self(Arc::new(Mutex::new(PlanState { calls, struck: 0, source, strikes: None })))
    }

    /// Makes the plan record every fault that it injects, so that a probe can call
    /// [`FaultPlan::take_strike`]. The probe itself only sees the result of an I/O, so it could not
    /// tell that a bit was flipped in a read that succeeded.
    #[must_use]
    pub fn keeping_strikes(self) -> Self {
        self.0.lock().strikes = Some(Map::default());
        self
    }

    /// Returns the fault that was injected into the last I/O at the given offset of a file, and
    /// forgets it. We identify an I/O by its file and offset, because the plan and the probe have
    /// nothing else in common. A test that uses this must therefore not have two I/Os in flight at
    /// the same offset.
    pub fn take_strike(&self, file_id: u64, offset: u64) -> Option<Fault> {
        self.0.lock().strikes.as_mut()?.remove(&(file_id, offset))
    }

    /// Like [`FaultPlan::next`], but if this plan records the faults that it injects, also records
    /// this one.
    pub(crate) fn next_for(&self, request: &Request<'_>) -> Option<Fault> {
        let fault = self.draw_next(request.operation, Some((request.file_id, request.offset)))?;
        if let Some(strikes) = &mut self.0.lock().strikes {
            strikes.insert((request.file_id, request.offset), fault);
        }
        Some(fault)
    }

    /// Counts an execution of `operation` and returns the fault that strikes it, if any. We don't
    /// know its place, so no rule with a place applies.
    pub fn next(&self, operation: Operation) -> Option<Fault> {
        self.draw_next(operation, None)
    }

    fn draw_next(&self, operation: Operation, place: Option<(u64, u64)>) -> Option<Fault> {
        let state = &mut *self.0.lock();
        state.calls[operation as usize] += 1;
        let fault = match &mut state.source {
            Source::Exact(rules) => {
                let mut fault = None;
                for (rule, calls) in rules {
                    if rule.counts(operation, place) {
                        *calls += 1;
                        let strikes = *calls >= rule.first && *calls - rule.first < rule.times;
                        fault = fault.or(strikes.then_some(rule.fault));
                    }
                }
                fault
            }
            Source::Random(rng, rates) => draw(rng, *rates, operation),
        };
        state.struck += u64::from(fault.is_some());
        fault
    }

    /// Replaces the rules and resets all counts, so that `nth` starts at 1 again.
    pub fn set(&self, rules: Vec<Rule>) {
        let mut state = self.0.lock();
        state.calls = [0; OPERATIONS.len()];
        state.struck = 0;
        state.source = Source::of(rules);
    }

    /// Number of executions struck by a fault.
    pub fn struck(&self) -> u64 {
        self.0.lock().struck
    }

    /// Number of executions of `operation`.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.0.lock().calls[operation as usize]
    }
}

/// Chooses a fault at random. We generate a single random number, and divide its range into
/// intervals whose sizes are given by the rates. This ensures that we never choose more than one
/// fault, and that each kind of fault occurs at its given rate.
fn draw(rng: &mut Rng, rates: Rates, operation: Operation) -> Option<Fault> {
    let moves = matches!(operation, Operation::Readv | Operation::Writev);
    let mut ticket = rng.below(1000);
    // Once an interval has matched, no later interval may match.
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
