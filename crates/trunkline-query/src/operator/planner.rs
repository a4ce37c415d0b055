//! Planning: operators become physical plans, and everything else is DataFusion's matter.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::exec::OperatorExec;
use super::node::OperatorNode;

/// Plans operators.
#[derive(Debug)]
pub(crate) struct OperatorPlanner;

#[async_trait]
impl ExtensionPlanner for OperatorPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<OperatorNode>() else { return Ok(None) };
        let [input] = physical_inputs else { return exec_err!("an operator has one input") };
        let exec = OperatorExec::new(Arc::clone(node.operator()), Arc::clone(input))?;
        Ok(Some(Arc::new(exec)))
    }
}
