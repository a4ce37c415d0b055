//! The rows of a cursor, which each FETCH takes a part of.
//!
//! ```text
//!   CursorRows (the cursor's) ── take ──▶ CursorPart (the FETCH's) ── drop ──▶ back to the cursor
//! ```
//!
//! A part owns the rows while it exists, so nothing is copied and a FETCH of all rows needs no more
//! memory than the query itself. A part in which something failed doesn't return them: as in
//! PostgreSQL, such a cursor can't be used again.

use std::sync::Arc;

use arrow_array::RecordBatch;
use futures::future::BoxFuture;
use trunkline_aio::facade::Mutex;
use trunkline_sql::SqlError;

use super::rows::{ResultColumn, Rows, RowsPart};
use crate::scan::Cancellation;

/// The rows of a cursor. Clones refer to the same cursor.
#[derive(Clone)]
pub(crate) struct CursorRows {
    /// `None` while a part exists, and after one has failed.
    position: Arc<Mutex<Option<Box<Position>>>>,
    columns: Arc<[ResultColumn]>,
    cancellation: Cancellation,
}

/// How far a cursor has come.
struct Position {
    rows: Rows,
    /// How many rows were returned or passed over.
    count: u64,
    /// There are no more rows.
    at_end: bool,
    /// The row that the cursor is on.
    current: Option<RecordBatch>,
}

impl CursorRows {
    /// A cursor before the first of these rows.
    pub(crate) fn new(rows: Rows) -> Self {
        let columns = Arc::clone(rows.columns());
        let cancellation = rows.cancellation().cloned().unwrap_or_default();
        let position = Position { rows, count: 0, at_end: false, current: None };
        Self { position: Arc::new(Mutex::new(Some(Box::new(position)))), columns, cancellation }
    }

    /// The columns.
    pub(crate) fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// What cancels the rows.
    pub(crate) fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// Takes the rows, to return some. `None`: they were taken, or something failed in them.
    pub(crate) fn take(&self) -> Option<CursorPart> {
        let position = self.position.lock().take()?;
        Some(CursorPart { position: Some(position), home: self.clone(), left: 0 })
    }
}

/// Some of a cursor's rows.
pub(crate) struct CursorPart {
    /// `None` after an error.
    position: Option<Box<Position>>,
    home: CursorRows,
    /// How many more rows this part returns.
    left: u64,
}

impl CursorPart {
    /// How many rows were returned or passed over; after the last row, one more.
    pub(crate) fn place(&self) -> u64 {
        let position = self.position.as_deref();
        position.map_or(0, |position| position.count + u64::from(position.at_end))
    }

    /// The row that the cursor is on.
    pub(crate) fn current(&self) -> Option<RecordBatch> {
        self.position.as_deref().and_then(|position| position.current.clone())
    }

    /// The next rows as the rows of a statement.
    pub(crate) fn rows(mut self, limit: u64) -> Rows {
        self.left = limit;
        let columns = self.home.columns.to_vec();
        Rows::of_part(columns, Box::new(self))
    }

    /// Passes over rows. Returns how many there were.
    ///
    /// # Errors
    /// Those of the query.
    pub(crate) async fn skip(&mut self, limit: u64) -> Result<u64, SqlError> {
        self.left = limit;
        let mut count = 0;
        while let Some(batch) = self.next_rows().await? {
            count += batch.num_rows() as u64;
        }
        Ok(count)
    }

    /// The next rows of this part.
    ///
    /// # Errors
    /// Those of the query, after which the cursor can't be used.
    async fn next_rows(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut position) = self.position.take() else { return Ok(None) };
        loop {
            // An error drops the position here.
            let Some(mut batch) = position.rows.next().await? else {
                position.at_end = true;
                position.current = None;
                self.left = 0;
                self.position = Some(position);
                return Ok(None);
            };
            let limit = usize::try_from(self.left).unwrap_or(usize::MAX);
            if batch.num_rows() == 0 {
                continue;
            }
            if batch.num_rows() > limit {
                position.rows.put_back(batch.slice(limit, batch.num_rows() - limit));
                batch = batch.slice(0, limit);
            }
            let count = batch.num_rows();
            position.count += count as u64;
            position.current = Some(batch.slice(count - 1, 1));
            self.left -= count as u64;
            self.position = Some(position);
            return Ok(Some(batch));
        }
    }

    /// Leaves the cursor unusable.
    pub(crate) fn fail(mut self) {
        self.position = None;
    }
}

impl RowsPart for CursorPart {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<RecordBatch>, SqlError>> {
        Box::pin(self.next_rows())
    }

    fn release_ahead(&self) {
        if let Some(position) = &self.position {
            position.rows.release_ahead();
        }
    }

    fn cancellation(&self) -> &Cancellation {
        &self.home.cancellation
    }
}

impl Drop for CursorPart {
    fn drop(&mut self) {
        if let Some(position) = self.position.take() {
            position.rows.release_ahead();
            *self.home.position.lock() = Some(position);
        }
    }
}
