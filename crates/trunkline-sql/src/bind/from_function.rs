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
use crate::error::{SqlError, SqlState};
use crate::syntax::{ColumnDefinition, Expression, ExpressionKind, RangeFunction};

impl Binder<'_> {
    /// Binds functions in `FROM`, which can refer to the items before them.
    pub(super) fn range_function(
        &mut self,
        range: &RangeFunction,
        before: &Scope<'_>,
    ) -> Result<FromItem, SqlError> {
        let mut scope = Scope::within(before.outer_or_self());
        scope.tables = before.tables.clone();
        let alias = range.alias.as_ref();
        let first_name = range.functions.first().map_or("", |item| output_name(&item.function));
        let name = alias.map_or(first_name, |alias| &alias.name.text);
        let (mut functions, mut columns) = (Vec::new(), Vec::new());
        for item in &range.functions {
            let definitions = match range.columns.is_empty() {
                true => &item.columns,
                false => &range.columns,
            };
            for node in spread(&item.function) {
                let found = self.function_item(&node, !definitions.is_empty(), &scope)?;
                if let Some(first) = range.columns.first() {
                    check_definition_list(range, first.name.span.start)?;
                }
                let (mut source, fields) =
                    self.defined_columns(found, definitions, node.location)?;
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
        let row_type = match functions.as_slice() {
            [only] if !range.ordinality && only.row_type.is_some() => Some(only.call.ty.oid),
            _ => None,
        };
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
            row_type,
            is_scalar,
            presence: Presence::Always,
        };
        Ok(FromItem {
            relation: Relation::Functions { functions, ordinality },
            tables: vec![table],
        })
    }

    /// One function, and the columns of its rows. A scalar has no name of its own. `is_defined`: it has
    /// a column definition list.
    fn function_item(
        &mut self,
        node: &Expression,
        is_defined: bool,
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
                if (returns_set
                    || self.returns_row(procedure, resolved.result)
                    || (is_defined && self.has_rows(procedure, resolved.result)))
                    && call.over.is_none()
                    && call.filter.is_none() =>
            {
                let fields = self.result_columns(procedure, resolved.result, &resolved.arguments);
                let name = self.output_parameter(procedure);
                let mut source = self.row_source(resolved, at)?;
                source.is_single = !returns_set;
                let columns = match fields {
                    Some(fields) => fields.into_iter().map(ItemColumn::of_field).collect(),
                    None => vec![ItemColumn { name, ty: source.call.ty }],
                };
                Ok((source, columns))
            }
            (b'f', false) => {
                let fields = self.result_columns(procedure, resolved.result, &resolved.arguments);
                let (mut source, columns) =
                    single(self.plain_call(resolved, CallForm::Function, at)?);
                let Some(fields) = fields else { return Ok((source, columns)) };
                // The only row is divided into its columns.
                source.row_type = Some(fields.iter().map(|field| field.ty).collect());
                Ok((source, fields.into_iter().map(ItemColumn::of_field).collect()))
            }
            // This reports what is wrong.
            _ => Ok(single(self.function_call(call, at, &mut context)?)),
        }
    }

    /// Gives a function that returns `record` the columns of its column definition list, which others
    /// must not have (`addRangeTableEntryForFunction`).
    fn defined_columns(
        &mut self,
        (mut source, columns): (RowSource, Vec<ItemColumn>),
        definitions: &[ColumnDefinition],
        at: u32,
    ) -> Result<(RowSource, Vec<ItemColumn>), SqlError> {
        let invalid = |message: &str| SqlError::new(SqlState::SYNTAX_ERROR, message);
        let is_record = source.call.ty.oid == oids::RECORD;
        let is_undefined = is_record && source.row_type.as_ref().is_none_or(Vec::is_empty);
        let Some(first) = definitions.first() else {
            if is_undefined {
                let message =
                    "a column definition list is required for functions returning \"record\"";
                return Err(invalid(message).at(at));
            }
            return Ok((source, columns));
        };
        if !is_undefined {
            let message = match &source.row_type {
                Some(_) if is_record => {
                    "a column definition list is redundant for a function with OUT parameters"
                }
                Some(_) => {
                    "a column definition list is redundant for a function returning a named \
                     composite type"
                }
                None => {
                    "a column definition list is only allowed for functions returning \"record\""
                }
            };
            return Err(invalid(message).at(first.name.span.start));
        }
        let mut columns = Vec::with_capacity(definitions.len());
        for definition in definitions {
            let ty = self.defined_type(definition)?;
            columns.push((definition.name.text.as_str().into(), ty));
        }
        self.check_defined(&columns)?;
        source.row_type = Some(columns.iter().map(|(_, ty)| *ty).collect());
        source.defined = columns.iter().map(|(name, _)| Box::clone(name)).collect();
        let columns = columns.into_iter().map(|(name, ty)| ItemColumn { name: Some(name), ty });
        Ok((source, columns.collect()))
    }

    /// The type of a column in a column definition list.
    fn defined_type(&self, definition: &ColumnDefinition) -> Result<SqlType, SqlError> {
        let type_name = &definition.type_name;
        if type_name.setof {
            let name = &definition.name.text;
            let message = format!("column \"{name}\" cannot be declared SETOF");
            let error = SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message);
            return Err(error.at(definition.name.span.start));
        }
        let ty = self.named_type(type_name)?;
        let Some(collation) = &definition.collation else { return Ok(ty) };
        let at = collation.span.start;
        let row = self.names.collation_named(self.object_name(collation)?);
        let row = row.map_err(|error| error.at(at))?;
        if ty.collation == oids::NONE {
            let name = self.names.type_name(ty.oid);
            let message = format!("collations are not supported by type {name}");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(at));
        }
        Ok(SqlType { collation: row.oid, ..ty })
    }

    /// The names must differ, and the types have values (`CheckAttributeNamesTypes`).
    fn check_defined(&self, columns: &[(Box<str>, SqlType)]) -> Result<(), SqlError> {
        for (at, (name, _)) in columns.iter().enumerate() {
            if columns.iter().skip(at + 1).any(|(other, _)| other == name) {
                let message = format!("column name \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
        }
        for (name, ty) in columns {
            let is_pseudo = self.catalog().data_type(ty.oid).is_some_and(|row| row.kind == b'p');
            if is_pseudo && ty.oid != oids::RECORD && ty.oid != RECORD_ARRAY {
                let type_name = self.names.type_name(ty.oid);
                let message = format!("column \"{name}\" has pseudo-type {type_name}");
                return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
            }
        }
        Ok(())
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

/// `record[]`.
const RECORD_ARRAY: Oid = Oid(2287);

/// A list behind the alias belongs to the only function (`transformRangeFunction`).
fn check_definition_list(range: &RangeFunction, at: u32) -> Result<(), SqlError> {
    let functions: usize = range.functions.iter().map(|item| spread(&item.function).len()).sum();
    let (message, hint) = if functions > 1 && range.rows_from {
        (
            "ROWS FROM() with multiple functions cannot have a column definition list",
            "Put a separate column definition list for each function inside ROWS FROM().",
        )
    } else if functions > 1 {
        (
            "UNNEST() with multiple arguments cannot have a column definition list",
            "Use separate UNNEST() calls inside ROWS FROM(), and attach a column definition list \
             to each one.",
        )
    } else if range.ordinality {
        (
            "WITH ORDINALITY cannot be used with a column definition list",
            "Put the column definition list inside ROWS FROM().",
        )
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::SYNTAX_ERROR, message).with_hint(hint).at(at))
}

/// One row with one value.
fn single(call: Expr) -> (RowSource, Vec<ItemColumn>) {
    let ty = call.ty;
    let source = RowSource {
        call,
        returns_set: false,
        is_single: false,
        columns: Vec::new(),
        row_type: None,
        defined: Vec::new(),
    };
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
