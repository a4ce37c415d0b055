//! Coverage meter of a pool workload: which faults struck which reads, which thread completed
//! these, and which sessions waited.
//!
//! A random test is worth only as much as the combinations it reaches. A cell is one fault × the
//! threads that executed and completed the read × the sessions that had the page pinned when the
//! result arrived × the kind of request × the pool. Every cell must be reached unless
//! [`Cell::excuse`] explains why it cannot be. A cell that depends on exact timing
//! ([`Cell::is_rare`]) only needs to be reached by some fault.

use std::collections::BTreeMap;
use trunkline_engine::pool::Strategy;

/// A fault of the simulated disk that applies to reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Fewer bytes than requested.
    Short,
    /// No bytes at all.
    EndOfFile,
    /// EINTR.
    Interrupted,
    /// EAGAIN.
    Again,
    /// EIO.
    Error,
    /// One wrong bit.
    BitRot,
    /// The read took long.
    Delay,
    /// Another I/O was executed first.
    Reorder,
}

/// All faults.
pub const FAULT_KINDS: [FaultKind; 8] = [
    FaultKind::Short,
    FaultKind::EndOfFile,
    FaultKind::Interrupted,
    FaultKind::Again,
    FaultKind::Error,
    FaultKind::BitRot,
    FaultKind::Delay,
    FaultKind::Reorder,
];

/// Which thread executed a read, and which thread completed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionPath {
    /// The issuer did both.
    Inline,
    /// A worker did both.
    Worker,
    /// The device did both.
    DeviceReaper,
    /// The device executed it, and its issuer completed it.
    DeviceIssuer,
    /// The device executed it, and another session that waited for it completed it.
    DeviceJoiner,
    /// The device executed it, and a helper completed it.
    DeviceHelper,
    /// Another thread completed it before the thread that executed it could. That is possible
    /// between storing the result and claiming the completion, a window of two instructions.
    Overtaken,
}

/// The paths that must be reached.
pub const COMPLETION_PATHS: [CompletionPath; 6] = [
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
    /// None: the issuer has abandoned the read or ended.
    None,
    /// The issuer, which waits or will wait.
    Issuer,
    /// The issuer and one session that joined.
    OneJoined,
    /// The issuer and several sessions that joined.
    SeveralJoined,
}

/// All numbers of waiters.
pub const WAITERS: [Waiters; 4] =
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

/// All kinds of request.
pub const KINDS: [Kind; 5] =
    [Kind::Single, Kind::Ordered, Kind::Unordered, Kind::Polled, Kind::PolledUnordered];

/// A cell of the meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The fault.
    pub fault: FaultKind,
    /// The threads that executed and completed the read.
    pub path: CompletionPath,
    /// The sessions that waited.
    pub waiters: Waiters,
    /// The kind of request.
    pub kind: Kind,
    /// The read goes through the local pool.
    pub local: bool,
}

impl Cell {
    /// Every cell of the meter, including those that cannot be reached.
    pub fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        for fault in FAULT_KINDS {
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

    /// Returns why no run can be relied on to reach the cell; `None` if it must be reached.
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
}

impl Cell {
    /// Whether the cell is reached only by exact timing. Then any fault will do.
    pub fn is_rare(&self) -> bool {
        let joined = matches!(self.waiters, Waiters::OneJoined | Waiters::SeveralJoined);
        match self.path {
            // The issuer waits for it too, and is offered it first.
            CompletionPath::DeviceJoiner => matches!(self.kind, Kind::Ordered | Kind::Unordered),
            // A poll must happen between the result and the helper that is woken for it.
            CompletionPath::DeviceIssuer => {
                matches!(self.kind, Kind::Polled | Kind::PolledUnordered)
            }
            // Only with other reads in flight does a session leave a single read to the method.
            CompletionPath::Worker | CompletionPath::DeviceReaper => {
                self.waiters != Waiters::Issuer && self.kind == Kind::Single
            }
            // The session must request the block again before it executes its staged read.
            CompletionPath::Inline => joined && self.local,
            CompletionPath::DeviceHelper | CompletionPath::Overtaken => false,
        }
    }
}

/// Counts from one run or from many.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    cells: BTreeMap<Cell, u64>,
    /// Faults by access strategy and pool, `true` for the local pool.
    strategies: BTreeMap<(FaultKind, Strategy, bool), u64>,
}

impl Meter {
    pub(super) fn hit(&mut self, cell: Cell, strategy: Strategy) {
        *self.cells.entry(cell).or_default() += 1;
        *self.strategies.entry((cell.fault, strategy, cell.local)).or_default() += 1;
    }

    /// Adds the counts of another run.
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

    /// The number of cells that must be reached, and the ones that weren't.
    pub fn missing(&self) -> (usize, Vec<Cell>) {
        let wanted: Vec<Cell> =
            Cell::all().into_iter().filter(|cell| cell.excuse().is_none()).collect();
        let count = wanted.len();
        (count, wanted.into_iter().filter(|cell| !self.is_reached(cell)).collect())
    }

    /// Whether a cell was reached; a rare one also by any other fault.
    fn is_reached(&self, cell: &Cell) -> bool {
        let other = |fault| cell.is_rare() && self.count(&Cell { fault, ..*cell }) > 0;
        self.count(cell) > 0 || FAULT_KINDS.into_iter().any(other)
    }

    /// The cell that was reached least often, of those that must be reached by their own fault. A
    /// small count shows that the workload needs more seeds.
    pub fn rarest(&self) -> Option<(Cell, u64)> {
        let wanted =
            Cell::all().into_iter().filter(|cell| cell.excuse().is_none() && !cell.is_rare());
        wanted.map(|cell| (cell, self.count(&cell))).min_by_key(|(_, count)| *count)
    }

    /// Combinations of fault, strategy and pool not reached yet.
    pub fn missing_strategies(&self) -> Vec<(FaultKind, Strategy, bool)> {
        let strategies = [Strategy::Normal, Strategy::BulkRead, Strategy::Vacuum];
        let all = FAULT_KINDS.iter().flat_map(|&fault| {
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
