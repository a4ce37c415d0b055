//! Clauses of filters that the planner understands: comparisons of columns with literals, and what the
//! planner makes of them.
//!
//! The planner widens integers with casts, changes the order of operands, and turns `OR` into lists.
//! It doesn't say which operator a comparison was made from, but its meaning is known: the arrays of
//! the operands are compared (`expression/native.rs`).

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr as PlanExpr, Operator};
use trunkline_format::btree::Comparison;
use trunkline_sql::bound::{ColumnId, Expr};
use trunkline_sql::values::{Carrier, PayloadReader};

use super::bound_clause::BoundClauses;
use super::clause::{
    Clause, ColumnTest, Constant, FilterColumn, Operation, Test, boolean_test, commuted, test,
};
use crate::environment::Environment;
use crate::expression::ProgramFunction;

/// Makes clauses of the filters of a scan.
pub(crate) struct Clauses<'a> {
    environment: &'a Environment,
    /// The columns by their names in the plan. System columns have no place, and are left out.
    columns: &'a dyn Fn(&str) -> Option<FilterColumn>,
}

impl<'a> Clauses<'a> {
    pub(crate) fn new(
        environment: &'a Environment,
        columns: &'a dyn Fn(&str) -> Option<FilterColumn>,
    ) -> Self {
        Self { environment, columns }
    }

