//! Problems in the contents of tables and indexes whose pages are valid.
//!
//! Each problem says what we found and what we expected. The finding that contains the problem adds
//! where it is: the relation, file, block and line pointer. The checks correspond to those of
//! `verify_heapam` and `bt_index_check` in PostgreSQL's `amcheck`.

use std::mem::{Discriminant, discriminant};
use std::path::PathBuf;

use thiserror::Error;
use trunkline_format::btree::Fault;
use trunkline_format::transam::RowState;
use trunkline_format::{BlockNo, Tid};

use super::link_problem::LinkProblem;
use crate::btree::BtreeProblem;

/// What two problems must have in common for us to list only the first few and count the others. It
/// includes the variants, but not the rows, blocks and numbers in them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Likeness {
    variant: Discriminant<ContentProblem>,
    detail: LikenessDetail,
}

/// Details of a problem, if its variant alone isn't enough to tell what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LikenessDetail {
    None,
    Column(Box<str>),
    Header(Discriminant<HeaderId>),
    State(RowState),
    Page(Discriminant<BtreeProblem>, Option<Discriminant<Fault>>),
    Link(Discriminant<LinkProblem>),
    Target(Discriminant<InvalidTarget>),
    Dead(bool),
}

/// A problem with a table or an index.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ContentProblem {
    /// A page, or other data that the check needs, cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A page of a table has a special space, but only index pages should have one.
    #[error("not a page of a table: it has a special space")]
    NotATable,
    /// A row extends beyond its item.
    #[error("row does not fit into its item or page")]
    Row,
    /// The visibility of a row cannot be determined.
    #[error("{0}")]
    Transaction(String),
    /// A file of the commit log or of multixacts is missing, short or unreadable. We don't check the
    /// rows that need this file; nothing may be wrong with them.
    #[error("{error}; {} not checked, the first is {first}", describe_unknown(*rows, *values))]
    StatusFile {
        /// What is wrong with the file, and the first transaction or multixact that needed it.
        error: String,
        /// The number of rows whose visibility is unknown.
        rows: u64,
        /// The number of TOAST values that could not be fetched because of such a row.
        values: u64,
        /// The first such row, or the row of the first such value.
        first: String,
    },
    /// An id in a tuple header is outside the table's range: either it should have been frozen long
    /// ago, or it has not been assigned yet.
    #[error(
        "{which} {found} is out of range: the oldest in the table is {oldest}, the next to be \
         assigned is {next}"
    )]
    XidRange {
        /// The header field.
        which: HeaderId,
        /// The id.
        found: u32,
        /// The oldest id that the table may have.
        oldest: u32,
        /// The next id that the cluster will assign.
        next: u32,
    },
    /// The ctid of a visible tuple points to another tuple, although the tuple was never updated.
    /// If a tuple is the latest version of its row, its ctid must point to itself.
    #[error("row was never updated, but its ctid points to {next}")]
    StrayLink {
        /// Where the ctid points to.
        next: Tid,
    },
    /// A row has more columns than its table.
    #[error("row has {found} columns, at most {expected} expected")]
    Columns {
        /// The columns of the row.
        found: u16,
        /// The columns of the table.
        expected: u16,
    },
    /// A value of a visible row is not valid for its type.
    #[error("column \"{column}\": {error}")]
    Value {
        /// The name of the column.
        column: String,
        /// What is wrong with the value.
        error: String,
    },
    /// A TOAST value is incomplete or damaged.
    #[error("column \"{column}\" in TOAST: {error}")]
    Toast {
        /// The name of the column.
        column: String,
        /// What is wrong with the value.
        error: String,
        /// The file of the TOAST table or its index that can't be used as a whole, so that other
        /// values have the same problem.
        file: Option<PathBuf>,
    },
    /// A visible heap-only tuple can't be reached from any root line pointer, so index scans don't
    /// find it.
    #[error("heap-only tuple is not part of any HOT chain")]
    NoChain,
    /// A page is marked all-visible, in its header or in the visibility map, but it contains a
    /// tuple that isn't visible. As a result, index-only scans could return deleted rows.
    #[error("row is {state}, but the page is marked all-visible")]
    NotVisible {
        /// The state of the row.
        state: RowState,
    },
    /// A page is marked all-visible, in its header or in the visibility map, but it contains a dead
    /// line pointer.
    #[error("line pointer is dead, but the page is marked all-visible")]
    DeadLinePointer,
    /// A page is marked all-frozen in the visibility map, but it contains a tuple that isn't
    /// frozen. VACUUM would never freeze that tuple, so its row would disappear after transaction
    /// ID wraparound.
    #[error("row is not frozen, but the page is all-frozen in the visibility map")]
    NotFrozen,
    /// A page is marked all-visible in the visibility map but not in its page header. As a result,
    /// a server that changes the page would not clear the bit in the visibility map.
    #[error("all-visible in the visibility map, but not in the page itself")]
    NoPageFlag,
    /// In the visibility map, bits are set for blocks beyond the end of the table.
    #[error("all-visible in the visibility map, but the table has {blocks} blocks")]
    MapBeyondEnd {
        /// The number of blocks of the table.
        blocks: BlockNo,
    },
    /// A page is marked all-frozen in the visibility map but not all-visible, although an
    /// all-frozen page is always all-visible.
    #[error("all-frozen in the visibility map, but not all-visible")]
    MapBits,
    /// A page of an index is invalid. If a line pointer is affected, it is included in the text.
    #[error("{0}")]
    IndexPage(BtreeProblem),
    /// A page of an index contradicts another page.
    #[error("{0}")]
    IndexLink(LinkProblem),
    /// An index entry points to a block beyond the end of the table.
    #[error("entry points to row {row}, but the table has {blocks} blocks")]
    EntryBeyondEnd {
        /// Where the entry points to.
        row: Tid,
        /// The number of blocks of the table.
        blocks: BlockNo,
    },
    /// An index entry points to a line pointer that can't be the root of a HOT chain.
    #[error("an entry of index {index} points here, to {found}")]
    EntryTarget {
        /// The index.
        index: String,
        /// What it points to.
        found: InvalidTarget,
    },
    /// Two entries of the same index point to the same row, so an index scan would return the row
    /// twice.
    #[error("two entries of index {index} point to the same row")]
    EntryTwice {
        /// The index.
        index: String,
    },
    /// A visible row has no index entry, or its only entry is marked dead. In either case, index
    /// scans don't find the row.
    #[error(
        "row is visible, but {}",
        match dead {
            false => format!("index {index} has no entry for line pointer {root}"),
            true => format!("the entry of index {index} for line pointer {root} is marked as dead"),
        }
    )]
    NoEntry {
        /// The index.
        index: String,
        /// Whether there is an entry that is marked dead. Servers ignore such entries.
        dead: bool,
        /// The line pointer that the entry should point to.
        root: u16,
    },
    /// Two visible rows have the same key in a unique index.
    #[error("row has the same key in unique index {index} as row {other}")]
    NotUnique {
        /// The index.
        index: String,
        /// The other row.
        other: Tid,
    },
    /// A visible row's index entry has a different key.
    #[error("row's key differs from that of its entry in index {index} for line pointer {root}")]
    OtherKey {
        /// The index.
        index: String,
        /// The line pointer that the entry points to.
        root: u16,
    },
}

