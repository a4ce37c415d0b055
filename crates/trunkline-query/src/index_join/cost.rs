//! What a join costs as a nested loop and as a hash join (`costsize.c`), of the rows that are wanted.
//!
//! Both include the costs of the scans below, since a limit saves different parts of them: a hash join
//! reads its build side to the end.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::exec::IndexJoinExec;
use crate::access_path::{Cost, PlannerSettings};
use crate::scan::ScanExec;

/// The estimated rows of a plan; `None` if nothing is known.
pub(super) fn estimated_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    let statistics = StatisticsContext::new().compute(&**plan, &StatisticsArgs::new()).ok()?;
    match statistics.num_rows {
        Precision::Exact(rows) | Precision::Inexact(rows) => Some((rows as f64).max(1.0)),
        Precision::Absent => None,
    }
}

/// The costs of all scans of a plan, and of the inner sides of its index joins.
fn scans(plan: &Arc<dyn ExecutionPlan>) -> Cost {
    let own = if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        scan.path().cost
    } else if let Some(join) = plan.downcast_ref::<IndexJoinExec>() {
        join.cost()
    } else {
        Cost::default()
    };
    plan.children().into_iter().fold(own, |sum, child| added(sum, scans(child)))
}

fn added(one: Cost, other: Cost) -> Cost {
    Cost {
        disabled: one.disabled + other.disabled,
        startup: one.startup + other.startup,
        total: one.total + other.total,
    }
}

/// How much of a join's work is wanted.
pub(super) struct Wanted {
    /// The rows of the join.
    pub(super) rows: f64,
    /// The fraction of them that is wanted.
    pub(super) fraction: f64,
}

impl Wanted {
    pub(super) fn new(rows: f64, limit: Option<usize>) -> Self {
        let rows = rows.max(1.0);
        let fraction = limit.map_or(1.0, |limit| (limit as f64 / rows).min(1.0));
        Self { rows, fraction }
    }
}

/// A nested loop. `inner` is the cost of the inner side for all outer rows.
pub(super) fn nested_loop(
    settings: &PlannerSettings,
    outer: &Arc<dyn ExecutionPlan>,
    inner: Cost,
    wanted: &Wanted,
) -> Cost {
    let mut cost = added(scans(outer), inner);
    cost.disabled += u32::from(!settings.enable_nestloop);
    cost.total += settings.cpu_tuple_cost * wanted.rows;
    Cost { startup: 0.0, ..cost }.of_fraction(wanted.fraction)
}

/// The hash join, whose first input is the build side. The numbers are the estimated rows of its
/// inputs.
pub(super) fn hash_join(
    settings: &PlannerSettings,
    join: &HashJoinExec,
    (left, right): (f64, f64),
    wanted: &Wanted,
) -> Cost {
    let hash = settings.cpu_operator_cost * join.on().len() as f64;
    let (build, probe) = (scans(join.left()), scans(join.right()));
    let startup = build.total + (hash + settings.cpu_tuple_cost) * left;
    let rest = probe.total + hash * right + settings.cpu_tuple_cost * wanted.rows;
    let disabled = build.disabled + probe.disabled + u32::from(!settings.enable_hashjoin);
    Cost { disabled, startup, total: startup + rest }.of_fraction(wanted.fraction)
}
