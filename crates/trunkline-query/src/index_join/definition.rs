//! What an index join computes, and how it finds the inner rows.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::{JoinSide, JoinType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use trunkline_sql::values::Carrier;

use crate::access_path::{Cost, IndexSearch, KeySearch};
use crate::scan::ScanExec;

/// Which rows a join returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and outer rows without a match, with nulls.
    Left,
    /// Outer rows with a match.
    Semi,
    /// Outer rows without a match.
    Anti,
}

impl JoinKind {
    /// The kind of a join whose outer rows are those of this side; `None` if a loop over them can't
    /// compute it.
    pub(super) fn of(join: JoinType, outer: JoinSide) -> Option<Self> {
        match (join, outer) {
            (JoinType::Inner, _) => Some(Self::Inner),
            (JoinType::Left, JoinSide::Left) | (JoinType::Right, JoinSide::Right) => {
                Some(Self::Left)
            }
            (JoinType::LeftSemi, JoinSide::Left) | (JoinType::RightSemi, JoinSide::Right) => {
                Some(Self::Semi)
            }
            (JoinType::LeftAnti, JoinSide::Left) | (JoinType::RightAnti, JoinSide::Right) => {
                Some(Self::Anti)
            }
            _ => None,
        }
    }
}

/// The inner side.
#[derive(Debug)]
pub(crate) struct InnerSide {
    /// The plan that the loop stands for: the scan, and perhaps a projection.
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    /// The scan, with the index as its path.
    pub(crate) scan: ScanExec,
    /// What the index is searched for.
    pub(crate) search: KeySearch,
    /// The index with its conditions, as the path of the scan.
    pub(super) path: Arc<IndexSearch>,
    /// The columns of the inner side in terms of those of the scan; `None` if they are the same.
    pub(super) projection: Option<Vec<Arc<dyn PhysicalExpr>>>,
}

/// A join.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) kind: JoinKind,
    pub(super) join_type: JoinType,
    /// Which input is the outer one.
    pub(crate) outer_side: JoinSide,
    /// The equalities: of an outer value, and of an inner one.
    pub(crate) on: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    /// The rest of the condition.
    pub(crate) filter: Option<JoinFilter>,
    /// For each equality that an index could be searched for, the outer value, with what holds the
    /// values of the column. The numbers of keys are places in this list.
    pub(super) keys: Vec<(Arc<dyn PhysicalExpr>, Carrier)>,
    /// The place of each key's equality in `on`.
    pub(crate) equalities: Vec<usize>,
    pub(crate) inner: InnerSide,
    /// The outer columns that belong to the join. Behind them there may be values of keys.
    pub(super) outer_schema: SchemaRef,
    /// All columns of the join, without its projection.
    pub(super) join_schema: SchemaRef,
    /// The columns of the result among those.
    pub(super) projection: Option<Vec<usize>>,
    /// Where the columns of the result come from.
    pub(crate) columns: Vec<ColumnIndex>,
    pub(super) schema: SchemaRef,
    /// The estimated inner rows for each outer row.
    pub(super) matches: f64,
    /// The most keys that are looked up together.
    pub(super) keys_max: usize,
    /// The estimated cost of the inner side, for all outer rows.
    pub(super) cost: Cost,
}

impl Definition {
    /// The estimated rows for this many outer rows.
    pub(super) fn rows(&self, outer: f64) -> f64 {
        let found = self.matches.min(1.0);
        match self.kind {
            JoinKind::Inner => outer * self.matches,
            JoinKind::Left => outer * self.matches.max(1.0),
            JoinKind::Semi => outer * found,
            JoinKind::Anti => outer * (1.0 - found),
        }
    }
}
