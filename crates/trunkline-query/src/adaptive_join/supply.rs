//! A node whose rows have been taken from another one.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use trunkline_aio::facade::Mutex;

/// Streams that were started before the node that consumes them was made.
pub(super) struct SupplyExec {
    partitions: Vec<Mutex<Option<SendableRecordBatchStream>>>,
    properties: Arc<PlanProperties>,
}

impl SupplyExec {
    /// A node with the rows of another one, whose properties it has.
    pub(super) fn new(
        partitions: Vec<SendableRecordBatchStream>,
        properties: &Arc<PlanProperties>,
    ) -> Self {
        let partitions = partitions.into_iter().map(|rows| Mutex::new(Some(rows))).collect();
        Self { partitions, properties: Arc::clone(properties) }
    }
}

impl fmt::Debug for SupplyExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupplyExec").finish_non_exhaustive()
    }
}

impl DisplayAs for SupplyExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SupplyExec")
    }
}

impl ExecutionPlan for SupplyExec {
    fn name(&self) -> &'static str {
        "SupplyExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        match self.partitions.get(partition).and_then(|rows| rows.lock().take()) {
            Some(rows) => Ok(rows),
            None => exec_err!("the rows of partition {partition} were taken before"),
        }
    }
}
