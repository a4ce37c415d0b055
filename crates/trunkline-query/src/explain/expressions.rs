//! Expressions of physical plans as SQL text.
//!
//! A column of a plan is looked up in the node that computes it:
//!
//! ```text
//!   Sort k3                        Sort Key: ((a + 1))
//!     Projection: c1, c1 + 1 AS k3
//!       Scan t [c1]
//! ```

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::JoinSide;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr,
    Literal, NotExpr,
};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::scalar::ScalarValue;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BoundStatement, ColumnId, Expr, ExprKind, SqlType};
use trunkline_sql::catalog::oids;
use trunkline_sql::deparse::ExpressionPrinter;

use super::folding::folded;
use super::literals::{VARCHAR, literal_text};
use super::names::Names;
use super::shown::Shown;
use super::subplans::Subplans;
use crate::environment::Environment;
use crate::expression::{ProgramFunction, column_name};
use crate::operator::{OperatorExec, OperatorKind};
use crate::subplan::SubplanExec;

/// Prints expressions of one plan.
#[derive(Debug)]
pub(super) struct Expressions<'a> {
    pub(super) environment: &'a Environment,
    pub(super) printer: ExpressionPrinter<'a>,
    pub(super) names: Names<'a>,
    pub(super) subplans: Subplans,
    pub(super) verbose: bool,
    /// Columns are those of one table, as in the filter of a scan.
    pub(super) is_scan: Cell<bool>,
}

/// Prints the columns of an expression.
pub(super) type ColumnText<'c> = dyn Fn(&Column) -> Result<Shown, SqlError> + 'c;

