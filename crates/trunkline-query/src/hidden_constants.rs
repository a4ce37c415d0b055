//! Constants that the planner must not know above joins and unions.
//!
//! The planner knows which columns are constant in its inputs, by literals and by conditions such as
//! `a = 5`, and leaves them out of sort keys. DataFusion 55.2 is wrong about them in three places:
//!
//! - An outer join adds nulls to a column that is constant on its nullable side. The planner takes the
//!   column for constant above the join, too, and the order is wrong.
//! - A union orders its operands by the keys that are not constant in them, and expects the whole order
//!   of the result. The check of the plan fails.
//! - A join expects the order that a constant column of one side gives, by an equality with a column of
//!   the other side where nulls are equal. The check of the plan fails, too.
//!
//! So the inputs of joins and unions that have constants pass through a node that hides them. What it
//! costs is a sort key or two that would not be needed, and the order of operands that are sorted
//! themselves, which PostgreSQL's `Append` keeps although SQL doesn't promise it.
//!
//! ```text
//!   HashJoinExec                   HashJoinExec
//!     ProjectionExec: 5 AS a  ──▶    HideConstantsExec
//!     …                                ProjectionExec: 5 AS a
//! ```

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use crate::children::with_new_children;
use crate::pass_through::{PassThroughExec, Work};

/// Hides the constants of the inputs of joins and unions.
#[derive(Debug)]
pub(crate) struct HideInputConstants;

impl PhysicalOptimizerRule for HideInputConstants {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if !combines(&plan) || !plan.children().into_iter().any(has_constants) {
                return Ok(Transformed::no(plan));
            }
            let inputs = plan.children().into_iter().map(|input| match has_constants(input) {
                true => PassThroughExec::over(Arc::clone(input), HideConstants),
                false => Arc::clone(input),
            });
            let inputs = inputs.collect();
            Ok(Transformed::yes(with_new_children(plan, inputs)?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "HideInputConstants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a node derives from its inputs' constants what may be wrong.
fn combines(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<UnionExec>()
}

fn has_constants(plan: &Arc<dyn ExecutionPlan>) -> bool {
    !plan.equivalence_properties().constants().is_empty()
}

/// Lets the planner know nothing of the values of rows, nor of their order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HideConstants;

impl Work for HideConstants {
    const NAME: &'static str = "HideConstantsExec";

    fn properties(input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        let properties = PlanProperties::clone(input.properties());
        let nothing = EquivalenceProperties::new(input.schema());
        Arc::new(properties.with_eq_properties(nothing))
    }

    /// If the planner could rely on it, it would move sorts below the node, without the constants.
    fn keeps_order() -> bool {
        false
    }

    fn pass(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        rows
    }
}
