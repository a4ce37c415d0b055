//! The rows of one partition of an index join.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::Stream;

use super::definition::Definition;
use super::outer_rows::OuterRows;
use super::pairs::Pairs;
use crate::access_path::KeyValues;
use crate::error::to_datafusion;
use crate::scan::{KeyedReader, LookAhead};

/// Joins outer rows with the rows of an index search, a few of them at a time.
pub(super) struct IndexJoinStream {
    join: Arc<Definition>,
    outer: OuterRows,
    reader: KeyedReader,
    /// How many outer rows are looked up together.
    ahead: LookAhead,
    /// The outer rows whose inner rows are being read.
    pairs: Option<Pairs>,
    ended: bool,
}

impl IndexJoinStream {
    pub(super) fn new(
        join: &Arc<Definition>,
        outer: SendableRecordBatchStream,
        partition: usize,
    ) -> Self {
        Self {
            outer: OuterRows::new(outer),
            reader: KeyedReader::new(&join.inner.scan, &join.inner.path, partition),
            ahead: LookAhead::new(join.keys_max),
            pairs: None,
            ended: false,
            join: Arc::clone(join),
        }
    }

    /// Starts to look up the keys of outer rows.
    fn start(&mut self, outer: RecordBatch) -> Result<()> {
        let rows = outer.num_rows();
        let arrays = self
            .join
            .keys
            .iter()
            .map(|(value, carrier)| Ok((value.evaluate(&outer)?.into_array(rows)?, *carrier)));
        let values = KeyValues::new(arrays.collect::<Result<_>>()?);
        let search = &self.join.inner.search;
        self.reader.start(values.ranges(search, rows).map_err(to_datafusion)?);
        self.pairs = Some(Pairs::new(Arc::clone(&self.join), outer)?);
        Ok(())
    }

    /// Goes on. Returns rows of the result, perhaps none, or `None` at the end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        let Some(pairs) = &mut self.pairs else {
            let Some(outer) = ready!(self.outer.poll_rows(context, self.ahead.wanted())) else {
                return Poll::Ready(Ok(None));
            };
            self.start(outer?)?;
            return Poll::Ready(Ok(Some(RecordBatch::new_empty(Arc::clone(&self.join.schema)))));
        };
        let rows = match ready!(self.reader.poll_rows(context)).transpose()? {
            Some(found) => pairs.add(found)?,
            None => {
                let rows = pairs.finish()?;
                self.close();
                return Poll::Ready(Ok(Some(rows)));
            }
        };
        if pairs.is_decided() {
            self.close();
        }
        Poll::Ready(Ok(Some(rows)))
    }

    /// Ends a look-up.
    fn close(&mut self) {
        if let Some(pairs) = self.pairs.take() {
            self.ahead.used(pairs.outer_rows(), self.reader.has_waited());
        }
    }
}

impl Stream for IndexJoinStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let polled = ready!(self.poll(context)).transpose();
            match polled {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => return Poll::Ready(Some(Ok(batch))),
                last => {
                    self.ended = true;
                    return Poll::Ready(last);
                }
            }
        }
    }
}

impl RecordBatchStream for IndexJoinStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.join.schema)
    }
}
