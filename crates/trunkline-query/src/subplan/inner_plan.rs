//! The physical plan of a subquery, and its execution for an outer row.

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};

use super::outer::Slot;
use super::value::{SubplanKind, value};
use crate::error::to_datafusion;
use crate::scan::Cancellation;

/// The inner plan, and how it is executed.
#[derive(Debug)]
pub(super) struct InnerPlan {
    pub(super) number: u32,
    pub(super) kind: SubplanKind,
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) slot: Arc<Slot>,
    pub(super) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) guard: Option<Arc<dyn PhysicalExpr>>,
    pub(super) is_volatile: bool,
    /// The plan uses no values of outer rows of any level.
    pub(super) is_fixed: bool,
    pub(super) cache_size: usize,
    pub(super) cancellation: Cancellation,
}

impl InnerPlan {
    /// The same with another plan that has the same rows.
    pub(super) fn with_plan(&self, plan: Arc<dyn ExecutionPlan>) -> Self {
        let (slot, keys, guard) = (Arc::clone(&self.slot), self.keys.clone(), self.guard.clone());
        let cancellation = self.cancellation.clone();
        Self { plan, slot, keys, guard, cancellation, ..*self }
    }

    /// Starts an execution for these outer values. The one before must have ended.
    pub(super) fn start(
        &self,
        values: Vec<ScalarValue>,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.cancellation.check().map_err(to_datafusion)?;
        self.slot.set(values);
        execute_stream(reset_plan_states(Arc::clone(&self.plan))?, Arc::clone(context))
    }

    /// The value for these outer values.
    pub(super) async fn value(
        &self,
        values: Vec<ScalarValue>,
        context: &Arc<TaskContext>,
    ) -> Result<ScalarValue> {
        value(self.kind, &mut self.start(values, context)?).await
    }
}
