//! Walks over expressions and relations.
//!
//! An expression can be as deep as the statement that it comes from, so the walks recurse on a stack
//! that grows.

use super::column::ColumnId;
use super::expression::{Expr, ExprKind, SortKey, SubqueryKind};
use super::query::Subqueries;
use super::relation::{Aggregate, FrameBound, Relation, Window};
use super::stack::with_stack;

/// Lists the direct children of an expression; `$($mut)?` selects shared or unique references.
macro_rules! children {
    ($expr:expr, $visit:ident, $iter:ident $(, $mut:tt)?) => {
        match &$($mut)? $expr.kind {
            ExprKind::Column(_)
            | ExprKind::Constant(_)
            | ExprKind::Parameter(_)
            | ExprKind::CaseOperand
            | ExprKind::ArrayElement => {}
            ExprKind::Call { arguments, .. }
            | ExprKind::And(arguments)
            | ExprKind::Or(arguments)
            | ExprKind::Coalesce(arguments)
            | ExprKind::Extreme { arguments, .. }
            | ExprKind::Array { elements: arguments, .. }
            | ExprKind::Row { fields: arguments, .. } => arguments.$iter().for_each($visit),
            ExprKind::ArrayComparison { left, array: right, .. }
            | ExprKind::Distinct { left, right, .. }
            | ExprKind::NullIf { left, right, .. } => {
                $visit(left);
                $visit(right);
            }
            ExprKind::Not(argument)
            | ExprKind::IsNull { argument, .. }
            | ExprKind::IsNotNull { argument, .. }
            | ExprKind::BooleanTest { argument, .. }
            | ExprKind::Relabel(argument)
            | ExprKind::Collate(argument)
            | ExprKind::ViaText(argument)
            | ExprKind::Field { row: argument, .. } => $visit(argument),
            ExprKind::Case { operand, arms, otherwise } => {
                if let Some(operand) = operand {
                    $visit(operand);
                }
                for (condition, result) in arms {
                    $visit(condition);
                    $visit(result);
                }
                $visit(otherwise);
            }
            ExprKind::RowComparison { pairs, .. } => {
                for (left, right, _, _) in pairs {
                    $visit(left);
                    $visit(right);
                }
            }
            ExprKind::ArrayCast { argument, element } => {
                $visit(argument);
                $visit(element);
            }
            ExprKind::Subscript { array, element, slice } => {
                $visit(array);
                element.$iter().for_each(&mut $visit);
                for (lower, upper) in slice {
                    lower.$iter().for_each(&mut $visit);
                    upper.$iter().for_each(&mut $visit);
                }
            }
            ExprKind::Subquery(subquery) => match &$($mut)? subquery.kind {
                SubqueryKind::Scalar | SubqueryKind::Exists | SubqueryKind::Array => {}
                SubqueryKind::Quantified { operands, columns, .. } => {
                    for (operand, _) in operands {
                        $visit(operand);
                    }
                    columns.$iter().for_each($visit);
                }
            },
        }
    };
}

impl Expr {
    /// Calls `visit` with each direct child. The query of a subquery is not a child.
    pub fn children(&self, mut visit: impl FnMut(&Self)) {
        children!(self, visit, iter);
    }

    /// Calls `visit` with each direct child, which it may change.
    pub fn children_mut(&mut self, mut visit: impl FnMut(&mut Self)) {
        children!(self, visit, iter_mut, mut);
    }

    /// Whether `test` is true for this expression or any expression in it, not counting those in
    /// subqueries.
    pub fn any(&self, test: &mut dyn FnMut(&Self) -> bool) -> bool {
        with_stack(|| {
            if test(self) {
                return true;
            }
            let mut found = false;
            self.children(|child| found = found || child.any(test));
            found
        })
    }

    /// Calls `visit` with each column that this expression uses, also inside its subqueries.
    pub fn columns(&self, subqueries: &Subqueries, visit: &mut dyn FnMut(ColumnId)) {
        with_stack(|| {
            match &self.kind {
                ExprKind::Column(id) => visit(*id),
                ExprKind::Subquery(subquery) => {
                    subqueries.get(subquery.query).relation.used(subqueries, visit);
                }
                _ => {}
            }
            self.children(|child| child.columns(subqueries, visit));
        });
    }
}

/// Lists the expressions that a relation itself contains.
macro_rules! expressions {
    ($relation:expr, $visit:ident, $iter:ident, $sort:ident, $aggregate:ident, $window:ident
     $(, $mut:tt)?) => {
        match $relation {
            Relation::Unit
            | Relation::Table(_)
            | Relation::With { .. }
            | Relation::CteScan { .. }
            | Relation::SetOperation { .. }
            | Relation::Recursive { .. } => {}
            Relation::Values { rows, .. } => rows.$iter().flatten().for_each($visit),
            Relation::Functions { functions, .. } | Relation::ProjectSet { functions, .. } => {
                functions.$iter().for_each(|source| $visit(&$($mut)? source.call));
            }
            Relation::Project { columns, .. } => {
                columns.$iter().for_each(|(_, value)| $visit(value));
            }
            Relation::Filter { condition, .. } => $visit(condition),
            Relation::Join { condition, .. } => condition.$iter().for_each($visit),
            Relation::Aggregate { groups, aggregates, .. } => {
                groups.$iter().for_each(|(_, value)| $visit(value));
                aggregates.$iter().for_each(|(_, call)| $aggregate(call, &mut $visit));
            }
            Relation::Window { window, functions, .. } => {
                $window(window, &mut $visit);
                functions.$iter().for_each(|(_, call)| $aggregate(call, &mut $visit));
            }
            Relation::Distinct { on, .. } => on.$iter().flatten().for_each($visit),
            Relation::Sort { keys, .. } => $sort(keys, &mut $visit),
            Relation::Limit { limit, offset, ties, .. } => {
                limit.$iter().for_each(&mut $visit);
                offset.$iter().for_each(&mut $visit);
                if let Some(keys) = ties {
                    $sort(keys, &mut $visit);
                }
            }
        }
    };
}

