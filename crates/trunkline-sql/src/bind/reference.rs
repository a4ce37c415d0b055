//! References: columns, fields of rows, and subscripts of arrays.

use super::binder::{Binder, Context};
use super::expression::BOOL;
use super::resolved::RowField;
use super::scope::{Lookup, Scope, ScopeColumn, ScopeTable};
use crate::bound::{Expr, ExprKind, SqlType, SubqueryKind};
use crate::catalog::oids;
use crate::error::{SqlError, SqlState};
use crate::syntax::{ColumnReference, Expression, IndirectionStep, Name};

impl Binder<'_> {
    /// `a`, `t.a`, `s.t.a`, or the name of a table, which stands for its whole row.
    pub(super) fn column_reference(
        &mut self,
        reference: &ColumnReference,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let scope = context.scope;
        if reference.star {
            // Where a list of columns makes no sense, `t.*` is the row of `t`.
            if reference.fields.is_empty() {
                let message = "row expansion via \"*\" is not supported here";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(at));
            }
            let table = self.find_table(&reference.fields, scope, at)?;
            return self.whole_row(table, at);
        }
        match &*reference.fields {
            [column] => self.plain_column(&column.text, at, scope),
            [table @ .., column] => {
                let table = self.find_table(table, scope, at)?;
                self.table_column(table, &column.text, at)
            }
            [] => Err(SqlError::internal("a column reference has a name").at(at)),
        }
    }

    fn plain_column(&mut self, name: &str, at: u32, scope: &Scope<'_>) -> Result<Expr, SqlError> {
        match scope.column(name) {
            Lookup::One(column) => value(column, at),
            Lookup::Ambiguous => Err(ambiguous(name, at)),
            Lookup::None => match scope.table(None, name) {
                Lookup::One(table) => self.whole_row(table, at),
                Lookup::Ambiguous => {
                    let message = format!("table reference \"{name}\" is ambiguous");
                    Err(SqlError::new(SqlState::AMBIGUOUS_ALIAS, message).at(at))
                }
                Lookup::None => {
                    self.named_argument(name).map(|argument| argument.at(at)).ok_or_else(|| {
                        let message = format!("column \"{name}\" does not exist");
                        SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(at)
                    })
                }
            },
        }
    }

    /// The table that the names before a column or before `.*` stand for.
    pub(super) fn find_table<'s>(
        &self,
        names: &[Name],
        scope: &'s Scope<'_>,
        at: u32,
    ) -> Result<&'s ScopeTable, SqlError> {
        let missing = |name: &str| {
            let what = match scope.is_hidden(name) {
                true => "invalid reference to",
                false => "missing",
            };
            let message = format!("{what} FROM-clause entry for table \"{name}\"");
            SqlError::new(SqlState::UNDEFINED_TABLE, message).at(at)
        };
        let (schema, name) = match names {
            [name] => (None, &name.text),
            [schema, name] => (Some(schema), &name.text),
            [database, schema, name] if database.text == self.database_name() => {
                (Some(schema), &name.text)
            }
            [_, _, _] => {
                let names: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
                let names = names.join(".");
                let message = format!("cross-database references are not implemented: {names}");
                return Err(SqlError::unsupported(message).at(at));
            }
            _ => {
                let message = "improper qualified name (too many dotted names)";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
        };
        let oid = match schema {
            Some(schema) => Some(self.names.schema(&schema.text).map_err(|_| missing(name))?),
            None => None,
        };
        match scope.table(oid, name) {
            Lookup::One(table) => Ok(table),
            Lookup::Ambiguous => {
                let message = format!("table reference \"{name}\" is ambiguous");
                Err(SqlError::new(SqlState::AMBIGUOUS_ALIAS, message).at(at))
            }
            Lookup::None => Err(missing(name)),
        }
    }

    /// A column of a table that is named.
    fn table_column(&mut self, table: &ScopeTable, name: &str, at: u32) -> Result<Expr, SqlError> {
        let mut found = table.named(name);
        match (found.next(), found.next()) {
            (Some(column), None) => value(column, at),
            (Some(_), Some(_)) => Err(ambiguous(name, at)),
            (None, _) => {
                let table = table.name.as_deref().unwrap_or_default();
                let message = format!("column {table}.{name} does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(at))
            }
        }
    }

    /// A row of a table as one value. A function that returns a scalar gives that value.
    fn whole_row(&mut self, table: &ScopeTable, at: u32) -> Result<Expr, SqlError> {
        if table.is_scalar
            && let Some(column) = table.shown().next()
        {
            return value(column, at);
        }
        let mut fields = Vec::new();
        for column in table.shown() {
            fields.push(value(column, at)?);
        }
        let names = table.shown().map(|column| column.name.clone()).collect();
        let ty = SqlType::new(table.row_type.unwrap_or(oids::RECORD));
        let row = Expr::new(ExprKind::Row { fields, names }, ty);
        let Some(indicator) = self.indicator(&table.presence) else { return Ok(row.at(at)) };
        let argument = Box::new(indicator);
        let missing = Expr::new(ExprKind::IsNull { argument, is_row: false }, BOOL);
        let arms = vec![(missing, Expr::null(ty))];
        let kind = ExprKind::Case { operand: None, arms, otherwise: Box::new(row) };
        Ok(Expr::new(kind, ty).at(at))
    }

    /// Fields and subscripts of a value.
    pub(super) fn indirection(
        &mut self,
        base: &Expression,
        steps: &[IndirectionStep],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let mut expr = self.expression(base, context)?;
        let mut rest = steps;
        while let Some((step, after)) = rest.split_first() {
            match step {
                IndirectionStep::Field(name) => {
                    expr = self.field(expr, &name.text, name.span.start)?;
                    rest = after;
                }
                IndirectionStep::Star(span) => {
                    let message = "row expansion via \"*\" is not supported here";
                    return Err(SqlError::unsupported(message).at(span.start));
                }
                IndirectionStep::Subscript(_) | IndirectionStep::Slice { .. } => {
                    let is_subscript = |step: &&IndirectionStep| {
                        matches!(
                            step,
                            IndirectionStep::Subscript(_) | IndirectionStep::Slice { .. }
                        )
                    };
                    let count = rest.iter().take_while(is_subscript).count();
                    let (subscripts, after) = rest.split_at(count);
                    expr = self.subscripts(expr, subscripts, at, context)?;
                    rest = after;
                }
            }
        }
        Ok(expr)
    }

    /// `(row).field`.
    fn field(&mut self, row: Expr, name: &str, at: u32) -> Result<Expr, SqlError> {
        let Some(fields) = self.row_fields(&row) else {
            let type_name = self.names.type_name(row.ty.oid);
            let message = format!(
                "column notation .{name} applied to type {type_name}, which is not a composite type"
            );
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at));
        };
        let Some(found) = fields.iter().find(|field| &*field.name == name) else {
            let type_name = self.names.type_name(row.ty.oid);
            let message = match row.ty.oid {
                oids::RECORD => format!("could not identify column \"{name}\" in record data type"),
                _ => format!("column \"{name}\" not found in data type {type_name}"),
            };
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(at));
        };
        if let ExprKind::Row { fields, .. } = &row.kind {
            let place = usize::try_from(found.number - 1).unwrap_or_default();
            // A literal in a row keeps having no type.
            if let Some(field) = fields.get(place).filter(|field| field.ty.oid != oids::UNKNOWN) {
                return Ok(field.clone());
            }
        }
        let (number, ty) = (found.number, found.ty);
        Ok(Expr::new(ExprKind::Field { row: Box::new(row), number }, ty))
    }

    /// The fields of a row; `None` if it is no row, or one whose fields aren't known.
    pub(super) fn row_fields(&self, row: &Expr) -> Option<Vec<RowField>> {
        if let ExprKind::Row { fields, names } = &row.kind {
            let fields = (1..).zip(fields.iter().zip(names));
            let fields = fields.map(|(number, (field, name))| RowField {
                number,
                name: name.clone(),
                ty: field.ty,
            });
            return Some(fields.collect());
        }
        match &row.kind {
            // A whole row that may be missing.
            ExprKind::Case { otherwise, .. } if matches!(otherwise.kind, ExprKind::Row { .. }) => {
                return self.row_fields(otherwise);
            }
            ExprKind::Column(id) if row.ty.oid == oids::RECORD => {
                return self.record_columns.get(id).cloned();
            }
            ExprKind::Subquery(subquery)
                if row.ty.oid == oids::RECORD && subquery.kind == SubqueryKind::Scalar =>
            {
                let output = self.subqueries.get(subquery.query).output.first()?;
                return self.record_columns.get(&output.id).cloned();
            }
            _ => {}
        }
        let database = self.catalog().database();
        let relation = database.relation(self.catalog().row_relation(row.ty.oid)?)?;
        let columns = database.columns(relation).ok()?.iter().filter(|column| !column.dropped);
        let fields = columns.map(|column| RowField {
            // A relation has at most 1,600 columns.
            number: column.number as i16,
            name: self.catalog().encoding().decode(&column.name).into(),
            ty: SqlType {
                oid: column.type_oid,
                modifier: column.modifier,
                collation: column.collation,
            },
        });
        Some(fields.collect())
    }

    /// `a[1][2]`, or `a[1:2]`. As in PostgreSQL, one slice makes all subscripts slices from 1.
    fn subscripts(
        &mut self,
        array: Expr,
        steps: &[IndirectionStep],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let (base, modifier) =
            self.catalog().base_type_and_modifier(array.ty.oid, array.ty.modifier);
        if base == oids::JSONB {
            return self.jsonb_subscripts(array, steps, at, context);
        }
        let is_slice = steps.iter().any(|step| matches!(step, IndirectionStep::Slice { .. }));
        let fixed = self.catalog().fixed_element_type(base);
        let element = match base {
            oids::INT2VECTOR => Some(oids::INT2),
            oids::OIDVECTOR => Some(oids::OID),
            _ => self.catalog().element_type(base).or(fixed),
        };
        let Some(element) = element else {
            let name = self.names.type_name(array.ty.oid);
            let row = self.catalog().data_type(base);
            if row.is_some_and(|row| row.subscript != oids::NONE) {
                let message = format!("subscripts of type {name} are not supported by trunkline");
                return Err(SqlError::unsupported(message).at(at));
            }
            let message =
                format!("cannot subscript type {name} because it does not support subscripting");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(at));
        };
        let collation = array.ty.collation;
        let (mut indexes, mut slice) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                IndirectionStep::Subscript(index) => {
                    let index = self.subscript(index, context)?;
                    match is_slice {
                        true => {
                            let one = ExprKind::Constant(Some(1_i32.to_le_bytes().into()));
                            let one = Expr::new(one, SqlType::new(oids::INT4));
                            slice.push((Some(one), Some(index)));
                        }
                        false => indexes.push(index),
                    }
                }
                IndirectionStep::Slice { lower, upper, .. } => {
                    let mut bound = |node: &Option<Box<Expression>>| {
                        node.as_deref().map(|node| self.subscript(node, context)).transpose()
                    };
                    let lower = bound(lower)?;
                    slice.push((lower, bound(upper)?));
                }
                IndirectionStep::Field(_) | IndirectionStep::Star(_) => {}
            }
        }
        let oid = match base {
            _ if !is_slice => element,
            oids::INT2VECTOR => oids::INT2ARRAY,
            oids::OIDVECTOR => oids::OIDARRAY,
            base => base,
        };
        let ty = SqlType { oid, modifier, collation };
        let kind = ExprKind::Subscript { array: Box::new(array), element: indexes, slice };
        Ok(Expr::new(kind, ty))
    }

    /// One subscript: an int4.
    fn subscript(
        &mut self,
        node: &Expression,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let index = self.expression(node, context)?;
        self.coerce_assignment(index, self.type_of(oids::INT4)).map_err(|_| {
            let message = "array subscript must have type integer";
            SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(node.location)
        })
    }
}

/// The value of a column, unless the column can't be used.
fn value(column: impl std::borrow::Borrow<ScopeColumn>, at: u32) -> Result<Expr, SqlError> {
    let column = column.borrow();
    match &column.refused {
        Some(refused) => Err(refused.clone().at(at)),
        None => Ok(column.value.clone().at(at)),
    }
}

fn ambiguous(name: &str, at: u32) -> SqlError {
    let message = format!("column reference \"{name}\" is ambiguous");
    SqlError::new(SqlState::AMBIGUOUS_COLUMN, message).at(at)
}
