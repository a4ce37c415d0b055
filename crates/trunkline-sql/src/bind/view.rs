//! Views in `FROM`.
//!
//! The directory has the query of each view as a node tree. It is printed as SQL in which every name
//! has its schema, and that text is bound as a subquery:
//!
//! ```text
//!   from v   ─▶ pg_rewrite ─▶ SELECT t.a AS c1 FROM public.t t … ─▶ Project( …, v.a = c1 )
//! ```
//!
//! Within it, names are looked up in `pg_catalog` only, so that no name depends on the search
//! path of the session.

use trunkline_engine::catalog::RelationInfo;
use trunkline_format::text_input::InputOptions;
use trunkline_format::text_output::TextOptions;

use super::binder::Binder;
use super::from::{FromItem, check_alias_count};
use super::scope::{Presence, Scope, ScopeColumn, ScopeTable};
use crate::bound::{Expr, ExprKind, Origin, Query, Relation, with_stack_for};
use crate::catalog::{Namespace, SearchPath, oids};
use crate::error::{SqlError, SqlState};
use crate::functions::Deparser;
use crate::syntax::{Alias, RawStatement, SelectStatement, Statement, parse};

/// How many views may be inside each other.
const DEPTH_MAX: u32 = 64;

impl Binder<'_> {
    /// Binds a view.
    pub(super) fn view(
        &mut self,
        view: &RelationInfo,
        alias: Option<&Alias>,
    ) -> Result<FromItem, SqlError> {
        let encoding = self.catalog().encoding();
        let own_name = encoding.decode(&view.name);
        let query = self.view_query(view).map_err(|error| in_view(error, &own_name))?;
        let damaged = |what: &str| SqlError::new(SqlState::DATA_CORRUPTED, what);
        let database = self.catalog().database();
        let infos = database.columns(view).map_err(|error| damaged(&error.to_string()))?;
        let infos: Vec<_> = infos.iter().filter(|info| !info.dropped).collect();
        if infos.len() != query.output.len() {
            let message = format!("view \"{own_name}\" does not have the columns of its query");
            return Err(damaged(&message));
        }
        let name = alias.map_or(&*own_name, |alias| &alias.name.text);
        let mut aliases = alias.map_or(&[][..], |alias| &alias.columns).iter();
        let (mut computed, mut columns) = (Vec::new(), Vec::new());
        for (info, output) in infos.iter().zip(&query.output) {
            let ty = self.columns.get(output.id).ty;
            if ty.oid != info.type_oid {
                let (found, wanted) =
                    (self.names.type_name(ty.oid), self.names.type_name(info.type_oid));
                let column = encoding.decode(&info.name);
                return Err(SqlError::internal(format!(
                    "column \"{column}\" of view \"{own_name}\" has type {found}, not {wanted}"
                )));
            }
            let given = aliases.next().map(|alias| alias.text.clone());
            let shown = given.unwrap_or_else(|| encoding.decode(&info.name));
            // A relation has at most 1,600 columns.
            let origin = Some(Origin { table: view.oid, number: info.number as i16 });
            let id = self.column_of(Some(name), &shown, ty, origin);
            computed.push((id, Expr::new(ExprKind::Column(output.id), ty)));
            let value = Expr::new(ExprKind::Column(id), ty);
            columns.push(ScopeColumn {
                name: shown.into(),
                value,
                is_system: false,
                refused: None,
            });
        }
        check_alias_count(alias, name, columns.len())?;
        let table = ScopeTable {
            name: Some(name.into()),
            schema: alias.is_none().then_some(view.schema),
            own_name: Some(own_name.into()),
            columns: columns.into(),
            columns_visible: true,
            name_visible: true,
            row_type: Some(view.row_type).filter(|&oid| oid != oids::NONE),
            is_scalar: false,
            presence: Presence::Always,
        };
        let relation = Relation::Project { input: Box::new(query.relation), columns: computed };
        Ok(FromItem { relation, tables: vec![table] })
    }

    /// The bound query of a view.
    fn view_query(&mut self, view: &RelationInfo) -> Result<Query, SqlError> {
        if self.view_depth >= DEPTH_MAX {
            let message = "views are nested too deeply";
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        let catalog = self.catalog();
        let stored = catalog.view_query(view.oid)?.ok_or_else(|| {
            SqlError::new(SqlState::DATA_CORRUPTED, "there is no query of the view in pg_rewrite")
        })?;
        let options = TextOptions::new(self.input.major, self.input.catalog);
        let text = Deparser::for_binding(options, catalog).view(&stored, None)?;
        let parsed = parse(&text)?;
        let select = select_of(&parsed)?;
        // The text was printed with the default settings.
        let defaults = InputOptions {
            zone: self.input.zone,
            names: self.input.names,
            ..InputOptions::new(self.input.major, self.input.catalog, self.input.now_us)
        };
        let names =
            std::mem::replace(&mut self.names, Namespace::new(catalog, SearchPath::of_catalog()));
        let input = std::mem::replace(&mut self.input, defaults);
        let nesting = self.nesting;
        self.nesting += parsed.first().map_or(0, RawStatement::nesting);
        self.nesting_max = self.nesting_max.max(self.nesting);
        self.view_depth += 1;
        let query = with_stack_for(self.nesting, || self.query(select, &Scope::default(), true));
        self.view_depth -= 1;
        (self.names, self.input, self.nesting) = (names, input, nesting);
        query
    }
}

/// The printed query.
fn select_of(parsed: &[RawStatement]) -> Result<&SelectStatement, SqlError> {
    match parsed {
        [RawStatement { statement: Statement::Select(select), .. }] => Ok(select),
        _ => Err(SqlError::internal("the query of a view is a SELECT")),
    }
}

/// Says which view an error is about. It has no position, because the text is our own.
fn in_view(error: SqlError, name: &str) -> SqlError {
    let error = error.without_position();
    match error.detail() {
        Some(_) => error,
        None => error.with_detail(format!("The error is in the query of view \"{name}\".")),
    }
}
