//! Joins, and filters, whose subqueries may become joins.

use std::sync::Arc;

use datafusion::logical_expr::{Expr as PlanExpr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{ColumnId, Expr, ExprKind, JoinKind, Relation, Subquery, SubqueryKind};

use super::planner::{Lowering, planned};
use super::visible::outer_columns;
use crate::expression::conjuncts;
use crate::operator::Barrier;

impl Lowering<'_> {
    pub(super) fn join(
        &mut self,
        kind: JoinKind,
        left: &Relation,
        right: &Relation,
        condition: Option<&Expr>,
        lateral: bool,
    ) -> Result<LogicalPlan, SqlError> {
        let left_columns = left.visible();
        let uses_left = |id: &ColumnId| left_columns.contains(id);
        if lateral && outer_columns(right, self.subqueries).iter().any(uses_left) {
            return self.lateral_join(kind, left, right, condition);
        }
        if let Some(condition) = condition
            && contains_subquery(condition)
        {
            return self.join_with_subquery(kind, left, right, condition);
        }
        let (left, right) = (self.join_side(left)?, self.join_side(right)?);
        let on = match condition {
            None => Vec::new(),
            Some(condition) => self.expressions().join_condition(condition, |id| uses_left(&id))?,
        };
        let kind = match kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
        };
        self.joined(left, right, kind, on)
    }

    /// A side of a join. What has one row whatever its input is has a barrier above it.
    fn join_side(&mut self, relation: &Relation) -> Result<LogicalPlan, SqlError> {
        let plan = self.relation(relation)?;
        match has_one_row(relation) {
            true => self.operator(plan, Arc::new(Barrier)),
            false => Ok(plan),
        }
    }

    /// A join whose right side uses columns of the left one. The condition becomes part of that side.
    fn lateral_join(
        &mut self,
        kind: JoinKind,
        left: &Relation,
        right: &Relation,
        condition: Option<&Expr>,
    ) -> Result<LogicalPlan, SqlError> {
        let outer = match kind {
            JoinKind::Inner => false,
            JoinKind::Left => true,
            JoinKind::Right | JoinKind::Full => {
                return Err(SqlError::internal("a lateral join of this kind"));
            }
        };
        let plan = self.relation(left)?;
        let condition = condition.filter(|condition| !is_true(condition));
        // Functions, and what only computes columns of their rows, need no subplan.
        if kind == JoinKind::Inner || condition.is_none() {
            match (self.lateral(plan.clone(), right, outer)?, condition) {
                (None, _) => {}
                (Some(plan), None) => return Ok(plan),
                (Some(plan), Some(condition)) => {
                    let (plan, condition) = self.without_subqueries(plan, condition)?;
                    return self.filtered(plan, &condition);
                }
            }
        }
        let filtered;
        let inner = match condition {
            None => right,
            Some(condition) => {
                let (input, condition) = (Box::new(right.clone()), condition.clone());
                filtered = Relation::Filter { input, condition };
                &filtered
            }
        };
        self.joined_rows(plan, inner, &right.visible(), outer)
    }

    /// A join whose condition contains a subquery, which may use columns of both sides.
    fn join_with_subquery(
        &mut self,
        kind: JoinKind,
        left: &Relation,
        right: &Relation,
        condition: &Expr,
    ) -> Result<LogicalPlan, SqlError> {
        match kind {
            JoinKind::Inner => {
                let of = |subquery: bool| {
                    let parts = conjuncts(condition).into_iter();
                    let parts = parts.filter(move |part| contains_subquery(part) == subquery);
                    let parts: Vec<Expr> = parts.cloned().collect();
                    (!parts.is_empty()).then(|| Expr::new(ExprKind::And(parts), condition.ty))
                };
                let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
                let (condition, late) = (of(false), of(true));
                let join = Relation::Join { kind, left, right, condition, lateral: false };
                match late {
                    None => self.relation(&join),
                    Some(late) => self.filter(&join, &late),
                }
            }
            JoinKind::Left => self.lateral_join(kind, left, right, Some(condition)),
            JoinKind::Right => self.lateral_join(JoinKind::Left, right, left, Some(condition)),
            JoinKind::Full => Err(SqlError::unsupported(
                "a subquery in the condition of a full join is not supported by trunkline",
            )),
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
        // Without groups, an aggregate has one row whatever its input is, so no part of HAVING may be
        // evaluated before. A limit prevents that.
        if matches!(input, Relation::Aggregate { groups, sets: None, .. } if groups.is_empty()) {
            let builder = LogicalPlanBuilder::from(plan).limit(0, Some(1));
            plan = planned(builder.and_then(LogicalPlanBuilder::build))?;
        }
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
        let mut has_added = false;
        for conjunct in late {
            if let Some((subquery, negated)) = semi_join(conjunct)
                && let Some(joined) = self.semi_join(&plan, subquery, negated)?
            {
                plan = joined;
                continue;
            }
            // Rows that fail one condition don't execute the subqueries of the next.
            let (next, test) = self.without_subqueries(plan, conjunct)?;
            plan = self.filtered(next, &test)?;
            has_added = true;
        }
        if !has_added {
            return Ok(plan);
        }
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

/// Whether a relation is made of the row of an aggregate without groups.
fn has_one_row(relation: &Relation) -> bool {
    match relation {
        Relation::Aggregate { groups, sets: None, .. } => groups.is_empty(),
        Relation::Project { input, .. }
        | Relation::Filter { input, .. }
        | Relation::Sort { input, .. }
        | Relation::Distinct { input, .. }
        | Relation::Limit { input, .. }
        | Relation::Window { input, .. }
        | Relation::With { input, .. } => has_one_row(input),
        _ => false,
    }
}
