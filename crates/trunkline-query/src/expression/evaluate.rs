//! Evaluation of programs.
//!
//! Operands are evaluated in PostgreSQL's order, and only in the rows in which PostgreSQL would
//! evaluate them; see [`super::frame`].

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use datafusion::arrow::compute::{and_kleene, is_not_null, is_null, not, or_kleene};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BooleanTest, with_stack};
use trunkline_sql::functions::{Argument, CallSettings};

use super::arrays;
use super::frame::{Frame, Scatter, booleans, expanded, failed, selected};
use super::function::Function;
use super::program::{Node, Program};
use super::relabel::relabel;
use super::row_values;
use super::spread::spread;
use super::text::column_name;

impl Program {
    /// A batch as the frame of this program: the columns that it reads, found by their names.
    ///
    /// # Errors
    /// The batch lacks one, which is a bug of ours.
    pub(crate) fn frame<'a>(
        &self,
        batch: &RecordBatch,
        settings: &'a CallSettings,
    ) -> Result<Frame<'a>, SqlError> {
        let columns = self.columns().iter().map(|&id| {
            let name = column_name(id);
            let missing =
                || SqlError::internal(format!("an operator's input has no column {name}"));
            let column = batch.column_by_name(&name).ok_or_else(missing)?;
            Ok(Argument::column(Arc::clone(column)))
        });
        let columns = columns.collect::<Result<_, SqlError>>()?;
        Ok(Frame::new(columns, batch.num_rows(), settings))
    }

    /// Computes the value for each row of the frame, whose columns are those of
    /// [`Program::columns`].
    ///
    /// # Errors
    /// Those of the functions.
    pub(crate) fn evaluate(&self, frame: &Frame<'_>) -> Result<ArrayRef, SqlError> {
        let value = self.root.evaluate(frame)?;
        let array = expanded(&value, frame.rows())?;
        let (expected, found) = (self.carrier().data_type(), array.data_type());
        if *found != expected {
            let message = format!("an expression returned {found}, expected {expected}");
            return Err(SqlError::internal(message));
        }
        Ok(array)
    }
}

impl Node {
    fn evaluate(&self, frame: &Frame<'_>) -> Result<Argument, SqlError> {
        with_stack(|| self.evaluate_node(frame))
    }

    fn evaluate_node(&self, frame: &Frame<'_>) -> Result<Argument, SqlError> {
        let rows = frame.rows();
        Ok(match self {
            Self::Column(number) => frame.column(*number)?,
            Self::Constant(array) => Argument::constant(Arc::clone(array)),
            Self::Operand => frame.operand()?,
            Self::Call { function, arguments } => {
                let arguments = evaluate_all(arguments, frame)?;
                function.call(&arguments, rows, frame.settings())?
            }
            Self::Spread { function, arguments } => {
                let arguments = evaluate_all(arguments, frame)?;
                spread(function, &arguments, rows, frame.settings())?
            }
            Self::And(operands) => column(connect(operands, frame, false)?),
            Self::Or(operands) => column(connect(operands, frame, true)?),
            Self::Not(operand) => {
                let operand = booleans(&operand.evaluate(frame)?, rows)?;
                column(not(&operand).map_err(failed)?)
            }
            Self::IsNull { argument, negated } => {
                let argument = expanded(&argument.evaluate(frame)?, rows)?;
                let test = if *negated { is_not_null(&argument) } else { is_null(&argument) };
                column(test.map_err(failed)?)
            }
            Self::Test { argument, test } => {
                let argument = booleans(&argument.evaluate(frame)?, rows)?;
                column(argument.iter().map(|value| Some(passes(value, *test))).collect())
            }
            Self::Distinct { equality, left, right } => {
                let (left, right) = (left.evaluate(frame)?, right.evaluate(frame)?);
                column(distinct(equality, &left, &right, frame)?)
            }
            Self::NullIf { equality, left, right } => {
                let arguments = [left.evaluate(frame)?, right.evaluate(frame)?];
                let equal = equality.call(&arguments, rows, frame.settings())?;
                let equal = booleans(&equal, rows)?;
                let kept = numbers(rows, |row| !is_true(&equal, row));
                let [left, _] = &arguments;
                let values = selected(left, &kept)?;
                assembled(rows, [(kept, values)])?
            }
            Self::Case { operand, arms, otherwise } => match operand {
                Some(operand) => {
                    let operand = operand.evaluate(frame)?;
                    case(arms, otherwise, &frame.with_operand(operand))?
                }
                None => case(arms, otherwise, frame)?,
            },
            Self::Coalesce(operands) => coalesce(operands, frame)?,
            Self::Extreme { greatest, compare, arguments } => {
                extreme(*greatest, compare, arguments, frame)?
            }
            Self::AnyElement { comparison, all, left, elements } => {
                let left = left.evaluate(frame)?;
                column(any_element(comparison, *all, &left, elements, frame)?)
            }
            Self::AnyOf { comparison, all, left, array } => {
                let arguments = [left.evaluate(frame)?, array.evaluate(frame)?];
                comparison.call_with_elements(&arguments, *all, rows, frame.settings())?
            }
            Self::Relabel { argument, from, to } => {
                let argument = argument.evaluate(frame)?;
                let relabeled = relabel(argument.array(), *from, *to)?;
                match argument.is_constant() {
                    true => Argument::constant(relabeled),
                    false => Argument::column(relabeled),
                }
            }
            Self::Key { key, argument } => {
                let argument = argument.evaluate(frame)?;
                let keys = key.apply(argument.array())?;
                match argument.is_constant() {
                    true => Argument::constant(keys),
                    false => Argument::column(keys),
                }
            }
            _ => return self.evaluate_compound(frame),
        })
    }

