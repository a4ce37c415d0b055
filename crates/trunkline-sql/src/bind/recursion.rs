//! `WITH RECURSIVE`: a query that refers to its own rows.
//!
//! ```text
//!   with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) …
//!                           non-recursive term  recursive term
//! ```
//!
//! The recursive term refers to the rows of the iteration before it, exactly once, and not where those
//! rows would have to be known twice or in full. Its columns have the types of the non-recursive term.

use super::binder::Binder;
use super::open_recursion::not_recursive;
use super::scope::{Scope, ScopeCte};
use super::search_cycle::check_selects;
use super::set_operation::target_locations;
use crate::bound::{ColumnId, OutputColumn, Query, Relation, SetOperator, SqlType};
use crate::catalog::oids;
use crate::error::{SqlError, SqlState};
use crate::syntax::{CommonTableExpression, SelectBody, SelectStatement, SetOperation};

fn invalid(message: String, at: u32) -> SqlError {
    SqlError::new(SqlState::INVALID_RECURSION, message).at(at)
}

impl Binder<'_> {
    /// Counts a reference to a query, if it is a recursive one that is being bound.
    pub(super) fn count_reference(&mut self, cte: &ScopeCte, at: u32) -> Result<(), SqlError> {
        let query = self.query_number;
        let (place, open) = self.recursions.reference(cte.number);
        let Some(open) = open else { return Ok(()) };
        if let Some(place) = place {
            let name = &cte.name;
            let message =
                format!("recursive reference to query \"{name}\" must not appear within {place}");
            return Err(invalid(message, at));
        }
        if open.count(query) > 1 {
            let name = &cte.name;
            let message =
                format!("recursive reference to query \"{name}\" must not appear more than once");
            return Err(invalid(message, at));
        }
        Ok(())
    }

    /// Binds a query of `WITH RECURSIVE`, which may refer to itself. `scope` has the queries before it.
    pub(super) fn recursive_query(
        &mut self,
        cte: &CommonTableExpression,
        scope: &Scope<'_>,
    ) -> Result<Query, SqlError> {
        let name = &cte.alias.name;
        let statement = &*cte.query;
        let SelectBody::SetOperation { operation: SetOperation::Union, all, left, right } =
            &statement.body
        else {
            let message = format!(
                "recursive query \"{}\" does not have the form non-recursive-term UNION [ALL] \
                 recursive-term",
                name.text
            );
            let open = Some(invalid(message, name.span.start));
            let query = self.query(statement, &with_own(cte, scope, open), true)?;
            return match cte.search.is_some() || cte.cycle.is_some() {
                true => Err(not_recursive(name.span.start)),
                false => Ok(query),
            };
        };
        if statement.with.is_some() {
            let message = "WITH inside of a recursive query is not supported by trunkline";
            let open = Some(SqlError::unsupported(message).at(name.span.start));
            return self.query(statement, &with_own(cte, scope, open), true);
        }
        let message = format!(
            "recursive reference to query \"{}\" must not appear within its non-recursive term",
            name.text
        );
        let open = Some(invalid(message, name.span.start));
        let mut first = self.query(left, &with_own(cte, scope, open), false)?;
        let number = self.next_cte;
        self.next_cte += 1;
        let (mut work, columns) = self.work_columns(cte, &first);
        let trace = self.trace(cte, &columns, scope)?;
        let hidden = trace.as_ref().map_or(Vec::new(), |trace| trace.columns());
        let own = ScopeCte { name: name.text.as_str().into(), number, columns, hidden, open: None };
        let mut inner = Scope::within(scope);
        inner.ctes.push(own);
        self.recursions.begin(number);
        let second = self.query(right, &inner, false);
        let is_recursive = self.recursions.end();
        let mut second = second?;
        if is_recursive {
            refuse_clauses(statement)?;
        }
        let sides = (&**left, &**right);
        if let Some(trace) = &trace {
            if !is_recursive {
                return Err(not_recursive(name.span.start));
            }
            check_selects(sides)?;
            let types: Vec<SqlType> = work.iter().map(|(_, ty)| *ty).collect();
            self.trace_first(trace, &mut first, &types)?;
            self.trace_second(trace, &mut second, &types, &name.text, number)?;
            work.extend(trace.columns().into_iter().map(|(_, id, ty)| (id, ty)));
        }
        let mut query = self.set_operation_of(SetOperation::Union, *all, sides, (first, second))?;
        if !is_recursive {
            return self.sort_and_limit(query, statement, &inner);
        }
        self.check_types(name, left, &work, &query)?;
        let relation = std::mem::replace(&mut query.relation, Relation::Unit);
        if let Relation::SetOperation { operator: SetOperator::Union, all, left, right, columns } =
            relation
        {
            let work = work.into_iter().map(|(id, _)| id).collect();
            query.relation = Relation::Recursive { number, all, left, right, work, columns };
        }
        Ok(query)
    }

    /// The columns by which the recursive term refers to the rows before it.
    #[expect(clippy::type_complexity, reason = "these are the parts of a scope's query")]
    fn work_columns(
        &mut self,
        cte: &CommonTableExpression,
        first: &Query,
    ) -> (Vec<(ColumnId, SqlType)>, Vec<(Box<str>, ColumnId, SqlType)>) {
        let mut aliases = cte.alias.columns.iter();
        let (mut work, mut columns) = (Vec::new(), Vec::new());
        for OutputColumn { id, name } in &first.output {
            let ty = match self.columns.get(*id).ty {
                ty if ty.oid == oids::UNKNOWN => self.type_of(oids::TEXT),
                ty => ty,
            };
            let name: Box<str> =
                aliases.next().map_or_else(|| name.clone(), |alias| alias.text.as_str().into());
            let id = self.column(&name, ty);
            work.push((id, ty));
            columns.push((name, id, ty));
        }
        (work, columns)
    }

    /// The recursive term must not change the types of columns.
    fn check_types(
        &self,
        name: &crate::syntax::Name,
        left: &SelectStatement,
        work: &[(ColumnId, SqlType)],
        query: &Query,
    ) -> Result<(), SqlError> {
        let locations = target_locations(left);
        for (place, ((_, before), output)) in work.iter().zip(&query.output).enumerate() {
            let overall = self.columns.get(output.id).ty;
            let at = locations.get(place).copied().unwrap_or(name.span.start);
            let (name, number) = (&name.text, place + 1);
            if (before.oid, before.modifier) != (overall.oid, overall.modifier) {
                let shown = |ty: SqlType| self.names.format_type(ty.oid, Some(ty.modifier));
                let (before, overall) = (shown(*before), shown(overall));
                let message = format!(
                    "recursive query \"{name}\" column {number} has type {before} in \
                     non-recursive term but type {overall} overall"
                );
                let hint = "Cast the output of the non-recursive term to the correct type.";
                let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
                return Err(error.with_hint(hint).at(at));
            }
            if before.collation != overall.collation {
                let message = format!(
                    "recursive query \"{name}\" column {number} has another collation in its \
                     non-recursive term than overall"
                );
                let hint = "Use the COLLATE clause to set the collation of the non-recursive term.";
                let error = SqlError::new(SqlState::COLLATION_MISMATCH, message);
                return Err(error.with_hint(hint).at(at));
            }
        }
        Ok(())
    }
}

/// A scope in which the query can't refer to itself.
fn with_own<'s>(
    cte: &CommonTableExpression,
    scope: &'s Scope<'s>,
    open: Option<SqlError>,
) -> Scope<'s> {
    let mut inner = Scope::within(scope);
    let name = cte.alias.name.text.as_str().into();
    let (columns, hidden) = (Vec::new(), Vec::new());
    inner.ctes.push(ScopeCte { name, number: 0, columns, hidden, open });
    inner
}

/// Clauses that a recursive query can't have.
fn refuse_clauses(statement: &SelectStatement) -> Result<(), SqlError> {
    let what = if !statement.order_by.is_empty() {
        "ORDER BY"
    } else if statement.offset.is_some() {
        "OFFSET"
    } else if statement.limit.is_some() {
        "LIMIT"
    } else if !statement.locking.is_empty() {
        "FOR UPDATE/SHARE"
    } else {
        return Ok(());
    };
    Err(SqlError::unsupported(format!("{what} in a recursive query is not implemented")))
}
