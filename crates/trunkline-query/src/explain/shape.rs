//! What kind of node a plan is, as far as its place among others decides how it is shown.

use std::sync::Arc;

use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::work_table::WorkTableExec;

use super::instrument::measured;
use super::node::Worker;
use crate::compaction::Compact;
use crate::hidden_constants::HideConstants;
use crate::index_join::IndexJoinExec;
use crate::interruption::Interrupt;
use crate::operator::{OperatorExec, OperatorKind};
use crate::pass_through::PassThroughExec;
use crate::scan::ScanExec;
use crate::subplan::{SubplanExec, SubplanKind};

/// The workers of a node that several tasks have executed. The first task is the leader.
pub(super) fn workers(plan: &Arc<dyn ExecutionPlan>) -> Vec<Worker> {
    let partitions = measured(plan).unwrap_or_default();
    let workers = partitions.into_iter().skip(1).enumerate();
    let workers = workers.filter(|(_, measured)| measured.loops > 0);
    workers.map(|(number, measured)| Worker { number, measured, details: Vec::new() }).collect()
}

/// Whether a node computes columns, so that a node above it doesn't only pass them on.
pub(super) fn computes(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match (plan.is::<ProjectionExec>(), plan.children().first(), plan.is::<SortExec>()) {
        (true, ..) => true,
        (false, Some(input), false) => computes(input),
        _ => false,
    }
}

/// Whether a node shows a filter of its own.
pub(super) fn takes_filter(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.filters().is_empty() && scan.fetch().is_none();
    }
    if plan.is::<OperatorExec>() {
        return is_function_scan(plan);
    }
    match (passes_on(plan), plan.children().first()) {
        (true, Some(input)) => takes_filter(input),
        _ => {
            plan.is::<AggregateExec>()
                || plan.is::<HashJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<IndexJoinExec>()
                || plan.is::<SortMergeJoinExec>()
                || plan.is::<CrossJoinExec>()
                || plan.is::<DataSourceExec>()
                || plan.is::<PlaceholderRowExec>()
                || plan.is::<WorkTableExec>()
                || is_lateral(plan)
        }
    }
}

/// Whether the node that shows a filter is the scan of a table.
pub(super) fn is_over_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match *plan.children() {
        [] => plan.is::<ScanExec>(),
        [input] if passes_on(plan) => is_over_scan(input),
        _ => false,
    }
}

/// Whether a filter above a node can be shown below it.
pub(super) fn passes_on(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<ProjectionExec>()
        || is_pass_through(plan)
        || is_barrier(plan)
        || (plan.is::<SubplanExec>() && !is_lateral(plan))
        || plan.name() == "CooperativeExec"
        || is_limit_of_one_row(plan)
}

/// Whether a node passes on rows for a reason that isn't part of the query.
pub(super) fn is_pass_through(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<PassThroughExec<Interrupt>>()
        || plan.is::<PassThroughExec<Compact>>()
        || plan.is::<PassThroughExec<HideConstants>>()
}

/// Whether a node only passes rows on.
pub(super) fn is_barrier(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let operator = plan.downcast_ref::<OperatorExec>();
    operator.is_some_and(|operator| {
        matches!(OperatorKind::of(operator.operator()), OperatorKind::Barrier)
    })
}

/// Whether a node joins rows with those of a subquery.
pub(super) fn is_lateral(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let subplan = plan.downcast_ref::<SubplanExec>();
    subplan.is_some_and(|subplan| matches!(subplan.kind(), SubplanKind::Rows { .. }))
}

/// Whether a node limits one row to one row.
pub(super) fn is_limit_of_one_row(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let limit = plan.downcast_ref::<GlobalLimitExec>();
    limit.is_some_and(|limit| {
        let aggregate = limit.input().downcast_ref::<AggregateExec>();
        (limit.skip(), limit.fetch()) == (0, Some(1))
            && aggregate.is_some_and(|aggregate| aggregate.group_expr().is_empty())
    })
}

/// Whether a node computes something of the rows of functions in a select list.
pub(super) fn is_result(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return false };
    let mut input = projection.input();
    while input.name() == "CooperativeExec" {
        let Some(&below) = input.children().first() else { return false };
        input = below;
    }
    let operator = input.downcast_ref::<OperatorExec>();
    let is_set = operator.is_some_and(|operator| {
        matches!(OperatorKind::of(operator.operator()), OperatorKind::ProjectSet(_))
    });
    is_set
        && !is_function_scan(input)
        && projection.expr().iter().any(|projected| !projected.expr.is::<Column>())
}

/// Whether a node calls functions of FROM once.
pub(super) fn is_function_scan(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let operator = plan.downcast_ref::<OperatorExec>();
    operator.is_some_and(|operator| {
        matches!(OperatorKind::of(operator.operator()), OperatorKind::ProjectSet(_))
            && plan.children().first().is_some_and(|input| is_single_row(input))
    })
}

/// Whether a plan is one row without columns.
fn is_single_row(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    match *children {
        [] => plan.is::<PlaceholderRowExec>(),
        [input] if passes_on(plan) => is_single_row(input),
        _ => false,
    }
}
