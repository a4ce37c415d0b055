//! Hash joins that become merge joins if their table doesn't fit into memory.
//!
//! The planner's hash join keeps all rows of its first input in memory. PostgreSQL divides both inputs
//! into batches on disk if they don't fit; here, both are sorted, because sorts and merge joins spill.
//! Nothing is read twice: the rows that were collected before the limit was reached are sorted, too.
//!
//! ```text
//!   the first input fits              it doesn't
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
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};

use exec::AdaptiveJoinExec;

/// Replaces hash joins.
#[derive(Debug)]
pub(crate) struct AdaptiveJoins {
    /// What a hash table may use, in bytes, for all tasks together.
    limit: usize,
}

impl AdaptiveJoins {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit }
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
                let join = AdaptiveJoinExec::new(Arc::new(join.builder().build()?), self.limit);
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
/// for all rows, and a sort can restore only one order.
fn can_merge(join: &HashJoinExec) -> bool {
    let orders = join.properties().equivalence_properties().oeq_class().len();
    !join.null_aware && orders <= 1 && *join.partition_mode() != PartitionMode::Auto
}
