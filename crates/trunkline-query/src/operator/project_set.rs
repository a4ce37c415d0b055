//! Set-returning functions: the rows of each input row, in step.
//!
//! ```text
//!   SELECT a, unnest(b), generate_series(1, 2)       a │ unnest │ generate_series
//!   FROM (VALUES ('x', '{7,8,9}')) v(a, b)           x │ 7      │ 1
//!                                                    x │ 8      │ 2
//!                                                    x │ 9      │ null
//! ```
//!
//! A function in `FROM` is the same over its left neighbours: `FROM t, unnest(t.b)`. Functions return
//! their rows in parts, so a long series needs no memory.

use std::fmt;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SortOptions};
use datafusion::arrow::compute::{concat, take};
use datafusion::common::Result;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::Expr;
use trunkline_sql::functions::{Argument, Call, CallSettings, DefinedRow, SetFunction, SetRows};

use super::definition::{Operator, Process, Streams};
use crate::error::to_datafusion;
use crate::expression::{Division, Frame, Program, column_name};
use crate::scan::PageCounter;

/// A call of a function, with the columns of its rows.
pub(crate) struct SetCall {
    /// `None` for an expression, which gives one row.
    pub(crate) function: Option<SetFunction>,
    /// The arguments; for an expression, itself.
    pub(crate) arguments: Vec<Program>,
    /// The arguments' types.
    pub(crate) argument_types: Vec<Oid>,
    /// The type of a row.
    pub(crate) result_type: Oid,
    /// The input collation; 0 if none.
    pub(crate) collation: Oid,
    /// The rows that a column definition list describes.
    pub(crate) row: Option<DefinedRow>,
    /// The function doesn't return a set: if it gives no row, there is one of nulls.
    pub(crate) is_single: bool,
    /// The function gives rows as values, which are divided into the columns.
    pub(crate) division: Option<Division>,
    /// The names and types of the columns.
    pub(crate) columns: Vec<(String, DataType)>,
    /// The call as the statement has it.
    pub(crate) call: Expr,
    /// The call as text, by which equal ones are recognized.
    pub(crate) text: String,
}

impl fmt::Debug for SetCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Calls functions for each row, and repeats the row for each of theirs.
pub(crate) struct ProjectSet {
    /// The functions.
    pub(crate) calls: Vec<SetCall>,
    /// The column that counts the rows of an input row from 1.
    pub(crate) ordinality: Option<String>,
    /// A row without results is kept, with nulls.
    pub(crate) keeps_empty: bool,
    /// The session's settings, with which functions count their pages for this node.
    pub(crate) settings: Arc<CallSettings>,
    /// What the functions of this node have read.
    pub(crate) pages: PageCounter,
}

impl fmt::Debug for ProjectSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProjectSet: {:?}", self.calls)
    }
}

impl Operator for Arc<ProjectSet> {
    fn name(&self) -> &'static str {
        "ProjectSet"
    }

    fn needs(&self) -> Vec<String> {
        let programs = self.calls.iter().flat_map(|call| &call.arguments);
        programs.flat_map(|program| program.columns()).map(|&id| column_name(id)).collect()
    }

    fn added(&self) -> Vec<Field> {
        let columns = self.calls.iter().flat_map(|call| &call.columns);
        let columns = columns.map(|(name, ty)| Field::new(name, ty.clone(), true));
        let ordinality = self.ordinality.iter();
        columns.chain(ordinality.map(|name| Field::new(name, DataType::Int64, true))).collect()
    }

    fn order(&self) -> Option<Vec<(String, SortOptions)>> {
        None
    }

    /// A row of the input appears unchanged in all rows that are made of it.
    fn passes_filters(&self) -> bool {
        true
    }

    fn start(&self, streams: Streams) -> Result<Box<dyn Process>> {
        Ok(Box::new(Sets { operator: Self::clone(self), streams, current: None }))
    }
}

/// The process of a [`ProjectSet`].
struct Sets {
    operator: Arc<ProjectSet>,
    streams: Streams,
    current: Option<Input>,
}

