//! `LIMIT` and `OFFSET` whose numbers are known only when the query is executed, because they are
//! subqueries or columns of an outer query.
//!
//! The numbers are columns of the input, in which they are the same for all rows.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, SortOptions};
use datafusion::common::{Result, internal_datafusion_err};
use trunkline_sql::{SqlError, SqlState};

use super::definition::{Operator, Process, Streams};
use crate::error::to_datafusion;

/// Some of the rows of an input.
#[derive(Clone)]
pub(crate) struct LimitBy {
    /// The keys by which rows are sorted; none if their order is that of the input.
    pub(crate) order_by: Vec<(String, SortOptions)>,
    /// The column that says how many rows are skipped.
    pub(crate) offset: Option<String>,
    /// The column that says how many rows are returned.
    pub(crate) limit: Option<String>,
}

impl fmt::Debug for LimitBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit: offset={:?}, limit={:?}", self.offset, self.limit)
    }
}

impl Operator for LimitBy {
    fn name(&self) -> &'static str {
        "LimitBy"
    }

    fn needs(&self) -> Vec<String> {
        let keys = self.order_by.iter().map(|(name, _)| name);
        keys.chain(&self.offset).chain(&self.limit).cloned().collect()
    }

    fn added(&self) -> Vec<Field> {
        Vec::new()
    }

    fn order(&self) -> Option<Vec<(String, SortOptions)>> {
        Some(self.order_by.clone())
    }

    fn passes_filters(&self) -> bool {
        false
    }

    fn start(&self, streams: Streams) -> Result<Box<dyn Process>> {
        let place = |name: &Option<String>| match name {
            None => Ok(None),
            Some(name) => match streams.input.column_with_name(name) {
                Some((at, _)) => Ok(Some(at)),
                None => Err(internal_datafusion_err!("a limit's input has no column {name}")),
            },
        };
        let (offset, limit) = (place(&self.offset)?, place(&self.limit)?);
        Ok(Box::new(Rows { offset, limit, left: None, next: None }))
    }
}

/// The process of a [`LimitBy`].
struct Rows {
    /// The places of the columns.
    offset: Option<usize>,
    limit: Option<usize>,
    /// Rows still to be skipped and to be returned; unknown before the first row.
    left: Option<(usize, usize)>,
    next: Option<RecordBatch>,
}

/// The number of rows in a column, which is the same in all rows.
fn number(
    batch: &RecordBatch,
    column: Option<usize>,
    code: SqlState,
    name: &str,
) -> Result<Option<usize>> {
    let Some(column) = column else { return Ok(None) };
    let numbers = batch.column(column).as_primitive_opt::<Int64Type>();
    let numbers = numbers.ok_or_else(|| internal_datafusion_err!("a row count is not an int8"))?;
    if numbers.is_null(0) {
        return Ok(None);
    }
    let found = usize::try_from(numbers.value(0));
    let negative = |_| to_datafusion(SqlError::new(code, format!("{name} must not be negative")));
    found.map(Some).map_err(negative)
}

impl Process for Rows {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let (skip, take) = match self.left {
            Some(left) => left,
            None => {
                let code = SqlState::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE;
                let skip = number(&batch, self.offset, code, "OFFSET")?.unwrap_or(0);
                let code = SqlState::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE;
                (skip, number(&batch, self.limit, code, "LIMIT")?.unwrap_or(usize::MAX))
            }
        };
        let skipped = skip.min(batch.num_rows());
        let taken = take.min(batch.num_rows() - skipped);
        self.left = Some((skip - skipped, take - taken));
        self.next = (taken > 0).then(|| batch.slice(skipped, taken));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        Ok(self.next.take())
    }

    fn is_done(&self) -> bool {
        self.left.is_some_and(|(_, take)| take == 0)
    }
}
