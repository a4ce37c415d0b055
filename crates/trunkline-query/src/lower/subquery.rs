//! Subqueries in expressions.
//!
//! A subquery becomes a join with the input of the relation whose expression contains it, and the
//! expression refers to a column of the join's result. A subquery that doesn't use columns of outer
//! queries has one value for all rows:
//!
//! ```text
//!   SELECT a + (SELECT max(b) FROM t) FROM s     cross join of s and single(max(b)) from t
//!   … WHERE EXISTS (SELECT …)                    semi-join, as for IN
//!   … x IN (SELECT y FROM t) OR …                mark: whether a row of t matches
//! ```

use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::{Expr as PlanExpr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{
    CallForm, ColumnId, Comparison, Expr, ExprKind, Quantifier, Query, Relation, SqlType, Subquery,
    SubqueryKind,
};

use super::join::contains_subquery;
use super::planner::{Lowering, field, planned};
use super::visible::{outer_columns, visible};
use crate::aggregate::SINGLE_VALUE;
use crate::environment::Volatility;
use crate::expression::{column_name, conjuncts};

/// `bool`.
const BOOL: SqlType = SqlType::new(Oid(16));

impl Lowering<'_> {
    /// Whether a relation or anything in it calls a volatile function.
    pub(super) fn is_volatile(&self, relation: &Relation) -> bool {
        let mut volatile = false;
        relation.expressions(|expr| {
            volatile |= expr.any(&mut |part| match &part.kind {
                ExprKind::Call { function, .. } => {
                    let info = self.environment.function(*function);
                    info.is_ok_and(|info| info.volatility == Volatility::Volatile)
                }
                ExprKind::Subquery(subquery) => {
                    self.is_volatile(&self.subqueries.get(subquery.query).relation)
                }
                _ => false,
            });
        });
        relation.inputs(|input| volatile |= self.is_volatile(input));
        volatile
    }

    /// Joins a plan with the subqueries of an expression, and returns the expression with the columns
    /// of the join in their place.
    pub(super) fn without_subqueries(
        &mut self,
        plan: LogicalPlan,
        expr: &Expr,
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        if !contains_subquery(expr) {
            return Ok((plan, expr.clone()));
        }
        let (mut plan, mut expr, mut failed) = (plan, expr.clone(), None);
        self.replace(&mut plan, &mut expr, &mut failed);
        match failed {
            Some(error) => Err(error),
            None => Ok((plan, expr)),
        }
    }

    fn replace(&mut self, plan: &mut LogicalPlan, expr: &mut Expr, failed: &mut Option<SqlError>) {
        expr.children_mut(|child| self.replace(plan, child, failed));
        let ExprKind::Subquery(subquery) = &expr.kind else { return };
        if failed.is_some() {
            return;
        }
        match self.joined_subquery(std::mem::take(plan), subquery, expr.ty) {
            Ok((joined, value)) => {
                *plan = joined;
                *expr = value;
            }
            Err(error) => *failed = Some(error),
        }
    }

    /// Joins a plan with a subquery; also returns the subquery's value.
    fn joined_subquery(
        &mut self,
        plan: LogicalPlan,
        subquery: &Subquery,
        ty: SqlType,
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        let query = self.subqueries.get(subquery.query);
        if !outer_columns(&query.relation, self.subqueries).is_empty() {
            let message = "a correlated subquery in this place is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        match &subquery.kind {
            SubqueryKind::Scalar => {
                let single = self.single_value(query)?;
                let joined = self.joined(plan, single.0, JoinType::Inner, Vec::new())?;
                let value = Expr::new(ExprKind::Column(single.1), ty);
                Ok((joined, value))
            }
            SubqueryKind::Exists => {
                let inner = self.relation(&query.relation)?;
                let id = self.new_column(BOOL);
                let exists = self.count_exists(inner, id)?;
                let joined = self.joined(plan, exists, JoinType::Inner, Vec::new())?;
                Ok((joined, self.column_expr(id)))
            }
            SubqueryKind::Quantified { quantifier, operands, columns } => {
                self.quantified(plan, query, *quantifier, operands, columns)
            }
            SubqueryKind::Array => {
                Err(SqlError::unsupported("ARRAY(SELECT ...) is not supported by trunkline"))
            }
        }
    }

    /// The only value of a query, as a plan of one row.
    fn single_value(&mut self, query: &Query) -> Result<(LogicalPlan, ColumnId), SqlError> {
        let plan = self.relation(&query.relation)?;
        let [output] = &*query.output else {
            return Err(SqlError::internal("a scalar subquery has one column"));
        };
        let ty = self.columns.get(output.id).ty;
        let id = self.new_column(ty);
        let value = field(&column_name(output.id));
        let single = self.internal_call("single", &SINGLE_VALUE, value, ty)?;
        let single = single.alias(column_name(id));
        let none: [PlanExpr; 0] = [];
        let builder = LogicalPlanBuilder::from(plan).aggregate(none, [single]);
        Ok((planned(builder.and_then(LogicalPlanBuilder::build))?, id))
    }

    /// Whether a plan has rows, as a plan of one row.
    fn count_exists(&mut self, plan: LogicalPlan, id: ColumnId) -> Result<LogicalPlan, SqlError> {
        let one = lit(ScalarValue::Int64(Some(1)));
        let name = self.new_name("n");
        let count = count_udaf().call(vec![one]).alias(&name);
        let exists = field(&name).gt(lit(ScalarValue::Int64(Some(0)))).alias(column_name(id));
        let none: [PlanExpr; 0] = [];
        let builder = LogicalPlanBuilder::from(plan).limit(0, Some(1));
        planned(builder.and_then(|plan| plan.aggregate(none, [count])?.project([exists])?.build()))
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
        let unknown = ExprKind::IsNull { argument: Box::new(matches), is_row: false };
        let (plan, found) = self.marked(plan, query, &decides)?;
        let (plan, null) = self.marked(plan, query, &Expr::new(unknown, BOOL))?;
        let value = ExprKind::Case {
            operand: None,
            arms: vec![(found, boolean(decided)), (null, Expr::null(BOOL))],
            otherwise: Box::new(boolean(!decided)),
        };
        Ok((plan, Expr::new(value, BOOL)))
    }

    /// Adds a column that says whether a query has a row that meets a condition.
    fn marked(
        &mut self,
        plan: LogicalPlan,
        query: &Query,
        condition: &Expr,
    ) -> Result<(LogicalPlan, Expr), SqlError> {
        let inner_columns = visible(&query.relation);
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
        let inner_columns = visible(&relation);
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
        Ok(match relation {
            Relation::Filter { input, condition } => {
                let Some((input, mut lifted)) = self.lifted(input)? else { return Ok(None) };
                let inner = visible(&input);
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
                let inner = visible(&input);
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

fn boolean(value: bool) -> Expr {
    Expr::new(ExprKind::Constant(Some([u8::from(value)].into())), BOOL)
}
