//! Calls of functions: plain functions, casts written as functions, aggregates, window functions and
//! set-returning functions.
//!
//! The arguments are bound first, because their types decide which function is meant.

use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;

use super::binder::{Binder, Context, Place};
use super::level::OuterAggregate;
use super::outer_aggregate::not_allowed;
use super::resolved::{Resolved, ResolvedCall, RowField};
use crate::bound::{
    Aggregate, CallForm, ColumnId, Expr, ExprKind, RowSource, SortKey, SqlType, Window,
};
use crate::catalog::{ObjectName, oids};
use crate::error::{SqlError, SqlState};
use crate::syntax::{Expression, FunctionCall};

/// Functions whose result depends on the order of a collation.
const ORDERING: [&str; 20] = [
    "text_lt",
    "text_le",
    "text_gt",
    "text_ge",
    "bttextcmp",
    "text_larger",
    "text_smaller",
    "bpcharlt",
    "bpcharle",
    "bpchargt",
    "bpcharge",
    "bpcharcmp",
    "bpchar_larger",
    "bpchar_smaller",
    "namelttext",
    "nameletext",
    "namegttext",
    "namegetext",
    "textltname",
    "textgtname",
];

/// Functions that need a collation, but not its order.
const EQUALITY: [&str; 4] = ["texteq", "textne", "bpchareq", "bpcharne"];

