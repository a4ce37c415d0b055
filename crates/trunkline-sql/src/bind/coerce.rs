//! Conversions of bound expressions: what the rules of [`crate::resolve`] decide on types is applied
//! to values here.
//!
//! ```text
//!   int4 column + 1.5      int4 ─▶ numeric   a call of the cast function
//!   '5' as an integer      a literal is read by the type's input function, now
//!   varchar as text        the same bytes with another type
//! ```

use trunkline_format::Oid;
use trunkline_format::text_input::read_text;
use trunkline_format::text_output::Type;

use super::binder::Binder;
use super::resolved::{Resolved, ResolvedCall};
use crate::bound::{CallForm, Comparison, Expr, ExprKind, Quantifier, SqlType, with_stack};
use crate::catalog::{ObjectName, oids};
use crate::error::{SqlError, SqlState};
use crate::resolve::{
    self, Coercion, CoercionContext, FunctionArguments, ModifierCoercion, NOT_AN_ARRAY,
    array_operator, binary_operator, coercion, common_modifier, function, is_common_type,
    modifier_coercion, prefix_operator,
};
use crate::syntax::OperatorName;

/// `pg_typeof("any")`, to which the type of a literal is still unknown.
const PG_TYPEOF: Oid = Oid(1619);

impl Binder<'_> {
    /// Converts where the statement doesn't ask for it.
    ///
    /// # Errors
    /// 42846: there is no implicit conversion.
    pub(super) fn coerce_implicit(&mut self, expr: Expr, ty: SqlType) -> Result<Expr, SqlError> {
        self.coerce(expr, ty, CoercionContext::Implicit)
    }

    /// Converts as for an assignment.
    ///
    /// # Errors
    /// 42846: there is no such conversion.
    pub(super) fn coerce_assignment(&mut self, expr: Expr, ty: SqlType) -> Result<Expr, SqlError> {
        self.coerce(expr, ty, CoercionContext::Assignment)
    }

    /// A cast that is written in the statement.
    ///
    /// # Errors
    /// 42846: there is no conversion.
    pub(super) fn cast(&mut self, expr: Expr, ty: SqlType, at: u32) -> Result<Expr, SqlError> {
        let cast = self.coerce(expr, ty, CoercionContext::Explicit);
        cast.map(|cast| cast.at(at)).map_err(|error| error.at(at))
    }

    /// Converts to a type and its modifier (`coerce_to_target_type`).
    pub(super) fn coerce(
        &mut self,
        expr: Expr,
        ty: SqlType,
        context: CoercionContext,
    ) -> Result<Expr, SqlError> {
        with_stack(|| {
            if let ExprKind::Collate(inner) = expr.kind {
                // The collation applies to the converted value, if that can have one.
                let (collation, location) = (expr.ty.collation, expr.location);
                let inner = self.coerce(*inner, ty, context)?;
                if ty.collation == oids::NONE {
                    return Ok(inner);
                }
                let ty = SqlType { collation, ..inner.ty };
                return Ok(Expr { kind: ExprKind::Collate(Box::new(inner)), ty, location });
            }
            let location = expr.location;
            let converted = self.coerce_type(expr, ty, context)?;
            let converted = self.coerce_modifier(converted, ty.modifier, context)?;
            Ok(Expr { location, ..converted })
        })
    }

    /// Converts to a type (`coerce_type`).
    fn coerce_type(
        &mut self,
        expr: Expr,
        target: SqlType,
        context: CoercionContext,
    ) -> Result<Expr, SqlError> {
        let (source, at) = (expr.ty.oid, expr.location.0.unwrap_or_default());
        // The type of a null is known even where the type of its elements isn't, as in pg_stats.
        if target.oid == oids::ANYARRAY && matches!(expr.kind, ExprKind::Constant(None)) {
            return self.coerce_unknown(expr, target);
        }
        if source == target.oid || oids::is_polymorphic(target.oid) || target.oid == oids::ANY {
            return Ok(expr);
        }
        if self.catalog().data_type(target.oid).is_some_and(|row| row.kind == b'd') {
            return self.coerce_domain(expr, target, context);
        }
        if source == oids::UNKNOWN {
            return self.coerce_unknown(expr, target);
        }
        if target.oid == oids::RECORD && self.catalog().is_composite(source) {
            let location = expr.location;
            return Ok(Expr { kind: ExprKind::Relabel(Box::new(expr)), ty: target, location });
        }
        if source == oids::RECORD && self.catalog().is_composite(target.oid) {
            return self.coerce_row(expr, target, context);
        }
        let found = coercion(self.catalog(), source, target.oid, context);
        let Some(found) = found else {
            let error = self.cannot_cast(source, target.oid);
            // A cast that is written has a position of its own.
            return Err(match context {
                CoercionContext::Explicit => error,
                _ => error.at(at),
            });
        };
        let collation = match target.collation {
            oids::NONE => oids::NONE,
            own if expr.ty.collation == oids::NONE => own,
            _ => expr.ty.collation,
        };
        let form = match context {
            CoercionContext::Explicit => CallForm::ExplicitCast,
            _ => CallForm::ImplicitCast,
        };
        let ty = SqlType { modifier: -1, collation, ..target };
        match found {
            Coercion::Relabel => {
                let location = expr.location;
                Ok(Expr { kind: ExprKind::Relabel(Box::new(expr)), ty, location })
            }
            Coercion::ViaText => {
                let location = expr.location;
                Ok(Expr { kind: ExprKind::ViaText(Box::new(expr)), ty, location })
            }
            Coercion::Function(function) => {
                let is_explicit = context == CoercionContext::Explicit;
                let call = self.cast_call(function, expr, target.modifier, is_explicit, form)?;
                Ok(Expr { ty: SqlType { oid: target.oid, ..call.ty }, ..call })
            }
            Coercion::Array => self.coerce_array(expr, ty, context),
        }
    }

    /// Calls a cast function, which may also take the modifier and whether the cast is explicit.
    fn cast_call(
        &mut self,
        function: Oid,
        expr: Expr,
        modifier: i32,
        is_explicit: bool,
        form: CallForm,
    ) -> Result<Expr, SqlError> {
        let at = expr.location.0.unwrap_or_default();
        let procedure = self.procedure(function)?;
        let (result, count) = (procedure.result, procedure.arguments.len());
        let constant = |oid: Oid, payload: &[u8]| {
            Expr::new(ExprKind::Constant(Some(payload.into())), SqlType::new(oid))
        };
        let mut arguments = vec![expr];
        if count > 1 {
            arguments.push(constant(oids::INT4, &modifier.to_le_bytes()));
        }
        if count > 2 {
            arguments.push(constant(oids::BOOL, &[u8::from(is_explicit)]));
        }
        self.plain_call(Resolved { function, arguments, result, spreads: false }, form, at)
    }

    /// Converts the elements of an array.
    fn coerce_array(
        &mut self,
        expr: Expr,
        ty: SqlType,
        context: CoercionContext,
    ) -> Result<Expr, SqlError> {
        let elements = [expr.ty.oid, ty.oid].map(|oid| self.catalog().base_element_type(oid));
        let [Some(from), Some(to)] = elements else {
            return Err(SqlError::internal("an array conversion is between arrays"));
        };
        let operand = SqlType { oid: from, ..expr.ty };
        let element = Expr::new(ExprKind::ArrayElement, operand);
        let element = Box::new(self.coerce_type(element, self.type_of(to), context)?);
        let location = expr.location;
        let kind = ExprKind::ArrayCast { argument: Box::new(expr), element };
        Ok(Expr { kind, ty, location })
    }

    /// Converts `ROW(…)` to a composite type, field by field.
    fn coerce_row(
        &mut self,
        expr: Expr,
        target: SqlType,
        context: CoercionContext,
    ) -> Result<Expr, SqlError> {
        let at = expr.location.0.unwrap_or_default();
        let wanted = self.row_fields(&Expr::null(target)).unwrap_or_default();
        let ExprKind::Row { fields, .. } = expr.kind else {
            let message = "a cast from record to a composite type is not supported by trunkline";
            return Err(SqlError::unsupported(message).at(at));
        };
        if fields.len() != wanted.len() {
            let what = if fields.len() < wanted.len() { "few" } else { "many" };
            let detail = format!("Input has too {what} columns.");
            return Err(self.cannot_cast(oids::RECORD, target.oid).with_detail(detail));
        }
        let names = wanted.iter().map(|field| field.name.clone()).collect();
        let fields = fields.into_iter().zip(wanted);
        let fields = fields.map(|(field, wanted)| self.coerce(field, wanted.ty, context));
        let fields = fields.collect::<Result<_, _>>()?;
        Ok(Expr { kind: ExprKind::Row { fields, names }, ty: target, location: expr.location })
    }

    /// Converts a value whose type isn't known: a literal, a parameter, or a column of such values.
    pub(super) fn coerce_unknown(&mut self, expr: Expr, ty: SqlType) -> Result<Expr, SqlError> {
        let at = expr.location.0.unwrap_or_default();
        match &expr.kind {
            ExprKind::Constant(None) => Ok(Expr {
                kind: ExprKind::Constant(None),
                ty: SqlType { modifier: -1, ..ty },
                location: expr.location,
            }),
            ExprKind::Constant(Some(text)) => {
                let text = String::from_utf8_lossy(text).into_owned();
                self.read_constant(&text, ty, at)
            }
            ExprKind::Parameter(number) => {
                let number = *number;
                if ty.oid == oids::UNKNOWN || self.parameters.infer(number, ty.oid) {
                    return Ok(Expr::new(
                        ExprKind::Parameter(number),
                        SqlType { modifier: -1, ..ty },
                    )
                    .at(at));
                }
                let message = format!("inconsistent types deduced for parameter ${number}");
                Err(SqlError::new(SqlState::AMBIGUOUS_PARAMETER, message).at(at))
            }
            ExprKind::Field { .. } => {
                let name = self.names.type_name(ty.oid);
                let message = format!("failed to find conversion function from unknown to {name}");
                Err(SqlError::internal(message))
            }
            _ => {
                let (location, ty) = (expr.location, SqlType { modifier: -1, ..ty });
                Ok(Expr { kind: ExprKind::ViaText(Box::new(expr)), ty, location })
            }
        }
    }

    /// Reads a literal with the input function of a type.
    pub(super) fn read_constant(&self, text: &str, ty: SqlType, at: u32) -> Result<Expr, SqlError> {
        let mut payload = Vec::new();
        let wrong = |error: SqlError| error.at(at);
        if let Some(found) = self.named_object(text, ty.oid).map_err(wrong)? {
            let kind = ExprKind::Constant(Some(found.0.to_le_bytes().into()));
            return Ok(Expr::new(kind, ty).at(at));
        }
        let resolved = Type::resolve(ty.oid, &**self.catalog().database());
        let resolved = resolved.map_err(|error| wrong(SqlError::unsupported(error.to_string())))?;
        // As in PostgreSQL, only the input of intervals applies the modifier. Others are converted to
        // it afterwards, where an explicit cast may cut off what assigning it would refuse.
        let modifier = if ty.oid == oids::INTERVAL { ty.modifier } else { -1 };
        read_text(&resolved, text.as_bytes(), modifier, &self.input, &mut payload)
            .map_err(|error| wrong(error.into()))?;
        let kind = ExprKind::Constant(Some(payload.into()));
        let ty = SqlType { modifier, ..ty };
        Ok(Expr::new(kind, ty).at(at))
    }

    /// Converts to a modifier of the same type (`coerce_type_typmod`).
    fn coerce_modifier(
        &mut self,
        expr: Expr,
        modifier: i32,
        context: CoercionContext,
    ) -> Result<Expr, SqlError> {
        if modifier < 0 || modifier == expr.ty.modifier {
            return Ok(expr);
        }
        let location = expr.location;
        let ty = SqlType { modifier, ..expr.ty };
        let is_null = matches!(expr.kind, ExprKind::Constant(None));
        let form = match context {
            CoercionContext::Explicit => CallForm::ExplicitCast,
            _ => CallForm::ImplicitCast,
        };
        let is_explicit = context == CoercionContext::Explicit;
        match modifier_coercion(self.catalog(), expr.ty.oid) {
            _ if is_null => Ok(Expr { kind: expr.kind, ty, location }),
            None => Ok(Expr { kind: ExprKind::Relabel(Box::new(expr)), ty, location }),
            Some(ModifierCoercion::Function(function)) => {
                let call = self.cast_call(function, expr, modifier, is_explicit, form)?;
                Ok(Expr { ty: SqlType { modifier, ..call.ty }, location, ..call })
            }
            Some(ModifierCoercion::Array(function)) => {
                let element = self.catalog().base_element_type(expr.ty.oid).unwrap_or_default();
                let element =
                    Expr::new(ExprKind::ArrayElement, SqlType { oid: element, ..expr.ty });
                let element = self.cast_call(function, element, modifier, is_explicit, form)?;
                let (argument, element) = (Box::new(expr), Box::new(element));
                Ok(Expr { kind: ExprKind::ArrayCast { argument, element }, ty, location })
            }
        }
    }

    fn cannot_cast(&self, source: Oid, target: Oid) -> SqlError {
        let (source, target) = (self.names.type_name(source), self.names.type_name(target));
        let message = format!("cannot cast type {source} to {target}");
        SqlError::new(SqlState::CANNOT_COERCE, message)
    }

    /// A condition must be boolean.
    pub(super) fn require_boolean(&mut self, expr: Expr, clause: &str) -> Result<Expr, SqlError> {
        let (oid, at) = (expr.ty.oid, expr.location.0.unwrap_or_default());
        if oid == oids::BOOL {
            return Ok(expr);
        }
        let is_literal = oid == oids::UNKNOWN;
        match self.coerce_assignment(expr, self.type_of(oids::BOOL)) {
            Err(error) if !is_literal && error.code() == SqlState::CANNOT_COERCE => {
                let name = self.names.type_name(oid);
                let message = format!("argument of {clause} must be type boolean, not type {name}");
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(at))
            }
            converted => converted,
        }
    }

    /// A number of rows must be an int8.
    pub(super) fn require_row_count(
        &mut self,
        expr: Expr,
        clause: &str,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let oid = expr.ty.oid;
        let is_literal = oid == oids::UNKNOWN;
        match self.coerce_assignment(expr, self.type_of(oids::INT8)) {
            Err(error) if !is_literal && error.code() == SqlState::CANNOT_COERCE => {
                let name = self.names.type_name(oid);
                let message = format!("argument of {clause} must be type bigint, not type {name}");
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(at))
            }
            converted => converted.map_err(|error| error.at(at)),
        }
    }

    /// Converts expressions to their common type.
    pub(super) fn common_type(
        &mut self,
        construct: &str,
        expressions: Vec<Expr>,
        at: u32,
    ) -> Result<(SqlType, Vec<Expr>), SqlError> {
        let types: Vec<(Oid, u32)> =
            expressions.iter().map(|expr| (expr.ty.oid, expr.location.0.unwrap_or(at))).collect();
        let oid = resolve::common_type(&self.names, construct, &types)?;
        let modifiers: Vec<(Oid, i32)> =
            expressions.iter().map(|expr| (expr.ty.oid, expr.ty.modifier)).collect();
        let modifier = common_modifier(oid, &modifiers);
        let ty = self.type_of(oid);
        let converted = expressions.into_iter().map(|expr| self.coerce_implicit(expr, ty));
        let converted = converted.collect::<Result<Vec<_>, _>>()?;
        let collation = self.collation_of(&converted, at)?;
        let collation = self.result_collation(oid, collation);
        Ok((SqlType { oid, modifier, collation }, converted))
    }

    /// The common type of expressions, if they have one.
    pub(super) fn select_common_type(&self, expressions: &[Expr]) -> Option<Oid> {
        let types: Vec<(Oid, u32)> = expressions.iter().map(|expr| (expr.ty.oid, 0)).collect();
        let oid = resolve::common_type(&self.names, "IN", &types).ok()?;
        let types: Vec<Oid> = types.into_iter().map(|(oid, _)| oid).collect();
        is_common_type(self.catalog(), oid, &types).then_some(oid)
    }

    /// Applies an operator.
    pub(super) fn apply_operator(
        &mut self,
        name: ObjectName<'_>,
        left: Option<Expr>,
        right: Expr,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let found = match &left {
            Some(left) => binary_operator(&self.names, name, left.ty.oid, right.ty.oid),
            None => prefix_operator(&self.names, name, right.ty.oid),
        };
        let found = found.map_err(|error| error.at(at))?;
        let operands: Vec<Expr> = left.into_iter().chain([right]).collect();
        let arguments = self.converted_arguments(operands, &found.arguments)?;
        let (function, result) = (found.function, found.result);
        let form = CallForm::Operator(found.operator);
        self.plain_call(Resolved { function, arguments, result, spreads: false }, form, at)
    }

    /// Converts arguments to the types that a function takes.
    fn converted_arguments(
        &mut self,
        arguments: Vec<Expr>,
        types: &[Oid],
    ) -> Result<Vec<Expr>, SqlError> {
        let pairs = arguments.into_iter().zip(types);
        pairs.map(|(argument, oid)| self.coerce_implicit(argument, self.type_of(*oid))).collect()
    }

    /// `left operator ANY (array)`, as it is written.
    pub(super) fn array_comparison(
        &mut self,
        operator: &OperatorName,
        quantifier: Quantifier,
        left: Expr,
        array: Expr,
        at: u32,
    ) -> Result<Expr, SqlError> {
        self.scalar_array(super::expression::operator_name(operator), quantifier, left, array, at)
    }

    /// Compares a value with the elements of an array.
    pub(super) fn scalar_array(
        &mut self,
        name: ObjectName<'_>,
        quantifier: Quantifier,
        left: Expr,
        array: Expr,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let found = array_operator(&self.names, name, left.ty.oid, array.ty.oid);
        let found = found.map_err(|error| error.at(at))?;
        let mut operands = self.converted_arguments(vec![left, array], &found.arguments)?;
        let collation = self.collation_of(&operands, at)?;
        self.check_operator(found.function, collation, at)?;
        let comparison =
            Comparison { operator: found.operator, function: found.function, collation };
        let (Some(array), Some(left)) = (operands.pop(), operands.pop()) else {
            return Err(SqlError::internal("a comparison has two operands"));
        };
        let (left, array) = (Box::new(left), Box::new(array));
        let kind = ExprKind::ArrayComparison { comparison, quantifier, left, array };
        Ok(Expr::new(kind, SqlType::new(oids::BOOL)).at(at))
    }

    /// Finds the function that a call stands for, and converts the arguments to what it takes.
    pub(super) fn resolve_call(
        &mut self,
        name: ObjectName<'_>,
        arguments: Vec<Expr>,
        argument_names: &[&str],
        is_variadic: bool,
        at: u32,
    ) -> Result<ResolvedCall, SqlError> {
        let types: Vec<Oid> = arguments.iter().map(|argument| argument.ty.oid).collect();
        let shape = FunctionArguments { types: &types, names: argument_names, is_variadic };
        let last = arguments.last().and_then(|last| last.location.0);
        let found = function(&self.names, name, shape).map_err(|error| match error.message() {
            // This error is where the argument is.
            NOT_AN_ARRAY => error.at(last.unwrap_or(at)),
            _ => error.at(at),
        })?;
        let resolved = match found {
            resolve::ResolvedCall::Function(resolved) => resolved,
            resolve::ResolvedCall::Cast(target) => {
                let ty = self.type_of(target);
                let mut arguments = arguments;
                let argument = arguments.pop();
                let argument =
                    argument.ok_or_else(|| SqlError::internal("a cast has an argument"))?;
                return self.cast(argument, ty, at).map(ResolvedCall::Cast);
            }
        };
        let defaults = self.default_arguments(resolved.function, &resolved.defaults)?;
        let mut converted = self.converted_arguments(arguments, &resolved.arguments)?;
        let spreads = is_variadic && resolved.arguments.last() == Some(&oids::ANY);
        // The arguments of a hypothetical-set aggregate have the types of its sort keys.
        let aggregate = self.catalog().aggregate(resolved.function);
        let is_hypothetical = aggregate.is_some_and(|row| row.kind == b'h');
        // A function of arguments of any type prints a literal as it is.
        if resolved.function != PG_TYPEOF && !is_hypothetical {
            for argument in &mut converted {
                self.resolve_unknown(argument)?;
            }
        }
        if let Some(variadic) = resolved.variadic {
            let elements = converted.split_off(variadic.first.min(converted.len()));
            let collation = self.collation_of(&elements, at)?;
            let kind = ExprKind::Array { elements, nested: false };
            let collation = self.result_collation(variadic.array, collation);
            let ty = SqlType { collation, ..self.type_of(variadic.array) };
            converted.push(Expr::new(kind, ty));
        }
        let mut placed: Vec<(usize, Expr)> =
            resolved.parameters.iter().copied().zip(converted).collect();
        placed.extend(defaults);
        placed.sort_by_key(|(parameter, _)| *parameter);
        let arguments = placed.into_iter().map(|(_, argument)| argument).collect();
        let (function, result) = (resolved.function, resolved.result);
        Ok(ResolvedCall::Function(Resolved { function, arguments, result, spreads }))
    }
}
