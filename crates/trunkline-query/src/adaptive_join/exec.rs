//! The node, which decides when it has collected its build side.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::TryFutureExt;
use futures::future::{BoxFuture, FutureExt, Shared};
use trunkline_aio::facade::Mutex;

use super::build_side::BuildSide;
use super::merge_plan::MergePlan;
use super::supply::SupplyExec;
use crate::children::with_new_children;
use crate::scan::Cancellation;

/// How a join is executed.
#[derive(Debug, Clone)]
enum Method {
    /// With a hash table.
    Hash(Arc<dyn ExecutionPlan>),
    /// By sorting.
    Merge(Arc<MergePlan>),
}

type Decision = Shared<BoxFuture<'static, Result<Method, Arc<DataFusionError>>>>;

/// A hash join, which is executed by sorting if its table would be too large. For all other purposes it
/// is the hash join.
#[derive(Debug)]
pub(super) struct AdaptiveJoinExec {
    join: Arc<HashJoinExec>,
    /// What the hash table may use, in bytes.
    limit: usize,
    cancellation: Cancellation,
    /// Made by the first partition that is executed.
    decision: Mutex<Option<Decision>>,
}

impl AdaptiveJoinExec {
    pub(super) fn new(join: Arc<HashJoinExec>, limit: usize, cancellation: &Cancellation) -> Self {
        let cancellation = cancellation.clone();
        Self { join, limit, cancellation, decision: Mutex::new(None) }
    }

    /// The same with another join, which was not executed yet.
    fn with_join(&self, join: HashJoinExec) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(Arc::new(join), self.limit, &self.cancellation))
    }

    /// Collects the build side, and decides how to execute a join.
    async fn choose_method(
        join: Arc<HashJoinExec>,
        limit: usize,
        cancellation: Cancellation,
        context: Arc<TaskContext>,
    ) -> Result<Method> {
        let input = join.left();
        let build = BuildSide::collect(input, limit, &context).await?;
        let left = Arc::new(SupplyExec::new(build.partitions, input.properties()));
        if !build.is_complete {
            return Ok(Method::Merge(Arc::new(MergePlan::new(&join, left, &cancellation)?)));
        }
        let children: Vec<Arc<dyn ExecutionPlan>> = vec![left, Arc::clone(join.right())];
        Ok(Method::Hash(join.builder().with_new_children(children)?.build_exec()?))
    }

    /// How the join is executed, if that is decided.
    fn method(&self) -> Option<Method> {
        self.decision.lock().as_ref()?.peek()?.as_ref().ok().cloned()
    }
}

impl DisplayAs for AdaptiveJoinExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.join.fmt_as(kind, f)
    }
}

impl ExecutionPlan for AdaptiveJoinExec {
    fn name(&self) -> &'static str {
        "AdaptiveJoinExec"
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(&*self.join)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.children()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.join.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.join.maintains_input_order()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.join.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_join(self.join.builder().with_new_children(children)?.build()?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_new_children(self, children)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_join(self.join.builder().reset_state().build()?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let decide = || {
            let (join, context) = (Arc::clone(&self.join), Arc::clone(&context));
            let method = Self::choose_method(join, self.limit, self.cancellation.clone(), context);
            method.map_err(Arc::new).boxed().shared()
        };
        let decision = self.decision.lock().get_or_insert_with(decide).clone();
        let schema = self.schema();
        let rows = async move {
            match decision.await.map_err(|error| DataFusionError::from(&error))? {
                Method::Hash(join) => join.execute(partition, context),
                Method::Merge(merge) if partition >= merge.partitions() => {
                    Ok(Box::pin(EmptyRecordBatchStream::new(merge.plan.schema())) as _)
                }
                Method::Merge(merge) => merge.plan.execute(partition, context),
            }
        };
        let rows = rows.try_flatten_stream();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut metrics = self.join.metrics()?;
        if let Some(Method::Merge(merge)) = self.method() {
            merge.add_metrics(&mut metrics);
        }
        Some(metrics)
    }
}