    /// The nodes that make values of other values, or take them apart.
    fn evaluate_compound(&self, frame: &Frame<'_>) -> Result<Argument, SqlError> {
        let rows = frame.rows();
        match self {
            Self::Array { element, elements, nested } => {
                let elements = evaluate_all(elements, frame)?;
                match nested {
                    true => arrays::nested(*element, &elements, rows),
                    false => arrays::list(*element, &elements, rows),
                }
            }
            Self::ArrayCast { from, to, argument, cast } => {
                let argument = argument.evaluate(frame)?;
                arrays::cast(*from, *to, &argument, |elements| {
                    let count = elements.len();
                    let elements = Argument::column(elements);
                    let frame = Frame::new(Vec::new(), count, frame.settings());
                    let converted = cast.evaluate(&frame.with_operand(elements))?;
                    expanded(&converted, count)
                })
            }
            Self::Subscript { element, array, subscripts } => {
                let array = array.evaluate(frame)?;
                let subscripts = evaluate_all(subscripts, frame)?;
                arrays::element(*element, &array, &subscripts, rows)
            }
            Self::Slice { element, array, bounds } => {
                let array = array.evaluate(frame)?;
                let bound = |node: &Option<Self>| {
                    node.as_ref().map(|node| node.evaluate(frame)).transpose()
                };
                let bounds = bounds.iter().map(|(lower, upper)| Ok((bound(lower)?, bound(upper)?)));
                let bounds = bounds.collect::<Result<Vec<_>, SqlError>>()?;
                arrays::part(*element, &array, &bounds, rows)
            }
            Self::Rows { less, equal, pairs } => {
                compare_rows(*less, *equal, pairs, frame).map(column)
            }
            Self::Row { ty, fields } => row_values::make(ty, &evaluate_all(fields, frame)?, rows),
            Self::Field { row, number, carrier } => {
                let row = row.evaluate(frame)?;
                row_values::field(&row, *number, *carrier, rows, frame.settings())
            }
            Self::RowTest { row, negated } => {
                let row = row.evaluate(frame)?;
                row_values::test(&row, *negated, rows, frame.settings()).map(column)
            }
            Self::ViaText { cast, argument } => {
                cast.cast(&argument.evaluate(frame)?, rows, frame.settings())
            }
            _ => Err(SqlError::internal("a node that is not evaluated")),
        }
    }
}

fn evaluate_all(nodes: &[Node], frame: &Frame<'_>) -> Result<Vec<Argument>, SqlError> {
    nodes.iter().map(|node| node.evaluate(frame)).collect()
}

fn column(array: BooleanArray) -> Argument {
    Argument::column(Arc::new(array))
}

fn is_true(array: &BooleanArray, row: usize) -> bool {
    !array.is_null(row) && array.value(row)
}

/// The numbers of the rows for which `test` is true.
fn numbers(rows: usize, test: impl Fn(usize) -> bool) -> UInt32Array {
    // A batch has fewer than 2^32 rows.
    UInt32Array::from_iter_values((0..rows).filter(|&row| test(row)).map(|row| row as u32))
}

