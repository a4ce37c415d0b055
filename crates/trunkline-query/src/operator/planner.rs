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
use crate::scan::Cancellation;

/// Plans operators.
#[derive(Debug)]
pub(crate) struct OperatorPlanner {
    cancellation: Cancellation,
}

impl OperatorPlanner {
    /// Plans operators of the statement that this cancels.
    pub(crate) fn new(cancellation: Cancellation) -> Self {
        Self { cancellation }
    }
}

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
        let (operator, cancellation) = (Arc::clone(node.operator()), self.cancellation.clone());
        Ok(Some(Arc::new(OperatorExec::new(operator, Arc::clone(input), cancellation)?)))
    }
}
