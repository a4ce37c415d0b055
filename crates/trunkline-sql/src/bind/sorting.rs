//! `ORDER BY`, `DISTINCT`, `LIMIT` and `OFFSET`.
//!
//! A sort key can be the name of an output column, its number, or any expression over the columns of
//! `FROM`. In each case it becomes a target, a hidden one if it is not in the target list already.

use trunkline_format::Oid;

use super::binder::{Binder, Context, Place};
use super::expression::operator_name;
use super::level::{Level, Target};
use super::scope::Scope;
use crate::bound::{Expr, ExprKind, Query, Relation, SortKey};
use crate::catalog::oids;
use crate::error::{SqlError, SqlState};
use crate::resolve::{binary_operator, sort_operators};
use crate::syntax::{
    Constant, Expression, ExpressionKind, OperatorName, SelectStatement, SortBy, SortDirection,
};

/// A sort key that refers to a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderKey {
    /// The target's place.
    pub(super) target: usize,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

impl OrderKey {
    /// The key, without its expression.
    pub(super) fn into_key(self) -> SortKey {
        let expr = Expr::null(crate::bound::SqlType::new(oids::UNKNOWN));
        SortKey { expr, descending: self.descending, nulls_first: self.nulls_first }
    }
}

impl Binder<'_> {
    /// Binds `ORDER BY` of a `SELECT`. Adds hidden targets as needed.
    pub(super) fn order_by(
        &mut self,
        keys: &[SortBy],
        targets: &mut Vec<Target>,
        scope: &Scope<'_>,
        level: &mut Level,
    ) -> Result<Vec<OrderKey>, SqlError> {
        let mut order: Vec<OrderKey> = Vec::new();
        for key in keys {
            let target = self.target_of(&key.expression, Place::OrderBy, targets, scope, level)?;
            // As in PostgreSQL, a second key for the same target has no effect.
            if order.iter().any(|found| found.target == target) {
                continue;
            }
            if let Some(target) = targets.get_mut(target) {
                self.resolve_unknown(&mut target.expr)?;
                self.check_sortable(&target.expr, key.expression.span.start)?;
            }
            let ty = targets.get(target).map_or(oids::UNKNOWN, |target| target.expr.ty.oid);
            let (descending, nulls_first) = self.direction(key, ty)?;
            order.push(OrderKey { target, descending, nulls_first });
        }
        Ok(order)
    }

    /// Whether a key of this type sorts in descending order, and whether nulls come first.
    fn direction(&self, key: &SortBy, oid: Oid) -> Result<(bool, bool), SqlError> {
        let descending = match &key.direction {
            SortDirection::Default | SortDirection::Ascending => false,
            SortDirection::Descending => true,
            SortDirection::Using(operator) => {
                let at = operator.span.start;
                self.sorts_descending(operator, oid).map_err(|error| error.at(at))?
            }
        };
        Ok((descending, key.nulls_first.unwrap_or(descending)))
    }

    /// Whether `USING operator` sorts in descending order, which `>` does.
    fn sorts_descending(&self, operator: &OperatorName, oid: Oid) -> Result<bool, SqlError> {
        let name = operator_name(operator);
        let found = binary_operator(&self.names, name, oid, oid)?;
        let is_coercible = |wanted: &Oid| self.catalog().is_binary_coercible(oid, *wanted);
        if !found.arguments.iter().all(is_coercible) {
            let shown = self.names.type_name(oid);
            let message =
                format!("operator requires run-time type coercion: {shown} {name} {shown}");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        let own = self.catalog().type_operators(oid);
        if own.less == Some(found.operator) {
            return Ok(false);
        }
        if own.greater == Some(found.operator) {
            return Ok(true);
        }
        // Members of operator families that aren't the type's default, such as text_pattern_ops.
        if ["~<~", "~>~", "*<", "*>"].contains(&name.name) {
            let message = format!("ORDER BY USING {name} is not supported by trunkline");
            return Err(SqlError::unsupported(message));
        }
        let message = format!("operator {name} is not a valid ordering operator");
        let hint = "Ordering operators must be \"<\" or \">\" members of btree operator families.";
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).with_hint(hint))
    }

    /// Binds sort keys inside a call or a window, where numbers and output names have no meaning.
    pub(super) fn sort_keys(
        &mut self,
        keys: &[SortBy],
        context: &mut Context<'_>,
    ) -> Result<Vec<SortKey>, SqlError> {
        let mut bound: Vec<SortKey> = Vec::new();
        for key in keys {
            let mut expr = self.expression(&key.expression, context)?;
            self.resolve_unknown(&mut expr)?;
            self.check_sortable(&expr, key.expression.span.start)?;
            let (descending, nulls_first) = self.direction(key, expr.ty.oid)?;
            if !bound.iter().any(|found| self.is_same(&found.expr, &expr)) {
                bound.push(SortKey { expr, descending, nulls_first });
            }
        }
        Ok(bound)
    }

    /// The type must have an order, and we must be able to compute it.
    fn check_sortable(&self, expr: &Expr, at: u32) -> Result<(), SqlError> {
        sort_operators(&self.names, expr.ty.oid, true).map_err(|error| error.at(at))?;
        self.check_collation(expr.ty.collation, at)
    }

    /// The type must have an equality, for `DISTINCT`, `GROUP BY` and set operations.
    pub(super) fn check_comparable(&self, oid: Oid, at: u32) -> Result<(), SqlError> {
        sort_operators(&self.names, oid, false).map(|_| ()).map_err(|error| error.at(at))
    }

    /// Finds the target that a key of `ORDER BY` or `DISTINCT ON` refers to
    /// (`findTargetlistEntrySQL92`), or adds it.
    pub(super) fn target_of(
        &mut self,
        expression: &Expression,
        place: Place,
        targets: &mut Vec<Target>,
        scope: &Scope<'_>,
        level: &mut Level,
    ) -> Result<usize, SqlError> {
        if let Some(found) = named_target(expression, place, targets, scope)? {
            return Ok(found);
        }
        let mut context = Context::new(scope, place, level);
        let expr = self.expression(expression, &mut context)?;
        let found = targets.iter().position(|target| self.is_same(&target.expr, &expr));
        if let Some(found) = found {
            return Ok(found);
        }
        targets.push(Target { expr, name: "?column?".into(), is_hidden: true });
        Ok(targets.len() - 1)
    }

    /// Binds `DISTINCT ON`. Returns the targets by which rows are equal, those of `ORDER BY` first.
    pub(super) fn distinct_on(
        &mut self,
        expressions: &[Expression],
        targets: &mut Vec<Target>,
        order: &[OrderKey],
        scope: &Scope<'_>,
        level: &mut Level,
    ) -> Result<Vec<usize>, SqlError> {
        let mut on = Vec::new();
        for expression in expressions {
            let target = self.target_of(expression, Place::DistinctOn, targets, scope, level)?;
            if let Some(found) = targets.get_mut(target) {
                self.resolve_unknown(&mut found.expr)?;
                self.check_comparable(found.expr.ty.oid, expression.span.start)?;
            }
            if !on.contains(&target) {
                on.push(target);
            }
        }
        // The rows of a group must be adjacent after sorting.
        let leading = order.iter().take_while(|key| on.contains(&key.target)).count();
        let later = order.iter().skip(leading).any(|key| on.contains(&key.target));
        if later || (leading < on.len() && leading < order.len()) {
            let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
            let at = expressions.first().map_or(0, |expression| expression.span.start);
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(at));
        }
        Ok(on)
    }

    /// With `DISTINCT`, a sort key must be an output column. All columns must have an equality.
    pub(super) fn check_distinct(
        &self,
        targets: &[Target],
        keys: &[SortKey],
        statement: &SelectStatement,
    ) -> Result<(), SqlError> {
        let at = statement.order_by.first().map_or(0, |key| key.expression.span.start);
        if targets.iter().any(|target| target.is_hidden) && !keys.is_empty() {
            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(at));
        }
        for target in targets {
            let at = target.expr.location.0.unwrap_or_default();
            self.check_comparable(target.expr.ty.oid, at)?;
        }
        Ok(())
    }

    /// `ORDER BY`, `LIMIT` and `OFFSET` behind `VALUES` or a set operation. Sort keys can only be
    /// output columns.
    pub(super) fn sort_and_limit(
        &mut self,
        query: Query,
        statement: &SelectStatement,
        scope: &Scope<'_>,
    ) -> Result<Query, SqlError> {
        let mut targets: Vec<Target> = (query.output.iter())
            .map(|output| {
                let ty = self.columns.get(output.id).ty;
                let expr = Expr::new(ExprKind::Column(output.id), ty);
                Target { expr, name: output.name.clone(), is_hidden: false }
            })
            .collect();
        let (count, mut empty) = (targets.len(), Scope::within(scope));
        empty.tables = vec![self.query_table(&query, None, None)?];
        let mut keys = Vec::new();
        for key in &statement.order_by {
            let at = key.expression.span.start;
            let mut level = Level::default();
            let found =
                self.target_of(&key.expression, Place::OrderBy, &mut targets, &empty, &mut level)?;
            if found >= count {
                let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
                let detail = "Only result column names can be used, not expressions or functions.";
                let hint = "Add the expression/function to every SELECT, or move the UNION into a \
                            FROM clause.";
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                return Err(error.with_detail(detail).with_hint(hint).at(at));
            }
            let Some(target) = targets.get(found) else { continue };
            self.check_sortable(&target.expr, at)?;
            let (descending, nulls_first) = self.direction(key, target.expr.ty.oid)?;
            keys.push(SortKey { expr: target.expr.clone(), descending, nulls_first });
        }
        let relation = sorted(query.relation, &keys);
        let relation = self.limited(relation, statement, &empty, &keys)?;
        self.check_locking(statement, &empty, Some("UNION/INTERSECT/EXCEPT"))?;
        Ok(Query { relation, ..query })
    }

    /// Adds `LIMIT` and `OFFSET`.
    pub(super) fn limited(
        &mut self,
        input: Relation,
        statement: &SelectStatement,
        scope: &Scope<'_>,
        keys: &[SortKey],
    ) -> Result<Relation, SqlError> {
        let limit = self.row_count(statement.limit.as_ref(), Place::Limit, scope)?;
        let offset = self.row_count(statement.offset.as_ref(), Place::Offset, scope)?;
        if statement.with_ties && keys.is_empty() {
            let message = "WITH TIES cannot be specified without ORDER BY clause";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        // A null constant has become no limit at all.
        let is_null = |limit: &Expr| matches!(&limit.kind, ExprKind::Constant(None));
        if statement.with_ties && limit.as_ref().is_none_or(is_null) {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(SqlError::new(SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, message));
        }
        if limit.is_none() && offset.is_none() {
            return Ok(input);
        }
        let ties = statement.with_ties.then(|| keys.to_vec());
        Ok(Relation::Limit { input: Box::new(input), limit, offset, ties })
    }

    /// The number of rows of `LIMIT` or `OFFSET`: an int8 that doesn't depend on columns of the query.
    fn row_count(
        &mut self,
        expression: Option<&Expression>,
        place: Place,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>, SqlError> {
        let Some(expression) = expression else { return Ok(None) };
        if matches!(expression.kind, ExpressionKind::Constant(Constant::Null)) {
            return Ok(None);
        }
        // The columns of the query are named, so that the message says what is wrong.
        let (mut level, visible) = (Level::default(), Scope::within(scope.outer_or_self()));
        let visible = Scope { tables: scope.tables.clone(), ..visible };
        let mut context = Context::new(&visible, place, &mut level);
        let expr = self.expression(expression, &mut context)?;
        let (clause, at) = (place.clause(), expression.location);
        let expr = self.require_row_count(expr, clause, at)?;
        let mut found = false;
        let mut own = Vec::new();
        for column in visible.tables.iter().flat_map(|table| table.columns.iter()) {
            column.value.columns(&self.subqueries, &mut |id| own.push(id));
        }
        expr.columns(&self.subqueries, &mut |id| found |= own.contains(&id));
        if found {
            let message = format!("argument of {clause} must not contain variables");
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(at));
        }
        Ok(Some(expr))
    }
}

