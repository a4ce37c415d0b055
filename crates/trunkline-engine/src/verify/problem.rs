//! What can be wrong with the contents of tables and indexes, where every page by itself is sound.
//!
//! A problem carries what was found and what was expected; which relation, file, block and line
//! pointer it is about stands beside it, in the finding.

use std::fmt;

use trunkline_format::btree::Fault;
use trunkline_format::transam::RowState;
use trunkline_format::{BlockNo, Tid};

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentProblem {
    /// A page, or what is needed to understand the relation, cannot be had.
    Unreadable(String),
    /// A page of a table has a special space.
    NotATable,
    /// A row's bytes lead outside of its item.
    Row,
    /// Whether a row is visible cannot be found out.
    Transaction(String),
    /// A row's header names a transaction that cannot be: frozen long ago, or not given out yet.
    Age {
        /// What names it.
        which: HeaderId,
        /// The id.
        found: u32,
        /// The oldest one that the table may hold.
        oldest: u32,
        /// The one that the cluster gives out next.
        next: u32,
    },
    /// A visible row that was never updated says that there is a next version of it.
    NextVersion {
        /// Where it is said to be.
        next: Tid,
    },
    /// A row has more columns than its table.
    Columns {
        /// The row's.
        found: u16,
        /// The table's.
        expected: u16,
    },
    /// A visible row's value is none of its type.
    Value {
        /// The column's name.
        column: String,
        /// What is wrong with it.
        error: String,
    },
    /// A value in TOAST is not whole.
    Toast {
        /// The column's name.
        column: String,
        /// What is wrong with it.
        error: String,
    },
    /// A visible row that is only reached through earlier versions, and there are none.
    NoChain,
    /// A page, or the map, promises that everyone sees all rows.
    NotVisible {
        /// What the row is.
        state: RowState,
    },
    /// The same promise, and a line pointer is left of a row that was removed.
    DeadLinePointer,
    /// The map promises that all rows are frozen.
    NotFrozen,
    /// The map says that all rows of a block are visible, and the page does not.
    NoPageFlag,
    /// The map speaks of blocks that the table does not have.
    MapBeyondEnd {
        /// Blocks of the table.
        blocks: BlockNo,
    },
    /// The map says frozen without visible.
    MapBits,
    /// A page of an index by itself.
    IndexPage(Fault),
    /// A page of an index and another one.
    IndexLink(LinkProblem),
    /// An entry leads to a block that the table does not have.
    EntryBeyondEnd {
        /// The row.
        row: Tid,
        /// Blocks of the table.
        blocks: BlockNo,
    },
    /// An entry leads to no row.
    EntryNowhere {
        /// The index.
        index: String,
        /// What is there.
        found: Nowhere,
    },
    /// Two entries lead to one row.
    EntryTwice {
        /// The index.
        index: String,
    },
    /// A visible row has no entry, or one that is marked as dead.
    NoEntry {
        /// The index.
        index: String,
        /// There is one, and the server passes over it.
        dead: bool,
        /// The line pointer that the entry should lead to.
        root: u16,
    },
    /// Two visible rows have the same key in a unique index.
    NotUnique {
        /// The index.
        index: String,
        /// The other row.
        other: Tid,
    },
    /// A visible row's entry has another key.
    OtherKey {
        /// The index.
        index: String,
        /// The line pointer that the entry leads to.
        root: u16,
    },
}

/// An id in the header of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderId {
    /// Who inserted it.
    Xmin,
    /// Who deleted or locked it.
    Xmax,
    /// The same, if they are several.
    Multixact,
}

/// What is at the end of an entry that leads to no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nowhere {
    /// The page has fewer line pointers.
    Beyond {
        /// How many.
        count: u16,
    },
    /// The line pointer is not used.
    Unused,
    /// A version that only other versions lead to.
    HeapOnly,
    /// The page was never filled.
    NewPage,
}

/// How the pages of an index do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkProblem {
    /// The link to the left is not to the page that links here.
    Left {
        /// Where it leads; 0: nowhere.
        found: BlockNo,
        /// Where it should.
        expected: BlockNo,
    },
    /// No page of the level above leads here.
    NoDownlink,
    /// A page of the level above leads to a page that is not the next one of the level.
    WrongDownlink {
        /// The page that leads there.
        parent: BlockNo,
        /// Its line pointer.
        item: u16,
        /// Where it leads.
        child: BlockNo,
    },
    /// The separator is not the high key of the page to the left.
    Separator {
        /// The page that has the separator.
        parent: BlockNo,
        /// Its line pointer.
        item: u16,
    },
    /// An entry is below the high key of the page to the left.
    BelowLeft {
        /// The page to the left.
        left: BlockNo,
    },
    /// The page's flag and the metapage do not agree on which is the root.
    Root {
        /// What the metapage says.
        expected: BlockNo,
    },
    /// The page that searches start at, as the metapage says, is not the only one of its level.
    FastRoot {
        /// Where the metapage leads.
        found: BlockNo,
        /// The level that it names.
        level: u32,
    },
    /// It is of another level than the page that leads to it says.
    Level {
        /// Its level.
        found: u32,
        /// What it should be.
        expected: u32,
    },
    /// Links to the right go round in a circle.
    Loop {
        /// Blocks of the index.
        blocks: BlockNo,
    },
}

