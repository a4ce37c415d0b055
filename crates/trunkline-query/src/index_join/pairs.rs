//! Joins the outer rows of one look-up with the inner rows that were found for them.
//!
//! Inner rows come key by key, in batches. A row of the result that says that there is no match can be
//! returned only when all rows of its key have come, and the result keeps the order of the outer rows:
//!
//! ```text
//!   outer   inner rows            Left join
//!   0       0: a  b               (0, a) (0, b)
//!   1       -                     (1, null)
//!   2       2: c  …               (2, c)          and more, perhaps
//! ```

use std::sync::Arc;

use arrow_array::builder::UInt32Builder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::array::new_null_array;
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{and, take};
use datafusion::common::{Result, exec_err};

use super::definition::{Definition, JoinKind};
use crate::scan::KeyedRows;

/// Outer rows with their look-up.
pub(super) struct Pairs {
    join: Arc<Definition>,
    outer: RecordBatch,
    /// The outer values of the equalities.
    values: Vec<ArrayRef>,
    /// Whether each outer row has a match.
    matched: Vec<bool>,
    /// The first outer row whose inner rows may not all have come.
    next: usize,
}

/// Rows of the result: an outer row, and an inner one or none.
#[derive(Default)]
struct JoinedRows {
    outer: Vec<u32>,
    inner: Vec<Option<u32>>,
}

impl JoinedRows {
    fn push(&mut self, outer: u32, inner: Option<u32>) {
        self.outer.push(outer);
        self.inner.push(inner);
    }
}

impl Pairs {
    /// No inner rows have come yet.
    pub(super) fn new(join: Arc<Definition>, outer: RecordBatch) -> Result<Self> {
        let rows = outer.num_rows();
        let values = join.on.iter().map(|(value, _)| value.evaluate(&outer)?.into_array(rows));
        let values = values.collect::<Result<_>>()?;
        Ok(Self { join, outer, values, matched: vec![false; rows], next: 0 })
    }

    /// The number of outer rows.
    pub(super) fn outer_rows(&self) -> usize {
        self.matched.len()
    }

    /// Whether nothing that is still to come can change the result.
    pub(super) fn is_decided(&self) -> bool {
        let by_first = matches!(self.join.kind, JoinKind::Semi | JoinKind::Anti);
        // Rows come in the order of the keys, so all but the last one are decided then.
        by_first && self.next + 1 >= self.matched.len() && self.matched.last() == Some(&true)
    }

    /// Adds inner rows. Returns rows of the result.
    pub(super) fn add(&mut self, found: KeyedRows) -> Result<RecordBatch> {
        let KeyedRows { rows, keys, reached } = found;
        let inner = match &self.join.inner.projection {
            None => rows.columns().to_vec(),
            Some(projection) => {
                let columns = projection.iter();
                let columns = columns.map(|expr| expr.evaluate(&rows)?.into_array(rows.num_rows()));
                columns.collect::<Result<_>>()?
            }
        };
        let passed = self.passed(&inner, &keys)?;
        let passed = passed.iter().enumerate().filter(|(_, passed)| *passed == Some(true));
        let passed = passed.map(|(row, _)| (keys.value(row), row as u32)).collect::<Vec<_>>();
        let found = self.settle(&passed, reached as usize);
        self.result(&found, Some(&inner))
    }

    /// All inner rows have come. Returns the last rows of the result.
    pub(super) fn finish(&mut self) -> Result<RecordBatch> {
        let found = self.settle(&[], self.matched.len());
        self.result(&found, None)
    }

    /// For which inner rows the condition of the join is true.
    fn passed(&self, inner: &[ArrayRef], keys: &UInt32Array) -> Result<BooleanArray> {
        let rows = keys.len();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.join.inner.plan.schema();
        let batch = RecordBatch::try_new_with_options(schema, inner.to_vec(), &options)?;
        let mut passed = BooleanArray::from(vec![true; rows]);
        for ((_, value), outer) in self.join.on.iter().zip(&self.values) {
            let value = value.evaluate(&batch)?.into_array(rows)?;
            passed = and(&passed, &eq(&take(outer, keys, None)?, &value)?)?;
        }
        let Some(filter) = &self.join.filter else { return Ok(passed) };
        // As a hash join, we evaluate the rest only for rows that are equal.
        let equal: UInt32Array =
            (0..rows as u32).filter(|&row| is_true(&passed, row as usize)).collect();
        let equal_keys = take(keys, &equal, None)?;
        let columns = filter.column_indices().iter().map(|column| {
            let (from, rows): (&ArrayRef, &dyn Array) = match column.side == self.join.outer_side {
                true => (self.outer.column(column.index), &equal_keys),
                false => match inner.get(column.index) {
                    Some(array) => (array, &equal),
                    None => return exec_err!("a join has no such column"),
                },
            };
            Ok(take(from, rows, None)?)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(equal.len()));
        let schema = Arc::clone(filter.schema());
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let result = filter.expression().evaluate(&batch)?.into_array(equal.len())?;
        let Some(result) = result.as_boolean_opt() else {
            return exec_err!("the condition of a join returned {}", result.data_type());
        };
        let mut all = vec![false; rows];
        for (at, row) in equal.values().iter().enumerate() {
            if let Some(passed) = all.get_mut(*row as usize) {
                *passed = is_true(result, at);
            }
        }
        Ok(BooleanArray::from(all))
    }

    /// Decides which rows of the result follow from pairs of an outer and an inner row, after all inner
    /// rows of the outer rows before `reached` have come.
    fn settle(&mut self, passed: &[(u32, u32)], reached: usize) -> JoinedRows {
        let kind = self.join.kind;
        let mut found = JoinedRows::default();
        let mut passed = passed.iter().copied().peekable();
        for row in self.next..self.matched.len() {
            let Some(matched) = self.matched.get_mut(row) else { break };
            let outer = row as u32;
            while let Some((_, inner)) = passed.next_if(|(key, _)| *key == outer) {
                match kind {
                    JoinKind::Inner | JoinKind::Left => found.push(outer, Some(inner)),
                    JoinKind::Semi if !*matched => found.push(outer, None),
                    JoinKind::Semi | JoinKind::Anti => {}
                }
                *matched = true;
            }
            if row >= reached {
                // More of them may come.
                break;
            }
            if !*matched && matches!(kind, JoinKind::Left | JoinKind::Anti) {
                found.push(outer, None);
            }
            self.next = row + 1;
        }
        found
    }

    /// The columns of these rows.
    fn result(&self, found: &JoinedRows, inner: Option<&[ArrayRef]>) -> Result<RecordBatch> {
        let Definition { columns, schema, outer_side, inner: side, .. } = &*self.join;
        let outer_rows = UInt32Array::from(found.outer.clone());
        let mut inner_rows = UInt32Builder::with_capacity(found.inner.len());
        found.inner.iter().for_each(|row| inner_rows.append_option(*row));
        let inner_rows = inner_rows.finish();
        let plan = side.plan.schema();
        let arrays = columns.iter().map(|column| {
            if column.side == *outer_side {
                return Ok(take(self.outer.column(column.index), &outer_rows, None)?);
            }
            match inner {
                Some(inner) => match inner.get(column.index) {
                    Some(array) => Ok(take(array, &inner_rows, None)?),
                    None => exec_err!("a join has no such column"),
                },
                None => Ok(new_null_array(plan.field(column.index).data_type(), inner_rows.len())),
            }
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(found.outer.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

fn is_true(array: &BooleanArray, row: usize) -> bool {
    array.is_valid(row) && array.value(row)
}
