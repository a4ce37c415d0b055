//! `WITH`: common table expressions, and references to them.

use super::binder::Binder;
use super::from::{FromItem, check_alias_count};
use super::open_recursion::not_recursive;
use super::scope::{Presence, Scope, ScopeColumn, ScopeCte, ScopeTable};
use crate::bound::{Cte, Expr, ExprKind, Relation};
use crate::error::{SqlError, SqlState};
use crate::syntax::{Alias, WithClause};

impl Binder<'_> {
    /// Binds the expressions of `WITH`, in order. Each is visible in those after it.
    pub(super) fn with_clause(
        &mut self,
        with: &WithClause,
        scope: &mut Scope<'_>,
        ctes: &mut Vec<Cte>,
    ) -> Result<(), SqlError> {
        for (at, cte) in with.ctes.iter().enumerate() {
            let name = &cte.alias.name;
            if with.ctes.iter().take(at).any(|earlier| earlier.alias.name.text == name.text) {
                let message = format!("WITH query name \"{}\" specified more than once", name.text);
                let code = SqlState::DUPLICATE_ALIAS;
                return Err(SqlError::new(code, message).at(name.span.start));
            }
            let number = self.next_cte;
            self.next_cte += 1;
            if !with.recursive && (cte.search.is_some() || cte.cycle.is_some()) {
                return Err(not_recursive(name.span.start));
            }
            let query = if with.recursive {
                // A reference to a later one is found, and refused.
                for later in with.ctes.iter().skip(at + 1) {
                    let (name, columns) = (later.alias.name.text.as_str().into(), Vec::new());
                    let message = "a reference to a later WITH query is not supported by trunkline";
                    let open = Some(SqlError::unsupported(message).at(later.alias.name.span.start));
                    let hidden = Vec::new();
                    scope.ctes.push(ScopeCte { name, number, columns, hidden, open });
                }
                self.recursive_query(cte, scope)?
            } else {
                self.query(&cte.query, scope, true)?
            };
            scope.ctes.retain(|found| found.open.is_none());
            let (found, given) = (query.output.len(), cte.alias.columns.len());
            if given > found {
                let message = format!(
                    "WITH query \"{}\" has {found} columns available but {given} columns specified",
                    name.text
                );
                let code = SqlState::INVALID_COLUMN_REFERENCE;
                return Err(SqlError::new(code, message).at(name.span.start));
            }
            let mut aliases = cte.alias.columns.iter();
            let columns = query.output.iter().map(|output| {
                let alias = aliases.next().map(|alias| alias.text.as_str().into());
                let name = alias.unwrap_or_else(|| output.name.clone());
                (name, output.id, self.columns.get(output.id).ty)
            });
            scope.ctes.push(ScopeCte {
                name: name.text.as_str().into(),
                number,
                columns: columns.collect(),
                hidden: Vec::new(),
                open: None,
            });
            ctes.push(Cte {
                number,
                name: name.text.as_str().into(),
                columns: query.output.iter().map(|output| output.id).collect(),
                relation: query.relation,
                materialized: cte.materialized,
            });
        }
        Ok(())
    }

    /// A reference to a common table expression, with columns of its own.
    pub(super) fn cte_reference(
        &mut self,
        cte: &ScopeCte,
        alias: Option<&Alias>,
        at: u32,
    ) -> Result<FromItem, SqlError> {
        if let Some(open) = &cte.open {
            return Err(open.clone());
        }
        self.count_reference(cte, at)?;
        let name = alias.map_or(&*cte.name, |alias| &alias.name.text);
        check_alias_count(alias, name, cte.columns.len())?;
        let mut aliases = alias.map_or(&[][..], |alias| &alias.columns).iter();
        let (mut map, mut columns) = (Vec::new(), Vec::new());
        for (own_name, source, ty) in &cte.columns {
            let given = aliases.next().map(|alias| alias.text.as_str());
            let shown = given.unwrap_or(own_name);
            let origin = self.columns.get(*source).origin;
            let id = self.column_of(Some(name), shown, *ty, origin);
            map.push((*source, id));
            if let Some(fields) = self.record_columns.get(source).cloned() {
                self.record_columns.insert(id, fields);
            }
            let value = Expr::new(ExprKind::Column(id), *ty);
            columns.push(ScopeColumn {
                name: shown.into(),
                value,
                is_system: false,
                refused: None,
            });
        }
        for (name, source, ty) in &cte.hidden {
            let id = self.column(name, *ty);
            map.push((*source, id));
            let value = Expr::new(ExprKind::Column(id), *ty);
            columns.push(ScopeColumn {
                name: Box::clone(name),
                value,
                is_system: true,
                refused: None,
            });
        }
        let table = ScopeTable {
            name: Some(name.into()),
            schema: None,
            own_name: None,
            columns: columns.into(),
            columns_visible: true,
            name_visible: true,
            row_type: None,
            is_scalar: false,
            presence: Presence::Always,
        };
        let relation = Relation::CteScan { cte: cte.number, columns: map };
        Ok(FromItem { relation, tables: vec![table] })
    }
}
