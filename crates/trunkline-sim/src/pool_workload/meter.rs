//! Coverage meter of a pool workload. It tracks which faults have struck which kinds of reads,
//! which thread completed each of those reads, and which sessions were waiting for it. In addition,
//! the [`Counts`] track what the clients did.
//!
//! A random test can only find bugs in combinations of events that actually occur, so we count how
//! often each combination occurs. Each cell is a combination of fault, completion path (the threads
//! that executed and completed the read), sessions that had the page pinned when the result
//! arrived, kind of request, and pool. Every cell must be reached unless [`Cell::excuse`] explains
//! why it can't be. A cell that depends on exact timing ([`Cell::is_rare`]) need only be reached
//! with one of the faults.

use crate::fault::Fault;
use std::collections::BTreeMap;
use std::mem::discriminant;
use std::time::Duration;
use trunkline_engine::pool::Strategy;

/// The kinds of faults that can strike a read. The meter only distinguishes these kinds. It ignores
/// a fault's parameters, such as the errno or the length of a delay.
const READ_FAULTS: [Fault; 8] = [
    Fault::Short(0),
    Fault::EndOfFile,
    Fault::Interrupted,
    Fault::Again,
    Fault::Error(libc::EIO),
    Fault::BitRot(0),
    Fault::Delay(Duration::ZERO),
    Fault::Reorder,
];

/// The entry of a fault; `None` for a fault that strikes only writes.
pub(super) fn read_fault(fault: Fault) -> Option<Fault> {
    READ_FAULTS.into_iter().find(|entry| discriminant(entry) == discriminant(&fault))
}

/// Which thread executed a read, and which thread completed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionPath {
    /// The issuer executed and completed the read.
    Inline,
    /// A worker executed and completed it.
    Worker,
    /// The device executed and completed it.
    DeviceReaper,
    /// The device executed the read, and its issuer completed it.
    DeviceIssuer,
    /// The device executed the read, and another session waiting for it completed it.
    DeviceJoiner,
    /// The device executed the read, and a helper completed it.
    DeviceHelper,
    /// The read was completed by another thread before the thread that executed it could do so.
    /// This can happen only between storing the result and claiming the completion, which are just
    /// two instructions apart.
    Overtaken,
}

/// The paths that a complete test must reach.
const COMPLETION_PATHS: [CompletionPath; 6] = [
    CompletionPath::Inline,
    CompletionPath::Worker,
    CompletionPath::DeviceReaper,
    CompletionPath::DeviceIssuer,
    CompletionPath::DeviceJoiner,
    CompletionPath::DeviceHelper,
];

/// The sessions that had the page pinned when the result arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiters {
    /// None, because the issuer has abandoned the read or ended.
    None,
    /// The issuer, which is waiting or will wait.
    Issuer,
    /// The issuer and one session that joined.
    OneJoined,
    /// The issuer and several sessions that joined.
    SeveralJoined,
}

/// All variants.
const WAITERS: [Waiters; 4] =
    [Waiters::None, Waiters::Issuer, Waiters::OneJoined, Waiters::SeveralJoined];

/// The kind of request that a read belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A single page.
    Single,
    /// A stream in order.
    Ordered,
    /// A stream in any order.
    Unordered,
    /// A polled ordered stream, as an async executor uses it.
    Polled,
    /// A polled unordered stream.
    PolledUnordered,
}

/// All variants.
const KINDS: [Kind; 5] =
    [Kind::Single, Kind::Ordered, Kind::Unordered, Kind::Polled, Kind::PolledUnordered];

impl Kind {
    pub(super) fn is_polled(self) -> bool {
        matches!(self, Kind::Polled | Kind::PolledUnordered)
    }

    /// Whether the stream may return blocks in any order.
    pub(super) fn is_unordered(self) -> bool {
        matches!(self, Kind::Unordered | Kind::PolledUnordered)
    }
}

/// A cell of the meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The kind of fault.
    pub fault: Fault,
    /// The threads that executed and completed the read.
    pub path: CompletionPath,
    /// The sessions that waited.
    pub waiters: Waiters,
    /// The kind of request.
    pub kind: Kind,
    /// The read uses the local pool.
    pub local: bool,
}

