//! Columns of plans, which are looked up in the node that computes them.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, Expr};

use super::expressions::Expressions;
use super::folding::folded;
use super::shown::Shown;
use crate::expression::column_name;
use crate::index_join::{Definition, IndexJoinExec};
use crate::operator::{OperatorExec, OperatorKind};
use crate::subplan::{SubplanExec, SubplanKind};

impl Expressions<'_> {
    /// A column of the statement. A scan of a table prints those of the table alone.
    fn named(&self, id: ColumnId, is_scan: bool) -> Shown {
        let (relation, name) = self.names.name(id);
        let name = self.printer.quoted(name);
        let is_scan = is_scan || self.is_scan.get();
        let prefixed = self.verbose || (!is_scan && self.names.has_several());
        let text = match relation.filter(|_| prefixed) {
            Some(relation) => format!("{}.{name}", self.printer.quoted(relation)),
            None => name,
        };
        Shown { text, is_column: true }
    }

    /// A field of which nothing but the name is known.
    pub(super) fn field(&self, name: &str, is_scan: bool) -> Shown {
        match self.names.column_of(name) {
            Some(id) => self.named(id, is_scan),
            None => Shown { text: name.to_owned(), is_column: true },
        }
    }

    /// A column of a plan.
    pub(super) fn column(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        index: usize,
    ) -> Result<Shown, SqlError> {
        let schema = plan.schema();
        let Some(field) = schema.fields().get(index) else {
            return Err(SqlError::internal("a plan has no such column"));
        };
        let name = field.name();
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            if let Some(projected) = projection.expr().get(index) {
                return self.shown(&projected.expr, projection.input());
            }
        } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return self.aggregated(aggregate, index, name);
        } else if plan.is::<RecursiveQueryExec>() {
            // It has a value of its own in each iteration.
            return Ok(self.field(name, false));
        } else if plan.is::<UnionExec>() {
            if let Some(first) = plan.children().first() {
                return self.column(first, index);
            }
        } else if let Some(subplan) = plan.downcast_ref::<SubplanExec>() {
            let width = plan.children().first().map_or(0, |input| input.schema().fields().len());
            if index >= width {
                return match subplan.kind() {
                    SubplanKind::Rows { .. } => self.column(subplan.inner_plan(), index - width),
                    _ => Ok(self.subplans.value(subplan, index - width)),
                };
            }
        } else if let Some(join) = plan.downcast_ref::<IndexJoinExec>() {
            let Definition { columns, outer_side, inner, .. } = join.definition();
            if let Some(column) = columns.get(index) {
                let is_outer = column.side == *outer_side;
                let side = if is_outer { join.outer() } else { &inner.plan };
                return self.column(side, column.index);
            }
        } else if let Some(operator) = plan.downcast_ref::<OperatorExec>() {
            let width = plan.children().first().map_or(0, |input| input.schema().fields().len());
            if index >= width {
                return self.added(plan, operator, index - width, name);
            }
        } else if plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>() {
            let width = plan.children().first().map_or(0, |input| input.schema().fields().len());
            if index >= width {
                return Ok(Shown::computed("row_number() OVER (?)".to_owned()));
            }
        }
        if name == "mark"
            && let Some(mark) = self.mark(plan)?
        {
            return Ok(mark);
        }
        for child in plan.children() {
            let schema = child.schema();
            let same = schema.fields().get(index).is_some_and(|field| field.name() == name);
            let place = if same { Some(index) } else { schema.index_of(name).ok() };
            if let Some(place) = place {
                return self.column(child, place);
            }
        }
        Ok(self.field(name, false))
    }

    /// A column that an operator of ours adds.
    fn added(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        operator: &OperatorExec,
        number: usize,
        name: &str,
    ) -> Result<Shown, SqlError> {
        if self.names.column_of(name).is_some_and(|id| self.names.function(id).is_some()) {
            return Ok(self.field(name, false));
        }
        match OperatorKind::of(operator.operator()) {
            OperatorKind::ProjectSet(set) => {
                let mut columns =
                    set.calls.iter().flat_map(|call| call.columns.iter().map(move |_| call));
                match columns.nth(number) {
                    Some(call) => Ok(Shown::computed(self.bound(&call.call, plan)?)),
                    None => Ok(self.field(name, false)),
                }
            }
            OperatorKind::Window(window) => match window.calls.get(number) {
                Some(call) => self.window_call(&call.call, plan).map(Shown::computed),
                None => Ok(self.field(name, false)),
            },
            OperatorKind::Limit | OperatorKind::Barrier => Ok(self.field(name, false)),
        }
    }

    /// A bound expression over the input of an operator.
    pub(super) fn bound(
        &self,
        expr: &Expr,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<String, SqlError> {
        let expr = folded(self.environment, expr);
        self.printer.expression(&expr, false, &|id| self.column_by_id(id, plan))
    }

    /// A column of the input of an operator by its name.
    pub(super) fn column_by_id(
        &self,
        id: ColumnId,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<String, SqlError> {
        let name = column_name(id);
        for child in plan.children() {
            if let Ok(index) = child.schema().index_of(&name) {
                return Ok(self.column(child, index)?.text);
            }
        }
        Ok(self.field(&name, false).text)
    }
}
