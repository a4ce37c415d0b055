//! Clauses of filters that we evaluate ourselves, from their bound expressions.
//!
//! Constants are computed when the statement is planned. That is as good as when it is executed: a
//! plan is executed once, and stable functions such as `now()` have one value for the whole statement.

use trunkline_format::Oid;
use trunkline_format::btree::Comparison;
use trunkline_format::deform::Attribute;
use trunkline_sql::bound::{BooleanTest, ColumnId, Expr, ExprKind, Quantifier};
use trunkline_sql::functions::ArrayView;
use trunkline_sql::values::PayloadReader;

use super::clause::{
    Clause, Constant, FilterColumn, Operation, RowField, RowTest, Test, boolean_test, commuted,
    test,
};
use crate::environment::Environment;
use crate::expression::{BOOL, Frame, Program};

/// Makes clauses of bound expressions.
pub(crate) struct BoundClauses<'a> {
    environment: &'a Environment,
    columns: &'a dyn Fn(ColumnId) -> Option<FilterColumn>,
}

impl<'a> BoundClauses<'a> {
    pub(crate) fn new(
        environment: &'a Environment,
        columns: &'a dyn Fn(ColumnId) -> Option<FilterColumn>,
    ) -> Self {
        Self { environment, columns }
    }

    /// The clause of a condition.
    pub(crate) fn of(&self, condition: &Expr) -> Clause {
        match &condition.kind {
            ExprKind::And(operands) => {
                Clause::All(operands.iter().map(|operand| self.of(operand)).collect())
            }
            ExprKind::Or(operands) => {
                Clause::Any(operands.iter().map(|operand| self.of(operand)).collect())
            }
            ExprKind::Call { function, arguments, collation, .. } if condition.ty.oid == BOOL => {
                match &**arguments {
                    [left, right] => self.comparison(*function, *collation, left, right),
                    _ => Clause::Other,
                }
            }
            ExprKind::ArrayComparison { comparison, quantifier: Quantifier::Any, left, array } => {
                let elements = self.column(left).zip(self.elements(array));
                let Some((column, elements)) = elements else { return Clause::Other };
                let operation = Operation::Function {
                    function: comparison.function,
                    commuted: false,
                    collation: comparison.collation,
                };
                test(column, Test::AnyOf(operation, elements))
            }
            ExprKind::IsNull { argument, is_row: false } => self.null_test(argument, Test::IsNull),
            ExprKind::IsNotNull { argument, is_row: false } => {
                self.null_test(argument, Test::IsNotNull)
            }
            ExprKind::BooleanTest { argument, test: tested } => {
                let Some(column) = self.column(argument) else { return Clause::Other };
                match tested {
                    BooleanTest::IsTrue => boolean_test(column, true),
                    BooleanTest::IsFalse => boolean_test(column, false),
                    BooleanTest::IsUnknown => test(column, Test::IsNull),
                    BooleanTest::IsNotUnknown => test(column, Test::IsNotNull),
                    BooleanTest::IsNotTrue | BooleanTest::IsNotFalse => Clause::Other,
                }
            }
            ExprKind::Not(operand) => match self.column(operand) {
                Some(column) => boolean_test(column, false),
                None => Clause::Other,
            },
            ExprKind::Column(_) => match self.column(condition) {
                Some(column) => boolean_test(column, true),
                None => Clause::Other,
            },
            ExprKind::RowComparison { less, equal, pairs } => self.row(*less, *equal, pairs),
            _ => Clause::Other,
        }
    }

    /// The column of an expression. What only changes the type or the collation doesn't matter here:
    /// the function that compares decides which values it is given.
    fn column(&self, expr: &Expr) -> Option<FilterColumn> {
        match &expr.kind {
            ExprKind::Column(id) => (self.columns)(*id),
            ExprKind::Relabel(argument) | ExprKind::Collate(argument) => self.column(argument),
            _ => None,
        }
    }

