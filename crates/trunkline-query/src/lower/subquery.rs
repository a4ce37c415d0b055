//! Subqueries in expressions.
//!
//! `EXISTS` and `IN` that must be true become semi-joins, and `IN` of a subquery without outer columns
//! marks the rows that match. Any other subquery becomes a subplan, which adds a column with its value
//! to the input, and the expression refers to that column:
//!
//! ```text
//!   SELECT a + (SELECT max(b) FROM t) FROM s     subplan, executed once
//!   … WHERE EXISTS (SELECT …)                    semi-join, as for IN
//!   … x IN (SELECT y FROM t) OR …                mark: whether a row of t matches
//!   CASE WHEN a > 0 THEN (SELECT …) END          subplan, executed in rows in which a > 0
//! ```

use std::sync::Arc;

use datafusion::logical_expr::{
    Expr as PlanExpr, Extension, JoinType, LogicalPlan, LogicalPlanBuilder,
};
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{
    CallForm, Comparison, Expr, ExprKind, Quantifier, Query, Relation, SqlType, Subquery,
    SubqueryKind,
};

use super::join::contains_subquery;
use super::planner::{Lowering, planned, with_columns};
use super::visible::outer_columns;
use crate::environment::Volatility;
use crate::expression::{column_name, conjuncts};
use crate::materialized::MaterializedNode;
use crate::subplan::SubplanKind;

/// `bool`.
pub(super) const BOOL: SqlType = SqlType::new(Oid(16));

