//! What can be evaluated for rows that don't need it.
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

/// Types whose comparisons don't fail, as the names of their functions begin.
const TYPES: [&str; 22] = [
    "bool",
    "char",
    "name",
    "text",
    "oid",
    "int2",
    "int4",
    "int8",
    "int24",
    "int42",
    "int28",
    "int82",
    "int48",
    "int84",
    "float4",
    "float8",
    "numeric",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
];

impl Lowering<'_> {
    /// Whether neither the rows of a relation nor comparisons of them with these operands can fail.
    pub(super) fn cannot_fail(
        &self,
        relation: &Relation,
        operands: &[(Expr, Comparison)],
        columns: &[Expr],
    ) -> bool {
        operands.iter().all(|(operand, comparison)| {
            self.is_infallible(operand) && self.compares(comparison.function)
        }) && columns.iter().all(|column| self.is_infallible(column))
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
            | ExprKind::Constant(_)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::IsNull { .. }
            | ExprKind::BooleanTest { .. } => false,
            ExprKind::Call { function, .. } => !self.compares(*function),
            _ => true,
        })
    }

    /// Whether a function only compares values.
    fn compares(&self, function: Oid) -> bool {
        let Ok(info) = self.environment.function(function) else { return false };
        let name = info.source.as_str();
        ["eq", "ne", "lt", "le", "gt", "ge"].iter().any(|operator| {
            let ty = name.strip_suffix(operator).map(|ty| ty.strip_suffix('_').unwrap_or(ty));
            ty.is_some_and(|ty| TYPES.contains(&ty))
        })
    }
}