/// A batch of the input, and how far it has been processed.
struct Input {
    batch: RecordBatch,
    /// For each function, its arguments in all rows.
    arguments: Vec<Vec<Argument>>,
    /// The current row.
    row: usize,
    /// The functions' rows for the current row; empty before they are called.
    calls: Vec<Results>,
    /// The number of rows that the current row has given so far.
    count: i64,
}

/// What a function returns for a row.
struct Results {
    /// `None` at the end.
    rows: Option<Box<dyn SetRows>>,
    /// A row of nulls is missing if the function ends without a row.
    needs_row: bool,
    /// Rows that have been returned and not used, and how many of them.
    ready: Vec<ArrayRef>,
    left: usize,
}

impl Results {
    /// Makes sure that there are rows, unless the function has ended.
    fn fill(
        &mut self,
        rows_max: usize,
        call: &SetCall,
        settings: &CallSettings,
    ) -> Result<(), SqlError> {
        while self.left == 0
            && let Some(rows) = &mut self.rows
        {
            match rows.next_rows(rows_max)? {
                Some(arrays) => {
                    self.left = arrays.first().map_or(0, |array| array.len());
                    self.ready = call.divided(arrays, settings)?;
                    self.needs_row &= self.left == 0;
                }
                None => {
                    self.rows = None;
                    if std::mem::take(&mut self.needs_row) {
                        let types = call.columns.iter();
                        self.ready = types.map(|(_, ty)| new_null_array(ty, 1)).collect();
                        self.left = 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes rows that are ready; `None` if there are none.
    fn take(&mut self, count: usize) -> Option<Vec<ArrayRef>> {
        if self.left == 0 {
            return None;
        }
        let taken = self.ready.iter().map(|array| array.slice(0, count)).collect();
        self.left -= count;
        self.ready = self.ready.iter().map(|array| array.slice(count, self.left)).collect();
        Some(taken)
    }
}

/// The rows of a batch under construction.
struct Output {
    /// The input row of each row.
    rows: Vec<u32>,
    /// For each column of the functions, its parts.
    parts: Vec<Vec<ArrayRef>>,
    ordinality: Vec<Option<i64>>,
}

impl Process for Sets {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let calls = self.operator.calls.iter();
        let arguments = calls.map(|call| arguments(call, &batch, &self.operator.settings));
        let arguments = arguments.collect::<Result<_>>()?;
        self.current = Some(Input { batch, arguments, row: 0, calls: Vec::new(), count: 0 });
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(input) = &mut self.current else { return Ok(None) };
        let operator = &self.operator;
        let columns = operator.calls.iter().map(|call| call.columns.len()).sum();
        let (rows, ordinality) = (Vec::new(), Vec::new());
        let mut output = Output { rows, parts: vec![Vec::new(); columns], ordinality };
        while output.rows.len() < self.streams.rows_max && input.row < input.batch.num_rows() {
            let room = self.streams.rows_max - output.rows.len();
            advance(operator, input, room, &mut output).map_err(to_datafusion)?;
        }
        let batch = match output.rows.is_empty() {
            true => None,
            false => Some(assemble(operator, input, output, &self.streams)?),
        };
        if input.row >= input.batch.num_rows() {
            self.current = None;
        }
        Ok(batch)
    }
}

/// The arguments of a call in all rows of a batch.
fn arguments(
    call: &SetCall,
    batch: &RecordBatch,
    settings: &CallSettings,
) -> Result<Vec<Argument>> {
    let argument = |program: &Program| {
        let is_constant = program.columns().is_empty() && !program.is_volatile();
        let frame = match is_constant {
            true => Ok(Frame::new(Vec::new(), 1, settings)),
            false => program.frame(batch, settings),
        };
        let value = frame.and_then(|frame| program.evaluate(&frame));
        let value = value.map_err(to_datafusion)?;
        Ok(if is_constant { Argument::constant(value) } else { Argument::column(value) })
    };
    call.arguments.iter().map(argument).collect()
}

/// Adds rows of the current input row, at most `room`, and goes to the next one at their end.
fn advance(
    operator: &ProjectSet,
    input: &mut Input,
    room: usize,
    output: &mut Output,
) -> Result<(), SqlError> {
    if input.calls.is_empty() {
        let calls = operator.calls.iter().zip(&input.arguments);
        let (row, rows) = (input.row, input.batch.num_rows());
        let started = calls.map(|(call, arguments)| call.start(arguments, row, rows, operator));
        input.calls = started.collect::<Result<_, _>>()?;
    }
    for (call, definition) in input.calls.iter_mut().zip(&operator.calls) {
        call.fill(room, definition, &operator.settings)?;
    }
    let ready = input.calls.iter().map(|call| call.left).filter(|&left| left > 0);
    let mut count = ready.min().unwrap_or_default().min(room);
    let is_end = count == 0;
    if is_end && input.count == 0 && operator.keeps_empty {
        count = 1;
    }
    if count > 0 {
        let row = u32::try_from(input.row);
        let row = row.map_err(|_| SqlError::internal("a batch of more than 2^32 rows"))?;
        output.rows.extend(std::iter::repeat_n(row, count));
        let mut parts = output.parts.iter_mut();
        for (call, definition) in input.calls.iter_mut().zip(&operator.calls) {
            let taken = call.take(count);
            for (at, (_, ty)) in definition.columns.iter().enumerate() {
                let part = taken.as_ref().and_then(|taken| taken.get(at)).cloned();
                let part = part.unwrap_or_else(|| new_null_array(ty, count));
                parts.next().into_iter().for_each(|parts| parts.push(Arc::clone(&part)));
            }
        }
        let numbers = (input.count + 1..).take(count);
        output.ordinality.extend(numbers.map(|number| (!is_end).then_some(number)));
        input.count += i64::try_from(count).unwrap_or(i64::MAX);
    }
    if is_end {
        input.row += 1;
        input.calls.clear();
        input.count = 0;
    }
    Ok(())
}

impl SetCall {
    /// Calls the function for a row.
    fn start(
        &self,
        arguments: &[Argument],
        row: usize,
        rows: usize,
        operator: &ProjectSet,
    ) -> Result<Results, SqlError> {
        let Some(function) = self.function else {
            let value = arguments.iter().map(|value| value.array().slice(value.row(row), 1));
            let ready = self.divided(value.collect(), &operator.settings)?;
            return Ok(Results { rows: None, needs_row: false, ready, left: 1 });
        };
        let rows = function(
            &Call {
                arguments,
                rows,
                argument_types: &self.argument_types,
                result_type: self.result_type,
                collation: self.collation,
                row: self.row.as_ref(),
                settings: &operator.settings,
            },
            row,
        )?;
        let needs_row = self.is_single;
        Ok(Results { rows: Some(rows), needs_row, ready: Vec::new(), left: 0 })
    }

    /// The columns of what the function gives.
    fn divided(
        &self,
        arrays: Vec<ArrayRef>,
        settings: &CallSettings,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        match (&self.division, arrays.as_slice()) {
            (Some(division), [rows]) => division.columns(rows, settings),
            _ => Ok(arrays),
        }
    }
}

/// The batch of what was collected.
fn assemble(
    operator: &ProjectSet,
    input: &Input,
    output: Output,
    streams: &Streams,
) -> Result<RecordBatch> {
    let count = output.rows.len();
    let rows = UInt32Array::from(output.rows);
    let kept = input.batch.columns().iter().map(|array| Ok(take(array, &rows, None)?));
    let mut columns = kept.collect::<Result<Vec<_>>>()?;
    for parts in &output.parts {
        let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
        columns.push(concat(&parts)?);
    }
    if operator.ordinality.is_some() {
        columns.push(Arc::new(Int64Array::from(output.ordinality)));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let schema: &Arc<Schema> = &streams.output;
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
