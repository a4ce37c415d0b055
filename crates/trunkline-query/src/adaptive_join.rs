//! **Adaptive joins**: hash joins that become sort-merge joins if their build side is too large.
//!
//! The planner's hash join keeps its build side in memory. PostgreSQL divides both inputs into batches on
//! disk if it doesn't fit; here, both are sorted, because sorts and merge joins spill. Nothing is read
//! twice: the rows that were collected before the limit was reached are sorted, too.
//!
//! ```text
//!   the build side fits               it doesn't
//!
//!   HashJoinExec                      SortExec              if rows must come in the order of b
//!     SupplyExec   what was collected   SortMergeJoinExec
//!     b                                   SortExec
//!                                           SupplyExec      what was collected, and the rest
//!                                         SortExec
//!                                           b
//! ```

mod build_side;
mod exec;
mod merge_plan;
mod supply;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use crate::scan::Cancellation;
use exec::AdaptiveJoinExec;

/// Replaces hash joins.
#[derive(Debug)]
pub(crate) struct AdaptiveJoins {
    /// The memory limit of a hash table, in bytes, for all tasks together.
    limit: usize,
    cancellation: Cancellation,
}

impl AdaptiveJoins {
    pub(crate) fn new(limit: usize, cancellation: &Cancellation) -> Self {
        Self { limit, cancellation: cancellation.clone() }
    }
}

impl PhysicalOptimizerRule for AdaptiveJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| match plan.downcast_ref::<HashJoinExec>() {
            Some(join) if can_merge(join) => {
                let join = Arc::new(join.builder().build()?);
                let join = AdaptiveJoinExec::new(join, self.limit, &self.cancellation);
                Ok(Transformed::yes(Arc::new(join) as _))
            }
            _ => Ok(Transformed::no(plan)),
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "AdaptiveJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a merge join can replace this join. It can't for `NOT IN`, where one null changes the result
/// for all rows. A sort can restore only one order, and rows can be divided again only by a hash.
fn can_merge(join: &HashJoinExec) -> bool {
    let properties = join.properties();
    let orders = properties.equivalence_properties().oeq_class().len();
    let is_range = matches!(properties.output_partitioning(), Partitioning::Range(_));
    let is_decided = *join.partition_mode() != PartitionMode::Auto;
    !join.null_aware && orders <= 1 && !is_range && is_decided
}
