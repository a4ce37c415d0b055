//! The parts of a table or of `UNION ALL`, one after another.
//!
//! With one task, PostgreSQL returns the rows of partitions in the order of their bounds, and those of
//! `UNION ALL` in the order of its operands, and so do we. With more tasks, rows come in any order in
//! both.
//!
//! ```text
//!   CoalescePartitionsExec            AppendExec
//!     UnionExec                  ──▶    UnionExec
//! ```

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::children::{only_child, with_new_children};

/// Replaces the nodes that merge partitions if there is one task.
#[derive(Debug)]
pub(crate) struct AppendInOrder;

impl PhysicalOptimizerRule for AppendInOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if config.execution.target_partitions > 1 {
            return Ok(plan);
        }
        // The client, too, takes the partitions of the whole plan in order.
        let plan = match plan.output_partitioning().partition_count() {
            0 | 1 => plan,
            _ => Arc::new(CoalescePartitionsExec::new(plan)),
        };
        plan.transform_up(|plan| {
            let append = plan.downcast_ref::<CoalescePartitionsExec>().map(|merge| {
                let (input, fetch) = (Arc::clone(merge.input()), merge.fetch());
                Arc::new(AppendExec { input, fetch, properties: Arc::clone(merge.properties()) })
            });
            Ok(match append {
                Some(append) => Transformed::yes(append as _),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "AppendInOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Executes the partitions of its input one after another.
#[derive(Debug, Clone)]
pub(crate) struct AppendExec {
    input: Arc<dyn ExecutionPlan>,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for AppendExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppendExec")?;
        self.fetch.iter().try_for_each(|fetch| write!(f, ": fetch={fetch}"))
    }
}

impl ExecutionPlan for AppendExec {
    fn name(&self) -> &'static str {
        "AppendExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        Ok(Arc::new(Self { input: only_child(children)?, ..(*self).clone() }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_new_children(self, children)
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (input, schema) = (Arc::clone(&self.input), self.schema());
        let partitions = stream::iter(0..input.output_partitioning().partition_count());
        let batches = partitions
            .map(move |partition| input.execute(partition, Arc::clone(&context)))
            .try_flatten();
        let left = self.fetch.unwrap_or(usize::MAX);
        let limited = stream::try_unfold((batches, left), async |(mut batches, left)| {
            if left == 0 {
                return Ok(None);
            }
            let Some(batch) = batches.try_next().await? else { return Ok(None) };
            let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
            let left = left - batch.num_rows();
            Ok(Some((batch, (batches, left))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, limited)))
    }
}
