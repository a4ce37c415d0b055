//! `FETCH FIRST … WITH TIES`: some rows in order, and those that are equal to the last of them.
//!
//! ```text
//!   ORDER BY n FETCH FIRST 2 ROWS WITH TIES      1, 2, 2, 2, 3  ──▶  1, 2, 2, 2
//! ```

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, SortOptions};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{Result, exec_err};

use super::definition::{Operator, Process, Streams};

/// The first rows, with their ties.
#[derive(Clone)]
pub(crate) struct LimitWithTies {
    /// The keys by which rows are sorted and compared.
    pub(crate) order_by: Vec<(String, SortOptions)>,
    /// How many rows are skipped.
    pub(crate) offset: usize,
    /// How many rows are returned, without ties.
    pub(crate) limit: usize,
}

impl fmt::Debug for LimitWithTies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, limit, .. } = self;
        write!(f, "Limit: offset={offset}, limit={limit}, with ties")
    }
}

impl Operator for LimitWithTies {
    fn name(&self) -> &'static str {
        "LimitWithTies"
    }

    fn needs(&self) -> Vec<String> {
        self.order_by.iter().map(|(name, _)| name.clone()).collect()
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
        let mut columns = Vec::with_capacity(self.order_by.len());
        let mut fields = Vec::with_capacity(self.order_by.len());
        for (name, _) in &self.order_by {
            let (at, field) = match streams.input.column_with_name(name) {
                Some(found) => found,
                None => return exec_err!("a limit's input has no column {name}"),
            };
            columns.push(at);
            fields.push(SortField::new(field.data_type().clone()));
        }
        let converter = RowConverter::new(fields)?;
        let (skip, left, last) = (self.offset, self.limit, None);
        let (next, done) = (None, self.limit == 0);
        Ok(Box::new(Ties { converter, columns, skip, left, last, next, done }))
    }
}

/// The process of a [`LimitWithTies`].
struct Ties {
    converter: RowConverter,
    /// The places of the keys.
    columns: Vec<usize>,
    /// Rows still to be skipped.
    skip: usize,
    /// Rows still to be returned, without ties.
    left: usize,
    /// The keys of the last of those.
    last: Option<OwnedRow>,
    next: Option<RecordBatch>,
    done: bool,
}

impl Process for Ties {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let skipped = self.skip.min(batch.num_rows());
        self.skip -= skipped;
        let rows = batch.slice(skipped, batch.num_rows() - skipped);
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let keys = self.columns.iter().map(|&at| Arc::clone(rows.column(at)));
        let keys = self.converter.convert_columns(&keys.collect::<Vec<_>>())?;
        let mut wanted = self.left.min(rows.num_rows());
        self.left -= wanted;
        if self.left == 0 {
            if wanted > 0 {
                self.last = Some(keys.row(wanted - 1).owned());
            }
            let is_tie =
                |row: usize| self.last.as_ref().is_some_and(|last| keys.row(row) == last.row());
            while wanted < rows.num_rows() && is_tie(wanted) {
                wanted += 1;
            }
            self.done = wanted < rows.num_rows();
        }
        self.next = (wanted > 0).then(|| rows.slice(0, wanted));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        Ok(self.next.take())
    }

    fn is_done(&self) -> bool {
        self.done
    }
}
