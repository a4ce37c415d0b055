//! The physical node of a subplan.
//!
//! A slot holds the values of one outer row, so a correlated subplan is executed by one task. One that
//! has no outer columns is executed once for all tasks, when the first row needs its value, as
//! PostgreSQL does with its `InitPlan` nodes. That is also so if it is inside a subplan that is executed
//! many times, unless it uses columns of a query further out.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions, apply_expression_roots,
};
use tokio::sync::OnceCell;

use super::inner_plan::InnerPlan;
use super::rows::OuterRows;
use super::value::SubplanKind;
use crate::children::{only_child, with_new_children};

/// An input with the results of a subquery.
#[derive(Debug, Clone)]
pub(crate) struct SubplanExec {
    input: Arc<dyn ExecutionPlan>,
    inner: Arc<InnerPlan>,
    added: Vec<Field>,
    /// The value of a subplan without outer columns.
    once: Arc<OnceCell<ScalarValue>>,
    properties: Arc<PlanProperties>,
}

impl SubplanExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        inner: InnerPlan,
        added: &[Field],
    ) -> Result<Self> {
        Self::with_input(input, Arc::new(inner), added.to_vec(), Arc::default())
    }

    fn with_input(
        input: Arc<dyn ExecutionPlan>,
        inner: Arc<InnerPlan>,
        added: Vec<Field>,
        once: Arc<OnceCell<ScalarValue>>,
    ) -> Result<Self> {
        let fields = input
            .schema()
            .fields()
            .iter()
            .map(|field| field.as_ref().clone())
            .chain(added.iter().cloned())
            .collect::<Vec<_>>();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let ordering = input.output_ordering().map(|ordering| ordering.iter().cloned());
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(Arc::clone(&schema), ordering),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Ok(Self { input, inner, added, once, properties: Arc::new(properties) })
    }

    /// The value for another execution, which computes it again unless it is always the same.
    fn next_once(&self) -> Arc<OnceCell<ScalarValue>> {
        if self.inner.is_fixed { Arc::clone(&self.once) } else { Arc::default() }
    }

    /// The same with another plan of the subquery, which has the same rows.
    pub(crate) fn map_inner(
        &self,
        change: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Self> {
        let plan = change(Arc::clone(&self.inner.plan))?;
        let inner = Arc::new(self.inner.with_plan(plan));
        Self::with_input(Arc::clone(&self.input), inner, self.added.clone(), Arc::default())
    }

    /// The plan of the subquery.
    pub(crate) fn inner_plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.inner.plan
    }

    /// What becomes of the subquery's rows.
    pub(crate) fn kind(&self) -> SubplanKind {
        self.inner.kind
    }

    /// The number of the subplan in the statement.
    pub(crate) fn number(&self) -> u32 {
        self.inner.number
    }

    /// Whether the subquery uses columns of outer rows.
    pub(crate) fn is_correlated(&self) -> bool {
        !self.inner.keys.is_empty()
    }

    /// Whether the input must come in one partition.
    fn is_sequential(&self) -> bool {
        !self.inner.keys.is_empty() || matches!(self.inner.kind, SubplanKind::Rows { .. })
    }
}

impl DisplayAs for SubplanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.inner.keys.iter().map(ToString::to_string).collect();
        write!(f, "SubplanExec: kind={:?}, keys=[{}]", self.inner.kind, keys.join(", "))
    }
}

impl ExecutionPlan for SubplanExec {
    fn name(&self) -> &'static str {
        "SubplanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match self.is_sequential() {
            true => Distribution::SinglePartition,
            false => Distribution::UnspecifiedDistribution,
        }])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.inner.keys.iter().chain(&self.inner.guard), f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (inner, added, once) = (Arc::clone(&self.inner), self.added.clone(), self.next_once());
        Ok(Arc::new(Self::with_input(only_child(children)?, inner, added, once)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_new_children(self, children)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { once: self.next_once(), ..(*self).clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if self.is_sequential() && self.input.output_partitioning().partition_count() != 1 {
            return exec_err!("a correlated subplan has an input of several partitions");
        }
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let schema = self.properties.eq_properties.schema();
        let (inner, once) = (Arc::clone(&self.inner), Arc::clone(&self.once));
        let rows = OuterRows::new(input, inner, once, Arc::clone(schema), context);
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), rows.into_stream())))
    }
}
