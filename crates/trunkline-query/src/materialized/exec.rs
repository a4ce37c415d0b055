//! The physical node: it executes its input, unless the rows are there already.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::common::{Result, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::node::SharedRows;
use crate::children::{only_child, with_new_children};

/// The rows of its input, which all nodes with the same cell share.
#[derive(Debug)]
pub(super) struct MaterializedExec {
    input: Arc<dyn ExecutionPlan>,
    rows: SharedRows,
    properties: Arc<PlanProperties>,
}

impl MaterializedExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, rows: SharedRows) -> Self {
        let ordering = input.output_ordering().map(|ordering| ordering.iter().cloned());
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(input.schema(), ordering),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, rows, properties: Arc::new(properties) }
    }
}

/// All rows of a plan, in memory that is accounted for.
async fn collected(
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<(Vec<RecordBatch>, MemoryReservation)> {
    let memory = MemoryConsumer::new("Materialized").register(context.memory_pool());
    let mut rows = input.execute(0, context)?;
    // Batches may share buffers.
    let mut counter = RecordBatchMemoryCounter::new();
    let mut batches = Vec::new();
    while let Some(batch) = rows.next().await.transpose()? {
        memory.try_grow(counter.count_batch(&batch))?;
        batches.push(batch);
    }
    Ok((batches, memory))
}

impl DisplayAs for MaterializedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MaterializedExec")
    }
}

impl ExecutionPlan for MaterializedExec {
    fn name(&self) -> &'static str {
        "MaterializedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(only_child(children)?, Arc::clone(&self.rows))))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_new_children(self, children)
    }

    /// A subplan that is executed again sees the same rows.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 || self.input.output_partitioning().partition_count() != 1 {
            return exec_err!("materialized rows are in one partition");
        }
        let (input, rows) = (Arc::clone(&self.input), Arc::clone(&self.rows));
        let batches = async move {
            let found = rows.get_or_try_init(|| collected(input, context)).await?;
            // A batch is a set of references to its arrays.
            Ok::<_, datafusion::common::DataFusionError>(stream::iter(
                found.0.clone().into_iter().map(Ok),
            ))
        };
        let batches = stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), batches)))
    }
}
