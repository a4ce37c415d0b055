//! Nodes that pass on the rows of their input.
//!
//! ```text
//!   Work           what it does to batches, and what the planner knows of them     interruption, …
//!   PassThroughExec<Work>   the node                                                this module
//! ```
//!
//! DataFusion asks a node more than ten questions, and these nodes give the answers of their input.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};

use crate::children::{only_child, with_new_children};

/// What a node does that passes on the rows of its input.
pub(crate) trait Work: fmt::Debug + Clone + Send + Sync + 'static {
    /// The name of the node.
    const NAME: &'static str;

    /// What the planner may know of the rows.
    fn properties(input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    /// Whether the planner may rely on the order of the input's rows.
    fn keeps_order() -> bool {
        true
    }

    /// The same rows.
    fn pass(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream;
}

/// A node that passes on the rows of its input.
#[derive(Debug, Clone)]
pub(crate) struct PassThroughExec<W> {
    input: Arc<dyn ExecutionPlan>,
    work: W,
    properties: Arc<PlanProperties>,
}

impl<W: Work> PassThroughExec<W> {
    /// A node over this one.
    pub(crate) fn over(input: Arc<dyn ExecutionPlan>, work: W) -> Arc<dyn ExecutionPlan> {
        let properties = W::properties(&input);
        Arc::new(Self { input, work, properties })
    }
}

impl<W: Work> DisplayAs for PassThroughExec<W> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(W::NAME)
    }
}

impl<W: Work> ExecutionPlan for PassThroughExec<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![W::keeps_order()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
        Ok(Self::over(only_child(children)?, self.work.clone()))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_new_children(self, children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(self.work.pass(self.input.execute(partition, context)?))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.schema()));
        Ok(inputs.first().map_or_else(unknown, Arc::clone))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(result))
    }
}
