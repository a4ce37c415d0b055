//! Expressions in plans.
//!
//! ```text
//!   c1 = 5 AND c2 IS NULL          Column, Literal, BinaryExpr, IsNull: the planner understands it
//!   numeric_add(c3, c4)            one function of c3 and c4
//!   c1 <> 0 AND int4div(8, c1) > 2 c1 <> 0, and one function of c1 that tests both
//! ```
//!
//! Filters are evaluated in any order, so a condition that could fail repeats the plain conditions
//! on the same columns, and evaluates itself only where they hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{
    Expr as PlanExpr, Operator, ScalarUDF, and, binary_expr, cast, lit, or,
};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BooleanTest, ColumnId, Expr, ExprKind};

use super::constant::{constant, parameter};
use super::function::{Function, wider};
use super::keys::{Key, KeyUse};
use super::program::{BOOL, Program};
use super::scalar_function::ProgramFunction;
use super::text::{column_name, expression_text};
use super::walk::{columns_of, conjuncts};
use crate::environment::Environment;

/// Functions for `=` that are true exactly if the operands' keys are equal.
const KEYED_EQUALITY: [&str; 7] =
    ["float4eq", "float8eq", "numeric_eq", "interval_eq", "timetz_eq", "bpchareq", "network_eq"];

/// What stands for columns of outer queries.
pub(crate) type OuterColumns = BTreeMap<ColumnId, PlanExpr>;

/// AND and OR of more terms are evaluated by one function of ours. For the planner, each is a tree of
/// binary operators, over which it recurses.
const TERMS_MAX: usize = 200;

/// Makes expressions of plans from bound expressions.
#[derive(Debug, Clone)]
pub(crate) struct ExpressionPlanner<'a> {
    environment: &'a Environment,
    outer: Arc<OuterColumns>,
}

impl<'a> ExpressionPlanner<'a> {
    pub(crate) fn new(environment: &'a Environment, outer: &Arc<OuterColumns>) -> Self {
        Self { environment, outer: Arc::clone(outer) }
    }

    /// A reference to a column.
    fn column(&self, id: ColumnId) -> PlanExpr {
        match self.outer.get(&id) {
            Some(outer) => outer.clone(),
            None => PlanExpr::Column(Column::new_unqualified(column_name(id))),
        }
    }

    /// An expression as a value.
    ///
    /// # Errors
    /// 0A000: it contains something that is not implemented.
    pub(crate) fn value(&self, expr: &Expr) -> Result<PlanExpr, SqlError> {
        if let Some(native) = self.native(expr)? {
            return Ok(native);
        }
        let program = Program::compile(self.environment, expr)?;
        Ok(self.call(expression_text(self.environment, expr), expr, program))
    }

    /// An expression as a value. Plans show `shown` instead.
    fn value_shown_as(&self, expr: &Expr, shown: &Expr) -> Result<PlanExpr, SqlError> {
        if let Some(native) = self.native(expr)? {
            return Ok(native);
        }
        let program = Program::compile(self.environment, expr)?;
        Ok(self.call(expression_text(self.environment, expr), shown, program))
    }

    /// An expression by which rows are sorted or grouped: itself, or its key.
    ///
    /// # Errors
    /// 0A000: its type can't be compared.
    pub(crate) fn key(&self, expr: &Expr, usage: KeyUse) -> Result<PlanExpr, SqlError> {
        let Some(key) = Key::of(self.environment, expr.ty, usage)? else {
            return self.value(expr);
        };
        let text = format!("key({})", expression_text(self.environment, expr));
        let program = Program::compile_key(self.environment, expr, key)?;
        Ok(self.call(text, expr, program))
    }

    /// The Arrow type of [`ExpressionPlanner::key`].
    ///
    /// # Errors
    /// As for that.
    pub(crate) fn key_type(&self, expr: &Expr, usage: KeyUse) -> Result<DataType, SqlError> {
        let carrier = match Key::of(self.environment, expr.ty, usage)? {
            Some(key) => key.carrier(),
            None => self.environment.carrier(expr.ty.oid)?,
        };
        Ok(carrier.data_type())
    }

