//! **Index joins**: nested loops whose inner side is searched through an index, for many outer rows at a
//! time.
//!
//! ```text
//!   HashJoinExec: o.x = t.k            IndexJoinExec: t_pkey (k = o.x)
//!     o                         ──▶      o
//!     ScanExec t
//!
//!   outer rows ── keys ──▶ KeyedReader: the rows of t, key by key ── conditions of the join ──▶ pairs
//! ```
//! In PostgreSQL, the inner side of a nested loop reads the pages of one outer row at a time. Here, the
//! keys of several outer rows are looked up together, so their reads are in flight together. How many
//! depends on what was used so far: a consumer that stops early finds that little was read in vain
//! (decision 0037).
//!
//! The planner makes hash joins of all equalities. Those that are cheaper as index joins are replaced
//! before the planner divides their inputs among tasks. All conditions of the join are evaluated for each
//! pair of rows, so what the index is searched for need not say all of them.

mod candidate;
mod cost;
mod definition;
mod exec;
mod outer_rows;
mod pairs;
mod statistics;
mod stream;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use trunkline_sql::bound::with_stack;

use crate::children::with_new_children;
use crate::hidden_constants::HideConstants;
use crate::pass_through::PassThroughExec;
pub(crate) use definition::{Definition, JoinKind};
pub(crate) use exec::IndexJoinExec;
pub(crate) use statistics::read_statistics;

/// Replaces hash joins.
#[derive(Debug)]
pub(crate) struct IndexJoins;

impl PhysicalOptimizerRule for IndexJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        replaced(plan, None)
    }

    fn name(&self) -> &'static str {
        "IndexJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A plan with its joins replaced, from the bottom up, because the rows of an index join can be estimated.
/// `limit` is how many rows of the plan are wanted.
fn replaced(plan: Arc<dyn ExecutionPlan>, limit: Option<usize>) -> Result<Arc<dyn ExecutionPlan>> {
    with_stack(|| {
        let below = limit_below(&plan, limit);
        let children: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
        let new = children.iter().map(|child| replaced(Arc::clone(child), below));
        let new = new.collect::<Result<Vec<_>>>()?;
        let is_same = children.iter().zip(&new).all(|(one, other)| Arc::ptr_eq(one, other));
        let plan = if is_same { plan } else { with_new_children(plan, new)? };
        match plan.downcast_ref::<HashJoinExec>() {
            Some(join) => Ok(candidate::cheaper(join, limit)?.unwrap_or(plan)),
            None => Ok(plan),
        }
    })
}

/// How many rows of its inputs a node needs for this many of its own.
fn limit_below(plan: &Arc<dyn ExecutionPlan>, limit: Option<usize>) -> Option<usize> {
    let least = |rows: usize| Some(limit.map_or(rows, |limit| limit.min(rows)));
    if let Some(node) = plan.downcast_ref::<GlobalLimitExec>() {
        let rows = node.fetch().map(|fetch| fetch.saturating_add(node.skip()));
        return rows.map_or(limit.map(|limit| limit.saturating_add(node.skip())), least);
    }
    if let Some(node) = plan.downcast_ref::<LocalLimitExec>() {
        return least(node.fetch());
    }
    let passes_on = plan.is::<ProjectionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<PassThroughExec<HideConstants>>();
    limit.filter(|_| passes_on)
}
