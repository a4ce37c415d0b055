//! The text of one expression.

use trunkline_format::Oid;
use trunkline_format::text_output::write_identifier;

use crate::bound::{
    BooleanTest, CallForm, ColumnId, Expr, ExprKind, Quantifier, SqlType, with_stack,
};
use crate::catalog::oids::PG_CATALOG;
use crate::catalog::{DOMAIN_VIOLATION, Namespace};
use crate::error::SqlError;
use crate::functions::{CallSettings, literal};

/// Prints expressions. The caller prints their columns.
#[derive(Clone, Copy)]
pub struct ExpressionPrinter<'a> {
    settings: &'a CallSettings,
    names: Namespace<'a>,
    parameters: &'a [Option<Box<[u8]>>],
}

/// Prints a column.
type ColumnText<'c> = dyn Fn(ColumnId) -> Result<String, SqlError> + 'c;

impl std::fmt::Debug for ExpressionPrinter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExpressionPrinter")
    }
}

impl<'a> ExpressionPrinter<'a> {
    /// Names are printed as the search path needs them, and parameters by their values.
    pub fn new(
        settings: &'a CallSettings,
        names: Namespace<'a>,
        parameters: &'a [Option<Box<[u8]>>],
    ) -> Self {
        Self { settings, names, parameters }
    }