/// Sorts, if there is anything to sort by.
pub(super) fn sorted(input: Relation, keys: &[SortKey]) -> Relation {
    match keys {
        [] => input,
        keys => Relation::Sort { input: Box::new(input), keys: keys.to_vec() },
    }
}

/// The target that a name or a number stands for; `None` if it is an expression. A name that isn't an
/// output column is an expression too. For `GROUP BY`, a column of `FROM` is preferred.
pub(super) fn named_target(
    expression: &Expression,
    place: Place,
    targets: &[Target],
    scope: &Scope<'_>,
) -> Result<Option<usize>, SqlError> {
    let clause = place.clause();
    let at = expression.location;
    match &expression.kind {
        ExpressionKind::ColumnReference(reference) if !reference.star => {
            let [name] = &*reference.fields else { return Ok(None) };
            if place == Place::GroupBy && scope.has_own_column(&name.text) {
                return Ok(None);
            }
            let mut found = None;
            for (place, target) in targets.iter().enumerate() {
                if target.is_hidden || *target.name != *name.text {
                    continue;
                }
                match found {
                    None => found = Some(place),
                    Some(first) if targets.get(first).map(|t| &t.expr) == Some(&target.expr) => {}
                    Some(_) => {
                        let message = format!("{clause} \"{}\" is ambiguous", name.text);
                        return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message).at(at));
                    }
                }
            }
            Ok(found)
        }
        ExpressionKind::Constant(Constant::Integer(number)) => {
            let shown: Vec<usize> = (0..targets.len())
                .filter(|&place| targets.get(place).is_some_and(|target| !target.is_hidden))
                .collect();
            let at_number = usize::try_from(*number).ok().and_then(|n| n.checked_sub(1));
            match at_number.and_then(|n| shown.get(n)) {
                Some(&found) => Ok(Some(found)),
                None => {
                    let message = format!("{clause} position {number} is not in select list");
                    let code = SqlState::INVALID_COLUMN_REFERENCE;
                    Err(SqlError::new(code, message).at(at))
                }
            }
        }
        // PostgreSQL writes these constants as casts to bool.
        ExpressionKind::Constant(Constant::Boolean(_)) => Ok(None),
        ExpressionKind::Constant(_) => {
            let message = format!("non-integer constant in {clause}");
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at))
        }
        _ => Ok(None),
    }
}