    /// The condition of a filter; `None` if there is nothing to test.
    ///
    /// # Errors
    /// As for [`ExpressionPlanner::value`].
    pub(crate) fn condition(&self, condition: &Expr) -> Result<Option<PlanExpr>, SqlError> {
        let (mut plain, mut others) = (Vec::new(), Vec::new());
        let mut planned = Vec::new();
        let parts = conjuncts(condition);
        if parts.len() > TERMS_MAX {
            return self.value(condition).map(Some);
        }
        for conjunct in parts {
            match self.plain_condition(conjunct)? {
                Some(native) => {
                    plain.push(conjunct);
                    planned.push(native);
                }
                None => others.push(conjunct),
            }
        }
        for (at, conjunct) in others.iter().enumerate() {
            let columns = columns_of(conjunct);
            let guards = |guard: &&&Expr| {
                let needed = columns_of(guard);
                !needed.is_empty() && needed.is_subset(&columns)
            };
            // Of two conditions on the same columns, the later one includes the earlier one.
            let later = others.get(at + 1..).unwrap_or_default();
            let includes = |other: &&Expr| !columns.is_empty() && columns_of(other) == columns;
            if later.iter().any(includes) {
                continue;
            }
            let before = others.get(..at).unwrap_or_default();
            let mut all: Vec<Expr> = plain.iter().filter(guards).map(|&one| one.clone()).collect();
            all.extend(before.iter().filter(guards).map(|&one| one.clone()));
            all.push((*conjunct).clone());
            let all = match all.len() {
                1 => (*conjunct).clone(),
                _ => Expr::new(ExprKind::And(all), condition.ty),
            };
            // Plans show what the statement has: this condition, with those that it stands for.
            let mut shown: Vec<Expr> =
                before.iter().filter(|one| includes(one)).map(|&one| one.clone()).collect();
            shown.push((*conjunct).clone());
            let shown = match shown.len() {
                1 => (*conjunct).clone(),
                _ => Expr::new(ExprKind::And(shown), condition.ty),
            };
            planned.push(self.value_shown_as(&all, &shown)?);
        }
        Ok(planned.into_iter().reduce(and))
    }

    /// The condition of a join. The operands of an equality that has one on each side are computed
    /// before the join, which can then hash or sort them.
    ///
    /// # Errors
    /// As for [`ExpressionPlanner::value`].
    pub(crate) fn join_condition(
        &self,
        condition: &Expr,
        is_left: impl Fn(ColumnId) -> bool,
    ) -> Result<Vec<PlanExpr>, SqlError> {
        let mut planned = Vec::new();
        let parts = conjuncts(condition);
        if parts.len() > TERMS_MAX {
            return Ok(vec![self.value(condition)?]);
        }
        for conjunct in parts {
            if let Some((left, right)) = operands_of_call(conjunct) {
                let side = |expr: &Expr| {
                    let columns = columns_of(expr);
                    let left = columns.iter().filter(|&&id| is_left(id)).count();
                    (left, columns.len() - left)
                };
                let sides = (side(left), side(right));
                let apart = matches!(sides, ((1.., 0), (0, 1..)) | ((0, 1..), (1.., 0)));
                if let Some(equal) = self.equality(conjunct, left, right, apart)? {
                    planned.push(equal);
                    continue;
                }
            }
            planned.push(self.value(conjunct)?);
        }
        Ok(planned)
    }

    /// `left = right` as an ordinary comparison: of the operands, or of their keys.
    fn equality(
        &self,
        call: &Expr,
        left: &Expr,
        right: &Expr,
        apart: bool,
    ) -> Result<Option<PlanExpr>, SqlError> {
        let ExprKind::Call { function, arguments, collation, .. } = &call.kind else {
            return Ok(None);
        };
        if !apart || arguments.len() != 2 || call.ty.oid != BOOL {
            return Ok(None);
        }
        let source = self.environment.function(*function)?.source;
        if KEYED_EQUALITY.contains(&source.as_str()) && left.ty.oid == right.ty.oid {
            let usage = KeyUse::Equality;
            return Ok(Some(self.key(left, usage)?.eq(self.key(right, usage)?)));
        }
        let types = vec![left.ty.oid, right.ty.oid];
        let function = Function::new(self.environment, *function, types, BOOL, *collation)?;
        let Some(native) = function.native() else { return Ok(None) };
        self.compared(native.operator, native.widens, left, right, |expr| self.value(expr))
            .map(Some)
    }

    /// A condition that the planner can understand: native, or an equality of keys of columns.
    fn plain_condition(&self, expr: &Expr) -> Result<Option<PlanExpr>, SqlError> {
        if let Some(native) = self.native(expr)? {
            return Ok(Some(native));
        }
        match operands_of_call(expr) {
            Some((left, right)) if is_column(left) && is_column(right) => {
                self.equality(expr, left, right, true)
            }
            _ => Ok(None),
        }
    }

