//! The coverage meter: which faults struck which reads, who completed them, and who waited.
//!
//! A cell is one fault × who executed and completed the read × who had the page pinned when its
//! result came × what kind of request it was for × which pool. [`Cell::excuse`] says why a cell
//! cannot be filled; all others must be, those that need luck by some fault or other.

use std::collections::BTreeMap;
use trunkline_engine::pool::Strategy;

/// A fault of the simulated disk that applies to reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Menu {
    /// Fewer bytes than asked.
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
    /// Slow.
    Delay,
    /// Overtaken.
    Reorder,
}

/// All of them.
pub const MENU: [Menu; 8] = [
    Menu::Short,
    Menu::EndOfFile,
    Menu::Interrupted,
    Menu::Again,
    Menu::Error,
    Menu::BitRot,
    Menu::Delay,
    Menu::Reorder,
];

/// Who executed a read and who completed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Its issuer's thread, both.
    Inline,
    /// A worker, both.
    Worker,
    /// The device, both.
    DeviceReaper,
    /// The device executed it, its issuer completed it.
    DeviceIssuer,
    /// The device executed it, another session that waited for it completed it.
    DeviceJoiner,
    /// The device executed it, a helper completed it.
    DeviceHelper,
    /// A thread that did not execute it was faster than the one that did, between the result and
    /// the claim: a window of two instructions.
    Overtaken,
}

/// All that are demanded.
pub const SITES: [Site; 6] = [
    Site::Inline,
    Site::Worker,
    Site::DeviceReaper,
    Site::DeviceIssuer,
    Site::DeviceJoiner,
    Site::DeviceHelper,
];

/// Pins on the page beside the read's own when the result came: who was concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concerned {
    /// Nobody: its issuer had given up or vanished.
    Nobody,
    /// One: the issuer waits, or will.
    Issuer,
    /// One has joined besides.
    OneJoined,
    /// Several have.
    SeveralJoined,
}

/// All of them.
pub const CONCERNED: [Concerned; 4] =
    [Concerned::Nobody, Concerned::Issuer, Concerned::OneJoined, Concerned::SeveralJoined];

/// What a read was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A single page.
    Single,
    /// A stream in order.
    Ordered,
    /// A stream in any order.
    Unordered,
    /// A stream in order that is polled.
    Polled,
    /// A stream in any order that is polled.
    PolledUnordered,
}

/// All of them.
pub const KINDS: [Kind; 5] =
    [Kind::Single, Kind::Ordered, Kind::Unordered, Kind::Polled, Kind::PolledUnordered];

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The fault.
    pub fault: Menu,
    /// By whom.
    pub site: Site,
    /// For whom.
    pub concerned: Concerned,
    /// For what.
    pub kind: Kind,
    /// Of the local pool.
    pub local: bool,
}

impl Cell {
    /// Every cell of the meter.
    pub fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        for fault in MENU {
            for site in SITES {
                for concerned in CONCERNED {
                    for kind in KINDS {
                        let of = |local| Cell { fault, site, concerned, kind, local };
                        cells.extend([false, true].map(of));
                    }
                }
            }
        }
        cells
    }

    /// Why no run can fill the cell, or none can be relied on to; `None` if it must be filled.
    pub fn excuse(&self) -> Option<&'static str> {
        let joined = matches!(self.concerned, Concerned::OneJoined | Concerned::SeveralJoined);
        let gone = self.concerned == Concerned::Nobody;
        match self.site {
            Site::Inline if gone => Some("an issuer that executes a read has not gone"),
            Site::DeviceIssuer | Site::DeviceJoiner | Site::DeviceHelper
                if self.kind == Kind::Single =>
            {
                Some("a small read is completed by whoever reaps it")
            }
            Site::DeviceIssuer if gone => {
                Some("left to chance: who gave it up must wait for anything just then")
            }
            Site::DeviceJoiner if self.local => Some("a local pool has one session: no joiner"),
            Site::DeviceJoiner if !joined => Some("who joins has pinned the page before"),
            _ if joined && self.local && self.kind == Kind::Single => {
                Some("the one session of a local pool waits for its single read itself")
            }
            _ => None,
        }
    }
}

impl Cell {
    /// Filled only if two sessions come at the right moment: one fault or other must do.
    pub fn is_rare(&self) -> bool {
        let joined = matches!(self.concerned, Concerned::OneJoined | Concerned::SeveralJoined);
        match self.site {
            // The issuer waits for it as well, and is offered it first.
            Site::DeviceJoiner => matches!(self.kind, Kind::Ordered | Kind::Unordered),
            // A poll must come between the result and the helper that is woken for it.
            Site::DeviceIssuer => matches!(self.kind, Kind::Polled | Kind::PolledUnordered),
            // Only beside other reads does a session leave a single read to others.
            Site::Worker | Site::DeviceReaper => {
                self.concerned != Concerned::Issuer && self.kind == Kind::Single
            }
            // The one session must want the block again before it executes what it has staged.
            Site::Inline => joined && self.local,
            Site::DeviceHelper | Site::Overtaken => false,
        }
    }
}

/// Counts of one run, or of many.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    cells: BTreeMap<Cell, u64>,
    strategies: BTreeMap<(Menu, Strategy, bool), u64>,
}

impl Meter {
    pub(super) fn hit(&mut self, cell: Cell, strategy: Strategy) {
        *self.cells.entry(cell).or_default() += 1;
        *self.strategies.entry((cell.fault, strategy, cell.local)).or_default() += 1;
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Meter) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        for (key, count) in &other.strategies {
            *self.strategies.entry(*key).or_default() += count;
        }
    }

    /// How often a cell was hit.
    pub fn count(&self, cell: &Cell) -> u64 {
        self.cells.get(cell).copied().unwrap_or_default()
    }

    /// Cells that must be filled: how many there are, and those that are not.
    pub fn missing(&self) -> (usize, Vec<Cell>) {
        let wanted: Vec<Cell> =
            Cell::all().into_iter().filter(|cell| cell.excuse().is_none()).collect();
        let count = wanted.len();
        (count, wanted.into_iter().filter(|cell| !self.is_filled(cell)).collect())
    }

    fn is_filled(&self, cell: &Cell) -> bool {
        let other = |fault| cell.is_rare() && self.count(&Cell { fault, ..*cell }) > 0;
        self.count(cell) > 0 || MENU.into_iter().any(other)
    }

    /// The cell that was filled least often, of those that must be.
    pub fn rarest(&self) -> Option<(Cell, u64)> {
        let wanted =
            Cell::all().into_iter().filter(|cell| cell.excuse().is_none() && !cell.is_rare());
        wanted.map(|cell| (cell, self.count(&cell))).min_by_key(|(_, count)| *count)
    }

    /// Faults × strategies × pools that have not met.
    pub fn missing_strategies(&self) -> Vec<(Menu, Strategy, bool)> {
        let strategies = [Strategy::Normal, Strategy::BulkRead, Strategy::Vacuum];
        let all = MENU.iter().flat_map(|&fault| {
            strategies.into_iter().flat_map(move |s| [(fault, s, false), (fault, s, true)])
        });
        all.filter(|key| !self.strategies.contains_key(key)).collect()
    }

    /// Reads that a thread completed that had not executed them, in the window before the claim.
    pub fn overtaken(&self) -> u64 {
        let overtaken = self.cells.iter().filter(|(cell, _)| cell.site == Site::Overtaken);
        overtaken.map(|(_, count)| count).sum()
    }
}
