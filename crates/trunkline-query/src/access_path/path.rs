//! A chosen access path, as a scan executes it and `EXPLAIN` shows it.

use std::sync::Arc;

use trunkline_engine::btree::Index;
use trunkline_format::btree::{Condition, Direction, KeyRanges};

use super::candidate_index::CandidateIndex;
use super::cost::Cost;

/// What stands for the statistics of a table in the list of what isn't used.
pub(crate) const STATISTICS: &str = "pg_statistic";

/// How a scan gets to its rows.
#[derive(Debug, Clone)]
pub(crate) struct AccessPath {
    /// The way.
    pub(crate) kind: PathKind,
    /// What it is estimated to cost.
    pub(crate) cost: Cost,
    /// The rows that are estimated to pass all filters.
    pub(crate) rows: Option<f64>,
    /// Which filters say no more than the conditions on indexes, by their numbers. They are evaluated
    /// all the same.
    pub(crate) covered: Vec<usize>,
    /// Indexes that aren't used, and why.
    pub(crate) unused: Vec<(String, String)>,
}

/// The kinds of access paths.
#[derive(Debug, Clone)]
pub(crate) enum PathKind {
    /// All pages, in order.
    Sequential,
    /// The rows that an index leads to.
    Index(Arc<IndexSearch>),
    /// The columns of the entries of an index, without the rows that they lead to where the
    /// visibility map allows that.
    IndexOnly(Arc<IndexSearch>),
    /// The rows of a bitmap, in the order of their blocks.
    Bitmap(BitmapNode),
}

/// A search of an index.
#[derive(Debug, Clone)]
pub(crate) struct IndexSearch {
    /// The index.
    pub(crate) index: Arc<CandidateIndex>,
    /// What it is searched for, for `EXPLAIN`.
    pub(crate) conditions: Vec<Condition>,
    /// The same; `None` if no entry can match.
    pub(crate) ranges: Option<KeyRanges>,
    /// The direction if rows must come in the order of the index; `None` if any order will do.
    pub(crate) order: Option<Direction>,
    /// The estimated number of entries that match.
    pub(crate) entries: f64,
}

/// How a bitmap is made.
#[derive(Debug, Clone)]
pub(crate) enum BitmapNode {
    /// Of the entries of an index.
    Index(Arc<IndexSearch>),
    /// Of the rows that all of these have.
    And(Vec<BitmapNode>),
    /// Of the rows that one of these has.
    Or(Vec<BitmapNode>),
}

impl AccessPath {
    /// A sequential scan that nothing is known about.
    pub(crate) fn sequential() -> Self {
        let (kind, cost) = (PathKind::Sequential, Cost::default());
        Self { kind, cost, rows: None, covered: Vec::new(), unused: Vec::new() }
    }

    /// The only path that was considered, a search of an index.
    pub(crate) fn of_search(search: Arc<IndexSearch>) -> Self {
        Self { kind: PathKind::Index(search), ..Self::sequential() }
    }
}

impl IndexSearch {
    /// Whether the rows come in the opposite order of the index.
    pub(crate) fn is_backward(&self) -> bool {
        self.order == Some(Direction::Backward)
    }

    /// The files and columns of the index.
    pub(crate) fn index(&self) -> &Index {
        &self.index.index
    }
}

impl BitmapNode {
    /// The searches of all indexes, in the order in which they are executed.
    pub(crate) fn searches(&self) -> Vec<&IndexSearch> {
        match self {
            Self::Index(search) => vec![&**search],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::searches).collect(),
        }
    }
}
