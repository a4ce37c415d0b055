//! Joins, and filters, whose subqueries may become joins.

use datafusion::logical_expr::{Expr as PlanExpr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{Expr, ExprKind, JoinKind, Relation, Subquery, SubqueryKind};

use super::planner::{Lowering, planned};
use super::visible::{outer_columns, visible};
use crate::expression::conjuncts;

impl Lowering<'_> {
    pub(super) fn join(
        &mut self,
        kind: JoinKind,
        left: &Relation,
        right: &Relation,
        condition: Option<&Expr>,
        lateral: bool,
    ) -> Result<LogicalPlan, SqlError> {
        if lateral && !outer_columns(right, self.subqueries).is_empty() {
            return self.lateral_join(kind, left, right, condition);
        }
        let left_columns = visible(left);
        let (left, right) = (self.relation(left)?, self.relation(right)?);
        let on = match condition {
            None => Vec::new(),
            Some(condition) => {
                let has_subquery = |part: &Expr| matches!(part.kind, ExprKind::Subquery(_));
                if condition.any(&mut { has_subquery }) {
                    let message = "a subquery in a join condition is not supported by trunkline";
                    return Err(SqlError::unsupported(message));
                }
                self.expressions().join_condition(condition, |id| left_columns.contains(&id))?
            }
        };
        let kind = match kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
        };
        self.joined(left, right, kind, on)
    }

    /// A join whose right side refers to columns of the left one.
    fn lateral_join(
        &mut self,
        kind: JoinKind,
        left: &Relation,
        right: &Relation,
        condition: Option<&Expr>,
    ) -> Result<LogicalPlan, SqlError> {
        let condition = condition.filter(|condition| !is_true(condition));
        let keeps_empty = kind == JoinKind::Left;
        let plan = self.relation(left)?;
        let is_possible = kind == JoinKind::Inner || (keeps_empty && condition.is_none());
        let plan = match is_possible {
            true => self.lateral(plan, right, keeps_empty)?,
            false => None,
        };
        match (plan, condition) {
            (None, _) => Err(SqlError::unsupported("LATERAL is not supported by trunkline")),
            (Some(plan), None) => Ok(plan),
            (Some(plan), Some(condition)) => {
                let (plan, condition) = self.without_subqueries(plan, condition)?;
                self.filtered(plan, &condition)
            }
        }
    }

    pub(super) fn joined(
        &self,
        left: LogicalPlan,
        right: LogicalPlan,
        kind: JoinType,
        on: Vec<PlanExpr>,
    ) -> Result<LogicalPlan, SqlError> {
        let builder = LogicalPlanBuilder::from(left);
        let joined = match on.is_empty() {
            true if kind == JoinType::Inner => builder.cross_join(right),
            true => builder.join_on(right, kind, [lit(true)]),
            false => builder.join_on(right, kind, on),
        };
        planned(joined.and_then(LogicalPlanBuilder::build))
    }

    /// A filter. `EXISTS` and `IN` that must be true become semi-joins.
    pub(super) fn filter(
        &mut self,
        input: &Relation,
        condition: &Expr,
    ) -> Result<LogicalPlan, SqlError> {
        let mut plan = self.relation(input)?;
        let columns: Vec<_> = plan.schema().columns().into_iter().map(PlanExpr::Column).collect();
        let mut plain = Vec::new();
        let mut late = Vec::new();
        for conjunct in conjuncts(condition) {
            match contains_subquery(conjunct) {
                false => plain.push(conjunct.clone()),
                true => late.push(conjunct),
            }
        }
        if !plain.is_empty() {
            plan = self.filtered(plan, &Expr::new(ExprKind::And(plain), condition.ty))?;
        }
        let mut tests = Vec::new();
        for conjunct in late {
            if let Some((subquery, negated)) = semi_join(conjunct)
                && let Some(joined) = self.semi_join(&plan, subquery, negated)?
            {
                plan = joined;
                continue;
            }
            let (next, test) = self.without_subqueries(plan, conjunct)?;
            plan = next;
            tests.push(test);
        }
        if tests.is_empty() {
            return Ok(plan);
        }
        let plan = self.filtered(plan, &Expr::new(ExprKind::And(tests), condition.ty))?;
        planned(LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build))
    }
}

/// Whether a condition is the constant `true`.
fn is_true(condition: &Expr) -> bool {
    matches!(&condition.kind, ExprKind::Constant(Some(value)) if **value == [1])
}

/// Whether an expression contains a subquery.
pub(super) fn contains_subquery(expr: &Expr) -> bool {
    expr.any(&mut |part| matches!(part.kind, ExprKind::Subquery(_)))
}

/// A condition that is `EXISTS`, `NOT EXISTS` or `= ANY`: the subquery, and whether rows with a match
/// are dropped. `NOT IN` isn't one, because a null among the values makes it null.
fn semi_join(conjunct: &Expr) -> Option<(&Subquery, bool)> {
    match &conjunct.kind {
        ExprKind::Subquery(subquery) => match subquery.kind {
            SubqueryKind::Exists | SubqueryKind::Quantified { .. } => Some((subquery, false)),
            _ => None,
        },
        ExprKind::Not(operand) => match &operand.kind {
            ExprKind::Subquery(subquery) if matches!(subquery.kind, SubqueryKind::Exists) => {
                Some((subquery, true))
            }
            _ => None,
        },
        _ => None,
    }
}