/// A column from values that were each computed for some rows. Other rows are null.
fn assembled(
    rows: usize,
    parts: impl IntoIterator<Item = (UInt32Array, Argument)>,
) -> Result<Argument, SqlError> {
    let mut scatter = Scatter::new(rows);
    let mut null = None;
    for (numbers, values) in parts {
        null.get_or_insert_with(|| new_null_array(values.array().data_type(), 1));
        scatter.set(numbers.values(), &values);
    }
    let null = null.ok_or_else(|| SqlError::internal("a column without parts"))?;
    Ok(Argument::column(scatter.finish(null)?))
}

/// `AND`, or `OR` if `decides` is true: an operand is evaluated in the rows that no operand before it
/// has decided.
fn connect(operands: &[Node], frame: &Frame<'_>, decides: bool) -> Result<BooleanArray, SqlError> {
    let rows = frame.rows();
    let mut result: BooleanArray = std::iter::repeat_n(Some(!decides), rows).collect();
    for operand in operands {
        let decided = |row: usize| !result.is_null(row) && result.value(row) == decides;
        let open = numbers(rows, |row| !decided(row));
        let value = match open.len() {
            0 => break,
            count if count == rows => booleans(&operand.evaluate(frame)?, rows)?,
            _ => {
                let value = operand.evaluate(&frame.select(&open)?)?;
                let value = assembled(rows, [(open, value)])?;
                booleans(&value, rows)?
            }
        };
        // Rows that were decided have a null here, which doesn't change them.
        let connected =
            if decides { or_kleene(&result, &value) } else { and_kleene(&result, &value) };
        result = connected.map_err(failed)?;
    }
    Ok(result)
}

fn passes(value: Option<bool>, test: BooleanTest) -> bool {
    match test {
        BooleanTest::IsTrue => value == Some(true),
        BooleanTest::IsNotTrue => value != Some(true),
        BooleanTest::IsFalse => value == Some(false),
        BooleanTest::IsNotFalse => value != Some(false),
        BooleanTest::IsUnknown => value.is_none(),
        BooleanTest::IsNotUnknown => value.is_some(),
    }
}

/// `IS DISTINCT FROM`: nulls are equal to each other.
fn distinct(
    equality: &Function,
    left: &Argument,
    right: &Argument,
    frame: &Frame<'_>,
) -> Result<BooleanArray, SqlError> {
    let rows = frame.rows();
    let equal = equality.call(&[left.clone(), right.clone()], rows, frame.settings())?;
    let equal = booleans(&equal, rows)?;
    let distinct = (0..rows).map(|row| match (left.is_null(row), right.is_null(row)) {
        (true, true) => false,
        (false, false) => !is_true(&equal, row),
        _ => true,
    });
    Ok(distinct.map(Some).collect())
}

/// `CASE`: each condition is evaluated in the rows for which no condition before it is true.
fn case(arms: &[(Node, Node)], otherwise: &Node, frame: &Frame<'_>) -> Result<Argument, SqlError> {
    let rows = frame.rows();
    let mut open = numbers(rows, |_| true);
    let mut parts = Vec::new();
    for (condition, result) in arms {
        if open.is_empty() {
            break;
        }
        let selected = if open.len() == rows { frame.clone() } else { frame.select(&open)? };
        let condition = booleans(&condition.evaluate(&selected)?, selected.rows())?;
        let split = |wanted: bool| {
            let places = numbers(selected.rows(), |at| is_true(&condition, at) == wanted);
            let rows = places.values().iter().map(|&at| open.value(at as usize));
            (UInt32Array::from_iter_values(rows), places)
        };
        let ((met, places), (rest, _)) = (split(true), split(false));
        if !met.is_empty() {
            parts.push((met, result.evaluate(&selected.select(&places)?)?));
        }
        open = rest;
    }
    if !open.is_empty() || parts.is_empty() {
        let selected = if open.len() == rows { frame.clone() } else { frame.select(&open)? };
        parts.push((open, otherwise.evaluate(&selected)?));
    }
    assembled(rows, parts)
}

