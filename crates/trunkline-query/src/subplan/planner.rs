//! Plans the inner plans of subplans.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::exec::SubplanExec;
use super::inner_plan::InnerPlan;
use super::node::SubplanNode;
use super::outer::{Slot, uses_slot, with_slot};
use crate::scan::Cancellation;

/// Plans [`SubplanNode`]s.
#[derive(Debug)]
pub(crate) struct SubplanPlanner {
    cancellation: Cancellation,
    cache_size: usize,
}

impl SubplanPlanner {
    /// A subplan keeps results of up to `cache_size` bytes.
    pub(crate) fn new(cancellation: Cancellation, cache_size: usize) -> Self {
        Self { cancellation, cache_size }
    }
}

#[async_trait::async_trait]
impl ExtensionPlanner for SubplanPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<SubplanNode>() else { return Ok(None) };
        let missing = || internal_datafusion_err!("a subplan has one input");
        let input = physical_inputs.first().ok_or_else(missing)?;
        let logical = node.inputs();
        let logical = logical.first().ok_or_else(missing)?;
        let (inner, slot) = (node.inner(), Arc::new(Slot::default()));
        let optimized = session.optimize(&inner.plan)?;
        let is_fixed = inner.placeholders.is_empty() && !uses_slot(&optimized)?;
        let plan = with_slot(optimized, &inner.placeholders, &slot)?;
        let plan = planner.create_physical_plan(&plan, session).await?;
        let expr = |expr| planner.create_physical_expr(expr, logical.schema(), session, context);
        let inner = InnerPlan {
            number: inner.number,
            kind: inner.kind,
            plan,
            slot,
            keys: node.keys().iter().map(expr).collect::<Result<_>>()?,
            guard: node.guard().map(expr).transpose()?,
            is_volatile: inner.is_volatile,
            is_fixed,
            cache_size: self.cache_size,
            cancellation: self.cancellation.clone(),
        };
        let columns = &node.inner().columns;
        Ok(Some(Arc::new(SubplanExec::new(Arc::clone(input), inner, columns)?)))
    }
}
