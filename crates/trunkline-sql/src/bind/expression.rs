//! Expressions: every kind of syntax node becomes a bound expression with a type.

use trunkline_format::Oid;

use super::binder::{Binder, Context};
use crate::bound::{
    BooleanTest, CallForm, Comparison, Expr, ExprKind, Quantifier, SqlType, with_stack,
};
use crate::catalog::{ObjectName, oids};
use crate::error::{SqlError, SqlState};
use crate::resolve::named_type;
use crate::syntax::{
    CaseBranch, Constant, Expression, ExpressionKind, OperatorName, QualifiedName,
    SqlValueFunction, SubLinkKind, TypeName,
};

/// The type of conditions.
pub(super) const BOOL: SqlType = SqlType::new(oids::BOOL);

impl Binder<'_> {
    /// Binds an expression.
    ///
    /// # Errors
    /// What is wrong with it, or what of it we don't support.
    pub(super) fn expression(
        &mut self,
        node: &Expression,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let expr = with_stack(|| self.by_kind(node, context))?;
        // As PostgreSQL's `exprLocation`, the location is the leftmost one. Only conflicts of collations
        // are reported at the word COLLATE.
        Ok(match expr.kind {
            ExprKind::Collate(_) => expr,
            _ => expr.at(node.span.start),
        })
    }

    fn by_kind(&mut self, node: &Expression, context: &mut Context<'_>) -> Result<Expr, SqlError> {
        let at = node.location;
        match &node.kind {
            ExpressionKind::ColumnReference(reference) => {
                self.column_reference(reference, at, context)
            }
            ExpressionKind::Parameter(number) if !self.frames.is_empty() => {
                let missing = || Err(SqlError::internal("a parameter without a function"));
                self.function_argument(*number, at).unwrap_or_else(missing)
            }
            ExpressionKind::Parameter(number) => {
                let oid = self.parameters.find(*number, at)?;
                let ty = self.type_of(oid);
                Ok(Expr::new(ExprKind::Parameter(*number), ty).at(at))
            }
            ExpressionKind::Constant(constant) => self.constant(constant, at),
            ExpressionKind::Indirection { base, steps } => {
                self.indirection(base, steps, at, context)
            }
            ExpressionKind::Operator { operator, left, right } => {
                self.operator_node(operator, left.as_deref(), right, at, context)
            }
            ExpressionKind::ArrayComparison { operator, quantifier, left, right } => {
                let left = self.expression(left, context)?;
                let right = self.expression(right, context)?;
                let quantifier = quantifier_of(*quantifier);
                self.array_comparison(operator, quantifier, left, right, at)
            }
            ExpressionKind::Distinct { negated, left, right } => {
                let expr = self.distinct(left, right, at, context)?;
                Ok(if *negated { not(expr) } else { expr })
            }
            ExpressionKind::NullIf { left, right } => self.null_if(left, right, at, context),
            ExpressionKind::In { negated, left, list } => {
                self.in_list(*negated, left, list, at, context)
            }
            ExpressionKind::Between { negated, symmetric, operand, low, high } => {
                let operand = self.expression(operand, context)?;
                let low = self.expression(low, context)?;
                let high = self.expression(high, context)?;
                self.between(*negated, *symmetric, (operand, low, high), at)
            }
            ExpressionKind::And(parts) => self.junction("AND", parts, context, ExprKind::And),
            ExpressionKind::Or(parts) => self.junction("OR", parts, context, ExprKind::Or),
            ExpressionKind::Not(argument) => {
                let argument = self.expression(argument, context)?;
                Ok(not(self.require_boolean(argument, "NOT")?))
            }
            ExpressionKind::NullTest { negated, argument } => {
                let argument = Box::new(self.expression(argument, context)?);
                let oid = argument.ty.oid;
                let is_row = oid == oids::RECORD || self.catalog().is_composite(oid);
                let kind = match negated {
                    false => ExprKind::IsNull { argument, is_row },
                    true => ExprKind::IsNotNull { argument, is_row },
                };
                Ok(Expr::new(kind, BOOL))
            }
            ExpressionKind::BooleanTest { negated, value, argument } => {
                let (test, name) = boolean_test(*negated, *value);
                let argument = self.expression(argument, context)?;
                let argument = Box::new(self.require_boolean(argument, name)?);
                Ok(Expr::new(ExprKind::BooleanTest { argument, test }, BOOL))
            }
            ExpressionKind::FunctionCall(call) => self.function_call(call, at, context),
            ExpressionKind::SqlValueFunction { function, precision } => {
                self.value_function(*function, *precision, at)
            }
            ExpressionKind::TypeCast { argument, type_name } => {
                self.type_cast(argument, type_name, at, context)
            }
            ExpressionKind::Collate { argument, collation } => {
                let argument = self.expression(argument, context)?;
                self.collate(argument, collation, at)
            }
            ExpressionKind::Case { argument, branches, default } => {
                self.case(argument.as_deref(), branches, default.as_deref(), context)
            }
            ExpressionKind::Coalesce(arguments) => {
                let arguments = self.expressions(arguments, context)?;
                let (ty, arguments) = self.common_type("COALESCE", arguments, at)?;
                Ok(Expr::new(ExprKind::Coalesce(arguments), ty))
            }
            ExpressionKind::Greatest(arguments) => self.extreme(true, arguments, at, context),
            ExpressionKind::Least(arguments) => self.extreme(false, arguments, at, context),
            ExpressionKind::Row { fields, .. } => {
                let fields = self.row_elements(fields, context)?;
                let names = (1..=fields.len()).map(|at| format!("f{at}").into()).collect();
                let ty = SqlType::new(oids::RECORD);
                Ok(Expr::new(ExprKind::Row { fields, names }, ty))
            }
            ExpressionKind::Array(elements) => self.array_constructor(elements, None, at, context),
            ExpressionKind::SubLink { kind, query } => self.sub_link(kind, query, at, context),
            ExpressionKind::Grouping(arguments) => self.grouping_call(arguments, at, context),
        }
    }

    /// Binds several expressions.
    pub(super) fn expressions(
        &mut self,
        nodes: &[Expression],
        context: &mut Context<'_>,
    ) -> Result<Vec<Expr>, SqlError> {
        nodes.iter().map(|node| self.expression(node, context)).collect()
    }

    /// The fields of `ROW(…)`, in which `t.*` stands for columns.
    fn row_elements(
        &mut self,
        nodes: &[Expression],
        context: &mut Context<'_>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut fields = Vec::new();
        for node in nodes {
            match self.star(node, context.scope, context.level)? {
                Some(targets) => fields.extend(targets.into_iter().map(|target| target.expr)),
                None => fields.push(self.expression(node, context)?),
            }
        }
        Ok(fields)
    }

    /// A literal (`make_const`).
    fn constant(&self, constant: &Constant, at: u32) -> Result<Expr, SqlError> {
        let value = |oid: Oid, payload: &[u8]| {
            Expr::new(ExprKind::Constant(Some(payload.into())), self.type_of(oid)).at(at)
        };
        match constant {
            Constant::Null => Ok(Expr::null(SqlType::new(oids::UNKNOWN)).at(at)),
            Constant::Boolean(boolean) => Ok(value(oids::BOOL, &[u8::from(*boolean)])),
            Constant::Integer(number) => Ok(value(oids::INT4, &number.to_le_bytes())),
            Constant::Float(text) => match whole_number(text) {
                Some(number) => Ok(match i32::try_from(number) {
                    Ok(number) => value(oids::INT4, &number.to_le_bytes()),
                    Err(_) => value(oids::INT8, &number.to_le_bytes()),
                }),
                None => self.read_constant(text, self.type_of(oids::NUMERIC), at),
            },
            Constant::String(text) => Ok(value(oids::UNKNOWN, text.as_bytes())),
            Constant::BitString(text) => self.read_constant(text, self.type_of(oids::BIT), at),
        }
    }

    /// `AND` and `OR`.
    fn junction(
        &mut self,
        name: &str,
        parts: &[Expression],
        context: &mut Context<'_>,
        kind: fn(Vec<Expr>) -> ExprKind,
    ) -> Result<Expr, SqlError> {
        let mut bound = Vec::new();
        for part in parts {
            let part = self.expression(part, context)?;
            bound.push(self.require_boolean(part, name)?);
        }
        Ok(Expr::new(kind(bound), BOOL))
    }

    /// An operator.
    fn operator_node(
        &mut self,
        operator: &OperatorName,
        left: Option<&Expression>,
        right: &Expression,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let name = operator_name(operator);
        if let Some(left) = left
            && let (ExpressionKind::Row { fields: lefts, .. }, ExpressionKind::Row { fields, .. }) =
                (&left.kind, &right.kind)
        {
            let lefts = self.row_elements(lefts, context)?;
            let rights = self.row_elements(fields, context)?;
            return self.row_comparison(name, lefts, rights, at);
        }
        if let Some(ExpressionKind::Row { fields, .. }) = left.map(|left| &left.kind)
            && let ExpressionKind::SubLink { kind: SubLinkKind::Scalar, query } = &right.kind
        {
            let lefts = self.row_elements(fields, context)?;
            return self.row_and_subquery(name, lefts, query, at, context);
        }
        let left = left.map(|left| self.expression(left, context)).transpose()?;
        let right = self.expression(right, context)?;
        self.apply_operator(name, left, right, at)
    }

    /// An infix operator of the search path.
    pub(super) fn operator(
        &mut self,
        symbol: &str,
        left: Expr,
        right: Expr,
        at: u32,
    ) -> Result<Expr, SqlError> {
        self.apply_operator(ObjectName::unqualified(symbol), Some(left), right, at)
    }

    /// `IS DISTINCT FROM`.
    fn distinct(
        &mut self,
        left: &Expression,
        right: &Expression,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        if let (ExpressionKind::Row { fields: lefts, .. }, ExpressionKind::Row { fields, .. }) =
            (&left.kind, &right.kind)
        {
            return self.distinct_rows(lefts, fields, at, context);
        }
        let null =
            |node: &Expression| matches!(node.kind, ExpressionKind::Constant(Constant::Null));
        // As in PostgreSQL, a comparison with NULL is a test for null.
        let tested = match (null(left), null(right)) {
            (_, true) => Some(left),
            (true, false) => Some(right),
            _ => None,
        };
        if let Some(tested) = tested {
            let argument = Box::new(self.expression(tested, context)?);
            // A row is tested as a whole here.
            return Ok(Expr::new(ExprKind::IsNotNull { argument, is_row: false }, BOOL));
        }
        let left = self.expression(left, context)?;
        let right = self.expression(right, context)?;
        let equals = self.operator("=", left, right, at)?;
        let (equality, left, right) = comparison_parts(equals, "IS DISTINCT FROM", at)?;
        Ok(Expr::new(ExprKind::Distinct { equality, left, right }, BOOL))
    }

    /// `ROW(…) IS DISTINCT FROM ROW(…)`: whether any pair is distinct.
    fn distinct_rows(
        &mut self,
        lefts: &[Expression],
        rights: &[Expression],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let lefts = self.row_elements(lefts, context)?;
        let rights = self.row_elements(rights, context)?;
        if lefts.len() != rights.len() {
            let message = "unequal number of entries in row expressions";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
        }
        let mut parts = Vec::new();
        for (left, right) in lefts.into_iter().zip(rights) {
            let equals = self.operator("=", left, right, at)?;
            let (equality, left, right) = comparison_parts(equals, "IS DISTINCT FROM", at)?;
            parts.push(Expr::new(ExprKind::Distinct { equality, left, right }, BOOL));
        }
        match parts.is_empty() {
            true => Ok(Expr::new(ExprKind::Constant(Some(Box::new([0]))), BOOL)),
            false => Ok(joined(parts, false)),
        }
    }

    /// `NULLIF`.
    fn null_if(
        &mut self,
        left: &Expression,
        right: &Expression,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let left = self.expression(left, context)?;
        let right = self.expression(right, context)?;
        let equals = self.operator("=", left, right, at)?;
        let (equality, left, right) = comparison_parts(equals, "NULLIF", at)?;
        // The result has the type of the left operand as it is compared.
        let ty = left.ty;
        Ok(Expr::new(ExprKind::NullIf { equality, left, right }, ty))
    }

    /// `IN (list)`: `= ANY (array)` where the values have a common type, else a chain of `=`
    /// (`transformAExprIn`).
    fn in_list(
        &mut self,
        negated: bool,
        left: &Expression,
        list: &[Expression],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let symbol = if negated { "<>" } else { "=" };
        let name = ObjectName::unqualified(symbol);
        if let ExpressionKind::Row { fields, .. } = &left.kind {
            let mut parts = Vec::new();
            for item in list {
                let lefts = self.row_elements(fields, context)?;
                let ExpressionKind::Row { fields: rights, .. } = &item.kind else {
                    let message = "IN with a row on the left needs rows in its list";
                    return Err(SqlError::unsupported(message).at(item.span.start));
                };
                let rights = self.row_elements(rights, context)?;
                parts.push(self.row_comparison(name, lefts, rights, at)?);
            }
            return Ok(joined(parts, negated));
        }
        let left = self.expression(left, context)?;
        let items = self.expressions(list, context)?;
        let is_constant = |item: &Expr| matches!(item.kind, ExprKind::Constant(_));
        if items.len() > 1 && items.iter().all(is_constant) {
            // All items are constants: they can be one array, if they have a common type.
            let mut all = vec![left.clone()];
            all.extend(items.iter().cloned());
            let common = self.select_common_type(&all);
            let array = common.filter(|oid| *oid != oids::RECORD);
            let array = array.and_then(|oid| Some((oid, self.catalog().array_type(oid)?)));
            if let Some((element, array)) = array {
                let ty = self.type_of(element);
                let elements = items.into_iter().map(|item| self.coerce_implicit(item, ty));
                let elements = elements.collect::<Result<_, _>>()?;
                let kind = ExprKind::Array { elements, nested: false };
                let array = Expr::new(kind, self.type_of(array));
                let quantifier = if negated { Quantifier::All } else { Quantifier::Any };
                return self.scalar_array(name, quantifier, left, array, at);
            }
        }
        let parts = (items.into_iter())
            .map(|item| self.apply_operator(name, Some(left.clone()), item, at))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(joined(parts, negated))
    }

    /// `BETWEEN`. As in PostgreSQL, the operand is evaluated for each bound.
    fn between(
        &mut self,
        negated: bool,
        symmetric: bool,
        (operand, low, high): (Expr, Expr, Expr),
        at: u32,
    ) -> Result<Expr, SqlError> {
        let mut range = |low: Expr, high: Expr| {
            let (above, below) = if negated { ("<", ">") } else { (">=", "<=") };
            let above = self.operator(above, operand.clone(), low, at)?;
            let below = self.operator(below, operand.clone(), high, at)?;
            let parts = vec![above, below];
            let kind = if negated { ExprKind::Or(parts) } else { ExprKind::And(parts) };
            Ok::<Expr, SqlError>(Expr::new(kind, BOOL))
        };
        if !symmetric {
            return range(low, high);
        }
        let parts = vec![range(low.clone(), high.clone())?, range(high, low)?];
        let kind = if negated { ExprKind::And(parts) } else { ExprKind::Or(parts) };
        Ok(Expr::new(kind, BOOL))
    }

    /// `CASE`.
    fn case(
        &mut self,
        argument: Option<&Expression>,
        branches: &[CaseBranch],
        default: Option<&Expression>,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let operand = argument.map(|argument| {
            let mut operand = self.expression(argument, context)?;
            // Conditions can't be compared with an unknown value.
            self.resolve_unknown(&mut operand)?;
            Ok::<_, SqlError>(Box::new(operand))
        });
        let operand = operand.transpose()?;
        let (mut conditions, mut results) = (Vec::new(), Vec::new());
        // As in PostgreSQL, the default comes first when the common type is chosen.
        let at = branches.first().map_or(0, |branch| branch.result.location);
        let otherwise = match default {
            Some(default) => self.expression(default, context)?,
            None => Expr::null(SqlType::new(oids::UNKNOWN)),
        };
        for branch in branches {
            let condition = self.expression(&branch.condition, context)?;
            let condition = match &operand {
                Some(operand) => {
                    let tested = Expr::new(ExprKind::CaseOperand, operand.ty);
                    self.operator("=", tested, condition, branch.condition.location)?
                }
                None => condition,
            };
            conditions.push(self.require_boolean(condition, "CASE/WHEN")?);
            results.push(self.expression(&branch.result, context)?);
        }
        results.insert(0, otherwise);
        let (ty, mut results) = self.common_type("CASE", results, at)?;
        let otherwise = Box::new(results.remove(0));
        let arms = conditions.into_iter().zip(results).collect();
        Ok(Expr::new(ExprKind::Case { operand, arms, otherwise }, ty))
    }

    /// `GREATEST` and `LEAST`.
    fn extreme(
        &mut self,
        greatest: bool,
        arguments: &[Expression],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let name = if greatest { "GREATEST" } else { "LEAST" };
        let arguments = self.expressions(arguments, context)?;
        let (ty, arguments) = self.common_type(name, arguments, at)?;
        let compare = self.catalog().type_operators(ty.oid).compare.ok_or_else(|| {
            let type_name = self.names.type_name(ty.oid);
            let message = format!("could not identify a comparison function for type {type_name}");
            SqlError::new(SqlState::UNDEFINED_FUNCTION, message).at(at)
        })?;
        self.check_collation(ty.collation, at)?;
        let collation = ty.collation;
        let kind = ExprKind::Extreme { greatest, compare, collation, arguments };
        Ok(Expr::new(kind, ty))
    }

    /// `ARRAY[…]`. Inner lists without the word `ARRAY` are dimensions. With `target`, the array type
    /// that a cast around it names, the elements are cast to its element type.
    pub(super) fn array_constructor(
        &mut self,
        elements: &[Expression],
        target: Option<(Oid, Oid, i32)>,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let mut bound = Vec::new();
        let mut nested = false;
        for element in elements {
            let expr = match &element.kind {
                ExpressionKind::Array(inner) => {
                    nested = true;
                    self.array_constructor(inner, target, element.location, context)?
                }
                _ => self.expression(element, context)?,
            };
            nested |= self.catalog().element_type(expr.ty.oid).is_some()
                && expr.ty.oid != oids::INT2VECTOR
                && expr.ty.oid != oids::OIDVECTOR;
            bound.push(expr);
        }
        if let Some((array, element, modifier)) = target {
            let oid = if nested { array } else { element };
            let ty = self.type_with(oid, modifier);
            let cast = bound.into_iter().map(|expr| self.cast(expr, ty, at));
            let elements = cast.collect::<Result<_, _>>()?;
            let kind = ExprKind::Array { elements, nested };
            return Ok(Expr::new(kind, self.type_with(array, modifier)));
        }
        if bound.is_empty() {
            let message = "cannot determine type of empty array";
            let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
            let error = SqlError::new(SqlState::INDETERMINATE_DATATYPE, message);
            return Err(error.with_hint(hint).at(at));
        }
        let (ty, elements) = self.common_type("ARRAY", bound, at)?;
        let array = match nested {
            true => Some(ty.oid),
            false => self.catalog().array_type(ty.oid),
        };
        let array = array.ok_or_else(|| {
            let name = self.names.type_name(ty.oid);
            let message = format!("could not find array type for data type {name}");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(at)
        })?;
        let array = SqlType { oid: array, ..ty };
        Ok(Expr::new(ExprKind::Array { elements, nested }, array))
    }

    /// A cast that is written.
    fn type_cast(
        &mut self,
        argument: &Expression,
        type_name: &TypeName,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let ty = self.named_type(type_name)?;
        let base = self.catalog().base_type_and_modifier(ty.oid, ty.modifier);
        let element = self.catalog().element_type(base.0);
        if let (ExpressionKind::Array(elements), Some(element)) = (&argument.kind, element) {
            let target = Some((base.0, element, base.1));
            let array = self.array_constructor(elements, target, argument.location, context)?;
            return self.cast(array, ty, at);
        }
        let argument = self.expression(argument, context)?;
        self.cast(argument, ty, at)
    }

    /// The type that a type name stands for.
    pub(super) fn named_type(&self, type_name: &TypeName) -> Result<SqlType, SqlError> {
        if type_name.setof {
            let message = "cannot cast to a set";
            let error = SqlError::new(SqlState::CANNOT_COERCE, message);
            return Err(error.at(type_name.span.start));
        }
        let (oid, modifier) = named_type(self.names, type_name)?;
        Ok(self.type_with(oid, modifier))
    }

    /// `COLLATE`.
    fn collate(
        &mut self,
        argument: Expr,
        collation: &QualifiedName,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let name = self.object_name(collation)?;
        let row = self.names.collation_named(name).map_err(|error| error.at(at))?;
        let oid = argument.ty.oid;
        let collatable = self.catalog().data_type(oid).is_some_and(|row| row.collation != Oid(0));
        if !collatable && oid != oids::UNKNOWN {
            let name = self.names.type_name(oid);
            let message = format!("collations are not supported by type {name}");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(at));
        }
        let argument = match oid {
            oids::UNKNOWN => self.coerce_unknown(argument, self.type_of(oids::TEXT))?,
            _ => argument,
        };
        let ty = SqlType { collation: row.oid, ..argument.ty };
        Ok(Expr::new(ExprKind::Collate(Box::new(argument)), ty).at(at))
    }

    /// `CURRENT_DATE` and its like: calls of the functions that compute the same, with a cast.
    fn value_function(
        &mut self,
        function: SqlValueFunction,
        precision: Option<i32>,
        at: u32,
    ) -> Result<Expr, SqlError> {
        let modifier = precision.map_or(-1, |precision| precision.clamp(0, 6));
        let (source, target) = match function {
            SqlValueFunction::CurrentDate => ("now", Some((oids::DATE, -1))),
            SqlValueFunction::CurrentTime => ("now", Some((oids::TIMETZ, modifier))),
            SqlValueFunction::CurrentTimestamp => ("now", Some((oids::TIMESTAMPTZ, modifier))),
            SqlValueFunction::LocalTime => ("now", Some((oids::TIME, modifier))),
            SqlValueFunction::LocalTimestamp => ("now", Some((oids::TIMESTAMP, modifier))),
            SqlValueFunction::CurrentRole
            | SqlValueFunction::CurrentUser
            | SqlValueFunction::User => ("current_user", None),
            SqlValueFunction::SessionUser => ("session_user", None),
            SqlValueFunction::CurrentCatalog => ("current_database", None),
            SqlValueFunction::CurrentSchema => ("current_schema", None),
        };
        let call = self.built_in_call(source, Vec::new(), at)?;
        match target {
            Some((oid, modifier)) => self.cast(call, self.type_with(oid, modifier), at),
            None => Ok(call),
        }
    }
}

