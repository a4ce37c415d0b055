//! Subqueries in operands that are not always evaluated.
//!
//! The value of a subquery is computed before the expression around it. A guard says for which rows
//! the expression would evaluate it, because in others it might fail:
//!
//! ```text
//!   CASE WHEN a = 0 THEN 0 ELSE (SELECT 1 / a) END     guard: CASE WHEN a = 0 THEN false ELSE true END
//!   a > 0 AND (SELECT …)                               guard: (a > 0) IS NOT FALSE
//!   (a, b) < (c, (SELECT …))                           guard: (a) >= (c) AND (a) <= (c)
//! ```

use datafusion::logical_expr::LogicalPlan;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BooleanTest, Expr, ExprKind, SubqueryKind, with_stack};

use super::join::contains_subquery;
use super::planner::Lowering;
use super::subquery::{BOOL, boolean};

impl Lowering<'_> {
    /// Replaces subqueries. They are only executed in rows in which all `guards` are true.
    pub(super) fn replace(
        &mut self,
        plan: &mut LogicalPlan,
        expr: &mut Expr,
        guards: &mut Vec<Expr>,
    ) -> Result<(), SqlError> {
        if !contains_subquery(expr) {
            return Ok(());
        }
        let (depth, ty) = (guards.len(), expr.ty);
        with_stack(|| match &mut expr.kind {
            ExprKind::Case { operand, arms, otherwise } => {
                self.replace_case(plan, operand, arms, otherwise, guards)
            }
            ExprKind::And(operands) => self.replace_lazy(plan, operands, guards, |operand| {
                let (argument, test) = (Box::new(operand), BooleanTest::IsNotFalse);
                Expr::new(ExprKind::BooleanTest { argument, test }, BOOL)
            }),
            ExprKind::Or(operands) => self.replace_lazy(plan, operands, guards, |operand| {
                let (argument, test) = (Box::new(operand), BooleanTest::IsNotTrue);
                Expr::new(ExprKind::BooleanTest { argument, test }, BOOL)
            }),
            ExprKind::Coalesce(operands) => self.replace_lazy(plan, operands, guards, |operand| {
                let argument = Box::new(operand);
                Expr::new(ExprKind::IsNull { argument, is_row: false }, BOOL)
            }),
            ExprKind::RowComparison { pairs, .. } => self.replace_pairs(plan, pairs, guards),
            ExprKind::Subquery(subquery) => {
                // The other side of comparisons belongs to the subquery.
                if let SubqueryKind::Quantified { operands, .. } = &mut subquery.kind {
                    for (operand, _) in operands {
                        self.replace(plan, operand, guards)?;
                    }
                }
                let input = std::mem::take(plan);
                let (joined, value) = self.subquery_value(input, subquery, ty, guards)?;
                *plan = joined;
                *expr = value;
                Ok(())
            }
            _ => {
                let mut result = Ok(());
                expr.children_mut(|child| {
                    if result.is_ok() {
                        result = self.replace(plan, child, guards);
                    }
                });
                result
            }
        })?;
        guards.truncate(depth);
        Ok(())
    }

    /// Operands of which one is only evaluated if those before it meet a condition.
    fn replace_lazy(
        &mut self,
        plan: &mut LogicalPlan,
        operands: &mut [Expr],
        guards: &mut Vec<Expr>,
        goes_on: impl Fn(Expr) -> Expr,
    ) -> Result<(), SqlError> {
        for operand in operands {
            self.replace(plan, operand, guards)?;
            guards.push(goes_on(operand.clone()));
        }
        Ok(())
    }

    /// A comparison of rows: a pair is only evaluated if all pairs before it are equal.
    fn replace_pairs(
        &mut self,
        plan: &mut LogicalPlan,
        pairs: &mut [(Expr, Expr, Oid, Oid)],
        guards: &mut Vec<Expr>,
    ) -> Result<(), SqlError> {
        let depth = guards.len();
        let mut before = Vec::with_capacity(pairs.len());
        for pair in pairs {
            if !before.is_empty() {
                // Rows are equal if each is at least the other.
                guards.extend([false, true].map(|less| {
                    let pairs = before.clone();
                    Expr::new(ExprKind::RowComparison { less, equal: true, pairs }, BOOL)
                }));
            }
            self.replace(plan, &mut pair.0, guards)?;
            self.replace(plan, &mut pair.1, guards)?;
            guards.truncate(depth);
            before.push(pair.clone());
        }
        Ok(())
    }

    /// `CASE`: the guard of an operand is a `CASE` with the conditions before it.
    fn replace_case(
        &mut self,
        plan: &mut LogicalPlan,
        operand: &mut Option<Box<Expr>>,
        arms: &mut [(Expr, Expr)],
        otherwise: &mut Expr,
        guards: &mut Vec<Expr>,
    ) -> Result<(), SqlError> {
        if let Some(operand) = operand {
            self.replace(plan, operand, guards)?;
        }
        let depth = guards.len();
        let guard = |conditions: Vec<(Expr, Expr)>, otherwise: bool| {
            let (operand, otherwise) = (operand.clone(), Box::new(boolean(otherwise)));
            Expr::new(ExprKind::Case { operand, arms: conditions, otherwise }, BOOL)
        };
        let mut before: Vec<(Expr, Expr)> = Vec::new();
        for (condition, result) in arms {
            if !before.is_empty() {
                guards.push(guard(before.clone(), true));
            }
            self.replace(plan, condition, guards)?;
            guards.truncate(depth);
            let mut chosen = before.clone();
            chosen.push((condition.clone(), boolean(true)));
            guards.push(guard(chosen, false));
            self.replace(plan, result, guards)?;
            guards.truncate(depth);
            before.push((condition.clone(), boolean(false)));
        }
        guards.push(guard(before, true));
        self.replace(plan, otherwise, guards)?;
        guards.truncate(depth);
        Ok(())
    }
}
