//! The rows that an expression is evaluated for.
//!
//! `CASE`, `COALESCE`, `AND` and `OR` evaluate their later operands only in rows in which the earlier
//! ones have not decided yet, because those operands may fail in other rows, as in
//! `CASE WHEN x <> 0 THEN 1 / x END`. Such an operand is evaluated for a smaller frame: the same
//! columns with fewer rows.

use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array};
use datafusion::arrow::compute::{interleave, take};
use std::sync::Arc;
use trunkline_sql::SqlError;
use trunkline_sql::functions::{Argument, CallSettings};

/// Columns with the same number of rows, and what the enclosing expressions have computed.
#[derive(Clone)]
pub(crate) struct Frame<'a> {
    columns: Vec<Argument>,
    /// The value that `CaseOperand` stands for.
    operand: Option<Argument>,
    rows: usize,
    settings: &'a CallSettings,
}

impl<'a> Frame<'a> {
    /// A frame of a batch's columns.
    pub(crate) fn new(columns: Vec<Argument>, rows: usize, settings: &'a CallSettings) -> Self {
        Self { columns, operand: None, rows, settings }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The session's settings.
    pub(crate) fn settings(&self) -> &'a CallSettings {
        self.settings
    }

    /// A column.
    pub(crate) fn column(&self, number: usize) -> Result<Argument, SqlError> {
        let missing = || SqlError::internal(format!("column {number} of an expression is missing"));
        self.columns.get(number).cloned().ok_or_else(missing)
    }

    /// The value of the innermost `CASE` operand.
    pub(crate) fn operand(&self) -> Result<Argument, SqlError> {
        self.operand.clone().ok_or_else(|| SqlError::internal("no CASE around its operand"))
    }

    /// The same frame inside a `CASE` with this operand.
    pub(crate) fn with_operand(&self, operand: Argument) -> Self {
        Self { operand: Some(operand), ..self.clone() }
    }

    /// The frame with only these rows.
    pub(crate) fn select(&self, rows: &UInt32Array) -> Result<Self, SqlError> {
        let select = |argument: &Argument| selected(argument, rows);
        Ok(Self {
            columns: self.columns.iter().map(select).collect::<Result<_, _>>()?,
            operand: self.operand.as_ref().map(select).transpose()?,
            rows: rows.len(),
            settings: self.settings,
        })
    }
}

/// An argument in some of the rows.
pub(crate) fn selected(argument: &Argument, rows: &UInt32Array) -> Result<Argument, SqlError> {
    match argument.is_constant() {
        true => Ok(argument.clone()),
        false => take(argument.array(), rows, None).map(Argument::column).map_err(failed),
    }
}

/// An error of an Arrow kernel, which is a bug of ours.
pub(crate) fn failed(error: datafusion::arrow::error::ArrowError) -> SqlError {
    SqlError::internal(error.to_string())
}

/// Assembles a column whose rows are computed in several steps, each for some of the rows.
pub(crate) struct Scatter {
    parts: Vec<ArrayRef>,
    /// For each row, the part that has its value, and the place there.
    places: Vec<Option<(usize, usize)>>,
}

impl Scatter {
    /// A column of `rows` values, none of which is known.
    pub(crate) fn new(rows: usize) -> Self {
        Self { parts: Vec::new(), places: vec![None; rows] }
    }

    /// Sets the values of `rows`. The argument has one value for each of them.
    pub(crate) fn set(&mut self, rows: &[u32], values: &Argument) {
        let part = self.parts.len();
        for (at, &row) in rows.iter().enumerate() {
            if let Some(place) = self.places.get_mut(row as usize) {
                *place = Some((part, values.row(at)));
            }
        }
        self.parts.push(Arc::clone(values.array()));
    }

    /// The column. Rows that were not set are null.
    pub(crate) fn finish(mut self, null: ArrayRef) -> Result<ArrayRef, SqlError> {
        let part = self.parts.len();
        self.parts.push(null);
        let places: Vec<_> = self.places.iter().map(|at| at.unwrap_or((part, 0))).collect();
        let parts: Vec<&dyn Array> = self.parts.iter().map(|part| &**part).collect();
        interleave(&parts, &places).map_err(failed)
    }
}

/// A boolean argument as an array with a value for each row.
pub(crate) fn booleans(argument: &Argument, rows: usize) -> Result<BooleanArray, SqlError> {
    let array = argument.array().as_any().downcast_ref::<BooleanArray>();
    let array = array.ok_or_else(|| SqlError::internal("a condition is not boolean"))?;
    if !argument.is_constant() {
        return Ok(array.clone());
    }
    let value = (!array.is_null(0)).then(|| array.value(0));
    Ok(std::iter::repeat_n(value, rows).collect())
}

/// An argument as an array with a value for each row.
pub(crate) fn expanded(argument: &Argument, rows: usize) -> Result<ArrayRef, SqlError> {
    if !argument.is_constant() {
        return Ok(Arc::clone(argument.array()));
    }
    let zeros = UInt32Array::from(vec![0; rows]);
    take(argument.array(), &zeros, None).map_err(failed)
}
