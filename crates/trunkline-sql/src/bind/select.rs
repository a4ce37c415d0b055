//! Queries: `SELECT` with all of its clauses.
//!
//! The clauses become a chain of relations in the order in which they are computed:
//!
//! ```text
//!   FROM ─▶ WHERE ─▶ GROUP BY ─▶ HAVING ─▶ windows ─▶ set-returning functions
//!        ─▶ target list ─▶ DISTINCT ─▶ ORDER BY ─▶ LIMIT
//! ```

use super::binder::{Binder, Context, Place};
use super::level::{Level, Target};
use super::output_name::output_name;
use super::scope::{Scope, ScopeTable};
use super::sorting::sorted;
use crate::bound::{ColumnId, Expr, ExprKind, OutputColumn, Query, Relation, SortKey, with_stack};
use crate::catalog::oids;
use crate::error::{SqlError, SqlState};
use crate::syntax::{
    DistinctClause, Expression, ExpressionKind, IndirectionStep, LockStrength, SelectBody,
    SelectCore, SelectStatement, TargetEntry,
};

/// `MaxTupleAttributeNumber`: the number of columns that a target list may have.
const TARGETS_MAX: usize = 1664;

/// How many queries may be inside each other. When they're executed, each of them polls the next one,
/// which takes stack.
const QUERIES_MAX: usize = 200;