    /// The clause of a filter.
    pub(crate) fn of(&self, filter: &PlanExpr) -> Clause {
        match filter {
            PlanExpr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                Clause::All(vec![self.of(left), self.of(right)])
            }
            PlanExpr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                let mut parts = Vec::new();
                for part in [self.of(left), self.of(right)] {
                    match part {
                        Clause::Any(more) => parts.extend(more),
                        other => parts.push(other),
                    }
                }
                Clause::Any(parts)
            }
            PlanExpr::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.comparison(left, *op, right)
            }
            PlanExpr::Between(Between { expr, negated: false, low, high }) => Clause::All(vec![
                self.comparison(expr, Operator::GtEq, low),
                self.comparison(expr, Operator::LtEq, high),
            ]),
            PlanExpr::InList(list) if !list.negated => self.list(&list.expr, &list.list),
            PlanExpr::IsNull(argument) => self.null_test(argument, Test::IsNull),
            PlanExpr::IsNotNull(argument) => self.null_test(argument, Test::IsNotNull),
            PlanExpr::Column(_) => self.boolean(filter, true),
            PlanExpr::IsTrue(argument) => self.boolean(argument, true),
            PlanExpr::Not(argument) | PlanExpr::IsFalse(argument) => self.boolean(argument, false),
            PlanExpr::ScalarFunction(call) => {
                let function = call.func.inner().downcast_ref::<ProgramFunction>();
                function.map_or(Clause::Other, |function| self.program(function, &call.args))
            }
            _ => Clause::Other,
        }
    }

    /// The conditions that we evaluate ourselves, as they were written, with the places of their columns.
    /// All of them must be true.
    pub(crate) fn expressions(&self, filter: &PlanExpr) -> Vec<(Expr, Vec<(ColumnId, usize)>)> {
        match filter {
            PlanExpr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                [self.expressions(left), self.expressions(right)].concat()
            }
            PlanExpr::ScalarFunction(call) => {
                let function = call.func.inner().downcast_ref::<ProgramFunction>();
                let Some(function) = function else { return Vec::new() };
                let columns = function.columns().iter().zip(&call.args);
                let places = columns.filter_map(|(id, argument)| match argument {
                    PlanExpr::Column(column) => Some((*id, (self.columns)(&column.name)?.place)),
                    _ => None,
                });
                vec![(function.shown().clone(), places.collect())]
            }
            _ => Vec::new(),
        }
    }

    /// Comparisons for equality that must be false for all of a filter to be true.
    pub(crate) fn unequal(&self, filter: &PlanExpr) -> Vec<ColumnTest> {
        match filter {
            PlanExpr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                [self.unequal(left), self.unequal(right)].concat()
            }
            PlanExpr::BinaryExpr(BinaryExpr { left, op: Operator::NotEq, right }) => {
                match self.comparison(left, Operator::Eq, right) {
                    Clause::Test(test) => vec![test],
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// The clause of one of our functions. The planner may have replaced its arguments.
    fn program(&self, function: &ProgramFunction, arguments: &[PlanExpr]) -> Clause {
        let column = |id| {
            let place = function.columns().iter().position(|known| *known == id)?;
            match arguments.get(place)? {
                PlanExpr::Column(column) => (self.columns)(&column.name),
                _ => None,
            }
        };
        BoundClauses::new(self.environment, &column).of(function.shown())
    }

    /// A column, or one whose integers are widened.
    fn column(&self, expr: &PlanExpr) -> Option<(FilterColumn, bool)> {
        match expr {
            PlanExpr::Column(column) => Some(((self.columns)(&column.name)?, false)),
            PlanExpr::Cast(cast) => {
                let PlanExpr::Column(column) = &*cast.expr else { return None };
                let column = (self.columns)(&column.name)?;
                let widens = matches!(
                    (column.carrier, cast.field.data_type()),
                    (Carrier::Int16, DataType::Int32 | DataType::Int64)
                        | (Carrier::Int32, DataType::Int64)
                );
                widens.then_some((column, true))
            }
            _ => None,
        }
    }

    fn comparison(&self, left: &PlanExpr, operator: Operator, right: &PlanExpr) -> Clause {
        let found = match (self.column(left), self.column(right)) {
            (Some(column), None) => Some((column, right, false)),
            (None, Some(column)) => Some((column, left, true)),
            _ => None,
        };
        let Some(((column, widened), PlanExpr::Literal(value, _), swapped)) = found else {
            return Clause::Other;
        };
        let comparison = match operator {
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::LessOrEqual,
            Operator::Eq => Comparison::Equal,
            Operator::GtEq => Comparison::GreaterOrEqual,
            Operator::Gt => Comparison::Greater,
            Operator::IsNotDistinctFrom if value.is_null() => {
                return test(column, Test::IsNull);
            }
            Operator::IsNotDistinctFrom => Comparison::Equal,
            Operator::IsDistinctFrom if value.is_null() => return test(column, Test::IsNotNull),
            _ => return Clause::Other,
        };
        let comparison = if swapped { commuted(comparison) } else { comparison };
        let Some(constant) = constant(column.carrier, widened, value) else { return Clause::Other };
        let operation = Operation::Native { comparison, carrier: column.carrier };
        test(column, Test::Compare(operation, constant))
    }

    fn list(&self, expr: &PlanExpr, list: &[PlanExpr]) -> Clause {
        let Some((column, widened)) = self.column(expr) else { return Clause::Other };
        let constants = list.iter().map(|element| match element {
            PlanExpr::Literal(value, _) => constant(column.carrier, widened, value),
            _ => None,
        });
        let Some(constants) = constants.collect() else { return Clause::Other };
        let comparison = Comparison::Equal;
        let operation = Operation::Native { comparison, carrier: column.carrier };
        test(column, Test::AnyOf(operation, constants))
    }

    fn null_test(&self, argument: &PlanExpr, tested: Test) -> Clause {
        match self.column(argument) {
            Some((column, _)) => test(column, tested),
            None => Clause::Other,
        }
    }

    /// A boolean column that must have this value.
    fn boolean(&self, expr: &PlanExpr, value: bool) -> Clause {
        let Some((column, false)) = self.column(expr) else { return Clause::Other };
        boolean_test(column, value)
    }
}

/// A literal as a constant for a column with this carrier; `None` if their types differ.
fn constant(carrier: Carrier, widened: bool, value: &ScalarValue) -> Option<Constant> {
    if value.is_null() {
        return Some(Constant::Null);
    }
    let is_integer = matches!(carrier, Carrier::Int16 | Carrier::Int32 | Carrier::Int64);
    match value {
        ScalarValue::Int16(Some(value)) if is_integer => {
            return Some(Constant::Integer((*value).into()));
        }
        ScalarValue::Int32(Some(value)) if is_integer => {
            return Some(Constant::Integer((*value).into()));
        }
        ScalarValue::Int64(Some(value)) if is_integer => return Some(Constant::Integer(*value)),
        _ if widened => return None,
        _ => {}
    }
    if value.data_type() != carrier.data_type() {
        return None;
    }
    let array = value.to_array().ok()?;
    let mut reader = PayloadReader::new(carrier, &array).ok()?;
    reader.get(0).map(|payload| Constant::Stored(payload.into()))
}
