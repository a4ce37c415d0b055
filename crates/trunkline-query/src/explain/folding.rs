//! Constant parts of expressions, which PostgreSQL's planner computes before it makes a plan.
//!
//! ```text
//!   id = ANY (ARRAY[1, 2])   →   id = ANY ('{1,2}'::integer[])
//! ```
//!
//! Our plans compute them when they are executed, with the same result.

use trunkline_sql::bound::{Expr, ExprKind};
use trunkline_sql::values::PayloadReader;

use crate::environment::{Environment, Volatility};
use crate::expression::{Frame, Program};

/// The expression with its constant parts computed.
pub(super) fn folded(environment: &Environment, expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    fold(environment, &mut expr);
    expr
}

fn fold(environment: &Environment, expr: &mut Expr) {
    if matches!(expr.kind, ExprKind::Constant(_)) {
        return;
    }
    match value(environment, expr) {
        Some(kind) => expr.kind = kind,
        None => expr.children_mut(|child| fold(environment, child)),
    }
}

/// The value of a constant expression; `None` if it is not one, or can't be computed.
fn value(environment: &Environment, expr: &Expr) -> Option<ExprKind> {
    let is_open = |part: &Expr| {
        matches!(
            part.kind,
            ExprKind::Column(_)
                | ExprKind::CaseOperand
                | ExprKind::ArrayElement
                | ExprKind::Subquery(_)
                | ExprKind::Row { .. }
                | ExprKind::Collate(_)
        )
    };
    if expr.any(&mut |part| is_open(part)) {
        return None;
    }
    let program = Program::compile(environment, expr).ok()?;
    if program.volatility() != Volatility::Immutable {
        return None;
    }
    let array = program.evaluate(&Frame::new(Vec::new(), 1, &environment.settings)).ok()?;
    let carrier = environment.carrier(expr.ty.oid).ok()?;
    let mut reader = PayloadReader::new(carrier, &array).ok()?;
    Some(ExprKind::Constant(reader.get(0).map(Box::from)))
}
