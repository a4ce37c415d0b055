//! Which columns an expression uses, and the parts of a condition.

use std::collections::BTreeSet;

use trunkline_sql::bound::{ColumnId, Expr, ExprKind};

/// The columns that an expression uses, without those that its subqueries use.
pub(crate) fn columns_of(expr: &Expr) -> BTreeSet<ColumnId> {
    let mut found = BTreeSet::new();
    expr.any(&mut |part| {
        if let ExprKind::Column(id) = part.kind {
            found.insert(id);
        }
        false
    });
    found
}

/// The conditions that must all be true.
pub(crate) fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match &condition.kind {
        ExprKind::And(operands) => operands.iter().flat_map(conjuncts).collect(),
        _ => vec![condition],
    }
}
