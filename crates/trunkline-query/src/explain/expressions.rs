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
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr,
    IsNullExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::scalar::ScalarValue;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BoundStatement, Expr, ExprKind, SqlType};
use trunkline_sql::catalog::oids;
use trunkline_sql::deparse::ExpressionPrinter;

use super::folding::folded;
use super::literals::{VARCHAR, literal_text};
use super::names::Names;
use super::shown::Shown;
use super::subplans::Subplans;
use crate::environment::Environment;
use crate::expression::{ProgramFunction, column_name};

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

    /// An expression over a plan.
    pub(super) fn shown(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<Shown, SqlError> {
        let columns = |column: &Column| self.column(input, column.index());
        let expr = grouped_column(expr).unwrap_or(expr);
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
            // The key of a column is shown as the column.
            let expr = match program(&key.expr) {
                Some((function, [column])) if is_column(function.shown()) => column,
                _ => &key.expr,
            };
            let mut text = self.shown(expr, input)?.passed_on();
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
            let id = self.names.column_of(column.name())?;
            return self.names.column(id).map(|column| column.ty);
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
        let expr = grouped_column(expr).unwrap_or(expr);
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
                    let ty = self.names.column(id).map(|column| column.ty);
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

fn is_column(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Column(_))
}

/// The column that lowering wraps in a `CASE`, so that it is null in grouping sets without it.
fn grouped_column(expr: &Arc<dyn PhysicalExpr>) -> Option<&Arc<dyn PhysicalExpr>> {
    let case = expr.downcast_ref::<CaseExpr>()?;
    match (case.expr(), case.when_then_expr(), case.else_expr()) {
        (None, [(when, then)], None) if when.is::<IsNotNullExpr>() && then.is::<Column>() => {
            Some(then)
        }
        _ => None,
    }
}
