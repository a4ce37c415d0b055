//! Functions in `FROM`.
//!
//! A function that returns a scalar is a table of one column, which has the name of the alias or of the
//! function. A function that returns rows has their columns. `ROWS FROM (…)` puts several functions
//! beside each other.

use trunkline_engine::catalog::{Parameter, ParameterMode, Procedure};
use trunkline_format::Oid;

use super::binder::{Binder, Context, Place};
use super::from::{FromItem, check_alias_count};
use super::level::Level;
use super::output_name::output_name;
use super::resolved::{ResolvedCall, RowField};
use super::scope::{Presence, Scope, ScopeColumn, ScopeTable};
use crate::bound::{CallForm, Expr, ExprKind, Relation, RowSource, SqlType};
use crate::catalog::oids;
use crate::error::SqlError;
use crate::syntax::{Expression, ExpressionKind, RangeFunction};

impl Binder<'_> {
    /// Binds functions in `FROM`, which can refer to the items before them.
    pub(super) fn range_function(
        &mut self,
        range: &RangeFunction,
        before: &Scope<'_>,
    ) -> Result<FromItem, SqlError> {
        let at = range.span.start;
        let defined = range.columns.len()
            + range.functions.iter().map(|item| item.columns.len()).sum::<usize>();
        if defined > 0 {
            let message = "a column definition list for a function is not supported by trunkline";
            return Err(SqlError::unsupported(message).at(at));
        }
        let mut scope = Scope::within(before.outer_or_self());
        scope.tables = before.tables.clone();
        let alias = range.alias.as_ref();
        let first_name = range.functions.first().map_or("", |item| output_name(&item.function));
        let name = alias.map_or(first_name, |alias| &alias.name.text);
        let (mut functions, mut columns) = (Vec::new(), Vec::new());
        for item in &range.functions {
            for node in spread(&item.function) {
                let (mut source, fields) = self.function_item(&node, &scope)?;
                let own_name = output_name(&node);
                let is_only = range.functions.len() == 1;
                for field in fields {
                    let shown = match field.name {
                        Some(name) => name,
                        None if is_only => name.into(),
                        None => own_name.into(),
                    };
                    let id = self.column_of(Some(name), &shown, field.ty, None);
                    source.columns.push(id);
                    let value = Expr::new(ExprKind::Column(id), field.ty);
                    columns.push((shown, value));
                }
                functions.push(source);
            }
        }
        let is_scalar = functions.len() == 1
            && functions.iter().all(|source| source.row_type.is_none())
            && !range.ordinality;
        let ordinality = range.ordinality.then(|| {
            let ty = SqlType::new(oids::INT8);
            let id = self.column_of(Some(name), "ordinality", ty, None);
            columns.push(("ordinality".into(), Expr::new(ExprKind::Column(id), ty)));
            id
        });
        check_alias_count(alias, name, columns.len())?;
        let mut aliases = alias.map_or(&[][..], |alias| &alias.columns).iter();
        let columns: Vec<ScopeColumn> = (columns.into_iter())
            .map(|(shown, value)| {
                let given = aliases.next().map(|alias| alias.text.as_str().into());
                let name = given.unwrap_or(shown);
                ScopeColumn { name, value, is_system: false, refused: None }
            })
            .collect();
        let table = ScopeTable {
            name: Some(name.into()),
            schema: None,
            own_name: None,
            columns: columns.into(),
            columns_visible: true,
            name_visible: true,
            row_type: None,
            is_scalar,
            presence: Presence::Always,
        };
        Ok(FromItem {
            relation: Relation::Functions { functions, ordinality },
            tables: vec![table],
        })
    }

    /// One function, and the columns of its rows. A scalar has no name of its own.
    fn function_item(
        &mut self,
        node: &Expression,
        scope: &Scope<'_>,
    ) -> Result<(RowSource, Vec<ItemColumn>), SqlError> {
        let mut level = Level::default();
        let mut context = Context::new(scope, Place::From, &mut level);
        let at = node.location;
        let ExpressionKind::FunctionCall(call) = &node.kind else {
            let call = self.expression(node, &mut context)?;
            return Ok(single(call));
        };
        let name = self.object_name(&call.name)?;
        let mut arguments = Vec::new();
        for argument in &call.arguments {
            arguments.push(self.expression(&argument.value, &mut context)?);
        }
        let names: Vec<&str> = (call.arguments.iter())
            .filter_map(|argument| argument.name.as_ref().map(|name| name.text.as_str()))
            .collect();
        let resolved = match self.resolve_call(name, arguments, &names, call.variadic, at)? {
            ResolvedCall::Cast(cast) => return Ok(single(cast)),
            ResolvedCall::Function(resolved) => resolved,
        };
        let procedure = self.procedure(resolved.function)?;
        match (procedure.kind, procedure.returns_set) {
            // One that returns a single row is called in the same way.
            (b'f', returns_set)
                if (returns_set || self.returns_row(procedure, resolved.result))
                    && call.over.is_none()
                    && call.filter.is_none() =>
            {
                let fields = self.result_columns(procedure, resolved.result, &resolved.arguments);
                let name = self.output_parameter(procedure);
                let source = self.row_source(resolved, at)?;
                let columns = match fields {
                    Some(fields) => fields.into_iter().map(ItemColumn::of_field).collect(),
                    None => vec![ItemColumn { name, ty: source.call.ty }],
                };
                Ok((source, columns))
            }
            (b'f', false)
                if self
                    .result_columns(procedure, resolved.result, &resolved.arguments)
                    .is_none() =>
            {
                Ok(single(self.plain_call(resolved, CallForm::Function, at)?))
            }
            (b'f', false) => {
                let message = "a function in FROM that returns one row is not supported by \
                               trunkline";
                Err(SqlError::unsupported(message).at(at))
            }
            // This reports what is wrong.
            _ => Ok(single(self.function_call(call, at, &mut context)?)),
        }
    }

    /// The name of a scalar result: that of the only output parameter, if it has one.
    fn output_parameter(&self, procedure: &Procedure) -> Option<Box<str>> {
        let mut outputs = outputs(procedure);
        match (outputs.next(), outputs.next()) {
            (Some(only), None) if !only.name.is_empty() => {
                Some(self.catalog().encoding().decode(&only.name).into())
            }
            _ => None,
        }
    }

    /// The columns of a function's rows; `None` if its results are scalars. The arguments decide what
    /// the types of polymorphic columns are.
    pub(super) fn result_columns(
        &self,
        procedure: &Procedure,
        result: Oid,
        arguments: &[Expr],
    ) -> Option<Vec<RowField>> {
        if result != oids::RECORD {
            let row = Expr::null(SqlType::new(result));
            return self.row_fields(&row);
        }
        let fields = (1..).zip(outputs(procedure)).map(|(number, parameter)| RowField {
            number,
            name: match &*parameter.name {
                [] => format!("column{number}").into(),
                name => self.catalog().encoding().decode(name).into(),
            },
            ty: self.type_of(self.output_type(procedure, parameter.type_oid, arguments)),
        });
        Some(fields.collect())
    }

    /// The type of a column, in which `anyelement` is the type of an `anyarray`'s elements.
    fn output_type(&self, procedure: &Procedure, declared: Oid, arguments: &[Expr]) -> Oid {
        if !oids::is_polymorphic(declared) {
            return declared;
        }
        let mut inputs = procedure.inputs().zip(arguments);
        let found = inputs.find_map(|(input, argument)| {
            let actual = self.catalog().base_type(argument.ty.oid);
            match (input.type_oid, declared) {
                (input, declared) if input == declared => Some(actual),
                (oids::ANYARRAY, oids::ANYELEMENT) => match actual {
                    oids::INT2VECTOR => Some(oids::INT2),
                    oids::OIDVECTOR => Some(oids::OID),
                    _ => self.catalog().element_type(actual),
                },
                _ => None,
            }
        });
        found.unwrap_or(declared)
    }
}

