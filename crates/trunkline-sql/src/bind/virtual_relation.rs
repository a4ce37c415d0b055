//! Relations of the overlay in `FROM`: the rows of a function, under the names of its columns.

use super::binder::Binder;
use super::from::{FromItem, check_alias_count};
use super::resolved::Resolved;
use super::scope::{Presence, ScopeColumn, ScopeTable};
use crate::bound::{Expr, ExprKind, Origin, Relation};
use crate::catalog::{VirtualRelation, oids};
use crate::error::SqlError;
use crate::syntax::Alias;

impl Binder<'_> {
    /// Binds a relation of the overlay.
    pub(super) fn virtual_relation(
        &mut self,
        relation: VirtualRelation,
        alias: Option<&Alias>,
        at: u32,
    ) -> Result<FromItem, SqlError> {
        let name = alias.map_or(relation.name, |alias| &alias.name.text);
        let function = relation.function;
        let procedure = self.procedure(function)?;
        let fields = self.result_columns(procedure, procedure.result, &[]).unwrap_or_default();
        let resolved =
            Resolved { function, arguments: Vec::new(), result: procedure.result, spreads: false };
        let mut source = self.row_source(resolved, at)?;
        let mut aliases = alias.map_or(&[][..], |alias| &alias.columns).iter();
        let mut columns = Vec::with_capacity(fields.len());
        for (field, number) in fields.into_iter().zip(1..) {
            let given = aliases.next().map(|alias| alias.text.as_str().into());
            let shown: Box<str> = given.unwrap_or(field.name);
            let origin = Some(Origin { table: relation.oid, number });
            let id = self.column_of(Some(name), &shown, field.ty, origin);
            source.columns.push(id);
            let value = Expr::new(ExprKind::Column(id), field.ty);
            columns.push(ScopeColumn { name: shown, value, is_system: false, refused: None });
        }
        check_alias_count(alias, name, columns.len())?;
        let table = ScopeTable {
            name: Some(name.into()),
            schema: alias.is_none().then_some(oids::PG_CATALOG),
            own_name: Some(relation.name.into()),
            columns: columns.into(),
            columns_visible: true,
            name_visible: true,
            row_type: None,
            is_scalar: false,
            presence: Presence::Always,
        };
        let relation = Relation::Functions { functions: vec![source], ordinality: None };
        Ok(FromItem { relation, tables: vec![table] })
    }
}