impl Binder<'_> {
    /// Binds a call.
    pub(super) fn function_call(
        &mut self,
        call: &FunctionCall,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let name = self.object_name(&call.name)?;
        let nodes: Vec<&Expression> =
            call.arguments.iter().map(|argument| &argument.value).collect();
        let mut arguments = Vec::new();
        for node in nodes {
            arguments.push(self.expression(node, context)?);
        }
        let within = match call.within_group {
            true => self.sort_keys(&call.order_by, context)?,
            false => Vec::new(),
        };
        arguments.extend(within.iter().map(|key| key.expr.clone()));
        let names: Vec<&str> = (call.arguments.iter())
            .filter_map(|argument| argument.name.as_ref().map(|name| name.text.as_str()))
            .collect();
        let resolved = self.resolve_call(name, arguments, &names, call.variadic, at);
        let resolved = match resolved {
            Err(error) => return Err(error),
            Ok(ResolvedCall::Cast(cast)) => {
                self.refuse_decorations(call, name, at)?;
                return Ok(cast);
            }
            Ok(ResolvedCall::Function(resolved)) => resolved,
        };
        let procedure = self.procedure(resolved.function)?;
        if procedure.kind != b'f' {
            self.refuse_spreading(&resolved, at)?;
        }
        match (procedure.kind, &call.over) {
            (b'a', None) => self.aggregate_call(call, resolved, within, at, context),
            (b'a' | b'w', Some(over)) => {
                let window = self.window_of(over, at, context)?;
                self.window_call(call, resolved, window, at, context)
            }
            (b'w', None) => {
                let message = format!("window function {name} requires an OVER clause");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at))
            }
            (b'p', _) => {
                let message = format!("{} is a procedure", self.signature(procedure));
                let hint = "To call a procedure, use CALL.";
                let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
                Err(error.with_hint(hint).at(at))
            }
            _ => {
                self.refuse_decorations(call, name, at)?;
                match procedure.returns_set {
                    true => self.set_call(resolved, call, at, context),
                    false if self.returns_row(procedure, resolved.result) => {
                        self.row_call(resolved, !context.scope.tables.is_empty(), at)
                    }
                    false => self.plain_call(resolved, CallForm::Function, at),
                }
            }
        }
    }

    /// Clauses that only aggregates and window functions can have.
    fn refuse_decorations(
        &self,
        call: &FunctionCall,
        name: ObjectName<'_>,
        at: u32,
    ) -> Result<(), SqlError> {
        let what = if call.star {
            Some(format!("{name}(*) specified, but {name} is not an aggregate function"))
        } else if call.distinct {
            Some(format!("DISTINCT specified, but {name} is not an aggregate function"))
        } else if call.within_group {
            Some(format!("WITHIN GROUP specified, but {name} is not an aggregate function"))
        } else if !call.order_by.is_empty() {
            Some(format!("ORDER BY specified, but {name} is not an aggregate function"))
        } else if call.filter.is_some() {
            Some(format!("FILTER specified, but {name} is not an aggregate function"))
        } else if call.over.is_some() {
            Some(format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            ))
        } else {
            None
        };
        match what {
            Some(message) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at)),
            None => Ok(()),
        }
    }

    /// The function with this OID.
    pub(super) fn procedure(&self, oid: Oid) -> Result<&Procedure, SqlError> {
        let found = self.catalog().procedure(oid);
        found.ok_or_else(|| SqlError::internal(format!("function with OID {oid} does not exist")))
    }

    /// A function's name and argument types, for messages.
    pub(super) fn signature(&self, procedure: &Procedure) -> String {
        let name = self.catalog().encoding().decode(&procedure.name);
        let types: Vec<String> =
            procedure.arguments.iter().map(|oid| self.names.type_name(*oid)).collect();
        format!("{name}({})", types.join(", "))
    }

    /// A call that gives one value for each row.
    pub(super) fn plain_call(
        &mut self,
        resolved: Resolved,
        form: CallForm,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let procedure = self.procedure(resolved.function)?;
        let name = self.catalog().kernel_name(procedure.oid);
        let is_known = |name: &str| crate::functions::kernel(name).is_some();
        if procedure.returns_set || !name.as_deref().is_some_and(is_known) {
            if self.is_inlined(procedure) {
                return self.inlined(resolved, at);
            }
            return Err(self.unsupported_function(procedure).at(at));
        }
        let is_ordering = name.as_deref().is_some_and(|name| ORDERING.contains(&name));
        let is_equality = name.as_deref().is_some_and(|name| EQUALITY.contains(&name));
        let collation = self.collation_of(&resolved.arguments, at)?;
        if is_ordering || is_equality {
            self.check_determined(&resolved.arguments, collation)?;
        }
        if is_ordering {
            self.check_collation(collation, at)?;
        }
        let ty = self.result_type(resolved.result, collation);
        let kind = ExprKind::Call {
            function: resolved.function,
            arguments: resolved.arguments,
            collation,
            form: if resolved.spreads { CallForm::Variadic } else { form },
        };
        Ok(Expr::new(kind, ty).at(at))
    }

    /// Elements of an array can't be the arguments of aggregates and set-returning functions here.
    fn refuse_spreading(&self, resolved: &Resolved, at: u32) -> Result<(), SqlError> {
        if !resolved.spreads {
            return Ok(());
        }
        let name = self.catalog().encoding().decode(&self.procedure(resolved.function)?.name);
        let message =
            format!("VARIADIC in a call of function {name} is not supported by trunkline");
        Err(SqlError::unsupported(message).at(at))
    }

    /// A call of a function of `pg_catalog` whose arguments have exactly its types.
    pub(super) fn built_in_call(
        &mut self,
        name: &str,
        arguments: Vec<Expr>,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let name = ObjectName::built_in(name);
        match self.resolve_call(name, arguments, &[], false, at)? {
            ResolvedCall::Cast(cast) => Ok(cast),
            ResolvedCall::Function(resolved) => self.plain_call(resolved, CallForm::Function, at),
        }
    }

    /// An aggregate.
    fn aggregate_call(
        &mut self,
        call: &FunctionCall,
        resolved: Resolved,
        within: Vec<SortKey>,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        if resolved.arguments.is_empty() && !call.star {
            let name = call.name.last();
            let message =
                format!("{name}(*) must be used to call a parameterless aggregate function");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at));
        }
        let place = context.place;
        // An aggregate belongs to the innermost query whose columns it uses.
        let is_outer = self.uses_only_outer(&resolved.arguments, context.scope);
        if !place.allows_aggregates() && !is_outer {
            return Err(not_allowed(place, at));
        }
        let (ty, function) = (resolved.result, resolved.function);
        let row = self.catalog().aggregate(function);
        let row = row.ok_or_else(|| SqlError::internal("an aggregate is in pg_aggregate"))?;
        let direct_count = usize::from(row.direct_arguments);
        let (kind, mut direct) = (row.kind, resolved.arguments);
        if (kind != b'n') != call.within_group {
            let name = self.catalog().encoding().decode(&self.procedure(function)?.name);
            let message = match call.within_group {
                true => format!(
                    "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                ),
                false => format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
            };
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at));
        }
        if kind == b'h' {
            return self.hypothetical(call, function, direct, within, at, context);
        }
        let arguments = direct.split_off(direct_count.min(direct.len()));
        let order_by = match call.within_group {
            true => (within.into_iter().zip(&arguments))
                .map(|(key, argument)| SortKey { expr: argument.clone(), ..key })
                .collect(),
            false => self.sort_keys(&call.order_by, context)?,
        };
        if call.distinct {
            for argument in &arguments {
                self.check_comparable(argument.ty.oid, at)?;
            }
            if order_by.iter().any(|key| !arguments.contains(&key.expr)) {
                let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in \
                               argument list";
                return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message).at(at));
            }
        }
        let filter = self.filter(call, context)?;
        let collation = self.collation_of(&arguments, at)?;
        self.check_aggregate_function(function, collation, at)?;
        let ty = self.result_type(ty, collation);
        let distinct = call.distinct;
        let aggregate =
            Aggregate { function, arguments, direct, distinct, order_by, filter, ty, collation };
        let is_outer = self.check_aggregate(&aggregate, at, context)?;
        let name = self.catalog().encoding().decode(&self.procedure(function)?.name);
        let id = match is_outer {
            true => {
                let id = self.column(&name, ty);
                self.outer_aggregates.push(OuterAggregate { id, aggregate, at });
                id
            }
            false if !place.allows_aggregates() => return Err(not_allowed(place, at)),
            false => context.level.aggregate(aggregate, || self.column(&name, ty)),
        };
        Ok(Expr::new(ExprKind::Column(id), ty).at(at))
    }

    /// The aggregate must be one that we have, and its order one that we can compute.
    fn check_aggregate_function(
        &self,
        function: Oid,
        collation: Oid,
        at: u32,
    ) -> Result<(), SqlError> {
        let (transition, last) = self.catalog().aggregate_functions(function).unwrap_or_default();
        if crate::functions::aggregate(&transition, &last).is_none() {
            return Err(self.unsupported_function(self.procedure(function)?).at(at));
        }
        match ORDERING.contains(&&*transition) {
            true => self.check_collation(collation, at),
            false => Ok(()),
        }
    }

    /// `FILTER`, which can't contain aggregates.
    pub(super) fn filter(
        &mut self,
        call: &FunctionCall,
        context: &mut Context<'_>,
    ) -> Result<Option<Expr>, SqlError> {
        let Some(filter) = &call.filter else { return Ok(None) };
        let mut inner = Context::new(context.scope, Place::Filter, context.level);
        self.condition(filter, &mut inner).map(Some)
    }

    /// An aggregate can't contain other aggregates of its level, window functions or set-returning
    /// functions. Returns whether it belongs to a query around this one, because it uses only columns
    /// and aggregates of those.
    pub(super) fn check_aggregate(
        &self,
        aggregate: &Aggregate,
        at: u32,
        context: &Context<'_>,
    ) -> Result<bool, SqlError> {
        let mut used: Vec<ColumnId> = Vec::new();
        aggregate.expressions(|expr| expr.columns(&self.subqueries, &mut |id| used.push(id)));
        let level = &context.level;
        // An aggregate of another level is only a value.
        let innermost = self.innermost(&used, context.scope);
        let is_nested = |id: ColumnId| {
            let is_outer = self.outer_aggregates.iter().any(|found| found.id == id);
            level.is_aggregate(id)
                || is_outer && self.level_of(id, context.scope) == Some(innermost)
        };
        let is_call =
            |id: ColumnId| is_nested(id) || level.is_window_column(id) || level.is_set_column(id);
        let inner = location_inside(aggregate, is_call);
        let what = if used.iter().any(|id| is_nested(*id)) {
            Some((SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested"))
        } else if used.iter().any(|id| level.is_window_column(*id)) {
            let message = "aggregate function calls cannot contain window function calls";
            Some((SqlState::GROUPING_ERROR, message))
        } else if used.iter().any(|id| level.is_set_column(*id)) {
            let message = "aggregate function calls cannot contain set-returning function calls";
            Some((SqlState::FEATURE_NOT_SUPPORTED, message))
        } else {
            None
        };
        if let Some((code, message)) = what {
            return Err(SqlError::new(code, message).at(inner.unwrap_or(at)));
        }
        Ok(innermost > 0)
    }

    /// Whether a column belongs to a level around this one.
    pub(super) fn is_outer(&self, id: ColumnId, scope: &super::scope::Scope<'_>) -> bool {
        self.level_of(id, scope).is_some_and(|level| level > 0)
    }

    /// A window function, or an aggregate over a window.
    fn window_call(
        &mut self,
        call: &FunctionCall,
        resolved: Resolved,
        window: Window,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let place = context.place;
        if !place.allows_windows() {
            let message = format!("window functions are not allowed in {}", place.clause());
            return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(at));
        }
        let what = if call.distinct {
            Some("DISTINCT is not implemented for window functions")
        } else if call.within_group {
            Some("OVER is not supported for ordered-set aggregates")
        } else if !call.order_by.is_empty() {
            Some("aggregate ORDER BY is not implemented for window functions")
        } else {
            None
        };
        if let Some(message) = what {
            return Err(SqlError::unsupported(message).at(at));
        }
        let filter = self.filter(call, context)?;
        let (name, kind) = {
            let procedure = self.procedure(resolved.function)?;
            (self.catalog().encoding().decode(&procedure.name), procedure.kind)
        };
        if filter.is_some() && kind == b'w' {
            let message = "FILTER is not implemented for non-aggregate window functions";
            return Err(SqlError::unsupported(message).at(at));
        }
        let collation = self.collation_of(&resolved.arguments, at)?;
        if kind == b'a' {
            self.check_aggregate_function(resolved.function, collation, at)?;
        }
        let ty = self.result_type(resolved.result, collation);
        let function = Aggregate {
            function: resolved.function,
            arguments: resolved.arguments,
            direct: Vec::new(),
            distinct: false,
            order_by: Vec::new(),
            filter,
            ty,
            collation,
        };
        let mut used: Vec<ColumnId> = Vec::new();
        function.expressions(|expr| expr.columns(&self.subqueries, &mut |id| used.push(id)));
        if used.iter().any(|id| context.level.is_window_column(*id)) {
            let message = "window function calls cannot be nested";
            let inner = location_inside(&function, |id| context.level.is_window_column(id));
            let error = SqlError::new(SqlState::WINDOWING_ERROR, message);
            return Err(error.at(inner.unwrap_or(at)));
        }
        if used.iter().any(|id| context.level.is_set_column(*id)) {
            let message = "window function calls cannot contain set-returning function calls";
            return Err(SqlError::unsupported(message).at(at));
        }
        let id = context.level.window_function(window, function, || self.column(&name, ty));
        Ok(Expr::new(ExprKind::Column(id), ty).at(at))
    }

    /// A set-returning function in a select list.
    fn set_call(
        &mut self,
        resolved: Resolved,
        call: &FunctionCall,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let place = context.place;
        if !place.allows_sets() {
            let message = match place {
                Place::From => {
                    "set-returning functions must appear at top level of FROM".to_owned()
                }
                _ => format!("set-returning functions are not allowed in {}", place.clause()),
            };
            return Err(SqlError::unsupported(message).at(at));
        }
        let procedure = self.procedure(resolved.function)?;
        let fields = match resolved.result == oids::RECORD {
            true => self.result_columns(procedure, resolved.result, &resolved.arguments),
            false => None,
        };
        let name = self.catalog().kernel_name(procedure.oid).map(std::borrow::Cow::into_owned);
        let mut source = self.row_source(resolved, at)?;
        // The rows are values already.
        if name.is_some_and(|name| crate::functions::gives_row_values(&name)) {
            source.row_type = None;
        }
        if context.level.has_row_set {
            // `(f(x)).a, (f(x)).b`, as `(f(x)).*` is stored, are columns of the same rows.
            let mut sets = context.level.sets.iter().flatten();
            let same = sets.find(|set| set.call == source.call && !self.is_volatile(&set.call));
            if let (Some(same), Some(fields)) = (same, &fields) {
                return Ok(row_of(&same.columns, fields).at(at));
            }
            let message = "a set-returning function beside one that returns rows is not supported \
                           by trunkline";
            return Err(SqlError::unsupported(message).with_hint("Call it in FROM.").at(at));
        }
        let name = call.name.last();
        let ty = source.call.ty;
        if source.row_type.is_some() {
            return self.row_set_call(source, fields, call, at, context);
        }
        let id = self.column(name, ty);
        let mut used: Vec<ColumnId> = Vec::new();
        source.call.columns(&self.subqueries, &mut |id| used.push(id));
        let source = RowSource { columns: vec![id], ..source };
        context.level.set(source, |id| used.contains(&id));
        Ok(Expr::new(ExprKind::Column(id), ty).at(at))
    }

    /// A set-returning function in a select list whose rows have several columns: its value is a row.
    fn row_set_call(
        &mut self,
        source: RowSource,
        fields: Option<Vec<RowField>>,
        call: &FunctionCall,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let name = call.name.last();
        // Beside a function with more rows, the value would be null instead of a row of nulls.
        let fields = fields.filter(|_| context.level.sets.is_empty());
        let Some(fields) = fields else {
            let message = format!(
                "function {name} in a select list is not supported by trunkline, because it returns \
                 rows"
            );
            return Err(SqlError::unsupported(message).with_hint("Call it in FROM.").at(at));
        };
        let columns: Vec<ColumnId> =
            fields.iter().map(|field| self.column(&field.name, field.ty)).collect();
        let row = row_of(&columns, &fields);
        context.level.has_row_set = true;
        context.level.set(RowSource { columns, ..source }, |_| false);
        Ok(row.at(at))
    }

    /// A call of a function that returns a set, without columns yet.
    pub(super) fn row_source(
        &mut self,
        resolved: Resolved,
        at: u32,
    ) -> Result<RowSource, SqlError> {
        self.refuse_spreading(&resolved, at)?;
        let procedure = self.procedure(resolved.function)?;
        let name = self.catalog().kernel_name(procedure.oid);
        if name.is_none_or(|name| crate::functions::set_function(&name).is_none()) {
            return Err(self.unsupported_function(procedure).at(at));
        }
        let row_type = self.result_columns(procedure, resolved.result, &resolved.arguments);
        let collation = self.collation_of(&resolved.arguments, at)?;
        let ty = self.result_type(resolved.result, collation);
        let kind = ExprKind::Call {
            function: resolved.function,
            arguments: resolved.arguments,
            collation,
            form: CallForm::Function,
        };
        let call = Expr::new(kind, ty).at(at);
        let row_type = row_type.map(|fields| fields.iter().map(|field| field.ty).collect());
        Ok(RowSource {
            call,
            returns_set: true,
            is_single: false,
            columns: Vec::new(),
            row_type,
            defined: Vec::new(),
        })
    }

    /// A function that we don't have.
    pub(super) fn unsupported_function(&self, procedure: &Procedure) -> SqlError {
        let signature = self.signature(procedure);
        SqlError::unsupported(format!("function {signature} is not supported by trunkline"))
    }

    /// The operator's function must be one that we have, and its order one that we can compute.
    pub(super) fn check_operator(
        &self,
        function: Oid,
        collation: Oid,
        at: u32,
    ) -> Result<(), SqlError> {
        let procedure = self.procedure(function)?;
        let name = self.catalog().kernel_name(function);
        if name.as_deref().is_none_or(|name| crate::functions::kernel(name).is_none()) {
            return Err(self.unsupported_function(procedure).at(at));
        }
        match name.is_some_and(|name| ORDERING.contains(&&*name)) {
            true => self.check_collation(collation, at),
            false => Ok(()),
        }
    }

    /// The type of a result, with the collation that the arguments give it.
    pub(super) fn result_type(&self, result: Oid, derived: Oid) -> SqlType {
        SqlType { collation: self.result_collation(result, derived), ..self.type_of(result) }
    }

    /// The type's collation, or the one that the arguments have.
    pub(super) fn result_collation(&self, result: Oid, derived: Oid) -> Oid {
        let own = self.type_of(result).collation;
        match own {
            oids::NONE => oids::NONE,
            _ if derived != oids::NONE => derived,
            _ => own,
        }
    }
}

/// The row of these columns.
fn row_of(columns: &[ColumnId], fields: &[RowField]) -> Expr {
    let values = columns.iter().zip(fields);
    let values = values.map(|(&id, field)| Expr::new(ExprKind::Column(id), field.ty));
    let row = ExprKind::Row {
        fields: values.collect(),
        names: fields.iter().map(|field| field.name.clone()).collect(),
    };
    Expr::new(row, SqlType::new(oids::RECORD))
}

/// Where in a call a column is used for which `test` is true.
fn location_inside(call: &Aggregate, test: impl Fn(ColumnId) -> bool) -> Option<u32> {
    let mut found = None;
    call.expressions(|expr| {
        expr.any(&mut |part| {
            let is_one = matches!(part.kind, ExprKind::Column(id) if test(id));
            if is_one {
                found = found.or(part.location.0);
            }
            is_one
        });
    });
    found
}