/// The parameters that are columns of the result.
fn outputs(procedure: &Procedure) -> impl Iterator<Item = &Parameter> {
    procedure.parameters().iter().filter(|parameter| {
        let mode = parameter.mode;
        matches!(mode, ParameterMode::Out | ParameterMode::InOut | ParameterMode::Table)
    })
}

/// A column of a function's rows.
struct ItemColumn {
    name: Option<Box<str>>,
    ty: SqlType,
}

impl ItemColumn {
    fn of_field(field: RowField) -> Self {
        Self { name: Some(field.name), ty: field.ty }
    }
}

/// One row with one value.
fn single(call: Expr) -> (RowSource, Vec<ItemColumn>) {
    let ty = call.ty;
    let source = RowSource { call, returns_set: false, columns: Vec::new(), row_type: None };
    (source, vec![ItemColumn { name: None, ty }])
}

/// `unnest` of several arrays stands for one `unnest` for each.
fn spread(node: &Expression) -> Vec<Expression> {
    match &node.kind {
        ExpressionKind::FunctionCall(call)
            if call.name.parts.len() == 1
                && call.name.last() == "unnest"
                && call.arguments.len() > 1 =>
        {
            let each = call.arguments.iter().map(|argument| {
                let mut one = call.clone();
                one.arguments = vec![argument.clone()];
                Expression { kind: ExpressionKind::FunctionCall(one), ..node.clone() }
            });
            each.collect()
        }
        _ => vec![node.clone()],
    }
}