impl<'a> Expressions<'a> {
    pub(super) fn new(
        statement: &'a BoundStatement,
        environment: &'a Environment,
        printer: ExpressionPrinter<'a>,
        subplans: Subplans,
        verbose: bool,
    ) -> Self {
        let (names, is_scan) = (Names::of(statement), Cell::new(false));
        Self { environment, printer, names, subplans, verbose, is_scan }
    }

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
        } else if plan.is::<UnionExec>() {
            if let Some(first) = plan.children().first() {
                return self.column(first, index);
            }
        } else if let Some(subplan) = plan.downcast_ref::<SubplanExec>() {
            let width = plan.children().first().map_or(0, |input| input.schema().fields().len());
            if index >= width {
                return Ok(self.subplans.value(subplan, index - width));
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
            OperatorKind::Limit => Ok(self.field(name, false)),
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

    /// An expression over a plan.
    pub(super) fn shown(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<Shown, SqlError> {
        let columns = |column: &Column| self.column(input, column.index());
        match expr.downcast_ref::<Column>() {
            Some(column) => columns(column),
            None => Ok(Shown::computed(self.text(expr, None, &columns)?)),
        }
    }

    /// The keys of a sort, over its input.
    pub(super) fn sort_keys(
        &self,
        ordering: &LexOrdering,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<Vec<String>, SqlError> {
        let key = |key: &datafusion::physical_expr::PhysicalSortExpr| {
            let shown = self.shown(&key.expr, input)?;
            let mut text = match key.expr.is::<Column>() {
                true => shown.passed_on(),
                false if is_key_of_column(&key.expr) => shown.text,
                false => format!("({})", shown.text),
            };
            if let Some(collation) =
                self.key_type(&key.expr).and_then(|ty| self.printer.collation(ty))
            {
                text = format!("{text} {collation}");
            }
            let (descending, nulls_first) = (key.options.descending, key.options.nulls_first);
            if descending {
                text.push_str(" DESC");
            }
            if nulls_first != descending {
                text.push_str(if nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
            }
            Ok(text)
        };
        ordering.iter().map(key).collect()
    }

    /// The type of a sort key.
    fn key_type(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<SqlType> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.names.column_of(column.name()).map(|id| self.names.column(id).ty);
        }
        program(expr).map(|(function, _)| function.shown().ty)
    }

    /// Conditions that must all hold, as one text; `None` if there are none.
    pub(super) fn condition<'e>(
        &self,
        exprs: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>,
        columns: &ColumnText<'_>,
    ) -> Result<Option<String>, SqlError> {
        let mut parts = Vec::new();
        for expr in exprs {
            self.conjuncts(expr, columns, &mut parts)?;
        }
        Ok(match &*parts {
            [] => None,
            [only] => Some(only.clone()),
            all => Some(format!("({})", all.join(" AND "))),
        })
    }

    fn conjuncts(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        columns: &ColumnText<'_>,
        parts: &mut Vec<String>,
    ) -> Result<(), SqlError> {
        // Set while the query runs.
        if expr.is::<DynamicFilterPhysicalExpr>() {
            return Ok(());
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>()
            && *binary.op() == Operator::And
        {
            self.conjuncts(binary.left(), columns, parts)?;
            return self.conjuncts(binary.right(), columns, parts);
        }
        if let Some((function, arguments)) = program(expr)
            && let ExprKind::And(operands) = &function.shown().kind
        {
            for operand in operands {
                parts.push(self.program(operand, function, arguments, columns)?);
            }
            return Ok(());
        }
        parts.push(self.text(expr, None, columns)?);
        Ok(())
    }

    /// The condition of a join.
    pub(super) fn join_filter(
        &self,
        filter: &JoinFilter,
        left: &Arc<dyn ExecutionPlan>,
        right: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<String>, SqlError> {
        let columns = |column: &Column| match filter.column_indices().get(column.index()) {
            Some(place) if place.side == JoinSide::Left => self.column(left, place.index),
            Some(place) if place.side == JoinSide::Right => self.column(right, place.index),
            _ => Ok(self.field(column.name(), false)),
        };
        self.condition([filter.expression()], &columns)
    }

    /// The type of an operand of a comparison.
    fn type_of(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<SqlType> {
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            return self.type_of(cast.expr());
        }
        self.key_type(expr)
    }

    /// An operand of a comparison. Those of `text` take `varchar`, too, as text.
    pub(super) fn operand(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        other: Option<SqlType>,
        columns: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let text = self.text(expr, other, columns)?;
        Ok(match self.type_of(expr) {
            Some(ty) if ty.oid == VARCHAR && expr.is::<Column>() => format!("({text})::text"),
            _ => text,
        })
    }

    /// The text of an expression. `ty` is the type of constants.
    pub(super) fn text(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        ty: Option<SqlType>,
        columns: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return Ok(columns(column)?.text);
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return literal_text(self.environment, &self.printer, literal.value(), ty);
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            return self.text(cast.expr(), ty, columns);
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            return self.binary(binary, columns);
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return Ok(format!("(NOT {})", self.text(not.arg(), None, columns)?));
        }
        if let Some(test) = expr.downcast_ref::<IsNullExpr>() {
            return Ok(format!("({} IS NULL)", self.text(test.arg(), None, columns)?));
        }
        if let Some(test) = expr.downcast_ref::<IsNotNullExpr>() {
            return Ok(format!("({} IS NOT NULL)", self.text(test.arg(), None, columns)?));
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            return self.in_list(list, columns);
        }
        if let Some((function, arguments)) = program(expr) {
            return self.program(function.shown(), function, arguments, columns);
        }
        if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>()
            && let Some(name) = call.name().strip_prefix("outer_value($")
            && let Some((name, _)) = name.split_once('#')
        {
            return Ok(self.field(name, false).text);
        }
        // A node of ours around a condition.
        match (expr.children().first(), expr.children().len()) {
            (Some(only), 1) => self.text(only, ty, columns),
            _ => Ok(expr.to_string()),
        }
    }

    fn program(
        &self,
        shown: &Expr,
        function: &ProgramFunction,
        arguments: &[Arc<dyn PhysicalExpr>],
        columns: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let shown = folded(self.environment, shown);
        self.printer.expression(&shown, false, &|id| {
            let place = function.columns().iter().position(|known| *known == id);
            match place.and_then(|place| arguments.get(place)) {
                Some(argument) => {
                    let ty = Some(self.names.column(id).ty);
                    self.text(argument, ty, columns)
                }
                None => Ok(self.field(&column_name(id), false).text),
            }
        })
    }

    fn binary(&self, binary: &BinaryExpr, columns: &ColumnText<'_>) -> Result<String, SqlError> {
        let (left, right) = (binary.left(), binary.right());
        if let Operator::And | Operator::Or = binary.op() {
            let mut parts = Vec::new();
            self.chain(binary, *binary.op(), columns, &mut parts)?;
            let word = if *binary.op() == Operator::And { " AND " } else { " OR " };
            return Ok(format!("({})", parts.join(word)));
        }
        let constant = right.downcast_ref::<Literal>().map(Literal::value);
        if let Operator::IsDistinctFrom | Operator::IsNotDistinctFrom = binary.op()
            && let Some(ScalarValue::Boolean(value)) = constant
        {
            let not = if *binary.op() == Operator::IsDistinctFrom { "NOT " } else { "" };
            let test = match value {
                Some(true) => "TRUE",
                Some(false) => "FALSE",
                None => "UNKNOWN",
            };
            return Ok(format!("({} IS {not}{test})", self.text(left, None, columns)?));
        }
        let operator = match binary.op() {
            Operator::IsDistinctFrom => "IS DISTINCT FROM".to_owned(),
            Operator::IsNotDistinctFrom => "IS NOT DISTINCT FROM".to_owned(),
            Operator::NotEq => "<>".to_owned(),
            other => other.to_string(),
        };
        let (a, b) = (self.type_of(left), self.type_of(right));
        let (left, right) = (self.operand(left, b, columns)?, self.operand(right, a, columns)?);
        Ok(format!("({left} {operator} {right})"))
    }

    fn chain(
        &self,
        binary: &BinaryExpr,
        operator: Operator,
        columns: &ColumnText<'_>,
        parts: &mut Vec<String>,
    ) -> Result<(), SqlError> {
        for side in [binary.left(), binary.right()] {
            match side.downcast_ref::<BinaryExpr>() {
                Some(inner) if *inner.op() == operator => {
                    self.chain(inner, operator, columns, parts)?;
                }
                _ => parts.push(self.text(side, None, columns)?),
            }
        }
        Ok(())
    }

    /// `IN` of constants, which PostgreSQL shows as a comparison with an array.
    fn in_list(&self, list: &InListExpr, columns: &ColumnText<'_>) -> Result<String, SqlError> {
        let ty = self.type_of(list.expr());
        let operand = self.operand(list.expr(), None, columns)?;
        let values = list.list().iter().map(|value| self.text(value, ty, columns));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let element = ty.map(|ty| match ty.oid {
            VARCHAR => SqlType::new(oids::TEXT),
            oid => SqlType::new(oid),
        });
        let plain = |text: &String| {
            // `'x'::text` is x in an array.
            let text = text.strip_prefix('\'').unwrap_or(text);
            text.rsplit_once("'::").map_or(text, |(value, _)| value).to_owned()
        };
        let values: Vec<String> = values.iter().map(plain).collect();
        let (operator, word) = if list.negated() { ("<>", "ALL") } else { ("=", "ANY") };
        let array = match element {
            Some(ty) => format!("'{{{}}}'::{}[]", values.join(","), self.printer.type_name(ty)),
            None => format!("'{{{}}}'", values.join(",")),
        };
        Ok(format!("({operand} {operator} {word} ({array}))"))
    }
}

/// A program of ours, with its arguments.
pub(super) fn program(
    expr: &Arc<dyn PhysicalExpr>,
) -> Option<(&ProgramFunction, &[Arc<dyn PhysicalExpr>])> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let function = call.fun().inner().downcast_ref::<ProgramFunction>()?;
    Some((function, call.args()))
}

/// Whether an expression is the key of a column.
fn is_key_of_column(expr: &Arc<dyn PhysicalExpr>) -> bool {
    program(expr).is_some_and(|(function, _)| matches!(function.shown().kind, ExprKind::Column(_)))
}
