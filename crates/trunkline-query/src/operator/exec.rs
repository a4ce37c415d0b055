//! The physical plan of an operator.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexRequirement, OrderingRequirements, PhysicalExpr,
    PhysicalSortRequirement,
};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::{Stream, StreamExt};

use super::definition::{Operator, Process, Streams};
use crate::children::{only_child, with_new_children};
use crate::error::to_datafusion;
use crate::scan::Cancellation;

/// An operator over its input.
#[derive(Debug, Clone)]
pub(crate) struct OperatorExec {
    operator: Arc<dyn Operator>,
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    cancellation: Cancellation,
}

impl OperatorExec {
    pub(super) fn new(
        operator: Arc<dyn Operator>,
        input: Arc<dyn ExecutionPlan>,
        cancellation: Cancellation,
    ) -> Result<Self> {
        let known = input.schema();
        let known = known.fields().iter().cloned();
        let added = operator.added().into_iter().map(Arc::new);
        let fields: Vec<_> = known.chain(added).collect();
        let metadata = input.schema().metadata().clone();
        let schema: SchemaRef = Arc::new(Schema::new_with_metadata(fields, metadata));
        let ordering = input.output_ordering().cloned();
        let equivalence = EquivalenceProperties::new_with_orderings(Arc::clone(&schema), ordering);
        let partitions = match operator.order() {
            Some(_) => 1,
            None => input.output_partitioning().partition_count(),
        };
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            input.boundedness(),
        );
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { operator, input, schema, properties, metrics, cancellation })
    }
}

impl OperatorExec {
    /// What it does.
    pub(crate) fn operator(&self) -> &dyn Operator {
        &*self.operator
    }
}

impl DisplayAs for OperatorExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.operator)
    }
}

impl ExecutionPlan for OperatorExec {
    fn name(&self) -> &str {
        self.operator.name()
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

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match self.operator.order() {
            Some(_) => Distribution::SinglePartition,
            None => Distribution::UnspecifiedDistribution,
        }])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let columns = self.operator.order().unwrap_or_default();
        let schema = self.input.schema();
        let requirements = columns.into_iter().filter_map(|(name, options)| {
            let column = Column::new_with_schema(&name, &schema).ok()?;
            Some(PhysicalSortRequirement::new(Arc::new(column), Some(options)))
        });
        vec![LexRequirement::new(requirements).map(OrderingRequirements::new)]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (operator, cancellation) = (Arc::clone(&self.operator), self.cancellation.clone());
        Ok(Arc::new(Self::new(operator, only_child(children)?, cancellation)?))
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
        let consumer = MemoryConsumer::new(self.operator.name());
        let process = self.operator.start(Streams {
            input: self.input.schema(),
            output: Arc::clone(&self.schema),
            memory: consumer.register(context.memory_pool()),
            cancellation: self.cancellation.clone(),
            rows_max: context.session_config().batch_size(),
        })?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let input = Some(self.input.execute(partition, context)?);
        let schema = Arc::clone(&self.schema);
        let cancellation = self.cancellation.clone();
        let stream = OperatorStream { input, process, schema, metrics, cancellation };
        Ok(Box::pin(cooperative(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// The rows of one partition.
struct OperatorStream {
    /// `None` after the last row of the input.
    input: Option<SendableRecordBatchStream>,
    process: Box<dyn Process>,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    cancellation: Cancellation,
}

impl Stream for OperatorStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let this = &mut *self;
            if let Err(error) = this.cancellation.check() {
                this.input = None;
                return Poll::Ready(Some(Err(to_datafusion(error))));
            }
            let timer = this.metrics.elapsed_compute().timer();
            let next = this.process.next();
            timer.done();
            if let Some(next) = next.transpose() {
                return this.metrics.record_poll(Poll::Ready(Some(next)));
            }
            if this.process.is_done() {
                this.input = None;
            }
            let Some(input) = &mut this.input else { return Poll::Ready(None) };
            let batch = ready!(input.poll_next_unpin(context));
            let timer = this.metrics.elapsed_compute().timer();
            let taken = match batch {
                Some(Ok(batch)) => this.process.push(batch),
                Some(Err(error)) => Err(error),
                None => {
                    this.input = None;
                    this.process.finish()
                }
            };
            timer.done();
            if let Err(error) = taken {
                this.input = None;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl RecordBatchStream for OperatorStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
