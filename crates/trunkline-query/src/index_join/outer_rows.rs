//! The outer rows, as many at a time as the loop asks for.
//!
//! Outer batches may be small, because an input that may stop early begins with single rows, too. So rows
//! of several batches are joined together, but a row that is there isn't kept waiting for others that
//! aren't.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

/// Outer rows that have not been joined yet.
pub(super) struct OuterRows {
    input: SendableRecordBatchStream,
    batches: VecDeque<RecordBatch>,
    rows: usize,
    /// How the input has ended.
    end: Option<Option<DataFusionError>>,
}

impl OuterRows {
    pub(super) fn new(input: SendableRecordBatchStream) -> Self {
        Self { input, batches: VecDeque::new(), rows: 0, end: None }
    }

    /// Returns at least one and at most `wanted` rows, or `None` at the end.
    pub(super) fn poll_rows(
        &mut self,
        context: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<Option<Result<RecordBatch>>> {
        while self.rows < wanted && self.end.is_none() {
            match self.input.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(batch))) => {
                    self.rows += batch.num_rows();
                    if batch.num_rows() > 0 {
                        self.batches.push_back(batch);
                    }
                }
                Poll::Ready(Some(Err(error))) => self.end = Some(Some(error)),
                Poll::Ready(None) => self.end = Some(None),
                Poll::Pending if self.rows == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if self.rows > 0 {
            return Poll::Ready(Some(self.take(wanted)));
        }
        // The rows before an error come first.
        Poll::Ready(self.end.as_mut().and_then(Option::take).map(Err))
    }

    /// Takes the first rows.
    fn take(&mut self, wanted: usize) -> Result<RecordBatch> {
        let (mut parts, mut left) = (Vec::new(), wanted);
        while left > 0
            && let Some(batch) = self.batches.pop_front()
        {
            let rows = batch.num_rows().min(left);
            if rows < batch.num_rows() {
                self.batches.push_front(batch.slice(rows, batch.num_rows() - rows));
            }
            parts.push(batch.slice(0, rows));
            left -= rows;
            self.rows -= rows;
        }
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => Ok(concat_batches(&self.input.schema(), &parts)?),
        }
    }
}
