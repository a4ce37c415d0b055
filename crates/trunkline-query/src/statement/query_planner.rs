//! The planner that makes physical plans, with those of our own nodes.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::index_join::read_statistics;
use crate::materialized::MaterializedPlanner;
use crate::operator::OperatorPlanner;
use crate::scan::Cancellation;
use crate::subplan::SubplanPlanner;

/// Plans one statement.
#[derive(Debug)]
pub(super) struct StatementPlanner {
    cancellation: Cancellation,
    work_mem: usize,
}

impl StatementPlanner {
    pub(super) fn new(cancellation: &Cancellation, work_mem: usize) -> Self {
        Self { cancellation: cancellation.clone(), work_mem }
    }
}

#[async_trait::async_trait]
impl QueryPlanner for StatementPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        read_statistics(plan).await?;
        let operators = OperatorPlanner::new(self.cancellation.clone());
        let subplans = SubplanPlanner::new(self.cancellation.clone(), self.work_mem);
        DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(operators),
            Arc::new(subplans),
            Arc::new(MaterializedPlanner),
        ])
        .create_physical_plan(plan, session)
        .await
    }
}
