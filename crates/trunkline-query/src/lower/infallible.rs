//! **Infallible subqueries**, which can be evaluated for rows that don't need them.
//!
//! A subquery in an operand that is not always evaluated is executed row by row, because an error in it
//! must not be noticed in rows that don't need its value. Most subqueries can't fail, so they are
//! executed once for all rows:
//!
//! ```text
//!   a > 0 OR b IN (SELECT c FROM t WHERE d = 5)      can't fail, so it becomes a join
//!   a > 0 OR b IN (SELECT 1 / c FROM t)              executed when a row needs it
//! ```

use trunkline_format::Oid;
use trunkline_sql::bound::{Comparison, Expr, ExprKind, JoinKind, Relation};

use super::planner::Lowering;

/// The comparisons of `numeric`.
const NUMERIC: [&str; 6] =
    ["numeric_eq", "numeric_ne", "numeric_lt", "numeric_le", "numeric_gt", "numeric_ge"];

impl Lowering<'_> {
    /// Whether neither the rows of a relation nor a comparison of them with the operand can fail.
    pub(super) fn cannot_fail(
        &self,
        relation: &Relation,
        (operand, comparison): &(Expr, Comparison),
        column: &Expr,
    ) -> bool {
        self.compares(comparison.function)
            && self.is_infallible(operand)
            && self.is_infallible(column)
            && self.has_rows_without_failing(relation)
    }

    fn has_rows_without_failing(&self, relation: &Relation) -> bool {
        let mut infallible = match relation {
            Relation::Unit
            | Relation::Table(_)
            | Relation::Values { .. }
            | Relation::Project { .. }
            | Relation::Filter { .. }
            | Relation::Distinct { .. } => true,
            Relation::Join { kind, lateral, .. } => *kind == JoinKind::Inner && !*lateral,
            _ => false,
        };
        relation.expressions(|expr| infallible = infallible && self.is_infallible(expr));
        relation.inputs(|input| infallible = infallible && self.has_rows_without_failing(input));
        infallible
    }

    /// Whether no part of an expression can fail.
    fn is_infallible(&self, expr: &Expr) -> bool {
        !expr.any(&mut |part| match &part.kind {
            ExprKind::Column(_)
            | ExprKind::Parameter(_)
            | ExprKind::Constant(_)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::IsNull { .. }
            | ExprKind::IsNotNull { .. }
            | ExprKind::Relabel(_)
            | ExprKind::BooleanTest { .. } => false,
            ExprKind::Call { function, .. } => !self.compares(*function),
            _ => true,
        })
    }

    /// Whether a function only compares values: it can't fail, and is null only if an argument is. PostgreSQL
    /// marks such functions as leakproof, but not those of `numeric`, which don't fail either.
    pub(super) fn compares(&self, function: Oid) -> bool {
        let Some(row) = self.environment.catalog.procedure(function) else { return false };
        let source = self.environment.catalog.kernel_name(function);
        let is_numeric = source.is_some_and(|source| NUMERIC.contains(&&*source));
        row.strict && row.result == Oid(16) && (row.leakproof || is_numeric)
    }
}
