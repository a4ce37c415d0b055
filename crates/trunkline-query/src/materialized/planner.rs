//! Plans materialized rows: all physical nodes of a logical one share its cell.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::exec::MaterializedExec;
use super::node::MaterializedNode;

/// Plans [`MaterializedNode`]s.
#[derive(Debug)]
pub(crate) struct MaterializedPlanner;

#[async_trait::async_trait]
impl ExtensionPlanner for MaterializedPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<MaterializedNode>() else { return Ok(None) };
        let [input] = physical_inputs else { return exec_err!("a node has one input") };
        Ok(Some(Arc::new(MaterializedExec::new(Arc::clone(input), Arc::clone(node.rows())))))
    }
}