/// `1,000 rows and 3 TOAST values were`, without the comma.
fn describe_unknown(rows: u64, values: u64) -> String {
    let rows = (rows > 0).then(|| format!("{rows} row{}", if rows == 1 { "" } else { "s" }));
    let values =
        (values > 0).then(|| format!("{values} TOAST value{}", if values == 1 { "" } else { "s" }));
    let all: Vec<String> = rows.into_iter().chain(values).collect();
    let one = all.len() == 1 && all.iter().all(|text| text.starts_with("1 "));
    format!("{} {}", all.join(" and "), if one { "was" } else { "were" })
}

/// A transaction id field in the header of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderId {
    /// The inserting transaction.
    #[error("xmin")]
    Xmin,
    /// The deleting or locking transaction.
    #[error("xmax")]
    Xmax,
    /// The multixact, if several transactions deleted or locked the row.
    #[error("multixact")]
    Multixact,
}

/// The target of an invalid index entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidTarget {
    /// A line pointer that the page does not have.
    #[error("none of {count} line pointers")]
    Beyond {
        /// The number of line pointers.
        count: u16,
    },
    /// An unused line pointer.
    #[error("an unused line pointer")]
    Unused,
    /// The line pointer points to a heap-only tuple, which may only be reached through its HOT
    /// chain.
    #[error("a heap-only tuple")]
    HeapOnly,
    /// A new page, which has no line pointers.
    #[error("a page without rows")]
    NewPage,
}

