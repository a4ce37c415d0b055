//! Functions that return one row, as values: `SELECT pg_buffercache_evict(7)`.
//!
//! Such a function is executed like those that return many rows. Its value is that of the subquery
//! `(SELECT ROW(f.*) FROM pg_buffercache_evict(7) f)`, which is null if an argument is.

use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;

use super::binder::Binder;
use super::resolved::Resolved;
use crate::bound::{
    ColumnId, Expr, ExprKind, OutputColumn, Query, Relation, RowSource, SqlType, SubqueryKind,
};
use crate::catalog::oids;
use crate::error::SqlError;
use crate::functions::{gives_row_values, kernel, set_function};

impl Binder<'_> {
    /// Whether a function returns one row with columns, and is executed like one that returns a set.
    pub(super) fn returns_row(&self, procedure: &Procedure, result: Oid) -> bool {
        let name = self.catalog().kernel_name(procedure.oid);
        let has_kernel = name.is_some_and(|name| kernel(&name).is_some());
        !procedure.returns_set && !has_kernel && self.has_rows(procedure, result)
    }

    /// Whether a function returns a `record` and can be executed like one that returns a set.
    pub(super) fn has_rows(&self, procedure: &Procedure, result: Oid) -> bool {
        let name = self.catalog().kernel_name(procedure.oid);
        result == oids::RECORD && name.is_some_and(|name| set_function(&name).is_some())
    }

    /// The row that a function returns. `has_from`: the query may have many rows.
    pub(super) fn row_call(
        &mut self,
        resolved: Resolved,
        has_from: bool,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let mut has_column = false;
        for argument in &resolved.arguments {
            argument.columns(&self.subqueries, &mut |_| has_column = true);
        }
        if has_from && !has_column {
            // A subquery without outer columns is executed once, but the function once a row.
            let message = "a function that returns one row is not supported by trunkline in the \
                           select list of a query with FROM, unless an argument is a column";
            return Err(SqlError::unsupported(message).with_hint("Call it in FROM.").at(at));
        }
        let procedure = self.procedure(resolved.function)?;
        let name = self.catalog().encoding().decode(&procedure.name);
        if self.catalog().kernel_name(procedure.oid).is_some_and(|name| gives_row_values(&name)) {
            let message = format!("could not determine row type for result of {name}");
            let hint = "Provide a non-null record argument, or call the function in the FROM \
                        clause using a column definition list.";
            return Err(SqlError::unsupported(message).with_hint(hint));
        }
        let fields = self.result_columns(procedure, resolved.result, &resolved.arguments);
        let fields = fields.unwrap_or_default();
        let source = self.row_source(resolved, at)?;
        let columns: Vec<ColumnId> =
            fields.iter().map(|field| self.column(&field.name, field.ty)).collect();
        let values = columns.iter().zip(&fields);
        let values = values.map(|(&id, field)| Expr::new(ExprKind::Column(id), field.ty));
        let row = ExprKind::Row {
            fields: values.collect(),
            names: fields.iter().map(|field| field.name.clone()).collect(),
        };
        let ty = SqlType::new(oids::RECORD);
        let id = self.column(&name, ty);
        self.record_columns.insert(id, fields);
        let functions = vec![RowSource { columns, ..source }];
        let input = Box::new(Relation::Functions { functions, ordinality: None });
        let relation = Relation::Project { input, columns: vec![(id, Expr::new(row, ty))] };
        let output = vec![OutputColumn { id, name: name.into() }];
        Ok(self.subquery(SubqueryKind::Scalar, Query { relation, output }, ty).at(at))
    }
}