    /// A name as an identifier.
    pub fn quoted(&self, name: &str) -> String {
        let mut text = Vec::new();
        write_identifier(name.as_bytes(), self.settings.major, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// A constant, with its type if the text alone would be of another one.
    ///
    /// # Errors
    /// 0A000: values of the type can't be printed.
    pub fn constant(&self, ty: SqlType, value: Option<&[u8]>) -> Result<String, SqlError> {
        literal(
            &self.settings.text_options(),
            self.names,
            (ty.oid, ty.modifier),
            value,
            Some(false),
        )
    }

    /// A type with its modifier.
    pub fn type_name(&self, ty: SqlType) -> String {
        self.names.format_type(ty.oid, Some(ty.modifier))
    }

    /// `COLLATE` and the name of a collation, if it isn't the one that the type has by itself.
    pub fn collation(&self, ty: SqlType) -> Option<String> {
        let catalog = self.names.catalog();
        let own = catalog.data_type(ty.oid).map_or(Oid(0), |row| row.collation);
        if ty.collation == Oid(0) || ty.collation == own {
            return None;
        }
        self.collation_name(ty.collation).map(|name| format!("COLLATE {name}"))
    }

    fn collation_name(&self, collation: Oid) -> Option<String> {
        let catalog = self.names.catalog();
        let row = catalog.collation(collation)?;
        Some(self.quoted(&catalog.encoding().decode(&row.name)))
    }

    /// The name of a function, with its schema if the search path doesn't find it.
    ///
    /// # Errors
    /// XX000: the catalog doesn't have it.
    pub fn function(&self, function: Oid) -> Result<String, SqlError> {
        let catalog = self.names.catalog();
        let row = catalog.procedure(function).ok_or_else(|| missing("function", function))?;
        let name = self.quoted(&catalog.encoding().decode(&row.name));
        if self.names.is_function_visible(function) == Some(true) {
            return Ok(name);
        }
        Ok(self.in_schema(row.schema, &name))
    }

    fn in_schema(&self, schema: Oid, name: &str) -> String {
        let catalog = self.names.catalog();
        match catalog.database().schema(schema) {
            Some(schema) => {
                format!("{}.{name}", self.quoted(&catalog.encoding().decode(&schema.name)))
            }
            None => name.to_owned(),
        }
    }

    fn operator(&self, operator: Oid) -> Result<String, SqlError> {
        let catalog = self.names.catalog();
        let row = catalog.operator(operator).ok_or_else(|| missing("operator", operator))?;
        let name = catalog.encoding().decode(&row.name);
        if self.names.is_operator_visible(operator) == Some(true) {
            return Ok(name);
        }
        Ok(format!("OPERATOR({})", self.in_schema(row.schema, &name)))
    }

    /// An expression. `implicit` says whether a cast that the binder added is shown if it is the
    /// whole expression.
    ///
    /// # Errors
    /// 0A000: a constant can't be printed. Otherwise, those of `column`.
    pub fn expression(
        &self,
        expr: &Expr,
        implicit: bool,
        column: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        with_stack(|| self.print(expr, implicit, column))
    }

    fn list(&self, exprs: &[Expr], column: &ColumnText<'_>) -> Result<String, SqlError> {
        let texts = exprs.iter().map(|expr| self.expression(expr, true, column));
        Ok(texts.collect::<Result<Vec<_>, _>>()?.join(", "))
    }

    fn print(
        &self,
        expr: &Expr,
        implicit: bool,
        column: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let text = |expr: &Expr| self.expression(expr, true, column);
        let plain = |expr: &Expr| self.expression(expr, false, column);
        Ok(match &expr.kind {
            ExprKind::Column(id) => column(*id)?,
            ExprKind::Constant(value) => self.constant(expr.ty, value.as_deref())?,
            ExprKind::Parameter(number) => {
                let place = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                match place.and_then(|place| self.parameters.get(place)) {
                    Some(value) => self.constant(expr.ty, value.as_deref())?,
                    None => format!("${number}"),
                }
            }
            ExprKind::Call { function, arguments, form, .. } => {
                return self.call(expr, *function, arguments, *form, implicit, column);
            }
            ExprKind::ArrayComparison { comparison, quantifier, left, array } => {
                let word = if *quantifier == Quantifier::Any { "ANY" } else { "ALL" };
                let operator = self.operator(comparison.operator)?;
                format!("({} {operator} {word} ({}))", text(left)?, text(array)?)
            }
            ExprKind::And(operands) => self.joined(operands, " AND ", column)?,
            ExprKind::Or(operands) => self.joined(operands, " OR ", column)?,
            ExprKind::Not(operand) => format!("(NOT {})", plain(operand)?),
            ExprKind::IsNull { argument, .. } => format!("({} IS NULL)", text(argument)?),
            ExprKind::IsNotNull { argument, .. } => format!("({} IS NOT NULL)", text(argument)?),
            ExprKind::BooleanTest { argument, test } => {
                format!("({} IS {})", plain(argument)?, test_name(*test))
            }
            ExprKind::Distinct { left, right, .. } => {
                format!("({} IS DISTINCT FROM {})", text(left)?, text(right)?)
            }
            ExprKind::NullIf { left, right, .. } => {
                format!("NULLIF({}, {})", text(left)?, text(right)?)
            }
            // A cast to a domain, which PostgreSQL shows without the constraints.
            ExprKind::Case { operand: Some(operand), arms, .. }
                if !arms.is_empty() && arms.iter().all(|(_, result)| is_violation(result)) =>
            {
                format!("({})::{}", text(operand)?, self.type_name(expr.ty))
            }
            ExprKind::Case { operand, arms, otherwise } => {
                return self.case(operand.as_deref(), arms, otherwise, column);
            }
            ExprKind::CaseOperand => "CASE_TEST_EXPR".to_owned(),
            ExprKind::ArrayElement => "ELEMENT".to_owned(),
            ExprKind::Coalesce(operands) => format!("COALESCE({})", self.list(operands, column)?),
            ExprKind::Extreme { greatest, arguments, .. } => {
                let name = if *greatest { "GREATEST" } else { "LEAST" };
                format!("{name}({})", self.list(arguments, column)?)
            }
            ExprKind::Array { elements, .. } if elements.is_empty() => {
                format!("ARRAY[]::{}", self.type_name(expr.ty))
            }
            ExprKind::Array { elements, .. } => format!("ARRAY[{}]", self.list(elements, column)?),
            ExprKind::Row { fields, .. } => format!("ROW({})", self.list(fields, column)?),
            ExprKind::RowComparison { less, equal, pairs } => {
                let operator = match (less, equal) {
                    (true, false) => "<",
                    (true, true) => "<=",
                    (false, true) => ">=",
                    (false, false) => ">",
                };
                let row = |side: fn(&(Expr, Expr, Oid, Oid)) -> &Expr| {
                    let texts = pairs.iter().map(|pair| text(side(pair)));
                    texts.collect::<Result<Vec<_>, _>>().map(|texts| texts.join(", "))
                };
                format!("(ROW({}) {operator} ROW({}))", row(|pair| &pair.0)?, row(|pair| &pair.1)?)
            }
            ExprKind::Relabel(argument)
            | ExprKind::ViaText(argument)
            | ExprKind::ArrayCast { argument, .. } => self.cast(argument, expr.ty, column)?,
            ExprKind::Collate(argument) => match self.collation_name(expr.ty.collation) {
                Some(name) => format!("({} COLLATE {name})", text(argument)?),
                None => text(argument)?,
            },
            ExprKind::Subscript { array, element, slice } => {
                return self.subscript(array, element, slice, column);
            }
            ExprKind::Field { row, number } => format!("({}).f{number}", text(row)?),
            ExprKind::Subquery(_) => "(SubPlan)".to_owned(),
        })
    }

    fn joined(
        &self,
        operands: &[Expr],
        word: &str,
        column: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let texts = operands.iter().map(|operand| self.expression(operand, false, column));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        Ok(match &*texts {
            [only] => only.clone(),
            all => format!("({})", all.join(word)),
        })
    }

    fn call(
        &self,
        expr: &Expr,
        function: Oid,
        arguments: &[Expr],
        form: CallForm,
        implicit: bool,
        column: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let text = |expr: &Expr| self.expression(expr, true, column);
        match (form, arguments) {
            (CallForm::Variadic, [others @ .., array]) => {
                let mut list: Vec<String> = others.iter().map(text).collect::<Result<_, _>>()?;
                list.push(format!("VARIADIC {}", text(array)?));
                Ok(format!("{}({})", self.function(function)?, list.join(", ")))
            }
            (CallForm::Operator(operator), [left, right]) => {
                let operator = self.operator(operator)?;
                Ok(format!("({} {operator} {})", text(left)?, text(right)?))
            }
            (CallForm::Operator(operator), [only]) => {
                Ok(format!("({} {})", self.operator(operator)?, text(only)?))
            }
            (CallForm::ImplicitCast, [first, ..]) if !implicit => {
                self.expression(first, false, column)
            }
            (CallForm::ExplicitCast | CallForm::ImplicitCast, [first, ..]) => {
                self.cast(first, expr.ty, column)
            }
            _ => {
                if let Some(text) = self.own_syntax(function, arguments, column)? {
                    return Ok(text);
                }
                Ok(format!("{}({})", self.function(function)?, self.list(arguments, column)?))
            }
        }
    }

    /// A call of a function that SQL has syntax of its own for.
    fn own_syntax(
        &self,
        function: Oid,
        arguments: &[Expr],
        column: &ColumnText<'_>,
    ) -> Result<Option<String>, SqlError> {
        let row = self.names.catalog().procedure(function);
        let row = row.filter(|row| row.schema == PG_CATALOG);
        let text = |expr: &Expr| self.expression(expr, true, column);
        Ok(match (row.map(|row| &*row.name), arguments) {
            (Some(b"extract"), [field, source]) => match &field.kind {
                ExprKind::Constant(Some(field)) => {
                    let field = String::from_utf8_lossy(field);
                    Some(format!("EXTRACT({field} FROM {})", text(source)?))
                }
                _ => None,
            },
            (Some(b"timezone"), [zone, time]) => {
                Some(format!("({} AT TIME ZONE {})", text(time)?, text(zone)?))
            }
            _ => None,
        })
    }

    /// `x::type`.
    fn cast(
        &self,
        argument: &Expr,
        ty: SqlType,
        column: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let name = self.type_name(ty);
        if let ExprKind::Constant(value) = &argument.kind
            && argument.ty.oid == ty.oid
            && argument.ty.modifier == -1
        {
            let value = value.as_deref();
            let shown =
                literal(&self.settings.text_options(), self.names, (ty.oid, -1), value, None)?;
            return Ok(format!("{shown}::{name}"));
        }
        Ok(format!("({})::{name}", self.expression(argument, false, column)?))
    }

    fn case(
        &self,
        operand: Option<&Expr>,
        arms: &[(Expr, Expr)],
        otherwise: &Expr,
        column: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let mut text = "CASE".to_owned();
        if let Some(operand) = operand {
            text = format!("{text} {}", self.expression(operand, true, column)?);
        }
        for (condition, result) in arms {
            // Of the comparison with the operand, only what it is compared with is written.
            let shown = match (&condition.kind, operand) {
                (ExprKind::Call { arguments, .. }, Some(_)) => match &**arguments {
                    [_, right] => right,
                    _ => condition,
                },
                _ => condition,
            };
            let shown = self.expression(shown, false, column)?;
            let result = self.expression(result, true, column)?;
            text = format!("{text} WHEN {shown} THEN {result}");
        }
        Ok(format!("{text} ELSE {} END", self.expression(otherwise, true, column)?))
    }

    fn subscript(
        &self,
        array: &Expr,
        element: &[Expr],
        slice: &[(Option<Expr>, Option<Expr>)],
        column: &ColumnText<'_>,
    ) -> Result<String, SqlError> {
        let plain = |expr: &Expr| self.expression(expr, false, column);
        let mut text = match array.kind {
            ExprKind::Column(_) => plain(array)?,
            _ => format!("({})", plain(array)?),
        };
        for subscript in element {
            text = format!("{text}[{}]", plain(subscript)?);
        }
        let bound = |bound: &Option<Expr>| bound.as_ref().map_or(Ok(String::new()), plain);
        for (lower, upper) in slice {
            text = format!("{text}[{}:{}]", bound(lower)?, bound(upper)?);
        }
        Ok(text)
    }
}

fn missing(what: &str, oid: Oid) -> SqlError {
    SqlError::internal(format!("cache lookup failed for {what} {oid}"))
}

fn test_name(test: BooleanTest) -> &'static str {
    match test {
        BooleanTest::IsTrue => "TRUE",
        BooleanTest::IsNotTrue => "NOT TRUE",
        BooleanTest::IsFalse => "FALSE",
        BooleanTest::IsNotFalse => "NOT FALSE",
        BooleanTest::IsUnknown => "UNKNOWN",
        BooleanTest::IsNotUnknown => "NOT UNKNOWN",
    }
}

/// Whether an expression fails with the error of a domain.
fn is_violation(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Call { function, .. } if function == DOMAIN_VIOLATION)
}
