//! Groups of rows, by keys where Arrow's equality is not PostgreSQL's.
//!
//! ```text
//!   GROUP BY n (numeric)    Projection: c1, key(c1) AS k2
//!                           Aggregate: groupBy=[k2], aggr=[first(c1) AS c1, …]
//! ```
//! The result shows the first value of each group, as PostgreSQL does.

use std::sync::Arc;

use datafusion::logical_expr::expr::AggregateFunction as PlanAggregate;
use datafusion::logical_expr::{AggregateUDF, Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, SqlType};
use trunkline_sql::functions::{AggregateCall, AggregateDefinition};

use super::planner::{Lowering, field, planned, with_columns};
use crate::aggregate::{AggregateFunction, CallKeys, FIRST_VALUE, ShownCall};
use crate::expression::{Key, KeyUse, column_name};

/// Columns to group by.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    /// By what rows are grouped.
    pub(super) keys: Vec<PlanExpr>,
    /// The values of groups that have a key.
    pub(super) values: Vec<PlanExpr>,
}

impl Lowering<'_> {
    /// Groups by columns of a plan, to which their keys are added.
    pub(super) fn grouping(
        &mut self,
        plan: LogicalPlan,
        columns: &[ColumnId],
    ) -> Result<(LogicalPlan, Grouping), SqlError> {
        let mut grouping = Grouping::default();
        let mut added = Vec::new();
        for &id in columns {
            let ty = self.columns.get(id).ty;
            if Key::of(self.environment, ty, KeyUse::Equality)?.is_none() {
                grouping.keys.push(field(&column_name(id)));
                continue;
            }
            let name = self.new_name("k");
            let key = self.expressions().key(&self.column_expr(id), KeyUse::Equality)?;
            added.push((name.clone(), key));
            grouping.keys.push(field(&name));
            let value = field(&column_name(id));
            let first = self.internal_call("first", &FIRST_VALUE, value, ty)?;
            grouping.values.push(first.alias(column_name(id)));
        }
        Ok((with_columns(plan, added)?, grouping))
    }

    /// A call of one of our own aggregates, with one argument and a result of its type.
    pub(super) fn internal_call(
        &self,
        name: &str,
        definition: &'static AggregateDefinition,
        argument: PlanExpr,
        ty: SqlType,
    ) -> Result<PlanExpr, SqlError> {
        let carrier = self.environment.carrier(ty.oid)?;
        let call = AggregateCall {
            argument_types: vec![ty.oid],
            argument_carriers: vec![carrier],
            result_type: ty.oid,
            result_carrier: carrier,
            direct: Vec::new(),
            collation: ty.collation,
            settings: (*self.environment.settings).clone(),
        };
        let text = format!("{name}#{}", ty.oid);
        let keys = CallKeys::default();
        let shown = ShownCall { arguments: 1, ..ShownCall::default() };
        let function = AggregateFunction::new(text, shown, definition, call, vec![None], keys);
        let function = Arc::new(AggregateUDF::from(function));
        let call = PlanAggregate::new_udf(function, vec![argument], false, None, Vec::new(), None);
        Ok(PlanExpr::AggregateFunction(call))
    }

    /// `DISTINCT`: one row for each combination of values.
    pub(super) fn distinct(
        &mut self,
        plan: LogicalPlan,
        columns: &[ColumnId],
    ) -> Result<LogicalPlan, SqlError> {
        let (plan, grouping) = self.grouping(plan, columns)?;
        let exprs = columns.iter().map(|&id| field(&column_name(id)));
        let exprs: Vec<PlanExpr> = exprs.collect();
        let builder = LogicalPlanBuilder::from(plan);
        // Without columns, all rows are equal.
        let built = match exprs.is_empty() {
            true => builder.limit(0, Some(1)),
            false => builder
                .aggregate(grouping.keys, grouping.values)
                .and_then(|plan| plan.project(exprs)),
        };
        planned(built.and_then(LogicalPlanBuilder::build))
    }
}