impl ContentProblem {
    /// Whether this is a problem with an index or its entries, of which a single index may have
    /// thousands. Returns `Some` with the name of the index, or `Some(None)` if the index is the
    /// relation that was checked.
    pub(super) fn index(&self) -> Option<Option<&str>> {
        match self {
            Self::IndexPage(_) | Self::IndexLink(_) | Self::EntryBeyondEnd { .. } => Some(None),
            Self::EntryTarget { index, .. }
            | Self::EntryTwice { index }
            | Self::NoEntry { index, .. }
            | Self::NotUnique { index, .. }
            | Self::OtherKey { index, .. } => Some(Some(index)),
            _ => None,
        }
    }

    /// What other problems must have in common with this one to be listed together with it.
    pub(super) fn likeness(&self) -> Likeness {
        let detail = match self {
            Self::Value { column, .. } | Self::Toast { column, .. } => {
                LikenessDetail::Column(column.as_str().into())
            }
            Self::XidRange { which, .. } => LikenessDetail::Header(discriminant(which)),
            Self::NotVisible { state } => LikenessDetail::State(*state),
            Self::IndexPage(problem) => {
                let fault = match problem {
                    BtreeProblem::Fault(fault) => Some(discriminant(fault)),
                    _ => None,
                };
                LikenessDetail::Page(discriminant(problem), fault)
            }
            Self::IndexLink(problem) => LikenessDetail::Link(discriminant(problem)),
            Self::EntryTarget { found, .. } => LikenessDetail::Target(discriminant(found)),
            Self::NoEntry { dead, .. } => LikenessDetail::Dead(*dead),
            // We list all variants, so that we don't forget to think about a new one.
            Self::Unreadable(_)
            | Self::NotATable
            | Self::Row
            | Self::Columns { .. }
            | Self::Transaction(_)
            | Self::StatusFile { .. }
            | Self::NoChain
            | Self::StrayLink { .. }
            | Self::DeadLinePointer
            | Self::NotFrozen
            | Self::NoPageFlag
            | Self::MapBeyondEnd { .. }
            | Self::MapBits
            | Self::EntryBeyondEnd { .. }
            | Self::EntryTwice { .. }
            | Self::OtherKey { .. }
            | Self::NotUnique { .. } => LikenessDetail::None,
        };
        Likeness { variant: discriminant(self), detail }
    }

    /// A name for the problem, for programs that read the report. It must not change between
    /// releases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::NotATable | Self::Row | Self::Columns { .. } => "row",
            Self::Transaction(_) | Self::XidRange { .. } => "transaction",
            Self::StatusFile { .. } => "status_file",
            Self::Value { .. } => "value",
            Self::Toast { .. } => "toast",
            Self::NoChain | Self::StrayLink { .. } => "chain",
            Self::NotVisible { .. }
            | Self::DeadLinePointer
            | Self::NotFrozen
            | Self::NoPageFlag
            | Self::MapBeyondEnd { .. }
            | Self::MapBits => "visibility_map",
            Self::IndexPage(_) | Self::IndexLink(_) => "btree",
            Self::EntryBeyondEnd { .. }
            | Self::EntryTarget { .. }
            | Self::EntryTwice { .. }
            | Self::NoEntry { .. }
            | Self::OtherKey { .. } => "heap_and_index",
            Self::NotUnique { .. } => "not_unique",
        }
    }
}
