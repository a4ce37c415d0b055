//! The plan with a merge join that has the rows of a hash join.

use std::sync::Arc;

use arrow_schema::{Schema, SortOptions};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, Result, internal_datafusion_err};
use datafusion::error::DataFusionError;
use datafusion::physical_expr::expressions::{Column, UnKnownColumn};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::metrics::{Metric, MetricValue, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::compaction::Compact;
use crate::interruption::Interrupt;
use crate::scan::Cancellation;

/// A join of sorted inputs.
#[derive(Debug)]
pub(super) struct MergePlan {
    /// Its partitions are those of the hash join. If those are not divided by a hash and the build side is
    /// one for all of them, there is only the first partition.
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The nodes that spill.
    spilling: Vec<Arc<dyn ExecutionPlan>>,
}

impl MergePlan {
    /// A plan with the rows of `join`, whose first input is replaced by `left`.
    ///
    /// # Errors
    /// Inputs that can't be joined, which would be a bug.
    pub(super) fn new(
        join: &HashJoinExec,
        left: Arc<dyn ExecutionPlan>,
        cancellation: &Cancellation,
    ) -> Result<Self> {
        let mut spilling = Vec::new();
        let is_one = *join.partition_mode() == PartitionMode::CollectLeft;
        let (left_keys, right_keys) = join.on().iter().cloned().unzip();
        let mut input = |input, keys| {
            let (sort, plan) = sort_input(input, keys, is_one)?;
            spilling.push(sort);
            // The join may read for long without returning rows.
            Ok::<_, DataFusionError>(Interrupt::over(plan, cancellation))
        };
        let left = input(left, left_keys)?;
        let right = input(Arc::clone(join.right()), right_keys)?;
        let merge: Arc<dyn ExecutionPlan> = Arc::new(SortMergeJoinExec::try_new(
            left,
            right,
            join.on().to_vec(),
            join.filter().map(left_first).transpose()?,
            *join.join_type(),
            vec![SortOptions::default(); join.on().len()],
            join.null_equality(),
        )?);
        spilling.push(Arc::clone(&merge));
        let mut plan = projected(join, merge)?;
        // Nodes above rely on how the hash join's rows are divided.
        let partitioning = join.properties().output_partitioning();
        if is_one && is_known_hash(partitioning)? {
            plan = Arc::new(RepartitionExec::try_new(plan, partitioning.clone())?);
        }
        if let Some(order) = join.properties().output_ordering() {
            let sort = SortExec::new(order.clone(), plan).with_preserve_partitioning(true);
            plan = Arc::new(sort.with_fetch(join.fetch()));
            spilling.push(Arc::clone(&plan));
        } else if let Some(fetch) = join.fetch() {
            plan = Arc::new(LocalLimitExec::new(plan, fetch));
        }
        Ok(Self { plan, spilling })
    }

    /// The number of partitions.
    pub(super) fn partitions(&self) -> usize {
        self.plan.output_partitioning().partition_count()
    }

    /// Adds what was spilled, by all nodes.
    pub(super) fn add_metrics(&self, metrics: &mut MetricsSet) {
        for node in self.spilling.iter().filter_map(|node| node.metrics()) {
            let is_spilled =
                |metric: &&Arc<Metric>| matches!(metric.value(), MetricValue::SpilledBytes(_));
            let spilled = node.iter().filter(is_spilled);
            spilled.for_each(|metric| metrics.push(Arc::clone(metric)));
        }
    }
}

/// Sorts each partition of an input by these keys; with `is_one`, merges the partitions. Returns the sort,
/// and the whole plan.
fn sort_input(
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    is_one: bool,
) -> Result<(Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>)> {
    let options = SortOptions::default();
    let keys = keys.into_iter().map(|expr| PhysicalSortExpr { expr, options });
    let order = LexOrdering::new(keys)
        .ok_or_else(|| internal_datafusion_err!("a hash join has at least one key"))?;
    let sort = SortExec::new(order.clone(), input).with_preserve_partitioning(true);
    let sort: Arc<dyn ExecutionPlan> = Arc::new(sort);
    let compact = Compact::over(Arc::clone(&sort));
    let plan = match is_one && sort.output_partitioning().partition_count() > 1 {
        true => Arc::new(SortPreservingMergeExec::new(order, compact)),
        false => compact,
    };
    Ok((sort, plan))
}

/// Whether rows are divided by a hash of columns that nodes above can see.
fn is_known_hash(partitioning: &Partitioning) -> Result<bool> {
    let Partitioning::Hash(keys, _) = partitioning else { return Ok(false) };
    let mut is_known = true;
    for key in keys {
        is_known &= !key.exists(|part| Ok(part.is::<UnKnownColumn>()))?;
    }
    Ok(is_known)
}

/// A condition whose columns of the first input come before those of the second. Merge joins rely on this
/// order, which hash joins don't have if the planner has swapped their inputs.
fn left_first(filter: &JoinFilter) -> Result<JoinFilter> {
    let indices = filter.column_indices();
    let mut order: Vec<usize> = (0..indices.len()).collect();
    order.sort_by_key(|&at| indices.get(at).map(|column| column.side != JoinSide::Left));
    let condition = Arc::clone(filter.expression()).transform(|part| {
        let Some(column) = part.downcast_ref::<Column>() else { return Ok(Transformed::no(part)) };
        let place = order.iter().position(|&at| at == column.index());
        let place = place.ok_or_else(|| internal_datafusion_err!("a condition's column"))?;
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as _))
    });
    let fields = order.iter().map(|&at| filter.schema().field(at).clone());
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let indices = order.iter().filter_map(|&at| indices.get(at).cloned()).collect();
    Ok(JoinFilter::new(condition.data()?, indices, schema))
}

/// The columns that a hash join returns.
fn projected(join: &HashJoinExec, merge: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(projection) = &join.projection else { return Ok(merge) };
    let schema = merge.schema();
    let columns = projection.iter().map(|&index| {
        let name = schema.field(index).name();
        (Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>, name.clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns, merge)?))
}
