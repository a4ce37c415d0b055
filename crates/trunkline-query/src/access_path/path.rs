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
    /// The other paths that were considered.
    pub(crate) rejected: Vec<RejectedPath>,
}

/// A path that was considered, but is worse than another one.
#[derive(Debug, Clone)]
pub(crate) struct RejectedPath {
    /// The way, as `EXPLAIN` shows it.
    pub(crate) name: String,
    /// What it is estimated to cost.
    pub(crate) cost: Cost,
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
        Self {
            kind,
            cost,
            rows: None,
            covered: Vec::new(),
            unused: Vec::new(),
            rejected: Vec::new(),
        }
    }

    /// The only path that was considered, a search of an index.
    pub(crate) fn of_search(search: Arc<IndexSearch>) -> Self {
        Self { kind: PathKind::Index(search), ..Self::sequential() }
    }
}

impl PathKind {
    /// The way with its indexes, as in the title of a node.
    pub(crate) fn name(&self) -> String {
        let using = |name: &str, search: &IndexSearch| {
            let direction = if search.is_backward() { " Backward" } else { "" };
            format!("{name}{direction} using {}", search.index.name)
        };
        match self {
            Self::Sequential => "Seq Scan".to_owned(),
            Self::Index(search) => using("Index Scan", search),
            Self::IndexOnly(search) => using("Index Only Scan", search),
            Self::Bitmap(bitmap) => format!("Bitmap Heap Scan using {}", bitmap.name()),
        }
    }
}

impl BitmapNode {
    fn name(&self) -> String {
        let all = |parts: &[Self], word: &str| {
            let names: Vec<String> = parts.iter().map(Self::name).collect();
            format!("({})", names.join(word))
        };
        match self {
            Self::Index(search) => search.index.name.clone(),
            Self::And(parts) => all(parts, " AND "),
            Self::Or(parts) => all(parts, " OR "),
        }
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