/// `COALESCE`: each operand is evaluated in the rows in which all operands before it are null.
fn coalesce(operands: &[Node], frame: &Frame<'_>) -> Result<Argument, SqlError> {
    let rows = frame.rows();
    let mut open = numbers(rows, |_| true);
    let mut parts = Vec::new();
    for operand in operands {
        if open.is_empty() && !parts.is_empty() {
            break;
        }
        let selected = if open.len() == rows { frame.clone() } else { frame.select(&open)? };
        let value = operand.evaluate(&selected)?;
        // Later parts replace the nulls of this one.
        let nulls = numbers(selected.rows(), |at| value.is_null(at));
        let rest = nulls.values().iter().map(|&at| open.value(at as usize));
        let rest = UInt32Array::from_iter_values(rest);
        parts.push((std::mem::replace(&mut open, rest), value));
    }
    assembled(rows, parts)
}

/// `GREATEST` and `LEAST`, which ignore nulls. Of equal values, the first one counts.
fn extreme(
    greatest: bool,
    compare: &Function,
    arguments: &[Node],
    frame: &Frame<'_>,
) -> Result<Argument, SqlError> {
    let rows = frame.rows();
    let mut best: Option<Argument> = None;
    for argument in arguments {
        let argument = argument.evaluate(frame)?;
        let Some(current) = best else {
            best = Some(argument);
            continue;
        };
        let order = compare.call(&[current.clone(), argument.clone()], rows, frame.settings())?;
        let order = expanded(&order, rows)?;
        let order = order.as_primitive_opt::<Int32Type>();
        let order = order.ok_or_else(|| SqlError::internal("a comparison is not an int4"))?;
        let replaces = |row: usize| match (current.is_null(row), argument.is_null(row)) {
            (_, true) => false,
            (true, false) => true,
            (false, false) if greatest => order.value(row) < 0,
            (false, false) => order.value(row) > 0,
        };
        let (new, old) = (numbers(rows, replaces), numbers(rows, |row| !replaces(row)));
        let at = |argument: &Argument, rows: &UInt32Array| {
            let places = rows.values().iter().map(|&row| argument.row(row as usize) as u32);
            let places = UInt32Array::from_iter_values(places);
            let values = datafusion::arrow::compute::take(argument.array(), &places, None);
            values.map(Argument::column).map_err(failed)
        };
        let parts = [(at(&argument, &new)?, new), (at(&current, &old)?, old)];
        best = Some(assembled(rows, parts.map(|(values, rows)| (rows, values)))?);
    }
    best.ok_or_else(|| SqlError::internal("GREATEST without arguments"))
}

/// `ROW(…) < ROW(…)`: the first pair that differs decides. If a pair has a null before that, the result
/// is null. As in PostgreSQL, later pairs are not evaluated in the rows that are decided.
fn compare_rows(
    less: bool,
    equal: bool,
    pairs: &[(Node, Node, Function)],
    frame: &Frame<'_>,
) -> Result<BooleanArray, SqlError> {
    let rows = frame.rows();
    let mut results = vec![Some(equal); rows];
    let mut open = numbers(rows, |_| true);
    for (left, right, compare) in pairs {
        if open.is_empty() {
            break;
        }
        let selected = if open.len() == rows { frame.clone() } else { frame.select(&open)? };
        let arguments = [left.evaluate(&selected)?, right.evaluate(&selected)?];
        let order = compare.call(&arguments, selected.rows(), frame.settings())?;
        let order = expanded(&order, selected.rows())?;
        let order = order.as_primitive_opt::<Int32Type>();
        let order = order.ok_or_else(|| SqlError::internal("a comparison is not an int4"))?;
        let mut rest = Vec::new();
        for (order, &row) in order.iter().zip(open.values()) {
            let decided = match order {
                None => None,
                Some(0) => {
                    rest.push(row);
                    continue;
                }
                Some(order) => Some((order < 0) == less),
            };
            if let Some(result) = results.get_mut(row as usize) {
                *result = decided;
            }
        }
        open = UInt32Array::from(rest);
    }
    Ok(results.into_iter().collect())
}

/// `left = ANY (elements)` or `ALL`, with three-valued logic.
fn any_element(
    comparison: &Function,
    all: bool,
    left: &Argument,
    elements: &[ArrayRef],
    frame: &Frame<'_>,
) -> Result<BooleanArray, SqlError> {
    let rows = frame.rows();
    let mut result: BooleanArray = std::iter::repeat_n(Some(all), rows).collect();
    for element in elements {
        let arguments = [left.clone(), Argument::constant(Arc::clone(element))];
        let value = comparison.call(&arguments, rows, frame.settings())?;
        let value = booleans(&value, rows)?;
        let connected = if all { and_kleene(&result, &value) } else { or_kleene(&result, &value) };
        result = connected.map_err(failed)?;
    }
    Ok(result)
}
