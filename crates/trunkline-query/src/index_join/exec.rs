//! The physical plan of an index join.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::equivalence::{ProjectionMapping, join_equivalence_properties};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{EmissionType, SchedulingType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, ReplaceChildrenOptions, apply_expression_roots,
};

use super::definition::Definition;
use super::stream::IndexJoinStream;
use crate::access_path::Cost;
use crate::children::{only_child, with_new_children};

/// A nested loop whose inner side is searched through an index. Its input is the outer side.
#[derive(Debug)]
pub(crate) struct IndexJoinExec {
    outer: Arc<dyn ExecutionPlan>,
    join: Arc<Definition>,
    properties: Arc<PlanProperties>,
}

impl IndexJoinExec {
    pub(super) fn new(outer: Arc<dyn ExecutionPlan>, join: Arc<Definition>) -> Result<Self> {
        let properties = Arc::new(properties(&outer, &join)?);
        Ok(Self { outer, join, properties })
    }

    /// What the join computes.
    pub(crate) fn definition(&self) -> &Definition {
        &self.join
    }

    /// The outer side.
    pub(crate) fn outer(&self) -> &Arc<dyn ExecutionPlan> {
        &self.outer
    }

    /// The estimated cost of the inner side.
    pub(super) fn cost(&self) -> Cost {
        self.join.cost
    }
}

/// What the planner may know of the rows: what it knows of the outer ones, whose order is kept.
fn properties(outer: &Arc<dyn ExecutionPlan>, join: &Definition) -> Result<PlanProperties> {
    let is_left = join.outer_side == JoinSide::Left;
    // Values of keys that the outer side has in addition are no columns of the join.
    let outer_schema: &SchemaRef = &join.outer_schema;
    let places: Vec<usize> = (0..outer_schema.fields().len()).collect();
    let mapping = ProjectionMapping::from_indices(&places, &outer.schema())?;
    let known = outer.equivalence_properties().project(&mapping, Arc::clone(outer_schema));
    let unknown = EquivalenceProperties::new(join.inner.plan.schema());
    let (left, right) = if is_left { (known, unknown) } else { (unknown, known) };
    let on: Vec<_> = join
        .on
        .iter()
        .map(|(outer, inner)| match is_left {
            true => (Arc::clone(outer), Arc::clone(inner)),
            false => (Arc::clone(inner), Arc::clone(outer)),
        })
        .collect();
    let mut equivalences = join_equivalence_properties(
        left,
        right,
        &join.join_type,
        Arc::clone(&join.join_schema),
        &[is_left, !is_left],
        Some(join.outer_side),
        &on,
    )?;
    if let Some(projection) = &join.projection {
        let mapping = ProjectionMapping::from_indices(projection, &join.join_schema)?;
        equivalences = equivalences.project(&mapping, Arc::clone(&join.schema));
    }
    let partitions = outer.output_partitioning().partition_count();
    let properties = PlanProperties::new(
        equivalences,
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        outer.boundedness(),
    );
    Ok(properties.with_scheduling_type(SchedulingType::Cooperative))
}

impl DisplayAs for IndexJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Definition { kind, inner, on, filter, .. } = &*self.join;
        let (index, table) = (&inner.search.index.name, inner.scan.access());
        write!(f, "Nested Loop: {kind:?}, index {index} on {table:?}")?;
        for (outer, inner) in on {
            write!(f, ", {inner} = {outer}")?;
        }
        match filter {
            Some(filter) => write!(f, ", filter={}", filter.expression()),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for IndexJoinExec {
    fn name(&self) -> &'static str {
        "IndexJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.outer]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let on = self.join.on.iter().flat_map(|(outer, inner)| [outer, inner]);
        let filter = self.join.filter.iter().map(|filter| filter.expression());
        apply_expression_roots(on.chain(filter), f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(only_child(children)?, Arc::clone(&self.join))?))
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
        let outer = self.outer.execute(partition, context)?;
        Ok(Box::pin(cooperative(IndexJoinStream::new(&self.join, outer, partition))))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.join.schema);
        let outer = inputs.first().and_then(|outer| outer.num_rows.get_value().copied());
        if let Some(outer) = outer {
            let rows = self.join.rows(outer as f64).round().max(1.0);
            statistics.num_rows = Precision::Inexact(rows as usize);
        }
        Ok(Arc::new(statistics))
    }
}
