//! `LIMIT`, `OFFSET` and `FETCH FIRST`, and common table expressions.

use std::sync::Arc;

use arrow_schema::SortOptions;
use datafusion::logical_expr::{Expr as PlanExpr, Extension, LogicalPlan, LogicalPlanBuilder};
use trunkline_sql::bound::{Cte, Expr, ExprKind, JoinKind, Relation, SortKey};
use trunkline_sql::{SqlError, SqlState};

use super::join::contains_subquery;
use super::planner::{Lowering, planned, with_columns};
use super::visible::outer_columns;
use crate::expression::KeyUse;
use crate::materialized::MaterializedNode;
use crate::operator::{LimitBy, LimitWithTies};

impl Lowering<'_> {
    pub(super) fn limit(
        &mut self,
        input: &Relation,
        limit: Option<&Expr>,
        offset: Option<&Expr>,
        ties: Option<&[SortKey]>,
    ) -> Result<LogicalPlan, SqlError> {
        let is_known = |expr: &Expr| {
            let mut has_column = contains_subquery(expr);
            expr.columns(self.subqueries, &mut |_| has_column = true);
            !has_column
        };
        if ties.is_none() && !(limit.is_none_or(is_known) && offset.is_none_or(is_known)) {
            return self.limit_by(input, limit, offset);
        }
        let count = |expr: Option<&Expr>, code: SqlState, what: &str| {
            let value = match expr {
                None => None,
                Some(expr) => self.constant_int8(expr)?,
            };
            let negative = |_| SqlError::new(code, format!("{what} must not be negative"));
            value.map(|value| usize::try_from(value).map_err(negative)).transpose()
        };
        let skip = count(offset, SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET")?;
        let fetch = count(limit, SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT")?;
        let skip = skip.unwrap_or_default();
        if let (Some(keys), Some(fetch)) = (ties, fetch) {
            return self.limit_with_ties(input, keys, fetch, skip);
        }
        let plan = self.relation(input)?;
        let builder = LogicalPlanBuilder::from(plan).limit(skip, fetch);
        planned(builder.and_then(LogicalPlanBuilder::build))
    }

    /// A limit that is known only when the query is executed. The operator sorts its input itself.
    fn limit_by(
        &mut self,
        input: &Relation,
        limit: Option<&Expr>,
        offset: Option<&Expr>,
    ) -> Result<LogicalPlan, SqlError> {
        let (unsorted, keys) = match input {
            Relation::Sort { input, keys } => (&**input, keys.as_slice()),
            other => (other, &[][..]),
        };
        let mut plan = self.relation(unsorted)?;
        let columns = plan.schema().columns().into_iter().map(PlanExpr::Column);
        let columns: Vec<PlanExpr> = columns.collect();
        let (mut added, mut order_by) = (Vec::new(), Vec::new());
        for key in keys {
            let name = self.new_name("o");
            let (next, expr) = self.without_subqueries(plan, &key.expr)?;
            plan = next;
            added.push((name.clone(), self.expressions().key(&expr, KeyUse::Order)?));
            let (descending, nulls_first) = (key.descending, key.nulls_first);
            order_by.push((name, SortOptions { descending, nulls_first }));
        }
        let mut numbers = [None, None];
        for (expr, number) in [offset, limit].into_iter().zip(&mut numbers) {
            let Some(expr) = expr else { continue };
            let name = self.new_name("l");
            let (next, expr) = self.without_subqueries(plan, expr)?;
            plan = next;
            added.push((name.clone(), self.expressions().value(&expr)?));
            *number = Some(name);
        }
        let [offset, limit] = numbers;
        let operator = LimitBy { order_by, offset, limit };
        let plan = self.operator(with_columns(plan, added)?, Arc::new(operator))?;
        planned(LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build))
    }

    /// `FETCH FIRST … WITH TIES`. The operator sorts its input itself.
    fn limit_with_ties(
        &mut self,
        input: &Relation,
        keys: &[SortKey],
        limit: usize,
        offset: usize,
    ) -> Result<LogicalPlan, SqlError> {
        let unsorted = match input {
            Relation::Sort { input, keys: same } if same == keys => input,
            other => other,
        };
        let plan = self.relation(unsorted)?;
        let columns = plan.schema().columns().into_iter().map(PlanExpr::Column);
        let columns: Vec<PlanExpr> = columns.collect();
        let (mut added, mut order_by) = (Vec::new(), Vec::new());
        for key in keys {
            let name = self.new_name("o");
            added.push((name.clone(), self.expressions().key(&key.expr, KeyUse::Order)?));
            let (descending, nulls_first) = (key.descending, key.nulls_first);
            order_by.push((name, SortOptions { descending, nulls_first }));
        }
        let operator = LimitWithTies { order_by, offset, limit };
        let plan = self.operator(with_columns(plan, added)?, Arc::new(operator))?;
        planned(LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build))
    }

    /// Common table expressions are inlined, which changes nothing unless they are volatile. One that
    /// is must be evaluated only once, so its rows are kept.
    pub(super) fn with(&mut self, ctes: &[Cte], input: &Relation) -> Result<LogicalPlan, SqlError> {
        for cte in ctes {
            let mut is_shared = false;
            if self.is_volatile(&cte.relation) {
                let others = ctes.iter().any(|other| self.references(&other.relation, cte) > 0);
                is_shared = others || self.references(input, cte) > 1;
                // In a subplan, it would have to be evaluated again for each outer row.
                if is_shared && (self.depth > 0 || !self.recursive.is_empty()) {
                    let message = "WITH of a query with volatile functions that is used more than \
                                   once is not supported by trunkline";
                    return Err(SqlError::unsupported(message));
                }
            }
            if self.refers_to_recursion(&cte.relation) {
                self.recursive.push(cte.number);
            }
            let mut plan = self.relation(&cte.relation)?;
            if is_shared {
                let node = Arc::new(MaterializedNode::new(cte.number, plan));
                plan = LogicalPlan::Extension(Extension { node });
            }
            self.ctes.insert(cte.number, (plan, cte.columns.clone()));
        }
        let plan = self.relation(input)?;
        ctes.iter().for_each(|cte| {
            self.ctes.remove(&cte.number);
            self.recursive.retain(|number| *number != cte.number);
        });
        Ok(plan)
    }

    /// How often a relation may evaluate a common table expression: 2 for more than once.
    fn references(&self, relation: &Relation, cte: &Cte) -> usize {
        let mut found = match relation {
            Relation::CteScan { cte: number, .. } => usize::from(*number == cte.number),
            Relation::With { ctes, .. } => {
                let inside = ctes.iter().map(|inner| self.references(&inner.relation, cte));
                2 * inside.sum::<usize>()
            }
            // One side may be a subplan, which is executed for each row of the other.
            Relation::Join { kind, left, right, condition, .. } => {
                let has_subquery = condition.as_ref().is_some_and(contains_subquery);
                let outer = outer_columns(right, self.subqueries);
                match kind {
                    JoinKind::Right if has_subquery => self.references(left, cte),
                    JoinKind::Left if has_subquery => self.references(right, cte),
                    _ if left.visible().iter().any(|id| outer.contains(id)) => {
                        self.references(right, cte)
                    }
                    _ => 0,
                }
            }
            _ => 0,
        };
        relation.expressions(|expr| {
            expr.any(&mut |part| {
                if let ExprKind::Subquery(subquery) = &part.kind {
                    let query = self.subqueries.get(subquery.query);
                    found += 2 * self.references(&query.relation, cte);
                }
                false
            });
        });
        relation.inputs(|input| found += self.references(input, cte));
        found.min(2)
    }
}
