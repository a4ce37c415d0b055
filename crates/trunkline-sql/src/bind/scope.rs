//! The names that an expression can refer to, level by level.
//!
//! ```text
//!   select a, (select b from u where u.id = t.id) from t
//!
//!   scope of the subquery: u(b, id) ── outer ──▶ scope of the statement: t(a, id)
//! ```
//!
//! As in PostgreSQL, a join hides the columns of its sides behind its own, so that the columns of
//! `USING` occur only once. The sides remain visible by their names.

use std::rc::Rc;

use trunkline_format::Oid;

use crate::bound::{ColumnId, Expr, SqlType};
use crate::error::{SqlError, SqlState};

/// A column that a name can refer to. It is an expression, because a column that `FULL JOIN … USING`
/// merges is computed from both sides.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    pub(super) name: Box<str>,
    pub(super) value: Expr,
    /// `*` doesn't show system columns.
    pub(super) is_system: bool,
    /// Why the column can't be used.
    pub(super) refused: Option<SqlError>,
}

/// An item of `FROM`: a table, a subquery, a function or a join.
#[derive(Debug, Clone)]
pub(super) struct ScopeTable {
    /// The alias, or the table's own name. A join without an alias has none.
    pub(super) name: Option<Box<str>>,
    /// The table's schema, if it has no alias: it can be referred to by schema and name.
    pub(super) schema: Option<Oid>,
    /// The name of the table itself, if it is one. An alias hides it.
    pub(super) own_name: Option<Box<str>>,
    pub(super) columns: Rc<[ScopeColumn]>,
    /// Columns can be referred to without the name of the table.
    pub(super) columns_visible: bool,
    /// The name can be referred to.
    pub(super) name_visible: bool,
    /// The composite type of its rows, if the table has one.
    pub(super) row_type: Option<Oid>,
    /// A function that returns a scalar: its name alone refers to that value.
    pub(super) is_scalar: bool,
    /// Whether there is always a row of it.
    pub(super) presence: Presence,
}

/// Whether there is a row of a table where its columns are used.
#[derive(Debug, Clone)]
pub(super) enum Presence {
    Always,
    /// An outer join may have added nulls, in which case this column is null.
    IfNotNull(Expr),
    /// The same, with a column that exists only if it is needed.
    Marked(ColumnId),
}

/// A common table expression that can be referred to.
#[derive(Debug, Clone)]
pub(super) struct ScopeCte {
    pub(super) name: Box<str>,
    pub(super) number: u32,
    pub(super) columns: Vec<(Box<str>, ColumnId, SqlType)>,
    /// Columns behind these that `*` doesn't show: those of `SEARCH` and `CYCLE` in the recursive term.
    pub(super) hidden: Vec<(Box<str>, ColumnId, SqlType)>,
    /// Why it can't be referred to while it is being defined.
    pub(super) open: Option<SqlError>,
}

/// The names of one level, and those of the levels around it.
#[derive(Debug, Default)]
pub(super) struct Scope<'o> {
    pub(super) tables: Vec<ScopeTable>,
    pub(super) ctes: Vec<ScopeCte>,
    pub(super) outer: Option<&'o Scope<'o>>,
    /// Names that exist but can't be referred to from here, for messages.
    pub(super) hidden: Vec<Box<str>>,
}

/// What a name stands for.
#[derive(Debug)]
pub(super) enum Lookup<T> {
    None,
    One(T),
    Ambiguous,
}

impl<'o> Scope<'o> {
    /// An empty scope inside another one.
    pub(super) fn within(outer: &'o Scope<'o>) -> Self {
        Self { outer: Some(outer), ..Self::default() }
    }

    /// The scope around this one. The outermost scope is empty, and stands for itself.
    pub(super) fn outer_or_self(&self) -> &Scope<'o> {
        self.outer.unwrap_or(self)
    }

    /// This scope and those around it, from the inside.
    fn levels(&self) -> impl Iterator<Item = &Scope<'o>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    /// Whether a column of this level, not of those around it, has this name.
    pub(super) fn has_own_column(&self, name: &str) -> bool {
        let tables = self.tables.iter().filter(|table| table.columns_visible);
        tables.flat_map(|table| table.named(name)).next().is_some()
    }

    /// The column with this name, in the innermost level that has one.
    pub(super) fn column(&self, name: &str) -> Lookup<ScopeColumn> {
        for level in self.levels() {
            let tables = level.tables.iter().filter(|table| table.columns_visible);
            let mut found = tables.flat_map(|table| table.named(name));
            if let Some(column) = found.next() {
                return match found.next() {
                    Some(_) => Lookup::Ambiguous,
                    None => Lookup::One(column.clone()),
                };
            }
        }
        Lookup::None
    }

    /// The table with this name, in the innermost level that has one.
    pub(super) fn table(&self, schema: Option<Oid>, name: &str) -> Lookup<&ScopeTable> {
        for level in self.levels() {
            let mut found = level.tables.iter().filter(|table| {
                let is_schema = schema.is_none() || table.schema == schema;
                table.name_visible && is_schema && table.name.as_deref() == Some(name)
            });
            if let Some(table) = found.next() {
                return match found.next() {
                    Some(_) => Lookup::Ambiguous,
                    None => Lookup::One(table),
                };
            }
        }
        Lookup::None
    }

    /// Whether a table has this name but can't be referred to from here, such as one in a subquery
    /// beside this one.
    pub(super) fn is_hidden(&self, name: &str) -> bool {
        self.levels().any(|level| {
            let own = |table: &ScopeTable| table.own_name.as_deref() == Some(name);
            level.tables.iter().any(own) || level.hidden.iter().any(|hidden| **hidden == *name)
        })
    }

    /// The names of the tables of this level.
    pub(super) fn names(&self) -> Vec<Box<str>> {
        self.tables.iter().filter_map(|table| table.name.clone()).collect()
    }

    /// The common table expression with this name, in the innermost level that has one.
    pub(super) fn cte(&self, name: &str) -> Option<&ScopeCte> {
        self.levels().find_map(|level| level.ctes.iter().rev().find(|cte| &*cte.name == name))
    }
}

impl ScopeTable {
    /// The table as it is seen from where it must not be referred to.
    pub(super) fn forbidden(&self) -> Self {
        let name = self.name.as_deref().unwrap_or_default();
        let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
        let detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference.";
        let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).with_detail(detail);
        let columns = self.columns.iter();
        let columns =
            columns.map(|column| ScopeColumn { refused: Some(error.clone()), ..column.clone() });
        Self { columns: columns.collect(), ..self.clone() }
    }

    /// The columns with this name. System columns are found last and only if there is no other.
    pub(super) fn named<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t ScopeColumn> {
        self.columns.iter().filter(move |column| &*column.name == name)
    }

    /// The columns that `*` shows.
    pub(super) fn shown(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.columns.iter().filter(|column| !column.is_system)
    }
}