impl ContentProblem {
    /// A word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::NotATable | Self::Row | Self::Columns { .. } => "row",
            Self::Transaction(_) | Self::Age { .. } => "transaction",
            Self::Value { .. } => "value",
            Self::Toast { .. } => "toast",
            Self::NoChain | Self::NextVersion { .. } => "chain",
            Self::NotVisible { .. }
            | Self::DeadLinePointer
            | Self::NotFrozen
            | Self::NoPageFlag
            | Self::MapBeyondEnd { .. }
            | Self::MapBits => "visibility_map",
            Self::IndexPage(_) | Self::IndexLink(_) => "btree",
            Self::EntryBeyondEnd { .. }
            | Self::EntryNowhere { .. }
            | Self::EntryTwice { .. }
            | Self::NoEntry { .. }
            | Self::OtherKey { .. } => "heap_and_index",
            Self::NotUnique { .. } => "not_unique",
        }
    }
}

impl fmt::Display for ContentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) | Self::Transaction(error) => f.write_str(error),
            Self::NotATable => f.write_str("no page of a table: it has a special space"),
            Self::Row => f.write_str("row does not fit into its item or page"),
            Self::Age { which, found, oldest, next } => write!(
                f,
                "{which} {found} cannot be: the table has none before {oldest}, and {next} is the \
                 next to be given out"
            ),
            Self::NextVersion { next } => {
                write!(f, "row was never updated, but its next version is said to be {next}")
            }
            Self::Columns { found, expected } => {
                write!(f, "row has {found} columns, at most {expected} expected")
            }
            Self::Value { column, error } => write!(f, "column \"{column}\": {error}"),
            Self::Toast { column, error } => write!(f, "column \"{column}\" in TOAST: {error}"),
            Self::NoChain => f.write_str("heap-only row that no other version leads to"),
            Self::NotVisible { state } => {
                write!(f, "row is {state}, but the page is marked as visible to everyone")
            }
            Self::DeadLinePointer => {
                f.write_str("line pointer is dead, but the page is marked as visible to everyone")
            }
            Self::NotFrozen => {
                f.write_str("row is not frozen, but the visibility map says that all rows are")
            }
            Self::NoPageFlag => {
                f.write_str("all-visible in the visibility map, but not in the page itself")
            }
            Self::MapBeyondEnd { blocks } => {
                write!(f, "all-visible in the visibility map, but the table has {blocks} blocks")
            }
            Self::MapBits => f.write_str("all-frozen in the visibility map, but not all-visible"),
            Self::IndexPage(fault) => fault.fmt(f),
            Self::IndexLink(problem) => problem.fmt(f),
            Self::EntryBeyondEnd { row, blocks } => {
                write!(f, "entry leads to row {row}, but the table has {blocks} blocks")
            }
            Self::EntryNowhere { index, found } => {
                write!(f, "an entry of index {index} leads here, to {found}")
            }
            Self::EntryTwice { index } => {
                write!(f, "two entries of index {index} lead to the same row")
            }
            Self::NoEntry { index, dead: false, root } => {
                write!(f, "row is visible, but index {index} has no entry for line pointer {root}")
            }
            Self::NoEntry { index, dead: true, root } => write!(
                f,
                "row is visible, but the entry of index {index} for line pointer {root} is marked \
                 as dead"
            ),
            Self::NotUnique { index, other } => {
                write!(f, "row has the same key in unique index {index} as row {other}")
            }
            Self::OtherKey { index, root } => write!(
                f,
                "row's key is not that of its entry in index {index} for line pointer {root}"
            ),
        }
    }
}

impl fmt::Display for HeaderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Xmin => "xmin",
            Self::Xmax => "xmax",
            Self::Multixact => "multixact",
        })
    }
}

impl fmt::Display for Nowhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beyond { count } => write!(f, "none of {count} line pointers"),
            Self::Unused => f.write_str("an unused line pointer"),
            Self::HeapOnly => f.write_str("a heap-only row"),
            Self::NewPage => f.write_str("a page without rows"),
        }
    }
}

impl fmt::Display for LinkProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Left { found, expected } => {
                write!(f, "link to the left leads to block {found}, to {expected} expected")
            }
            Self::NoDownlink => f.write_str("no page of the level above leads here"),
            Self::WrongDownlink { parent, item, child } => write!(
                f,
                "entry {item} of block {parent} leads to block {child}, not the next of its level"
            ),
            Self::Separator { parent, item } => write!(
                f,
                "entry {item} of block {parent} separates it from the page to its left by another \
                 key than that page's high key"
            ),
            Self::BelowLeft { left } => {
                write!(f, "first entry is below the high key of block {left} to the left")
            }
            Self::Root { expected } => {
                write!(f, "marked as root or not, against the metapage's root {expected}")
            }
            Self::FastRoot { found, level } => write!(
                f,
                "searches start at block {found}, which is not the only page of level {level}"
            ),
            Self::Level { found, expected } => {
                write!(f, "level {found} found, {expected} expected")
            }
            Self::Loop { blocks } => {
                write!(f, "links to the right do not end within {blocks} blocks")
            }
        }
    }
}