/// The number that a literal stands for, if it is an integer that fits into int8.
fn whole_number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => return text.parse().ok(),
    };
    i64::from_str_radix(&format!("{sign}{}", digits.get(2..)?), radix).ok()
}

/// `NOT`.
pub(super) fn not(argument: Expr) -> Expr {
    Expr::new(ExprKind::Not(Box::new(argument)), BOOL)
}

/// Comparisons of which one must be true, or all.
pub(super) fn joined(mut parts: Vec<Expr>, all: bool) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ if all => Expr::new(ExprKind::And(parts), BOOL),
        _ => Expr::new(ExprKind::Or(parts), BOOL),
    }
}

/// An operator's name as it is looked up.
pub(super) fn operator_name(operator: &OperatorName) -> ObjectName<'_> {
    let schema = operator.qualification.last().map(|schema| schema.text.as_str());
    ObjectName { schema, name: &operator.symbol }
}

/// The quantifier of a comparison with an array or a subquery.
pub(super) fn quantifier_of(quantifier: crate::syntax::Quantifier) -> Quantifier {
    match quantifier {
        crate::syntax::Quantifier::Any => Quantifier::Any,
        crate::syntax::Quantifier::All => Quantifier::All,
    }
}

/// The operator and the operands of a comparison.
pub(super) fn comparison_parts(
    expr: Expr,
    construct: &str,
    at: u32,
) -> Result<(Comparison, Box<Expr>, Box<Expr>), SqlError> {
    let wrong = || {
        let message = format!("{construct} requires = operator to yield boolean");
        SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(at)
    };
    if expr.ty.oid != oids::BOOL {
        return Err(wrong());
    }
    let ExprKind::Call { function, arguments, collation, form: CallForm::Operator(operator) } =
        expr.kind
    else {
        return Err(wrong());
    };
    let mut operands = arguments.into_iter().map(Box::new);
    match (operands.next(), operands.next()) {
        (Some(left), Some(right)) => {
            Ok((Comparison { operator, function, collation }, left, right))
        }
        _ => Err(wrong()),
    }
}

fn boolean_test(negated: bool, value: Option<bool>) -> (BooleanTest, &'static str) {
    match (negated, value) {
        (false, Some(true)) => (BooleanTest::IsTrue, "IS TRUE"),
        (true, Some(true)) => (BooleanTest::IsNotTrue, "IS NOT TRUE"),
        (false, Some(false)) => (BooleanTest::IsFalse, "IS FALSE"),
        (true, Some(false)) => (BooleanTest::IsNotFalse, "IS NOT FALSE"),
        (false, None) => (BooleanTest::IsUnknown, "IS UNKNOWN"),
        (true, None) => (BooleanTest::IsNotUnknown, "IS NOT UNKNOWN"),
    }
}
