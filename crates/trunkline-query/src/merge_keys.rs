//! Sorts of which only the first rows are wanted, below a merge: all keys of the merge are theirs.
//!
//! ```text
//!   SELECT 2 AS a, b FROM s UNION ALL SELECT 1, b FROM t ORDER BY a DESC, b LIMIT 20
//!
//!   SortPreservingMergeExec [a DESC, b]            SortPreservingMergeExec [a DESC, b]
//!     SortExec [b], fetch 20, each partition  ──▶    SortExec [a DESC, b], fetch 20, each partition
//!       UnionExec                                      UnionExec
//! ```
//!
//! The planner drops a key that is constant in each partition. But the partitions of such a sort share
//! the bound that rows must be below to be among the first ones. Without the key, rows of one partition
//! would be compared with those of another that come later in the whole order, and be lost.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{AcrossPartitions, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use trunkline_sql::bound::with_stack;

use crate::children::with_new_children;

/// Gives sorts with a limit all keys of the merge above them.
#[derive(Debug)]
pub(crate) struct RestoreMergeKeys;

impl PhysicalOptimizerRule for RestoreMergeKeys {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        restored(plan, None)
    }

    fn name(&self) -> &'static str {
        "RestoreMergeKeys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Restores keys in a plan. `keys` are those of a merge above it, in terms of the plan's columns.
fn restored(
    plan: Arc<dyn ExecutionPlan>,
    keys: Option<&LexOrdering>,
) -> Result<Arc<dyn ExecutionPlan>> {
    with_stack(|| {
        let plan = match plan.downcast_ref::<SortExec>() {
            Some(sort) => complete(sort, keys).unwrap_or(plan),
            None => plan,
        };
        let below = match plan.downcast_ref::<ProjectionExec>() {
            Some(projection) => keys.map(|keys| beneath(keys, projection.expr())).transpose()?,
            None => None,
        };
        let merge = plan.downcast_ref::<SortPreservingMergeExec>();
        let below = merge.map(|merge| merge.expr().clone()).or(below.flatten());
        let children: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
        let restored = children.iter().map(|child| restored(Arc::clone(child), below.as_ref()));
        let restored = restored.collect::<Result<Vec<_>>>()?;
        match children.iter().zip(&restored).all(|(before, after)| Arc::ptr_eq(before, after)) {
            true => Ok(plan),
            false => with_new_children(plan, restored),
        }
    })
}

/// The sort with all keys, if it lacks some.
fn complete(sort: &SortExec, keys: Option<&LexOrdering>) -> Option<Arc<dyn ExecutionPlan>> {
    let input = sort.input();
    let partitions = input.output_partitioning().partition_count();
    let fetch = sort.fetch()?;
    if !sort.preserve_partitioning() || partitions < 2 {
        return None;
    }
    let sorted = |keys: LexOrdering, fetch: Option<usize>| {
        let sort = SortExec::new(keys, Arc::clone(input)).with_preserve_partitioning(true);
        Arc::new(sort.with_fetch(fetch)) as Arc<dyn ExecutionPlan>
    };
    match keys {
        Some(keys) if keys.len() == sort.expr().len() => None,
        Some(keys) => Some(sorted(keys.clone(), Some(fetch))),
        None => {
            // Without a merge nothing is known of the whole order, so all rows are kept if there may
            // have been other keys.
            let constants = input.equivalence_properties().constants();
            let mut constants = constants.iter().map(|constant| &constant.across_partitions);
            let differs = constants.any(|across| *across == AcrossPartitions::Heterogeneous);
            differs.then(|| sorted(sort.expr().clone(), None))
        }
    }
}

/// Keys in terms of the columns below a projection.
pub(crate) fn beneath(
    keys: &LexOrdering,
    projection: &[ProjectionExpr],
) -> Result<Option<LexOrdering>> {
    let replaced = |expr: &Arc<dyn PhysicalExpr>| {
        let replace = |part: Arc<dyn PhysicalExpr>| {
            let column = part.downcast_ref::<Column>();
            let source = column.and_then(|column| projection.get(column.index()));
            Ok(match source {
                Some(source) => Transformed::yes(Arc::clone(&source.expr)),
                None => Transformed::no(part),
            })
        };
        Arc::clone(expr).transform_up(replace).data()
    };
    let keys = keys
        .iter()
        .map(|key| Ok(PhysicalSortExpr { expr: replaced(&key.expr)?, options: key.options }));
    Ok(LexOrdering::new(keys.collect::<Result<Vec<_>>>()?))
}
