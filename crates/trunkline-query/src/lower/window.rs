//! Window functions.
//!
//! Keys of `PARTITION BY` and `ORDER BY` are computed before the operator, by which its input is then
//! sorted.

use std::sync::Arc;

use arrow_schema::SortOptions;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder};
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{
    Aggregate, ColumnId, Expr, FrameBound, FrameUnit, Relation, SortKey, Window, WindowFrame,
};
use trunkline_sql::functions::kernel;

use super::planner::{Lowering, planned, with_columns};
use crate::expression::{KeyUse, Program, column_name};
use crate::operator::{
    AggregateOver, Bound, FrameDefinition, Offset, RangeTest, RankFunction, ValueFunction,
    WindowCall, WindowFunction, WindowOperator,
};

impl Lowering<'_> {
    pub(super) fn window(
        &mut self,
        input: &Relation,
        window: &Window,
        functions: &[(ColumnId, Aggregate)],
    ) -> Result<LogicalPlan, SqlError> {
        let mut plan = self.relation(input)?;
        let columns = plan.schema().columns();
        let mut added = Vec::new();
        let mut partition_by = Vec::with_capacity(window.partition_by.len());
        for expr in &window.partition_by {
            let (next, expr) = self.without_subqueries(plan, expr)?;
            plan = next;
            let name = self.new_name("p");
            added.push((name.clone(), self.expressions().key(&expr, KeyUse::Equality)?));
            partition_by.push(name);
        }
        let mut order_by = Vec::with_capacity(window.order_by.len());
        for key in &window.order_by {
            let (next, expr) = self.without_subqueries(plan, &key.expr)?;
            plan = next;
            let name = self.new_name("o");
            added.push((name.clone(), self.expressions().key(&expr, KeyUse::Order)?));
            let (descending, nulls_first) = (key.descending, key.nulls_first);
            order_by.push((name, SortOptions { descending, nulls_first }));
        }
        let mut calls = Vec::with_capacity(functions.len());
        for (id, call) in functions {
            let mut call = call.clone();
            plan = self.call_operands(plan, &mut call)?;
            calls.push(self.window_call(*id, &call)?);
        }
        let frame = self.frame(&window.frame, &window.order_by)?;
        let settings = Arc::clone(&self.environment.settings);
        let shown_frame = window.frame.clone();
        let operator =
            WindowOperator { partition_by, order_by, frame, shown_frame, calls, settings };
        let plan = self.operator(with_columns(plan, added)?, Arc::new(Arc::new(operator)))?;
        // The keys go no further.
        let results = functions.iter().map(|(id, _)| super::planner::field(&column_name(*id)));
        let kept: Vec<PlanExpr> =
            columns.into_iter().map(PlanExpr::Column).chain(results).collect();
        planned(LogicalPlanBuilder::from(plan).project(kept).and_then(LogicalPlanBuilder::build))
    }

    fn window_call(&mut self, id: ColumnId, call: &Aggregate) -> Result<WindowCall, SqlError> {
        let info = self.environment.function(call.function)?;
        let ty = self.environment.carrier(call.ty.oid)?.data_type();
        let (column, text) = (column_name(id), info.name);
        let function = match info.source.as_str() {
            "window_row_number" => WindowFunction::Rank(RankFunction::RowNumber),
            "window_rank" => WindowFunction::Rank(RankFunction::Rank),
            "window_dense_rank" => WindowFunction::Rank(RankFunction::DenseRank),
            "window_percent_rank" => WindowFunction::Rank(RankFunction::PercentRank),
            "window_cume_dist" => WindowFunction::Rank(RankFunction::CumeDist),
            "window_ntile" => WindowFunction::Rank(RankFunction::Ntile),
            "window_lag" | "window_lag_with_offset" | "window_lag_with_offset_and_default" => {
                WindowFunction::Value(ValueFunction::Lag)
            }
            "window_lead" | "window_lead_with_offset" | "window_lead_with_offset_and_default" => {
                WindowFunction::Value(ValueFunction::Lead)
            }
            "window_first_value" => WindowFunction::Value(ValueFunction::First),
            "window_last_value" => WindowFunction::Value(ValueFunction::Last),
            "window_nth_value" => WindowFunction::Value(ValueFunction::Nth),
            name if name.starts_with("window_") => {
                let message = format!("window function {text} is not supported by trunkline");
                return Err(SqlError::unsupported(message));
            }
            _ => return self.aggregate_over(column, ty, call),
        };
        let arguments = call.arguments.iter().map(|expr| Program::compile(self.environment, expr));
        let arguments = arguments.collect::<Result<_, _>>()?;
        Ok(WindowCall { function, arguments, column, ty, text, call: call.clone() })
    }

    /// An aggregate over a window.
    fn aggregate_over(
        &mut self,
        column: String,
        ty: arrow_schema::DataType,
        call: &Aggregate,
    ) -> Result<WindowCall, SqlError> {
        let (definition, described, text) = self.described(call)?;
        let compile = |expr: &Expr| Program::compile(self.environment, expr);
        let arguments = call.arguments.iter().map(compile).collect::<Result<_, _>>()?;
        let constants = call.arguments.iter().map(|argument| self.known(argument));
        let constants = constants.collect::<Result<_, _>>()?;
        let filter = call.filter.as_ref().map(compile).transpose()?;
        let over = AggregateOver { definition, call: described, constants, filter };
        let function = WindowFunction::Aggregate(Box::new(over));
        Ok(WindowCall { function, arguments, column, ty, text, call: call.clone() })
    }

    fn frame(
        &self,
        frame: &WindowFrame,
        order_by: &[SortKey],
    ) -> Result<FrameDefinition, SqlError> {
        let bound = |bound: &FrameBound| {
            Ok::<_, SqlError>(match bound {
                FrameBound::UnboundedPreceding => Bound::UnboundedPreceding,
                FrameBound::CurrentRow => Bound::CurrentRow,
                FrameBound::UnboundedFollowing => Bound::UnboundedFollowing,
                FrameBound::Preceding(distance) => {
                    Bound::Preceding(self.offset(distance, frame.unit, order_by)?)
                }
                FrameBound::Following(distance) => {
                    Bound::Following(self.offset(distance, frame.unit, order_by)?)
                }
            })
        };
        let (start, end) = (bound(&frame.start)?, bound(&frame.end)?);
        Ok(FrameDefinition { unit: frame.unit, start, end, exclude: frame.exclude })
    }

    fn offset(
        &self,
        distance: &Expr,
        unit: FrameUnit,
        order_by: &[SortKey],
    ) -> Result<Offset, SqlError> {
        let range = match (unit, order_by) {
            (FrameUnit::Range, [key]) => Some(self.range_test(key, distance.ty.oid)?),
            (FrameUnit::Range, _) => {
                return Err(SqlError::internal("RANGE with an offset has one sort key"));
            }
            _ => None,
        };
        Ok(Offset { distance: Program::compile(self.environment, distance)?, range })
    }

    /// How a sort key is compared with an offset of this type.
    fn range_test(&self, key: &SortKey, offset: Oid) -> Result<RangeTest, SqlError> {
        let value = key.expr.ty.oid;
        let name = |oid: Oid| {
            let row = self.environment.settings.catalog.type_row(oid);
            row.map_or_else(String::new, |row| String::from_utf8_lossy(&row.name).into_owned())
        };
        let function = format!("in_range_{}_{}", name(value), name(offset));
        let kernel = kernel(&function).ok_or_else(|| {
            SqlError::unsupported(format!("function {function} is not supported by trunkline"))
        })?;
        Ok(RangeTest {
            kernel,
            value: Program::compile(self.environment, &key.expr)?,
            types: (value, offset),
            descending: key.descending,
            nulls_first: key.nulls_first,
        })
    }
}