    /// An expression that consists only of nodes whose meaning is PostgreSQL's and that can't fail.
    fn native(&self, expr: &Expr) -> Result<Option<PlanExpr>, SqlError> {
        let all = |operands: &[Expr], join: fn(PlanExpr, PlanExpr) -> PlanExpr| {
            let operands = operands.iter().map(|operand| self.native(operand));
            let operands: Option<Vec<PlanExpr>> = operands.collect::<Result<_, SqlError>>()?;
            Ok(operands.and_then(|operands| operands.into_iter().reduce(join)))
        };
        Ok(match &expr.kind {
            ExprKind::Column(id) => Some(self.column(*id)),
            ExprKind::Constant(payload) => Some(self.literal(expr, payload.as_deref())?),
            ExprKind::Parameter(number) => {
                Some(self.literal(expr, parameter(self.environment, *number)?)?)
            }
            ExprKind::And(operands) | ExprKind::Or(operands) if operands.len() > TERMS_MAX => None,
            ExprKind::And(operands) => return all(operands, and),
            ExprKind::Or(operands) => return all(operands, or),
            ExprKind::Not(operand) => self.native(operand)?.map(|operand| !operand),
            ExprKind::IsNull { argument, is_row: false } => {
                self.native(argument)?.map(PlanExpr::is_null)
            }
            ExprKind::IsNotNull { argument, is_row: false } => {
                self.native(argument)?.map(PlanExpr::is_not_null)
            }
            ExprKind::BooleanTest { argument, test } => {
                // The planner has nodes for these tests, but executes them as comparisons. Then it
                // doesn't agree with itself whether the result can be null.
                let compared = |argument, operator, value: Option<bool>| {
                    binary_expr(argument, operator, lit(ScalarValue::Boolean(value)))
                };
                let (same, other) = (Operator::IsNotDistinctFrom, Operator::IsDistinctFrom);
                self.native(argument)?.map(|argument| match test {
                    BooleanTest::IsTrue => compared(argument, same, Some(true)),
                    BooleanTest::IsNotTrue => compared(argument, other, Some(true)),
                    BooleanTest::IsFalse => compared(argument, same, Some(false)),
                    BooleanTest::IsNotFalse => compared(argument, other, Some(false)),
                    BooleanTest::IsUnknown => compared(argument, same, None),
                    BooleanTest::IsNotUnknown => compared(argument, other, None),
                })
            }
            ExprKind::Collate(argument) => self.native(argument)?,
            ExprKind::Relabel(argument) => {
                let carrier = |expr: &Expr| self.environment.carrier(expr.ty.oid);
                match carrier(argument)?.data_type() == carrier(expr)?.data_type() {
                    true => self.native(argument)?,
                    false => None,
                }
            }
            ExprKind::Call { function, collation, .. } => {
                let Some((left, right)) = operands_of_call(expr) else { return Ok(None) };
                let types = vec![left.ty.oid, right.ty.oid];
                let function =
                    Function::new(self.environment, *function, types, expr.ty.oid, *collation)?;
                let Some(native) = function.native() else { return Ok(None) };
                if self.native(left)?.is_none() || self.native(right)?.is_none() {
                    return Ok(None);
                }
                let value = |expr: &Expr| self.value(expr);
                Some(self.compared(native.operator, native.widens, left, right, value)?)
            }
            // Not as a list of the planner, whose rules for IN and NOT IN ignore nulls.
            _ => None,
        })
    }

    /// A comparison whose operands have the same type, after the narrower one has been widened.
    fn compared(
        &self,
        operator: Operator,
        widens: bool,
        left: &Expr,
        right: &Expr,
        value: impl Fn(&Expr) -> Result<PlanExpr, SqlError>,
    ) -> Result<PlanExpr, SqlError> {
        let (mut a, mut b) = (value(left)?, value(right)?);
        if widens {
            let carrier = |expr: &Expr| self.environment.carrier(expr.ty.oid);
            let (from_a, from_b) = (carrier(left)?.data_type(), carrier(right)?.data_type());
            let wider = wider(&from_a, &from_b);
            if from_a == wider {
                b = cast(b, wider);
            } else {
                a = cast(a, wider);
            }
        }
        Ok(binary_expr(a, operator, b))
    }

    fn literal(&self, expr: &Expr, payload: Option<&[u8]>) -> Result<PlanExpr, SqlError> {
        let array = constant(self.environment, expr.ty, payload)?;
        let value = ScalarValue::try_from_array(&array, 0);
        value.map(lit).map_err(|error| crate::error::from_datafusion(&error))
    }

    fn call(&self, text: String, shown: &Expr, program: Program) -> PlanExpr {
        let columns = program.columns().iter().map(|&id| self.column(id)).collect();
        let settings = Arc::clone(&self.environment.settings);
        let function = ProgramFunction::new(text, shown.clone(), program, settings);
        ScalarUDF::from(function).call(columns)
    }
}

/// The operands of a call of a function with two arguments.
fn operands_of_call(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match &expr.kind {
        ExprKind::Call { arguments, .. } => match &**arguments {
            [left, right] => Some((left, right)),
            _ => None,
        },
        _ => None,
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Column(_))
}