impl Lowering<'_> {
    /// Whether a relation or anything in it calls a volatile function.
    pub(super) fn is_volatile(&self, relation: &Relation) -> bool {
        let mut volatile = false;
        relation.expressions(|expr| volatile |= self.calls_volatile(expr));
        relation.inputs(|input| volatile |= self.is_volatile(input));
        volatile
    }

    /// Whether an expression or a subquery in it calls a volatile function.
    pub(super) fn calls_volatile(&self, expr: &Expr) -> bool {
        expr.any(&mut |part| match &part.kind {
            ExprKind::Call { function, .. } => {
                let info = self.environment.function(*function);
                info.is_ok_and(|info| info.volatility == Volatility::Volatile)
            }
            ExprKind::Subquery(subquery) => {
                self.is_volatile(&self.subqueries.get(subquery.query).relation)
            }
            _ => false,
        })
    }

    /// Adds the values of an expression's subqueries to a plan, and returns the expression with columns
    /// in their place.
    pub(super) fn without_subqueries(
        &mut self,
        plan: LogicalPlan,
        expr: &Expr,
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        if !contains_subquery(expr) {
            return Ok((plan, expr.clone()));
        }
        let (mut plan, mut expr) = (plan, expr.clone());
        self.replace(&mut plan, &mut expr, &mut Vec::new())?;
        Ok((plan, expr))
    }

    /// Adds the value of a subquery to a plan; also returns the value.
    pub(super) fn subquery_value(
        &mut self,
        mut plan: LogicalPlan,
        subquery: &Subquery,
        ty: SqlType,
        guards: &[Expr],
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        let subqueries = self.subqueries;
        let query = subqueries.get(subquery.query);
        let output = |place: usize| {
            let output = query.output.get(place).map(|output| output.id);
            output.ok_or_else(|| SqlError::internal("a subquery has a column"))
        };
        let (kind, relation, column) = match &subquery.kind {
            SubqueryKind::Scalar => (SubplanKind::Scalar, query.relation.clone(), output(0)?),
            SubqueryKind::Exists => {
                let id = self.new_column(BOOL);
                let (input, columns) =
                    (Box::new(query.relation.clone()), vec![(id, boolean(true))]);
                (SubplanKind::Exists, Relation::Project { input, columns }, id)
            }
            SubqueryKind::Quantified { quantifier, operands, columns } => {
                // Several parts of a plan evaluate them.
                let query = self.evaluated_once(query)?;
                let mut operands = operands.clone();
                if guards.is_empty() {
                    plan = self.with_volatile(plan, operands.iter_mut().map(|(it, _)| it))?;
                }
                let is_volatile = self.is_volatile(&query.relation)
                    || operands.iter().any(|(operand, _)| self.calls_volatile(operand));
                let cannot_fail = || match (&*operands, &**columns) {
                    ([operand], [column]) => self.cannot_fail(&query.relation, operand, column),
                    _ => false,
                };
                if !is_volatile
                    && self.new_outer_columns(&query.relation).is_empty()
                    && (guards.is_empty() || cannot_fail())
                {
                    return self.quantified(plan, &query, *quantifier, &operands, columns);
                }
                let id = self.new_column(BOOL);
                let matches = comparisons(&operands, columns)?;
                let uses_case = matches.any(&mut |part| part.kind == ExprKind::CaseOperand);
                if uses_case {
                    let message = "CASE of a value with a subquery is not supported by trunkline";
                    return Err(SqlError::unsupported(message));
                }
                let (input, columns) = (Box::new(query.relation), vec![(id, matches)]);
                let kind = match quantifier {
                    Quantifier::Any => SubplanKind::Any,
                    Quantifier::All => SubplanKind::All,
                };
                (kind, Relation::Project { input, columns }, id)
            }
            SubqueryKind::Array => {
                let id = output(0)?;
                (self.array_kind(self.columns.get(id).ty.oid, ty.oid)?, query.relation.clone(), id)
            }
        };
        if guards.iter().any(|guard| self.calls_volatile(guard)) {
            let message =
                "a subquery that a volatile function may skip is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let guard = match guards {
            [] => None,
            [guard] => Some(guard.clone()),
            _ => Some(Expr::new(ExprKind::And(guards.to_vec()), BOOL)),
        };
        let id = self.new_column(ty);
        let columns = [(column, id)];
        let plan = self.with_subplan(plan, &relation, kind, &columns, guard.as_ref())?;
        Ok((plan, Expr::new(ExprKind::Column(id), ty)))
    }

    /// The query of `IN` as one whose rows are kept, if it is volatile. The server evaluates it once,
    /// unless it uses outer columns.
    fn evaluated_once(&mut self, query: &Query) -> Result<Query, SqlError> {
        let relation = &query.relation;
        let is_kept = self.is_volatile(relation)
            && outer_columns(relation, self.subqueries).is_empty()
            && !self.refers_to_recursion(relation);
        if !is_kept {
            return Ok(query.clone());
        }
        let columns = relation.visible();
        let plan = self.relation(relation)?;
        // Queries of `WITH` are numbered from 0.
        let cte = u32::MAX - self.new_number();
        let node = Arc::new(MaterializedNode::new(cte, plan));
        let plan = LogicalPlan::Extension(Extension { node });
        self.ctes.insert(cte, (plan, columns.clone()));
        let columns = columns.into_iter().map(|id| (id, id)).collect();
        Ok(Query { relation: Relation::CteScan { cte, columns }, output: query.output.clone() })
    }

    /// Adds a column for each volatile operand, which has one value for each row of the plan, not one
    /// for each row of the query.
    fn with_volatile<'e>(
        &mut self,
        plan: LogicalPlan,
        operands: impl Iterator<Item = &'e mut Expr>,
    ) -> Result<LogicalPlan, SqlError> {
        let mut added = Vec::new();
        for operand in operands {
            if !self.calls_volatile(operand) {
                continue;
            }
            let id = self.new_column(operand.ty);
            added.push((column_name(id), self.expressions().value(operand)?));
            *operand = Expr::new(ExprKind::Column(id), operand.ty);
        }
        with_columns(plan, added)
    }

    /// `ANY` and `ALL` with three-valued logic. For `ANY`, the value is true if a row matches, null if
    /// none does but a comparison is null, and false otherwise. `ALL` is the opposite of `ANY` of the
    /// opposite.
    fn quantified(
        &mut self,
        plan: LogicalPlan,
        query: &Query,
        quantifier: Quantifier,
        operands: &[(Expr, Comparison)],
        columns: &[Expr],
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        let matches = comparisons(operands, columns)?;
        let (decides, decided) = match quantifier {
            Quantifier::Any => (matches.clone(), true),
            Quantifier::All => (Expr::new(ExprKind::Not(Box::new(matches.clone())), BOOL), false),
        };
        let (plan, found) = self.marked(plan, query, &decides)?;
        let (plan, null) = match (operands, columns) {
            ([(operand, comparison)], [column]) if self.compares(comparison.function) => {
                self.with_null_comparison(plan, query, operand, column)?
            }
            _ => self.marked(plan, query, &is_null(matches))?,
        };
        let value = ExprKind::Case {
            operand: None,
            arms: vec![(found, boolean(decided)), (null, Expr::null(BOOL))],
            otherwise: Box::new(boolean(!decided)),
        };
        Ok((plan, Expr::new(value, BOOL)))
    }

    /// Adds an expression that is true if a comparison of the operand with a query's column is null: the query has a row, and the operand is null, or the query has a null. Neither depends on the row, so no join is
    /// needed, which would have to compare all rows with one another.
    fn with_null_comparison(
        &mut self,
        plan: LogicalPlan,
        query: &Query,
        operand: &Expr,
        column: &Expr,
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        let input = Box::new(query.relation.clone());
        let nulls = Relation::Filter { input, condition: is_null(column.clone()) };
        let (plan, has_null) = self.with_exists(plan, nulls)?;
        let (plan, has_row) = self.with_exists(plan, query.relation.clone())?;
        let is_compared = ExprKind::And(vec![is_null(operand.clone()), has_row]);
        let null = ExprKind::Or(vec![has_null, Expr::new(is_compared, BOOL)]);
        Ok((plan, Expr::new(null, BOOL)))
    }

    /// Adds a column that says whether a relation without outer columns has a row.
    fn with_exists(
        &mut self,
        plan: LogicalPlan,
        relation: Relation,
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        let (one, id) = (self.new_column(BOOL), self.new_column(BOOL));
        let columns = vec![(one, boolean(true))];
        let relation = Relation::Project { input: Box::new(relation), columns };
        let plan = self.with_subplan(plan, &relation, SubplanKind::Exists, &[(one, id)], None)?;
        Ok((plan, self.column_expr(id)))
    }

    /// Adds a column that says whether a query has a row that meets a condition.
    fn marked(
        &mut self,
        plan: LogicalPlan,
        query: &Query,
        condition: &Expr,
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        let inner_columns = query.relation.visible();
        let inner = self.relation(&query.relation)?;
        let is_left = |id| !inner_columns.contains(&id);
        let on = self.expressions().join_condition(condition, is_left)?;
        let kept = plan.schema().columns().into_iter().map(PlanExpr::Column);
        let kept: Vec<PlanExpr> = kept.collect();
        let alias = self.new_name("q");
        let inner = planned(
            LogicalPlanBuilder::from(inner).alias(alias).and_then(LogicalPlanBuilder::build),
        )?;
        let joined = self.joined(plan, inner, JoinType::LeftMark, on)?;
        let mark = joined.schema().columns().into_iter().next_back();
        let mark = mark.ok_or_else(|| SqlError::internal("a mark join has a mark"))?;
        let id = self.new_column(BOOL);
        let columns = kept.into_iter().chain([PlanExpr::Column(mark).alias(column_name(id))]);
        let columns: Vec<PlanExpr> = columns.collect();
        let builder = LogicalPlanBuilder::from(joined).project(columns);
        Ok((planned(builder.and_then(LogicalPlanBuilder::build))?, self.column_expr(id)))
    }

    /// Keeps the rows for which a subquery has a row that matches, or has none if `negated`. The
    /// subquery may use columns of the plan in its conditions. `None` if this isn't possible.
    pub(super) fn semi_join(
        &mut self,
        plan: &LogicalPlan,
        subquery: &Subquery,
        negated: bool,
    ) -> Result<Option<LogicalPlan>, SqlError> {
        let query = self.subqueries.get(subquery.query);
        let mut conditions = Vec::new();
        if let SubqueryKind::Quantified { quantifier, operands, columns } = &subquery.kind {
            let simple = |(operand, _): &(Expr, Comparison)| !contains_subquery(operand);
            if *quantifier != Quantifier::Any || !operands.iter().all(simple) {
                return Ok(None);
            }
            conditions.push(comparisons(operands, columns)?);
        }
        let Some((relation, lifted)) = self.lifted(&query.relation)? else { return Ok(None) };
        conditions.extend(lifted);
        let inner_columns = relation.visible();
        let inner = self.relation(&relation)?;
        let mut on = Vec::new();
        for condition in &conditions {
            let is_left = |id| !inner_columns.contains(&id);
            on.extend(self.expressions().join_condition(condition, is_left)?);
        }
        let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
        self.joined(plan.clone(), inner, kind, on).map(Some)
    }

    /// A relation without the conditions that use outer columns, and those conditions. `None` if outer
    /// columns are used elsewhere.
    fn lifted(&self, relation: &Relation) -> Result<Option<(Relation, Vec<Expr>)>, SqlError> {
        if outer_columns(relation, self.subqueries).is_empty() {
            return Ok(Some((relation.clone(), Vec::new())));
        }
        // The server evaluates volatile functions for each outer row, a join only once.
        if self.is_volatile(relation) {
            return Ok(None);
        }
        Ok(match relation {
            Relation::Filter { input, condition } => {
                let Some((input, mut lifted)) = self.lifted(input)? else { return Ok(None) };
                let inner = input.visible();
                let (mut kept, mut correlated) = (Vec::new(), Vec::new());
                for conjunct in conjuncts(condition) {
                    let mut uses_outer = contains_subquery(conjunct);
                    conjunct.columns(self.subqueries, &mut |id| uses_outer |= !inner.contains(&id));
                    if uses_outer { &mut correlated } else { &mut kept }.push(conjunct.clone());
                }
                if correlated.iter().any(contains_subquery) {
                    return Ok(None);
                }
                lifted.extend(correlated);
                let input = Box::new(input);
                let relation = match kept.is_empty() {
                    true => *input,
                    false => {
                        let condition = Expr::new(ExprKind::And(kept), BOOL);
                        Relation::Filter { input, condition }
                    }
                };
                Some((relation, lifted))
            }
            Relation::Project { input, columns } => {
                let Some((input, lifted)) = self.lifted(input)? else { return Ok(None) };
                let inner = input.visible();
                let mut uses_outer = false;
                for (_, expr) in columns {
                    expr.columns(self.subqueries, &mut |id| uses_outer |= !inner.contains(&id));
                }
                if uses_outer {
                    return Ok(None);
                }
                // The conditions need columns that the projection doesn't have.
                let mut columns = columns.clone();
                for &id in &inner {
                    if !columns.iter().any(|(known, _)| *known == id) {
                        columns.push((id, self.column_expr(id)));
                    }
                }
                Some((Relation::Project { input: Box::new(input), columns }, lifted))
            }
            Relation::Sort { input, .. } => self.lifted(input)?,
            _ => None,
        })
    }
}

/// The comparisons of the operands with the columns of a subquery.
fn comparisons(operands: &[(Expr, Comparison)], columns: &[Expr]) -> Result<Expr, SqlError> {
    let pairs = operands.iter().zip(columns).map(|((operand, comparison), column)| {
        let call = ExprKind::Call {
            function: comparison.function,
            arguments: vec![operand.clone(), column.clone()],
            collation: comparison.collation,
            form: CallForm::Operator(comparison.operator),
        };
        Expr::new(call, BOOL)
    });
    let mut pairs: Vec<Expr> = pairs.collect();
    match pairs.len() {
        0 => Err(SqlError::internal("a comparison of rows without columns")),
        1 => Ok(pairs.remove(0)),
        _ => Ok(Expr::new(ExprKind::And(pairs), BOOL)),
    }
}

fn is_null(argument: Expr) -> Expr {
    Expr::new(ExprKind::IsNull { argument: Box::new(argument), is_row: false }, BOOL)
}

pub(super) fn boolean(value: bool) -> Expr {
    Expr::new(ExprKind::Constant(Some([u8::from(value)].into())), BOOL)
}