impl Binder<'_> {
    /// Binds a query. With `resolve_unknown`, output columns that are still of type `unknown` become
    /// text; the sides of a set operation keep them until the common type is known.
    ///
    /// # Errors
    /// What is wrong with the query, or what of it we don't support.
    pub(super) fn query(
        &mut self,
        statement: &SelectStatement,
        outer: &Scope<'_>,
        resolve_unknown: bool,
    ) -> Result<Query, SqlError> {
        // A chain of set operations nests as well, but isn't executed in a nested way.
        let is_nested = !matches!(statement.body, SelectBody::SetOperation { .. });
        self.query_depth += usize::from(is_nested);
        if self.query_depth > QUERIES_MAX {
            let detail = format!("At most {QUERIES_MAX} queries may be inside each other.");
            let code = SqlState::STATEMENT_TOO_COMPLEX;
            return Err(SqlError::new(code, "stack depth limit exceeded").with_detail(detail));
        }
        self.queries += 1;
        let around = std::mem::replace(&mut self.query_number, self.queries);
        let query = with_stack(|| {
            let mut scope = Scope::within(outer);
            let mut ctes = Vec::new();
            if let Some(with) = &statement.with {
                self.with_clause(with, &mut scope, &mut ctes)?;
            }
            let mut query = match &statement.body {
                SelectBody::Select(core) => {
                    self.select(core, statement, &scope, resolve_unknown)?
                }
                SelectBody::Values(rows) => {
                    let query = self.values(rows, &scope)?;
                    self.sort_and_limit(query, statement, &scope)?
                }
                SelectBody::SetOperation { operation, all, left, right } => {
                    let query = self.set_operation(*operation, *all, (left, right), &scope)?;
                    self.sort_and_limit(query, statement, &scope)?
                }
            };
            if !ctes.is_empty() {
                let input = Box::new(query.relation);
                query.relation = Relation::With { ctes, input };
            }
            Ok(query)
        });
        self.query_number = around;
        self.query_depth -= usize::from(is_nested);
        query
    }

    /// Binds one `SELECT`.
    fn select(
        &mut self,
        core: &SelectCore,
        statement: &SelectStatement,
        outer: &Scope<'_>,
        resolve_unknown: bool,
    ) -> Result<Query, SqlError> {
        let (mut relation, scope) = self.bind_from(&core.from, outer)?;
        let mut level = Level::default();
        self.window_clause(&core.windows, &scope, &mut level)?;
        let mut targets = self.targets(&core.targets, &scope, &mut level)?;
        if targets.len() > TARGETS_MAX {
            let message = format!("target lists can have at most {TARGETS_MAX} entries");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        if let Some(condition) = &core.where_clause {
            let mut context = Context::new(&scope, Place::Where, &mut level);
            let condition = self.condition(condition, &mut context)?;
            relation = Relation::Filter { input: Box::new(relation), condition };
        }
        let having = core.having.as_ref().map(|having| {
            self.condition(having, &mut Context::new(&scope, Place::Having, &mut level))
        });
        let having = having.transpose()?;
        if resolve_unknown {
            for target in &mut targets {
                self.resolve_unknown(&mut target.expr)?;
            }
        }
        let order = self.order_by(&statement.order_by, &mut targets, &scope, &mut level)?;
        let on = match &core.distinct {
            DistinctClause::On(expressions) => {
                Some(self.distinct_on(expressions, &mut targets, &order, &scope, &mut level)?)
            }
            _ => None,
        };
        if level.has_aggregates() && self.recursions.is_recursive_term(self.query_number) {
            let message =
                "aggregate functions are not allowed in a recursive query's recursive term";
            return Err(SqlError::new(SqlState::INVALID_RECURSION, message));
        }
        let grouping = self.grouping(core, &targets, &scope, &mut level)?;
        let unlockable = match &core.distinct {
            DistinctClause::Distinct | DistinctClause::On(_) => Some("DISTINCT clause"),
            _ if !core.group_by.is_empty() => Some("GROUP BY clause"),
            _ if core.having.is_some() => Some("HAVING clause"),
            _ if level.has_aggregates() => Some("aggregate functions"),
            _ if !level.windows.is_empty() => Some("window functions"),
            _ if !level.sets.is_empty() => Some("set-returning functions in the target list"),
            _ => None,
        };
        self.check_locking(statement, &scope, unlockable)?;
        let mut having = having;
        relation =
            self.grouped(relation, grouping, &scope, &mut level, &mut targets, &mut having)?;
        if let Some(condition) = having {
            relation = Relation::Filter { input: Box::new(relation), condition };
        }
        relation = with_windows(relation, &mut level);
        for functions in level.sets.drain(..) {
            relation = Relation::ProjectSet { input: Box::new(relation), functions };
        }
        let (mut relation, ids) = self.project(relation, &targets);
        let column = |binder: &Self, at: usize| {
            let id = ids.get(at).copied();
            let id = id.ok_or_else(|| SqlError::internal("a sort key is a target"))?;
            Ok::<Expr, SqlError>(Expr::new(ExprKind::Column(id), binder.columns.get(id).ty))
        };
        let keys = (order.into_iter())
            .map(|key| Ok(SortKey { expr: column(self, key.target)?, ..key.into_key() }))
            .collect::<Result<Vec<_>, SqlError>>()?;
        relation = match (&core.distinct, on) {
            (DistinctClause::Distinct, _) => {
                self.check_distinct(&targets, &keys, statement)?;
                sorted(Relation::Distinct { input: Box::new(relation), on: None }, &keys)
            }
            (_, Some(on)) => {
                let on = (on.into_iter().map(|at| column(self, at))).collect::<Result<_, _>>()?;
                let input = Box::new(sorted(relation, &keys));
                Relation::Distinct { input, on: Some(on) }
            }
            _ => sorted(relation, &keys),
        };
        let output = (targets.iter().zip(&ids))
            .filter(|(target, _)| !target.is_hidden)
            .map(|(target, &id)| OutputColumn { id, name: target.name.clone() })
            .collect();
        let relation = self.limited(relation, statement, &scope, &keys)?;
        Ok(Query { relation, output })
    }

    /// Computes the targets as columns of their own.
    fn project(&mut self, input: Relation, targets: &[Target]) -> (Relation, Vec<ColumnId>) {
        let (mut columns, mut ids) = (Vec::new(), Vec::new());
        for target in targets {
            let origin = match target.expr.kind {
                ExprKind::Column(id) => self.columns.get(id).origin,
                _ => None,
            };
            let id = self.column_of(None, &target.name, target.expr.ty, origin);
            if target.expr.ty.oid == oids::RECORD
                && let Some(fields) = self.row_fields(&target.expr)
            {
                self.record_columns.insert(id, fields);
            }
            columns.push((id, target.expr.clone()));
            ids.push(id);
        }
        (Relation::Project { input: Box::new(input), columns }, ids)
    }

    /// Binds the target list, in which `*` stands for columns.
    fn targets(
        &mut self,
        entries: &[TargetEntry],
        scope: &Scope<'_>,
        level: &mut Level,
    ) -> Result<Vec<Target>, SqlError> {
        let mut targets = Vec::new();
        for entry in entries {
            let expression = &entry.expression;
            if let Some(expanded) = self.star(expression, scope, level)? {
                targets.extend(expanded);
                continue;
            }
            let mut context = Context::new(scope, Place::Target, level);
            let expr = self.expression(expression, &mut context)?;
            let name = match &entry.name {
                Some(name) => name.text.as_str(),
                None => output_name(expression),
            };
            targets.push(Target { expr, name: name.into(), is_hidden: false });
        }
        Ok(targets)
    }

    /// The columns that `*`, `t.*` or `(row).*` stands for; `None` for any other expression.
    pub(super) fn star(
        &mut self,
        expression: &Expression,
        scope: &Scope<'_>,
        level: &mut Level,
    ) -> Result<Option<Vec<Target>>, SqlError> {
        let at = expression.location;
        match &expression.kind {
            ExpressionKind::ColumnReference(reference) if reference.star => {
                if reference.fields.is_empty() {
                    if scope.tables.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
                    }
                    let tables = scope.tables.iter().filter(|table| table.columns_visible);
                    return shown(tables, at).map(Some);
                }
                let table = self.find_table(&reference.fields, scope, at)?;
                shown([table].into_iter(), at).map(Some)
            }
            ExpressionKind::Indirection { base, steps } => {
                let Some((IndirectionStep::Star(_), before)) = steps.split_last() else {
                    return Ok(None);
                };
                let mut context = Context::new(scope, Place::Target, level);
                let row = self.indirection(base, before, at, &mut context)?;
                self.row_star(row, at).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Fields of a row as targets.
    fn row_star(&mut self, row: Expr, at: u32) -> Result<Vec<Target>, SqlError> {
        let fields = self.row_fields(&row).ok_or_else(|| {
            let message = format!("type {} is not composite", self.names.type_name(row.ty.oid));
            SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at)
        })?;
        let targets = fields.into_iter().map(|field| {
            let kind = match &row.kind {
                ExprKind::Row { fields, .. } => {
                    let at = usize::try_from(field.number - 1).unwrap_or_default();
                    fields.get(at).map(|found| found.kind.clone())
                }
                _ => None,
            };
            let number = field.number;
            let kind =
                kind.unwrap_or_else(|| ExprKind::Field { row: Box::new(row.clone()), number });
            let (name, expr) = (field.name, Expr::new(kind, field.ty));
            Target { expr, name, is_hidden: false }
        });
        Ok(targets.collect())
    }

    /// Row locks are checked as the server does, and refused in the end.
    pub(super) fn check_locking(
        &mut self,
        statement: &SelectStatement,
        scope: &Scope<'_>,
        unlockable: Option<&str>,
    ) -> Result<(), SqlError> {
        for clause in &statement.locking {
            let strength = match clause.strength {
                LockStrength::KeyShare => "FOR KEY SHARE",
                LockStrength::Share => "FOR SHARE",
                LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
                LockStrength::Update => "FOR UPDATE",
            };
            if let Some(what) = unlockable {
                let message = format!("{strength} is not allowed with {what}");
                return Err(SqlError::unsupported(message));
            }
            for name in &clause.relations {
                let is_named = |table: &ScopeTable| table.name.as_deref() == Some(name.last());
                if !scope.tables.iter().any(is_named) {
                    let message = format!(
                        "relation \"{}\" in {strength} clause not found in FROM clause",
                        name.last()
                    );
                    let error = SqlError::new(SqlState::UNDEFINED_TABLE, message);
                    return Err(error.at(name.span.start));
                }
            }
            self.locking.get_or_insert(strength);
        }
        Ok(())
    }

    /// A condition: an expression of type boolean.
    ///
    /// # Errors
    /// 42804: it has another type.
    pub(super) fn condition(
        &mut self,
        expression: &Expression,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let expr = self.expression(expression, context)?;
        self.require_boolean(expr, context.place.clause())
    }

    /// An expression of type `unknown` becomes text.
    pub(super) fn resolve_unknown(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        if expr.ty.oid == oids::UNKNOWN {
            let unknown = std::mem::replace(expr, Expr::null(expr.ty));
            *expr = self.coerce_implicit(unknown, self.type_of(oids::TEXT))?;
        }
        Ok(())
    }
}

/// The columns that `*` shows of these tables.
fn shown<'t>(
    tables: impl Iterator<Item = &'t ScopeTable>,
    at: u32,
) -> Result<Vec<Target>, SqlError> {
    let columns = tables.flat_map(ScopeTable::shown);
    let target = |column: &super::scope::ScopeColumn| match &column.refused {
        Some(refused) => Err(refused.clone().at(at)),
        None => Ok(Target {
            expr: column.value.clone().at(at),
            name: column.name.clone(),
            is_hidden: false,
        }),
    };
    columns.map(target).collect()
}

/// Adds the windows, one relation for each.
fn with_windows(mut relation: Relation, level: &mut Level) -> Relation {
    for (window, functions) in level.windows.drain(..) {
        relation = Relation::Window { input: Box::new(relation), window, functions };
    }
    relation
}