/// Lists the direct inputs of a relation.
macro_rules! inputs {
    ($relation:expr, $visit:ident $(, $mut:tt)?) => {
        match $relation {
            Relation::Unit
            | Relation::Table(_)
            | Relation::Values { .. }
            | Relation::Functions { .. }
            | Relation::CteScan { .. } => {}
            Relation::ProjectSet { input, .. }
            | Relation::Project { input, .. }
            | Relation::Filter { input, .. }
            | Relation::Aggregate { input, .. }
            | Relation::Window { input, .. }
            | Relation::Distinct { input, .. }
            | Relation::Sort { input, .. }
            | Relation::Limit { input, .. } => $visit(input),
            Relation::Join { left, right, .. } => {
                $visit(left);
                $visit(right);
            }
            Relation::SetOperation { left, right, .. }
            | Relation::Recursive { left, right, .. } => {
                $visit(&$($mut)? left.0);
                $visit(&$($mut)? right.0);
            }
            Relation::With { ctes, input } => {
                for cte in ctes {
                    $visit(&$($mut)? cte.relation);
                }
                $visit(input);
            }
        }
    };
}

impl Relation {
    /// Calls `visit` with each expression of this relation, not of its inputs.
    pub fn expressions(&self, mut visit: impl FnMut(&Expr)) {
        expressions!(self, visit, iter, sort_keys, aggregate, window);
    }

    /// Calls `visit` with each expression of this relation, not of its inputs.
    pub fn expressions_mut(&mut self, mut visit: impl FnMut(&mut Expr)) {
        expressions!(self, visit, iter_mut, sort_keys_mut, aggregate_mut, window_mut, mut);
    }

    /// Calls `visit` with each direct input.
    pub fn inputs(&self, mut visit: impl FnMut(&Self)) {
        inputs!(self, visit);
    }

    /// Calls `visit` with each direct input.
    pub fn inputs_mut(&mut self, mut visit: impl FnMut(&mut Self)) {
        inputs!(self, visit, mut);
    }

    /// Calls `visit` with each column that an expression in this tree uses, also inside subqueries.
    pub fn used(&self, subqueries: &Subqueries, visit: &mut dyn FnMut(ColumnId)) {
        with_stack(|| {
            self.expressions(|expr| expr.columns(subqueries, visit));
            self.inputs(|input| input.used(subqueries, visit));
        });
    }
}

fn sort_keys(keys: &[SortKey], visit: &mut impl FnMut(&Expr)) {
    keys.iter().for_each(|key| visit(&key.expr));
}

fn sort_keys_mut(keys: &mut [SortKey], visit: &mut impl FnMut(&mut Expr)) {
    keys.iter_mut().for_each(|key| visit(&mut key.expr));
}

fn aggregate(call: &Aggregate, visit: &mut impl FnMut(&Expr)) {
    call.arguments.iter().for_each(&mut *visit);
    call.direct.iter().for_each(&mut *visit);
    sort_keys(&call.order_by, visit);
    call.filter.iter().for_each(visit);
}

fn aggregate_mut(call: &mut Aggregate, visit: &mut impl FnMut(&mut Expr)) {
    call.arguments.iter_mut().for_each(&mut *visit);
    call.direct.iter_mut().for_each(&mut *visit);
    sort_keys_mut(&mut call.order_by, visit);
    call.filter.iter_mut().for_each(visit);
}

impl Aggregate {
    /// Calls `visit` with each expression of the call.
    pub fn expressions(&self, mut visit: impl FnMut(&Expr)) {
        aggregate(self, &mut visit);
    }

    /// Calls `visit` with each expression of the call.
    pub fn expressions_mut(&mut self, mut visit: impl FnMut(&mut Expr)) {
        aggregate_mut(self, &mut visit);
    }
}

fn bound(bound: &FrameBound) -> Option<&Expr> {
    match bound {
        FrameBound::Preceding(distance) | FrameBound::Following(distance) => Some(distance),
        _ => None,
    }
}

fn bound_mut(bound: &mut FrameBound) -> Option<&mut Expr> {
    match bound {
        FrameBound::Preceding(distance) | FrameBound::Following(distance) => Some(distance),
        _ => None,
    }
}

fn window(window: &Window, visit: &mut impl FnMut(&Expr)) {
    window.partition_by.iter().for_each(&mut *visit);
    sort_keys(&window.order_by, visit);
    [&window.frame.start, &window.frame.end].into_iter().filter_map(bound).for_each(visit);
}

fn window_mut(window: &mut Window, visit: &mut impl FnMut(&mut Expr)) {
    window.partition_by.iter_mut().for_each(&mut *visit);
    sort_keys_mut(&mut window.order_by, visit);
    let bounds = [&mut window.frame.start, &mut window.frame.end];
    bounds.into_iter().filter_map(bound_mut).for_each(visit);
}

impl Window {
    /// Calls `visit` with each expression of the window.
    pub fn expressions_mut(&mut self, mut visit: impl FnMut(&mut Expr)) {
        window_mut(self, &mut visit);
    }
}