    fn comparison(&self, function: Oid, collation: Oid, left: &Expr, right: &Expr) -> Clause {
        let (column, constant, commuted) = match (self.column(left), self.column(right)) {
            (Some(column), None) => (column, right, false),
            (None, Some(column)) => (column, left, true),
            _ => return Clause::Other,
        };
        match self.constant(constant) {
            Some(constant) => {
                let operation = Operation::Function { function, commuted, collation };
                test(column, Test::Compare(operation, constant))
            }
            None => Clause::Other,
        }
    }

    fn null_test(&self, argument: &Expr, tested: Test) -> Clause {
        self.column(argument).map_or(Clause::Other, |column| test(column, tested))
    }

    /// A row comparison whose columns are all on one side.
    fn row(&self, less: bool, equal: bool, pairs: &[(Expr, Expr, Oid, Oid)]) -> Clause {
        let mut comparison = match (less, equal) {
            (true, false) => Comparison::Less,
            (true, true) => Comparison::LessOrEqual,
            (false, true) => Comparison::GreaterOrEqual,
            (false, false) => Comparison::Greater,
        };
        let swapped = pairs.first().is_some_and(|(left, ..)| self.column(left).is_none());
        if swapped {
            comparison = commuted(comparison);
        }
        let fields = pairs.iter().map(|(left, right, compare, collation)| {
            let (column, constant) = if swapped { (right, left) } else { (left, right) };
            Some(RowField {
                column: self.column(column)?.place,
                constant: self.constant(constant)?,
                compare: *compare,
                collation: *collation,
            })
        });
        match fields.collect::<Option<Vec<_>>>() {
            Some(fields) if !fields.is_empty() => Clause::Row(RowTest { comparison, fields }),
            _ => Clause::Other,
        }
    }

    /// The value of an expression without columns; `None` if it has columns, can change while the
    /// statement runs, or can't be computed. In the last case, the filter will fail with its own error,
    /// if it is evaluated at all.
    fn constant(&self, expr: &Expr) -> Option<Constant> {
        // These are stored values already.
        let stored = match &expr.kind {
            ExprKind::Parameter(number) => {
                let at = usize::try_from(*number).ok()?.checked_sub(1)?;
                Some(self.environment.parameters.get(at)?)
            }
            ExprKind::Constant(payload) => Some(payload),
            _ => None,
        };
        if let Some(stored) = stored {
            let constant = stored.as_ref().map(|payload| Constant::Stored(payload.clone()));
            return Some(constant.unwrap_or(Constant::Null));
        }
        if expr.any(&mut |part| matches!(part.kind, ExprKind::Column(_))) {
            return None;
        }
        let program = Program::compile(self.environment, expr).ok()?;
        if program.is_volatile() {
            return None;
        }
        let frame = Frame::new(Vec::new(), 1, &self.environment.settings);
        let array = program.evaluate(&frame).ok()?;
        let mut values = PayloadReader::new(program.carrier(), &array).ok()?;
        Some(values.get(0).map_or(Constant::Null, |payload| Constant::Stored(payload.into())))
    }

    /// The elements of a constant array. A null array gives null, as a single null element does.
    fn elements(&self, array: &Expr) -> Option<Vec<Constant>> {
        if let ExprKind::Array { elements, nested: false } = &array.kind {
            return elements.iter().map(|element| self.constant(element)).collect();
        }
        let payload = match self.constant(array)? {
            Constant::Null => return Some(vec![Constant::Null]),
            Constant::Stored(payload) => payload,
            Constant::Integer(_) => return None,
        };
        let catalog = &self.environment.settings.catalog;
        let element = catalog.type_row(catalog.type_row(array.ty.oid)?.element)?;
        let attribute = Attribute { len: element.len, align: element.align };
        let elements = ArrayView::parse(&payload).ok()?.elements(attribute).ok()?;
        let stored = |payload: &[u8]| Constant::Stored(payload.into());
        Some(
            elements
                .iter()
                .map(|element| element.as_deref().map_or(Constant::Null, stored))
                .collect(),
        )
    }
}
