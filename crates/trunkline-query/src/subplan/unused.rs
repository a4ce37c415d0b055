//! A rule that drops subplans whose column no node reads, as PostgreSQL does. Executing them would cost
//! time, and might fail.
//!
//! ```text
//!   SELECT count(*) FROM (SELECT (SELECT 10 / a) FROM t) s
//!
//!   Aggregate: count(*)              Aggregate: count(*)
//!     Projection:                      Projection:
//!       Subplan: keys=[c1] → c2  ──▶     TableScan: t
//!         TableScan: t
//! ```

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::node::SubplanNode;

/// Drops the subplans below a projection or an aggregate that doesn't use their columns.
#[derive(Debug)]
pub(crate) struct DropUnusedSubplans;

impl OptimizerRule for DropUnusedSubplans {
    fn name(&self) -> &str {
        "drop_unused_subplans"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let (LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)) = &plan else {
            return Ok(Transformed::no(plan));
        };
        let Some(input) = plan.inputs().first().copied() else { return Ok(Transformed::no(plan)) };
        match without_unused(input, &mut used(&plan))? {
            None => Ok(Transformed::no(plan)),
            Some(input) => {
                plan.with_new_exprs(plan.expressions(), vec![input]).map(Transformed::yes)
            }
        }
    }
}

/// The columns that a node's own expressions read.
fn used(plan: &LogicalPlan) -> Vec<Column> {
    let expressions = plan.expressions();
    expressions.iter().flat_map(|expr| expr.column_refs().into_iter().cloned()).collect()
}

/// The plan without subplans of other columns than these; `None` if it has none at its top.
fn without_unused(plan: &LogicalPlan, columns: &mut Vec<Column>) -> Result<Option<LogicalPlan>> {
    let node = match plan {
        LogicalPlan::Extension(Extension { node }) => {
            node.as_any().downcast_ref::<SubplanNode>().filter(|node| node.is_row_preserving())
        }
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => None,
        _ => return Ok(None),
    };
    let Some(input) = plan.inputs().first().copied() else { return Ok(None) };
    if let Some(node) = node
        && node.is_unused(columns)
    {
        let below = without_unused(input, columns)?;
        return Ok(Some(below.unwrap_or_else(|| input.clone())));
    }
    if node.is_none() && matches!(plan, LogicalPlan::Extension(_)) {
        return Ok(None);
    }
    columns.extend(used(plan));
    match without_unused(input, columns)? {
        None => Ok(None),
        Some(input) => plan.with_new_exprs(plan.expressions(), vec![input]).map(Some),
    }
}
