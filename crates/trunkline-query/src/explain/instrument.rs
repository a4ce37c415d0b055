//! Nodes that count rows and time, as PostgreSQL's `Instrumentation` does.
//!
//! Every node of a plan is wrapped. The time of a node includes that of its inputs and the time that
//! it waits for pages.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::InvariantLevel;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{Stream, StreamExt};
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::Mutex;

use crate::children::with_new_children;
use crate::index_join::IndexJoinExec;
use crate::scan::ScanExec;
use crate::subplan::SubplanExec;

/// What one partition of a node has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    /// How often it was executed.
    pub(crate) loops: u64,
    /// The rows of all executions.
    pub(crate) rows: u64,
    /// The time until the first row, summed over executions.
    pub(crate) first: Duration,
    /// The time until the end.
    pub(crate) total: Duration,
}

impl Measured {
    /// Adds another partition, or another execution.
    pub(crate) fn add(&mut self, other: &Self) {
        self.loops += other.loops;
        self.rows += other.rows;
        self.first += other.first;
        self.total += other.total;
    }
}

/// The measurements of a node.
#[derive(Debug, Default)]
struct Measurements(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    partitions: Vec<Measured>,
    /// Executions that have not been added yet.
    open: usize,
}

/// A node whose rows and time are counted. For all other purposes it is the node that it wraps.
#[derive(Debug, Clone)]
pub(crate) struct InstrumentExec {
    node: Arc<dyn ExecutionPlan>,
    measurements: Arc<Measurements>,
}

/// The same plan, with all nodes wrapped, those of subplans included.
pub(crate) fn instrumented(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|plan| {
        let node: Arc<dyn ExecutionPlan> = match plan.downcast_ref::<SubplanExec>() {
            Some(subplan) => Arc::new(subplan.map_inner(instrumented)?),
            None => plan,
        };
        let measurements = Arc::default();
        Ok(Transformed::yes(Arc::new(InstrumentExec { node, measurements }) as _))
    })
    .data()
}

/// What each partition of a node has done; `None` if the plan is not instrumented.
pub(super) fn measured(plan: &Arc<dyn ExecutionPlan>) -> Option<Vec<Measured>> {
    let node: &dyn Any = &**plan;
    node.downcast_ref::<InstrumentExec>().map(|node| node.measurements.0.lock().partitions.clone())
}

/// What all partitions of a node have done; `None` if the plan is not instrumented.
pub(super) fn sum(plan: &Arc<dyn ExecutionPlan>) -> Option<Measured> {
    let partitions = measured(plan)?;
    let mut sum = Measured::default();
    partitions.iter().for_each(|partition| sum.add(partition));
    Some(sum)
}

/// Whether all executions of a plan's nodes have ended, so that the counts are complete.
pub(crate) fn is_complete(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let node: &dyn Any = &**plan;
    let node = node.downcast_ref::<InstrumentExec>();
    let scan = plan.downcast_ref::<ScanExec>();
    let join = plan.downcast_ref::<IndexJoinExec>();
    let scan = scan.or(join.map(|join| &join.definition().inner.scan));
    let own = node.is_none_or(|node| node.measurements.0.lock().open == 0)
        && scan.is_none_or(|scan| scan.counters().is_complete());
    let inner = plan.downcast_ref::<SubplanExec>();
    own && inner.is_none_or(|subplan| is_complete(subplan.inner_plan()))
        && plan.children().into_iter().all(is_complete)
}

impl DisplayAs for InstrumentExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt_as(kind, f)
    }
}

impl ExecutionPlan for InstrumentExec {
    fn name(&self) -> &str {
        self.node.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(&*self.node)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.node.properties()
    }

    fn check_invariants(&self, check: InvariantLevel) -> Result<()> {
        self.node.check_invariants(check)
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.node.children()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.node.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.node.maintains_input_order()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.node.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let node = Arc::clone(&self.node).replace_children(children, options)?;
        Ok(Arc::new(Self { node, ..(*self).clone() }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_new_children(self, children)
    }

    /// A recursive query hands its rows to the node that reads them.
    fn with_new_state(
        &self,
        state: Arc<dyn std::any::Any + Send + Sync>,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let node = self.node.with_new_state(state)?;
        Some(Arc::new(Self { node, ..self.clone() }))
    }

    /// Counts go on.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let node = Arc::clone(&self.node).reset_state()?;
        Ok(Arc::new(Self { node, ..(*self).clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(InstrumentStream {
            stream: self.node.execute(partition, context)?,
            measurements: Arc::clone(&self.measurements),
            partition,
            since: None,
            measured: Measured::default(),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.node.metrics()
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.node.statistics_from_inputs(inputs, args)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.node.child_stats_requests(partition)
    }

    fn fetch(&self) -> Option<usize> {
        self.node.fetch()
    }
}

/// Counts the rows of one execution of a partition.
struct InstrumentStream {
    stream: SendableRecordBatchStream,
    measurements: Arc<Measurements>,
    partition: usize,
    /// When the consumer began to wait for the next batch.
    since: Option<Time>,
    measured: Measured,
}

impl Drop for InstrumentStream {
    fn drop(&mut self) {
        // A node above may have stopped while this one waited.
        if let Some(since) = self.since {
            self.measured.total += clock::now().since(since);
        }
        let mut counts = self.measurements.0.lock();
        counts.open -= self.measured.loops as usize;
        let partitions = &mut counts.partitions;
        if partitions.len() <= self.partition {
            partitions.resize(self.partition + 1, Measured::default());
        }
        if let Some(partition) = partitions.get_mut(self.partition) {
            partition.add(&self.measured);
        }
    }
}

impl Stream for InstrumentStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let since = *self.since.get_or_insert_with(clock::now);
        if self.measured.loops == 0 {
            self.measured.loops = 1;
            self.measurements.0.lock().open += 1;
        }
        let polled = self.stream.poll_next_unpin(context);
        if let Poll::Ready(ready) = &polled {
            self.since = None;
            let is_first = self.measured.rows == 0;
            self.measured.total += clock::now().since(since);
            if let Some(Ok(batch)) = ready {
                self.measured.rows += batch.num_rows() as u64;
            }
            if is_first {
                self.measured.first = self.measured.total;
            }
        }
        polled
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

impl RecordBatchStream for InstrumentStream {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}