impl Cell {
    /// All cells of the meter, including unreachable ones.
    pub fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        for fault in READ_FAULTS {
            for path in COMPLETION_PATHS {
                for waiters in WAITERS {
                    for kind in KINDS {
                        let of = |local| Cell { fault, path, waiters, kind, local };
                        cells.extend([false, true].map(of));
                    }
                }
            }
        }
        cells
    }

    /// The cells that must be reached.
    fn wanted() -> impl Iterator<Item = Cell> {
        Self::all().into_iter().filter(|cell| cell.excuse().is_none())
    }

    /// Explains why no run can be relied on to reach the cell. Returns `None` if it must be
    /// reached.
    pub fn excuse(&self) -> Option<&'static str> {
        let joined = matches!(self.waiters, Waiters::OneJoined | Waiters::SeveralJoined);
        let abandoned = self.waiters == Waiters::None;
        match self.path {
            CompletionPath::Inline if abandoned => {
                Some("an issuer that executes a read has not ended")
            }
            CompletionPath::DeviceIssuer
            | CompletionPath::DeviceJoiner
            | CompletionPath::DeviceHelper
                if self.kind == Kind::Single =>
            {
                Some("a small read is completed by the thread that reaps it")
            }
            CompletionPath::DeviceIssuer if abandoned => {
                Some("left to chance: the issuer must wait for something else at that moment")
            }
            CompletionPath::DeviceJoiner if self.local => {
                Some("a local pool has one session: no joiner")
            }
            CompletionPath::DeviceJoiner if !joined => {
                Some("a session that joins has pinned the page")
            }
            _ if joined && self.local && self.kind == Kind::Single => {
                Some("the one session of a local pool waits for its single read itself")
            }
            _ => None,
        }
    }

    /// Whether reaching the cell needs exact timing. In that case a hit with any fault suffices.
    pub fn is_rare(&self) -> bool {
        let joined = matches!(self.waiters, Waiters::OneJoined | Waiters::SeveralJoined);
        match self.path {
            // The issuer also waits for the read, and is offered the completion first.
            CompletionPath::DeviceJoiner => matches!(self.kind, Kind::Ordered | Kind::Unordered),
            // A poll must happen after the result arrives, but before the helper woken for it runs.
            CompletionPath::DeviceIssuer => self.kind.is_polled(),
            // A session leaves a single read to the method only while other reads are in flight.
            CompletionPath::Worker | CompletionPath::DeviceReaper => {
                self.waiters != Waiters::Issuer && self.kind == Kind::Single
            }
            // The session must request the block again before it executes its staged read.
            CompletionPath::Inline => joined && self.local,
            CompletionPath::DeviceHelper | CompletionPath::Overtaken => false,
        }
    }
}

/// Counts from one or more runs.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    cells: BTreeMap<Cell, u64>,
    /// Faults by access strategy and pool; `true` means the local pool.
    strategies: BTreeMap<(Fault, Strategy, bool), u64>,
}

impl Meter {
    pub(super) fn hit(&mut self, cell: Cell, strategy: Strategy) {
        *self.cells.entry(cell).or_default() += 1;
        *self.strategies.entry((cell.fault, strategy, cell.local)).or_default() += 1;
    }

    /// Adds another run's counts.
    pub fn add(&mut self, other: &Meter) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        for (key, count) in &other.strategies {
            *self.strategies.entry(*key).or_default() += count;
        }
    }

    /// How often a cell was reached.
    pub fn count(&self, cell: &Cell) -> u64 {
        self.cells.get(cell).copied().unwrap_or_default()
    }

    /// The number of cells that must be reached, and the cells that weren't reached.
    pub fn missing(&self) -> (usize, Vec<Cell>) {
        let missing = Cell::wanted().filter(|cell| !self.is_reached(cell)).collect();
        (Cell::wanted().count(), missing)
    }

    /// Whether a cell was reached. For a rare cell, a hit with any fault counts.
    fn is_reached(&self, cell: &Cell) -> bool {
        let other = |fault| cell.is_rare() && self.count(&Cell { fault, ..*cell }) > 0;
        self.count(cell) > 0 || READ_FAULTS.into_iter().any(other)
    }

    /// Returns the cell that was reached least often, leaving out the rare cells. If its count is
    /// low, we need to run more seeds.
    pub fn rarest(&self) -> Option<(Cell, u64)> {
        let wanted = Cell::wanted().filter(|cell| !cell.is_rare());
        wanted.map(|cell| (cell, self.count(&cell))).min_by_key(|(_, count)| *count)
    }

    /// Combinations of fault, strategy and pool that haven't been reached yet.
    pub fn missing_strategies(&self) -> Vec<(Fault, Strategy, bool)> {
        let strategies = [Strategy::Normal, Strategy::BulkRead, Strategy::Vacuum];
        let all = READ_FAULTS.iter().flat_map(|&fault| {
            strategies.into_iter().flat_map(move |s| [(fault, s, false), (fault, s, true)])
        });
        all.filter(|key| !self.strategies.contains_key(key)).collect()
    }

    /// Number of reads that another thread completed in the window before the claim.
    pub fn overtaken(&self) -> u64 {
        let overtaken =
            self.cells.iter().filter(|(cell, _)| cell.path == CompletionPath::Overtaken);
        overtaken.map(|(_, count)| count).sum()
    }
}

/// What the clients have done. These counts let us notice if, say, a workload no longer waited,
/// cancelled or abandoned anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages returned, locked and checked.
    pub pages: u64,
    /// Blocks for which the issuer received an error.
    pub errors: u64,
    /// Waits for a content lock, by mode: share, share-exclusive, exclusive.
    pub lock_waits: [u64; 3],
    /// Cancelled waits.
    pub cancelled: u64,
    /// Requests that failed because the session was at its pin limit.
    pub too_many_pins: u64,
    /// Polls that returned `Poll::Pending`.
    pub pending: u64,
    /// Streams read to their end.
    pub ended: u64,
    /// Streams dropped before their end.
    pub dropped: u64,
    /// Threads that ended without releasing their streams and pins.
    pub vanished: u64,
    /// Relations invalidated, truncated or extended.
    pub resized: u64,
}

impl Counts {
    /// Adds another client's counts.
    pub fn add(&mut self, other: &Counts) {
        self.pages += other.pages;
        self.errors += other.errors;
        self.lock_waits.iter_mut().zip(other.lock_waits).for_each(|(sum, more)| *sum += more);
        self.cancelled += other.cancelled;
        self.too_many_pins += other.too_many_pins;
        self.pending += other.pending;
        self.ended += other.ended;
        self.dropped += other.dropped;
        self.vanished += other.vanished;
        self.resized += other.resized;
    }
}
